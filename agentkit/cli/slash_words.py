"""The words that a user of the chat says to the program, not to the model: `/help`, `/model`, … Knows no model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from agentkit.checks.spelling import did_you_mean

WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "help": ("", "list these commands"),
    "tools": ("[NAME]", "list the tools, or describe one"),
    "model": ("[NAME]", "show or change the model"),
    "format": ("[NAME|native]", "show or change how the model writes calls"),
    "approve": ("[ask|always|never]", "how to treat calls that need approval"),
    "allowed": ("[add TOOL [JSON]|revoke N]", "list, add or revoke rules for calls that run without asking"),
    "raw": ("", "show the last response as the model wrote it"),
    "retry": ("", "ask for another answer to the last message"),
    "copy": ("", "copy the last answer to the clipboard"),
    "usage": ("", "show the tokens of this chat"),
    "thread": ("[NAME]", "show the thread, or continue in another one"),
    "clear": ("", "start an empty conversation, in memory"),
    "exit": ("", "end the chat"),
}
"""Each word, with its arguments and its effect."""

ALIKE: Final[Mapping[str, str]] = {"quit": "exit", "q": "exit", "bye": "exit", "?": "help", "h": "help"}
"""Words of other programs, with our word for each."""

BARE: Final = ("exit", "quit", "help")
"""Words that are meant for the program even without the slash, if they are all of a message."""

_SLASH: Final = re.compile(r"/([\w?-]*)(?:[ \t]+(.*))?")  # not a path: /etc/hosts


class SlashWord(NamedTuple):
    """One word that was said to the program, and the text after it. `name` is empty if there is no such word."""

    name: str
    rest: str = ""
    found: str = ""


def slash_word(message: str) -> SlashWord | None:
    """The word that a message is; None if it is for the model.

    Only a single line can be one; a pasted text is for the model.

    >>> slash_word("/model openai:gpt-5")
    SlashWord(name='model', rest='openai:gpt-5', found='model')
    >>> slash_word("/etc/hosts is what?"), slash_word("//help")
    (None, None)
    """
    if message in BARE:
        return SlashWord(ALIKE.get(message, message))
    if (parts := _SLASH.fullmatch(message)) is None:
        return None
    found, rest = parts[1], (parts[2] or "").strip()
    lower = found.lower() or "help"
    name = lower if lower in WORDS else ALIKE.get(lower, "")
    return SlashWord(name if name in WORDS else "", rest, found)


def as_message(message: str) -> str:
    """A message as the model gets it: a first slash of two only says that it is for the model.

    >>> as_message("//help me")
    '/help me'
    """
    return message[1:] if message.startswith("//") and "\n" not in message else message


def unknown(found: str) -> str:
    """Answer an unknown word.

    >>> unknown("modle")
    "there is no /modle; did you mean '/model'? Nothing was sent; //modle sends it"
    """
    near = did_you_mean(f"/{found}", [f"/{word}" for word in WORDS]) or ", /help lists the others."
    return f"there is no /{found}{near} Nothing was sent; //{found} sends it"
