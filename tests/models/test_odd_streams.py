"""Streams of odd servers: no call runs that the server did not say, whatever it leaves out, repeats or numbers alike.

What cannot be placed may be refused: `test_odd_servers.py` has what must be read.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.events import CallEnd, CallError, Event, Finish, ProviderBlock, Text, UnreadCall
from agentkit.models.messages_wire import MessagesWire
from agentkit.models.openai import ChatWire
from agentkit.models.responses import ResponsesWire
from agentkit.models.wire import Wire, WireEvent

EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "12"))
"""How many streams each property reads; `AGENTKIT_EXAMPLES=500` is the soak."""

TOOLS = ("get", "get_weather", "ping", "a", "aa", "get_get")  # some begin others, or are others twice
OBJECTS = st.sampled_from(
    [{}, {"n": "x"}, {"n": "precious"}, {"n": "x", "m": 2}, {"city": "Ulm", "deep": {"n": [1, {}]}}]
)


class Said(NamedTuple):
    """A call as the final object has it."""

    id: str
    name: str
    arguments: dict[str, Any]

    @property
    def text(self) -> str:
        return json.dumps(self.arguments)


def said(calls: list[tuple[str, dict[str, Any]]]) -> list[Said]:
    return [Said(f"call_{at}", name, arguments) for at, (name, arguments) in enumerate(calls)]


CALLS = st.lists(st.tuples(st.sampled_from(TOOLS), OBJECTS), min_size=1, max_size=3).map(said)


def read(wire: Wire, events: Iterable[WireEvent]) -> list[Event]:
    return [out for event in events for out in wire.feed(event)] + wire.close()


def ended(events: Iterable[Event]) -> list[Said]:
    """The calls that would run, by their ids."""
    found = [Said(e.call.id, e.call.name, dict(e.call.arguments)) for e in events if isinstance(e, CallEnd)]
    return sorted(found, key=lambda call: call.id)


def assert_none_is_invented(calls: list[Said], found: list[Event]) -> None:
    """Each call of an offered tool that runs was said so, and one that is missing is an error or could not be read."""
    run = Counter((call.name, call.text) for call in ended(found))
    wanted = Counter((c.name, c.text) for c in calls)
    assert Counter({said: n for said, n in run.items() if said[0] in TOOLS}) <= wanted
    failed = any(isinstance(e, CallError | UnreadCall) for e in found) or any(said[0] not in TOOLS for said in run)
    assert run.keys() >= wanted.keys() or failed  # two equal calls may be one that is said twice


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """The text in pieces."""
    at = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


@st.composite
def woven(draw: st.DrawFn, threads: Sequence[Sequence[WireEvent]]) -> list[WireEvent]:
    """The events of several threads in one, each thread's in order."""
    left = [list(thread) for thread in threads]
    out = []
    while any(left):
        out.append(draw(st.sampled_from([thread for thread in left if thread])).pop(0))
    return out


def response(kind: str, **fields: Any) -> WireEvent:
    return {"type": f"response.{kind}", **fields}


# ---------------------------------------------------------------- chat completions


def piece(text: str | None = None, **fields: Any) -> dict[str, Any]:
    function = {k: v for k, v in (("name", fields.pop("name", None)), ("arguments", text)) if v is not None}
    return {**{k: v for k, v in fields.items() if v is not None}, "function": function}


def chunk(*pieces: dict[str, Any], finish: str | None = None) -> WireEvent:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(pieces)}, "finish_reason": finish}]}


class Style(NamedTuple):
    """How a server names a call in its pieces: its place, its id, its name in the first piece or in several.

    And how often it gives the arguments: once, in pieces; all of them twice; or first those of a call without any.
    """

    index: str = "own"  # zero, none
    id: str = "own"  # one, empty, none, changing
    id_again: bool = False
    name: str = "once"  # again, fragments
    given: str = "once"  # twice, after {}


STYLES = st.builds(
    Style,
    st.sampled_from(["own", "zero", "none"]),
    st.sampled_from(["own", "one", "empty", "none", "changing"]),
    st.booleans(),
    st.sampled_from(["once", "again", "fragments"]),
    st.sampled_from(["once", "once", "twice", "after {}"]),
)


@st.composite
def pieces(draw: st.DrawFn, call: Said, at: int, style: Style) -> list[WireEvent]:
    whole = style.index != "own" and style.id in ("one", "empty", "none")  # nothing names the call that goes on
    texts = [call.text] if whole else draw(cut(call.text))
    if style.given != "once":
        texts = [call.text if style.given == "twice" else "{}", call.text]
    index = {"own": at, "zero": 0, "none": None}[style.index]
    names: list[str | None] = [call.name]
    if style.name == "fragments" and len(call.name) > 1:
        middle = draw(st.integers(1, len(call.name) - 1))
        names = [call.name[:middle], call.name[middle:]]
    events = []
    texts = [""] * (len(names) - 1) + texts
    for number, text in enumerate(texts):
        name = names[number] if number < len(names) else call.name if style.name == "again" else None
        id = {"own": call.id, "one": "c", "empty": "", "none": None, "changing": f"{call.id}.{number}"}[style.id]
        if number and not style.id_again and style.id != "changing":
            id = "" if style.id == "empty" else None
        events.append(chunk(piece(text, index=index, id=id, name=name)))
    return events


