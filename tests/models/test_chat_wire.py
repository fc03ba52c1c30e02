"""Chat completions, chunk by chunk: what servers really send, and the events that it means."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Event,
    Finish,
    ProviderBlock,
    Text,
    Thinking,
    UnreadCall,
    Usage,
    merge,
)
from agentkit.messages import ToolCall
from agentkit.models.openai import ChatWire, chunks_of
from agentkit.models.stream_errors import ErrorInStream
from agentkit.models.wire import DONE, WireEvent


def read(*chunks: WireEvent) -> list[Event]:
    """The merged events of a stream that ends after these chunks."""
    wire = ChatWire("openai")
    events = [event for chunk in chunks for event in wire.feed(chunk)]
    return merge([*events, *wire.close()])


def delta(finish: str | None = None, **fields: Any) -> WireEvent:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def piece(text: str = "", **fields: Any) -> WireEvent:
    """A chunk with one piece of a call: `piece('{"a"', index=0, id="x", name="f")`."""
    name = {"name": fields.pop("name")} if "name" in fields else {}
    return delta(tool_calls=[{**fields, "function": {**name, "arguments": text}}])


def end(reason: str | None = "tool_calls") -> WireEvent:
    return delta(finish=reason)


def call(id: str, name: str, text: str) -> ToolCall:
    return ToolCall(id, name, json.loads(text or "{}"), None, text)


def calls(events: Iterable[Event]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(e.call.id, e.call.name, dict(e.call.arguments)) for e in events if isinstance(e, CallEnd)]


# ---------------------------------------------------------------- text, thinking, usage, finish


def test_text() -> None:
    assert read(delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"), end("stop")) == [
        Text("Hello"),
        Finish("stop", "stop"),
    ]


def test_whole_response_goes_the_same_way() -> None:
    body = {
        "choices": [
            {
                "index": 0,
                "message": {
                    "content": "I add.",
                    "reasoning": "Hm.",
                    "tool_calls": [
                        {"id": "x", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}},
                        {"id": "y", "type": "function", "function": {"name": "ping", "arguments": ""}},
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
    }
    assert read(*chunks_of(body)) == [
        Thinking("Hm."),
        ProviderBlock("openai", {"reasoning": "Hm."}, thinking=True),
        Text("I add."),
        CallStart(0, "add", "x"),
        ArgumentDelta(0, '{"a":1}'),
        CallEnd(0, call("x", "add", '{"a":1}')),
        CallStart(1, "ping", "y"),
        CallEnd(1, call("y", "ping", "")),
        Usage(10, 7, 4, 2, 3),
        Finish("tool_calls", "tool_calls"),
    ]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_of_compatible_servers_is_kept_under_its_own_name(field: str) -> None:
    assert read(delta(**{field: "I th"}), delta(**{field: "ink."}), delta(content="Yes"), end("stop")) == [
        Thinking("I think."),
        ProviderBlock("openai", {field: "I think."}, thinking=True),
        Text("Yes"),
        Finish("stop", "stop"),
    ]


def test_reasoning_details_are_joined_and_kept() -> None:
    first = {"type": "reasoning.text", "index": 0, "text": "I th"}
    rest = {"type": "reasoning.text", "index": 0, "text": "ink.", "signature": "S"}
    events = read(
        delta(reasoning="I th", reasoning_details=[first]),
        delta(reasoning="ink.", reasoning_details=[rest]),
        end("stop"),
    )
    kept = {"type": "reasoning.text", "index": 0, "text": "I think.", "signature": "S"}
    assert events[:2] == [
        Thinking("I think."),
        ProviderBlock("openai", {"reasoning_details": [kept]}, thinking=True),
    ]


def test_thinking_inside_content_parts() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    assert read(delta(content=[thought]), delta(content=[{"type": "text", "text": "Yes"}]), end("stop")) == [
        Thinking("Hm."),
        Text("Yes"),
        Finish("stop", "stop"),
    ]


@pytest.mark.parametrize(
    "place",
    [
        lambda usage: {"choices": [], "usage": usage},
        lambda usage: {"choices": [{"index": 0, "delta": {}, "usage": usage}]},
        lambda usage: {"choices": [], "x_groq": {"id": "r", "usage": usage}},
    ],
    ids=["chunk", "choice", "x_groq"],
)
@pytest.mark.parametrize("after", [None, {}, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}])
def test_usage_is_read_wherever_it_is_and_nothing_does_not_replace_it(place: Any, after: Any) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    events = read(delta(content="Hi"), place(usage), {**end("stop"), "usage": after}, DONE)
    assert events == [Text("Hi"), Usage(3, 1), Finish("stop", "stop")]


def test_usage_comes_after_the_finish_and_is_told_once() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    early = {**delta(content="Hi"), "usage": {"prompt_tokens": 3, "completion_tokens": 0}}
    assert read(early, end("stop"), usage, DONE) == [Text("Hi"), Usage(3, 1), Finish("stop", "stop")]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
        ("error", "error"),
        ("", "unknown"),
        ("new_reason", "unknown"),
    ],
)
def test_finish_reasons(raw: str, reason: str) -> None:
    assert read(delta(content="Hi"), end(raw))[-1] == Finish(reason, raw or None)  # type: ignore[arg-type]


def test_refusal_is_text_with_a_finish_of_its_own() -> None:
    assert read(delta(refusal="I will"), delta(refusal=" not."), end("stop")) == [
        Text("I will not."),
        Finish("refusal", "stop"),
    ]


def test_character_cut_into_surrogate_halves_is_joined() -> None:
    halves = [json.loads('{"content": "\\ud83d"}'), json.loads('{"content": "\\ude00!"}')]
    assert read(*(delta(**half) for half in halves), end("stop"))[0] == Text("😀!")


# ---------------------------------------------------------------- calls

ADD = '{"a":1,"b":2}'
NOTE = '{"text":"b"}'


def test_two_calls_interleaved_in_single_characters() -> None:
    chunks = [piece(index=0, id="x", name="add"), piece(index=1, id="y", name="note")]
    for a, b in zip(ADD.ljust(20), NOTE.ljust(20), strict=True):
        chunks += [piece(a, index=0), piece(b, index=1)]
    events = read(*chunks, end())
    assert calls(events) == [("x", "add", {"a": 1, "b": 2}), ("y", "note", {"text": "b"})]
    assert [e.index for e in events if isinstance(e, CallStart)] == [0, 1]


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([piece(index=0, id="x", name="add"), *(piece(c, index=0, id="x") for c in ADD)], id="id repeated"),
        pytest.param([piece(c, index=0, id="x", name="add") for c in ADD], id="id and name repeated"),
        pytest.param([piece(index=0, id="x", name="add"), *(piece(c) for c in ADD)], id="later index missing"),
        pytest.param([piece(id="x", name="add"), *(piece(c, id="x") for c in ADD)], id="index missing"),
        pytest.param([piece(id="x"), piece(name="add"), piece(ADD)], id="name later"),
        pytest.param([piece("{}", index=0, id="x", name="add"), piece(ADD, index=0)], id="empty object first"),
        pytest.param([piece(ADD, index=0, id="x", name="add"), piece(ADD, index=0)], id="object repeated"),
        pytest.param([piece(ADD, index=0, id="x", name="add"), piece("\n", index=0)], id="white space after"),
    ],
)
@pytest.mark.parametrize("reason", ["tool_calls", "stop", "", None])
def test_one_call_however_it_is_sent(chunks: list[WireEvent], reason: str | None) -> None:
    events = read(*chunks, end(reason), DONE)
    assert calls(events) == [("x", "add", {"a": 1, "b": 2})]
    assert events[-1] == Finish("tool_calls", reason or None)


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([piece(ADD, id="x", name="add"), piece(NOTE, id="y", name="note")], id="index missing"),
        pytest.param([piece(ADD, index=0, id="x", name="add"), piece(NOTE, index=0, id="y", name="note")], id="all 0"),
        pytest.param(
            [piece(ADD, index=0, id="x", name="add"), piece(index=0, id="y", name="note"), piece(NOTE, index=0)],
            id="all 0, then deltas by index",
        ),
        pytest.param(
            [
                piece("{}", index=0, id="x", name="add"),
                piece("{}", index=1, id="y", name="note"),
                piece(ADD, index=0),
                piece(NOTE, index=1),
            ],
            id="empty objects first",
        ),
    ],
)
def test_two_calls_however_they_are_sent(chunks: list[WireEvent]) -> None:
    events = read(*chunks, end(None), DONE)
    assert calls(events) == [("x", "add", {"a": 1, "b": 2}), ("y", "note", {"text": "b"})]


def test_two_calls_without_index_and_id() -> None:
    events = read(piece('{"a":1}', name="add"), piece('{"a":2}', name="add"), end())
    assert calls(events) == [("", "add", {"a": 1}), ("", "add", {"a": 2})]


@pytest.mark.parametrize("text", ["", "{}", "null"])
def test_call_without_arguments(text: str) -> None:
    assert calls(read(piece(text, index=0, id="x", name="ping"), end())) == [("x", "ping", {})]


def test_calls_end_with_their_response() -> None:
    wire = ChatWire("openai")
    wire.feed(piece(ADD, index=0, id="x", name="add"))
    assert [type(e) for e in wire.feed(piece(NOTE, index=1, id="y", name="note"))] == [CallStart, ArgumentDelta]
    assert [type(e) for e in wire.feed(end())] == []
    assert [type(e) for e in wire.close()] == [CallEnd, CallEnd, Finish]


def test_a_call_that_begins_beside_an_incomplete_one_in_its_place_refuses_both() -> None:
    first, second = piece('{"a":', index=0, id="x", name="add"), piece(NOTE, index=0, id="y", name="note")
    events = read(first, second, end())
    assert [(e.call.id, e.code) for e in events if isinstance(e, CallError)] == [
        ("x", "ambiguous_call"),
        ("y", "ambiguous_call"),
    ]


def test_complete_calls_of_an_interrupted_response_run_but_for_the_last() -> None:
    wire = ChatWire("openai")
    for at, id in enumerate("xyz"):
        wire.feed(piece('{"a"' if id == "y" else ADD, index=at, id=id, name="add"))
    ends = [e for e in wire.close() if isinstance(e, CallEnd | CallError)]
    assert [e.call.id if isinstance(e, CallEnd) else e.code for e in ends] == ["x", "truncated_call", "truncated_call"]


def test_arguments_as_an_object() -> None:
    whole = delta(tool_calls=[{"id": "x", "function": {"name": "add", "arguments": {"a": 1}}}])
    assert calls(read(whole, end())) == [("x", "add", {"a": 1})]


def test_broken_json_costs_its_own_call_only() -> None:
    events = read(
        piece('{"text": "a', index=0, id="x", name="note"), piece('{"text":"b"}', index=1, id="y", name="note"), end()
    )
    good = CallEnd(1, call("y", "note", '{"text":"b"}'))
    bad = events[-3]
    assert isinstance(bad, CallError)
    assert (bad.index, bad.code, bad.position) == (0, "invalid_json", 9)
    assert bad.call == ToolCall("x", "note", {}, None, '{"text": "a')
    assert events[-2:] == [good, Finish("tool_calls", "tool_calls")]


def test_truncated_call_beside_a_good_one() -> None:
    events = read(
        piece("", index=0, id="x", name="ping"), piece('{"text": "a', index=1, id="y", name="note"), end("length")
    )
    assert calls(events) == [("x", "ping", {})]
    assert [(e.index, e.code) for e in events if isinstance(e, CallError)] == [(1, "truncated_call")]
    assert events[-1] == Finish("length", "length")


@pytest.mark.parametrize("text", ["", "{}"])
def test_last_call_without_arguments_yet_is_truncated_at_the_limit(text: str) -> None:
    events = read(piece(text, index=0, id="x", name="create_file"), end("length"))
    assert calls(events) == []
    assert [e.code for e in events if isinstance(e, CallError)] == ["truncated_call"]


def test_call_without_a_name() -> None:
    events = read(piece(ADD, index=0, id="x"), end())
    assert events == [UnreadCall(ADD, ""), Finish("tool_calls", "tool_calls")]


def test_extra_fields_of_a_call_are_kept_for_their_server() -> None:
    signature = {"google": {"thought_signature": "S"}}
    whole = delta(
        tool_calls=[{"index": 0, "id": "x", "extra_content": signature, "function": {"name": "f", "arguments": "{}"}}]
    )
    assert ProviderBlock("openai", {"extra_content": signature}, index=0) in read(whole, end())


# ---------------------------------------------------------------- ends


def test_stream_that_just_stops_is_not_done() -> None:
    wire = ChatWire("openai")
    wire.feed(delta(content="Hel"))
    wire.feed(piece('{"a"', index=0, id="x", name="add"))
    assert [type(e) for e in wire.close()] == [CallError]
    assert not wire.done


def test_error_inside_the_stream() -> None:
    wire = ChatWire("openai")
    with pytest.raises(ErrorInStream, match="Overloaded") as caught:
        wire.feed({"error": {"code": 502, "message": "Overloaded"}, "choices": []})
    assert caught.value.code == "502"


WIRE_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["index", "id", "function", "name", "arguments", "content", "tool_calls", "reasoning"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(st.sampled_from(["delta", "index", "finish_reason"]), WIRE_JSON), max_size=6))
def test_no_chunk_breaks_the_machine(choices: list[dict[str, Any]]) -> None:
    wire = ChatWire("openai")
    events = [e for c in choices for e in wire.feed({"choices": [c], "usage": c.get("delta")})]
    events += wire.close()
    begun = [e.index for e in events if isinstance(e, CallStart)]
    ended = [e.index for e in events if isinstance(e, CallEnd | CallError)]
    assert sorted(begun) == sorted(ended) == list(range(len(begun)))


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 9))))
def test_cut_law(cuts: list[tuple[int, int]]) -> None:
    """However the arguments of two calls are cut and interleaved, the same calls come out."""
    texts = [ADD, '{"text": "x\\ny", "deep": {"list": [1, 2, {"a": null}]}}']
    rest = list(texts)
    chunks = [piece(index=0, id="x", name="add"), piece(index=1, id="y", name="note")]
    for at, size in [*cuts, (0, 99), (1, 99)]:
        chunks.append(piece(rest[at][:size], index=at))
        rest[at] = rest[at][size:]
    events = read(*chunks, end())
    assert [e.call for e in events if isinstance(e, CallEnd)] == [
        call("x", "add", texts[0]),
        call("y", "note", texts[1]),
    ]
