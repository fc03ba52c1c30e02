"""The three wires that clients speak, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agentkit.gateway.chat_client import CHAT
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.messages_client import MESSAGES
from agentkit.gateway.request_reader import ClientWire
from agentkit.gateway.responses_client import RESPONSES

WIRES: Final[Mapping[WireName, ClientWire]] = MappingProxyType({one.name: one for one in (CHAT, RESPONSES, MESSAGES)})
