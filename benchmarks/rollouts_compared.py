"""Rollouts next to those of verl and verifiers: the same trajectories, an instant policy, a trivial tool, in one run.

    make peers                            # installs them, in an environment each
    python benchmarks/rollouts_compared.py [trajectories]

256 trajectories of eight turns with one call each, all at once.

- verl: its unmodified `ToolAgentLoop`, a subclass of its `BaseTool`, and a tokenizer with a token for each character.
- verifiers: its rollout of a `ToolEnv` with a plain function. It gets its calls ready; the others read them from text.
- agentkit twice: with token ids, as verl works (a small real tokenizer of transformers), and with messages.

In each environment the peer and agentkit run in turn, in one process; the round with the least CPU counts. The answers
are checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT / "tests" / "support")  # not this directory: `agents` is a package that verifiers imports

TURNS = 8
ROUNDS = 3
SUMS = [str(n * (n + 1) // 2) for n in range(1, TURNS + 1)]
ENVIRONMENTS = ("rl", "verifiers3")

Run = Callable[[int], Awaitable[list[list[str]]]]
"""Rolls out that many trajectories; returns the answers of each."""


def call(n: int) -> str:
    """As a Hermes model writes it."""
    return f"<tool_call>\n{json.dumps({'name': 'add', 'arguments': {'n': n}})}\n</tool_call>"


def ours(tokenizer: Any = None) -> Run:
    """A class with a decorated method."""
    from agentkit import openapi_schema
    from agentkit.messages import UserMessage
    from agentkit.rollout import Generation, GenerationRequest, Rollout, Sample

    class Adder:
        def __init__(self) -> None:
            self.total = 0

        @openapi_schema
        async def add(self, n: int) -> str:
            """Add to the total.

            Args:
                n: how many
            """
            self.total += n
            return str(self.total)

    class Instant:
        def __init__(self) -> None:
            texts = [*map(call, range(1, TURNS + 1)), "36"]
            self.turns = [Generation(t) for t in texts]
            if tokenizer is not None:
                ended = [tokenizer.encode(text + "<|im_end|>", add_special_tokens=False) for text in texts]
                self.turns = [Generation(token_ids=ids) for ids in ended]

        async def generate(self, request: GenerationRequest) -> Generation:
            return self.turns[request.turn]

    rollout = Rollout([Adder], Instant(), tokenizer=tokenizer, concurrency=1_000_000)  # all at once, as the others

    async def run(count: int) -> list[list[str]]:
        samples = [Sample(str(n), (UserMessage("Add."),)) for n in range(count)]
        return [[one.result for one in record.calls] async for record in rollout.stream(samples)]

    return run


def ours_with_tokens() -> Run:
    """The same, with a tokenizer."""
    from small_tokenizers import tokenizer

    return ours(tokenizer("chatml"))


def verl() -> Run:
    """Its own loop and tool; it makes and releases a tool for each call, so the number to add is the sum itself."""
    from verl.tools.base_tool import BaseTool
    from verl.tools.schemas import OpenAIFunctionToolSchema, ToolResponse
    from verl_kit import loop_of, said

    properties = {"n": {"type": "integer", "description": "how many"}}
    function = {
        "name": "add",
        "description": "Add to the total.",
        "parameters": {"type": "object", "properties": properties, "required": ["n"]},
    }

    class Echo(BaseTool):
        async def execute(self, instance_id: str, parameters: dict[str, Any], **_: Any) -> tuple[Any, float, dict]:
            return ToolResponse(text=str(parameters["n"])), 0.0, {}

    with contextlib.redirect_stdout(io.StringIO()):  # it prints the schema
        schema = OpenAIFunctionToolSchema.model_validate({"type": "function", "function": function})
        tool = Echo(config={"type": "native"}, tool_schema=schema)

    async def run(count: int) -> list[list[str]]:
        loop = loop_of([tool], [*(call(int(n)) for n in SUMS), "36"])
        prompt = {"raw_prompt": [{"role": "user", "content": "Add."}], "tools_kwargs": {}}
        outputs = await asyncio.gather(*(loop.run({}, **prompt) for _ in range(count)))
        marks = "<|im_start|>tool\n", "<|im_end|>"
        return [[part.partition(marks[1])[0] for part in said(one).split(marks[0])[1:]] for one in outputs]

    return run


def verifiers() -> Run:
    """Its own rollout of a `ToolEnv`."""
    import verifiers.legacy as vf
    from datasets import Dataset
    from verifiers_kit import answers, client_of

    async def add(n: int) -> str:
        """Add to the total.

        Args:
            n: how many
        """
        return str(n)

    async def nothing(completion: Any, **_: Any) -> float:
        return 0.0

    data = Dataset.from_list([{"question": "Add.", "answer": "36"}])
    environment = vf.ToolEnv(tools=[add], dataset=data, max_turns=TURNS + 2, rubric=vf.Rubric(funcs=[nothing]))
    script = [("add", json.dumps({"n": int(n)})) for n in SUMS]

    async def run(count: int) -> list[list[str]]:
        client = client_of(vf, script)
        sample = {"prompt": [{"role": "user", "content": "Add."}], "example_id": 0, "info": {}}
        states = await asyncio.gather(
            *(environment._run_rollout_state(dict(sample), client, "m", {}) for _ in range(count))
        )
        return [answers(state) for state in states]

    return run


SIDES: dict[str, tuple[str, Callable[[], Run]]] = {
    "agentkit, token ids": ("agentkit", ours_with_tokens),
    "verl, ToolAgentLoop, token ids": ("verl", verl),
    "agentkit, messages": ("agentkit", ours),
    "verifiers, ToolEnv, messages": ("verifiers", verifiers),
}
PAIRED = {"agentkit, token ids": "verl, ToolAgentLoop, token ids", "agentkit, messages": "verifiers, ToolEnv, messages"}


def here(count: int) -> list[dict[str, Any]]:
    """Measure what this environment has, ours in turn with theirs."""
    runs: dict[str, Run] = {}
    versions = {}
    for name, (package, make) in SIDES.items():
        try:
            runs[name], versions[name] = make(), metadata.version(package)
        except (ImportError, metadata.PackageNotFoundError) as e:
            sys.stderr.write(f"{sys.prefix}: {name}: not here ({e})\n")
    theirs = {ours: other for ours, other in PAIRED.items() if ours in runs and other in runs}
    names = [name for pair in theirs.items() for name in pair] or [
        name for name in runs if name == "agentkit, messages"
    ]
    best: dict[str, tuple[float, float]] = {}
    for number in range(ROUNDS + 1):  # the first warms up
        for name in names:
            wall, cpu = time.perf_counter(), time.process_time()
            answers = asyncio.run(runs[name](count if number else 8))  # type: ignore[arg-type]
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            assert answers == [SUMS] * len(answers), answers[0]
            if number:
                best[name] = min(best.get(name, (cpu, wall)), (cpu, wall))
    python = ".".join(map(str, sys.version_info[:3]))
    return [
        {
            "name": name,
            "version": versions[name],
            "cpu": cpu,
            "wall": wall,
            "python": python,
            "other": theirs.get(name),
        }
        for name, (cpu, wall) in best.items()
    ]


def main() -> None:
    """Measure in every environment, and print one table."""
    if "--here" in sys.argv:
        warnings.simplefilter("ignore")
        logging.disable()
        sys.stdout.write("\n" + json.dumps(here(int(sys.argv[-1]))))
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    pythons = [ROOT / ".venv-peers" / name / "bin" / "python" for name in ENVIRONMENTS]
    rows: list[dict[str, Any]] = []
    print(f"{count} trajectories x {TURNS} turns of one call; load {os.getloadavg()[0]:.1f} before", flush=True)
    for python in [python for python in pythons if python.exists()] or [Path(sys.executable)]:
        done = subprocess.run([python, __file__, "--here", str(count)], stdout=subprocess.PIPE, text=True, check=True)
        rows += json.loads(done.stdout.splitlines()[-1])
    print(
        f"{'':<34}{'version':>9}{'Python':>9}{'µs/call':>10}{'CPU':>9}{'trajectories/s':>16}{'CPU, theirs : ours':>20}"
    )
    by_name = {(row["name"], row["python"]): row for row in rows}
    for row in rows:
        per = 1e6 / (count * TURNS)
        other = by_name.get((row["other"], row["python"]))
        ratio = "" if other is None else f"{other['cpu'] / row['cpu']:.1f}"
        figures = f"{row['wall'] * per:>10.0f}{row['cpu'] * per:>9.0f}{count / row['wall']:>16,.0f}{ratio:>20}"
        print(f"{row['name']:<34}{row['version']:>9}{row['python']:>9}{figures}")
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
