"""Replies for clients of any wire: JSON strings for streams, the parts of a whole reply, and how it ends. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Any, Final

from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallStart,
    Finish,
    FinishReason,
    ProviderBlock,
    SourceEvent,
    Text,
    Thinking,
    Usage,
)
from agentkit.formats.pieces import Pieces
from agentkit.gateway.client_request import RequestRefused
from agentkit.models.valid_history import json_text

_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
_ODD: Final = re.compile("[\x85\u2028\u2029\ud800-\udfff]")
"""Characters that are escaped although JSON allows them: some clients split a stream at all of Unicode's line ends, and
no encoding has half a surrogate pair."""

FAILED: Final = RequestRefused(502, "the model server reported that the reply failed", "upstream_error")
"""The error with which a reply ends whose `Finish` is `error`."""


def json_string(text: str) -> str:
    r"""A text as a JSON string that can be a part of a server-sent event.

    >>> print(json_string('a "b"\n'))
    "a \"b\"\n"
    """
    found = encode_basestring(text)
    return found if found.isascii() else _ODD.sub(_escaped, found)


def line(value: Mapping[str, Any]) -> str:
    """An object as one line of JSON."""
    found = _JSON(value)
    return found if found.isascii() else _ODD.sub(_escaped, found)


def _escaped(found: re.Match[str]) -> str:
    return "\\ufffd" if "\ud800" <= found[0] <= "\udfff" else f"\\u{ord(found[0]):04x}"


@dataclass(slots=True, eq=False)
class WrittenCall:
    """A call of a reply as it is written for a client.

    Attributes:
        id: its id.
        name: the tool's name.
        text: its arguments so far, as JSON text.
        extras: what its provider adds to name and arguments.
        item: its place among the items of a reply, in a wire that has such places.
        tail: the fields that precede the text in each delta of its arguments.
        complete: whether it has ended; a call that the token limit cut has not.
    """

    id: str
    name: str
    text: Pieces = field(default_factory=Pieces)
    extras: dict[str, Any] = field(default_factory=dict)
    item: int = 0
    tail: str = ""
    complete: bool = False


@dataclass(slots=True)
class WholeReply:
    """A reply that is complete.

    Attributes:
        parts: its text, its thinking, its provider's blocks and its calls, in order; neighbouring texts are joined.
        usage: None if it is unknown.
        finish: why it ended.
    """

    parts: list[Text | Thinking | ProviderBlock | WrittenCall] = field(default_factory=list)
    usage: Usage | None = None
    finish: Finish = field(default_factory=lambda: Finish("unknown"))

    @property
    def text(self) -> str:
        """All its text."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def thinking(self) -> str:
        """All its readable thinking."""
        return "".join(part.text for part in self.parts if isinstance(part, Thinking))

    @property
    def calls(self) -> list[WrittenCall]:
        """Its calls."""
        return [part for part in self.parts if isinstance(part, WrittenCall)]


def whole_reply(events: Iterable[SourceEvent]) -> WholeReply:
    """Return the reply whose events these are.

    Raises:
        RequestRefused: it failed.
    """
    reply = WholeReply()
    calls: dict[int, WrittenCall] = {}
    words: list[str] = []
    kind: type[Text] | type[Thinking] = Text
    for event in events:
        if isinstance(event, Text | Thinking):
            if type(event) is not kind:
                _end_words(reply, kind, words)
                kind = type(event)
            words.append(event.text)
        else:
            _end_words(reply, kind, words)
            _add(reply, calls, event)
    _end_words(reply, kind, words)
    if reply.finish.reason == "error":
        raise RequestRefused(FAILED.status, FAILED.message, FAILED.code)  # one object would keep all its tracebacks
    return reply


def _add(reply: WholeReply, calls: dict[int, WrittenCall], event: SourceEvent) -> None:
    match event:
        case CallStart(index, name, id):
            calls[index] = WrittenCall(id or "", name)
            reply.parts.append(calls[index])
        case ArgumentDelta(index, text):
            calls[index].text.add(text)
        case CallEnd(index, call):
            calls[index].complete = True
            if not calls[index].text:
                calls[index].text.add(json_text(call.arguments))
        case ProviderBlock(_, data, _, index) if index is not None and index in calls:
            calls[index].extras |= data
        case ProviderBlock():
            reply.parts.append(event)
        case Usage():
            reply.usage = event
        case Finish():
            reply.finish = event


def _end_words(reply: WholeReply, kind: type[Text] | type[Thinking], words: list[str]) -> None:
    if text := "".join(words):
        reply.parts.append(kind(text))
    words.clear()


def reason_with_calls(reason: FinishReason, calls: bool) -> FinishReason:
    """Return why a reply ended: with calls only if it has some, and then not as if it had none."""
    if reason in ("stop", "unknown", "tool_calls"):
        return "tool_calls" if calls else "stop"
    return reason
