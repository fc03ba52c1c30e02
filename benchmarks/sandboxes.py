"""Start latency of each sandbox, next to Python without one: wall clock, ms.

Rounds are interleaved, so that a busy moment of the machine meets all rows alike. Read the differences to the bare row
of the same command, not the absolute times.

    python benchmarks/sandboxes.py
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from statistics import median
from time import perf_counter

from agentkit.sandbox import SandboxError, SandboxLimits
from agentkit.sandbox.base_sandbox import BaseSandbox, Setup
from agentkit.sandbox.launcher_sandbox import UnconfinedSandbox
from agentkit.sandbox.sandbox_choice import VARIANTS, fault_of

ROUNDS = 25
COMMANDS = {"true": ["true"], "python": [sys.executable, "-I", "-S", "-c", "pass"]}


async def bare(command: list[str]) -> None:
    """Without a sandbox."""
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    await process.communicate()


def inside(box: BaseSandbox) -> Callable[[list[str]], Awaitable[object]]:
    """In a sandbox."""
    return lambda command: box.run(command, limits=SandboxLimits())


def boxes() -> dict[str, BaseSandbox]:
    """Those that work here."""
    found: dict[str, BaseSandbox] = {}
    for variant, make in VARIANTS.items():
        try:
            box = make(Setup())
        except SandboxError as e:
            print(f"{variant}: {e}")
            continue
        if wrong := fault_of(make):
            print(f"{variant}: {wrong}")
        found[variant] = box
    return {**found, "none": UnconfinedSandbox(Setup())}


async def main() -> None:
    """Measure and print."""
    opened = boxes()
    rows: dict[str, Callable[[list[str]], Awaitable[object]]] = {"bare": bare}
    rows |= {name: inside(box) for name, box in opened.items()}
    print(f"{'start to end, ms':<28}{'min':>8}{'median':>8}   (n = {ROUNDS})")
    for what, command in COMMANDS.items():
        taken: dict[str, list[float]] = {name: [] for name in rows}
        for _ in range(ROUNDS):
            for name, run in rows.items():
                start = perf_counter()
                await run(command)
                taken[name].append((perf_counter() - start) * 1000)
        for name, times in taken.items():
            print(f"{what + ', ' + name:<34}{min(times):>6.1f}{median(times):>8.1f}")
    for box in opened.values():
        await box.close()


asyncio.run(main())
