"""What a native model has read from others: a call in its text that already occurs there is a quote, not a call.

Law 12. Pure: messages in, an answer out. Anything that a page, a file or a person says may be quoted in a reply, with
its white space, quotes, escapes and format changed on the way; so what was read is compared as text without all these,
and by the calls that a parser finds in it. In what others say, a call may occur anywhere, not only where a model would
write one.

The system prompt and the tools' descriptions are instructions: the model may make the calls that they request. But
they contain examples, and a description sent by an MCP server is also a stranger's word; so a call that occurs there
literally, arguments and all, is also a quote.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from agentkit.events import CallEnd, CallQuoted
from agentkit.messages import Message, SystemMessage, TextPart, ToolCall, ToolMessage, UserMessage
from agentkit.processor.textreader import TextReader
from agentkit.schemas.walk import strings
from agentkit.toolspec import ToolSpec

_ESCAPE: Final = re.compile(
    r"""\\(?:
        u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})  # JSON: a character in two halves
        | u([0-9a-fA-F]{4}) | u\{([0-9a-fA-F]{1,6})\} | U([0-9a-fA-F]{8}) | x([0-9a-fA-F]{2})  # as in Python
        | (.)
    )""",
    re.DOTALL | re.VERBOSE,
)
_CONTROL: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_QUOTED: Final = re.compile(r"(?m)^[ \t]*(?:>[ \t]?)+")
_NUMBERED: Final = re.compile(r"(?m)^[ \t]*(?:\d+[ \t]*[:|.)\u2192]?[ \t]*|(?://|[-+|#\u2022*])[ \t]?)")
_NOISE: Final = re.compile(r"[\s\"'`\\\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb*_]+")
_AFTER_CALL: Final = re.compile(r"\)(?!\s*[,)\]}])")
_LAYERS: Final = 3  # JSON in JSON in HTML: how many layers of escapes are removed
_READINGS: Final = 8  # of one message, at most
_CALLED: Final = (*(("", mark) for mark in "({[:"), (":", ""), ("[", ","))
_NEAR: Final = 200  # characters between the parts of a call that is told in other words
_WORDS: Final = ("description", "title", "examples", "example", "$comment")


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    high, low, *codes, other = escape.groups()
    if other is not None:
        return _CONTROL.get(other, other)
    if high is not None:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    code = int(next(filter(None, codes)), 16)
    return chr(code) if code <= 0x10FFFF else escape[0]


def _unquoted(text: str) -> str:
    return _QUOTED.sub("", text)


def _unnumbered(text: str) -> str:
    return _NUMBERED.sub("", text)


_UNWRAP: Final[Sequence[Callable[[str], str]]] = (_unescaped, html.unescape, _unquoted, _unnumbered)


def bare(text: str, *, listed: bool = False) -> str:
    r"""A text without what changes when it is quoted: escapes, entities, quotation marks, white space, emphasis.

    Args:
        text: the text.
        listed: whether its lines are numbered or in a list or a diff, whose marks are then removed.

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
    """The text, and what it may be quoted from: the text without one or more layers of escapes and quote marks."""
    found = {text: None}
    layer = [text]
    for _ in range(_LAYERS):
        layer = [new for old in layer for unwrap in _UNWRAP if (new := unwrap(old)) != old and new not in found]
        found |= dict.fromkeys(layer[: _READINGS - len(found)])
        layer = list(dict.fromkeys(layer))[:_READINGS]
    return list(found)


def _made_plain(text: str, tools: Iterable[str]) -> Iterator[str]:
    """The text with its calls of a tool moved to where a parser looks for them.

    A Python-style call (`so delete(path="a")`, `x = tools.delete("a")`) begins a line, and the tool's name in an
    object gets the key `name`, regardless of its original key (`{"tool": "delete", …}`). In the second text, a closing
    parenthesis also ends its line: with what follows (`delete("a") and say so`), the call could be part of a condition.
    """
    names = "|".join(map(re.escape, tools))
    text = re.sub(rf"""(["'])[\w-]{{1,32}}\1(?=\s{{0,64}}:\s{{0,64}}["'](?:{names})["'])""", '"name"', text)
    text = re.sub(rf"(?<!\w)(?=(?:{names})\s{{0,64}}\()", "\n", text)
    yield text
    yield _AFTER_CALL.sub(")\n\n", text)


class _Meaning(NamedTuple):
    name: str
    arguments: frozenset[tuple[str, str]]


def _given(call: ToolCall, tool: ToolSpec | None) -> Iterator[tuple[str, Any]]:
    """The arguments that differ from their defaults: values may be text or typed."""
    known = tool.parameters.get("properties", {}) if tool is not None else {}
    default = {name: bare(_as_text(of["default"])) for name, of in known.items() if "default" in of}
    return (
        (name, v) for name, v in call.arguments.items() if name not in default or default[name] != bare(_as_text(v))
    )


def _meaning(call: ToolCall, tool: ToolSpec | None) -> _Meaning:
    """A call in a form that is the same for any format: values may be text or typed, and defaults omitted."""
    return _Meaning(call.name, frozenset((name, bare(_as_text(value))) for name, value in _given(call, tool)))


def _leaves(call: ToolCall, tool: ToolSpec | None) -> list[str]:
    """The values of a call that its defaults would not give, also those in lists and objects, longest first."""
    found: list[str] = []
    left = [value for _, value in _given(call, tool)]
    while left:
        match left.pop():
            case Mapping() as value:
                left += value.values()
            case list() | tuple() as value:
                left += value
            case None:
                pass
            case value:
                found.append(bare(_as_text(value)))
    return sorted(filter(None, found), key=len, reverse=True)


