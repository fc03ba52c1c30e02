"""Streams of odd servers: no call has arguments that the wire does not say, and none is lost that it says plainly.

Whatever they leave out, repeat, reorder or number alike. Judged against the calls as the
server's own final object holds them.
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

EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "25"))
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


# ---------------------------------------------------------------- Responses


def response(kind: str, **fields: Any) -> WireEvent:
    return {"type": f"response.{kind}", **fields}


@st.composite
def told(draw: st.DrawFn, call: Said, at: int, named: dict[str, str], *, in_end: bool) -> list[WireEvent]:
    """The events of one call. Somewhere the wire tells its arguments whole, or all of its deltas come."""
    bare = {"type": "function_call", "call_id": call.id, "name": call.name, "status": "completed"} | (
        {"id": named["item_id"]} if named else {}
    )
    whole = {**bare, "arguments": call.text}
    where = draw(st.sets(st.sampled_from(["added", "part", "item"])))
    first = whole if "added" in where else {**bare, "arguments": "", "status": "in_progress"}
    sure = in_end or "part" in where or "item" in where
    text = draw(st.sampled_from(["", "{}", '{"n": "other"}', call.text])) if sure else call.text
    if where == {"added"} and not in_end:
        text = draw(st.sampled_from(["", call.text]))
    deltas = [
        response("function_call_arguments.delta", output_index=at, delta=piece, **named)
        for piece in draw(cut(text))
        if piece
    ]
    if not call.arguments and not deltas and not where & {"part", "item"} and not in_end:
        where.add("item")
    events = [response("output_item.added", output_index=at, item=first), *deltas]
    if "part" in where:
        done = response("function_call_arguments.done", output_index=at, arguments=call.text, **named)
        events.insert(draw(st.integers(1, len(events))), done)
    if "item" in where:
        events.append(response("output_item.done", output_index=at, item=whole))
    if sure and (in_end or "item" in where) and draw(st.booleans()):
        events = events[1:]  # not begun
    again = draw(st.sampled_from([None, *(e for e in events if "delta" not in e)]))
    return events + ([again] if again else [])


@st.composite
def responses_streams(draw: st.DrawFn) -> tuple[list[Said], list[WireEvent]]:
    calls = draw(CALLS)
    by_id, by_place = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    in_end = draw(st.booleans())
    threads = []
    for at, call in enumerate(calls):
        named = {"item_id": f"fc_{at}"} if by_id else {}
        threads.append(draw(told(call, at if by_place else 0, named, in_end=in_end)))
    if draw(st.booleans()):  # thinking that shares its index with a call
        threads.append([response("reasoning_text.delta", output_index=0, item_id="rs", delta="x" * 20)])
    output = [
        {"type": "function_call", "id": f"fc_{at}", "call_id": c.id, "name": c.name, "arguments": c.text}
        for at, c in enumerate(calls)
    ]
    end = response("completed", response={"status": "completed", "output": output if in_end else []})
    late = [] if in_end or not draw(st.booleans()) else [threads.pop()]
    events = draw(woven(threads))
    return calls, [*events, end, *(event for thread in late for event in thread)]


@settings(max_examples=EXAMPLES)
@given(responses_streams())
def test_responses(stream: tuple[list[Said], list[WireEvent]]) -> None:
    calls, events = stream
    assert ended(read(ResponsesWire("responses"), events)) == calls


# ---------------------------------------------------------------- Messages


@st.composite
def block(draw: st.DrawFn, call: Said, at: int) -> list[WireEvent]:
    """The events of one call: input in its block or in deltas, an end or none, a beginning twice or late."""
    at_once = draw(st.booleans())
    begins = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments if at_once else {}}
    start = {"type": "content_block_start", "index": at, "content_block": begins}
    text = draw(st.sampled_from(["", call.text])) if at_once else call.text
    deltas = [
        {"type": "content_block_delta", "index": at, "delta": {"type": "input_json_delta", "partial_json": piece}}
        for piece in draw(cut(text))
    ]
    stop = {"type": "content_block_stop", "index": at}
    ends = draw(st.booleans()) or not (text or call.arguments)
    order = draw(st.sampled_from(["plain", "twice", "late", "deltas last"]))
    if order == "twice":
        deltas.insert(draw(st.integers(0, len(deltas))), start)
    if order == "late" and text:
        return [*deltas, start, *([stop] if ends else [])]
    if order == "deltas last" and ends:
        return [start, stop, *deltas]
    return [start, *deltas, *([stop] if ends else [])]


@st.composite
def plain_block(draw: st.DrawFn, call: Said) -> list[WireEvent]:
    """The events of one call in their order; the index is one for all calls, so nothing else may be odd about them."""
    at_once, repeated, ends = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    begins = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments if at_once else {}}
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
        for piece in (draw(cut(call.text)) if repeated or not at_once else [])
    ]
    start = {"type": "content_block_start", "index": 0, "content_block": begins}
    return [start, *deltas, *([{"type": "content_block_stop", "index": 0}] if ends else [])]


@st.composite
def messages_at_one_index(draw: st.DrawFn) -> tuple[list[Said], list[WireEvent]]:
    calls = draw(CALLS)
    end = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    return calls, [*draw(woven([draw(plain_block(call)) for call in calls])), *end]


def assert_each_is_right_or_an_error(calls: list[Said], found: list[Event]) -> None:
    """Each call that runs was said so, and each that does not is an error."""
    run = Counter((c.name, c.text) for c in ended(found))
    wanted = Counter((c.name, c.text) for c in calls)
    assert run <= wanted
    assert len(list((wanted - run).elements())) <= sum(isinstance(e, CallError) for e in found)


@settings(max_examples=EXAMPLES)
@given(messages_at_one_index())
def test_messages_whose_calls_share_an_index(stream: tuple[list[Said], list[WireEvent]]) -> None:
    calls, events = stream
    found = read(MessagesWire("anthropic"), events)
    assert_each_is_right_or_an_error(calls, found)
    assert all(call in calls for call in ended(found))


def test_what_a_block_held_may_be_said_again_behind_the_next_one() -> None:
    """One of the first two has not ended: the last delta may be the second one's, whose block held the same."""

    def start(id: str, **given: Any) -> WireEvent:
        block = {"type": "tool_use", "id": id, "name": "get", "input": given}
        return {"type": "content_block_start", "index": 0, "content_block": block}

    def delta(text: str) -> WireEvent:
        piece = {"type": "input_json_delta", "partial_json": text}
        return {"type": "content_block_delta", "index": 0, "delta": piece}

    events = [start("1"), delta("{}"), start("2", n="x"), {"type": "content_block_stop", "index": 0}]
    events += [start("3"), delta("{}"), delta('{"n": "x"}')]
    end = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    found = read(MessagesWire("anthropic"), [*events, *end])
    assert ended(found) == [Said("1", "get", {}), Said("2", "get", {"n": "x"})]
    assert [(e.index, e.code) for e in found if isinstance(e, CallError)] == [(2, "ambiguous_call")]


