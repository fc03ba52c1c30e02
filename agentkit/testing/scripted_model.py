"""An offline model that follows a script, and records its requests. Also for users' own tests."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from agentkit.checks.bounds import Bounds, or_none, refuse, whole
from agentkit.checks.spelling import takes
from agentkit.errors import ConfigError, show_value
from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallStart,
    Finish,
    Markup,
    ProviderBlock,
    SourceEvent,
    Text,
    Thinking,
)
from agentkit.foreign import argument_names
from agentkit.foreign.absent import suggest_attributes
from agentkit.messages import (
    AssistantMessage,
    MarkupPart,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.models.base import ModelRequest
from agentkit.toolspec import ToolSpec

if TYPE_CHECKING:
    from agentkit.formats.format import Format

Line = str | ToolCall | SourceEvent | Exception
"""Text, a call, an event to emit unchanged, or an error to raise at that point."""

ScriptedTurn = Line | AssistantMessage | Sequence[Line]
"""One response."""


_JSON = json.JSONEncoder(ensure_ascii=False).encode


_BOUNDS: Final[Bounds] = {"chunk": or_none(whole(1, "characters"), "to send each text whole")}


@suggest_attributes
class ScriptedModel:
    """A model that answers from a script.

    A turn is a string, a `ToolCall`, an `AssistantMessage`, an exception to raise, or a list of these and of events.
    A turn without a `Finish` gets one. Calls without an id get one.

    Args:
        script: a list of turns, one per request; or a function, sync or async, that returns a turn for each request.
        name: the model's name.
        format: act like a model that writes calls as text in this format; each `ToolCall` is then written as text.
        chunk: size, in characters, of the pieces of text, thinking and arguments, which come one after the other;
            None sends each whole, and all at once.
        continues: act like a model that continues its own last message; see `Model`.

    Raises:
        ConfigError: the script is not a list of turns.

    Example:
        ```python
        model = ScriptedModel([ToolCall("", "add", {"a": 1, "b": 2}), "It is 3."])
        ```
    """

    @takes(others=argument_names.SCRIPTED, such="ScriptedModel(['Hello.', 'Bye.'])")
    def __init__(
        self,
        script: Iterable[ScriptedTurn] | Callable[[ModelRequest], ScriptedTurn | Awaitable[ScriptedTurn]],
        *,
        name: str = "scripted",
        format: str | Format | None = None,
        chunk: int | None = None,
        continues: bool = False,
    ) -> None:
        refuse("ScriptedModel", {"chunk": chunk}, _BOUNDS)
        self._function = script if callable(script) else None
        self._turns = [] if callable(script) else _turns(script)
        self._name, self._format, self._chunk = name, format, chunk
        self._ids = itertools.count(1)
        self.continues = continues
        """Whether it continues its own last message."""
        self.requests: list[ModelRequest] = []
        """The requests so far, oldest first."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    @property
    def format(self) -> str | Format | None:
        """The text format in which it writes calls, as a name or declaration; None for native calls."""
        return self._format

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        """Play the next turn.

        Raises:
            ConfigError: the script is used up.
        """
        self.requests.append(replace(request, messages=tuple(request.messages)))
        turn = self._next(request)
        indices = itertools.count()
        last: Finish | None = None
        called = False
        for line in _lines(await turn if isawaitable(turn) else turn):
            for event in self._events(line, request.tools, indices):
                called = called or isinstance(event, CallEnd)
                last = event if isinstance(event, Finish) else None
                yield event
                if self._chunk is not None:
                    await asyncio.sleep(0)
        if last is None:
            yield Finish("tool_calls" if called else "stop", "tool_calls" if called else "stop")

    def assert_finished(self) -> None:
        """Check that every turn of the script was played.

        Raises:
            AssertionError: some were not.
        """
        left = self._turns[len(self.requests) :]
        if left:
            raise AssertionError(
                f"{len(left)} of {len(self._turns)} turns were never requested; the next one is {left[0]!r}"
            )

    def __enter__(self) -> ScriptedModel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.assert_finished()

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    async def __aenter__(self) -> ScriptedModel:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def _next(self, request: ModelRequest) -> ScriptedTurn | Awaitable[ScriptedTurn]:
        if self._function is not None:
            return self._function(request)
        asked = len(self.requests)
        if asked > len(self._turns):
            raise ConfigError(
                f"the script of {self._name!r} has {len(self._turns)} turns, but this is request {asked}: add a turn "
                f"that answers its last message, {_last_words(request)}"
            )
        return self._turns[asked - 1]

    def _events(self, line: Line, tools: Sequence[ToolSpec], indices: Iterator[int]) -> Iterator[SourceEvent]:
        match line:
            case Exception():
                raise line
            case str(text) | Text(text):
                yield from (Text(piece) for piece in self._pieces(text))
            case Thinking(text):
                yield from (Thinking(piece) for piece in self._pieces(text))
            case ToolCall() if self._format is not None:
                written = line.raw or _write_turn(self._format, line, tools)
                yield from (Text(piece) for piece in self._pieces(written))
            case ToolCall():
                yield from self._call(next(indices), line)
            case _:
                yield line

    def _call(self, index: int, call: ToolCall) -> Iterator[SourceEvent]:
        text = call.raw or _JSON(call.arguments)
        call = replace(call, id=call.id or f"call_{next(self._ids)}", raw=text)
        yield CallStart(index, call.name, call.id)
        yield from (ArgumentDelta(index, piece) for piece in self._pieces(text))
        yield CallEnd(index, call)

    def _pieces(self, text: str) -> Iterator[str]:
        step = self._chunk or len(text) or 1
        return (text[at : at + step] for at in range(0, len(text), step))


