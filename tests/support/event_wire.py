"""A client's wire for tests: requests in the shape of chat completions, replies as the events themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentkit.agent import messages_from
from agentkit.events import Finish, SourceEvent, Text, Thinking, Usage, to_json
from agentkit.gateway.agent_model import AgentModel
from agentkit.gateway.client_request import ClientRequest, RequestRefused
from agentkit.gateway.client_wire import ReplyWriter, WireName
from agentkit.gateway.exchanges import Exchange, NoUpstream, Route
from agentkit.messages import Message
from agentkit.models import ModelRequest
from agentkit.toolspec import ToolSpec


class EventWire:
    """Writes each event as a line of JSON."""

    name: WireName = "chat"

    def read(self, body: Mapping[str, Any]) -> ClientRequest:
        tools = [ToolSpec(tool["function"]["name"], "", {}) for tool in body.get("tools", ())]
        request = ModelRequest(
            messages_from(body["messages"]),
            tools,
            tool_choice=body.get("tool_choice", "auto"),
            stream=body.get("stream", False),
        )
        return ClientRequest(body["model"], request)

    def conversation(self, body: Mapping[str, Any]) -> Sequence[Message]:
        return self.read(body).request.messages

    def writer(self, asked: ClientRequest) -> ReplyWriter:
        return _Lines()

    def whole(self, asked: ClientRequest, events: Iterable[SourceEvent]) -> dict[str, Any]:
        came = list(events)
        return {
            "text": "".join(e.text for e in came if isinstance(e, Text)),
            "thinking": "".join(e.text for e in came if isinstance(e, Thinking)),
            "usage": [e.input_tokens + e.output_tokens for e in came if isinstance(e, Usage)],
            "finish": [e.reason for e in came if isinstance(e, Finish)],
        }

    def error(self, error: RequestRefused) -> dict[str, Any]:
        return {"error": {"code": error.code, "message": error.message, "status": error.status}}


class _Lines:
    def start(self) -> bytes:
        return b"start\n"

    def write(self, event: SourceEvent) -> bytes:
        return json.dumps(to_json(event)).encode() + b"\n"

    def fail(self, error: RequestRefused) -> bytes:
        return json.dumps(EventWire().error(error)).encode() + b"\n"


def exchange(*said: str | Mapping[str, Any], headers: Mapping[str, str] | None = None, **body: Any) -> Exchange:
    """A request whose conversation has these messages; strings are the user's."""
    messages = [{"role": "user", "content": one} if isinstance(one, str) else dict(one) for one in said]
    whole = {"model": "shop", "messages": messages, **body}
    return Exchange(EventWire(), whole, json.dumps(whole).encode(), headers or {}, Route("shop", NoUpstream()))


async def whole_reply(served: AgentModel, asked: Exchange) -> dict[str, Any]:
    """The body of a whole reply, parsed."""
    answer = await served.answer(asked)
    return json.loads(b"".join([piece async for piece in answer.pieces]))  # type: ignore[no-any-return]
