"""One response of Anthropic's Messages API, as events."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any, Final

from agentkit.events import Finish, SourceEvent, Text, Thinking, Usage
from agentkit.formats.pieces import Pieces
from agentkit.models.finishes import finish, meaning, takes_back
from agentkit.models.native import (
    CONTRADICTED,
    NativeCall,
    NativeCalls,
    contradict,
    last_events,
    provider_block,
)
from agentkit.models.native_arguments import readable
from agentkit.models.stream_errors import ErrorInStream, raise_error
from agentkit.models.wire import WireEvent, count_of, counted, items_of, json_text_of, mapping_of, text_of
from agentkit.unicode import Joiner

WORDS: Final = ("text", "thinking")
"""The blocks that have no input."""

OF_REPLY: Final = ("output_tokens", "output_tokens_details")
"""The counts of the reply. At a message's start they say nothing: 1 token, as a rule."""

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

AGAIN: Final = "a call with its id came before; whether they are one is ambiguous"


class MessagesWire:
    """One response of the Messages API.

    Args:
        provider: the provider that wrote the blocks.
        schemas: those of the offered tools, by name.
    """

    def __init__(self, provider: str, schemas: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> None:
        self.provider = provider
        self._calls = NativeCalls(provider, marks_ends=True, schemas=schemas)
        self._blocks: dict[int, dict[str, Any]] = {}  # those that are open
        self._pieces: dict[int, list[str]] = {}
        self._joiners: dict[int, Joiner] = {}
        self._call_at: dict[int, NativeCall] = {}  # the last one at each index
        self._last: NativeCall | None = None  # the call of the last block, if it has one
        self._ids: set[str] = set()  # of the calls
        self._usage: dict[str, Any] = {}
        self._finish: str | None = None
        self.done = self.over = False

    def feed(self, event: WireEvent) -> list[SourceEvent]:
        """One event of the stream."""
        raise_error(event)
        at = count_of(event.get("index"))
        match text_of(event.get("type")):
            case "message_start":
                if self._joiners:
                    raise ErrorInStream.of({"message": "another message starts in the middle of this one"})
                message = mapping_of(event.get("message"))
                self._count({k: v for k, v in mapping_of(message.get("usage")).items() if k not in OF_REPLY})
                self._calls.barred = takes_back(text_of(message.get("stop_reason")))
            case "content_block_start":
                return self._start(at, mapping_of(event.get("content_block")))
            case "content_block_delta":
                return self._delta(at, mapping_of(event.get("delta")))
            case "content_block_stop" if at in self._blocks:
                return self._stop(at)
            case "message_delta":
                if not takes_back(self._finish):
                    self._finish = text_of(mapping_of(event.get("delta")).get("stop_reason")) or self._finish
                self._calls.barred = self._calls.barred or takes_back(self._finish)
                self._count(mapping_of(event.get("usage")))
                self.done = self.done or self._finish is not None  # complete; only `message_stop` is still to come
            case "message_stop":
                self.done = self.over = True
            case "content_block_stop":
                pass
            case _:
                self._calls.unread(event)
        return []

    @property
    def called(self) -> bool:
        """Return whether a call came."""
        return bool(self._calls.all)

    def close(self) -> list[SourceEvent]:
        """The last events."""
        events = [event for at in list(self._blocks) for event in self._leave(at)]
        if self._last is not None and meaning(self._finish) == "length":
            self._last.end = "incomplete"  # its block's end shows no more than the limit
        ending: Finish | None = None
        if self.done:
            ending = finish(self._finish, calls=self.called)
        return events + last_events(self._calls, usage_of(self._usage) if self._usage else None, ending)

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Counts are totals so far: one that is omitted, or zero after others, is unchanged."""
        self._usage.update({k: v for k, v in usage.items() if v or k not in self._usage})

    def _start(self, at: int, block: Mapping[str, Any]) -> list[SourceEvent]:
        kind = text_of(block.get("type"))
        if not kind:
            self._calls.unread(block)
            return []
        known, before = self._blocks.get(at), self._call_at.get(at)
        if known is not None and kind == "tool_use" and block.get("id") and known.get("id") == block["id"]:
            return []  # started twice
        events = self._leave(at) if known is not None else []
        self._blocks[at] = dict(block)
        self._pieces[at], self._joiners[at] = [], Joiner()
        self._last = None
        match kind:
            case "text":
                events += self._say(at, Text, text_of(block.get("text")))
            case "thinking":
                events += self._say(at, Thinking, text_of(block.get("thinking")))
            case "tool_use":
                events += self._call(at, block)
                if before is not None and (before.ambiguity == MIXED or (known or {}).get("type") == "tool_use"):
                    before.ambiguity = self._call_at[at].ambiguity = MIXED
        return events

    def _call(self, at: int, block: Mapping[str, Any]) -> list[SourceEvent]:
        id = text_of(block.get("id"))
        call, events = self._calls.begin(id, text_of(block.get("name")))
        self._call_at[at] = self._last = call
        if id in self._ids:
            call.ambiguity = AGAIN
        self._ids |= {id} if id else set()
        caller = mapping_of(block.get("caller"))
        if caller and caller != {"type": "direct"}:  # a server tool's code made the call; the API requires it
            call.extras["caller"] = caller
        return events

    def _delta(self, at: int, delta: Mapping[str, Any]) -> list[SourceEvent]:
        block = self._blocks.get(at)
        of = block and block.get("type")
        match kind := _kind(delta):
            case "text_delta" if of in (None, "text"):
                return self._implied(at, "text") + self._say(at, Text, text_of(delta.get("text")))
            case "thinking_delta" if of in (None, "thinking"):
                return self._implied(at, "thinking") + self._say(at, Thinking, text_of(delta.get("thinking")))
            case "signature_delta" if block is not None:
                piece, said = text_of(delta.get("signature")), _growing(block, "signature")
                if len(piece) != len(said) or piece != said.text():
                    said.add(piece)
            case "input_json_delta" if block is not None and of not in WORDS:
                piece = json_text_of(delta.get("partial_json"))
                self._pieces[at].append(piece)
                return self._calls.more(self._call_at[at], piece) if of == "tool_use" else []
            case "compaction_delta" if block is not None:
                _growing(block, "content").add(text_of(delta.get("content")))
            case "citations_delta":
                pass
            case _ if kind not in DELTAS or delta.get(DELTAS[kind]):
                self._calls.unread(delta)
                if of == "tool_use":
                    self._call_at[at].ambiguity = UNREAD
                else:
                    self._calls.lost.append(json_text_of(delta.get("partial_json")))
        return []

    def _implied(self, at: int, kind: str) -> list[SourceEvent]:
        """Start a block whose own start did not come."""
        return [] if at in self._blocks else self._start(at, {"type": kind})

    def _leave(self, at: int) -> list[SourceEvent]:
        """Leave a block whose end did not come: another one starts in its place, or nothing more comes."""
        if self._blocks[at].get("type") != "tool_use":
            return self._stop(at)
        block, call = self._blocks.pop(at), self._call_at[at]
        return [] if call.text else self._calls.set_arguments(call, _whole_input(block))

    def _say(self, at: int, kind: type[Text] | type[Thinking], text: str) -> list[SourceEvent]:
        text = self._joiners[at].feed(text)
        if kind is Thinking:
            self._pieces[at].append(text)
        return [kind(text)] if text else []

    def _stop(self, at: int) -> list[SourceEvent]:
        pieces, rest = self._pieces.pop(at), self._joiners[at].close()
        block = {k: v.text() if isinstance(v, Pieces) else v for k, v in self._blocks.pop(at).items()}
        match block.get("type"):
            case "text":
                return [Text(rest)] if rest else []
            case "tool_use":
                call = self._call_at[at]
                given = _whole_input(block)
                if contradict(given, call.text):
                    call.ambiguity = call.ambiguity or CONTRADICTED
                call.has_arguments = call.has_arguments or "input" in block or bool(pieces)
                call.end = "complete"
                return [] if "".join(pieces) else self._calls.set_arguments(call, given)
            case "thinking":
                said: list[SourceEvent] = [Thinking(rest)] if rest else []
                thought = {**block, "thinking": "".join(pieces) + rest}
                signed = [provider_block(self.provider, thought, thinking=True)] if block.get("signature") else []
                return [*said, *signed]
            case "redacted_thinking":
                return [provider_block(self.provider, block, thinking=True)]
        if "".join(pieces):
            block["input"] = readable("".join(pieces)) or {}
        return [provider_block(self.provider, block)]


def _kind(delta: Mapping[str, Any]) -> str:
    """Return the kind of a delta; empty if it does not show that."""
    return text_of(delta.get("type")) or next((kind for kind, field in DELTAS.items() if field in delta), "")


def _whole_input(block: Mapping[str, Any]) -> str:
    """The input of a call whose block has it complete, without deltas; empty if it has not."""
    given = block.get("input")
    return "" if given == {} else json_text_of(given)


def _growing(block: dict[str, Any], name: str) -> Pieces:
    """A text of a block that comes in pieces."""
    said = block.get(name)
    if not isinstance(said, Pieces):
        said = block[name] = Pieces(text_of(said))
    return said


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """The usage of a message: what it says, or what its iterations took if that is more.

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
    return counted(
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
    events: list[WireEvent] = [
        {"type": "message_start", "message": {"usage": usage, "stop_reason": body.get("stop_reason")}}
    ]
    for at, block in enumerate(items_of(body.get("content"))):
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        events.append({"type": "content_block_stop", "index": at})
    if body.get("type") == "message":
        end = {"stop_reason": body.get("stop_reason")}
        events += [{"type": "message_delta", "delta": end, "usage": usage}, {"type": "message_stop"}]
    return events