@st.composite
def messages_streams(draw: st.DrawFn) -> tuple[list[Said], list[WireEvent]]:
    calls = draw(CALLS)
    end = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    if draw(st.booleans()):
        return calls, [*draw(woven([draw(block(call, at)) for at, call in enumerate(calls)])), *end]
    ends = draw(st.booleans())  # a server tells of each call that it is over, or of none
    at_once = draw(st.booleans())
    calls = [c for c in calls if ends or c.arguments or not at_once] or [Said("call_0", "get", {"n": "x"})]
    of_call = [block(call, 0).filter(lambda b: in_order(b) and alike(b, ends, at_once)) for call in calls]
    one_after_the_other = [event for events in of_call for event in draw(events)]
    return calls, [*one_after_the_other, *end]


def stops(events: Sequence[WireEvent]) -> bool:
    return any(e["type"] == "content_block_stop" for e in events)


def alike(events: Sequence[WireEvent], ends: bool, at_once: bool) -> bool:
    """Whether a call is told as its neighbours are: with its end or without, and then with its input or without."""
    return stops(events) == ends and (ends or bool(events[0]["content_block"]["input"]) == at_once)


def in_order(events: Sequence[WireEvent]) -> bool:
    """Whether a block's index may be used again: its deltas stand between its beginning and its end."""
    return (events[0]["type"] == "content_block_start" and events[-1]["type"] != "content_block_delta") or (
        not stops(events) and events[0]["type"] == "content_block_start"
    )


