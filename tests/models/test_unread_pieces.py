"""One event of a sound stream in a shape that no protocol has: no call runs with a part of its arguments.

The call runs with all of them or not at all, whatever the shape, as bytes through the real SDKs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from streams import answer

from agentkit.events import CallEnd, CallError, Event, Text
from agentkit.models.messages_wire import MessagesWire
from agentkit.models.openai import ChatWire
from agentkit.models.responses_wire import ResponsesWire
from agentkit.models.wire import Wire, WireEvent
from agentkit.testing import Replay

EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "25"))

TEXT = '{"path": "/tmp/cache/old", "n": 1}'
CUTS = {"inside a string": ('{"path": "/tmp', "/cache/old", '", "n": 1}'), "one piece": ("", TEXT, "")}
WHOLE = json.loads(TEXT)
EARLIER = '{"path": "a"}'


class Api(NamedTuple):
    """How one protocol says a piece of a call, what is in that from the outside in, and what stands around it."""

    prefix: str
    wire: Callable[[], Wire]
    nested: Callable[[str], list[Any]]
    before: list[WireEvent]
    after: list[WireEvent]

    def piece(self, text: str) -> WireEvent:
        whole: WireEvent = self.nested(text)[0]
        return whole

    def stream(self, cut: tuple[str, str, str], event: object) -> list[Any]:
        """A response with two calls, of which the second one's middle piece is replaced."""
        first, _, last = cut
        return [
            *self.before,
            *([self.piece(first)] if first else []),
            event,
            *([self.piece(last)] if last else []),
            *self.after,
        ]


