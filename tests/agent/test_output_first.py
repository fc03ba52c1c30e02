"""A reply that is a value of the run's output type is the output and runs nothing, even if it can be read as a call."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

from agentkit import Agent, ProcessorConfig, ThreadManager, ToolCall, ToolRegistry
from agentkit.errors import ConfigError
from agentkit.events import CallStart, Event, Text
from agentkit.testing import Replay, ScriptedModel
from agentkit.tool.reply import Output


class Step(BaseModel):
    name: str
    path: str


class Named(BaseModel):
    name: str


class Made(BaseModel):
    name: str
    arguments: dict[str, Any]


class Planned(BaseModel):
    tool_calls: list[Made]


class Told(BaseModel):
    kind: Literal["told"]
    words: str


class Typed(TypedDict):
    name: str
    parameters: dict[str, str]


class Place(BaseModel):
    path: str


class Placed(BaseModel):
    name: str
    parameters: Place


class Careful(BaseModel):
    """No step that the schema allows is a value of it."""

    name: str
    path: str

    @field_validator("path")
    @classmethod
    def refused(cls, path: str) -> str:
        raise ValueError("nowhere")


CALL = '<tool_call>{"name": "delete", "arguments": {"path": "/"}}</tool_call>'
NAMES = st.sampled_from(("delete", "reset", "look"))
WORDS = st.sampled_from(("/", "", "a b", 'it\'s "it"', "a\nb", CALL, '<invoke name="reset">', "<delete>x</delete>"))
ARGUMENTS = st.dictionaries(st.sampled_from(("path", "hard", "x")), WORDS, max_size=2)
STEP = st.fixed_dictionaries({"name": NAMES, "path": WORDS})
NAMED = st.fixed_dictionaries({"name": NAMES})
MADE = st.fixed_dictionaries({"name": NAMES, "arguments": ARGUMENTS})
TYPES: tuple[tuple[Any, st.SearchStrategy[Any]], ...] = (
    (Step, STEP),
    (Named, NAMED),
    (Made, MADE),
    (Typed, st.fixed_dictionaries({"name": NAMES, "parameters": ARGUMENTS})),
    (Planned, st.fixed_dictionaries({"tool_calls": st.lists(MADE, max_size=2)})),
    (list[Step], st.lists(STEP, min_size=1, max_size=3)),
    (list[Named], st.lists(NAMED, min_size=1, max_size=3)),
    (list[Made], st.lists(MADE, min_size=1, max_size=2)),
    (Step | Told, st.one_of(STEP, st.fixed_dictionaries({"kind": st.just("told"), "words": WORDS}))),
    (dict[str, Any], st.one_of(STEP, MADE, NAMED)),
    (Any, st.one_of(STEP, MADE, NAMED, st.lists(MADE, min_size=1, max_size=2))),
)
NATIVE: tuple[tuple[str | None, ProcessorConfig], ...] = (
    (None, ProcessorConfig()),
    (None, ProcessorConfig(in_code="execute", execute="end")),
    (None, ProcessorConfig(formats="auto")),
    (None, ProcessorConfig(formats=("llama3_json", "json_fence", "xlam"))),
)
OWN = tuple((name, ProcessorConfig()) for name in ("llama3_json", "xlam", "xlam1", "json_fence", "hermes", "legacy"))


class Machine:
    """The tools; `ran` are the names of those that ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def tools(self) -> list[Any]:
        def delete(path: str = ".") -> str:
            """Delete."""
            self.ran.append("delete")
            return path

        def reset(hard: bool = False) -> str:
            """Reset."""
            self.ran.append("reset")
            return str(hard)

        def look() -> str:
            """Look."""
            self.ran.append("look")
            return ""

        return [delete, reset, look]


@st.composite
def replies(draw: st.DrawFn) -> tuple[Any, str]:
    """An output type, and a reply that is nothing but a value of it."""
    wanted, values = draw(st.sampled_from(TYPES))
    text = json.dumps(draw(values), indent=draw(st.sampled_from((None, 2))))
    around = draw(st.sampled_from(("{}", "\n{}\n", "```json\n{}\n```", "```\n{}\n```", "<think>Hm.</think>\n{}")))
    return wanted, around.replace("{}", text)


