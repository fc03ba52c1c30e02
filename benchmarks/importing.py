"""The cost of importing agentkit and of a first run: CPU of a fresh interpreter, as a multiple of that of a bare one.

Everything is measured in a single run, in turns, with bytecode as after an installation; read the ratios, not the
absolute times. The other rows show the cost on first use instead, and of the modules that must not be loaded at import.

    python benchmarks/importing.py
    python benchmarks/importing.py --before <checkout>   # with the figures of another checkout, in the same run
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

RUN = """
from agentkit import Agent{names}
from agentkit.testing import ScriptedModel
def add(a: int, b: int) -> int:
    "Add."
    return a + b
assert Agent(ScriptedModel([{script}"Done."]){tools}).run_sync("Hello").text == "Done."
"""

TARGETS = {  # times the bare interpreter
    "import agentkit": 3.0,
    "from agentkit import Agent": 10.0,
    "a first run": 25.0,
    "a first run with a call": 25.0,
}
ROWS = {
    "bare interpreter": "pass",
    "import agentkit": "import agentkit",
    "from agentkit import Agent": "from agentkit import Agent",
    "a registry with one tool": (
        "from agentkit import ToolRegistry\ndef add(a: int) -> int: return a\nToolRegistry(add)"
    ),
    "a first run": RUN.format(names="", script="", tools=""),
    "a first run with a call": RUN.format(
        names=", ToolCall", script='ToolCall("1", "add", {"a": 1, "b": 2}), ', tools=", [add]"
    ),
    "import asyncio": "import asyncio",
    "import pydantic (TypeAdapter)": "from pydantic import TypeAdapter",
    "import openai": "import openai; openai.AsyncOpenAI",
    "import anthropic": "import anthropic; anthropic.AsyncAnthropic",
}
SLOW = ("import openai", "import anthropic")
"""Rows that two turns are enough for."""

TURNS = 8


def cpu_of(script: str, environment: dict[str, str]) -> float:
    """Milliseconds of CPU, user and system, of one fresh interpreter."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-P", "-c", script], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ((after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)) * 1000


def measured(environments: list[dict[str, str]]) -> list[dict[str, float]]:
    """The quickest of several interpreters for each row, in each environment; all take turns."""
    costs = [dict.fromkeys(ROWS, float("inf")) for _ in environments]
    for turn in range(TURNS + 1):
        for name, script in ROWS.items():
            if turn > 2 and name in SLOW:
                continue
            for cost, environment in zip(costs, environments, strict=True):
                used = cpu_of(script, environment)
                if turn:  # the first one compiles
                    cost[name] = min(cost[name], used)
    return costs


def main() -> None:
    """Print the table."""
    checkouts = [Path(__file__).parents[1]]
    if "--before" in sys.argv:
        checkouts.append(Path(sys.argv[sys.argv.index("--before") + 1]).resolve())
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with TemporaryDirectory() as compiled:  # or modules that no installer has compiled would be compiled every time
        costs, *before = measured(
            [{**inherited, "PYTHONPYCACHEPREFIX": compiled, "PYTHONPATH": str(checkout)} for checkout in checkouts]
        )
    bare = costs["bare interpreter"]
    print(f"{'a fresh interpreter':<36}{'CPU ms':>8}{'x bare':>9}{'wanted':>9}{'before' if before else '':>9}")
    for name, cost in costs.items():
        wanted = f"{TARGETS[name]:>9.0f}" if name in TARGETS else " " * 9
        then = "".join(f"{other[name] / other['bare interpreter']:>9.2f}" for other in before)
        print(f"{name:<36}{cost:>8.1f}{cost / bare:>9.2f}{wanted}{then}", flush=True)
    over = [name for name, most in TARGETS.items() if costs[name] / bare > most]
    print(f"over what is wanted: {', '.join(over) or 'none'}")


if __name__ == "__main__":
    main()
