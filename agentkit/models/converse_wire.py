"""One response of Amazon Bedrock's Converse API, read as one of the Messages API: its blocks have the same life."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from agentkit.events import SourceEvent, UnreadCall
from agentkit.models.messages_wire import MessagesWire
from agentkit.models.wire import WireEvent, count_of, items_of, mapping_of, text_of

MALFORMED_CALL: Final = "malformed_tool_use"
"""The reason for a stop that says that the model tried to call a tool in a way that the service could not read."""

USAGE: Final[Mapping[str, str]] = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadInputTokens": "cache_read_input_tokens",
    "cacheWriteInputTokens": "cache_creation_input_tokens",
}
"""The counts of tokens, and what the Messages API calls them. Both count cached tokens separately."""


class ConverseWire(MessagesWire):
    """One response of the Converse API; its events are boto3's dictionaries, and its blocks those of Messages."""

    def __init__(self, provider: str, schemas: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> None:
        super().__init__(provider, schemas)
        self._redacted: defaultdict[int, bytes] = defaultdict(bytes)  # encrypted thinking, by its block
        self._results: dict[int, dict[str, Any]] = {}  # what a tool of the service returns, by its block

    def feed(self, event: WireEvent) -> list[SourceEvent]:
        """One event of the stream; boto3 raises those that report an error."""
        return [found for one in self._as_messages(event) for found in super(ConverseWire, self).feed(one)]

    def close(self) -> list[SourceEvent]:
        """The last events."""
        malformed = self._finish == MALFORMED_CALL and not self.called
        return [*([UnreadCall("", "")] if malformed else []), *super().close()]

    def _as_messages(self, event: WireEvent) -> Iterator[WireEvent]:
        ((kind, value),) = [*event.items()][:1] or [("", None)]
        fields = mapping_of(value)
        at = count_of(fields.get("contentBlockIndex"))
        match kind:
            case "contentBlockStart":
                yield from self._start_of(at, mapping_of(fields.get("start")))
            case "contentBlockDelta":
                yield from self._deltas(at, mapping_of(fields.get("delta")))
            case "contentBlockStop":
                if at in self._redacted:
                    data = base64.b64encode(self._redacted.pop(at)).decode("ascii")
                    yield _started(at, {"type": "redacted_thinking", "data": data})
                elif at in self._results:
                    yield _started(at, self._results.pop(at))
                yield {"type": "content_block_stop", "index": at}
            case "messageStop":
                yield {"type": "message_delta", "delta": {"stop_reason": fields.get("stopReason")}}
            case "metadata":
                counts = mapping_of(fields.get("usage"))
                yield {"type": "message_delta", "usage": {USAGE[k]: v for k, v in counts.items() if k in USAGE}}
                yield {"type": "message_stop"}
            case _ if kind != "messageStart":
                yield event

    def _start_of(self, at: int, block: Mapping[str, Any]) -> Iterator[WireEvent]:
        """The start of a block; of a whole response, all of it."""
        use, result = mapping_of(block.get("toolUse")), mapping_of(block.get("toolResult"))
        if use:
            kind = "server_tool_use" if use.get("type") == "server_tool_use" else "tool_use"  # Claude says `tool_use`
            named = {"id": use.get("toolUseId"), "name": use.get("name"), "input": use.get("input", {})}
            yield _started(at, {"type": kind, **named})
        elif result:
            content = {"content": list(items_of(result.get("content"))), "status": result.get("status", "success")}
            kept = {"type": "server_tool_result", "tool_use_id": result.get("toolUseId"), **content}
            self._results[at] = kept | ({"kind": result["type"]} if "type" in result else {})
        elif cited := items_of(mapping_of(block.get("citationsContent")).get("content")):
            yield from (one for piece in cited for one in self._deltas(at, piece))
        else:
            thought = mapping_of(mapping_of(block.get("reasoningContent")).get("reasoningText"))
            pieces: list[Mapping[str, Any]] = [{"reasoningContent": {key: text}} for key, text in thought.items()]
            yield from (one for piece in pieces or [block] for one in self._deltas(at, piece))

    def _deltas(self, at: int, delta: Mapping[str, Any]) -> Iterator[WireEvent]:
        for kind, value in delta.items():
            fields = mapping_of(value)
            found: dict[str, Any] | None = None
            match kind:
                case "text":
                    found = {"type": "text_delta", "text": value}
                case "toolUse":
                    found = {"type": "input_json_delta", "partial_json": fields.get("input")}
                case "reasoningContent" if isinstance(redacted := fields.get("redactedContent"), bytes):
                    self._redacted[at] += redacted
                case "reasoningContent" if "signature" in fields:
                    found = {"type": "signature_delta", "signature": fields["signature"]}
                case "reasoningContent":
                    found = {"type": "thinking_delta", "thinking": text_of(fields.get("text"))}
                case "toolResult" if at in self._results:
                    self._results[at]["content"] += items_of(value)
                case _ if kind != "citation":
                    found = {"type": kind, kind: value}  # of an unknown shape
            if found is not None:
                yield {"type": "content_block_delta", "index": at, "delta": found}


def _started(at: int, block: Mapping[str, Any]) -> WireEvent:
    return {"type": "content_block_start", "index": at, "content_block": block}


def events_of(body: Mapping[str, Any]) -> list[WireEvent]:
    """A whole response as events; a block's start has all of it."""
    events: list[WireEvent] = []
    for at, block in enumerate(items_of(mapping_of(mapping_of(body.get("output")).get("message")).get("content"))):
        events.append({"contentBlockStart": {"start": block, "contentBlockIndex": at}})
        events.append({"contentBlockStop": {"contentBlockIndex": at}})
    if "stopReason" in body:
        events.append({"messageStop": {"stopReason": body["stopReason"]}})
    return [*events, {"metadata": {"usage": body.get("usage")}}]