@st.composite
def chat_streams(draw: st.DrawFn) -> tuple[list[Said], list[WireEvent]]:
    """Calls are woven where each piece has its call's index: no server is known that weaves others."""
    calls, style = draw(CALLS), draw(STYLES)
    if style.id in ("one", "changing") or (style.id != "own" and style.given == "twice"):
        style = style._replace(given="once")  # then what is given twice may be two calls
    if style.id == "one" and style.index != "own":  # what is said twice under one id is one call
        calls = list({call.name: call for call in calls}.values())
    threads = [draw(pieces(call, at, style)) for at, call in enumerate(calls)]
    mixed = style.index == "own" and style.given == "once" and draw(st.booleans())
    events = draw(woven(threads)) if mixed else [event for thread in threads for event in thread]
    return calls, [*events, chunk(finish="tool_calls")]


@settings(max_examples=EXAMPLES)
@given(chat_streams())
def test_chat(stream: tuple[list[Said], list[WireEvent]]) -> None:
    calls, events = stream
    assert_none_is_invented(calls, read(ChatWire("server", TOOLS), events))


# ---------------------------------------------------------------- what no property says


@pytest.mark.parametrize("late_id", ["", "c"])
@pytest.mark.parametrize("calls", [1, 2])
def test_an_object_after_an_empty_one_in_the_same_place_does_not_run_both(calls: int, late_id: str) -> None:
    texts = ("{}", '{"n": ', '"x"}')
    fields = [(at, text, f"{late_id}{at}" if late_id and text != "{}" else "") for at in range(calls) for text in texts]
    events = [chunk(piece(text, index=at, id=id, name="get")) for at, text, id in fields]
    found = read(ChatWire("server", TOOLS), [*events, chunk(finish="tool_calls")])
    assert [dict(e.call.arguments) for e in found if isinstance(e, CallEnd)] == [{"n": "x"}] * calls
    assert [e.code for e in found if isinstance(e, CallError)] == ["ambiguous_call"] * calls


def test_two_equal_calls_without_ids_at_one_index_both_run() -> None:
    twice = [chunk(piece('{"n": 1}', index=0, id="", name="get"))] * 2
    assert [c.name for c in ended(read(ChatWire("server", TOOLS), [*twice, chunk(finish="stop")]))] == ["get", "get"]


def test_a_call_of_a_tool_without_parameters_takes_no_piece_of_the_next_one() -> None:
    schemas = {"ping": {"type": "object"}, "get": {"type": "object", "properties": {"n": {}}}}
    events = [
        chunk(piece("", index=0, id="a", name="ping")),
        chunk(piece('{"n"', index=0, id="b", name="get")),
        chunk(piece(': "x"}', index=0)),
        chunk(finish="tool_calls"),
    ]
    assert ended(read(ChatWire("server", schemas, schemas), events)) == [
        Said("a", "ping", {}),
        Said("b", "get", {"n": "x"}),
    ]


def test_a_call_of_which_nothing_is_told_but_its_name_is_truncated() -> None:
    added = response("output_item.added", output_index=0, item={"type": "function_call", "call_id": "a", "name": "get"})
    begun = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "get"}}
    for wire, events in (
        (ResponsesWire("r"), [added, response("completed", response={"status": "completed"})]),
        (MessagesWire("a"), [begun, {"type": "message_stop"}]),
    ):
        assert [e.code for e in read(wire, events) if isinstance(e, CallError)] == ["truncated_call"]


def test_arguments_that_belong_to_no_call_are_reported_as_unread() -> None:
    delta = response("function_call_arguments.delta", output_index=0, delta='{"n": 1}')
    found = read(ResponsesWire("r"), [delta, response("completed", response={"status": "completed"})])
    assert found[0] == UnreadCall('{"n": 1}', "")


HELLO = {"type": "output_text", "text": "Hello"}


@pytest.mark.parametrize(
    "events",
    [
        [response("output_text.done", output_index=0, content_index=0, text="Hello")],
        [
            response("output_text.delta", output_index=0, content_index=0, delta="Hel"),
            response("output_text.done", output_index=0, content_index=0, text="Hello"),
        ],
        [response("content_part.done", output_index=0, part=HELLO)],
        [response("output_item.added", output_index=0, item={"type": "message", "content": [HELLO]})],
    ],
    ids=["done alone", "the rest in done", "part alone", "added whole"],
)
def test_text_is_read_wherever_it_is_told(events: list[WireEvent]) -> None:
    end = response("completed", response={"status": "completed", "output": []})
    found = read(ResponsesWire("r"), [*events, end])
    assert "".join(e.text for e in found if isinstance(e, Text)) == "Hello"
    assert found[-1] == Finish("stop", "completed")


def test_a_signature_in_pieces_is_joined() -> None:
    deltas = [
        {"type": "thinking_delta", "thinking": "Hm."},
        {"type": "signature_delta", "signature": "SIG"},
        {"type": "signature_delta", "signature": "NATURE"},
    ]
    events: list[WireEvent] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
    ]
    whole = {"type": "thinking", "thinking": "Hm.", "signature": "SIGNATURE"}
    assert ProviderBlock("a", whole, thinking=True) in read(MessagesWire("a"), events)


@pytest.mark.parametrize("index", [None, "0", -1, 0.5, 7])
def test_input_whose_place_cannot_be_told_is_not_dropped(index: object) -> None:
    """In an open text it belongs to none; a call that got nothing may be the one that it is of."""
    text = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    begins = {"type": "tool_use", "id": "a", "name": "get", "input": {}}
    start = {"type": "content_block_start", "index": 1, "content_block": begins}
    piece = {"type": "input_json_delta", "partial_json": '{"n": 1}'}
    delta = {"type": "content_block_delta", "index": index, "delta": piece}
    stops = [{"type": "content_block_stop", "index": at} for at in (1, 0)]
    found = read(MessagesWire("a"), [text, start, delta, *stops, {"type": "message_stop"}])
    assert ended(found) == []
    assert [e.code for e in found if isinstance(e, CallError)] == ["ambiguous_call"]
