"""Responses whose item ids change with every event, as GitHub Copilot's do: their places tell the items apart.

What is read equals the final object, whatever of an item came in pieces, and between which others.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.events import CallEnd, CallError, CallStart, Event, Finish, ProviderBlock, Text, Thinking, UnreadCall
from agentkit.models.responses import ResponsesWire
from agentkit.models.wire import WireEvent
from models.test_odd_streams import EXAMPLES, OBJECTS, TOOLS, cut, read, response, woven

Item = dict[str, Any]


@st.composite
def item(draw: st.DrawFn, at: int) -> Item:
    """One item of the final object. Its words have letters that no other's have, so that they can be told apart."""
    words = chr(ord("a") + at) * draw(st.integers(0, 8))
    match draw(st.sampled_from(["message", "reasoning", "function_call", "function_call"])):
        case "message":
            content = [{"type": "output_text", "text": words}] if words else []
            return {
                "type": "message",
                "role": "assistant",
                "phase": draw(st.sampled_from([None, "p"])),
                "content": content,
            }
        case "reasoning":
            summary = [{"type": "summary_text", "text": words}] if words else []
            return {"type": "reasoning", "encrypted_content": f"secret {at}", "summary": summary}
    arguments = json.dumps(draw(OBJECTS))
    call = {"type": "function_call", "call_id": f"call_{at}", "name": draw(st.sampled_from(TOOLS))}
    return {**call, "arguments": arguments, "status": "completed"}


Ids = Callable[[], str]


@st.composite
def events_of_item(draw: st.DrawFn, whole: Item, at: int, ids: Ids, *, in_end: bool) -> list[WireEvent]:
    empty: Item = {"message": {"content": []}, "reasoning": {"summary": []}}.get(whole["type"], {"arguments": ""})
    events = [
        response("output_item.added", output_index=at, item={**whole, **empty, "id": ids(), "status": "in_progress"})
    ]

    def part(kind: str, **fields: Any) -> WireEvent:
        return response(kind, output_index=at, item_id=ids(), **fields)

    name, place, text = {
        "message": ("output_text", {"content_index": 0}, _words(whole)),
        "reasoning": ("reasoning_summary_text", {"summary_index": 0}, _words(whole)),
    }.get(whole["type"], ("function_call_arguments", {}, whole.get("arguments", "")))
    if draw(st.booleans()):
        events += [part(f"{name}.delta", **place, delta=piece) for piece in draw(cut(text)) if piece]
    if draw(st.booleans()):
        full = {"arguments" if whole["type"] == "function_call" else "text": text}
        events.append(part(f"{name}.done", **place, **full))
    if not in_end or draw(st.booleans()):
        events.append(response("output_item.done", output_index=at, item={**whole, "id": ids()}))
    return events


def _words(whole: Item) -> str:
    return "".join(one["text"] for one in whole.get("content") or whole.get("summary") or ())


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Item], list[WireEvent]]:
    numbers = count()
    in_end = draw(st.booleans())

    def ids() -> str:
        return f"opaque{next(numbers)}"

    items = [draw(item(at)) for at in range(draw(st.integers(1, 3)))]
    threads = [draw(events_of_item(one, at, ids, in_end=in_end)) for at, one in enumerate(items)]
    output = [{**one, "id": ids()} for one in items] if in_end or draw(st.booleans()) else []
    end = response("completed", response={"status": "completed", "output": output})
    return items, [*draw(woven(threads)), end]


def _told(events: list[Event], kind: type[Text] | type[Thinking]) -> str:
    return "".join(sorted("".join(e.text for e in events if isinstance(e, kind))))


def _blocks(events: list[Event]) -> list[Item]:
    found = [{k: v for k, v in e.data.items() if k != "id"} for e in events if isinstance(e, ProviderBlock)]
    return sorted(found, key=json.dumps)


@settings(max_examples=EXAMPLES)
@given(streams())
def test_what_is_read_is_the_final_object(stream: tuple[list[Item], list[WireEvent]]) -> None:
    items, events = stream
    found = read(ResponsesWire("r"), events)
    calls = [i for i in items if i["type"] == "function_call"]
    ended = sorted((e.call for e in found if isinstance(e, CallEnd)), key=lambda call: call.id)
    assert [(c.id, c.name, dict(c.arguments)) for c in ended] == [
        (c["call_id"], c["name"], json.loads(c["arguments"])) for c in calls
    ]
    assert not [e for e in found if isinstance(e, CallError)]
    assert len([e for e in found if isinstance(e, CallStart)]) == len(calls)
    assert _told(found, Text) == "".join(_words(i) for i in items if i["type"] == "message")
    assert _told(found, Thinking) == "".join(_words(i) for i in items if i["type"] == "reasoning")
    kept = [i for i in items if i["type"] == "reasoning"]
    kept += [{"type": "message", "phase": i["phase"]} for i in items if i["type"] == "message" and i["phase"]]
    assert _blocks(found) == sorted(kept, key=json.dumps)
    assert found[-1] == Finish("tool_calls" if calls else "stop", "completed")


def _call(id: str, arguments: str = "", status: str = "in_progress") -> Item:
    call = {"type": "function_call", "call_id": "c", "name": "get", "arguments": arguments, "status": status}
    return {**call, "id": id}


PIECES = [
    response("output_item.added", output_index=0, item=_call("1")),
    *(
        response("function_call_arguments.delta", output_index=0, item_id=f"1{at}", delta=text)
        for at, text in enumerate('{"n": "x')
    ),
]


@pytest.mark.parametrize(
    "end",
    [
        [],
        [response("incomplete", response={"status": "incomplete", "output": []})],
        [response("incomplete", response={"status": "incomplete", "output": [_call("2", '{"n": "x', "incomplete")]})],
        [response("output_item.done", output_index=0, item=_call("2", '{"n": "x', "incomplete"))],
    ],
    ids=["interrupted", "cut", "cut with its item", "its item alone"],
)
def test_a_call_that_was_cut_is_one(end: list[WireEvent]) -> None:
    found = read(ResponsesWire("r"), [*PIECES, *end])
    errors = [(e.code, e.position) for e in found if isinstance(e, CallError)]
    assert errors == [("truncated_call", len('{"n": "x'))]


@pytest.mark.parametrize("done", [True, False])
def test_pieces_under_changing_ids_are_those_of_the_call_at_their_place(done: bool) -> None:
    """No item has the arguments whole (openclaw#108630)."""
    events = []
    for at, text in enumerate(('{"n": "x"}', '{"n": "y"}')):
        events.append(response("output_item.added", output_index=at, item={**_call(f"i{at}"), "call_id": f"c{at}"}))
        for number, part in enumerate((text[:4], text[4:])):
            fields = {"output_index": at, "item_id": f"i{at}.{number}"}
            events.append(response("function_call_arguments.delta", **fields, delta=part))
        if done:
            fields = {"output_index": at, "item_id": f"i{at}.done"}
            events.append(response("function_call_arguments.done", **fields, arguments=text))
    end = response("completed", response={"status": "completed", "output": []})
    found = read(ResponsesWire("r"), [*events, end])
    whole = [("c0", '{"n": "x"}'), ("c1", '{"n": "y"}')]
    assert [(e.call.id, e.call.raw) for e in found if isinstance(e, CallEnd)] == whole
    assert not [e for e in found if isinstance(e, CallError | UnreadCall)]