STEP_TEXT = '{"name": "delete", "path": "/"}'


@given(replies(), st.sampled_from(NATIVE), st.sampled_from((None, 1, 5)))
@example((Step, STEP_TEXT), NATIVE[0], None)
@example((Made, '{"name": "reset", "arguments": {"x": ""}}'), NATIVE[0], 1)
def test_a_value_of_the_output_type_runs_nothing(
    reply: tuple[Any, str], mode: tuple[str | None, ProcessorConfig], chunk: int | None
) -> None:
    (wanted, text), (name, config), machine = reply, mode, Machine()
    model = ScriptedModel([text, "Done."], format=name, chunk=chunk)
    agent = Agent(model, machine.tools(), output_type=wanted, output_retries=0, config=config)
    result = agent.run_sync("What would you do first? Do not do it.")
    assert (machine.ran, result.finish, result.turns) == ([], "stop", 1)
    assert result.output == Agent(ScriptedModel([text]), output_type=wanted).run_sync("Again.").output


@given(replies(), st.sampled_from(OWN), st.sampled_from((None, 1, 5)))
@example((Step, STEP_TEXT), OWN[0], 1)
def test_nor_where_calls_are_bare_json(
    reply: tuple[Any, str], mode: tuple[str | None, ProcessorConfig], chunk: int | None
) -> None:
    (wanted, text), (name, config), machine = reply, mode, Machine()
    text = text.removeprefix("<think>Hm.</think>\n")
    model = ScriptedModel([text, "Done."], format=name, chunk=chunk)
    agent = Agent(model, machine.tools(), output_type=wanted, output_retries=0, config=config)
    try:
        result = agent.run_sync("What would you do first? Do not do it.")
    except ConfigError:  # see below
        assert wanted not in (Step, list[Step], Step | Told)
        return
    assert (machine.ran, result.finish, result.turns) == ([], "stop", 1)


IDLE = (
    "\ufeff{}", "{}}}", "{}<|im_end|>", "{}<|eot_id|>", "{}\n<|im_end|>\n", "{0}\n{0}",
    "```json\n{0}\n```\n```json\n{0}\n```",
    "<!-- x -->\n{}", "<reasoning>Hm.</reasoning>\n{}", "<scratchpad>a\n\nb</scratchpad>{}", "\ufeff```json\n{}}}\n```",
    "\ufeff<!-- x -->\n<reasoning>Hm.</reasoning>\n{}<|im_end|>", "<!-- x -->\n```json\n{}\n```<|eot_id|>",
)  # fmt: skip


@pytest.mark.share(11)
@pytest.mark.parametrize("around", IDLE)
@pytest.mark.parametrize("mode", [*NATIVE, *OWN[:4]])
@pytest.mark.parametrize("chunk", [None, 1, 5])
def test_what_says_nothing_beside_a_value_changes_nothing(
    around: str, mode: tuple[str | None, ProcessorConfig], chunk: int | None
) -> None:
    (name, config), machine = mode, Machine()
    values = ({"name": "delete", "path": "/"}, {"name": "delete", "arguments": {"path": "/"}})
    for wanted, value in zip((Step, Made), values[: 1 if name == "json_fence" else 2], strict=False):
        text = around.format(json.dumps(value))
        model = ScriptedModel([text, "Done."], format=name, chunk=chunk)
        result = Agent(model, machine.tools(), output_type=wanted, output_retries=0, config=config).run_sync("Which?")
        assert (machine.ran, result.finish, result.output) == ([], "stop", wanted(**value))


@pytest.mark.parametrize("text", ["<|python_tag|>{}", "<|python_tag|>{}<|eom_id|>"])
def test_a_call_with_a_token_of_calls_before_it_runs(text: str) -> None:
    machine, text = Machine(), text.replace("{}", '{"name": "delete", "parameters": {"path": "/"}}')
    model = ScriptedModel([text, '{"name": "x", "parameters": {"path": "a"}}'], format="llama3_json")
    assert Agent(model, machine.tools(), output_type=Placed).run_sync("Go.").turns == 2
    assert machine.ran == ["delete"]