@settings(max_examples=EXAMPLES)
@given(messages_streams())
def test_messages(stream: tuple[list[Said], list[WireEvent]]) -> None:
    calls, events = stream
    assert ended(read(MessagesWire("anthropic"), events)) == calls


@st.composite
def repeated_messages(draw: st.DrawFn) -> tuple[list[Said], list[WireEvent]]:
    """Each call's block in order; then of some the beginning once more, the end, or the whole block."""
    calls = draw(CALLS)
    shared = draw(st.booleans())
    threads = []
    for at, call in enumerate(calls):
        at_once = draw(st.booleans())
        begins = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments if at_once else {}}
        start = {"type": "content_block_start", "index": 0 if shared else at, "content_block": begins}
        stop = {"type": "content_block_stop", "index": start["index"]}
        inputs = [{"type": "input_json_delta", "partial_json": text} for text in draw(cut(call.text))]
        deltas = [{"type": "content_block_delta", "index": start["index"], "delta": each} for each in inputs]
        if at_once or not (call.arguments or draw(st.booleans())):
            deltas = []
        block = [start, *deltas, stop]
        threads.append([*block, *draw(st.sampled_from([[], block, [start], *([] if shared else [[stop]])]))])
    events = [e for thread in threads for e in thread] if shared else draw(woven(threads))
    if shared and draw(st.booleans()):
        events += [e for thread in threads for e in thread]
    end = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    return calls, [*events, *end]


BARE: dict[str, Any] = {"type": "object", "properties": {}}


@settings(max_examples=EXAMPLES)
@given(repeated_messages(), st.booleans())
def test_what_a_messages_stream_repeats_is_called_once(stream: tuple[list[Said], list[WireEvent]], bare: bool) -> None:
    calls, events = stream
    found = read(MessagesWire("anthropic", dict.fromkeys(TOOLS, BARE) if bare else {}), events)
    assert ended(found) == calls
    assert not any(isinstance(event, CallError) for event in found)


def test_one_id_for_several_calls() -> None:
    """At one index: what is said again is one call; other arguments are another call's, as in chat completions."""

    def read_both(*seconds: tuple[str, str]) -> list[tuple[str, str]]:
        events: list[WireEvent] = []
        for name, text in (("get", '{"n": 1}'), *seconds):
            begins = {"type": "tool_use", "id": "a", "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": text}
            events.append({"type": "content_block_start", "index": 0, "content_block": begins})
            events.append({"type": "content_block_delta", "index": 0, "delta": delta})
            events.append({"type": "content_block_stop", "index": 0})
        end = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
        found = [e for e in read(MessagesWire("a"), [*events, *end]) if isinstance(e, CallEnd | CallError)]
        return [(e.call.raw, "" if isinstance(e, CallEnd) else e.code) for e in found]

    first = ('{"n": 1}', "")
    assert read_both(("get", '{"n":1}')) == [first]
    assert read_both(("get", '{"n": 2}'), ("get", '{"n":1}')) == [first, ('{"n": 2}', "")]
    for name, text in (("get", '{"n": 2}'), ("get", '{"m": 1}'), ("get", "{}"), ("ping", '{"n": 1}')):
        assert read_both((name, text)) == [first, (text, "")]
    for text in ('{"n": 1, "m": 2}', '{"n": 1', ""):
        assert read_both(("get", text)) == [first, (text, "ambiguous_call")]


