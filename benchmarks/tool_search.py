"""500 tools and a small model: tokens per request and the right tool chosen, with and without `offered_tools`.

The tools and the tasks are cases of the Berkeley Function Calling Leaderboard (`bfcl_cases.jsonl` in `../shared/data`,
or in `AGENTKIT_SHARED_DATA`). A task is right if the first call of a tool, other than `find_tools`, is of the case's
own tool. Without a search, only as many tools are offered as fit into the model's context: the tasks' own, and others.

    python benchmarks/tool_search.py recall
    python benchmarks/tool_search.py run --base-url http://127.0.0.1:8080/v1 --offered 5
    python benchmarks/tool_search.py run --base-url http://127.0.0.1:8080/v1 --tools 50
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agentkit import Agent, Budget, ToolRegistry, model
from agentkit.agent.lifecycle import TurnEnded
from agentkit.agent.offering import FIND_TOOLS
from agentkit.events import CallEnd
from agentkit.models.tokens import json_tokens
from agentkit.tool.schema_tools import tool_from_schema

DATA = Path(os.environ.get("AGENTKIT_SHARED_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
GENERIC = frozenset((
    "get", "find", "calculate", "calc", "compute", "search", "list", "by", "of", "the", "and", "in", "for", "info",
    "data", "top", "price",
))  # fmt: skip
SYSTEM = "Call the tool that does what the user asks for."


class Case(NamedTuple):
    """A request, and the names of the tools that it needs."""

    text: str
    wanted: frozenset[str]
    tools: list[dict[str, Any]]


def name_of(declared: str) -> str:
    """A name that every provider accepts."""
    return declared.replace(".", "_")


def is_short(tool: dict[str, Any]) -> bool:
    """Say if a declaration is short enough for a model on a CPU, where 100 tokens of prompt take seconds."""
    return len(json.dumps(tool)) < 600


def cases() -> Iterator[Case]:
    """The leaderboard's cases in Python that need a tool."""
    with (DATA / "bfcl_cases.jsonl").open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["language"] == "python" and row.get("ground_truth_calls"):
                text = "\n".join(message["content"] for message in row["messages"] if message["role"] == "user")
                yield Case(text, frozenset(name_of(call["name"]) for call in row["ground_truth_calls"]), row["tools"])


def tasks_of(known: list[Case], count: int) -> list[Case]:
    """Tasks from all over the cases, of one call each."""
    single = [case for case in known if len(case.wanted) == 1 and all(map(is_short, case.tools))]
    single = [case for case in single if len(case.text) < 300]
    return single[:: len(single) // count][:count]


def telling(name: str) -> set[str]:
    """The words of a tool's name that say what it is about."""
    return set(re.findall("[a-z]+", name.lower())) - GENERIC


def registry_of(
    first: Iterable[Case], others: Iterable[Case], count: int | None, *, distinct: bool = False
) -> ToolRegistry:
    """A registry with the tools that the first cases want, and further ones up to this number.

    With `distinct`, the name of a further tool shares no telling word with those: the leaderboard's cases have several
    tools for one job, such as `gcd`, `math_gcd` and `calculate_gcd`, of which a task wants one.
    """
    found: dict[str, dict[str, Any]] = {}
    for case in first:
        found.update({name_of(tool["name"]): tool for tool in case.tools if name_of(tool["name"]) in case.wanted})
    taken = set[str]().union(*map(telling, found)) if distinct else set[str]()
    for case in others:
        for tool in case.tools:
            name = name_of(tool["name"])
            if (count is None or len(found) < count) and not telling(name) & taken:
                found.setdefault(name, tool)

    def done(arguments: dict[str, Any], context: object) -> str:
        return "done"

    registry = ToolRegistry()
    for name, tool in found.items():
        registry.register(tool_from_schema(done, name, tool.get("description", ""), tool["parameters"]))
    return registry


def recall() -> None:
    """Print how often all wanted tools are among the best matches."""
    known = list(cases())
    registry = registry_of(known, known, None)
    registry.search("warm")
    print(f"{len(registry.tools)} tools, {len(known)} requests")
    begun = time.perf_counter()
    ranked = [[spec.name for spec in registry.search(case.text, 20)] for case in known]
    print(f"{(time.perf_counter() - begun) / len(known) * 1000:.1f} ms per search")
    for most in (1, 5, 10, 20):
        hits = sum(case.wanted <= set(names[:most]) for case, names in zip(known, ranked, strict=True))
        print(f"recall@{most}: {hits / len(known):.3f}")


async def run(arguments: argparse.Namespace) -> None:
    """Run the tasks and print each, and the totals."""
    known = list(cases())
    tasks = tasks_of(known, arguments.tasks)
    shortest = sorted(known, key=lambda case: len(json.dumps(case.tools)))
    registry = registry_of(tasks, shortest, arguments.tools, distinct=arguments.distinct)
    asked = model(arguments.model, base_url=arguments.base_url, api_key="none", format=arguments.format)
    declared = sum(json_tokens([s.name, s.description, s.parameters]) for s in registry.specs())
    print(f"{len(registry.tools)} tools, about {declared:,} tokens; offered: {arguments.offered or 'all'}", flush=True)
    right, prompts, begun = 0, list[int](), time.monotonic()

    def count(event: object, run: object) -> None:
        if isinstance(event, TurnEnded) and event.usage.input_tokens:
            prompts.append(event.usage.input_tokens)

    for task in tasks:
        agent = Agent(
            asked,
            registry,
            system=SYSTEM,
            hooks=[count],
            offered_tools=arguments.offered,
            temperature=0.0,
            max_tokens=60,
            max_turns=4,
            stream=False,
            budget=Budget(seconds=1_200),
        )
        called: list[str] = []
        events = agent.stream(task.text)
        try:
            async with events:
                async for event in events:
                    if isinstance(event, CallEnd):
                        called.append(event.call.name)
                        if event.call.name != FIND_TOOLS:
                            break
        except Exception as e:  # noqa: BLE001 - a refused request is an outcome here
            called.append(f"{type(e).__name__}: {e}"[:200])
        if not called:
            called.append(f"said: {events.result.text[:200]!r}")
        chosen = next((name for name in called if name != FIND_TOOLS), None)
        right += chosen in task.wanted
        print(f"{'right' if chosen in task.wanted else 'WRONG'}  {min(task.wanted)}  {called}", flush=True)
    mean = sum(prompts) / max(len(prompts), 1)
    seconds = time.monotonic() - begun
    print(f"{right} of {len(tasks)} right; {mean:,.0f} prompt tokens per request ({len(prompts)}); {seconds:.0f} s")


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("recall", "run"))
    parser.add_argument("--base-url", default="http://127.0.0.1:8080/v1")
    parser.add_argument("--model", default="openai:local")
    parser.add_argument("--format", default=None, help="a text format; by default calls are native")
    parser.add_argument("--tools", type=int, default=500)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--distinct", action="store_true", help="without other tools for the tasks' own jobs")
    parser.add_argument("--offered", type=int, default=None)
    arguments = parser.parse_args()
    if arguments.what == "recall":
        recall()
    else:
        asyncio.run(run(arguments))


if __name__ == "__main__":
    main()
