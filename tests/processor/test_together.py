"""Deltas that come in small pieces: what is kept of them, and what is done with those that come together."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Iterator

import pytest

from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallStart,
    SourceEvent,
    Text,
    Thinking,
)
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.processor import ProcessorConfig, ResponseProcessor
from agentkit.tool.registry import ToolRegistry

PROSE = "A line of plain prose, as most of what models say is, without any markup in it.\n" * 1000
CALL = json.dumps({"name": "note", "arguments": {"text": PROSE}})
HERMES = f"<tool_call>{CALL}</tool_call>"
NATIVE = json.dumps({"text": PROSE})
READ = ToolCall("c0", "note", {"text": PROSE}, raw=NATIVE)


async def note(text: str) -> str:
    """Note."""
    return "done"


REGISTRY = ToolRegistry(note)


def cut(text: str) -> Iterator[str]:
    return (text[i : i + 4] for i in range(0, len(text), 4))


def native() -> Iterator[SourceEvent]:
    yield CallStart(0, "note", "c0")
    for piece in cut(NATIVE):
        yield ArgumentDelta(0, piece)
    yield CallEnd(0, READ)


SOURCES = {
    "prose": lambda: map(Text, cut(PROSE)),
    "thinking": lambda: map(Thinking, cut(PROSE)),
    "native": native,
    "hermes": lambda: map(Text, cut(HERMES)),
}


@pytest.mark.parametrize(
    ("source", "config", "more"),
    [
        ("prose", ProcessorConfig(), False),
        ("prose", ProcessorConfig(formats=("hermes",)), True),
        ("thinking", ProcessorConfig(), False),
        ("native", ProcessorConfig(), False),
        ("hermes", ProcessorConfig(), False),
        ("hermes", ProcessorConfig(formats=("hermes",)), False),
        ("hermes", ProcessorConfig(formats=("hermes",)), True),
    ],
)
def test_a_long_response_takes_a_few_times_its_text(source: str, config: ProcessorConfig, more: bool) -> None:
    """Not the strings in which it came: these once took twenty times the text, and the deltas of a recovered call forty."""

    def continued(so_far: AssistantMessage) -> None:
        return None

    async def run(events: Iterator[SourceEvent]) -> None:
        async for _ in ResponseProcessor(REGISTRY, config).process(events, more=continued if more else None):
            pass

    asyncio.run(run(map(Text, ("hello", " there"))))
    gc.collect()
    tracemalloc.start()
    asyncio.run(run(SOURCES[source]()))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 6 * len(PROSE) + 100_000
