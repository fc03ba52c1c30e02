"""One reply of a model, read inside its server: visible text, and native calls in pieces as they can be sent on.

Knows the parser and the grammars of formats; knows no server. The servers' adapters, `vllm.py` and `sglang.py`, give it
text and make the server's own values of what it returns.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, TypeVar

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Markup,
    SourceEvent,
    Text,
    Thinking,
)
from agentkit.formats import Format, Parser, ToolSpec
from agentkit.grammar import grammar
from agentkit.messages import ToolCall
from agentkit.models.argument_text import ArgumentText, ContradictedArguments

T = TypeVar("T")

_LOG: Final = logging.getLogger("agentkit.interop")

PREFIX: Final = "agentkit_"
"""The prefix of our parsers' names in a server, so that its own stay: `agentkit_hermes`."""

NO_PARAMETERS: Final = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class ReadFormats:
    """A tool parser's name in a server, and what it reads.

    Args:
        name: its name there, with the prefix.
        formats: the formats that it reads; the first of one alone has a grammar.
    """

    name: str
    formats: tuple[Format, ...]

    @property
    def single(self) -> Format | None:
        """The format, if it is one: what a forced call can be constrained to."""
        return self.formats[0] if len(self.formats) == 1 else None

    @property
    def thinking_tags(self) -> frozenset[str]:
        """The tags around thinking, in lower case; they stay in the visible text with it."""
        return frozenset(tag.strip().lower() for format in self.formats for pair in format.thinking for tag in pair)


def parser_choices(chosen: Iterable[str | Format] | None) -> list[ReadFormats]:
    """Return what to register: each format, and without a choice all of the catalogue and `auto`.

    Raises:
        FormatError: a format is unknown.
    """
    wanted = [*formats.names(), "auto"] if chosen is None else chosen
    return [_read_formats(one) for one in wanted]


def _read_formats(chosen: str | Format) -> ReadFormats:
    if chosen == "auto":
        return ReadFormats(f"{PREFIX}auto", formats.auto())
    format = formats.get(chosen)
    return ReadFormats(PREFIX + format.name, (format,))


@dataclass(frozen=True, slots=True)
class CallPiece:
    """More of one native call.

    Args:
        index: its position among the reply's calls, from 0 without gaps.
        name: the tool, in the first piece of a call only.
        arguments: more of the JSON text of its arguments. The text of an unreadable call stays incomplete.
    """

    index: int
    name: str | None
    arguments: str


def boundary(run: Callable[[], T], instead: T) -> T:
    """Return what a function returns; if it fails, log the bug: inside a server it must cost no client its reply."""
    try:
        return run()
    except Exception:  # noqa: BLE001 - the boundary to a server
        _LOG.exception("agentkit failed inside a model server; the reply is passed on as text")
        return instead


class ServerReply:
    """Read one reply as it streams.

    Visible text is the text around calls, including thinking with its tags: a reasoning parser removes it before.
    What a model writes as a tool's result is left out. The arguments of a call whose text cannot be read stay
    incomplete, so that no client runs it; if nothing of it has been sent, its text is visible.

    It never raises: after a bug in agentkit the rest of the reply is visible as it was written, and the bug is logged.

    Args:
        read: the formats.
        tools: the request's tools; without any, all text is visible.
    """

    def __init__(self, read: ReadFormats, tools: Sequence[ToolSpec]) -> None:
        self._thinking_tags = read.thinking_tags
        self._tools = {tool.name: tool for tool in tools}
        self._parser = boundary(lambda: Parser(read.formats, tools), None) if tools else None
        self._sent: dict[int, tuple[int, ArgumentText]] = {}  # by the parser's index: ours, and the arguments' text

    def feed(self, text: str) -> list[str | CallPiece]:
        """Take more of the reply; returns visible text and pieces of calls, in order."""
        return self._read(text, last=False)

    def finish(self) -> list[str | CallPiece]:
        """End the reply; returns what was held back."""
        return self._read("", last=True)

    def _read(self, text: str, *, last: bool) -> list[str | CallPiece]:
        if self._parser is not None:
            read = self._parser.close if last else self._parser.feed
            pieces = boundary(lambda: _joined(piece for event in read(text) for piece in self._pieces(event)), None)
            if pieces is not None:
                return pieces
            self._parser = None
        return [text] if text else []

    def _pieces(self, event: SourceEvent) -> Iterable[str | CallPiece]:
        match event:
            case Text(text) | Thinking(text):
                yield text
            case Markup(text) if text.strip().lower() in self._thinking_tags:
                yield text
            case CallStart(index, name):
                ours = len(self._sent)
                self._sent[index] = ours, ArgumentText(self._tools.get(name))
                yield CallPiece(ours, name, "")
            case ArgumentDelta(index):
                ours, arguments = self._sent[index]
                yield CallPiece(ours, None, arguments.feed(event))
            case CallEnd(index, call):
                yield self._end(index, call)
            case CallError(index, _, _, call) if index not in self._sent:
                yield call.raw
            case _:
                pass

    def _end(self, index: int, call: ToolCall) -> CallPiece:
        """The rest of a call; nothing of it if its arguments contradict what was sent, so that it stays incomplete."""
        ours, arguments = self._sent[index]
        try:
            return CallPiece(ours, None, arguments.end(call))
        except ContradictedArguments as e:
            _LOG.warning("%s", e)
            return CallPiece(ours, None, "")


