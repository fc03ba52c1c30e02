"""Calls in other choices than the first, as at GitHub Copilot: those of the answer, unless several were requested."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import events_of

from agentkit.events import CallEnd, Event, Finish, Text
from agentkit.models.openai import ChatWire, chunks_of
from agentkit.models.wire import DONE, WireEvent
from agentkit.testing import Replay
from models.test_odd_streams import CALLS, EXAMPLES, TOOLS, Said, cut, piece, read, woven

Choice = list[Said]


@st.composite
def choices(draw: st.DrawFn) -> list[Choice]:
    """The calls of each of the choices; the first one has none."""
    calls = draw(CALLS)
    at = draw(st.integers(0, len(calls)))
    return [[], calls[:at], calls[at:]]


def whole(answer: list[Choice]) -> dict[str, Any]:
    made = []
    for at, calls in enumerate(answer):
        told = [piece(call.text, id=call.id, name=call.name) for call in calls]
        message = {"content": None if at else "Hi", "tool_calls": told}
        made.append({"index": at, "message": message, "finish_reason": "tool_calls"})
    return {"choices": made}


def chunk(at: int, finish: str | None = None, **delta: Any) -> WireEvent:
    return {"choices": [{"index": at, "delta": delta, "finish_reason": finish}]}


@st.composite
def streamed(draw: st.DrawFn, answer: list[Choice]) -> list[WireEvent]:
    threads: list[list[WireEvent]] = [[chunk(0, content="Hi"), chunk(0, "tool_calls")]]
    for at, calls in enumerate(answer[1:], 1):
        pieces = [
            piece(text, index=index, id=None if number else call.id, name=None if number else call.name)
            for index, call in enumerate(calls)
            for number, text in enumerate(draw(cut(call.text)))
        ]
        threads.append([*(chunk(at, tool_calls=[one]) for one in pieces), chunk(at, "tool_calls")])
    return [*draw(woven(threads)), DONE]


def ended(found: list[Event]) -> Choice:
    return [Said(e.call.id, e.call.name, dict(e.call.arguments)) for e in found if isinstance(e, CallEnd)]


@settings(max_examples=EXAMPLES)
@given(choices(), st.data())
def test_calls_in_other_choices_are_those_of_the_answer(answer: list[Choice], data: st.DataObject) -> None:
    calls = [call for one in answer for call in one]
    for events in (chunks_of(whole(answer)), data.draw(streamed(answer))):
        found = read(ChatWire("server", TOOLS), events)
        assert ended(found) == calls
        assert [e for e in found if isinstance(e, Text | Finish)] == [Text("Hi"), Finish("tool_calls", "tool_calls")]
        assert ended(read(ChatWire("server", TOOLS, alternatives=True), events)) == []


ONE, OTHER = Said("a", "get", {"n": "x"}), Said("b", "ping", {})


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
