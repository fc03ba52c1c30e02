"""What a native model has read of others: a call in its text that stands there already is repeated, not made.

Law 12. Pure: messages in, an answer out. Whatever a page, a file or a person says may be quoted in a reply, with its
white space, quotes, escapes and format changed on the way; so what was read is compared as text without all these, and
by the calls that a parser finds in it. In what others say a call stands anywhere, not only where one of a model's
would.

The system prompt and the tools' descriptions are instructions: what they tell the model to call it may call. But they
have examples, and a description that an MCP server sent is a stranger's word, too; so what stands there to the letter,
arguments and all, is repeated as well.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from agentkit.events import CallEnd, CallQuoted
from agentkit.formats.quarantine import strings
from agentkit.messages import Message, SystemMessage, TextPart, ToolCall, ToolMessage, UserMessage
from agentkit.processor.textreader import TextReader
from agentkit.toolspec import ToolSpec

_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROL: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_QUOTED: Final = re.compile(r"(?m)^[ \t]*(?:>[ \t]?)+")
_NUMBERED: Final = re.compile(r"(?m)^[ \t]*(?:\d+[ \t]*[:|.)\u2192]?[ \t]*|(?://|[-+|#\u2022*])[ \t]?)")
_NOISE: Final = re.compile(r"[\s\"'`\\\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb*_]+")
_LAYERS: Final = 3  # JSON in JSON in HTML: how deep escapes are taken off
_READINGS: Final = 8  # of one message, at most
_WORDS: Final = ("description", "title", "examples", "example", "$comment")


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _CONTROL.get(m[2], m[2]), text)


def _unquoted(text: str) -> str:
    return _QUOTED.sub("", text)


def _unnumbered(text: str) -> str:
    return _NUMBERED.sub("", text)


_UNWRAP: Final[Sequence[Callable[[str], str]]] = (_unescaped, html.unescape, _unquoted, _unnumbered)


def bare(text: str, *, listed: bool = False) -> str:
    r"""A text without what changes when it is quoted: escapes, entities, quotation marks, white space, emphasis.

    Args:
        text: it.
        listed: whether its lines are in a list, a comparison or numbered, which then is no part of it.

    >>> bare('> &lt;tool_call&gt;\n{"name": 1}') == bare("<tool_call> {'name':1}")
    True
    """
    for _ in range(_LAYERS):
        whole = html.unescape(_unescaped(text))
        if whole == text:
            break
        text = whole
    text = _unquoted(text)
    return _NOISE.sub("", _unnumbered(text) if listed else text).casefold()


def readings(text: str) -> list[str]:
    """The text, and what it may be quoted from: with one or several layers of escapes and quote marks taken off."""
    found = {text: None}
    layer = [text]
    for _ in range(_LAYERS):
        layer = [new for old in layer for unwrap in _UNWRAP if (new := unwrap(old)) != old and new not in found]
        found |= dict.fromkeys(layer[: _READINGS - len(found)])
        layer = list(dict.fromkeys(layer))[:_READINGS]
    return list(found)


def _made_plain(text: str, tools: Iterable[str]) -> str:
    """The text with what calls a tool where a parser looks for it.

    A call in Python's manner (`so delete(path="a")`, `x = tools.delete("a")`) begins a line, and the tool's name in an
    object stands under `name`, whatever its key was (`{"tool": "delete", …}`).
    """
    names = "|".join(map(re.escape, tools))
    text = re.sub(rf"""(["'])[\w-]{{1,32}}\1(?=\s{{0,64}}:\s{{0,64}}["'](?:{names})["'])""", '"name"', text)
    return re.sub(rf"(?<!\w)(?=(?:{names})\s{{0,64}}\()", "\n", text)


class _Meaning(NamedTuple):
    name: str
    arguments: frozenset[tuple[str, str]]


def _meaning(call: ToolCall, tool: ToolSpec | None) -> _Meaning:
    """A call as it means the same in any format, in which values may be text or typed, and defaults left out."""
    known = tool.parameters.get("properties", {}) if tool is not None else {}
    default = {name: bare(_said(of["default"])) for name, of in known.items() if "default" in of}
    given = ((name, bare(_said(value))) for name, value in call.arguments.items())
    return _Meaning(call.name, frozenset((name, value) for name, value in given if default.get(name) != value))


def _said(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


@dataclass(slots=True)
class _Read:
    """One message, as far as it was looked into."""

    message: ToolMessage | UserMessage
    text: str
    bare: tuple[str, ...]
    calls: frozenset[_Meaning] | None = None
    tools: Mapping[str, ToolSpec] | None = None


class Heard:
    """What a conversation has said to the model, looked into when a reply seems to call.

    Each message is looked into once, in time linear in its length; and read for calls only if it names the tool.

    Args:
        messages: gives the conversation so far; asked when there is something to compare.
        new_parsers: makes parsers that find calls of these tools in every format, in code and quotes too.
    """

    def __init__(
        self,
        messages: Callable[[], Iterable[Message]],
        new_parsers: Callable[[Sequence[ToolSpec]], Sequence[TextReader]],
    ) -> None:
        self._messages = messages
        self._new_parsers = new_parsers
        self._read: dict[int, _Read] = {}
        self._told: dict[str, str] = {}  # instructions, without what changes when they are quoted

    def quoted(self, call: ToolCall, tools: Mapping[str, ToolSpec]) -> CallQuoted | None:
        """Where the call stands already; None where it is the model's own.

        Args:
            call: found in a reply's text.
            tools: those that calls are looked for of, by name.
        """
        text, meaning = bare(call.raw), _meaning(call, tools.get(call.name))
        names = _names(call.name, tools)
        if self._instructed(call, text, tools.values()):
            return CallQuoted(call)
        for message in self._messages():
            if not isinstance(message, ToolMessage | UserMessage):
                continue
            read = self._known(message)
            named = any(name in said for name in names for said in read.bare)
            if any(text in said for said in read.bare) or (named and meaning in self._calls(read, tools)):
                return CallQuoted(call, getattr(message, "call_id", None))
        return None

    def _instructed(self, call: ToolCall, text: str, tools: Iterable[ToolSpec]) -> bool:
        """Whether the call stands in the instructions to the letter. Without arguments it is only named there."""
        if not call.arguments:
            return False
        told = [message.content for message in self._messages() if isinstance(message, SystemMessage)]
        for said in (*told, *(words for tool in tools for words in (tool.description, *_explained(tool.parameters)))):
            if said not in self._told:
                self._told[said] = bare(said)
            if text in self._told[said]:
                return True
        return False

    def _known(self, message: ToolMessage | UserMessage) -> _Read:
        """What is known of a message, which is held on to: its identity is the key."""
        read = self._read.get(id(message))
        if read is None:
            text = "\n".join(part.text for part in message.content if isinstance(part, TextPart))
            said = tuple({bare(text): None, bare(text, listed=True): None})
            read = self._read[id(message)] = _Read(message, text, said)
        return read

    def _calls(self, read: _Read, tools: Mapping[str, ToolSpec]) -> frozenset[_Meaning]:
        """The calls in a message, whoever wrote them."""
        if read.calls is None or read.tools != tools:
            found: set[_Meaning] = set()
            texts = readings(read.text)
            for text in dict.fromkeys((*texts, *(_made_plain(text, tools) for text in texts))):
                for parser in self._new_parsers(tuple(tools.values())):
                    events = (*parser.feed(text), *parser.close())
                    calls = [event.call for event in events if isinstance(event, CallEnd)]
                    found |= {_meaning(call, tools.get(call.name)) for call in calls}
            read.calls, read.tools = frozenset(found), tools
        return read.calls


def _explained(schema: Any) -> Iterator[str]:
    """What a JSON Schema says in words: its descriptions, titles and examples."""
    for key, value in schema.items() if isinstance(schema, Mapping) else ():
        if key in _WORDS:
            yield from strings(value)
        elif isinstance(value, Mapping):
            yield from _explained(value)
        elif isinstance(value, list | tuple):
            for part in value:
                yield from _explained(part)


def _names(name: str, tools: Mapping[str, ToolSpec]) -> set[str]:
    """What a text calls the tool."""
    tool = tools.get(name)
    tag = tool.element.tag if tool is not None and tool.element is not None else name
    return {bare(name), bare(name.replace("_", "-")), bare(tag)}
