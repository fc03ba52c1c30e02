"""Calls in other choices than the first, as at GitHub Copilot: those of the answer, unless several were requested."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from streams import events_of

from agentkit.events import CallEnd, Event, Finish, Text
from agentkit.models.openai import ChatWire, chunks_of
from agentkit.models.wire import DONE, WireEvent
from agentkit.testing import Replay
from models.test_odd_streams import TOOLS, Said, piece, read

Choice = list[Said]


def whole(answer: list[Choice]) -> dict[str, Any]:
    made = []
    for at, calls in enumerate(answer):
        told = [piece(call.text, id=call.id, name=call.name) for call in calls]
        message = {"content": None if at else "Hi", "tool_calls": told}
        made.append({"index": at, "message": message, "finish_reason": "tool_calls"})
    return {"choices": made}


def chunk(at: int, finish: str | None = None, **delta: Any) -> WireEvent:
    return {"choices": [{"index": at, "delta": delta, "finish_reason": finish}]}


def streamed(answer: list[Choice]) -> list[WireEvent]:
    """The pieces of each choice, which has its own indexes; those of the first choice around the others'."""
    events = [chunk(0, content="Hi")]
    for at, calls in enumerate(answer[1:], 1):
        for index, call in enumerate(calls):
            events.append(chunk(at, tool_calls=[piece(call.text[:3], index=index, id=call.id, name=call.name)]))
            events.append(chunk(at, tool_calls=[piece(call.text[3:], index=index)]))
        events.append(chunk(at, "tool_calls"))
    return [*events, chunk(0, "tool_calls"), DONE]


def ended(found: list[Event]) -> Choice:
    return [Said(e.call.id, e.call.name, dict(e.call.arguments)) for e in found if isinstance(e, CallEnd)]


ONE, OTHER = Said("a", "get", {"n": "x"}), Said("b", "ping", {})


@pytest.mark.parametrize("answer", [[[], [ONE, OTHER]], [[], [ONE], [OTHER]], [[], [], [ONE, OTHER]]])
def test_calls_in_other_choices_are_those_of_the_answer(answer: list[Choice]) -> None:
    for events in (chunks_of(whole(answer)), streamed(answer)):
        found = read(ChatWire("server", TOOLS), events)
        assert ended(found) == [call for one in answer for call in one]
        assert [e for e in found if isinstance(e, Text | Finish)] == [Text("Hi"), Finish("tool_calls", "tool_calls")]
        assert ended(read(ChatWire("server", TOOLS, alternatives=True), events)) == []


def test_a_first_choice_with_a_call_is_the_answer() -> None:
    assert ended(read(ChatWire("server", TOOLS), chunks_of(whole([[ONE], [OTHER]])))) == [ONE]


@pytest.mark.parametrize("finishes", [("stop", "tool_calls"), ("tool_calls", "length"), ("tool_calls", None)])
def test_what_does_not_end_with_calls_has_none(finishes: tuple[str, str | None]) -> None:
    body = whole([[], [ONE]])
    for choice, finish in zip(body["choices"], finishes, strict=True):
        choice["finish_reason"] = finish
    assert ended(read(ChatWire("server", TOOLS), chunks_of(body))) == []


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("n", [None, 1, 2])
def test_of_several_requested_answers_the_first_one_is_read(
    n: int | None, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    model = Replay([whole([[], [ONE]])]).model("openai:m", extra={"n": n})
    with caplog.at_level(logging.WARNING):
        found = events_of(model, stream=stream)
    assert ended(found) == ([] if n == 2 else [ONE])
    assert bool(caplog.records) == (n == 2)
