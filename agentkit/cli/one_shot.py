"""`agentkit run`: one message, one answer, for scripts and pipes."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from agentkit.cli.chat import add_conversation
from agentkit.cli.chat_session import open_session
from agentkit.cli.event_lines import EventLines
from agentkit.cli.help_text import SETTINGS, examples
from agentkit.cli.keyboard import as_argument, as_text
from agentkit.cli.which_screen import answers_only, screen
from agentkit.errors import ConfigError

STDIN = "-"


def add(commands: Any) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "run",
        help="answer one message, and end",
        description="Answer one message. In a pipe, standard output is the answer, and nothing else. Exit status 1 if "
        "there is no complete answer, 3 if a call waits for approval, 130 after Ctrl-C.",
        epilog=examples(
            'agentkit run -m openai:gpt-5 "What is a monad? One sentence."',
            'git diff | agentkit run -m openai:gpt-5 "Write a commit message:" -',
            'agentkit run "How many files are here?" -t agentkit_tools.files:Files',
            after=SETTINGS,
        ),
    )
    command.add_argument("message", nargs="+", type=as_argument, metavar="MESSAGE", help="the message; - reads stdin")
    command.add_argument("--json", action="store_true", help="print each event of the run as a line of JSON")
    add_conversation(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Say it, and show the answer."""
    text = message(arguments.message)
    shown = EventLines(answers_only(), sys.stderr) if arguments.json else screen()
    with open_session(arguments, shown, interactive=False) as conversation:
        return conversation.ask(text)


def message(words: list[str]) -> str:
    """The message: words, and standard input where they say so.

    Raises:
        ConfigError: there is nothing to say, or standard input is not text.
    """
    text = ""
    for word in words:
        if word == STDIN:
            text += "\n\n" * bool(text) + as_text(sys.stdin.read()).strip("\n") + "\n\n"
        else:
            text += word if not text or text.endswith("\n") else f" {word}"
    if not (text := text.strip()):
        where = "standard input is empty" if STDIN in words else "it is empty"
        raise ConfigError(f"expected a message, but {where}")
    return text
