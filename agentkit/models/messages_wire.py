"""One response of Anthropic's Messages API, as events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any, Final

from agentkit.checks.unicode import Joiner
from agentkit.events import SourceEvent, Text, Thinking, Usage
from agentkit.formats.pieces import Pieces
from agentkit.models.finishes import finish, meaning, retracts
from agentkit.models.native import NativeCall, provider_block
from agentkit.models.native_arguments import readable
from agentkit.models.stream_errors import ErrorInStream, raise_error
from agentkit.models.wire import Wire, WireEvent, count_of, items_of, json_text_of, make_usage, mapping_of, text_of

WORDS: Final = ("text", "thinking")
"""The blocks that have no input."""

OF_REPLY: Final = ("output_tokens", "output_tokens_details")
"""The counts of the reply. They are ignored at a message's start, where they are mostly 1."""

DELTAS: Final[Mapping[str, str]] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
    "compaction_delta": "content",
}
"""The field of each kind of delta; it also shows the kind of one whose type was omitted."""

MIXED: Final = "another call has the same index; the arguments of the two cannot be told apart"

UNREAD: Final = "a piece of it came in a form that cannot be read"


class _Block:
    """A block that is open.

    Args:
        data: its fields at its start.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.kind = text_of(data.get("type"))
        self.call: NativeCall | None = None
        self.joiner = Joiner()
        self.texts: defaultdict[str, Pieces] = defaultdict(Pieces)  # by the field of their deltas
        for name in ("signature", "content"):
            if begun := text_of(data.get(name)):
                self.texts[name].add(begun)

    def say(self, text: str) -> list[SourceEvent]:
        """More words or thinking."""
        text = self.joiner.feed(text)
        self.texts[self.kind].add(text)
        return [Thinking(text) if self.kind == "thinking" else Text(text)] if text else []

    def whole(self) -> dict[str, Any]:
        """Return the block as one that is complete."""
        return {**self.data, **{k: v.text() for k, v in self.texts.items() if k != DELTAS["input_json_delta"]}}


class MessagesWire(Wire):
    """One response of the Messages API."""

    def __init__(self, provider: str, schemas: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> None:
        super().__init__(provider, schemas)
        self._blocks: dict[int, _Block] = {}  # those that are open
        self._last: _Block | None = None
        self._usage: dict[str, Any] = {}

    def feed(self, event: WireEvent) -> list[SourceEvent]:
        """One event of the stream."""
        raise_error(event)
        at = count_of(event.get("index"))
        match text_of(event.get("type")):
            case "message_start":
                if self._last is not None:
                    raise ErrorInStream.of({"message": "another message starts in the middle of this one"})
                message = mapping_of(event.get("message"))
                self._count({k: v for k, v in mapping_of(message.get("usage")).items() if k not in OF_REPLY})
            case "content_block_start":
                return self._start(at, mapping_of(event.get("content_block")))
            case "content_block_delta":
                return self._delta(at, mapping_of(event.get("delta")))
            case "content_block_stop":
                return self._stop(at) if at in self._blocks else []
            case "message_delta":
                if not retracts(self._finish):
                    self._finish = text_of(mapping_of(event.get("delta")).get("stop_reason")) or self._finish
                self._count(mapping_of(event.get("usage")))
                self.done = self.done or self._finish is not None  # complete; only `message_stop` is still to come
            case "message_stop":
                self.done = self.over = True
            case _:
                self._calls.unread(event)
        return []

    def close(self) -> list[SourceEvent]:
        """The last events."""
        events = [event for at in list(self._blocks) for event in self._leave(at)]
        if self._last is not None and self._last.call is not None and meaning(self._finish) == "length":
            self._last.call.end = "incomplete"  # its block's end shows no more than the limit
        ending = finish(self._finish, calls=self.called) if self.done else None
        return events + self._calls.close(usage_of(self._usage) if self._usage else None, ending)

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Counts are totals so far: one that is omitted, or zero after others, is unchanged."""
        self._usage.update({k: v for k, v in usage.items() if v or k not in self._usage})

    def _start(self, at: int, data: Mapping[str, Any]) -> list[SourceEvent]:
        block, before = _Block(data), self._blocks.get(at)
        if not block.kind:
            self._calls.unread(data)
            return []
        events = self._leave(at) if before is not None else []
        self._blocks[at] = self._last = block
        if block.kind in WORDS:
            events += block.say(text_of(data.get(block.kind)))
        elif block.kind == "tool_use":
            block.call, begun = self._calls.begin(text_of(data.get("id")), text_of(data.get("name")))
            events += begun
            caller = mapping_of(data.get("caller"))
            if caller and caller != {"type": "direct"}:  # a server tool's code made the call; the API requires it
                block.call.extras["caller"] = caller
            if before is not None and before.call is not None:
                before.call.ambiguity = block.call.ambiguity = MIXED
        return events

    def _delta(self, at: int, delta: Mapping[str, Any]) -> list[SourceEvent]:
        kind = _kind(delta)
        field = DELTAS.get(kind, "")
        events = self._start(at, {"type": field}) if field in WORDS and at not in self._blocks else []
        block = self._blocks.get(at)
        match kind:
            case "text_delta" | "thinking_delta" if block is not None and block.kind == field:
                return events + block.say(text_of(delta.get(field)))
            case "signature_delta" | "compaction_delta" if block is not None:
                piece, text = text_of(delta.get(field)), block.texts[field]
                if kind == "compaction_delta" or len(piece) != len(text) or piece != text.text():
                    text.add(piece)
            case "input_json_delta" if block is not None and block.kind not in WORDS:
                piece = json_text_of(delta.get(field))
                block.texts[field].add(piece)
                return self._calls.more(block.call, piece) if block.call is not None else []
            case "citations_delta":
                pass
            case _ if not field or delta.get(field):
                self._calls.unread(delta)
                if block is not None and block.call is not None:
                    block.call.ambiguity = UNREAD
                else:
                    self._calls.lost.append(json_text_of(delta.get("partial_json")))
        return []

    def _leave(self, at: int) -> list[SourceEvent]:
        """Leave a block whose end did not come: another one starts in its place, or nothing more comes."""
        if (call := self._blocks[at].call) is None:
            return self._stop(at)
        block = self._blocks.pop(at)
        return [] if call.text else self._calls.set_arguments(call, _whole_input(block.data))

    def _stop(self, at: int) -> list[SourceEvent]:
        block = self._blocks.pop(at)
        given, rest = block.texts[DELTAS["input_json_delta"]], block.joiner.close()
        if (call := block.call) is not None:
            call.has_arguments = call.has_arguments or "input" in block.data or bool(given)
            call.end = "complete"
            return [] if given.text() else self._calls.set_arguments(call, _whole_input(block.data))
        match block.kind:
            case "text":
                return [Text(rest)] if rest else []
            case "thinking":
                block.texts["thinking"].add(rest)
                said: list[SourceEvent] = [Thinking(rest)] if rest else []
                signed = [provider_block(self.provider, block.whole(), thinking=True)] * bool(block.texts["signature"])
                return [*said, *signed]
        whole = block.whole()
        if given.text():
            whole["input"] = readable(given.text()) or {}
        return [provider_block(self.provider, whole, thinking=block.kind == "redacted_thinking")]


