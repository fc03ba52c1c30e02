"""Arguments passed in the wrong place: to a run, for example, instead of its agent, model or tools. Tables only.

A callee is a callable that takes arguments: `Agent(…)`, `agent.run(…)`, `model(…)`. The error for an unknown argument
says which other callee takes it, including its names in other toolkits (`agentkit.foreign.argument_names`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, Literal, NamedTuple

from agentkit.foreign import argument_names
from agentkit.foreign.attributes import Words

CalleeName = Literal["Agent", "run", "model", "ProcessorConfig", "Budget", "ThreadManager", "run_thread", "tool"]


class Callee(NamedTuple):
    """A callable that takes arguments.

    Attributes:
        takes: their names.
        others: their names in other toolkits.
        place: where to pass one of them, in words.
    """

    takes: tuple[str, ...]
    others: Words
    place: str


_SETTINGS: Final = ("tool_choice", "parallel_tool_calls", "stream", "max_tokens", "temperature", "stop", "extra")
_RUN: Final = ("context", "cancel", "decisions", *_SETTINGS)
_RETRIES: Final = ("auto_continue", "output_retries", "reply_retries")
_OUTPUT: Final = ("output_mode", "calls_with_output")
_LIMITS: Final = ("max_turns", "max_repeats", *_RETRIES, "budget", "max_depth", "guards", "offered_tools", *_OUTPUT)

CALLEES: Final[Mapping[CalleeName, Callee]] = {
    "Agent": Callee(
        ("model", "tools", "system", "config", "output_type", *_LIMITS, "hooks", "name", *_SETTINGS),
        argument_names.AGENT,
        "it belongs to the agent: Agent(…, {}=…)",
    ),
    "run": Callee(("prompt", "output_type", *_RUN), argument_names.RUN, "it belongs to the run: agent.run(…, {}=…)"),
    "ProcessorConfig": Callee(
        (
            *("native", "formats", "execute", "strategy", "max_calls", "timeout", "result_role", "starts_thinking"),
            *("in_code", "recover", "lenient_native", "max_output", "keep", "requires_approval", "attended"),
        ),
        argument_names.PROCESSOR_CONFIG,
        "it is ProcessorConfig({}=…), passed as Agent(…, config=…) or run_thread(…, processor_config=…)",
    ),
    "Budget": Callee(
        ("tokens", "cost", "seconds", "tool_calls", "prices"),
        argument_names.BUDGET,
        "it is Budget({}=…), passed to the agent as budget=",
    ),
    "tool": Callee(
        (
            *("timeout", "terminates", "requires_approval", "idempotent", "reconcile", "max_output", "keep"),
            *("exclusive", "one_thread"),
        ),
        {},
        "it is set for each tool: @openapi_schema({}=…)",
    ),
    "model": Callee(
        (
            *("name", "format", "constrained", "base_url", "server", "api_key", "timeout", "max_response", "linger"),
            *("max_retries", "max_tokens", "temperature", "cache", "extra", "headers", "http_client", "continues"),
            *("stateful", "sleep", "dice"),
        ),
        argument_names.MODEL,
        "it belongs to the model: agentkit.model('openai:…', {}=…)",
    ),
    "ThreadManager": Callee(
        ("store", "registry", "hooks", "compaction"),
        argument_names.THREAD_MANAGER,
        "conversations are kept by agentkit.ThreadManager({}=…)",
    ),
    "run_thread": Callee(
        (
            *("thread_id", "system_prompt", "model", "processor_config", "temporary_message", *_LIMITS, "compaction"),
            *("name", "output_type", *_RUN),
        ),
        argument_names.RUN_THREAD,
        "conversations are kept by agentkit.ThreadManager: threads.run_thread(…, {}=…)",
    ),
}
"""By name, in the order in which they are searched for an argument."""


def at(callee: CalleeName, first: Words | None = None) -> Callable[[], Words]:
    """Arguments that a callee does not take: as in `first`, agentkit's name, or their place; computed when needed."""
    return lambda: {**_at(callee), **(first or {})}


@cache
def _at(callee: CalleeName) -> Words:
    own = CALLEES[callee]
    known: dict[str, str] = {**own.others}
    for other in CALLEES.values():
        for name in other.takes:
            if name not in own.takes:
                known.setdefault(name, other.place.format(name))
        for name, meant in other.others.items():
            if meant in other.takes and meant not in own.takes:
                meant = known.get(meant, other.place.format(meant))
            known.setdefault(name, meant)
    return known