@pytest.mark.parametrize(
    "text", ["{}<tool_call>", "<|python_tag|>{}", "<tool_call>{}</tool_call>", "Now: {}", "{} or {}"]
)
def test_what_says_more_is_not_only_the_output(text: str) -> None:
    meant, text = Output(Step).meant, text.replace("{}", STEP_TEXT)
    assert (meant(text, whole=False), meant(text, whole=True)) == (True, False)


@pytest.mark.parametrize("text", [f"I would first do this:\n{STEP_TEXT}", f"```json\n{STEP_TEXT}\n```"])
def test_a_value_after_words_is_the_output(text: str) -> None:
    machine = Machine()
    result = Agent(ScriptedModel([text]), machine.tools(), output_type=Step).run_sync("Which?")
    assert (machine.ran, result.output) == ([], Step(name="delete", path="/"))


TAGS = ("answer", "Answer", "response", "result", "final", "output", "json")
AROUND = (
    *(f"<{tag}>{{}}</{tag}>" for tag in TAGS), *(f"<{tag}>\n{{}}\n</{tag}>" for tag in TAGS),
    "<think>Hm.</think><answer>{}</answer>", "First: <answer>{}</answer>", "<answer>{}</answer>\nThat is it.",
    "<answer>```json\n{}\n```</answer>", "<|im_start|>{}<|im_end|>", "<|START_TEXT|>{}<|END_TEXT|>", "<answer>{}",
)  # fmt: skip


@given(
    st.sampled_from(TYPES[:9]).flatmap(lambda it: st.tuples(st.just(it[0]), it[1].map(json.dumps))),
    st.sampled_from(AROUND),
    st.sampled_from((None, 1, 5)),
)
@example((Step, STEP_TEXT), AROUND[0], None)
@example((Step, STEP_TEXT), "<think>Hm.</think><answer>{}</answer>", 1)
@example((list[Step], f"[{STEP_TEXT}]"), AROUND[0], 3)
def test_nor_in_an_element_that_marks_no_call(value: tuple[Any, str], around: str, chunk: int | None) -> None:
    (wanted, text), machine = value, Machine()
    text = around.replace("{}", text)
    unread = Agent(ScriptedModel([text]), output_type=wanted, output_retries=0).run_sync("Which?")
    result = Agent(
        ScriptedModel([text, "Done."], chunk=chunk), machine.tools(), output_type=wanted, output_retries=0
    ).run_sync("Which?")
    if unread.finish == "stop":
        assert (machine.ran, result.finish, result.output) == ([], "stop", unread.output)


def test_a_call_in_an_element_runs_that_is_no_value_of_the_type() -> None:
    machine = Machine()
    wrapped = f"<answer>{CALL}</answer>"
    agent = Agent(ScriptedModel([wrapped, '{"name": "", "arguments": {}}']), machine.tools(), output_type=Made)
    assert (agent.run_sync("Go.").turns, machine.ran) == (2, ["delete"])


@pytest.mark.parametrize("around", ["{}", "<answer>{}</answer>", "```json\n{}\n```"])
def test_a_native_model_is_asked_to_make_a_bare_call_natively(around: str) -> None:
    machine = Machine()
    text = around.replace("{}", '{"name": "delete", "arguments": {"path": "/"}}')
    script = [text, ToolCall("c1", "delete", {"path": "/"}), STEP_TEXT]
    result = Agent(ScriptedModel(script), machine.tools(), output_type=Step).run_sync("Go.")
    assert (machine.ran, result.turns, result.output) == (["delete"], 3, Step(name="delete", path="/"))


@pytest.mark.parametrize("text", [CALL, f"First:\n{CALL}", '[TOOL_CALLS]delete[ARGS]{"path": "/"}'])
@pytest.mark.parametrize("wanted", [Step, Made, dict[str, Any]])
def test_a_marked_call_runs(text: str, wanted: Any) -> None:
    machine = Machine()
    agent = Agent(
        ScriptedModel([text, '{"name": "", "path": "", "arguments": {}}']), machine.tools(), output_type=wanted
    )
    assert agent.run_sync("Go.").turns == 2
    assert machine.ran == ["delete"]


