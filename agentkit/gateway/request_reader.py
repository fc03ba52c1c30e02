"""A client's wire as a value: how its requests are read, and how replies and errors are written for it. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from agentkit.errors import show_value
from agentkit.events import SourceEvent
from agentkit.gateway.client_conversation import ClientConversation
from agentkit.gateway.client_request import ClientRequest, RequestRefused
from agentkit.gateway.client_wire import ReplyWriter, WireName
from agentkit.gateway.request_fields import (
    Fields,
    UnsupportedField,
    client_tools,
    count,
    flag,
    invalid,
    mapping_at,
    number,
    refuse_unsupported,
    stops,
    text_at,
)
from agentkit.messages import Message
from agentkit.models.base import ModelRequest
from agentkit.toolspec import OutputSchema

_READ: Final = frozenset(
    ("model", "stream", "temperature", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call")
)
"""The fields that are read alike in all wires."""


@dataclass(frozen=True, slots=True)
class ClientWire:
    """One of the wires that clients speak.

    Args:
        name: its name.
        reader: creates what reads the conversation of one request.
        output: returns the schema of the reply, and the further fields about its form that are passed on.
        unsupported: the fields that a translated reply cannot honour.
        read_fields: the fields that are not passed on, since they are read.
        max_tokens: the fields with the limit of the reply; the first one that is given counts.
        stop: the field with the strings at which the reply ends; empty for none.
        new_writer: creates the writer of a streamed reply, from the request, a unique id and the time.
        write_whole: returns a whole reply, from the request, the events, a unique id and the time.
        error: returns the body of an error response.
    """

    name: WireName
    reader: Callable[[], ClientConversation]
    output: Callable[[Fields], tuple[OutputSchema | None, dict[str, Any]]]
    unsupported: Mapping[str, UnsupportedField]
    read_fields: frozenset[str]
    max_tokens: tuple[str, ...]
    stop: str
    new_writer: Callable[[ClientRequest, str, int], ReplyWriter]
    write_whole: Callable[[ClientRequest, Iterable[SourceEvent], str, int], dict[str, Any]]
    error: Callable[[RequestRefused], dict[str, Any]]

    def read(self, body: Fields) -> ClientRequest:
        """Read a request.

        Raises:
            RequestRefused: status 400; it is invalid, or has what this gateway cannot pass on.
        """
        refuse_unsupported(body, self.unsupported)
        if not (model := text_at(body.get("model"), "model")):
            raise invalid("model", f"expected a string with content, found {show_value(body.get('model'))}")
        tools, conversation = client_tools(body), self.reader()
        output, further = self.output(body)
        known = _READ | self.read_fields | self.unsupported.keys() | {self.stop, *self.max_tokens}
        others = {name: value for name, value in body.items() if name not in known and value is not None}
        request = ModelRequest(
            conversation.read(body),
            tools=tools.offered,
            tool_choice=tools.choice,
            parallel_tool_calls=tools.parallel,
            stream=bool(flag(body, "stream")),
            max_tokens=count(body, *self.max_tokens),
            temperature=number(body, "temperature"),
            stop=stops(body, self.stop),
            extra=others | further,
            output_schema=output,
        )
        usage = bool(flag(mapping_at(body.get("stream_options"), "stream_options"), "include_usage"))
        return ClientRequest(model, request, usage, conversation.foreign.by_url)

    def conversation(self, body: Fields) -> list[Message]:
        """Read only the conversation of a request, whatever its settings are.

        Raises:
            RequestRefused: status 400; it is invalid, or a server has stored a part of it.
        """
        return self.reader().read(body)

    def writer(self, asked: ClientRequest) -> ReplyWriter:
        """Create the writer of a streamed reply."""
        return self.new_writer(asked, uuid4().hex, int(time.time()))

    def whole(self, asked: ClientRequest, events: Iterable[SourceEvent]) -> dict[str, Any]:
        """Return a whole reply.

        Raises:
            RequestRefused: it failed.
        """
        return self.write_whole(asked, events, uuid4().hex, int(time.time()))
