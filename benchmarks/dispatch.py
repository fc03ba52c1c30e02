"""The cost of running one call: arguments as JSON text → validated → called → the result that the model reads.

Everything is measured in a single run; read the ratios, not the absolute times. The floor is a hand-written loop:
`json.loads`, the call, `str` of the result. Times are CPU; for the thread row wall clock, since it waits.

    python benchmarks/dispatch.py
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

from agentkit.events import CallEnd, Finish, SourceEvent
from agentkit.messages import ToolCall
from agentkit.models.native_arguments import read_arguments
from agentkit.processor import ProcessorConfig, ResponseProcessor
from agentkit.processor.call_runner import CallRunner
from agentkit.processor.inbox import Inbox
from agentkit.processor.tool_run import run_tool
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolContext

TARGET = 20.0  # µs for one call to an async tool
COUNT = 5000  # calls per measurement
PER_TURN = 50  # calls of one response, in the rows that go through a whole turn

TEXT = json.dumps({"query": "cats", "limit": 5, "strict": True, "tags": ["a", "b"], "ratio": 0.5})


async def search(query: str, limit: int, strict: bool, tags: list[str], ratio: float) -> str:
    """Search."""
    return query


def plain(query: str, limit: int, strict: bool, tags: list[str], ratio: float) -> str:
    """Search."""
    return query


REGISTRY = ToolRegistry(search, plain)
CONFIG = ProcessorConfig()
EXECUTION = CallRunner(
    REGISTRY, CONFIG, lambda call: ToolContext(call.id, call.name), Inbox()
)  # there is one per response


async def floor() -> None:
    """A hand-written loop: nothing is checked."""
    str(await search(**json.loads(TEXT)))


async def dispatch() -> None:
    """One call, from its JSON text to its answer, without a stream around it."""
    call = ToolCall("x", "search", read_arguments(TEXT).values, raw=TEXT)
    EXECUTION.admit(CallEnd(0, call))
    admitted = EXECUTION.waiting.calls.popleft()
    context = ToolContext(call.id, call.name, {})
    await run_tool(admitted.tool, admitted.arguments, context, CONFIG.max_output)


def response(name: str) -> list[SourceEvent]:
    """One response with `PER_TURN` native calls."""
    calls = [ToolCall(str(i), name, read_arguments(TEXT).values, raw=TEXT) for i in range(PER_TURN)]
    return [*(CallEnd(i, call) for i, call in enumerate(calls)), Finish("tool_calls")]


async def turn(name: str, **config: str) -> None:
    """A whole turn of native calls, with its events."""
    made = ResponseProcessor(REGISTRY, ProcessorConfig(**config)).process(response(name))  # type: ignore[arg-type]
    async for _ in made:
        pass
    assert len(made.results) == PER_TURN


async def per_call(run: Callable[[], Awaitable[None]], calls: int, clock: Callable[[], float]) -> float:
    """Microseconds of one call, in the fastest of several measurements."""
    quickest = float("inf")
    for _ in range(7):
        start = clock()
        for _ in range(COUNT // calls):
            await run()
        quickest = min(quickest, clock() - start)
    return quickest / COUNT * 1e6


async def main() -> None:
    """Print the table."""
    cpu, wall = time.process_time, time.perf_counter
    base = await per_call(floor, 1, cpu)
    rows = [
        ("floor: json.loads, call, str", base, "CPU"),
        ("dispatch: JSON → validated → called → result", await per_call(dispatch, 1, cpu), "CPU"),
        ("in a turn, parallel", await per_call(lambda: turn("search"), PER_TURN, cpu), "CPU"),
        ("in a turn, sequential", await per_call(lambda: turn("search", strategy="sequential"), PER_TURN, cpu), "CPU"),
        ("in a turn, plain function in a thread", await per_call(lambda: turn("plain"), PER_TURN, wall), "wall"),
    ]
    print(f"{'one call':<48}{'µs':>8}{'x floor':>9}  clock")
    for name, cost, clock in rows:
        print(f"{name:<48}{cost:>8.1f}{cost / base:>9.1f}  {clock}")
    verdict = "within" if rows[1][1] <= TARGET else "OVER"
    print(f"dispatch: {rows[1][1]:.1f} µs per call, {verdict} the {TARGET:.0f} µs that are allowed")


if __name__ == "__main__":
    asyncio.run(main())
