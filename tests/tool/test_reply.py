"""A type as what the final reply must be: the schema that a model is shown, and what becomes of what it writes."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from agentkit import Agent, ToolCall
from agentkit.agent import RunResult
from agentkit.errors import ConfigError, OutputError, SchemaError
from agentkit.events import Finish, Text
from agentkit.messages import AssistantMessage, ToolMessage, UserMessage
from agentkit.models import TextCalling
from agentkit.testing import ScriptedModel
from agentkit.tool.reply import InvalidOutput, Output


class City(BaseModel):
    """A city of the world."""

    name: str
    people: Annotated[int, Field(ge=0)]
    twins: list[str] = []


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


@dataclass
class Point:
    x: float
    y: float


class Move(TypedDict):
    to: Point


COUNTS, TREE = Output(dict[str, int]), Output(Tree)
CITY = City(name="Ulm", people=128_000)
ULM = '{"name": "Ulm", "people": 128000}'
BERN = '{"name": "Bern", "people": 134000}'

# ---------------------------------------------------------------- the schema


def test_an_object_is_the_schema_itself() -> None:
    output = Output(City).schema
    assert output.name == "City"
    assert output.schema == {
        "type": "object",
        "description": "A city of the world.",
        "properties": {
            "name": {"type": "string"},
            "people": {"type": "integer", "minimum": 0},
            "twins": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["name", "people"],
    }


def test_what_is_no_object_travels_in_one() -> None:
    output = Output(list[int]).schema
    assert output.name == "list"
    assert output.schema == {
        "type": "object",
        "properties": {"value": {"type": "array", "items": {"type": "integer"}}},
        "required": ["value"],
        "additionalProperties": False,
    }


def test_a_type_that_holds_itself_keeps_its_definition() -> None:
    schema = Output(Tree).schema.schema
    assert schema["type"] == "object"
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert list(schema["$defs"]) == ["Tree"]


def test_a_type_without_schema_is_the_authors_fault() -> None:
    class Plain:
        pass

    with pytest.raises(SchemaError, match="output_type is Plain, which has no JSON Schema"):
        Output(Plain)


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("wanted", "text", "value"),
    [
        (City, ULM, CITY),
        (City, f"\n {ULM} \n", CITY),
        (City, f"Here you are:\n```json\n{ULM}\n```\nAnything else?", CITY),
        (City, f"```{ULM}```", CITY),
        (City, f"The city {{see above}} is {ULM}.", CITY),
        (City, "{'name': 'Ulm', 'people': 128000,}", CITY),
        (City, '{"name": "Ulm", "people": 128000.0, "twins": null}', CITY),
        (City, f"{ULM}\n{ULM}", CITY),
        (City, '{"name": "Ulm\n", "people": 1}', City(name="Ulm\n", people=1)),
        (Point, '{"x": 1, "y": 2.5}', Point(1, 2.5)),
        (Move, '{"to": {"x": 0, "y": 0}}', {"to": Point(0, 0)}),
        (dict[str, int], '{"value": 3}', {"value": 3}),
        (list[int], '{"value": [1, 2]}', [1, 2]),
        (list[int], "[1, 2]", [1, 2]),
        (list[int], "```\n[1, 2]\n```", [1, 2]),
        (list[int], 'First [1], so {"value": [1, 2]}', [1, 2]),
        (Literal["yes", "no"], '{"value": "yes"}', "yes"),
        (Literal["yes", "no"], '"no"', "no"),
        (int | None, '{"value": null}', None),
        (City | Point, f'{{"value": {ULM}}}', CITY),
        (City | Point, ULM, CITY),
    ],
)
def test_read(wanted: Any, text: str, value: Any) -> None:
    assert Output(wanted).read(text) == value


@pytest.mark.parametrize(
    ("wanted", "text", "problems"),
    [
        (City, "", ["expected one JSON value, found an empty reply"]),
        (City, "Ulm, with {many} people", ["expected one JSON value, found no JSON in the reply"]),
        (City, '{"name": "Ulm"}', ["/people: expected integer (>= 0), found nothing: it is required"]),
        (
            City,
            '{"name": 5, "people": -1}',
            ["/name: expected string, found integer 5", "/people: expected integer (>= 0), found integer -1"],
        ),
        (City, '{"name": "Ulm", "people": "many"}', ['/people: expected integer (>= 0), found string "many"']),
        (City, f"[{ULM}]", ["/: expected object with name, people, twins, found array of 1 item"]),
        (City, f"{ULM} or {BERN}", ["expected one JSON value, found 2 different ones that match"]),
        (City, f"```\n{ULM}\n```\n```\n{BERN}\n```", ["expected one JSON value, found 2 different ones that match"]),
        (City, "".join(f'{{"a": {n}}}' for n in range(60)), ["expected one JSON value, found more than 50"]),
        (list[int], '{"value": [1, "b"]}', ['/value/1: expected integer, found string "b"']),
        (Literal["yes", "no"], '{"value": "maybe"}', ['/value: expected one of "yes", "no", found string "maybe"']),
        (
            City,
            '{"name": "Ulm", "people": 1',
            ["the JSON that begins at character 0 is damaged at character 27: expected '}', got ''"],
        ),
        (
            Tree,  # each of its children would fit
            'So: {"name": "a", "children": [{"name": "b"}, {"name": "c"}',
            ["the JSON that begins at character 4 is damaged at character 59: expected ']', got ''"],
        ),
        (
            Tree,
            '{"name": "say "hi"", "children": [{"name": "b"}]}',
            ["the JSON that begins at character 0 is damaged at character 15: expected ',' or '}', got 'hi"],
        ),
    ],
)
def test_refused(wanted: Any, text: str, problems: list[str]) -> None:
    with pytest.raises(InvalidOutput) as caught:
        Output(wanted).read(text)
    assert [found[: len(p)] for found, p in zip(caught.value.problems, problems, strict=True)] == problems


@given(st.text(alphabet="{}[]\":,'`ab1 \\\n", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        value = COUNTS.read(text)
    except InvalidOutput:
        return
    assert all(isinstance(count, int) for count in value.values())


TREES = st.recursive(
    st.builds(Tree, name=st.text(max_size=5)),
    lambda inner: st.builds(Tree, name=st.text(max_size=5), children=st.lists(inner, max_size=3)),
    max_leaves=6,
)


@given(TREES, st.integers(0))
def test_what_was_cut_is_never_completed_nor_its_inside_taken(tree: Tree, at: int) -> None:
    text = tree.model_dump_json()
    assert TREE.read(text) == tree
    with pytest.raises(InvalidOutput):
        TREE.read(text[: at % len(text)])


FRAMES = ["{}", "Here it is: {} I hope it's fine.", "```json\n{}\n```", "So:\n```\n{}\n```\nDone."]
DAMAGE = st.sampled_from(["", *"{}[]\"',:;\\x \n"])


def nodes(tree: Tree) -> int:
    return 1 + sum(map(nodes, tree.children))


@given(TREES, st.integers(0), DAMAGE, st.booleans(), st.sampled_from(FRAMES), st.sampled_from([None, 1]))
@example(Tree(name="", children=[Tree(name="", children=[])]), 0, "", True, "{}", None)
@example(Tree(name="a", children=[Tree(name="b", children=[])]), 1, "", True, "{}", None)
def test_of_damaged_json_the_whole_is_read_or_nothing(
    tree: Tree, at: int, given: str, replaced: bool, frame: str, indent: int | None
) -> None:
    text = tree.model_dump_json(indent=indent)
    at %= len(text)
    damaged = text[:at] + given + text[at + replaced :]
    try:
        read = TREE.read(frame.replace("{}", damaged))
    except InvalidOutput:
        return
    try:
        assert read == Tree.model_validate(json.loads(damaged, strict=False))  # the damage has made other JSON of it
    except ValueError:
        assert nodes(read) == nodes(tree)


ANYTHING = Output(dict[str, Any] | list[Any] | str)
JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=4) | st.sampled_from(["{}", '{"a": 1}', "```\n{}\n```"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "{}", "value"]), inner),
    max_leaves=6,
)


def parts(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(parts, inner))


def is_outer(value: Any) -> bool:
    """Whether it has parts; the wrapper of another value has that value as its whole."""
    return isinstance(value, dict | list) and not (isinstance(value, dict) and value.keys() == {"value"})


@given(JSON.filter(is_outer), st.integers(0), DAMAGE, st.booleans())
@example([{}], 0, "", True)
def test_of_any_damaged_json_the_whole_is_read_or_nothing(value: Any, at: int, given: str, replaced: bool) -> None:
    text = json.dumps(value, ensure_ascii=False)
    at %= len(text)
    damaged = text[:at] + given + text[at + replaced :]
    try:
        read = ANYTHING.read(damaged)
    except InvalidOutput:
        return
    try:
        whole = json.loads(damaged, strict=False)
    except ValueError:
        assert parts(read) == parts(value)
    else:
        assert read in (whole, whole["value"] if isinstance(whole, dict) and whole.keys() == {"value"} else whole)


@pytest.mark.parametrize(
    "text",
    [
        "{name: Bonn, people: 2, old: %s}", '{"a" %s}', '{"a"; %s}', "{'city' = %s}", "{ %s", "{{%s}", "[%s",
        "[%s]x]", "{city: \n```json\n%s\n```\n}", '"name": "Bonn", "people": 2, "old": %s}',
        '"name": "Bonn", "old": %s', '{"old": 1}, %s}', '"a city such as %s', "City(name='Bonn', old=%s)",
        "```\n[%s]\n```", '{"a": "```\n%s\n```", b}', '{"a" = %s}', "{'city' %s}", "{{%s}}", "[%s, ",
        '{"a" %s, "b": 2}', "Use { so %s", "a ] b: %s", "Here: {city: %s}", '{"a" -> %s}',
        "```json\n[%s\n```", "{%s}",
    ],
)  # fmt: skip
def test_a_part_is_never_the_output(text: str) -> None:
    with pytest.raises(InvalidOutput):
        Output(City).read(text % ULM)


@pytest.mark.parametrize(
    "text",
    [
        "%s}",
        "```json\n%s}}\n```",
        "It's [as said] {below}: %s",
        'The "{" begins it: %s',
        "(%s)",
        "answer = %s",
        '**"Answer"**: %s',
        "<a>%s</a>",
        "`%s`",
        "%s // ok",
        "See [1]: %s",
        "{x} is: %s",
        "Of {x | x > 0}: %s",
    ],
)
def test_words_around_the_value_do_no_harm(text: str) -> None:
    assert Output(City).read(text % ULM) == CITY


@pytest.mark.parametrize("text", ["4.", "-12.", "```\n4.\n```"])
def test_a_number_that_ends_in_its_point_was_cut(text: str) -> None:
    with pytest.raises(InvalidOutput):
        Output(float).read(text)


@pytest.mark.share(6)
@pytest.mark.parametrize(
    "piece", ["{", "{a ", "{'", '{"a":', '{"a":{},', '{"a" ', "```\n{", '{"a":1}', '{"a":"', "```", '"', "{ ["]
)
def test_time_grows_with_the_text(piece: str) -> None:
    def seconds(times: int) -> float:
        text = "So: " + piece * times
        begun = time.process_time()
        with pytest.raises(InvalidOutput):
            Output(City).read(text)
        return time.process_time() - begun

    seconds(10)
    few, many = (min(seconds(n) for _ in range(3)) for n in (2_000, 16_000))
    assert many < 16 * few + 0.1  # quadratic would be 64-fold


# ---------------------------------------------------------------- in a run


UNFIT = "the reply does not match the schema:\n"
AGAIN = "Write the whole reply again, as one JSON value and nothing else."


def count(name: str) -> int:
    """Count the people of a city."""
    return {"Ulm": 128_000}[name]


def texts(messages: tuple[Any, ...]) -> list[str]:
    return [m.text if isinstance(m, AssistantMessage) else m.content[0].text for m in messages]


def test_run_gives_the_value() -> None:
    model = ScriptedModel([ToolCall("c1", "count", {"name": "Ulm"}), ULM])
    result = Agent(model, [count]).run_sync("Tell me about Ulm.", output_type=City)
    assert (result.output, result.output_error, result.finish) == (CITY, None, "stop")
    assert model.requests[0].output_schema == Output(City).schema


@pytest.mark.parametrize("given", [{}, {"output_type": str}])
def test_without_a_type_the_output_is_the_text_of_the_reply(given: Any) -> None:
    model = ScriptedModel(["Hello!"])
    result = Agent(model, **given).run_sync("Hi")
    assert (result.output, result.finish, result.turns) == ("Hello!", "stop", 1)
    assert model.requests[0].output_schema is None


def test_text_that_was_cut_or_refused_is_the_output_all_the_same() -> None:
    result = Agent(ScriptedModel([[Text("I can"), Finish("refusal")]])).run_sync("Hi", output_type=str)
    assert (result.output, result.finish) == ("I can", "refusal")


def test_an_agent_has_a_type_and_a_run_may_have_another() -> None:
    agent = Agent(ScriptedModel([ULM, "[1, 2]", "Ulm."]), output_type=City)
    assert agent.run_sync("Ulm?").output == CITY
    assert agent.run_sync("Numbers?", output_type=list[int]).output == [1, 2]
    assert agent.run_sync("Ulm?", output_type=str).output == "Ulm."


def test_a_type_without_a_schema_is_refused_when_the_agent_is_made() -> None:
    with pytest.raises(SchemaError, match="which is not a type: pass a type, such as int or a dataclass"):
        Agent(ScriptedModel([]), output_type=object.__repr__)


def test_a_sub_agent_whose_reply_does_not_fit_says_so_to_its_caller() -> None:
    script = ["Ulm.", "Ulm!", ULM]
    helper = Agent(ScriptedModel(script), output_type=City, output_retries=0).as_tool("ask", "Knows cities.")
    calls = [
        ToolCall("c1", "ask", {"task": "?"}),
        ToolCall("c2", "ask", {"task": "!"}),
        ToolCall("c3", "ask", {"task": "?!"}),
    ]
    result = Agent(ScriptedModel([*calls, "Ulm."]), [helper]).run_sync("Which city?")
    assert [m.text for m in result.messages if isinstance(m, ToolMessage)] == [
        "the agent stopped early (invalid_output); it said: Ulm.",
        "the agent stopped early (invalid_output); it said: Ulm!",
        ULM,
    ]


def no_output(result: RunResult[Any]) -> str:
    """Why there is none; the error carries the result."""
    with pytest.raises(OutputError) as raised:
        _ = result.output
    assert raised.value.result is result
    return str(raised.value)


def test_what_is_wrong_goes_back_to_the_model() -> None:
    script = ["It is Ulm.", ToolCall("c1", "count", {"name": "Ulm"}), '{"name": "Ulm"}', ULM]
    with ScriptedModel(script) as model:
        result = Agent(model, [count]).run_sync("Tell me about Ulm.", output_type=City)
    assert (result.output, result.finish, result.turns) == (CITY, "stop", 4)
    assert texts(result.messages) == [
        "Tell me about Ulm.",
        "It is Ulm.",
        f"{UNFIT}- expected one JSON value, found no JSON in the reply\n{AGAIN}",
        "",
        "128000",
        '{"name": "Ulm"}',
        f"{UNFIT}- /people: expected integer (>= 0), found nothing: it is required\n{AGAIN}",
        ULM,
    ]


def test_a_run_ends_when_no_reply_fits() -> None:
    with ScriptedModel(["Ulm", "Ulm!", "Ulm!!"]) as model:
        result = Agent(model).run_sync("Which city?", output_type=City)
    assert (result.finish, result.text) == ("invalid_output", "Ulm!!")
    assert no_output(result) == (
        "there is no output: the run ended with finish='invalid_output': the reply does not match the schema:\n"
        "- expected one JSON value, found no JSON in the reply"
    )
    assert (
        result.output_error
        == "the reply does not match the schema:\n- expected one JSON value, found no JSON in the reply"
    )
    assert isinstance(result.messages[-1], AssistantMessage)


def test_no_retries() -> None:
    with ScriptedModel(["Ulm"]) as model:
        assert Agent(model, output_retries=0).run_sync("?", output_type=City).finish == "invalid_output"
    with pytest.raises(ConfigError, match="output_retries=-1"):
        Agent(model, output_retries=-1)


def test_a_limit_ends_the_run_without_a_question_nobody_answers() -> None:
    with ScriptedModel(["Ulm"]) as model:
        result = Agent(model, max_turns=1).run_sync("?", output_type=City)
    assert result.finish == "max_turns"
    assert "finish='max_turns': the reply does not match" in no_output(result)
    assert texts(result.messages) == ["?", "Ulm"]


@pytest.mark.parametrize(
    ("reason", "error"), [("length", "the reply was cut off at its token limit"), ("refusal", None)]
)
def test_a_reply_that_did_not_end_well_is_not_read(reason: Any, error: str | None) -> None:
    with ScriptedModel([[Text(ULM), Finish(reason)]]) as model:
        result = Agent(model).run_sync("?", output_type=City)
    assert (result.finish, result.output_error) == (reason, error)
    assert no_output(result) == f"there is no output: the run ended with finish={reason!r}" + (
        f": {error}" if error else ""
    )


def test_a_model_that_calls_in_text_is_told_the_schema() -> None:
    inner = ScriptedModel(['<count name="Ulm"/>', "Ulm!", f"```json\n{ULM}\n```"])
    result = Agent(TextCalling(inner, "xml"), [count], system="Be brief.").run_sync("Ulm?", output_type=City)
    assert (result.output, result.turns) == (CITY, 3)
    system = inner.requests[0].messages[0].content
    assert system.startswith("Be brief.\n\n# Tools")
    assert '# Output\n\nYour final reply must be one JSON value that fits this JSON Schema:\n\n{"description"' in system
    assert "A reply that calls a tool is not the final one" in system
    assert inner.requests[0].output_schema is None
    assert isinstance(inner.requests[2].messages[-1], UserMessage)


def test_events_of_all_replies_are_streamed() -> None:
    async def watch() -> tuple[list[str], Any]:
        run = Agent(ScriptedModel(["Ulm!", ULM])).stream("?", output_type=City)
        said = [event.text async for event in run if isinstance(event, Text)]
        return said, run.result.output

    assert asyncio.run(watch()) == (["Ulm!", ULM], CITY)


# ---------------------------------------------------------------- what the model did not say as its reply

ASIDES = (
    "<think>{}</think>",
    "<thinking>\nPerhaps\n\n{}? No [see 3.\n</thinking>",
    "<Reasoning>{}</Reasoning>",
    "Perhaps {}.\n</think>",
    "<tool_response>{}</tool_response>",
    "<!-- {} -->",
    "<|im_start|>user\n{}<|im_end|>",
    "<think>```json\n{}\n```</think>",
)


@pytest.mark.parametrize("aside", ASIDES)
@pytest.mark.parametrize("inside", [BERN, '{"name": "Bern", "peo', "{}", "nothing"])
def test_what_is_thought_or_said_in_anothers_name_is_no_output(aside: str, inside: str) -> None:
    """In exactly this text no call counts either."""
    said = aside.replace("{}", inside)
    with pytest.raises(InvalidOutput, match="found no JSON in the reply"):
        Output(City).read(f"{said}\nI do not know.")
    for reply in (ULM, f"It is {ULM}", f"```json\n{ULM}\n```"):
        assert Output(City).read(f"{said}\n{reply}") == CITY
    assert Output(list[str]).read(f'{aside.replace("{}", "[1]")}\nHere: ["a"]') == ["a"]


@pytest.mark.parametrize("aside", [*ASIDES, "</think>\n", "<think>"])
def test_a_value_that_holds_such_text_is_whole(aside: str) -> None:
    text = json.dumps({"name": aside, "people": 1})
    for reply in (text, f"It is {text}.", f"```json\n{text}\n```"):
        assert Output(City).read(reply) == City(name=aside, people=1)


@pytest.mark.parametrize(
    "around",
    ["{}", "Here it is: {}", "{}\nI hope that helps.", "<think>maybe</think>\n{}", "~~~json\n{}\n~~~", "\ufeff{}",
     "> {}", "Source [note]: {}", "- [ ] done\n{}"],
)  # fmt: skip
@pytest.mark.parametrize(
    ("wanted", "value"),
    [(list[int], [1, 2]), (list[City], [{"name": "x", "people": 1, "twins": ["y"]}]), (tuple[int, str], [1, "a"]),
     (list[list[int]], [[1], []]), (list[int], [])],
)  # fmt: skip
def test_a_list_is_found_within_other_text_as_an_object_is(around: str, wanted: Any, value: list[Any]) -> None:
    read = Output(wanted).read(around.replace("{}", json.dumps(value)))
    assert json.loads(json.dumps(read, default=lambda made: made.model_dump())) == value


def test_of_two_lists_neither_is_chosen_and_half_a_list_is_none() -> None:
    with pytest.raises(InvalidOutput, match="found 2 different ones that match"):
        Output(list[int]).read("[1] or [2]")
    with pytest.raises(InvalidOutput, match=r"part of damaged JSON|found no JSON"):
        Output(list[int]).read("Here: [[1, 2], [3")
