"""One call made by another system's loop: answered by the processor, so that timeout, order and limits apply.

Knows the processor; knows no other system.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from agentkit.events import CallEnd
from agentkit.messages import ResultContent, TextPart, ToolCall
from agentkit.processor import ProcessorConfig
from agentkit.processor.admission import Added
from agentkit.processor.call_runner import CallRunner
from agentkit.processor.processor import call_id as new_call_id
from agentkit.rollout.records.scoring import replace_reward, reward_of
from agentkit.tool import ToolRegistry, ToolResult
from agentkit.tool.result import NO_CONTEXT, ToolContext
from agentkit.toolspec import ToolSpec

_LOG: Final = logging.getLogger("agentkit.interop")

LONGEST: Final = 3600.0
"""Seconds that a thread of another system waits for a call; the tool's own timeout ends it long before."""


class SingleAnswer(NamedTuple):
    """A call's result, and what the model reads of it."""

    result: ToolResult
    parts: ResultContent

    @property
    def text(self) -> str:
        """The text that the model reads; images are left out."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))


async def answer_call(
    registry: ToolRegistry,
    name: str,
    arguments: Mapping[str, Any],
    *,
    approve_all: bool = False,
    config: ProcessorConfig | None = None,
    state: Mapping[str, Any] = NO_CONTEXT,
    added: Added | None = None,
) -> SingleAnswer:
    """Run one call, as if a model had made it; wrong names and arguments become error results.

    Args:
        registry: the tools.
        name: the function name.
        arguments: as the model wrote them.
        approve_all: whether a call that needs a person's approval runs; otherwise it is refused.
        config: limits and timeouts.
        state: what a tool's `ToolContext` holds.
        added: returns the arguments that a tool gets besides the model's; None adds none.
    """
    call = ToolCall(new_call_id(), name, dict(arguments))
    runner = CallRunner(
        registry,
        ProcessorConfig() if config is None else config,
        lambda call: ToolContext(call.id, call.name, state, call.id),
        approved=[call.id] if approve_all else [],
        attended=False,
        added=added,
    )
    results: list[ToolResult] = []
    await runner.run([CallEnd(0, call)], lambda event: results.append(event.result))
    return SingleAnswer(_with_number(name, results[0]), runner.answers[0].content)


@dataclass(frozen=True, slots=True)
class CallableTool:
    """One tool for a peer whose tools keep nothing between two calls.

    Args:
        spec: what a model is shown.
        registry: it, among others.
        config: limits of its calls.
    """

    spec: ToolSpec
    registry: ToolRegistry
    config: ProcessorConfig | None

    async def answer(self, arguments: Mapping[str, Any]) -> SingleAnswer:
        """Run one call; see `answer_call`."""
        return await answer_call(self.registry, self.spec.name, arguments, config=self.config)


def callable_tools(tools: Any, config: ProcessorConfig | None) -> list[CallableTool]:
    """Each tool of what `ToolRegistry` accepts.

    Raises:
        SchemaError: a definition is wrong.
    """
    registry = ToolRegistry(tools)
    return [CallableTool(spec, registry, config) for spec in registry.offered_specs(None)]


def _with_number(name: str, result: ToolResult) -> ToolResult:
    """The result; without its reward if that is not a finite number, as in a rollout."""
    try:
        reward = reward_of(result.reward)
    except ValueError as e:
        _LOG.warning("%s: %s", name, e)
        return replace_reward(result, None, {"refused_reward": str(e)})
    return result if reward is result.reward else replace_reward(result, reward)
