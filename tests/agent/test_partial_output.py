"""The output while it is written: each value continues the one before, and the last one is the output."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal

import pytest
from growth import assert_linear, cpu_seconds
from pydantic import BaseModel, Field, field_validator
from pydantic_core import to_jsonable_python
from recordings import ABSENT, recording, rows
from streams import events_of

from agentkit import Agent, ToolCall
from agentkit.agent.partial_output import PartialOutput
from agentkit.errors import ConfigError
from agentkit.events import ArgumentDelta, CallEnd, CallStart, Event, Finish, Text, Thinking
from agentkit.testing import Replay, ScriptedModel
from agentkit.tool.reply import InvalidOutput, Output


class City(BaseModel):
    name: str
    people: int
    rivers: list[str] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Trip(BaseModel):
    cities: list[City]
    pet: Cat | None = Field(default=None, alias="animal")


class Loud(BaseModel):
    word: str

    @field_validator("word")
    @classmethod
    def shout(cls, word: str) -> str:
        return word.upper()


def partials(
    script: Sequence[Any], kind: Any = City, *, chunk: int = 4, format: str | None = None, **options: Any
) -> list[Any]:
    """The values of a run; the last one equals its output."""

    async def run() -> list[Any]:
        agent = Agent(ScriptedModel(script, chunk=chunk, format=format), output_type=kind, **options)
        stream = agent.stream("Where?")
        values = [value async for value in stream.partial_output()]
        if stream.result.output_error is None:
            assert values[-1] == to_jsonable_python(stream.result.output, by_alias=True)
        return values

    return asyncio.run(run())


def test_a_city_grows() -> None:
    assert partials(['{"name": "Ulm", "people": 128000, "rivers": ["Blau", "Donau"]}'], chunk=10) == [
        {"name": ""},
        {"name": "Ulm"},
        {"name": "Ulm", "people": 128000},
        {"name": "Ulm", "people": 128000, "rivers": ["Blau"]},
        {"name": "Ulm", "people": 128000, "rivers": ["Blau", "Donau"]},
    ]


def test_the_last_value_has_the_defaults() -> None:
    assert partials(['{"name": "Ulm", "people": 1}'], chunk=100) == [
        {"name": "Ulm", "people": 1},
        {"name": "Ulm", "people": 1, "rivers": []},
    ]


def test_a_number_is_shown_when_it_is_complete() -> None:
    values = partials(['{"name": "Ulm", "people": 128000}'], chunk=1)
    assert {value.get("people") for value in values} == {None, 128000}


@pytest.mark.parametrize(
    "before",
    ["Here it is:\n", "```json\n", "Sure {really}:\n\n```\n", '<think>Perhaps {"name": "Linz"}?</think>\n', "\n\n"],
)
def test_the_reply_may_begin_with_other_text(before: str) -> None:
    end = "\n```" if "```" in before else ""
    values = partials([before + '{"name": "Ulm", "people": 1}' + end])
    assert None not in values
    assert {"name": "Ul"} in values or {"name": "U"} in values or {"name": "Ulm"} in values


def test_thinking_comes_before_it() -> None:
    reply = [Thinking('{"name": "Linz"}'), '{"name": "Ulm", "people": 1}']
    assert [value["name"] for value in partials([reply])] == ["Ul", "Ulm", "Ulm", "Ulm"]


def test_another_reply_starts_anew_and_says_so() -> None:
    values = partials(['{"name": "Linz"}', "No.", '{"name": "Ulm", "people": 1}'], chunk=100)
    assert values == [{"name": "Linz"}, None, {"name": "Ulm", "people": 1}, {"name": "Ulm", "people": 1, "rivers": []}]


def test_a_run_without_an_output_takes_back_what_was_shown() -> None:
    assert partials(['{"name": "Linz"}'], chunk=100, output_retries=0) == [{"name": "Linz"}, None]


def test_a_reply_that_is_no_json_yields_nothing() -> None:
    assert partials(["It is {Ulm}."] * 3) == []


def test_a_value_that_a_validator_changes_starts_anew() -> None:
    assert partials(['{"word": "ulm"}'], Loud, chunk=100) == [{"word": "ulm"}, None, {"word": "ULM"}]


def test_fields_by_their_aliases() -> None:
    trip = {"cities": [{"name": "Ulm", "people": 1}], "animal": {"kind": "cat", "lives": 9}}
    values = partials([json.dumps(trip)], Trip, chunk=3)
    assert None not in values
    assert values[-2]["animal"] == {"kind": "cat", "lives": 9}


@pytest.mark.parametrize(
    ("kind", "reply", "values"),
    [
        (list[int], '{"value": [1, 22, 3]}', [[1], [1, 22], [1, 22, 3]]),
        (list[int], "[1, 22, 3]", [[1], [1, 22], [1, 22, 3]]),
        (Literal["red", "green"], '{"value": "green"}', ["", "g", "gr", "gre", "gree", "green"]),
        (Literal["red", "green"], '"green"', ["green"]),
        (dict[str, int] | list[int], '{"a": 1, "b": 2}', [{"a": 1}, {"a": 1, "b": 2}]),
        (dict[str, int] | list[int], '{"value": {"a": 1}}', [{"a": 1}]),
        (dict[str, int] | list[int], '{"value": 1}', [{"value": 1}]),
        (
            Cat | list[int],
            '{"kind": "cat", "lives": 9}',
            [*({"kind": "cat"[:n]} for n in range(4)), {"kind": "cat", "lives": 9}],
        ),
        (City | None, '{"value": null}', [None]),
        (bool, '{"value": true}', [True]),
        (list[list[int]], "The lists [a] and {b}: [[1], [2]]", [[[]], [[1]], [[1], []], [[1], [2]]]),
    ],
)  # fmt: skip
def test_other_types(kind: Any, reply: str, values: list[Any]) -> None:
    assert partials([reply], kind, chunk=1) == values


def test_a_field_that_the_type_ignores_is_not_shown() -> None:
    assert partials(['{"name": "Ulm", "note": "x", "people": 1}'], chunk=100) == [
        {"name": "Ulm"},
        {"name": "Ulm", "people": 1, "rivers": []},
    ]


def test_null_for_a_field_that_cannot_be_null_is_not_shown() -> None:
    assert partials(['{"name": "Ulm", "rivers": null, "people": 1}'], chunk=100) == [
        {"name": "Ulm"},
        {"name": "Ulm", "people": 1, "rivers": []},
    ]


@pytest.mark.parametrize("format", [None, "hermes", "xml", "qwen3_coder", "json_fence"])
def test_the_arguments_of_a_call_grow(format: str | None) -> None:
    arguments = {"name": "Ulm", "people": 1, "rivers": ["Blau"]}
    script = [ToolCall("", "final_result", {"name": "Linz"}), ToolCall("", "final_result", arguments)]
    values = partials(script, output_mode="tool", format=format, chunk=3)
    assert values[-1] == arguments
    assert {"name": "U"} in values or {"name": "Ul"} in values or {"name": "Ulm"} in values
    assert None in values


@pytest.mark.parametrize("format", [None, "hermes", "xml", "pythonic"])
def test_beside_tools(format: str | None) -> None:
    """JSON that begins like a call is not held back."""
    reply = '{"name": "Ulm", "people": 1}'
    values = partials([ToolCall("", "look", {}), reply], format=format, tools=[look])
    assert values[-1] == {"name": "Ulm", "people": 1, "rivers": []}
    assert {"name": "Ul"} in values


def look() -> str:
    """Look."""
    return "Ulm"


def test_a_run_whose_output_is_text_has_none() -> None:
    async def run() -> None:
        with pytest.raises(ConfigError, match="partial_output\\(\\) needs an output_type; for text write text_stream"):
            async for _ in Agent(ScriptedModel(["Hi"])).stream("Hi").partial_output():
                pass

    asyncio.run(run())


def test_leaving_the_loop_ends_the_run() -> None:
    async def run() -> str:
        stream = Agent(ScriptedModel([JSON_LIST], chunk=1), output_type=list[int]).stream("Hi")
        async for _ in stream.partial_output():
            break
        await stream.end()
        return stream.result.finish

    assert asyncio.run(run()) == "cancelled"


JSON_LIST = json.dumps([1, 2, 3, 4, 5, 6])


# ---------------------------------------------------------------- invariants


def see_all(output: Output, events: Iterable[Event], tool: str | None = None) -> list[Any]:
    partial = PartialOutput(output, tool)
    return [value for event in events for value in partial.see(event)]


def continues(shown: Any, value: Any) -> bool:
    match shown:
        case dict():
            return shown.keys() <= value.keys() and all(continues(shown[key], value[key]) for key in shown)
        case list():
            return len(shown) <= len(value) and all(map(continues, shown, value))
        case str():
            return bool(value.startswith(shown))
        case _:
            return bool(shown == value)


def assert_grows(values: Sequence[Any], final: Any) -> None:
    for value, following in pairwise([*values, final]):
        assert continues(value, following), (value, following)


TEXTS = [
    row["text"] for name in ("raw_outputs", "raw_malformed", "bfcl_recorded") for row in rows(f"{name}.jsonl")[::19]
]


@pytest.mark.skipif(not TEXTS, reason=ABSENT)
@pytest.mark.parametrize("kind", [dict[str, Any], list[Any], dict[str, Any] | list[Any], list[dict[str, Any]]])
def test_recorded_replies_cut_at_every_character(kind: Any) -> None:
    """A value never contradicts the output; replies of which none can be read may show the beginning of one."""
    output, read = Output(kind), 0
    for text in (text for text in TEXTS if len(text) < 3_000 and ("{" in text or "[" in text)):
        values = see_all(output, [*map(Text, text), Finish("stop")])
        assert None not in values
        try:
            final = to_jsonable_python(output.read(text))
        except InvalidOutput:
            continue
        read += 1
        assert_grows(values, final)
    assert read > 15


CALLS = [
    row
    for row in rows("wire.jsonl")
    if '"name": "final_result"' in json.dumps(row["response"]).replace("\\", "") and row["response"]["status"] == 200
]
PREFIXES = {"openai-chat": "openai", "openai-responses": "responses", "anthropic-messages": "anthropic"}


@pytest.mark.skipif(not CALLS, reason=ABSENT)
@pytest.mark.parametrize("row", CALLS, ids=lambda row: row["id"])
def test_recorded_calls_cut_at_every_character(row: dict[str, Any]) -> None:
    events = events_of(
        Replay([recording(row)], chunks=1).model(f"{PREFIXES[row['api']]}:m"), stream="sse" in row["response"]
    )
    ((call, index),) = [(e.call, e.index) for e in events if isinstance(e, CallEnd) and e.call.name == "final_result"]
    written = "".join(e.text for e in events if isinstance(e, ArgumentDelta) and e.index == index) or call.raw
    cut = [CallStart(index, call.name, call.id), *(ArgumentDelta(index, one) for one in written)]
    values = see_all(Output(dict[str, Any]), cut, "final_result")
    assert_grows(values, call.arguments)
    assert len(values) > 1


TEXT_OF: dict[str, Any] = {
    "one string": lambda size: json.dumps({"a": "x" * size}),
    "many objects": lambda size: json.dumps({"a": [{"k": n, "s": "ab"} for n in range(size // 24)]}),
    "deep": lambda size: json.dumps({"a": [[[n]] for n in range(size // 12)]}),
    "prose": lambda size: "I say {this} and [that]. " * (size // 25),
    "thinking": lambda size: "<think>" + '{"a": 1} ' * (size // 9),
}


@pytest.mark.parametrize("text", TEXT_OF)
def test_twice_the_reply_takes_twice_the_time(text: str) -> None:
    output = Output(dict[str, Any])

    def seconds(size: int) -> float:
        written = TEXT_OF[text](size)
        pieces = [Text(written[at : at + 16]) for at in range(0, len(written), 16)]
        return cpu_seconds(lambda: see_all(output, pieces))

    assert_linear(seconds, 20_000)