DAMAGE: dict[str, Any] = {
    "null": None,
    "a list": ["{"],
    "empty": {},
    "text": "{",
    "another type": {"type": "input_delta", "input": "{"},
}
"""What may come in place of a delta of a call's input that does not say what that has."""


def is_input(event: WireEvent) -> bool:
    return bool(event.get("delta")) and event["delta"].get("type") == "input_json_delta"


@st.composite
def damaged_messages(draw: st.DrawFn) -> tuple[list[Said], list[WireEvent]]:
    """Calls of which one or more deltas do not say what they have, in or outside their blocks."""
    calls = draw(CALLS)
    events = draw(woven([draw(block(call, at)) for at, call in enumerate(calls)]))
    places = [at for at, event in enumerate(events) if is_input(event) and event["delta"]["partial_json"]]
    hit = draw(st.sets(st.sampled_from(places), max_size=3)) if places else ()
    for at in hit:
        events[at] = {**events[at], "delta": draw(st.sampled_from(list(DAMAGE.values())))}
    end = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    return calls, [*events, *end]


@settings(max_examples=EXAMPLES)
@given(damaged_messages())
def test_messages_with_deltas_that_cannot_be_read(stream: tuple[list[Said], list[WireEvent]]) -> None:
    calls, events = stream
    assert_each_is_right_or_an_error(calls, read(MessagesWire("anthropic"), events))


@settings(max_examples=EXAMPLES)
@given(CALLS, st.data())
def test_messages_whose_deltas_are_written_in_another_way(calls: list[Said], data: st.DataObject) -> None:
    """The input as an object, as in the other protocols; deltas without their type."""
    events: list[WireEvent] = []
    for at, call in enumerate(calls):
        begins = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        given: Any = data.draw(st.one_of(st.just([call.arguments]), cut(call.text)))
        events.append({"type": "content_block_start", "index": at, "content_block": begins})
        for piece in given:
            kind = data.draw(st.sampled_from([{}, {"type": None}, {"type": "input_json_delta"}]))
            delta = {**kind, "partial_json": piece}
            events.append({"type": "content_block_delta", "index": at, "delta": delta})
        events.append({"type": "content_block_stop", "index": at})
    end = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    assert ended(read(MessagesWire("anthropic"), [*events, *end])) == calls


def test_a_text_inside_an_open_call_may_be_its_input() -> None:
    begins = {"type": "tool_use", "id": "a", "name": "get", "input": {}}
    start = {"type": "content_block_start", "index": 0, "content_block": begins}
    for text, code in (('{"n": 1}', ["ambiguous_call"]), ("", [])):
        delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        stop = {"type": "content_block_stop", "index": 0}
        found = read(MessagesWire("a"), [start, delta, stop, {"type": "message_stop"}])
        assert [e.code for e in found if isinstance(e, CallError)] == code


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
    assert {e.code for e in found if isinstance(e, CallError)} <= {"ambiguous_call", "truncated_call", "unknown_tool"}


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
    name: str = "once"  # again, fragments, growing
    given: str = "once"  # twice, after {}


@st.composite
def pieces(draw: st.DrawFn, call: Said, at: int, style: Style) -> list[WireEvent]:
    whole = style.index != "own" and style.id in ("one", "empty", "none")  # nothing names the call that goes on
    texts = [call.text] if whole else draw(cut(call.text))
    if style.given != "once":
        texts = [call.text if style.given == "twice" else "{}", call.text]
    index = {"own": at, "zero": 0, "none": None}[style.index]
    names: list[str | None] = [call.name]
    if style.name in ("fragments", "growing") and len(call.name) > 1:
        middle = draw(st.integers(1, len(call.name) - 1))
        names = [call.name[:middle], call.name[middle:] if style.name == "fragments" else call.name]
    events = []
    texts = [""] * (len(names) - 1) + texts
    for number, text in enumerate(texts):
        name = names[number] if number < len(names) else call.name if style.name == "again" else None
        id = {"own": call.id, "one": "c", "empty": "", "none": None, "changing": f"{call.id}.{number}"}[style.id]
        if number and not style.id_again and style.id != "changing":
            id = "" if style.id == "empty" else None
        events.append(chunk(piece(text, index=index, id=id, name=name)))
    return events


