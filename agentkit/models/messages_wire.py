"""One response of Anthropic's Messages API, as events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any, Final

from agentkit.events import Finish, SourceEvent, Text, Thinking, Usage
from agentkit.formats.pieces import Pieces
from agentkit.models.event_shapes import DELTAS, MESSAGES, NOTHING, TEXT, EventShape, has_more
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
from agentkit.models.repeated_blocks import AGAIN
from agentkit.models.shared_indexes import SharedIndexes
from agentkit.models.strays import UNREAD
from agentkit.models.stream_errors import ErrorInStream, raise_error
from agentkit.models.wire import WireEvent, count_of, counted, items_of, json_text_of, mapping_of, text_of
from agentkit.unicode import Joiner

WORDS: Final = ("text", "thinking")
"""The blocks that have no input."""

OF_REPLY: Final = ("output_tokens", "output_tokens_details")
"""The counts of the reply. At a message's start they say nothing: 1 token, as a rule."""

_INPUT: Final = EventShape({"partial_json": TEXT})


class MessagesWire:
    """One response of the Messages API.

    Args:
        provider: the provider that wrote the blocks.
        schemas: those of the offered tools, by name.
    """

    def __init__(self, provider: str, schemas: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> None:
        self.provider = provider
        self._calls = NativeCalls(provider, marks_ends=True, schemas=schemas)
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, list[str]] = {}
        self._joiners: dict[int, Joiner] = {}
        self._call_at: dict[int, NativeCall] = {}  # stopped ones as well
        self._early: dict[int, list[str | None]] = {}  # None is a piece that cannot be read
        self._shared = SharedIndexes()
        self._usage: dict[str, Any] = {}
        self._finish: str | None = None
        self.done = self.over = False

    def feed(self, event: WireEvent) -> list[SourceEvent]:
        """One event of the stream."""
        raise_error(event)
        kind = text_of(event.get("type"))
        reason = text_of(mapping_of(event.get("delta")).get("stop_reason")) if kind == "message_delta" else ""
        if reason:
            self._calls.held = self._calls.held or takes_back(reason)
            if meaning(reason) == "length":
                self._calls.cut()
        stands = self._calls.go_on() if reason or kind.startswith("content_block_") else []
        if kind != "content_block_delta":  # what is not read of that is looked for where it belongs
            self._calls.check(event, MESSAGES.get(kind, NOTHING))
        return stands + self._event(kind, event)

    def _event(self, kind: str, event: WireEvent) -> list[SourceEvent]:
        at = count_of(event.get("index"))
        match kind:
            case "message_start":
                if self._joiners:
                    raise ErrorInStream.of({"message": "another message starts in the middle of this one"})
                message = mapping_of(event.get("message"))
                self._count({k: v for k, v in mapping_of(message.get("usage")).items() if k not in OF_REPLY})
                self._calls.held = takes_back(text_of(message.get("stop_reason")))
            case "content_block_start":
                return self._start(at, mapping_of(event.get("content_block")))
            case "content_block_delta":
                return self._delta(at, mapping_of(event.get("delta")), event)
            case "content_block_stop" if at in self._blocks:
                return self._stop(at)
            case "message_delta":
                if not takes_back(self._finish):
                    self._finish = text_of(mapping_of(event.get("delta")).get("stop_reason")) or self._finish
                self._count(mapping_of(event.get("usage")))
                self.done = self.done or self._finish is not None  # complete; only `message_stop` is still to come
            case "message_stop":
                self.done = self.over = True
        return []

    @property
    def called(self) -> bool:
        """Whether a call came."""
        return bool(self._calls.all)

    def close(self) -> list[SourceEvent]:
        """The last events."""
        events = [event for at in list(self._blocks) for event in self._leave(at)]
        for call, given in self._shared.told():
            events += self._calls.tell(call, json.dumps(given, ensure_ascii=False))
        for pieces in self._early.values():  # arguments of a call that nothing names
            if said := [piece for piece in pieces if piece is not None]:
                events += self._calls.more(self._calls.begin("", "")[0], "".join(said))
        if any(None in pieces for pieces in self._early.values()):
            self._calls.doubt_silent()
        ending: Finish | None = None
        if self.done:
            ending = finish(self._finish, calls=self.called)
        return events + last_events(self._calls, usage_of(self._usage) if self._usage else None, ending)

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Counts are totals so far: one that is omitted, or zero after others, is unchanged."""
        self._usage.update({k: v for k, v in usage.items() if v or k not in self._usage})

    def _start(self, at: int, block: Mapping[str, Any]) -> list[SourceEvent]:
        if not text_of(block.get("type")):
            self._calls.check(block, NOTHING)
            return []
        known = self._blocks.get(at)
        same_id = known is not None and block.get("id") and known.get("id") == block["id"]
        if same_id and block.get("type") == "tool_use":
            return []  # started twice
        before = self._leave(at) if known is not None else []
        self._blocks[at] = dict(block)
        self._pieces[at], self._joiners[at] = [], Joiner()
        self._call_at.pop(at, None)
        return before + self._started(at, block)

    def _started(self, at: int, block: Mapping[str, Any]) -> list[SourceEvent]:
        match block.get("type"):
            case "text":
                return self._say(at, Text, text_of(block.get("text")))
            case "thinking":
                return self._say(at, Thinking, text_of(block.get("thinking")))
            case "tool_use":
                repeats = at not in self._early and self._shared.repeated.open(at, block)
                return [] if repeats else self._call(at, block)
        return []

    def _call(self, at: int, block: Mapping[str, Any]) -> list[SourceEvent]:
        """A call starts in this block. Some of its input may have come."""
        call, events = self._calls.begin(text_of(block.get("id")), text_of(block.get("name")))
        self._call_at[at] = call
        caller = mapping_of(block.get("caller"))
        if caller and caller != {"type": "direct"}:  # a server tool's code made the call; the API requires it
            call.extras["caller"] = caller
        early = self._early.pop(at, [])
        self._calls.claim(at)
        call.doubt = UNREAD if None in early else ""
        self._pieces[at] = [*filter(None, early)]
        self._shared.begin(at, call, mapping_of(block.get("input")))
        return events + self._calls.more(call, "".join(self._pieces[at]))

    def _delta(self, at: int, delta: Mapping[str, Any], event: WireEvent) -> list[SourceEvent]:
        block = self._blocks.get(at)
        match kind := _kind(delta):
            case "text_delta" if block is None or block.get("type") == "text":
                return self._implied(at, "text") + self._say(at, Text, text_of(delta.get("text")))
            case "thinking_delta" if block is None or block.get("type") == "thinking":
                return self._implied(at, "thinking") + self._say(at, Thinking, text_of(delta.get("thinking")))
            case "signature_delta" if block is not None:
                piece, said = text_of(delta.get("signature")), _growing(block, "signature")
                if len(piece) != len(said) or piece != said.text():
                    said.add(piece)
            case "input_json_delta" if not _is_odd(delta, self._call_at.get(at)):
                return self._hand_over(at, json_text_of(delta.get("partial_json")))
            case "compaction_delta" if block is not None:
                _growing(block, "content").add(text_of(delta.get("content")))
            case "citations_delta" if block is not None and at not in self._call_at:
                return []
            case _ if kind not in DELTAS or delta.get(DELTAS[kind]) or has_more(delta, NOTHING):
                self._doubt(at, event)
        return []

    def _doubt(self, at: int, event: WireEvent) -> None:
        """Something came that cannot be read, or does not belong there: the call there, if one is, may be another."""
        call = self._call_at.get(at)
        if call is not None:
            call.doubt = call.doubt or UNREAD
        elif at not in self._blocks:
            self._early.setdefault(at, []).append(None)
            self._calls.stray(at)
        else:
            self._calls.check(event, NOTHING)

    def _implied(self, at: int, kind: str) -> list[SourceEvent]:
        """Start a block whose own start did not come."""
        return [] if at in self._blocks else self._start(at, {"type": kind})

    def _hand_over(self, at: int, piece: str) -> list[SourceEvent]:
        """More input of a call or of a server tool. Input that comes before its block waits for it."""
        if at in self._blocks and self._blocks[at].get("type") not in WORDS:
            self._pieces[at].append(piece)
        elif at not in self._call_at:
            self._early.setdefault(at, []).append(piece)
            self._calls.stray(at)
        call = self._call_at.get(at)
        told = self._shared.decides(at) and call is not None and not call.doubt
        return [] if call is None or told else self._calls.more(call, piece)

    def _leave(self, at: int) -> list[SourceEvent]:
        """A block is over, though its end did not come: another one starts in its place, or nothing more comes."""
        if at in self._shared.repeated:
            return self._judge(at, stopped=False)
        call = self._call_at.get(at)
        if call is None:
            return self._stop(at)
        block = self._blocks.pop(at)
        return [] if call.text else self._calls.tell(call, _whole_input(block))

    def _say(self, at: int, kind: type[Text] | type[Thinking], text: str) -> list[SourceEvent]:
        text = self._joiners[at].feed(text)
        if kind is Thinking:
            self._pieces[at].append(text)
        return [kind(text)] if text else []

    def _judge(self, at: int, *, stopped: bool) -> list[SourceEvent]:
        """A block is over that may repeat a call: nothing has come if it does; otherwise its own call starts now."""
        block, pieces = self._blocks[at], self._pieces[at]
        given = "".join(pieces) or _whole_input(block)
        known, verdict = self._shared.repeated.judge(at, given, stopped=stopped)
        if verdict == "same":
            for of in (self._blocks, self._pieces, self._joiners):
                del of[at]
            self._call_at[at] = known
            return []
        self._early[at] = [*pieces]
        events = self._call(at, block)
        if verdict == "ambiguous":
            for call in (known, self._call_at[at]):
                call.doubt = call.doubt or AGAIN
        return events + (self._stop(at) if stopped else self._leave(at))

    def _stop(self, at: int) -> list[SourceEvent]:
        if at in self._shared.repeated:
            return self._judge(at, stopped=True)
        pieces, rest = self._pieces.pop(at), self._joiners[at].close()
        block = {k: v.text() if isinstance(v, Pieces) else v for k, v in self._blocks.pop(at).items()}
        match block.get("type"):
            case "text":
                return [Text(rest)] if rest else []
            case "tool_use":
                call = self._call_at[at]
                given = _whole_input(block)
                whole = [] if "".join(pieces) else self._calls.tell(call, given)
                if contradict(given, call.text):
                    call.doubt = CONTRADICTED
                call.told = call.told or "input" in block or bool(pieces)
                self._shared.stop(at)
                events = whole + self._calls.end(call)
                # told before the block's end, which then shows no more than the limit
                if meaning(self._finish) == "length":
                    self._calls.cut()
                return events
            case "thinking":
                thought = {**block, "thinking": "".join(pieces) + rest}
                events = [Thinking(rest)] if rest else []
                return (
                    [*events, provider_block(self.provider, thought, thinking=True)]
                    if block.get("signature")
                    else events
                )
            case "redacted_thinking":
                return [provider_block(self.provider, block, thinking=True)]
        if "".join(pieces):
            block["input"] = readable("".join(pieces)) or {}
        return [provider_block(self.provider, block)]


def _kind(delta: Mapping[str, Any]) -> str:
    """What a delta adds to; empty if it does not show that."""
    return text_of(delta.get("type")) or next((kind for kind, field in DELTAS.items() if field in delta), "")


def _is_odd(delta: Mapping[str, Any], call: NativeCall | None) -> bool:
    """Whether a delta of an input has it elsewhere, or as another value than a text in the middle of that text."""
    given = delta.get("partial_json")
    if given and isinstance(given, str):
        return False
    if not given:
        return has_more(delta, _INPUT)
    return call is not None and not call.pieces.blank and call.values is None


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