def _kind(delta: Mapping[str, Any]) -> str:
    """Return the kind of a delta; empty if it does not show that."""
    return text_of(delta.get("type")) or next((kind for kind, field in DELTAS.items() if field in delta), "")


def _whole_input(block: Mapping[str, Any]) -> str:
    """The input of a call whose block has it complete, without deltas; empty if it has not."""
    return "" if block.get("input") == {} else json_text_of(block.get("input"))


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """The usage of a message: its own counts, or the sum of its iterations' if that is more.

    What a compaction took is in `iterations` alone. Source: Anthropic, Compaction, "Understanding usage".
    """
    said = _counted(usage)
    took = reduce(Usage.plus, map(_counted, items_of(usage.get("iterations"))), Usage())
    prompt = took if took.input_tokens > said.input_tokens else said
    return Usage(
        prompt.input_tokens,
        max(said.output_tokens, took.output_tokens),
        prompt.cached_tokens,
        prompt.cache_write_tokens,
        max(said.reasoning_tokens, took.reasoning_tokens),
    )


def _counted(usage: Mapping[str, Any]) -> Usage:
    """Anthropic counts cached prompt tokens separately; here they are part of the input."""
    read, written = count_of(usage.get("cache_read_input_tokens")), count_of(usage.get("cache_creation_input_tokens"))
    return make_usage(
        prompt=count_of(usage.get("input_tokens")) + read + written,
        reply=count_of(usage.get("output_tokens")),
        cached=read,
        written=written,
        reasoning=count_of(mapping_of(usage.get("output_tokens_details")).get("thinking_tokens")),
    )


def events_of(body: Mapping[str, Any]) -> list[WireEvent]:
    """A whole message as the events in which it would have been streamed."""
    if body.get("type") == "error":
        return [body]
    usage = body.get("usage")
    events: list[WireEvent] = [{"type": "message_start", "message": {"usage": usage}}]
    for at, block in enumerate(items_of(body.get("content"))):
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        events.append({"type": "content_block_stop", "index": at})
    if body.get("type") == "message":
        end = {"stop_reason": body.get("stop_reason")}
        events += [{"type": "message_delta", "delta": end, "usage": usage}, {"type": "message_stop"}]
    return events
