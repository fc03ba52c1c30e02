"""Runs as the events of pages: AG-UI 1.0 and the AI SDK's UI message stream."""

from agentkit.gateway.events.ag_ui import AgUiRun, sse

__all__ = ["AgUiRun", "sse"]