STYLES = st.builds(
    Style,
    st.sampled_from(["own", "zero", "none"]),
    st.sampled_from(["own", "one", "empty", "none", "changing"]),
    st.booleans(),
    st.sampled_from(["once", "again", "fragments", "growing"]),
    st.sampled_from(["once", "once", "twice", "after {}"]),
)


@st.composite
def chat_streams(draw: st.DrawFn) -> tuple[list[Said], list[WireEvent]]:
    calls, style = draw(CALLS), draw(STYLES)
    short = {"a", "aa"} | ({"get"} if style.index != "own" else set())
    if any(call.name in short for call in calls):  # "a" and "a" may be either, "get" go on as another; that is an error
        style = style._replace(name="once")
    if style.id == "changing":  # with a name in each piece, each would be a call of its own
        style = style._replace(name="once")
    if style.id != "own":  # then what is given twice may be two calls
        style = style._replace(given="once")
    if style.given == "after {}" and style.id_again:  # named again with its id it may be another; that is an error
        style = style._replace(name="once")
    if style.id == "one" and style.index != "own":  # what is said twice of one call is one call
        calls = list({call.name: call for call in calls}.values())
    if style.index != "own" and style.id in ("empty", "none"):  # `{}` may only begin the next call; that is an error
        following = [*(call.name for call in calls[1:]), ""]
        calls = [call for call, name in zip(calls, following, strict=True) if call.arguments or call.name != name]
    threads = [draw(pieces(call, at, style)) for at, call in enumerate(calls)]
    events = draw(woven(threads)) if style.index == "own" else [event for thread in threads for event in thread]
    return calls, [*events, chunk(finish="tool_calls")]


def schemas_of(calls: list[Said]) -> dict[str, dict[str, Any]]:
    """The schemas of the called tools; one that is called without arguments only has no parameters."""
    taking = {call.name for call in calls if call.arguments}
    return {c.name: {"type": "object", "properties": {"n": {}} if c.name in taking else {}} for c in calls}


@settings(max_examples=EXAMPLES)
@given(chat_streams())
def test_chat(stream: tuple[list[Said], list[WireEvent]]) -> None:
    calls, events = stream
    for schemas in ({}, schemas_of(calls)):
        run = [e.call for e in read(ChatWire("server", TOOLS, schemas), events) if isinstance(e, CallEnd)]
        assert Counter((c.name, str(c.arguments)) for c in run) == Counter((c.name, str(c.arguments)) for c in calls)


@st.composite
def odder_chat_streams(draw: st.DrawFn) -> tuple[list[Said], list[WireEvent]]:
    """Everything at once: ids that change under repeated names, several calls under one id.

    Calls are woven where each piece has its call's index: no server is known that weaves others.
    """
    calls, style = draw(CALLS), draw(STYLES)
    if style.id in ("one", "changing") or (style.id != "own" and style.given == "twice"):
        style = style._replace(given="once")
    if style.id == "one" and style.index != "own":  # what is said twice of one call is one call
        calls = list({call.name: call for call in calls}.values())
    threads = [draw(pieces(call, at, style)) for at, call in enumerate(calls)]
    mixed = style.index == "own" and style.given == "once" and draw(st.booleans())
    events = draw(woven(threads)) if mixed else [event for thread in threads for event in thread]
    return calls, [*events, chunk(finish="tool_calls")]