def chunk(delta: Any, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def of_chat(text: str) -> list[Any]:
    function = {"arguments": text}
    call = {"index": 1, "function": function}
    delta = {"tool_calls": [call]}
    whole = chunk(delta)
    return [whole, whole["choices"], whole["choices"][0], delta, [call], call, function, text]


def of_messages(text: str) -> list[Any]:
    delta = {"type": "input_json_delta", "partial_json": text}
    return [{"type": "content_block_delta", "index": 1, "delta": delta}, delta, text]


def of_responses(text: str) -> list[Any]:
    kind = "response.function_call_arguments.delta"
    return [{"type": kind, "output_index": 1, "item_id": "f1", "delta": text}, text]


def begun(id: str, name: str, at: int, text: str = "") -> WireEvent:
    call = {"index": at, "id": id, "type": "function", "function": {"name": name, "arguments": text}}
    return chunk({"tool_calls": [call]})


def block(at: int) -> WireEvent:
    tool = {"type": "tool_use", "id": f"c{at}", "name": "delete", "input": {}}
    return {"type": "content_block_start", "index": at, "content_block": tool}


def item(at: int) -> WireEvent:
    call = {"type": "function_call", "id": f"f{at}", "call_id": f"c{at}", "name": "delete", "arguments": ""}
    return {"type": "response.output_item.added", "output_index": at, "item": call}


APIS = {
    "chat": Api(
        "openai",
        lambda: ChatWire("s", ["delete"]),
        of_chat,
        [begun("c0", "delete", 0, EARLIER), begun("c1", "delete", 1)],
        [chunk({}, "tool_calls")],
    ),
    "messages": Api(
        "anthropic",
        lambda: MessagesWire("s"),
        of_messages,
        [
            {"type": "message_start", "message": {"usage": {"input_tokens": 1}}},
            block(0),
            {**of_messages(EARLIER)[0], "index": 0},
            {"type": "content_block_stop", "index": 0},
            block(1),
        ],
        [
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ],
    ),
    "responses": Api(
        "responses",
        lambda: ResponsesWire("s"),
        of_responses,
        [
            item(0),
            {**of_responses(EARLIER)[0], "output_index": 0, "item_id": "f0"},
            item(1),
        ],
        [{"type": "response.completed", "response": {"status": "completed", "output": []}}],
    ),
}
"""Responses without the items' ends: only the deltas say the arguments."""


def sse(events: list[Any], *, named: bool = False) -> str:
    names = [f"event: {e['type']}\n" if named and isinstance(e, dict) and e.get("type") else "" for e in events]
    return "".join(f"{name}data: {json.dumps(event)}\n\n" for name, event in zip(names, events, strict=True))


def read(wire: Wire, events: list[Any]) -> list[Event]:
    return [out for event in events for out in wire.feed(event)] + wire.close()


def run(events: list[Event]) -> list[dict[str, Any]]:
    """The arguments of the second call, if it runs."""
    ends = [e for e in events if isinstance(e, CallEnd)]
    return [dict(e.call.arguments) for e in ends if e.index != 0]


def check(events: list[Event]) -> None:
    assert [dict(e.call.arguments) for e in events if isinstance(e, CallEnd) and e.index == 0] == [json.loads(EARLIER)]
    found = run(events)
    assert found in ([], [WHOLE])
    assert found or any(isinstance(e, CallError) for e in events)


def everywhere(piece: list[Any], odd: Callable[[Any], Any]) -> list[Any]:
    """The event with each of the things in it in another shape; an object in place of the text is arguments."""
    found = []
    for inner in piece[:-1] if isinstance(odd(""), dict) else piece:
        text = json.dumps(piece[0])
        marked = json.dumps(inner)
        at = text.rindex(marked) if text.count(marked) > 1 else text.index(marked)
        found.append(json.loads(text[:at] + json.dumps(odd(inner)) + text[at + len(marked) :]))
    return found


ODD: dict[str, Callable[[Any], Any]] = {
    "in a list": lambda value: [value],
    "in two lists": lambda value: [[value]],
    "as JSON text": json.dumps,
    "in an object": lambda value: {"odd": value},
    "in another place": lambda value: {"index": 0, "text": value},
    "the first of a list": lambda value: value[0] if isinstance(value, list) else value,
    "a list of numbers and it": lambda value: [1, None, value],
}
MOVED: dict[str, Callable[[str], Any]] = {
    "arguments of the call": lambda t: chunk({"tool_calls": [{"index": 1, "arguments": t}]}),
    "args": lambda t: chunk({"tool_calls": [{"index": 1, "function": {"args": t}}]}),
    "function_call": lambda t: chunk({"function_call": {"arguments": t}}),
    "custom": lambda t: chunk({"tool_calls": [{"index": 1, "type": "custom", "custom": {"input": t}}]}),
    "message": lambda t: {"choices": [{"index": 0, "message": of_chat(t)[3]}]},
    "top": lambda t: {"delta": of_chat(t)[3]},
    "another index": lambda t: chunk({"tool_calls": [{"index": 7, "function": {"arguments": t}}]}),
    "another index and id": lambda t: chunk({"tool_calls": [{"index": 7, "id": "z", "function": {"arguments": t}}]}),
    "another block": lambda t: {**of_messages(t)[0], "index": 7},
    "an odd index": lambda t: {**of_messages(t)[0], "index": []},
    "no type": lambda t: {"index": 1, "delta": of_messages(t)[1]},
    "type null": lambda t: {**of_messages(t)[0], "type": None},
    "another type": lambda t: {**of_messages(t)[0], "type": "content_block_deltas"},
    "null for it": lambda t: {
        **of_messages("")[0],
        "delta": {"type": "input_json_delta", "partial_json": None, "t": t},
    },
    "beside": lambda t: {"type": "content_block_delta", "index": 1, "partial_json": t},
    "a ping": lambda t: {"type": "ping", "partial_json": t},
    "another delta": lambda t: {"type": "message_delta", "delta": {"partial_json": t}},
    "a block without type": lambda t: {"type": "content_block_start", "index": 7, "content_block": {"input": t}},
    "another item": lambda t: {**of_responses(t)[0], "output_index": 7, "item_id": "f7"},
    "another word": lambda t: {**of_responses(t)[0], "type": "response.function_call_arguments.more"},
    "other fields": lambda t: {**of_responses("")[0], "text": t},
    "an item without type": lambda t: {
        "type": "response.output_item.done",
        "output_index": 1,
        "item": {"arguments": t},
    },
    "text": lambda t: t,
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("kind", APIS)
def test_a_piece_that_is_moved_is_not_left_out_of_its_call(kind: str, cut: str) -> None:
    api = APIS[kind]
    for moved in MOVED.values():
        model = Replay([sse(api.stream(CUTS[cut], moved(CUTS[cut][1])))]).model(f"{api.prefix}:m")
        check(answer(model)[0])


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", APIS)
def test_a_piece_in_another_shape_is_not_left_out_of_its_call(kind: str, odd: str, cut: str) -> None:
    api = APIS[kind]
    for event in everywhere(api.nested(CUTS[cut][1]), ODD[odd]):
        model = Replay([sse(api.stream(CUTS[cut], event))]).model(f"{api.prefix}:m")
        check(answer(model)[0])


WORDS = (
    *("choices", "delta", "tool_calls", "function", "arguments", "message", "content", "text", "function_call", "item"),
    *("content_block", "partial_json", "input", "part", "odd", "args", "data", "response", "output", "index"),
)


@st.composite
def shapes(draw: st.DrawFn, nested: list[Any]) -> Any:
    """Something that holds the text of a piece somewhere."""
    value = draw(st.sampled_from(nested))
    for _ in range(draw(st.integers(0, 5))):
        match draw(st.sampled_from(["list", "object", "object", "text"])):
            case "list":
                value = draw(st.sampled_from([[value], [None, value], [{}, value]]))
            case "object":
                value = {
                    **draw(st.sampled_from([{}, {"index": 1}, {"type": "x"}])),
                    draw(st.sampled_from(WORDS)): value,
                }
            case _:
                value = json.dumps(value)
    return value


@pytest.mark.parametrize("kind", APIS)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_piece_in_any_shape_is_not_left_out_of_its_call(kind: str, data: st.DataObject) -> None:
    api = APIS[kind]
    cut = data.draw(st.sampled_from(list(CUTS.values())))
    event = data.draw(shapes(api.nested(cut[1])))
    shown = event if isinstance(event, dict) else {"": event}
    choices = shown.get("choices")
    choices = choices if isinstance(choices, list) else [choices]
    assume(kind != "chat" or not any(isinstance(one, dict) and one.get("index") for one in choices))  # only 0 is read
    assume(not any(isinstance(e, Text) for e in read(api.wire(), [shown])))
    check(read(api.wire(), api.stream(cut, shown)))


# ---------------------------------------------------------------- what costs nothing


QUIET: dict[str, list[Any]] = {
    "chat": [
        chunk({}),
        chunk({"role": "assistant", "content": None, "tool_calls": None, "refusal": None}),
        {"choices": [], "usage": {"prompt_tokens": 1}, "service_tier": "default"},
        {"choices": [], "prompt_filter_results": [{"content_filter_results": {"hate": {"severity": "safe"}}}]},
        {"choices": [{"index": 0, "content_filter_results": {"hate": {"severity": "safe"}}, "logprobs": None}]},
        {
            "id": "x",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [],
            "x_groq": {"id": "r"},
        },
        {"choices": [{"index": 0, "delta": {"odd": None, "more": 7, "other": [True, {}]}}]},
        {"choices": [{"index": 0, "delta": {"content": "", "provider_specific_fields": {"a": "b"}}}], "p": "abcd"},
    ],
    "messages": [
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 1}},
    ],
    "responses": [
        {"type": "response.in_progress", "response": {"id": "r", "instructions": "Be brief."}},
        {"type": "response.mcp_call_arguments.delta", "output_index": 3, "item_id": "m", "delta": '{"a'},
        {"type": "response.output_text.annotation.added", "item_id": "m", "annotation": {"url": "https://a.b"}},
    ],
}
HEARTBEATS: list[Any] = [{"type": "ping"}, {}, {"status": "working"}, None, [], "", 17, "ping", {"event": "heartbeat"}]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("kind", APIS)
def test_an_event_that_says_nothing_costs_no_call(kind: str, cut: str, caplog: pytest.LogCaptureFixture) -> None:
    api = APIS[kind]
    events = api.stream(CUTS[cut], api.piece(CUTS[cut][1]))
    at = len(api.before)
    for quiet in (*QUIET[kind], *HEARTBEATS):
        for place in range(at, len(events)):
            model = Replay([sse([*events[:place], quiet, *events[place:]])]).model(f"{api.prefix}:m")
            assert run(answer(model)[0]) == [WHOLE]
    assert not caplog.records


