"""Anthropic's Messages API."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Final

from agentkit.events import TAKEN_BACK, Finish, FinishReason, SourceEvent, Text, Thinking, Usage
from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    ProviderPart,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
)
from agentkit.models import fitting, prefill
from agentkit.models.base import ModelRequest
from agentkit.models.caching import marked
from agentkit.models.native import (
    CONTRADICTED,
    ErrorInStream,
    NativeCall,
    NativeCalls,
    WireEvent,
    bare,
    contradict,
    count_of,
    finish,
    items_of,
    json_text_of,
    last_events,
    mapping_of,
    provider_block,
    text_of,
)
from agentkit.models.native_arguments import ArgumentsError, read_arguments
from agentkit.models.provider import RemoteModel
from agentkit.models.shared_indexes import SharedIndexes
from agentkit.models.vendors import ANTHROPIC
from agentkit.schemas import flavours
from agentkit.unicode import Joiner, clean

MAX_TOKENS: Final = 16_384
"""Sent if `max_tokens` is not set: the API requires a number. Enough for a long file in one call; every model from
Claude 3.7 on accepts it (the smallest limit among them is 32,000)."""

IDS: Final = fitting.IdRule(limit=64, allowed=lambda id: re.fullmatch("[a-zA-Z0-9_-]+", id) is not None)

FINISHES: Final[Mapping[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "refusal": "refusal",
}

# ---------------------------------------------------------------- request


def messages_body(request: ModelRequest, model: str, provider: str) -> dict[str, Any]:
    """The body of a request, except `max_tokens` and `temperature`."""
    named = fitting.named_tool(request)
    messages = anthropic_messages(request.messages, provider)
    body: dict[str, Any] = {"model": model, "messages": messages, "stream": request.stream}
    body["system"] = fitting.system_text(request.messages) or None
    body["stop_sequences"] = list(request.stop) or None
    if request.tools:
        body["tools"] = [flavours.anthropic(spec) for spec in request.tools]
        body["tool_choice"] = _tool_choice(request, named)
    elif names := _called(messages):  # a history with calls is refused without tools
        body["tools"] = [{"name": n, "input_schema": {"type": "object"}} for n in names]
        body["tool_choice"] = {"type": "none"}
    if request.output_schema is not None:
        body["output_config"] = {"format": flavours.anthropic_output(request.output_schema)}
    return body


def _tool_choice(request: ModelRequest, named: str | None) -> dict[str, Any] | None:
    kind = {"auto": "auto", "required": "any", "none": "none"}.get(request.tool_choice, "tool")
    choice: dict[str, Any] = {"type": kind, "name": named} if named else {"type": kind}
    if request.parallel_tool_calls is not None and kind != "none":
        choice["disable_parallel_tool_use"] = not request.parallel_tool_calls
    return choice


def _called(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the tools called in a conversation, in order."""
    return list(dict.fromkeys(b["name"] for m in messages for b in m["content"] if b["type"] == "tool_use"))


def anthropic_messages(messages: Sequence[Message], provider: str) -> list[dict[str, Any]]:
    """A conversation as alternating user and assistant messages; results come first. System text is omitted."""
    fitted = [m for m in fitting.conversation(messages, IDS) if not isinstance(m, SystemMessage)]
    rendered: list[dict[str, Any]] = []
    for at, message in enumerate(fitted):
        if isinstance(message, AssistantMessage):
            role, blocks = "assistant", _assistant(message, provider, last=at == len(fitted) - 1)
        elif isinstance(message, ToolMessage):
            role, blocks = "user", [_result(message)]
        else:
            role, blocks = "user", list(_content(message.content))
        if blocks and rendered and rendered[-1]["role"] == role:
            rendered[-1]["content"] += blocks
        elif blocks:
            rendered.append({"role": role, "content": blocks})
    if rendered and rendered[-1]["role"] == "assistant" and "text" in (end := rendered[-1]["content"][-1]):
        end["text"] = end["text"].rstrip()  # "final assistant content cannot end with trailing whitespace"
    if rendered and rendered[0]["role"] == "assistant":
        rendered.insert(0, {"role": "user", "content": [{"type": "text", "text": "(the conversation continues)"}]})
    return rendered


