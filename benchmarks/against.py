"""Compares the speed of this checkout with another one: every row is measured in both, alternately, in one run.

Two processes run the same row repeatedly: this one, the other, the other, this one. Each uses the `agentkit` and the
benchmarks of its own checkout; so compare with one whose `formats.py`, `agents.py` and `dispatch.py` measure the same.

A row is run in 40 short slices on each side. Other load on the machine only ever adds to a slice, by up to a third, and
not to both sides equally: so each side counts with the mean of the lowest eighth of its slices, those that had the
machine to themselves. Printed are this mean for this checkout, and the ratio of the two. A row that seems slower than
allowed is measured again before it counts.

    git worktree add /tmp/before v0.1.0
    python benchmarks/against.py /tmp/before [word of a row …]
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

HERE = Path(__file__).resolve().parent
ALLOWED = 1.1  # times the other checkout's CPU
ROUNDS, SLICE = 40, 0.012  # slices of a row on each side; minimum seconds of one
LOWEST = 8  # one slice of eight counts: the lowest ones
AGAIN = 2  # how often a row that seems slower than allowed is measured again: other load comes in bursts
AGENT_TURNS, DISPATCHED = 20, 50

Row = tuple[str, Callable[[], object], float]  # its name, what is run, and how many units it contains


def format_rows() -> Iterator[Row]:
    """Calls in every format: many and one in a complete text, and a long streamed one; and all formats at once."""
    import formats as of  # the benchmark of the measured checkout
    from agentkit.formats import CATALOG, Parser, auto, get, parse

    offered = of.tools()
    few = offered[:6]
    chosen = [(format.name, format, format) for format in CATALOG]
    for name, read, written in [*chosen, ("auto", auto(), get("hermes"))]:
        single = of.one_call(written, offered, "x", 60)
        many = (of.one_call(written, offered, "x", 350) + "\n") * 100
        yield f"{name}: 100 calls, whole", partial(parse, many, read, offered), 100
        yield f"{name}: one call, whole", partial(parse, single, read, few), 1
        yield f"{name}: one call, streamed", partial(of.stream, read, few, of.deltas_of(single)), 1
        for kind, line in (("prose", of.PROSE), ("code", of.CODE)):
            deltas = of.deltas_of(of.one_call(written, offered, line, 8192))
            yield f"{name}: delta in a call, {kind}", partial(of.stream, read, offered, deltas), len(deltas)
        deltas = of.deltas_of(of.lines(of.PROSE, 8192))
        yield f"{name}: delta of prose", partial(of.stream, read, offered, deltas), len(deltas)
    yield "parser made: hermes", partial(Parser, get("hermes"), few), 1
    yield "parser made: auto", partial(Parser, auto(), few), 1


def fresh_rows() -> Iterator[Row]:
    """The cost of a new set of tools, as parser and as prompt; and of the prompt for a known one."""
    import formats as of
    from agentkit.formats import Parser, auto, get, render_prompt

    parsed = {"hermes": get("hermes"), "qwen3_coder": get("qwen3_coder"), "cline": get("cline"), "auto": auto()}
    for name, read in parsed.items():
        yield f"parser for new tools: {name}", partial(with_new, partial(Parser, read), 20), 1
    for name in ("hermes", "qwen3_coder", "pythonic"):
        prompt = partial(render_prompt, get(name))
        for many in (1, 20, 400):
            yield f"prompt of {many} tools: {name}", partial(prompt, of.tools(many)), 1
            yield f"prompt of {many} new tools: {name}", partial(with_new, prompt, many), 1


_NUMBERS = count(1)


def with_new(run: Callable[[object], object], many: int) -> None:
    """Run something on new tools with new names."""
    from agentkit.formats import ToolSpec

    first = next(_NUMBERS)
    schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    run([ToolSpec(f"tool_{first}_{n}", "Look a word up.", schema) for n in range(many)])


def turn_rows() -> Iterator[Row]:
    """A turn of an agent, and a call in a turn."""
    import agents
    import dispatch

    loop = asyncio.new_event_loop()
    yield "agent: one turn", lambda: loop.run_until_complete(agents.by_agent(AGENT_TURNS)), AGENT_TURNS
    yield "dispatch: one call of a turn", lambda: loop.run_until_complete(dispatch.turn("search")), DISPATCHED


def rows() -> Iterator[Row]:
    """Every row."""
    yield from format_rows()
    yield from fresh_rows()
    yield from turn_rows()


def spent(run: Callable[[], object], times: int) -> float:
    """Seconds of CPU of several runs."""
    start = time.process_time()
    for _ in range(times):
        run()
    return time.process_time() - start


def serve() -> None:
    """Measure what is asked on standard input, one line each: a row's number and how often to run it."""
    every = list(rows())
    print(json.dumps([(name, units) for name, _, units in every]), flush=True)
    for line in sys.stdin:
        number, times = map(int, line.split())
        print(spent(every[number][1], times) / every[number][2] / times, flush=True)


