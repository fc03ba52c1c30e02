"""One attempt at a reply: a request to the upstream, and what of its reply the client sees.

The client sees text, thinking, usage and calls that it can run. Markup, results that the model made up, and calls that
cannot be read are left out; the attempt says whether the model has to be asked again.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from agentkit.agent import again
from agentkit.errors import ErrorCode
from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Finish,
    InventedResult,
    Markup,
    ProviderBlock,
    SourceEvent,
    Text,
    Thinking,
    UnreadCall,
    Usage,
)
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.foreign_thinking import messages_thinking
from agentkit.gateway.wire_fields import PROVIDERS
from agentkit.messages import AssistantMessage, Message, TextPart, ToolCall, ToolMessage
from agentkit.models.argument_text import ArgumentText, ContradictedArguments
from agentkit.models.base import Model, ModelRequest
from agentkit.processor import not_run
from agentkit.processor.error_results import unknown_tool
from agentkit.processor.response import ResponseReader
from agentkit.toolspec import ToolSpec

_LOG: Final = logging.getLogger("agentkit.gateway")

DRAIN: Final = 2.0  # seconds for which a reply is read after the last call that counts, for its usage

HOLD: Final = 256
"""Characters of a call's arguments that wait for its end. A damaged call is found when it ends: up to here the model
can still be asked again. Longer arguments, such as a file's content, reach the client as they are written."""

_OF_TEXT: Final = (Text, Markup, InventedResult, Thinking)


@dataclass(slots=True)
class _ReadCall:
    """A call of the reply.

    Attributes:
        start: its start.
        text: makes the text of its arguments.
        number: its number for the client; -1 before it is sent.
        refusal: why it is not sent: the code and the words for the model.
        held: what has come of its arguments, before it is sent.
        ended: whether it is complete.
    """

    start: CallStart
    text: ArgumentText
    number: int = -1
    refusal: tuple[ErrorCode, str] | None = None
    held: str = ""
    ended: bool = False