def _content(parts: Sequence[TextPart | ImagePart]) -> Iterator[dict[str, Any]]:
    """Blocks of text and images; blank text, which the API refuses, is omitted."""
    for part in parts:
        if isinstance(part, ImagePart):
            yield {"type": "image", "source": _image_source(part)}
        elif part.text.strip():
            yield {"type": "text", "text": clean(part.text)}


def _image_source(image: ImagePart) -> dict[str, Any]:
    inline = re.match(r"data:([^;,]+);base64,", image.url or "")
    if inline and image.url:
        return {"type": "base64", "media_type": inline[1], "data": image.url[inline.end() :]}
    if image.url is not None:
        return {"type": "url", "url": image.url}
    return {"type": "base64", "media_type": image.media_type, "data": image.base64}


def _result(message: ToolMessage) -> dict[str, Any]:
    content = list(_content(message.content))
    answer = {"type": "tool_result", "tool_use_id": message.call_id, "is_error": message.error is not None}
    return {**answer, "content": content} if content else answer


def _assistant(message: AssistantMessage, provider: str, *, last: bool) -> list[dict[str, Any]]:
    own = {at: p for at, p in enumerate(message.content) if isinstance(p, ProviderPart) and p.provider == provider}
    callers = {part.call_id: part.data for part in own.values() if part.call_id}
    kept = _paired({at: part.data for at, part in own.items() if not part.call_id}, last=last)
    blocks: list[dict[str, Any]] = []
    for at, part in enumerate(message.content):
        match part:
            case TextPart(text) if text.strip():
                blocks.append({"type": "text", "text": clean(text)})
            case ToolCall():
                blocks.append(_tool_use(part, callers))
            case ThinkingPart(_, by, data) if by == provider and data:
                blocks.append(dict(data))
            case ProviderPart() if at in kept:
                blocks.append(dict(kept[at]))
    while blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        blocks.pop()  # a message must not end with thinking
    return blocks


