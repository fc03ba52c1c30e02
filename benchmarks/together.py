"""The cost of a response's deltas by how many come together: microseconds of CPU per 4-character delta.

A response as text, and a response with native calls, in bursts of 1, 5 and 20 deltas, like the packets of servers.
The floor is a loop over the same source that scans each delta once and keeps it; read the ratios.

    python benchmarks/together.py
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

from agentkit.events import ArgumentDelta, CallEnd, CallStart, Finish, SourceEvent, Text
from agentkit.formats import get
from agentkit.messages import ToolCall
from agentkit.processor import ProcessorConfig, ResponseProcessor
from agentkit.tool.registry import ToolRegistry
from formats import CODE, PROSE, Floor, best, deltas_of, lines, one_call, tools

BURSTS = (1, 5, 20)
SIZE = 64 * 1024
BOUND = 5  # times the floor, where several come together


async def create_file(file_contents: str, file_path: str = "") -> str:
    """Create a file."""
    return "created"


REGISTRY = ToolRegistry(create_file)


def native() -> list[SourceEvent]:
    """A native call."""
    raw = json.dumps({"file_contents": lines(PROSE, SIZE)})
    call = ToolCall("c0", "create_file", json.loads(raw), raw=raw)
    deltas = [ArgumentDelta(0, delta) for delta in deltas_of(raw)]
    return [CallStart(0, "create_file", "c0"), *deltas, CallEnd(0, call), Finish("tool_calls")]


def texts(text: str) -> list[SourceEvent]:
    """A text in deltas."""
    return [*map(Text, deltas_of(text)), Finish("stop")]


async def source(events: Sequence[SourceEvent], burst: int) -> AsyncIterator[SourceEvent]:
    """Events, `burst` of which come together."""
    for i in range(0, len(events), burst):
        await asyncio.sleep(0)
        for event in events[i : i + burst]:
            yield event


async def floor(events: Sequence[SourceEvent], burst: int) -> None:
    """The loop that reads nothing."""
    loop = Floor()
    async for event in source(events, burst):
        loop.feed(getattr(event, "text", ""))


async def turn(events: Sequence[SourceEvent], burst: int, config: ProcessorConfig) -> None:
    """The same through a processor."""
    async for _ in ResponseProcessor(REGISTRY, config).process(source(events, burst)):
        pass


def main() -> None:
    """Print the table."""
    offered, plain = tools(), ProcessorConfig()
    rows: list[tuple[str, list[SourceEvent], ProcessorConfig]] = [
        ("native call", native(), plain),
        ("prose of a native model", texts(lines(PROSE, SIZE)), plain),
        ("the same, nothing recovered", texts(lines(PROSE, SIZE)), ProcessorConfig(recover=False)),
        ("code of a native model", texts(lines(CODE, SIZE)), plain),
    ]
    for name in ("invoke", "qwen3_coder", "hermes", "pythonic", "gemma4"):
        config = ProcessorConfig(formats=(name,))
        rows.append((f"{name}: a call of prose", texts(one_call(get(name), offered, PROSE, SIZE)), config))
        rows.append((f"{name}: a call of code", texts(one_call(get(name), offered, CODE, SIZE)), config))
    print(f"{'µs per delta (times the floor)':36}" + "".join(f"{f'{burst} together':>18}" for burst in BURSTS))
    slow = []
    for name, events, config in rows:
        cells = []
        for burst in BURSTS:
            base = best(lambda e=events, b=burst: asyncio.run(floor(e, b)))  # type: ignore[misc]
            took = best(lambda e=events, b=burst, c=config: asyncio.run(turn(e, b, c)))  # type: ignore[misc]
            cells.append(f"{took / len(events) * 1e6:8.2f} ({took / base:4.1f})")
            slow += [f"{name}, {burst}"] * (burst > 1 and took > BOUND * base)
        print(f"{name:36}" + "".join(f"{cell:>18}" for cell in cells), flush=True)
    print(f"beyond {BOUND} times the floor: {'; '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
