"""One response of Amazon Bedrock's Converse API, as events. Knows boto3's dictionaries, not boto3."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from agentkit.checks.unicode import Joiner
from agentkit.events import SourceEvent, Text, Thinking, UnreadCall, Usage
from agentkit.formats.pieces import Pieces
from agentkit.models.finishes import finish, meaning
from agentkit.models.native import NativeCall, NativeCalls, provider_block
from agentkit.models.native_arguments import readable
from agentkit.models.wire import WireEvent, count_of, items_of, json_text_of, make_usage, mapping_of, text_of

SERVER_TOOL: Final = "server_tool_use"
"""The type of a call that the service itself answers in the same message, such as one of Nova's web grounding."""

MALFORMED_CALL: Final = "malformed_tool_use"
"""The reason for a stop that says that the model tried to call a tool in a way that the service could not read."""


class _Block:
    """A block that is open."""

    def __init__(self) -> None:
        self.call: NativeCall | None = None
        self.server: dict[str, Any] = {}  # a call that the service answers, or its answer
        self.joiner = Joiner()
        self.thinks = False
        self.thought, self.input = Pieces(), Pieces()
        self.signature = ""
        self.redacted = b""

    def say(self, text: str, *, thinking: bool = False) -> list[SourceEvent]:
        """More words or thinking."""
        self.thinks = thinking
        text = self.joiner.feed(text)
        return self._said(text)

    def close(self) -> list[SourceEvent]:
        """The rest of its words."""
        return self._said(self.joiner.close())

    def _said(self, text: str) -> list[SourceEvent]:
        if self.thinks:
            self.thought.add(text)
        return [Thinking(text) if self.thinks else Text(text)] if text else []

    def signed(self) -> dict[str, Any] | None:
        """The thinking as it can be sent back; None if it is not signed."""
        if self.redacted:
            return {"redactedContent": base64.b64encode(self.redacted).decode("ascii")}
        text = {"text": self.thought.text(), "signature": self.signature}
        return {"reasoningText": text} if self.signature else None


