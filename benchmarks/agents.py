"""The cost of an agent's turn if the model answers immediately: in short and long runs, and in many parallel runs.

Everything is measured in a single run; read the ratios, not the absolute times. Each turn is one call to a trivial
tool. The floor is a hand-written loop without validation, limits or events. A run is flat if a turn of a long run costs
as much as a turn of a short one.

    python benchmarks/agents.py
    python benchmarks/agents.py --peers   # next to other toolkits, where they are installed: see agents_peers.py
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from agentkit.agent import Agent
from agentkit.events import ArgumentDelta, CallEnd, CallStart, Finish, SourceEvent, Text
from agentkit.messages import ToolCall
from agentkit.models.base import ModelRequest
from agentkit.tool.registry import ToolRegistry

TARGET = 100.0  # µs per turn
GROWTH = 1.3  # how much more a turn of 1,000 may cost than a turn of 20

DONE: tuple[SourceEvent, ...] = (Text("3"), Finish("stop"))


class Instant:
    """A model that answers immediately: `turns - 1` calls, then a word."""

    name = "instant"
    format = None

    def __init__(self, turns: int) -> None:
        self.left = turns

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        """The next prepared response."""
        self.left -= 1
        for event in calling(self.left) if self.left else DONE:
            yield event


def calling(number: int) -> tuple[SourceEvent, ...]:
    """A response with one call, each time a different one: repeating the same call would end the run."""
    id, arguments = f"call_{number}", f'{{"a": {number}, "b": 2}}'
    call = ToolCall(id, "add", {"a": number, "b": 2}, raw=arguments)
    return CallStart(0, "add", id), ArgumentDelta(0, arguments), CallEnd(0, call), Finish("tool_calls")


async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def plain_add(a: int, b: int) -> int:
    """Add."""
    return a + b


plain_add.__name__ = "add"


async def by_hand(turns: int) -> None:
    """The loop without a toolkit."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    model = Instant(turns)
    request = ModelRequest(())
    calling = True
    while calling:
        calling = False
        async for event in model.stream(request):
            if isinstance(event, CallEnd):
                calling = True
                messages.append({"role": "assistant", "tool_calls": [event.call]})
                result = await add(**json.loads(event.call.raw))
                messages.append({"role": "tool", "content": str(result)})


TOOLS, PLAIN_TOOLS = ToolRegistry(add), ToolRegistry(plain_add)


async def by_agent(turns: int, tools: ToolRegistry = TOOLS) -> None:
    """The same with an agent."""
    result = await Agent(Instant(turns), tools, max_turns=turns).run("go")
    assert result.turns == turns


async def per_turn(run: Callable[[int], Awaitable[None]], turns: int, clock: Callable[[], float]) -> float:
    """Microseconds of one turn, in the fastest of several runs."""
    quickest = float("inf")
    for _ in range(max(5, 1000 // turns)):
        start = clock()
        await run(turns)
        quickest = min(quickest, clock() - start)
    return quickest / turns * 1e6


async def side_by_side(runs: int = 200, turns: int = 5) -> float:
    """Runs per second, all at once in one event loop."""
    agents = [Agent(Instant(turns), TOOLS) for _ in range(runs)]
    start = time.perf_counter()
    await asyncio.gather(*(agent.run("go") for agent in agents))
    return runs / (time.perf_counter() - start)


async def main() -> None:
    """Print the table."""
    cpu, wall = time.process_time, time.perf_counter
    base = await per_turn(by_hand, 1000, cpu)
    cost = {turns: await per_turn(by_agent, turns, cpu) for turns in (20, 200, 1000)}
    threaded = await per_turn(lambda turns: by_agent(turns, PLAIN_TOOLS), 200, wall)
    print(f"{'one turn':<40}{'µs':>8}{'x floor':>9}")
    print(f"{'floor: a hand-written loop':<40}{base:>8.1f}{1:>9.1f}")
    for turns, each in cost.items():
        print(f"{f'agent, run of {turns} turns':<40}{each:>8.1f}{each / base:>9.1f}")
    print(f"{'agent, plain function in a thread (wall)':<40}{threaded:>8.1f}{threaded / base:>9.1f}")
    print(f"200 runs of 5 turns side by side: {await side_by_side():,.0f} runs per second")
    grown = cost[1000] / cost[20]
    verdict = "within" if max(cost.values()) <= TARGET and grown <= GROWTH else "OVER"
    print(
        f"{cost[20]:.0f} µs per turn of 20, {cost[1000]:.0f} µs per turn of 1,000 (x {grown:.2f}): {verdict} the "
        f"{TARGET:.0f} µs and x {GROWTH} that are allowed"
    )


async def against(repeats: int = 5) -> None:
    """Print the CPU cost of a turn here and elsewhere: the median of several alternating runs."""
    from agents_peers import installed

    peers, absent = installed()
    runs = {"a hand-written loop": by_hand, "agentkit": by_agent, **peers}
    spent: dict[tuple[str, int], list[float]] = {}
    for run in runs.values():
        await run(5)  # modules loaded on first use
    for _ in range(repeats):
        for turns in (20, 200):
            for name, run in runs.items():
                start = time.process_time()
                await run(turns)
                spent.setdefault((name, turns), []).append((time.process_time() - start) / turns * 1e6)
    cost = {key: statistics.median(some) for key, some in spent.items()}
    print(f"{'CPU of one turn, µs':<28}{'run of 20':>10}{'run of 200':>12}{'growth':>8}{'x agentkit':>18}")
    for name in runs:
        short, long = cost[name, 20], cost[name, 200]
        ratios = (short / cost["agentkit", 20], long / cost["agentkit", 200])
        print(f"{name:<28}{short:>10,.1f}{long:>12,.1f}{long / short:>8.1f}{ratios[0]:>10.1f}{ratios[1]:>8.1f}")
    print(*absent, sep="\n")


if __name__ == "__main__":
    asyncio.run(against() if "--peers" in sys.argv else main())