@pytest.mark.parametrize("name", ["llama3_json", "xlam", "json_fence"])
def test_a_bare_call_runs_that_is_no_value_of_the_type(name: str) -> None:
    call = {"name": "delete", "arguments" if name != "llama3_json" else "parameters": {"path": "/"}}
    text = f"```json\n{json.dumps(call)}\n```" if name == "json_fence" else json.dumps(call)
    machine = Machine()
    agent = Agent(ScriptedModel([text, STEP_TEXT], format=name), machine.tools(), output_type=Step)
    result = agent.run_sync("Go.")
    assert (machine.ran, result.output) == (["delete"], Step(name="delete", path="/"))


def test_what_only_a_validator_refuses_runs_nothing() -> None:
    machine = Machine()
    agent = Agent(ScriptedModel([STEP_TEXT] * 2), machine.tools(), output_type=Careful, output_retries=1)
    result = agent.run_sync("Which?")
    assert (machine.ran, result.finish) == ([], "invalid_output")
    assert "nowhere" in str(result.output_error)


def test_two_values_are_asked_for_again_and_run_nothing() -> None:
    machine = Machine()
    two = f'{STEP_TEXT}\n{{"name": "reset", "path": "b"}}'
    agent = Agent(ScriptedModel([two, STEP_TEXT]), machine.tools(), output_type=Step)
    result = agent.run_sync("Which?")
    assert (machine.ran, result.turns, result.output.name) == ([], 2, "delete")


def test_a_schema_that_the_service_enforces() -> None:
    machine = Machine()
    tape = Replay([{"choices": [{"message": {"content": STEP_TEXT}, "finish_reason": "stop"}]}])
    result = Agent(tape.model("openai:gpt-5"), machine.tools(), output_type=Step).run_sync("Which?")
    assert (machine.ran, result.output.path) == ([], "/")
    assert "response_format" in tape.requests[0]


def test_events_and_messages_have_the_reply_as_text() -> None:
    heard: list[Event] = []

    async def main(name: str | None) -> None:
        heard.clear()
        model = ScriptedModel([STEP_TEXT], format=name, chunk=3)
        async with Agent(model, Machine().tools(), output_type=Step).stream("Which?") as run:
            heard.extend([event async for event in run])
        assert run.result.text == STEP_TEXT

    for name in (None, "llama3_json"):
        asyncio.run(main(name))
        assert "".join(event.text for event in heard if isinstance(event, Text)) == STEP_TEXT
        assert not any(isinstance(event, CallStart) for event in heard)


def test_in_a_thread_and_in_a_sub_agent() -> None:
    async def main() -> None:
        machine = Machine()
        async with ThreadManager(":memory:", ToolRegistry(*machine.tools())) as threads:
            thread = await threads.create_thread(messages="Which?")
            result = await threads.run_thread(thread, model=ScriptedModel([STEP_TEXT]), output_type=Step)
        assert (machine.ran, result.output.name) == ([], "delete")
        below = Agent(ScriptedModel([STEP_TEXT]), machine.tools(), output_type=Step)
        model = ScriptedModel([ToolCall("c1", "ask", {"task": "Which?"}), "Done."])
        assert (await Agent(model, [below.as_tool("ask", "Ask.")]).run("Ask.")).finish == "stop"
        assert machine.ran == []

    asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("llama3_json", dict[str, Any]), ("xlam", list[Made]), ("json_fence", Made), ("llama3_json", Any)],
)
def test_a_type_that_every_call_matches_is_refused(name: str, wanted: Any) -> None:
    agent = Agent(ScriptedModel(["{}"], format=name), Machine().tools(), output_type=wanted)
    with pytest.raises(ConfigError, match=f"call of 'delete' in format '{name}' is also a value of this type"):
        agent.run_sync("Go.")