class Side:
    """The process that measures one checkout."""

    def __init__(self, checkout: Path) -> None:
        paths = (checkout, checkout / "tools", checkout / "benchmarks")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONHASHSEED": "0"}
        command = [sys.executable, "-P", str(HERE / "against.py"), "--serve"]  # -P: not this file's directory
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
        told: list[tuple[str, float]] = json.loads(self.read())
        self.rows = {name: (number, units) for number, (name, units) in enumerate(told)}

    def read(self) -> str:
        """Its next answer."""
        assert self.process.stdout is not None
        if not (line := self.process.stdout.readline()):
            raise SystemExit("a measuring process ended; its output is above")
        return line.strip()

    def seconds(self, row: str, times: int) -> float:
        """CPU of one unit of a row."""
        number, _ = self.rows[row]
        assert self.process.stdin is not None
        self.process.stdin.write(f"{number} {times}\n")
        self.process.stdin.flush()
        return float(self.read())

    def end(self) -> None:
        """End the process."""
        self.process.communicate()


def compare(here: Side, there: Side, row: str) -> tuple[float, float]:
    """Seconds of one unit here, and the ratio to what it costs there."""
    for side in (here, there):
        side.seconds(row, 1)  # what is made on first use
    _, units = here.rows[row]
    times = max(1, round(SLICE / (here.seconds(row, 1) * units)))
    slices: dict[Side, list[float]] = {here: [], there: []}
    for round_ in range(ROUNDS):
        for side in (here, there) if round_ % 2 else (there, here):
            slices[side].append(side.seconds(row, times))
    seconds, other = map(undisturbed, slices.values())
    return seconds, seconds / other


def undisturbed(slices: list[float]) -> float:
    """The mean of the lowest eighth."""
    return statistics.mean(sorted(slices)[: max(1, len(slices) // LOWEST)])


def main(other: Path, words: list[str]) -> None:
    """Print every row, and those that are slower than allowed."""
    here, there = Side(HERE.parent), Side(other.resolve())
    slow = []
    print(f"{'':44}{'µs':>10}{'ratio':>8}")
    for name in here.rows:
        if words and not any(word in name for word in words):
            continue
        if name not in there.rows:
            print(f"{name:44}{'new':>18}")
            continue
        seconds, ratio = compare(here, there, name)
        for _ in range(AGAIN):
            if ratio > ALLOWED:
                again = compare(here, there, name)
                seconds, ratio = min((seconds, ratio), again, key=lambda found: found[1])
        slow += [name] * (ratio > ALLOWED)
        print(f"{name:44}{seconds * 1e6:10.2f}{ratio:8.2f}{' <' * (ratio > ALLOWED)}", flush=True)
    here.end()
    there.end()
    print(f"slower than {ALLOWED} times: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    elif len(sys.argv) > 1:
        main(Path(sys.argv[1]), sys.argv[2:])
    else:
        print("this needs another checkout to compare with: python benchmarks/against.py <directory>")