class Attempt:
    """One attempt.

    Args:
        model: the model.
        request: what it is asked.
        reader: reads its reply.
        own: the provider whose blocks the client can read; the others are left out.
        first_call: the number of the first call that is sent.
    """

    def __init__(self, model: Model, request: ModelRequest, reader: ResponseReader, own: str, first_call: int) -> None:
        self.sent = 0
        """The number of calls that were sent, whole or in part."""
        self.faults = 0
        """The number of faults of agentkit itself, after which the reply is passed on as it is."""
        self.repairs: list[str] = []
        """The codes of the repairs that were needed to read the calls that were sent."""
        self._model, self._request, self._own = model, request, own
        self._reader = reader
        self._tools: Mapping[str, ToolSpec] = {tool.name: tool for tool in request.tools}
        self._calls: dict[int, _ReadCall] = {}
        self._failed: list[tuple[ToolCall, ErrorCode, str]] = []
        self._first = first_call
        self._raw = _RawText()

    # -------------------------------------------------------------- what the client sees

    async def events(self) -> AsyncGenerator[SourceEvent, None]:
        """The events for the client, without usage and finish.

        Raises:
            RequestRefused: the upstream refused the request, or a call broke of which the client has a part.
            ProviderError: the reply failed.
        """
        record, ends = self._reader.record, 0.0
        async with aclosing(self._model.stream(self._request)) as source:  # type: ignore[type-var]  # a generator
            async for event in source:
                for shown in self._read(event):
                    yield shown
                if record.full:
                    ends = ends or time.monotonic() + DRAIN
                    if record.usage != Usage() or time.monotonic() > ends:
                        break
        for shown in self._close():
            yield shown

    def _read(self, event: SourceEvent) -> Iterator[SourceEvent]:
        if self.faults:
            yield from self._unread(event)
            return
        if type(event) is Text:
            self._raw.add(event.text)
        try:
            for read in self._reader.feed(event):
                if type(event) is not Thinking:
                    self._raw.account(read)
                yield from self._shown(read)
        except RequestRefused:
            raise
        except Exception:  # noqa: BLE001 - a bug in agentkit must not cost the reply
            yield from self._fault()
            if type(event) is not Text:
                yield from self._unread(event)

    def _close(self) -> Iterator[SourceEvent]:
        if self.faults:
            return
        try:
            for read in self._reader.close():
                yield from self._shown(read)
        except RequestRefused:
            raise
        except Exception:  # noqa: BLE001 - as above
            yield from self._fault()

    def _fault(self) -> Iterator[SourceEvent]:
        """Pass on what was not read."""
        _LOG.exception("a reply could not be read; it is passed on as it is")
        self.faults += 1
        if rest := self._raw.rest():
            yield Text(rest)

    def _unread(self, event: SourceEvent) -> Iterator[SourceEvent]:
        """Pass on an event after a fault: text, thinking, and the native calls that begin from here on."""
        if isinstance(event, Text | Thinking):
            yield event
        elif isinstance(event, CallStart | ArgumentDelta | CallEnd) and (
            isinstance(event, CallStart) or event.index in self._calls
        ):
            yield from self._shown(event)
        elif isinstance(event, Finish | Usage):
            self._reader.record.keep_one(event, self._reader.native)

    def _shown(self, event: Any) -> Iterator[SourceEvent]:
        """Return the events for the client in place of one that was read."""
        kind = type(event)
        if kind is Text or kind is Thinking:
            yield event
        elif kind is ArgumentDelta:
            call = self._calls.get(event.index)
            if call is not None and call.refusal is None:
                yield from self._sent(call, call.text.feed(event))
        elif kind is CallStart:
            self._begin(event)
        elif kind is CallEnd:
            yield from self._end(event)
        elif kind is CallError:
            self._error(event)
        elif kind is ProviderBlock and event.index is None and (block := self._own_block(event)) is not None:
            yield block

    def _own_block(self, block: ProviderBlock) -> ProviderBlock | None:
        """Return the block as the client's wire has it; None if it has no form there."""
        if block.provider == self._own:
            return block
        return messages_thinking(block) if self._own == PROVIDERS["messages"] else None

    def _begin(self, start: CallStart) -> _ReadCall:
        text = ArgumentText(self._tools.get(start.name))
        call = self._calls[start.index] = _ReadCall(start, text, refusal=self._refusal(start.name))
        return call

    def _refusal(self, name: str) -> tuple[ErrorCode, str] | None:
        """Why no call of this name can be made now; None if it can."""
        choice = self._request.tool_choice
        if choice == "none":
            return not_run.NO_TOOLS_NOW.code, not_run.NO_TOOLS_NOW.text()
        if choice not in ("auto", "required", name):
            return not_run.OTHER_TOOL.code, not_run.OTHER_TOOL.text(choice=choice)
        if name in self._tools or self._model.format is None:  # a native call is the client's to answer
            return None
        return "unknown_tool", unknown_tool(name, tuple(self._tools))

    def _sent(self, call: _ReadCall, text: str, *, whole: bool = False) -> Iterator[SourceEvent]:
        """Send a piece of a call's arguments; the first one has its start, once enough has come or it is whole."""
        if call.number < 0:
            call.held += text
            if len(call.held) < HOLD and not whole:
                return
            text = call.held
            call.number = self._first + self.sent
            self.sent += 1
            yield CallStart(call.number, call.start.name, call.start.id)
        if text:
            yield ArgumentDelta(call.number, text)

    def _end(self, event: CallEnd) -> Iterator[SourceEvent]:
        call = self._calls.get(event.index)
        if call is None:  # a source may bring a call in one piece
            call = self._begin(CallStart(event.index, event.call.name, event.call.id))
        if call.refusal is not None:
            self._failed.append((event.call, *call.refusal))
            return
        try:
            rest = call.text.end(event.call)
        except ContradictedArguments as error:
            raise _broken(call, str(error)) from error
        yield from self._sent(call, rest, whole=True)
        self.repairs += event.repairs
        call.ended = True
        yield CallEnd(call.number, event.call, event.repairs)

    def _error(self, event: CallError) -> None:
        call = self._calls.get(event.index)
        if call is not None and call.number >= 0 and event.code != "truncated_call":
            raise _broken(call, event.message)
        self._failed.append((event.call, event.code, event.message))

    # -------------------------------------------------------------- whether it is an answer

    @property
    def message(self) -> AssistantMessage:
        """The reply, with all its calls."""
        return self._reader.record.draft.message()

    @property
    def odd(self) -> Mapping[type, Any]:
        """See `ResponseRecord.odd`."""
        return self._reader.record.odd

    @property
    def finish(self) -> Finish:
        """Why it ended, for the client.

        Raises:
            RequestRefused: the client has a part of a call that did not end, and no token limit says why.
        """
        found = self._reader.record.finish
        for call in self._calls.values():
            if call.number >= 0 and not call.ended and found.reason != "length":
                raise _broken(call, "the reply ended inside it")
        if self.sent and found.reason in ("stop", "unknown", "tool_limit_reached", "tool_calls"):
            return Finish("tool_calls", found.raw)
        return Finish("stop", found.raw) if found.reason in ("tool_calls", "tool_limit_reached") else found

    @property
    def usage(self) -> Usage:
        """The tokens that it took."""
        return self._reader.record.usage

    def lacks(self) -> str:
        """Why it is not an answer: a word of `agentkit.agent.again`, or `failed_call`; empty if it is one."""
        if self.sent or self.faults or self._reader.record.finish.reason == "length":
            return ""
        if self._failed:
            return "failed_call"
        return again.lacking(self, self._request.tool_choice, None) or ""

    def failure(self, lacks: str) -> str:
        """Return the words that explain it to a person."""
        if self._failed:
            call, _, message = self._failed[0]
            return f"the model's call of {call.name or 'a tool'} could not be read: {message}"
        if (unread := self.odd.get(UnreadCall)) is not None:
            return f"the model wrote a call of {unread.name or 'a tool'} that could not be read: {unread.text[:300]!r}"
        if (invented := self.odd.get(InventedResult)) is not None:
            return f"the model made up a tool's result instead of calling the tool: {invented.text[:300]!r}"
        return f"the model's reply is not an answer ({lacks})"

    def asked_again(
        self, lacks: str, messages: Sequence[Message], format: str | None
    ) -> tuple[list[Message], list[Message]]:
        """The conversation that is kept after this attempt, and what is asked only once after it.

        Args:
            lacks: what `lacks` returned.
            messages: the conversation before it.
            format: the text format in which the model calls; None natively.
        """
        said = self.message
        if lacks == "failed_call":
            answers = [ToolMessage(c.id, c.name, (TextPart(words),), code) for c, code, words in self._failed]
            return [*messages, said, *answers], []
        unread = self.odd.get(UnreadCall)
        name = unread.name if unread is not None else ""
        what: Any = lacks
        ask = again.request(what, name, self._request.tool_choice, format, self._request.tools)
        kept = again.hide_attempt(said, what)
        return [*messages, *([kept] if kept.content else [])], [ask]


def _broken(call: _ReadCall, why: str) -> RequestRefused:
    """A call that broke after the client had its beginning."""
    return RequestRefused(502, f"the model's call of {call.start.name} is damaged: {why}", "broken_call")


class _RawText:
    """The unchanged text of a reply that was not read: events contain it all, in order."""

    def __init__(self) -> None:
        self._pieces: deque[str] = deque()
        self._read = 0  # characters of it that were read

    def add(self, text: str) -> None:
        """Add text that came."""
        self._pieces.append(text)

    def account(self, event: SourceEvent) -> None:
        """Count the text in an event that was read."""
        if isinstance(event, _OF_TEXT):
            self._read += len(event.text)
        elif isinstance(event, CallEnd | CallError) and event.call.format is not None:
            self._read += len(event.call.raw)
        while self._pieces and len(self._pieces[0]) <= self._read:
            self._read -= len(self._pieces.popleft())

    def rest(self) -> str:
        """The text that was not read."""
        return "".join(self._pieces)[self._read :]
