"""The Responses API with stored conversations: a request names the last response, and has only what is new since.

The response's id is kept in the message that it became, with a digest of the conversation up to its end as the provider
knows it. If the conversation is no longer the same, all of it is sent. So threads can be resumed, forked and edited.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from agentkit.errors import ProviderError
from agentkit.events import CallEnd, CallError, Finish, ProviderBlock, SourceEvent, Text
from agentkit.messages import AssistantMessage, Message, ProviderPart, ToolCall
from agentkit.models.base import ModelRequest
from agentkit.models.native import provider_block
from agentkit.models.responses import STATE, ResponsesModel, reply_items
from agentkit.models.responses_wire import ResponsesWire
from agentkit.models.wire import text_of

_LOG: Final = logging.getLogger("agentkit.models")

_BY_HAND: Final = frozenset(("previous_response_id", "conversation", "input"))
"""Fields by which a program itself says what the provider is to continue."""

_REFUSED: Final = ("not_found", "bad_request")
"""The kinds of errors with which a provider refuses to continue a response: OpenAI's `previous_response_not_found` has
status 400; servers that store nothing, and organizations without data retention, refuse the field."""


class _StatefulWire(ResponsesWire):
    """A response whose id is reported."""

    def _complete(self, response: Mapping[str, Any]) -> list[SourceEvent]:
        events, id = super()._complete(response), text_of(response.get("id"))
        return [*events, provider_block(self.provider, {"type": STATE, "id": id})] if id and self._items.all else events


class StatefulResponses(ResponsesModel):
    """A model on the Responses API that continues the responses which the provider has stored (`store` is on)."""

    wire = _StatefulWire

    async def stream(self, request: ModelRequest) -> AsyncGenerator[SourceEvent, None]:
        """Answer a request; sent in full if the provider refuses to continue the last response."""
        whole = self._body(request).get("input") or []
        by_hand = not _BY_HAND.isdisjoint([*(self.settings.extra or ()), *request.extra])
        continued = {} if by_hand else _continued(request.messages, whole, self.provider)
        for fields in (continued, {}) if continued else ({},):
            begun = False
            try:
                async with aclosing(self._reply(request, whole, fields)) as events:
                    async for event in events:
                        begun = True
                        yield event
                return
            except ProviderError as error:
                if begun or not fields or error.kind not in _REFUSED:
                    raise
                _LOG.info("%s; the whole conversation is sent", error)

    async def _reply(
        self, request: ModelRequest, whole: Sequence[Any], fields: Mapping[str, Any]
    ) -> AsyncGenerator[SourceEvent, None]:
        """Answer a request with these fields; before the end comes the block with which a later one continues."""
        said, calls, id = list[str](), list[ToolCall](), ""
        asked = replace(request, extra={"store": True, **fields, **request.extra})
        async with aclosing(super().stream(asked)) as events:
            async for event in events:
                match event:
                    case Text(text):
                        said.append(text)
                    case CallEnd(_, call) | CallError(_, _, _, call):
                        calls.append(call)
                    case ProviderBlock(_, {"type": "stored_response", "id": str(id)}):
                        continue
                    case Finish("stop" | "tool_calls") if id:
                        state = {"items": len(whole), "digest": _digest(whole, "".join(said), calls)}
                        yield ProviderBlock(self.provider, {"type": STATE, "id": id, **state})
                yield event


def _continued(messages: Sequence[Message], whole: Sequence[Any], provider: str) -> dict[str, Any]:
    """Return the fields that continue the last stored response; empty if the conversation up to its end has changed.

    Args:
        messages: the conversation.
        whole: its input items.
        provider: the provider, as in the blocks of its responses.
    """
    for message in [one for one in reversed(messages) if isinstance(one, AssistantMessage)]:
        for part in message.content:
            if isinstance(part, ProviderPart) and part.provider == provider and part.data.get("type") == STATE:
                start, own = part.data["items"], reply_items(message, provider)
                new = whole[start + len(own) :]
                same = part.data["digest"] == _digest(whole[:start], message.text, message.calls)
                same = same and whole[start : start + len(own)] == own
                return {"previous_response_id": part.data["id"], "input": new} if same and new else {}
    return {}


def _digest(items: Sequence[Any], text: str, calls: Sequence[ToolCall]) -> str:
    """Return the identity of a conversation: the items that were sent, and the reply."""
    reply = [text, [[call.id, call.name, call.arguments] for call in calls]]
    return sha256(json.dumps([items, reply], sort_keys=True, default=str).encode()).hexdigest()[:32]