@settings(max_examples=EXAMPLES)
@given(odder_chat_streams())
def test_chat_of_which_nobody_can_tell_the_calls(stream: tuple[list[Said], list[WireEvent]]) -> None:
    """What cannot be told apart may be an error; no call runs that was not said, nor oftener, and none is lost."""
    calls, events = stream
    found = read(ChatWire("server", TOOLS), events)
    ends = [e.call for e in found if isinstance(e, CallEnd)]
    run = Counter((call.name, json.dumps(call.arguments)) for call in ends if call.name in TOOLS)
    wanted = Counter((c.name, c.text) for c in calls)
    assert run <= wanted
    told = run.keys() == wanted.keys()  # what is said twice under one id is one call
    assert told or len(ends) > run.total() or any(isinstance(e, CallError) for e in found)


@pytest.mark.parametrize(
    ("late", "index", "codes"),
    [
        ("{}", 0, []),
        (" ", 0, []),
        ('{"n": 1}', 0, []),  # it says more of a call that has run, and nothing of the other one
        ("{}", 2, ["ambiguous_call"]),
    ],
)
def test_what_comes_late_at_the_place_of_a_call_is_no_part_of_the_call_around_it(
    late: str, index: int, codes: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    schemas = {"ping": {"type": "object"}, "get": {"type": "object", "properties": {"n": {}}}}
    named = [piece("", index=0, id="a", name="ping"), piece("", index=1, id="b", name="get")]
    pieces = [*named, piece('{"n": ', index=1), piece(late, index=index), piece('"x"}', index=1)]
    found = read(ChatWire("server", schemas, schemas), [*map(chunk, pieces), chunk(finish="tool_calls")])
    assert [e.code for e in found if isinstance(e, CallError)] == codes
    assert [e for e in found if isinstance(e, UnreadCall)] == ([UnreadCall("{}", "")] if codes else [])
    whole = [] if codes else [Said("b", "get", {"n": "x"})]
    assert ended(found) == [Said("a", "ping", {}), *whole]
    assert bool(caplog.records) == ("n" in late)


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


def test_a_call_that_has_ended_without_arguments_takes_no_piece_of_the_next_one() -> None:
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
    piece = {"type": "input_json_delta", "partial_json": '{"n": 1}'}
    for wire, event, end in (
        (ResponsesWire("r"), delta, response("completed", response={"status": "completed"})),
        (MessagesWire("a"), {"type": "content_block_delta", "index": 0, "delta": piece}, {"type": "message_stop"}),
    ):
        assert read(wire, [event, end])[0] == UnreadCall('{"n": 1}', "")


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


def test_a_block_begun_again_at_its_index_ends_the_first_one_first() -> None:
    first, second = Said("a", "get", {"n": "1"}), Said("b", "get", {"n": "2"})
    events: list[WireEvent] = []
    for call in (first, second):
        begins = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": call.text}
        events.append({"type": "content_block_start", "index": 0, "content_block": begins})
        events.append({"type": "content_block_delta", "index": 0, "delta": delta})
    found = read(MessagesWire("a"), [*events, {"type": "message_stop"}])
    assert [e.call.id for e in found if isinstance(e, CallEnd)] == ["a", "b"]


def test_whole_arguments_under_another_id_are_not_those_of_the_call_before() -> None:
    item = {"type": "function_call", "call_id": "call_0", "name": "get", "id": "fc_0", "arguments": ""}
    other = {**item, "call_id": "call_1", "id": "fc_1", "arguments": '{"n": "x"}'}
    events = [
        response("output_item.added", output_index=0, item=item),
        response("function_call_arguments.delta", output_index=0, item_id="fc_0", delta="{}"),
        response("function_call_arguments.done", output_index=0, item_id="fc_1", arguments='{"n": "x"}'),
        response("output_item.done", output_index=0, item=other),
        response("completed", response={"status": "completed", "output": []}),
    ]
    assert ended(read(ResponsesWire("responses"), events)) == said([("get", {}), ("get", {"n": "x"})])