def _worded(names: Iterable[str], values: Sequence[str], text: str, message: ToolMessage | UserMessage) -> bool:
    """Whether a text has a tool's name and near it all values of a call of it, in whatever form.

    A user who names a tool wants it called, so that in a user's message the name must look like a call's: an opening
    bracket or a colon follows it, or it follows a colon.
    """
    if not values:
        return False
    told, length = isinstance(message, ToolMessage), sum(map(len, values)) + _NEAR
    at = text.find(values[0])
    while at >= 0:
        around = text[max(0, at - length) : at + length]
        if all(value in around for value in values) and any(
            name in around if told else any(f"{before}{name}{after}" in around for before, after in _CALLED)
            for name in names
        ):
            return True
        at = text.find(values[0], at + len(values[0]))
    return False


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


@dataclass(slots=True)
class _Read:
    """One message, as far as it was examined."""

    message: ToolMessage | UserMessage
    text: str
    bare: tuple[str, ...]
    calls: frozenset[_Meaning] | None = None
    tools: Mapping[str, ToolSpec] | None = None


class Heard:
    """What a conversation has said to the model, examined when a reply seems to contain a call.

    Each message is examined once, in time linear in its length, and read for calls only if it names the tool.

    Args:
        messages: returns the conversation so far; called when there is something to compare.
        new_parsers: creates parsers that find calls of these tools in every format, even in code and quotes.
    """

    def __init__(
        self,
        messages: Callable[[], Iterable[Message]],
        new_parsers: Callable[[Sequence[ToolSpec]], Sequence[TextReader]],
    ) -> None:
        self._messages = messages
        self._new_parsers = new_parsers
        self._read: dict[int, _Read] = {}
        self._bare: dict[str, str] = {}  # instructions, without what changes when they are quoted

    def quoted(self, call: ToolCall, tools: Mapping[str, ToolSpec]) -> CallQuoted | None:
        """Where the call already occurs; None if it is the model's own.

        Args:
            call: found in a reply's text.
            tools: the tools whose calls are looked for, by name.
        """
        text, meaning = bare(call.raw), _meaning(call, tools.get(call.name))
        names, values = _names(call.name, tools), _leaves(call, tools.get(call.name))
        if self._instructed(call, text, tools.values()):
            return CallQuoted(call)
        for message in self._messages():
            if not isinstance(message, ToolMessage | UserMessage):
                continue
            read = self._known(message)
            named = any(name in bare_text for name in names for bare_text in read.bare)
            if any(text in bare_text for bare_text in read.bare) or (
                named
                and (
                    any(_worded(names, values, bare_text, message) for bare_text in read.bare)
                    or meaning in self._calls(read, tools)
                )
            ):
                return CallQuoted(call, getattr(message, "call_id", None))
        return None

    def _instructed(self, call: ToolCall, text: str, tools: Iterable[ToolSpec]) -> bool:
        """Whether the call occurs literally in the instructions. Without arguments it is only named there."""
        if not call.arguments:
            return False
        prompts = (message.content for message in self._messages() if isinstance(message, SystemMessage))
        described = (words for tool in tools for words in (tool.description, *_explained(tool.parameters)))
        for passage in (*prompts, *described):
            if passage not in self._bare:
                self._bare[passage] = bare(passage)
            if text in self._bare[passage]:
                return True
        return False

    def _known(self, message: ToolMessage | UserMessage) -> _Read:
        """What is known of a message, which is kept alive: its identity is the key."""
        read = self._read.get(id(message))
        if read is None:
            text = "\n".join(part.text for part in message.content if isinstance(part, TextPart))
            bare_texts = tuple({bare(text): None, bare(text, listed=True): None})
            read = self._read[id(message)] = _Read(message, text, bare_texts)
        return read

    def _calls(self, read: _Read, tools: Mapping[str, ToolSpec]) -> frozenset[_Meaning]:
        """The calls in a message, regardless of who wrote them."""
        if read.calls is None or read.tools != tools:
            found: set[_Meaning] = set()
            texts = readings(read.text)
            for text in dict.fromkeys((*texts, *(plain for known in texts for plain in _made_plain(known, tools)))):
                for parser in self._new_parsers(tuple(tools.values())):
                    events = (*parser.feed(text), *parser.close())
                    calls = [event.call for event in events if isinstance(event, CallEnd)]
                    found |= {_meaning(call, tools.get(call.name)) for call in calls}
            read.calls, read.tools = frozenset(found), tools
        return read.calls


def _explained(schema: Any) -> Iterator[str]:
    """The prose of a JSON Schema: its descriptions, titles and examples."""
    for key, value in schema.items() if isinstance(schema, Mapping) else ():
        if key in _WORDS:
            yield from strings(value)
        elif isinstance(value, Mapping):
            yield from _explained(value)
        elif isinstance(value, list | tuple):
            for part in value:
                yield from _explained(part)


def _names(name: str, tools: Mapping[str, ToolSpec]) -> set[str]:
    """The tool's name as a text spells it."""
    tool = tools.get(name)
    tag = tool.element.tag if tool is not None and tool.element is not None else name
    return {bare(name), bare(name.replace("_", "-")), bare(tag)}
