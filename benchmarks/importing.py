"""The cost of importing agentkit and of a first run: CPU of a fresh interpreter, as a multiple of that of a bare one.

Everything is measured in a single run; read the ratios, not the absolute times. The other rows show the cost on first
use instead, and of the modules that must not be loaded at import.

    python benchmarks/importing.py
    python benchmarks/importing.py --before <checkout>   # with the figures of another checkout, in the same run
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

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


def cpu_of(script: str, times: int, checkout: str | None = None) -> float:
    """Milliseconds of CPU, user and system, of the fastest of several fresh interpreters."""
    quickest = float("inf")
    environment = dict(os.environ) if checkout is None else {**os.environ, "PYTHONPATH": checkout}
    for _ in range(times + 1):  # once more, to warm up bytecode and disk
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-P", "-c", script], check=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
        quickest = min(quickest, used)
    return quickest * 1000


def main() -> None:
    """Print the table."""
    other = str(Path(sys.argv[sys.argv.index("--before") + 1]).resolve()) if "--before" in sys.argv else None
    costs = {name: cpu_of(script, 6 if "import openai" not in name else 2) for name, script in ROWS.items()}
    bare = costs["bare interpreter"]
    print(f"{'a fresh interpreter':<36}{'CPU ms':>8}{'x bare':>9}{'wanted':>9}{'before' if other else '':>9}")
    for name, cost in costs.items():
        wanted = f"{TARGETS[name]:>9.0f}" if name in TARGETS else " " * 9
        before = f"{cpu_of(ROWS[name], 4, other) / bare:>9.2f}" if other and "agentkit" in ROWS[name] else ""
        print(f"{name:<36}{cost:>8.1f}{cost / bare:>9.2f}{wanted}{before}", flush=True)
    over = [name for name, most in TARGETS.items() if costs[name] / bare > most]
    print(f"over what is wanted: {', '.join(over) or 'none'}")


if __name__ == "__main__":
    main()
