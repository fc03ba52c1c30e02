"""A response that its filter ended, or that turns into a refusal: no call of it starts from there on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import pytest

from agentkit import ProcessorConfig, ResponseProcessor, ToolCall, ToolRegistry
from agentkit.events import CallEnd, CallStart, Finish, SourceEvent, Text, ToolSkipped, ToolStarted, Usage
from agentkit.formats import names, recoverable, render_calls

RAN: list[str] = []


def note(text: str) -> str:
    """Note something."""
    RAN.append(text)
    return text


REGISTRY = ToolRegistry(note)
CALLS = [ToolCall(f"c{n}", "note", {"text": f"text {n}"}) for n in range(3)]


async def coming(bursts: Iterable[Sequence[SourceEvent]]) -> AsyncIterator[SourceEvent]:
    """Events of which each burst comes together, after all that the one before can bring has happened."""
    for burst in bursts:
        for _ in range(20):
            await asyncio.sleep(0)
        for event in burst:
            yield event


def ran(bursts: Iterable[Sequence[SourceEvent]], **config: Any) -> tuple[list[str], int, int]:
    """What ran, how many calls were told as started, and how many were denied."""
    RAN.clear()

    async def main() -> tuple[int, int]:
        turn = ResponseProcessor(REGISTRY, ProcessorConfig(**config)).process(coming(bursts))
        events = [event async for event in turn]
        denied = [event for event in events if isinstance(event, ToolSkipped) and event.result.code == "denied"]
        return sum(isinstance(event, ToolStarted) for event in events), len(denied)

    told = asyncio.run(main())
    return sorted(RAN), *told


def pieces(text: str, size: int) -> list[SourceEvent]:
    return [Text(text[at : at + size]) for at in range(0, len(text), size)]


@pytest.mark.parametrize("reason", ["content_filter", "refusal"])
@pytest.mark.parametrize("format", names())
def test_no_call_in_text_starts_when_the_end_retracts_it(format: str, reason: Any) -> None:
    """However the text came: whole, by the character, or with the end in the same piece."""
    text = render_calls(format, CALLS[:1], REGISTRY.specs())
    ends: list[SourceEvent] = [Usage(9, 9), Finish(reason)]
    for bursts in (
        [[Text(text), *ends]],
        [[Text(text)], ends],
        [*([one] for one in pieces(text, 1)), *([one] for one in ends)],
        [pieces(text, 7), ends],
    ):
        assert ran(bursts, formats=(format,))[:2] == ([], 0), bursts


@pytest.mark.parametrize("most", [64, 3, 2, 1])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("format", [None, "hermes"])
def test_at_the_end_none_has_started_however_many_are_allowed(format: str | None, together: bool, most: int) -> None:
    events: list[SourceEvent] = []
    for index, call in enumerate(CALLS):
        events += [CallStart(index, call.name, call.id), CallEnd(index, call)]
    if format is not None:
        events = pieces(render_calls(format, CALLS, REGISTRY.specs()), 5)
    events += [Finish("content_filter")]
    bursts = [events] if together else [[event] for event in events]
    formats = () if format is None else (format,)
    found, started, denied = ran(bursts, formats=formats, max_calls=most)
    assert (found, started) == ([], 0)
    assert denied >= min(most, 3)


def test_a_call_that_starts_when_it_is_complete_may_be_retracted_too_late() -> None:
    """With `execute="stream"`."""
    text = render_calls("hermes", CALLS, REGISTRY.specs())
    cut = len(text) - len("</tool_call>")
    bursts = [[Text(text[:cut])], [Text(text[cut:]), Finish("content_filter")]]
    assert ran(bursts, formats=("hermes",), execute="stream") == (["text 0", "text 1", "text 2"], 3, 0)
    assert ran([[CallEnd(0, CALLS[0])], [Finish("content_filter")]], execute="stream")[1] == 1
    assert ran(bursts, formats=("hermes",)) == ([], 0, 3)


@pytest.mark.parametrize("reason", ["length", "pause", "error", "tool_limit_reached"])
@pytest.mark.parametrize("format", [format.name for format in recoverable()])
def test_a_call_in_a_native_models_text_that_was_cut_stays_text(format: str, reason: Any) -> None:
    """What would have followed might have said that it is an example."""
    text = render_calls(format, CALLS[:1], REGISTRY.specs())
    for bursts in ([[Text(text), Finish(reason)]], [[Text(text)], [Finish(reason)]]):
        assert ran(bursts) == ([], 0, 0)
    assert ran([[Text(text), Finish("stop")]]) == (["text 0"], 1, 0)
