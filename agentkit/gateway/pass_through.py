"""A reply for a client that speaks the upstream's wire: unchanged, but for calls that the model wrote as text.

Pure: bytes in, bytes out. Knows no wire; what differs between them is in a `ReplyEdit`. Each event leaves as the bytes
in which it came, as soon as every character of its text is certain not to be a call. When the reply is complete and has
calls in its text, the events that wait are replaced: what is left of the text, the calls, and the changed end. A reply
with a native call, or without calls, is byte-equal, as is one that the token limit or a filter ended.

It fails open: after a fault here everything passes unchanged.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from agentkit.events import CallEnd, CallQuoted, InventedResult, Markup, ProviderBlock, SourceEvent, Text, Thinking
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.delta_template import DeltaTemplate
from agentkit.gateway.event_blocks import EventBlocks, event_of
from agentkit.gateway.exchanges import ReplyRecord
from agentkit.gateway.held_events import HeldEvents
from agentkit.gateway.reply_edit import NOTHING, EditedEvent, EventContent, ReplyEdit
from agentkit.messages import Message, ToolCall
from agentkit.models.finishes import meaning
from agentkit.processor.processor import call_id
from agentkit.processor.recovery import NewReader, Quoted, Recovery
from agentkit.processor.untrusted_input import UntrustedInput
from agentkit.toolspec import ToolSpec

if TYPE_CHECKING:
    from agentkit import formats

_LOG: Final = logging.getLogger("agentkit.gateway")

MAX_HELD: Final = 8 * 1024 * 1024
"""Bytes of one reply that wait at most; a longer one is passed on unread from there."""

_TAIL: Final = 64 * 1024  # bytes of an unread stream's end in which its usage is looked for
_COMPLETE: Final = ("stop", "tool_calls")

_Conversation = Callable[[], Iterable[Message]]
"""Returns the conversation that a reply answers. Called once, when a call is found."""


class PassThrough:
    """One reply.

    Args:
        edit: reads and edits its wire.
        tools: those that the client offered and the model may call; without any, nothing is read.
        record: receives what is counted.
        conversation: what the model has read: a call that may be a quote of it stays text. None compares with nothing.
        new_id: creates the id of a recovered call.
        new_parser: creates a parser for every format; see `Recovery`.
        limit: bytes that wait at most.
        only_one: whether a reply has one call at most: what the model wrote after the first one is dropped.
    """

    def __init__(
        self,
        edit: ReplyEdit,
        tools: Sequence[ToolSpec],
        record: ReplyRecord,
        conversation: _Conversation | None = None,
        *,
        new_id: Callable[[], str] = call_id,
        new_parser: NewReader | None = None,
        limit: int = MAX_HELD,
        only_one: bool = False,
    ) -> None:
        self._edit = edit
        self._record = record
        self._new_id = new_id
        self._only_one = only_one
        self._served: list[ProviderBlock] = []  # the provider's own blocks, which the text after them may quote
        quoted = None if conversation is None else _quoted(conversation, tools, self._served)
        self._recovery = Recovery(new_parser or _parsers(tools), tools, quoted)
        self._blocks = EventBlocks(limit)
        self._held = HeldEvents(limit)
        self._template = DeltaTemplate(self._text_of)
        self._thinks = False
        self._state: Literal["reads", "ended", "passes"] = "reads" if tools else "passes"
        self._tail = _Tail()

    def feed(self, piece: bytes) -> bytes:
        """Return what may be sent after this piece of a streamed reply."""
        if self._state == "passes":
            self._tail.add(piece)
            return piece
        plain = self._state == "reads" and self._blocks.complete and not self._held.half
        if plain and (read := self._template.texts(piece)) is not None:
            return self._feed_texts(piece, *read)
        try:
            blocks = self._blocks.feed(piece)
        except Exception as fault:  # noqa: BLE001 - whatever happens, the client gets the reply
            return self._fail(fault, [])
        out = b"".join(self._pass_on(blocks))
        return piece if out == piece else out

    def close(self) -> bytes:
        """Return the rest of a streamed reply, which ended here or was cut."""
        out: list[bytes] = []
        if self._state != "passes":
            rest = self._blocks.take_rest()
            out = self._pass_on([rest]) if rest else []
            out += self._held.take_all()
        with suppress(Exception):  # odd events there cost a count
            self._read_tail()
        self._count()
        return b"".join(out)

    def _read_tail(self) -> None:
        """Read the usage and the finish of a stream that was passed on unread: from its first event, and its last."""
        first, *blocks = self._tail.blocks()
        self._content(first)
        for block in reversed(blocks):
            content = self._content(block)
            if content.kind == "end" and content.finish:
                break

    def whole(self, raw: bytes) -> bytes:
        """Return a whole reply: the same bytes, or JSON with calls in place of their text."""
        try:
            return self._whole(raw)
        except Exception as fault:  # noqa: BLE001 - whatever happens, the client gets the reply
            self._note(fault)
            return raw

    def _whole(self, raw: bytes) -> bytes:
        body = json.loads(raw)
        if not isinstance(body, dict):
            return raw
        parts = [*self._edit.parts(body)]
        self._count()
        if self._state != "reads":
            return raw
        for part in parts:
            text = self._held.add(b"", part.text)
            if part.kind and not self._reads_on(part):
                return raw
            self._read_text(text)
        events = self._last_events(self._edit.finish)
        if not events:
            return raw
        self._edit.edit(body, [pieces for _, pieces in self._held.remainders(events, self._new_id)])
        self._record_calls(events)
        return json.dumps(body).encode()

    # -------------------------------------------------------------- a stream

    def _feed_texts(self, piece: bytes, text: str, texts: Sequence[bytes]) -> bytes:
        """Return what may be sent after a piece of which only the text is new."""
        held = self._held
        direct = not held
        try:
            self._read_text(text)
            if direct and held.pass_by(len(text)):
                return piece
        except Exception as fault:  # noqa: BLE001 - whatever happens, the client gets the reply
            return self._fail(fault, [piece])
        held.add_texts(self._template.frame, texts, len(text))
        return b"".join(self._give_up() if self._is_full() else held.take())

    def _is_full(self) -> bool:
        if not self._held.full:
            return False
        self._record.recovery_failed += 1
        _LOG.warning("more than %d bytes of a reply may be a call; it is passed on as text", self._held.limit)
        return True

    def _text_of(self, block: bytes) -> str | None:
        content = self._content(block)
        return content.text if content.kind == "" else None

    def _pass_on(self, blocks: Sequence[bytes]) -> list[bytes]:
        """Return what may be sent after these events."""
        out: list[bytes] = []
        for at, block in enumerate(blocks):
            before = len(self._held)
            try:
                if self._state == "reads":
                    out += self._read(block)
                else:
                    out.append(self._after(block))
            except Exception as fault:  # noqa: BLE001 - whatever happens, the client gets the reply
                held = len(self._held) > before
                return [*out, self._fail(fault, blocks[at + held :])]
            if self._state == "passes":
                rest = b"".join([*blocks[at + 1 :], self._blocks.take_rest()])
                self._tail.add(rest)
                return [*out, rest]
        return out

    def _read(self, block: bytes) -> list[bytes]:
        content = self._content(block)
        held = self._held
        text = held.add(block, content.text)
        if content.kind and not self._reads_on(content):
            return self._give_up()
        self._read_text(text)
        if content.kind == "end":
            return self._end(content.finish)
        if content.text and not content.kind and self._template.learns:
            self._template.learn(block, content.text)
        return self._give_up() if self._is_full() else held.take()

    def _content(self, block: bytes) -> EventContent:
        event = event_of(block)
        return NOTHING if event is None else self._edit.read(event)

    def _reads_on(self, content: EventContent) -> bool:
        """Read the part of an event before its text; returns whether the text is still read for calls."""
        match content.kind:
            case "opens":
                self._held.blank = True
            case "thinking":
                if not self._thinks:
                    self._thinks = True
                    self._end_text(Thinking(""))
            case "block":
                block = ProviderBlock("", content.block or {})
                self._served.append(block)
                self._end_text(block)
            case "call" | "other":
                return False
            case _:
                pass
        return True

    def _end_text(self, event: SourceEvent) -> None:
        self._held.release(self._recovery.feed(event))
        self._held.end_text()

    def _read_text(self, text: str) -> None:
        if text:
            self._thinks = False
            self._held.release(self._recovery.feed(Text(text)))

    def _end(self, finish: str) -> list[bytes]:
        """End the reply: with its calls, or unchanged."""
        events = self._last_events(finish)
        if not events:
            return self._give_up()
        edited = [
            EditedEvent(held.raw, event_of(held.raw), held.text, pieces)
            for held, pieces in self._held.remainders(events, self._new_id)
        ]
        out = self._edit.replace(edited)
        self._record_calls(events)
        self._held.take_all()
        self._state = "ended"
        return [out]

    def _after(self, block: bytes) -> bytes:
        if (event := event_of(block)) is None:
            return block
        self._edit.read(event)  # some report the usage here
        return self._edit.after(block, event)

    # -------------------------------------------------------------- its end

    def _last_events(self, finish: str) -> Sequence[SourceEvent]:
        """Return the last events of a complete reply with calls in its text; nothing of another one."""
        whole = not finish or meaning(finish) in _COMPLETE
        events = self._recovery.close(whole=whole)
        if self._only_one:
            events = [*_until_first_call(events)]
        return events if any(type(event) is CallEnd for event in events) else ()

    def _record_calls(self, events: Iterable[SourceEvent]) -> None:
        record = self._record
        for event in events:
            if isinstance(event, CallEnd):
                record.recovered += 1
                record.repairs += event.repairs
                record.format = record.format or event.call.format or ""
        record.finish = "tool_calls"

    def _count(self) -> None:
        record, finish = self._record, self._edit.finish
        record.usage = self._edit.usage
        if finish and not record.recovered:
            record.finish = meaning(finish) or "unknown"

    def _give_up(self) -> list[bytes]:
        """Read no more for calls; returns all that waits."""
        self._state = "passes"
        return self._held.take_all()

    def _fail(self, fault: Exception, blocks: Sequence[bytes]) -> bytes:
        """Return all that was not sent, unchanged."""
        self._note(fault)
        rest = b"".join([*blocks, self._blocks.take_rest()])
        self._tail.add(rest)
        return b"".join([*self._give_up(), rest])

    def _note(self, fault: Exception) -> None:
        self._record.recovery_failed += 1
        _LOG.error("a reply is passed on unchanged, since reading it for calls failed", exc_info=fault)


def _until_first_call(events: Iterable[SourceEvent]) -> Iterator[SourceEvent]:
    """Return the events until the end of the first call; the text after it counts as markup."""
    called = False
    for event in events:
        if not called:
            yield event
        elif isinstance(event, CallEnd):
            yield Markup(event.call.raw)
        elif isinstance(event, Text | Markup | InventedResult):
            yield Markup(event.text)
        called = called or isinstance(event, CallEnd)


class _Tail:
    """The first piece and the last pieces of an unread stream."""

    def __init__(self) -> None:
        self._first = b""
        self._pieces: deque[bytes] = deque()
        self._size = 0

    def add(self, piece: bytes) -> None:
        if not piece:
            return
        self._first = self._first or piece
        self._pieces.append(piece)
        self._size += len(piece)
        while self._size - len(self._pieces[0]) > _TAIL:
            self._size -= len(self._pieces.popleft())

    def blocks(self) -> Iterable[bytes]:
        joined = b"".join(self._pieces)
        if not joined.startswith(self._first):
            joined = self._first + b"\n\n" + joined
        blocks = EventBlocks(len(joined))
        return [*blocks.feed(joined), blocks.take_rest()]


def _parsers(tools: Sequence[ToolSpec]) -> NewReader:
    """Return the factory of one reply's parsers, which read every format."""

    def made(first: bool, after: formats.Parser | None) -> formats.Parser:
        from agentkit import formats  # only a reply with text to read loads them

        return formats.Parser(formats.recoverable(), tools, in_code="reply", after=after)

    return made


def _quoted(conversation: _Conversation, tools: Sequence[ToolSpec], served: Sequence[ProviderBlock]) -> Quoted:
    """Return the search for a call's tool in what the model has read, which is parsed when a call is found.

    If that is unknown, since the server stores a part of it, every call may be a quote.
    """

    @cache
    def untrusted() -> UntrustedInput:
        messages = [*conversation()]
        return UntrustedInput(lambda: messages)

    offered: Mapping[str, ToolSpec] = {tool.name: tool for tool in tools}

    def found(call: ToolCall) -> CallQuoted | None:
        try:
            return untrusted().find_quote(call, offered, served)
        except RequestRefused:
            return CallQuoted(call)

    return found