@pytest.mark.parametrize("kind", APIS)
def test_an_odd_event_between_calls_that_are_complete_costs_none(kind: str) -> None:
    """What is complete lacks nothing, and what begins afterwards had not begun."""
    api = APIS[kind]
    events = api.stream(CUTS["inside a string"], api.piece("/cache/old"))
    odd = {"odd": "words"}
    for place in (*range(len(api.before) - 1), len(api.before), len(events) - len(api.after)):
        check_all = read(api.wire(), [*events[:place], odd, *events[place:]])
        assert [dict(e.call.arguments) for e in check_all if isinstance(e, CallEnd)] == [json.loads(EARLIER), WHOLE]


def test_the_complete_item_counts_whatever_of_its_pieces_cannot_be_read() -> None:
    api = APIS["responses"]
    whole = {**item(1)["item"], "arguments": TEXT, "status": "completed"}
    for cut in CUTS.values():
        *events, end = api.stream(cut, {"type": "response.odd", "words": cut[1]})
        done = {"type": "response.output_item.done", "output_index": 1, "item": whole}
        assert run(read(api.wire(), [*events, done, end])) == [WHOLE]


# ---------------------------------------------------------------- what is plain is read


PLAIN: dict[str, Callable[[str], Any]] = {
    "no function": lambda t: chunk({"tool_calls": [{"index": 1, "arguments": t}]}),
    "calls as an object": lambda t: chunk({"tool_calls": {"index": 1, "function": {"arguments": t}}}),
    "choices as an object": lambda t: {"choices": {"index": 0, "delta": of_chat(t)[3]}},
    "delta in a list": lambda t: {"choices": [{"index": 0, "delta": [of_chat(t)[3]]}]},
    "chunk in a list": lambda t: [of_chat(t)[0]],
}