def _turns(script: Any) -> list[ScriptedTurn]:
    """The turns of a script.

    Raises:
        ConfigError: it is a single turn, or contains something else.
    """
    one = isinstance(script, str | ToolCall | AssistantMessage | Exception) or hasattr(script, "_fields")
    if one or not isinstance(script, Iterable) or isinstance(script, Mapping | bytes):
        more = f": write ScriptedModel([{script!r:.60}])" if one else f", found {show_value(script)}"
        raise ConfigError(f"a script is a list of turns, one for each request, or a function{more}")
    turns = list(script)
    for at, turn in enumerate(turns):
        for line in _lines(turn):
            if not isinstance(line, str | ToolCall | Exception) and not hasattr(line, "_fields"):
                raise ConfigError(
                    f"turn {at} of the script: expected a string, a ToolCall, an event, an exception, an "
                    f"AssistantMessage, or a list of these; found {show_value(line)}"
                )
    return turns


def _lines(turn: ScriptedTurn) -> list[Line]:
    """A turn as a list of its lines."""
    if isinstance(turn, AssistantMessage):
        return [_line(part) for part in turn.content]
    if isinstance(turn, list) or (
        isinstance(turn, tuple) and not hasattr(turn, "_fields")
    ):  # an event is a named tuple
        return list(turn)
    return [turn]  # type: ignore[list-item]  # mypy cannot know that the sequences are excluded


def _line(part: TextPart | ThinkingPart | ToolCall | MarkupPart | ProviderPart) -> Line:
    match part:
        case TextPart(text):
            return Text(text)
        case ThinkingPart(text):
            return Thinking(text)
        case MarkupPart(text):
            return Markup(text)
        case ProviderPart(provider, data):
            return ProviderBlock(provider, data)
        case ToolCall():
            return part


def _write_turn(format: str | Format, call: ToolCall, tools: Sequence[ToolSpec]) -> str:
    from agentkit import formats

    return formats.render_calls(format, [call], tools)


def _last_words(request: ModelRequest) -> str:
    last: Any = next((m for m in reversed(request.messages) if isinstance(m, UserMessage | ToolMessage)), None)
    if last is None:
        return "nothing"
    text = "".join(p.text for p in last.content if isinstance(p, TextPart))
    return repr(text if len(text) <= 200 else text[:200] + "…")
