"""Deltas that come in small pieces: what is kept of them, and what is done with those that come together."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    SourceEvent,
    Text,
    Thinking,
    ToolCompleted,
    ToolFailed,
    ToolStarted,
    merge,
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


SOURCES: dict[str, Callable[[], Iterator[SourceEvent]]] = {
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
    """Not the strings in which it came: these once took twenty times the text, the deltas of a recovered call forty."""

    def continued(so_far: AssistantMessage) -> None:
        return None

    async def run(events: Iterator[SourceEvent]) -> None:
        async for _ in ResponseProcessor(REGISTRY, config).process(events, more=continued if more else None):
            pass

    peak, most = 0, 6 * len(PROSE) + 100_000
    for _ in range(3):  # what is made once is in the first; other threads of the process may add to any
        gc.collect()
        tracemalloc.start()
        asyncio.run(run(SOURCES[source]()))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if peak < most:
            return
    assert peak < most


SHORT = '<tool_call>{"name": "note", "arguments": {"text": "a"}}</tool_call>'
WRITTEN = (f"One. {SHORT} Two <b>", f"{SHORT} {SHORT}", "plain, [1, 2] and {x}", f"`{SHORT}` {SHORT[:40]}")


async def apart(bursts: Sequence[Sequence[SourceEvent]]) -> AsyncIterator[SourceEvent]:
    """Events of which each burst comes together."""
    for burst in bursts:
        await asyncio.sleep(0)
        for event in burst:
            yield event


def read(bursts: Sequence[Sequence[SourceEvent]], config: ProcessorConfig) -> list[Event]:
    async def run() -> list[Event]:
        return [event async for event in ResponseProcessor(REGISTRY, config, new_id=lambda: "c").process(apart(bursts))]

    return asyncio.run(run())


def told(events: list[Event]) -> list[Event]:
    """What a response said, and how its calls were answered: when one started or was answered does not count."""
    started = [event for event in events if isinstance(event, ToolStarted)]
    others = merge(event for event in events if not isinstance(event, ToolStarted | ToolCompleted | ToolFailed))
    return [*others, *started]


@given(st.sampled_from(WRITTEN), st.lists(st.integers(1, 9), max_size=12), st.lists(st.integers(1, 5), max_size=12))
@pytest.mark.parametrize("config", [ProcessorConfig(), ProcessorConfig(formats=("hermes",))], ids=["native", "text"])
def test_what_comes_together_is_read_as_what_comes_apart(
    config: ProcessorConfig, text: str, sizes: list[int], together: list[int]
) -> None:
    """However a text is cut, and however many of its deltas come at once."""
    deltas: list[SourceEvent] = []
    for size in sizes:
        deltas, text = [*deltas, Text(text[:size])], text[size:]
    deltas = [*deltas, Text(text), Finish("stop")]
    bursts: list[list[SourceEvent]] = []
    for many in together:
        bursts, deltas = [*bursts, deltas[:many]], deltas[many:]
    assert told(read([*bursts, deltas], config)) == told(
        read([[event] for burst in (*bursts, deltas) for event in burst], config)
    )


@pytest.mark.parametrize("config", [ProcessorConfig(), ProcessorConfig(formats=("hermes",))], ids=["native", "text"])
def test_text_is_shown_as_it_comes(config: ProcessorConfig) -> None:
    """Only what waits already is joined, and only text."""
    together: list[SourceEvent] = [Text("? "), Text("! "), Thinking("c"), Thinking("d"), Text("? ")]
    assert read([[Text("! ")], together, [Text("! ")], [Finish("stop")]], config) == [
        Text("! "),
        Text("? ! "),
        Thinking("c"),
        Thinking("d"),
        Text("? "),
        Text("! "),
        Finish("stop"),
    ]


def test_a_long_reply_in_one_event_leaves_the_loop_to_other_tasks() -> None:
    async def turns_of_another_task() -> int:
        count = 0

        async def other() -> None:
            nonlocal count
            while True:
                count += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        async for _ in ResponseProcessor(ToolRegistry(note)).process([Text("[" * 20_000), Finish("stop")]):
            pass
        task.cancel()
        return count

    assert asyncio.run(turns_of_another_task()) > 20
