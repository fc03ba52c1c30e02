"""The cost of finding calls in text: microseconds per 4-character delta for each format, compared with a plain loop.

One call with one long string argument, of prose and of code; and the same lines as visible text, without any call; each
streamed at 16, 64 and 256 KiB, and parsed whole. Everything is measured in a single run; read the ratios, not the
absolute times. The floor is a loop that calls a method, scans the delta once and appends it. The cost of creating one
event is also printed: it is the minimum that any parser of events adds.

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
from agentkit.formats import CATALOG, Element, Format, Node, Parser, ToolSpec, auto, get, parse, render_calls
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
    """A file tool, in addition to others that are only registered."""
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


Formats = Format | tuple[Format, ...]


class Floor:
    """The minimum that a streaming parser does with a delta."""

    def __init__(self) -> None:
        self.out: list[str] = []

    def feed(self, text: str) -> None:
        """Scan and append."""
        if "<" in text:
            return
        self.out.append(text)


def best(run: Callable[[], object], times: int = 5) -> float:
    """Seconds of CPU of the fastest of several runs: other load on the machine only adds to it."""
    quickest = float("inf")
    for _ in range(times):
        start = time.process_time()
        run()
        quickest = min(quickest, time.process_time() - start)
    return quickest


def stream(formats: Formats, offered: list[ToolSpec], deltas: list[str]) -> None:
    """Feed every delta to a new parser, in the same loop as the floor's."""
    parser = Parser(formats, offered)
    for delta in deltas:
        parser.feed(delta)
    parser.close()


def floor(deltas: list[str]) -> None:
    """The same deltas through the floor loop."""
    loop = Floor()
    for delta in deltas:
        loop.feed(delta)


def deltas_of(text: str) -> list[str]:
    """The text in pieces of `DELTA` characters."""
    return [text[i : i + DELTA] for i in range(0, len(text), DELTA)]


def lines(line: str, size: int) -> str:
    """`size` characters of a line repeated."""
    return (line * (size // len(line) + 1))[:size]


def one_call(format: Format, offered: list[ToolSpec], line: str, size: int) -> str:
    """A call whose argument is lines of about `size` characters."""
    arguments = {"file_path": "a.c", "file_contents": lines(line, size)}
    return render_calls(format, [ToolCall("", "create_file", arguments)], offered)


class Figures(NamedTuple):
    """The measurements of one text: the floor and the parser in µs per delta, at each size, and MB/s whole."""

    floor: float
    micros: list[float]
    growth: float
    whole: float

    @property
    def times(self) -> float:
        """How many times the floor, at the middle size."""
        return self.micros[SIZES.index(MIDDLE)] / self.floor


def measure(formats: Formats, offered: list[ToolSpec], text_of: Callable[[int], str]) -> Figures:
    """Measure texts of each size, with the floor just before them, so that both see the same load."""
    plain = deltas_of(lines(PROSE, MIDDLE))
    base = best(lambda: floor(plain), 9) / len(plain) * 1e6
    seconds, micros, text = [], [], ""
    for size in SIZES:
        text = text_of(size)
        chunks = deltas_of(text)
        seconds.append(best(lambda c=chunks: stream(formats, offered, c)))  # type: ignore[misc]
        micros.append(seconds[-1] / len(chunks) * 1e6)
    growth = max((b / a) ** 0.5 for a, b in pairwise(seconds))  # sizes grow by 4
    return Figures(base, micros, growth, len(text) / best(lambda: parse(text, formats, offered), 3) / 1e6)


def main() -> None:
    """Print both tables, and what exceeds the bounds."""
    chosen = [*map(get, sys.argv[1:])] or CATALOG
    rows: list[tuple[str, str, Formats, Format]] = [(f.name, f.body, f, f) for f in chosen]
    rows += [("auto", "all of them", auto(), get("hermes"))] if chosen is CATALOG else []
    offered, missed, short = tools(), [], []
    print(f"making one event: {best(lambda: [ArgumentDelta(0, 'abcd', 'k') for _ in range(10_000)]) * 100:.3f} µs")
    print(f"{'format':16} {'body':16} {'text':7} {'floor':>6} {'µs 16K':>7} {'µs 64K':>7} {'µs 256K':>8} "
          f"{'x floor':>8} {'growth':>7} {'MB/s':>6}")  # fmt: skip
    for name, body, formats, format in rows:
        found = {}
        for kind, text_of in (
            ("prose", lambda size: one_call(format, offered, PROSE, size)),  # noqa: B023  # used before the next iteration
            ("code", lambda size: one_call(format, offered, CODE, size)),  # noqa: B023
            ("visible", lambda size: lines(PROSE, size)),
            ("quoted", lambda size: lines(CODE, size)),
        ):
            f = found[kind] = measure(formats, offered, text_of)
            bound = BOUNDS.get(body, BOUND) if kind in ("prose", "code") else BOUND
            over = f.times > bound or f.growth > GROWTH
            missed += [f"{name} ({kind})"] * over
            print(f"{name:16} {body:16} {kind:7} {f.floor:6.3f} {f.micros[0]:7.2f} {f.micros[1]:7.2f} "
                  f"{f.micros[2]:8.2f} {f.times:8.1f} {f.growth:7.2f} {f.whole:6.0f}{'  <' * over}",
                  flush=True)  # fmt: skip
        calls = one_call(format, offered, "x", 350) + "\n"
        seconds = best(lambda t=calls * 1600: parse(t, formats, offered), 3)  # type: ignore[misc]  # noqa: B023
        short.append(
            f"{name:16} {body:16} {found['prose'].times:7.1f} {found['code'].times:7.1f} {found['visible'].times:8.1f} "
            f"{found['quoted'].times:7.1f} {max(f.growth for f in found.values()):7.2f} "
            f"{min(f.whole for f in found.values()):6.0f} {len(calls) * 1600 // 1000:6} {seconds:7.3f}"
        )
    print("\ntimes the floor with an argument of prose, of code; with visible prose, visible code; the worst growth "
          "and MB/s; 1,600 calls whole\n"
          f"{'format':16} {'body':16} {'prose':>7} {'code':>7} {'visible':>8} {'quoted':>7} {'growth':>7} {'MB/s':>6} "
          f"{'kB':>6} {'seconds':>7}")  # fmt: skip
    print("\n".join(short))
    print(f"beyond {BOUNDS} or {BOUND} times the floor, or {GROWTH} per doubling: {', '.join(missed) or 'none'}")
    one = json.dumps({"name": "create_file", "arguments": {"file_path": "a", "file_contents": "x" * 350}})
    many = f"<tool_call>\n{one}\n</tool_call>\n" * 1600
    print(
        f"hermes: 1,600 calls in {len(many) // 1000} kB, whole: {best(lambda: parse(many, 'hermes', offered), 3):.3f} s"
    )


if __name__ == "__main__":
    main()
