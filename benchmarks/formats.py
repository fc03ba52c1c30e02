"""What it costs to find calls in text: microseconds per 4-character delta for each format, against a plain loop.

One call with one long string argument, streamed at 16, 64 and 256 KiB, and parsed whole. Everything is measured in this
one run; read the ratios, not the absolute times. The floor is a loop that calls a method, scans the delta once and
appends it. `event` is what making one event costs, the least that any parser of events can add.

    python benchmarks/formats.py [format …]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from agentkit.events import ArgumentDelta
from agentkit.formats import CATALOG, Element, Format, Node, Parser, ToolSpec, get, parse, render_calls
from agentkit.messages import ToolCall

KIB = 1024
SIZES = (16 * KIB, 64 * KIB, 256 * KIB)
MIDDLE = 64 * KIB  # the size at which formats are compared with the floor and with the peers
CODE = '    if (a && b < c) { return x->y["k"]; }  // about as much markup as source code has\n'
PROSE = "A line of plain prose, as most of what models say is, without any markup in it.\n"
DELTA = 4  # characters: about one token
BOUNDS = {"JSON envelope": 12, "name, then JSON": 12, "parameters": 12}  # times the floor; 25 for other bodies
BOUND, GROWTH = 25, 2.2


def tools(count: int = 40) -> list[ToolSpec]:
    """A file tool, among others that are only registered."""
    create = ToolSpec(
        "create_file",
        "Create a file.",
        {
            "type": "object",
            "properties": {"file_contents": {"type": "string"}, "file_path": {"type": "string"}},
            "required": ["file_contents"],
        },
        Element("create-file", (Node("file_path", "attribute", ("file_path",)), Node("file_contents", "content"))),
    )
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    rest = (ToolSpec(f"tool_{i}", "", schema, Element(f"tool-{i}", (Node("x", "content"),))) for i in range(count - 1))
    return [create, *rest]


class Floor:
    """The least that a streaming parser can do with a delta."""

    def __init__(self) -> None:
        self.out: list[str] = []

    def feed(self, text: str) -> None:
        """Scan and append."""
        if "<" in text:
            return
        self.out.append(text)


def best(run: Callable[[], object], times: int = 5) -> float:
    """Seconds of CPU of the quickest of several runs: whatever else the machine does only adds."""
    quickest = float("inf")
    for _ in range(times):
        start = time.process_time()
        run()
        quickest = min(quickest, time.process_time() - start)
    return quickest


def stream(format: Format, offered: list[ToolSpec], deltas: list[str]) -> int:
    """Feed every delta to a new parser; returns the number of events."""
    parser = Parser(format, offered)
    count = sum(len(parser.feed(delta)) for delta in deltas)
    return count + len(parser.close())


def floor(deltas: list[str]) -> None:
    """The same deltas through the floor loop."""
    loop = Floor()
    for delta in deltas:
        loop.feed(delta)


def deltas_of(text: str) -> list[str]:
    """The text in pieces of `DELTA` characters."""
    return [text[i : i + DELTA] for i in range(0, len(text), DELTA)]


def one_call(format: Format, offered: list[ToolSpec], line: str, size: int) -> str:
    """A call whose argument is lines of about `size` characters."""
    arguments = {"file_path": "a.c", "file_contents": (line * (size // len(line) + 1))[:size]}
    return render_calls(format, [ToolCall("", "create_file", arguments)], offered)


class Figures(NamedTuple):
    """What was measured of one format on one kind of line."""

    micros: list[float]
    growth: float
    whole: float


def measure(format: Format, offered: list[ToolSpec], line: str) -> Figures:
    """Microseconds per delta at each size, the worst growth per doubling, and MB/s of the longest text whole."""
    seconds, micros, text = [], [], ""
    for size in SIZES:
        text = one_call(format, offered, line, size)
        chunks = deltas_of(text)
        seconds.append(best(lambda c=chunks: stream(format, offered, c)))  # type: ignore[misc]
        micros.append(seconds[-1] / len(chunks) * 1e6)
    growth = max((b / a) ** 0.5 for a, b in pairwise(seconds))  # sizes grow by 4
    return Figures(micros, growth, len(text) / best(lambda: parse(text, format, offered), 3) / 1e6)


def main() -> None:
    """Print the table."""
    offered, chosen = tools(), [get(name) for name in sys.argv[1:]] or CATALOG
    plain = deltas_of((PROSE * (MIDDLE // len(PROSE) + 1))[:MIDDLE])
    base = best(lambda: floor(plain), 9) / len(plain) * 1e6
    event = best(lambda: [ArgumentDelta(0, d, "k") for d in plain], 9) / len(plain) * 1e6
    print(f"floor {base:.3f} µs per delta; making one event {event:.3f} µs = {event / base:.1f}x; {len(offered)} tools")
    print(f"{'format':16} {'body':16} {'lines':6} {'µs 16K':>7} {'µs 64K':>7} {'µs 256K':>7} {'x floor':>8} "
          f"{'growth':>7} {'MB/s':>6}")  # fmt: skip
    missed = []
    for format in chosen:
        for name, line in (("prose", PROSE), ("code", CODE)):
            micros, growth, whole = measure(format, offered, line)
            times = micros[SIZES.index(MIDDLE)] / base
            over = times > BOUNDS.get(format.body, BOUND) or growth > GROWTH
            missed += [f"{format.name} ({name})"] * over
            print(f"{format.name:16} {format.body:16} {name:6} {micros[0]:7.2f} {micros[1]:7.2f} {micros[2]:7.2f} "
                  f"{times:8.1f} {growth:7.2f} {whole:6.0f}{'  <' * over}")  # fmt: skip
    print(f"beyond {BOUNDS} or {BOUND} times the floor, or {GROWTH} per doubling: {', '.join(missed) or 'none'}")
    one = json.dumps({"name": "create_file", "arguments": {"file_path": "a", "file_contents": "x" * 350}})
    many = f"<tool_call>\n{one}\n</tool_call>\n" * 1600
    seconds = best(lambda: parse(many, "hermes", offered), 3)
    print(f"hermes: 1,600 calls in {len(many) // 1000} kB, whole: {seconds:.3f} s")


if __name__ == "__main__":
    main()