@pytest.mark.parametrize("plain", PLAIN)
def test_a_piece_of_a_chat_completion_that_is_plain_is_read(plain: str) -> None:
    api = APIS["chat"]
    for cut in CUTS.values():
        body = sse(api.stream(cut, PLAIN[plain](cut[1])))
        assert run(answer(Replay([body]).model("openai:m"))[0]) == [WHOLE]


def test_a_call_of_a_chat_completion_without_the_object_function_is_read() -> None:
    call = {"id": "c", "name": "delete", "arguments": TEXT}
    whole = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    for recording in (sse([chunk({"tool_calls": [call]}), chunk({}, "tool_calls")]), whole):
        events, _ = answer(Replay([recording]).model("openai:m"), stream=isinstance(recording, str))
        assert [(e.call.name, e.call.arguments) for e in events if isinstance(e, CallEnd)] == [("delete", WHOLE)]


@pytest.mark.parametrize("type", ["absent", None])
def test_the_name_of_a_server_sent_event_is_its_type_where_its_data_has_none(type: str | None) -> None:
    for kind in ("messages", "responses"):
        api = APIS[kind]
        cut = CUTS["inside a string"]
        events = api.stream(cut, api.piece(cut[1]))
        bare = [{k: v for k, v in e.items() if k != "type"} | ({"type": None} if type is None else {}) for e in events]
        body = "".join(
            f"event: {event['type']}\ndata: {json.dumps(one)}\n\n" for event, one in zip(events, bare, strict=True)
        )
        assert run(answer(Replay([body]).model(f"{api.prefix}:m"))[0]) == [WHOLE]


SAID = ["a ", "word", "."]
TEXTS: dict[str, Callable[[str], Any]] = {
    "a list of texts": lambda t: chunk({"content": [t]}),
    "a part": lambda t: chunk({"content": {"type": "text", "text": t}}),
    "a list of parts": lambda t: chunk({"content": [{"type": "text", "text": t}]}),
    "text of the delta": lambda t: chunk({"text": t}),
    "text of the choice": lambda t: {"choices": [{"index": 0, "text": t}]},
    "the delta": lambda t: chunk(t),
    "a list as delta": lambda t: chunk([{"content": t}]),
    "texts as delta": lambda t: chunk([t]),
}
LOST: dict[str, Any] = {
    "a message that is not the last word": {"choices": [{"index": 0, "message": {"content": "word"}}]},
    "a delta alone": {"delta": {"content": "word"}},
    "a message alone": {"message": {"content": "word"}, "done": False},
    "an odd part": chunk({"content": {"odd": "word"}}),
    "a text alone": "word",
}


@pytest.mark.parametrize("text", TEXTS)
def test_text_that_is_plain_is_read(text: str) -> None:
    first, middle, last = SAID
    body = sse([chunk({"content": first}), TEXTS[text](middle), chunk({"content": last}), chunk({}, "stop")])
    events, _ = answer(Replay([body]).model("openai:m"))
    assert events[0] == Text("".join(SAID))


@pytest.mark.parametrize("lost", LOST)
def test_text_that_cannot_be_read_is_reported(lost: str, caplog: pytest.LogCaptureFixture) -> None:
    first, _, last = SAID
    events = [chunk({"content": first}), LOST[lost], LOST[lost], chunk({"content": last}), chunk({}, "stop")]
    answer(Replay([sse(events)]).model("openai:m"))
    [record] = caplog.records
    assert "has a shape that cannot be read" in record.getMessage()
    assert "word" not in record.getMessage()
