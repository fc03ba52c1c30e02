"""What it costs to find calls in a stream: microseconds per 4-character delta, against the floor of a plain loop.

Everything is measured in this one run; read the ratios, not the absolute times. The floor is a loop that calls a
method, scans the delta once and appends it. `event` is what making one event costs, the least that any parser of
events can add.

    python benchmarks/streaming.py
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from agentkit.events import ArgumentDelta
from agentkit.formats import CATALOG, Element, Format, Node, Parser, ToolSpec, parse, render_calls
from agentkit.messages import ToolCall

KIB = 1024
CODE = '    if (a && b < c) { return x->y["k"]; }  // about as much markup as source code has\n'
PROSE = "A line of plain prose, as most of what models say is, without any markup in it.\n"
DELTA = 4  # characters: about one token


def tools(count: int = 40) -> list[ToolSpec]:
    """File tools, padded with others that are only registered."""
    create = ToolSpec(
        "create_file",
        "Create a file.",
        {"type": "object", "properties": {"file_path": {"type": "string"}, "file_contents": {"type": "string"}}},
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


def best(run: Callable[[], object], times: int = 7) -> float:
    """Seconds of CPU of the quickest of several runs: whatever else the machine does only adds."""
    quickest = float("inf")
    for _ in range(times):
        start = time.process_time()
        run()
        quickest = min(quickest, time.process_time() - start)
    return quickest


def stream(format: Format | str, offered: list[ToolSpec], deltas: list[str]) -> int:
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


def body(line: str, size: int) -> str:
    """Lines up to `size` characters."""
    return (line * (size // len(line) + 1))[:size]


def main() -> None:
    """Print the table."""
    offered = tools()
    count = 64 * KIB // DELTA
    plain = deltas_of(body(PROSE, 64 * KIB))
    base = best(lambda: floor(plain)) / count * 1e6
    event = best(lambda: [ArgumentDelta(0, d, "k") for d in plain]) / count * 1e6
    print(f"floor {base:.3f} µs per delta; making one event {event:.3f} µs = {event / base:.1f}x; {len(offered)} tools")
    print(
        f"{'format':16} {'body':6} {'µs/delta 64K':>12} {'x floor':>8} {'µs 128K':>8} {'growth':>7} {'whole MB/s':>11}"
    )
    for format in CATALOG:
        for name, line in (("prose", PROSE), ("code", CODE)):
            figures = []
            for size in (64 * KIB, 128 * KIB):
                arguments = {"file_path": "a.c", "file_contents": body(line, size)}
                text = render_calls(format, [ToolCall("", "create_file", arguments)], offered)
                chunks = deltas_of(text)
                figures.append((best(lambda f=format, c=chunks: stream(f, offered, c)), len(chunks), text))
            (short, n, _), (long, m, text) = figures
            whole = best(lambda f=format, t=text: parse(t, f, offered))
            print(
                f"{format.name:16} {name:6} {short / n * 1e6:12.2f} {short / n * 1e6 / base:8.1f} {long / m * 1e6:8.2f}"
                f" {long / short:7.2f} {len(text) / whole / 1e6:11.0f}"
            )
    one = json.dumps({"name": "create_file", "arguments": {"file_path": "a", "file_contents": "x" * 350}})
    many = f"<tool_call>\n{one}\n</tool_call>\n" * 1600
    print(
        f"hermes: 1,600 calls in {len(many) // 1000} kB, whole: {best(lambda: parse(many, 'hermes', offered), 3):.3f} s"
    )


if __name__ == "__main__":
    main()
