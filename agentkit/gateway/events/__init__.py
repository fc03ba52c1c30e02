"""Runs as the events of pages, AG-UI 1.0 and the AI SDK's UI message stream, and what a page asks."""

from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.events.ag_ui import AgUiRun, sse
from agentkit.gateway.events.ag_ui_request import input_of
from agentkit.gateway.events.ai_sdk import HEADERS, AiSdkRun
from agentkit.gateway.events.ai_sdk_request import chat_input_of
from agentkit.gateway.events.page_request import PageRequest, check_decisions
from agentkit.gateway.events.page_streams import ag_ui_stream, ai_sdk_stream

__all__ = [
    "HEADERS",
    "AgUiRun",
    "AiSdkRun",
    "PageRequest",
    "RequestRefused",
    "ag_ui_stream",
    "ai_sdk_stream",
    "chat_input_of",
    "check_decisions",
    "input_of",
    "sse",
]