class ConverseWire:
    """One response of the Converse API.

    Args:
        provider: the provider that wrote the blocks.
        schemas: those of the offered tools, by name.
    """

    def __init__(self, provider: str, schemas: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> None:
        self.provider = provider
        self._calls = NativeCalls(provider, marks_ends=True, schemas=schemas)
        self._blocks: dict[int, _Block] = {}  # those that are open
        self._last: _Block | None = None
        self._usage: Usage | None = None
        self._finish: str | None = None
        self.done = self.over = False

    def feed(self, event: WireEvent) -> list[SourceEvent]:
        """One event of the stream; boto3 raises those that report an error."""
        for kind, value in event.items():
            fields = mapping_of(value)
            at = count_of(fields.get("contentBlockIndex"))
            match kind:
                case "contentBlockStart":
                    return self._start(at, mapping_of(fields.get("start")))
                case "contentBlockDelta":
                    return self._delta(at, mapping_of(fields.get("delta")))
                case "contentBlockStop":
                    return self._stop(at) if at in self._blocks else []
                case "messageStop":
                    self._finish = text_of(fields.get("stopReason")) or None
                    self.done = True  # complete; only the usage is still to come
                case "metadata":
                    self._usage = usage_of(mapping_of(fields.get("usage")))
                    self.over = self.done
                case "messageStart":
                    pass
                case _:
                    self._calls.unread(event)
        return []

    @property
    def called(self) -> bool:
        """Return whether the response has a call."""
        return bool(self._calls.all)

    def close(self) -> list[SourceEvent]:
        """The last events."""
        events = [event for block in self._blocks.values() for event in block.close()]
        if self._last is not None and self._last.call is not None and meaning(self._finish) == "length":
            self._last.call.end = "incomplete"  # its block's end shows no more than the limit
        if self._finish == MALFORMED_CALL and not self.called:
            events.append(UnreadCall("", ""))
        ending = finish(self._finish, calls=self.called) if self.done else None
        return events + self._calls.close(self._usage, ending)

    def _start(self, at: int, start: Mapping[str, Any]) -> list[SourceEvent]:
        block = self._last = self._blocks[at] = _Block()
        use, result = mapping_of(start.get("toolUse")), mapping_of(start.get("toolResult"))
        if result or use.get("type") == SERVER_TOOL:
            block.server = {"toolResult": {**result, "content": []}} if result else {"toolUse": dict(use)}
        elif use:
            block.call, events = self._calls.begin(text_of(use.get("toolUseId")), text_of(use.get("name")))
            return events
        else:
            self._calls.unread(start)
        return []

    def _delta(self, at: int, delta: Mapping[str, Any]) -> list[SourceEvent]:
        block = self._blocks.get(at)
        if block is None:
            block = self._last = self._blocks[at] = _Block()  # only calls have a start
        events: list[SourceEvent] = []
        for kind, value in delta.items():
            fields = mapping_of(value)
            match kind:
                case "text":
                    events += block.say(text_of(value))
                case "reasoningContent":
                    events += block.say(text_of(fields.get("text")), thinking=True)
                    block.signature += text_of(fields.get("signature"))
                    redacted = fields.get("redactedContent")
                    block.redacted += redacted if isinstance(redacted, bytes) else b""
                case "toolUse":
                    piece = json_text_of(fields.get("input"))
                    block.input.add(piece)
                    if block.call is not None:
                        events += self._calls.more(block.call, piece)
                    elif not block.server:
                        self._calls.lost.append(piece)
                case "toolResult" if "toolResult" in block.server:
                    block.server["toolResult"]["content"] += items_of(value)
                case "citation":
                    pass
                case _:
                    self._calls.unread(delta)
        return events

    def _stop(self, at: int) -> list[SourceEvent]:
        block = self._blocks.pop(at)
        if block.call is not None:
            block.call.end, block.call.has_arguments = "complete", True
            return []
        if block.server:
            if "toolUse" in block.server:
                block.server["toolUse"]["input"] = readable(block.input.text()) or {}
            return [provider_block(self.provider, block.server)]
        events, signed = block.close(), block.signed()
        if signed is not None:
            events.append(provider_block(self.provider, {"reasoningContent": signed}, thinking=True))
        return events


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """The API counts cached prompt tokens separately; here they are part of the input."""
    read, written = count_of(usage.get("cacheReadInputTokens")), count_of(usage.get("cacheWriteInputTokens"))
    return make_usage(
        prompt=count_of(usage.get("inputTokens")) + read + written,
        reply=count_of(usage.get("outputTokens")),
        cached=read,
        written=written,
        reasoning=0,
    )


def events_of(body: Mapping[str, Any]) -> list[WireEvent]:
    """A whole response as the events in which it would have been streamed."""
    events: list[WireEvent] = []
    message = mapping_of(mapping_of(body.get("output")).get("message"))
    for at, block in enumerate(items_of(message.get("content"))):
        start, deltas = _as_streamed(block)
        events += [{"contentBlockStart": {"start": start, "contentBlockIndex": at}}] if start else []
        events += [{"contentBlockDelta": {"delta": delta, "contentBlockIndex": at}} for delta in deltas]
        events.append({"contentBlockStop": {"contentBlockIndex": at}})
    if "stopReason" in body:
        events.append({"messageStop": {"stopReason": body["stopReason"]}})
    if "usage" in body:
        events.append({"metadata": {"usage": body["usage"]}})
    return events


def _as_streamed(block: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """The start of a whole block, empty if it has none, and its deltas."""
    for kind, value in block.items():
        fields = mapping_of(value)
        match kind:
            case "toolUse":
                start = {key: field for key, field in fields.items() if key != "input"}
                return {kind: start}, [{kind: {"input": json_text_of(fields.get("input"))}}]
            case "toolResult":
                start = {key: field for key, field in fields.items() if key != "content"}
                return {kind: start}, [{kind: fields.get("content")}]
            case "reasoningContent" if thought := mapping_of(fields.get("reasoningText")):
                return {}, [{kind: {key: text}} for key, text in thought.items()]
            case "citationsContent":
                return {}, [{"text": piece.get("text")} for piece in items_of(fields.get("content"))]
    return {}, [block]