def _joined(pieces: Iterable[str | CallPiece]) -> list[str | CallPiece]:
    """Text and calls with one entry for each run of text and for each call: clients expect a call once in a delta."""
    out: list[str | CallPiece] = []
    for piece in pieces:
        last = out[-1] if out else None
        if isinstance(piece, str) and isinstance(last, str):
            out[-1] = last + piece
        elif isinstance(piece, CallPiece) and isinstance(last, CallPiece) and last.index == piece.index:
            out[-1] = replace(last, arguments=last.arguments + piece.arguments)
        elif piece if isinstance(piece, str) else piece.name or piece.arguments:
            out.append(piece)
    return out


def whole_reply(read: ReadFormats, tools: Sequence[ToolSpec], text: str) -> tuple[str, list[ToolCall]]:
    """Read a whole reply: the visible text, and the calls. The text of an unreadable call is visible.

    It never raises: on a bug in agentkit all of the text is visible, and the bug is logged.
    """
    events: list[SourceEvent] = [Text(text)]
    if tools:
        events = boundary(lambda: Parser(read.formats, tools).close(text), events)
    tags = read.thinking_tags
    return "".join(_visible(event, tags) for event in events), formats.calls(events)


def _visible(event: SourceEvent, thinking_tags: frozenset[str]) -> str:
    match event:
        case Text(text) | Thinking(text):
            return text
        case Markup(text):
            return text if text.strip().lower() in thinking_tags else ""
        case CallError(_, _, _, call):
            return call.raw
        case _:
            return ""


# ---------------------------------------------------------------- a server's tools


def tool_specs(tools: Iterable[Any] | None) -> tuple[ToolSpec, ...]:
    """A request's function tools as formats see them; others, such as a server's own web search, are left out.

    Args:
        tools: the server's objects, nested as in chat completions (`tool.function`) or flat as in responses.
    """
    functions = [getattr(tool, "function", tool) for tool in tools or ()]
    named = [function for function in functions if isinstance(getattr(function, "name", None), str)]
    return boundary(
        lambda: _specs(
            tuple((f.name, getattr(f, "description", None) or "", json.dumps(_parameters(f))) for f in named)
        ),
        (),
    )


def _parameters(function: Any) -> Any:
    parameters = getattr(function, "parameters", None)
    return parameters if isinstance(parameters, dict) else NO_PARAMETERS


@lru_cache(64)  # an application has few sets of tools; the same objects let the parser keep what it compiled for them
def _specs(functions: tuple[tuple[str, str, str], ...]) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(name, description, json.loads(parameters)) for name, description, parameters in functions)


def call_grammar(
    read: ReadFormats, tools: Sequence[ToolSpec], choice: str | None, *, parallel: bool, may_think: bool
) -> dict[str, Any] | None:
    """The structural tag for a reply; None if the format has none, and the reply is then not constrained.

    Schema keywords that a grammar cannot enforce are left out of it.

    Args:
        read: the formats.
        tools: the offered tools.
        choice: `auto`, `required`, or None for exactly one call of the only tool.
        parallel: whether more than one call may be written.
        may_think: whether thinking may come first.
    """
    if read.single is None or not tools:
        return None
    try:
        return grammar(
            read.single,
            tools,
            tool_choice=choice or "required",
            parallel=parallel and choice is not None,
            thinking="may_think" if may_think else "no_thinking",
            strict=False,
        )
    except FormatError as e:
        _LOG.warning("calls in the format %s are not constrained: %s", read.single.name, e)
        return None
