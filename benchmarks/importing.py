"""The cost of `import agentkit`: CPU of a fresh interpreter, as a multiple of that of a bare one.

Everything is measured in a single run; read the ratios, not the absolute times. The other rows show the cost on first
use instead, and of the modules that must not be loaded at import.

    python benchmarks/importing.py
"""

from __future__ import annotations

import resource
import subprocess
import sys

TARGET = 3.0  # times the bare interpreter
ROWS = {
    "bare interpreter": "pass",
    "import agentkit": "import agentkit",
    "from agentkit import Agent": "from agentkit import Agent",
    "a registry with one tool": (
        "from agentkit import ToolRegistry\ndef add(a: int) -> int: return a\nToolRegistry(add)"
    ),
    "import asyncio": "import asyncio",
    "import pydantic (TypeAdapter)": "from pydantic import TypeAdapter",
    "import openai": "import openai; openai.AsyncOpenAI",
    "import anthropic": "import anthropic; anthropic.AsyncAnthropic",
}


def cpu_of(script: str, times: int) -> float:
    """Milliseconds of CPU, user and system, of the fastest of several fresh interpreters."""
    quickest = float("inf")
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", script], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
        quickest = min(quickest, used)
    return quickest * 1000


def main() -> None:
    """Print the table."""
    for script in ROWS.values():  # once, to warm up bytecode and disk
        subprocess.run([sys.executable, "-c", script], check=True)
    costs = {name: cpu_of(script, 10 if "import openai" not in name else 5) for name, script in ROWS.items()}
    bare = costs["bare interpreter"]
    print(f"{'a fresh interpreter':<36}{'CPU ms':>8}{'x bare':>9}")
    for name, cost in costs.items():
        print(f"{name:<36}{cost:>8.1f}{cost / bare:>9.2f}")
    ratio = costs["import agentkit"] / bare
    verdict = "within" if ratio <= TARGET else "OVER"
    print(f"import agentkit: x {ratio:.2f} the bare interpreter, {verdict} the x {TARGET} that are allowed")


if __name__ == "__main__":
    main()
