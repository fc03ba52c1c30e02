"""The three wires that clients speak, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agentkit.gateway.chat_client import ChatClient
from agentkit.gateway.client_wire import ClientWire, WireName
from agentkit.gateway.messages_client import MessagesClient
from agentkit.gateway.responses_client import ResponsesClient

WIRES: Final[Mapping[WireName, ClientWire]] = MappingProxyType(
    {"chat": ChatClient(), "responses": ResponsesClient(), "messages": MessagesClient()}
)