def _tool_use(call: ToolCall, callers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    arguments = json.loads(fitting.json_text(fitting.arguments_of(call)))
    plain = {"type": "tool_use", "id": call.id, "name": fitting.fit_name(call.name), "input": arguments}
    return {**callers.get(call.id, {}), **plain}


def _paired(blocks: Mapping[int, Mapping[str, Any]], *, last: bool) -> dict[int, Mapping[str, Any]]:
    """The server tools' blocks that may stay, by their places: calls and the answers after them, with unique ids.

    Calls without an answer stay in the conversation's last message, so that the provider can continue them.
    """
    kept: dict[int, Mapping[str, Any]] = {}
    begun: dict[Any, int] = {}  # the place of each open call's block
    used: Counter[Any] = Counter()

    def keep(at: int) -> Any:
        id = blocks[at].get("id")
        used[id] += 1
        unique = id if used[id] == 1 else f"{id}_{used[id]}"  # messages that were joined may contain one id twice
        kept[at] = {**blocks[at], "id": unique}
        return unique

    for at, block in blocks.items():
        if "tool_use_id" in block:
            call = begun.pop(block["tool_use_id"], None)
            if call is not None:
                kept[at] = {**block, "tool_use_id": keep(call)}
        elif text_of(block.get("type")).endswith("_tool_use"):
            begun[block.get("id")] = at
        else:
            kept[at] = block
    for at in begun.values() if last else ():
        keep(at)
    return kept


# ---------------------------------------------------------------- response


class MessagesWire:
    """One response of the Messages API.

    Args:
        provider: the provider that wrote the blocks.
        bare: the names of the offered tools that take no arguments.
    """

    def __init__(self, provider: str, bare: Collection[str] = ()) -> None:
        self.provider = provider
        self._calls = NativeCalls(provider, marks_ends=True, bare=bare)
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, list[str]] = {}
        self._joiners: dict[int, Joiner] = {}
        self._call_at: dict[int, NativeCall] = {}  # stopped ones as well
        self._early: dict[int, list[str]] = {}
        self._shared = SharedIndexes()
        self._usage: dict[str, Any] = {}
        self._finish: str | None = None
        self.done = self.over = False

    def feed(self, event: WireEvent) -> list[SourceEvent]:
        """One event of the stream."""
        kind = text_of(event.get("type"))
        reason = text_of(mapping_of(event.get("delta")).get("stop_reason")) if kind == "message_delta" else ""
        if reason:
            self._calls.held = FINISHES.get(reason) in TAKEN_BACK
        stands = self._calls.go_on() if reason or kind.startswith("content_block_") else []
        return stands + self._event(kind, event)

    def _event(self, kind: str, event: WireEvent) -> list[SourceEvent]:
        at = count_of(event.get("index"))
        match kind:
            case "message_start":
                if self._joiners:
                    raise ErrorInStream.of({"message": "another message starts in the middle of this one"})
                message = mapping_of(event.get("message"))
                self._count(mapping_of(message.get("usage")))
                self._calls.held = FINISHES.get(text_of(message.get("stop_reason"))) in TAKEN_BACK
            case "content_block_start" if text_of(mapping_of(event.get("content_block")).get("type")):
                return self._start(at, mapping_of(event.get("content_block")))
            case "content_block_delta":
                return self._delta(at, mapping_of(event.get("delta")))
            case "content_block_stop" if at in self._blocks:
                return self._stop(at)
            case "message_delta":
                self._finish = text_of(mapping_of(event.get("delta")).get("stop_reason")) or self._finish
                self._count(mapping_of(event.get("usage")))
                self.done = self.done or self._finish is not None  # complete; only `message_stop` is still to come
            case "message_stop":
                self.done = self.over = True
            case "error":
                raise ErrorInStream.of(event.get("error"))
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
        for text in map("".join, self._early.values()):  # arguments of a call that nothing names
            events += self._calls.more(self._calls.begin("", "")[0], text)
        ending: Finish | None = None
        if self.done:
            ending = finish(FINISHES, self._finish, calls=self.called)
        return events + last_events(self._calls, usage_of(self._usage) if self._usage else None, ending)

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Counts are totals so far; an omitted count is unchanged."""
        self._usage.update({k: v for k, v in usage.items() if v is not None})

    def _start(self, at: int, block: Mapping[str, Any]) -> list[SourceEvent]:
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
                call, events = self._calls.begin(text_of(block.get("id")), text_of(block.get("name")))
                self._call_at[at] = call
                caller = mapping_of(block.get("caller"))
                if caller and caller != {"type": "direct"}:  # a server tool's code made the call; the API requires it
                    call.extras["caller"] = caller
                self._pieces[at] = self._early.pop(at, [])
                self._shared.begin(at, call, mapping_of(block.get("input")))
                return events + self._calls.more(call, "".join(self._pieces[at]))
        return []

    def _delta(self, at: int, delta: Mapping[str, Any]) -> list[SourceEvent]:
        block = self._blocks.get(at)
        match delta.get("type"):
            case "text_delta" if block is None or block.get("type") == "text":
                return self._implied(at, "text") + self._say(at, Text, text_of(delta.get("text")))
            case "thinking_delta" if block is None or block.get("type") == "thinking":
                return self._implied(at, "thinking") + self._say(at, Thinking, text_of(delta.get("thinking")))
            case "signature_delta" if block is not None:
                signature, piece = text_of(block.get("signature")), text_of(delta.get("signature"))
                block["signature"] = piece if piece == signature else signature + piece
            case "input_json_delta":
                return self._hand_over(at, text_of(delta.get("partial_json")))
            case "compaction_delta" if block is not None:
                block["content"] = text_of(block.get("content")) + text_of(delta.get("content"))
        return []

    def _implied(self, at: int, kind: str) -> list[SourceEvent]:
        """Start a block whose own start did not come."""
        return [] if at in self._blocks else self._start(at, {"type": kind})

    def _hand_over(self, at: int, piece: str) -> list[SourceEvent]:
        """More input of a call or of a server tool. Input that comes before its block waits for it."""
        if at in self._blocks:
            self._pieces[at].append(piece)
        elif at not in self._call_at:
            self._early.setdefault(at, []).append(piece)
        call = self._call_at.get(at)
        told = self._shared.decides(at) and call is not None and not call.doubt
        return [] if call is None or told else self._calls.more(call, piece)

    def _leave(self, at: int) -> list[SourceEvent]:
        """A block is over, though its end did not come: another one starts in its place, or nothing more comes."""
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

    def _stop(self, at: int) -> list[SourceEvent]:
        block, pieces, rest = self._blocks.pop(at), self._pieces.pop(at), self._joiners[at].close()
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
                return whole + self._calls.end(call)
            case "thinking":
                thought = {**block, "thinking": "".join(pieces) + rest}
                events: list[SourceEvent] = [Thinking(rest)] if rest else []
                return (
                    [*events, provider_block(self.provider, thought, thinking=True)]
                    if block.get("signature")
                    else events
                )
            case "redacted_thinking":
                return [provider_block(self.provider, block, thinking=True)]
        if "".join(pieces):
            block["input"] = _input("".join(pieces))
        return [provider_block(self.provider, block)]


def _whole_input(block: Mapping[str, Any]) -> str:
    """The input of a call whose block has it complete, without deltas; empty if it has not."""
    given = block.get("input")
    return "" if given == {} else json_text_of(given)


def _input(text: str) -> Mapping[str, Any]:
    try:
        return read_arguments(text).values
    except ArgumentsError:
        return {}


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """The usage of a message. Anthropic counts cached prompt tokens separately; here they are part of the input."""
    read, written = count_of(usage.get("cache_read_input_tokens")), count_of(usage.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=count_of(usage.get("input_tokens")) + read + written,
        output_tokens=count_of(usage.get("output_tokens")),
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=count_of(mapping_of(usage.get("output_tokens_details")).get("thinking_tokens")),
    )


def events_of(body: Mapping[str, Any]) -> list[WireEvent]:
    """A whole message as the events in which it would have been streamed.

    A call that ends a message which reached its limit has no end: its input may be incomplete.
    """
    if body.get("type") == "error":
        return [body]
    events: list[WireEvent] = [{"type": "message_start", "message": {k: body.get(k) for k in ("usage", "stop_reason")}}]
    blocks = items_of(body.get("content"))
    reason = body.get("stop_reason")
    for at, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        cut = at == len(blocks) - 1 and FINISHES.get(text_of(reason)) == "length" and block.get("type") == "tool_use"
        if not cut:
            events.append({"type": "content_block_stop", "index": at})
    if body.get("type") == "message":
        events += [{"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}]
    return events


# ---------------------------------------------------------------- model


class AnthropicModel(RemoteModel):
    """A Claude model on the Messages API, or with `base_url` any server that speaks it."""

    prefix = "anthropic"
    vendor = ANTHROPIC
    method = "messages"
    required: ClassVar = {"messages": [], "max_tokens": 1}
    as_streamed = staticmethod(events_of)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[SourceEvent, None]:
        """Answer a request. A continuation of its last message continues all of it, even white space at its end."""
        untrimmed = prefill.Untrimmed(prefill.space_after(request.messages))
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                if not isinstance(event, Text):
                    yield event
                elif text := untrimmed.feed(event.text):
                    yield Text(text)

    def _continues(self) -> bool:
        return self.at_home and prefill.claude_continues(self.model, self.settings.extra or {})

    def _asked(self, request: ModelRequest) -> dict[str, Any]:
        output = request.output_schema
        if output is not None and not (self.at_home and flavours.anthropic_output(output)):
            request = fitting.output_in_prompt(request, constrained=False)
        body = messages_body(request, self.model, self.provider)
        body["messages"] = prefill.trimmed(body["messages"])
        max_tokens = self._max_tokens(request)
        body["max_tokens"] = MAX_TOKENS if max_tokens is None else max_tokens
        return marked(body) if self.settings.cache else body

    def _wire(self, offered: Mapping[str, Mapping[str, Any]]) -> MessagesWire:
        return MessagesWire(self.provider, bare(offered))
