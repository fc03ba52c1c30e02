"""From a response's events to its answers: each call is run at most once and answered exactly once.

Knows the registry and the text formats; knows no model and no store. `config` is the policy, `response` reads events
and is pure, `execution` runs calls, `workers` has the threads for plain functions, `turn` puts it all in order, and
`processor` is the entry point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.foreign.absent_imports import explained_module

if TYPE_CHECKING:
    from agentkit.processor.config import ProcessorConfig
    from agentkit.processor.inbox import Source
    from agentkit.processor.processor import ResponseProcessor
    from agentkit.processor.sources import More
    from agentkit.processor.streams import EventStream
    from agentkit.processor.tool_run import ask_outcome
    from agentkit.processor.turn import Turn

__all__ = ["EventStream", "More", "ProcessorConfig", "ResponseProcessor", "Source", "Turn", "ask_outcome"]

explained_module(
    __name__,
    homes={
        "agentkit.processor.config": "ProcessorConfig",
        "agentkit.processor.inbox": "Source",
        "agentkit.processor.processor": "ResponseProcessor",
        "agentkit.processor.tool_run": "ask_outcome",
        "agentkit.processor.sources": "More",
        "agentkit.processor.streams": "EventStream",
        "agentkit.processor.turn": "Turn",
    },
)
