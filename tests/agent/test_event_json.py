"""Every event as JSON and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentkit import Agent, FilePart, ImagePart, RunResult, TextPart, ToolCall, ToolResult
from agentkit.agent.lifecycle import Lifecycle, RunEnded, RunStarted, TurnEnded, TurnStarted
from agentkit.agent.outcome import AskedFor
from agentkit.errors import ProviderError, StoreError
from agentkit.events import (
    ApprovalRequired,
    ArgumentDelta,
    CallEnd,
    CallError,
    CallQuoted,
    CallStart,
    Event,
    Finish,
    InventedResult,
    Markup,
    ModelSelected,
    ProviderBlock,
    Text,
    Thinking,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
    UnreadCall,
    Usage,
    from_json,
    to_json,
)
from agentkit.messages import (
    AssistantMessage,
    MarkupPart,
    ProviderPart,
    SystemMessage,
    ThinkingPart,
    ToolMessage,
    UserMessage,
    user,
)
from agentkit.models import ModelRequest
from agentkit.testing import ScriptedModel
from agentkit.toolspec import Element, Node, OutputSchema, ToolSpec

ADD = ToolCall("call_1", "add", {"a": 1}, None, '{"a": 1}')

WORDS = st.text(max_size=8)
COUNTS = st.integers(0, 10**9)
INDEXES = st.integers(0, 9)
MAYBE = st.none() | WORDS
SECONDS = st.floats(0, 1e6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(WORDS, VALUES, max_size=3)
CALLS = st.builds(ToolCall, WORDS, WORDS, OBJECTS, MAYBE, WORDS)
CODES = st.sampled_from(["invalid_json", "truncated_call", "tool_error", "denied"])
IMAGES = st.builds(ImagePart, st.binary(min_size=1, max_size=9).map(lambda b: b"x" + b)) | st.just(
    ImagePart(url="https://a.example/b.png")
)
TEXTS = st.builds(TextPart, WORDS)
SHOWN = st.lists(TEXTS | IMAGES, max_size=3).map(tuple)
FILES = st.builds(FilePart, st.binary(min_size=1), st.sampled_from(["text/csv", "audio/wav"]), name=WORDS)
RESULTS = st.builds(ToolResult, VALUES, content=SHOWN, metadata=OBJECTS, reward=st.none() | SECONDS) | st.builds(
    ToolResult, error=WORDS, code=CODES, content=SHOWN, metadata=OBJECTS
)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
REPLIES = st.lists(
    TEXTS
    | CALLS
    | st.builds(ThinkingPart, WORDS, st.just("anthropic"), OBJECTS)
    | st.builds(MarkupPart, WORDS)
    | st.builds(ProviderPart, WORDS, OBJECTS, MAYBE),
    max_size=3,
).map(lambda parts: AssistantMessage(tuple(parts)))
ANSWERS = st.builds(ToolMessage, WORDS, WORDS, SHOWN, st.none() | CODES)
MESSAGES = (
    st.builds(SystemMessage, WORDS)
    | st.lists(TEXTS | IMAGES | FILES, max_size=3).map(lambda parts: UserMessage(tuple(parts)))
    | REPLIES
    | ANSWERS
)
NODES = st.builds(Node, WORDS, st.just("element"), st.just(("a", "b")))
ELEMENTS = st.builds(Element, WORDS, st.lists(NODES, max_size=2).map(tuple))
REQUESTS = st.builds(
    ModelRequest,
    st.lists(MESSAGES, max_size=3).map(tuple),
    st.lists(st.builds(ToolSpec, WORDS, WORDS, OBJECTS, st.none() | ELEMENTS), max_size=2).map(tuple),
    parallel_tool_calls=st.none() | st.booleans(),
    max_tokens=st.none() | COUNTS,
    temperature=st.none() | SECONDS,
    stop=st.lists(WORDS, max_size=2).map(tuple),
    extra=OBJECTS,
    output_schema=st.none() | st.builds(OutputSchema, WORDS, OBJECTS),
    written=st.frozensets(WORDS, max_size=2),
)
FINISHES = st.sampled_from(["stop", "max_turns", "approval"])
PENDING = st.lists(CALLS, max_size=2).map(tuple)
RUNS = st.builds(
    RunResult,
    WORDS,
    st.lists(MESSAGES, max_size=3).map(tuple),
    USAGES,
    COUNTS,
    FINISHES,
    pending=PENDING,
    output_error=MAYBE,
    guard_reason=MAYBE,
    estimated=st.booleans(),
    _output=st.none() | VALUES.map(lambda value: (value,)),
    _asked_for=st.dictionaries(WORDS, st.builds(AskedFor, WORDS, WORDS), max_size=2),
)

SEVERAL = st.lists(ANSWERS, max_size=2).map(tuple)
OUTER = st.builds(
    RunResult, WORDS, st.just(()), USAGES, COUNTS, FINISHES, delegated=st.dictionaries(WORDS, RUNS, max_size=1)
)

EVENTS: Mapping[Any, st.SearchStrategy[Any]] = {
    Text: st.builds(Text, WORDS),
    Thinking: st.builds(Thinking, WORDS),
    Markup: st.builds(Markup, WORDS),
    InventedResult: st.builds(InventedResult, WORDS),
    UnreadCall: st.builds(UnreadCall, WORDS, WORDS),
    ProviderBlock: st.builds(ProviderBlock, WORDS, OBJECTS, st.booleans(), st.none() | INDEXES),
    CallStart: st.builds(CallStart, INDEXES, WORDS, MAYBE),
    ArgumentDelta: st.builds(ArgumentDelta, INDEXES, WORDS, MAYBE),
    CallEnd: st.builds(CallEnd, INDEXES, CALLS, st.lists(WORDS, max_size=2).map(tuple)),
    CallError: st.builds(CallError, INDEXES, CODES, WORDS, CALLS, COUNTS),
    CallQuoted: st.builds(CallQuoted, CALLS, MAYBE),
    Usage: USAGES,
    ModelSelected: st.builds(ModelSelected, WORDS, st.lists(WORDS, max_size=2).map(tuple)),
    Finish: st.builds(Finish, st.sampled_from(["stop", "length"]), MAYBE),
    ToolStarted: st.builds(ToolStarted, INDEXES, CALLS),
    ToolCompleted: st.builds(ToolCompleted, INDEXES, CALLS, RESULTS, SECONDS),
    ToolFailed: st.builds(ToolFailed, INDEXES, CALLS, RESULTS, SECONDS),
    ToolSkipped: st.builds(ToolSkipped, INDEXES, CALLS, RESULTS),
    ApprovalRequired: st.builds(ApprovalRequired, INDEXES, CALLS, WORDS, PENDING),
    RunStarted: st.just(RunStarted()),
    TurnStarted: st.builds(TurnStarted, COUNTS, REQUESTS),
    TurnEnded: st.builds(TurnEnded, COUNTS, REPLIES, SEVERAL, USAGES, FINISHES, SECONDS),
    RunEnded: st.builds(RunEnded, RUNS | OUTER, st.none()),
}


def test_every_event_has_a_case() -> None:
    assert {*EVENTS} == {*get_args(Event), *get_args(Lifecycle)}


@pytest.mark.parametrize("kind", EVENTS)
@given(data=st.data())
def test_an_event_comes_back_from_json_as_it_was(kind: Any, data: st.DataObject) -> None:
    event = data.draw(EVENTS[kind])
    assert from_json(json.loads(json.dumps(to_json(event)))) == event


@pytest.mark.parametrize(
    ("event", "body"),
    [
        (Text("Hi"), {"event": "text", "text": "Hi"}),
        (
            CallEnd(0, ADD),
            {
                "event": "call_end",
                "index": 0,
                "call": {"id": "call_1", "name": "add", "arguments": {"a": 1}, "raw": '{"a": 1}'},
                "repairs": [],
            },
        ),
        (
            ToolFailed(0, ToolCall("c", "add"), ToolResult(error="no"), 0.5),
            {
                "event": "tool_failed",
                "index": 0,
                "call": {"id": "c", "name": "add", "arguments": {}},
                "result": {"ok": False, "text": "no", "code": "tool_error", "error": "no"},
                "seconds": 0.5,
            },
        ),
    ],
)
def test_an_event_as_json(event: Any, body: Any) -> None:
    assert to_json(event) == body


class City(BaseModel):
    name: str


@dataclass
class Row:
    city: City
    size: int


def test_a_value_of_a_class_is_its_json_and_the_model_reads_the_same_text() -> None:
    result = ToolResult(Row(City(name="Bonn"), 3), metadata={"row": Row(City(name="Bonn"), 3)})
    back = from_json(to_json(ToolCompleted(0, ADD, result, 0.1)))
    assert isinstance(back, ToolCompleted)
    assert back.result.output == back.result.metadata["row"] == {"city": {"name": "Bonn"}, "size": 3}
    assert back.result.text == result.text


def test_the_output_and_the_error_of_a_run() -> None:
    run = RunResult("{}", (user("Hi"),), Usage(1, 2), 1, "stop", _output=(City(name="Bonn"),))
    back = from_json(to_json(RunEnded(run, ProviderError("no key", kind="authentication", provider="openai"))))
    assert isinstance(back, RunEnded)
    assert back.result.output == {"name": "Bonn"}
    assert str(back.error) == "ProviderError: no key"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"event": "txet", "text": "Hi"}, "no event of this version of agentkit: dict .*; did you mean 'text'"),
        ({"text": "Hi"}, "no event of this version of agentkit: dict {'text': 'Hi'}"),
        (["text"], r"an event: expected an object, found list \['text'\]"),
        ({"event": "text", "text": 5}, "text.text: expected str, found int 5"),
        (
            {"event": "text", "text": "Hi", "tone": "warm"},
            "text: expected text, found the fields tone; a newer",
        ),
        ({"event": "tool_started", "index": 0}, "tool_started: expected index, call, found index"),
        ({"event": "tool_started", "index": 0, "call": "add"}, "tool_started.call: expected id, name"),
        ({"event": "tool_skipped", "index": 0, "call": {"id": "", "name": ""}, "result": {}}, "expected a result"),
        ({"event": "call_end", "index": True, "call": {}}, "call_end.index: expected int, found bool True"),
        ({"event": "run_ended", "result": {"text": "", "messages": [{"role": "x"}]}, "error": None}, "cannot be read"),
    ],
)
def test_what_is_no_event_is_refused_with_what_was_found(body: Any, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        from_json(body)


def test_only_events_are_written() -> None:
    with pytest.raises(TypeError, match=r"to_json\(…\) expects an event, found str 'Hi'"):
        to_json("Hi")  # type: ignore[arg-type]


def test_values_that_json_does_not_have_are_written_as_results_show_them() -> None:
    call = ToolCall("c1", "add", {"a": float("nan")})
    done = ToolCompleted(0, call, ToolResult("ok", metadata={"seen": {1, "b"}, "far": float("inf")}), 0.1)
    written = to_json(done)
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    assert (written["call"]["arguments"], written["result"]["metadata"]["far"]) == ({"a": "NaN"}, "Infinity")


def add(a: int, b: int = 0) -> int:
    """Add."""
    return a + b


def test_what_a_turn_began_with_stays_what_it_was() -> None:
    kept: list[Any] = []
    agent = Agent(ScriptedModel([ADD, "Done."]), [add], hooks=[lambda event, run: kept.append(event)])
    agent.run_sync("Go.")
    turns = [event for event in kept if isinstance(event, TurnStarted)]
    assert [len(turn.request.messages) for turn in turns] == [1, 3]
    assert turns[0] == from_json(to_json(turns[0]))
