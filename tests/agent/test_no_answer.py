"""Replies that are not answers never end a run as its answer; the model is asked again, at most twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from rollout_kit import Lines

from agentkit import Agent, ThreadManager, formats
from agentkit.agent import RunResult
from agentkit.events import Event, Finish, InventedResult, Text, UnreadCall
from agentkit.formats.teach import example_call, is_example
from agentkit.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from agentkit.models.base import Model
from agentkit.rollout import Rollout, Sample
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore
from agentkit.toolspec import ToolSpec

FENCED = '```json\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n```'
UNREAD = f"Sure, I add them.\n\n{FENCED}"
INVENTED = "<tool_response>\n4\n</tool_response>\nIt is 4."


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


SPEC = ToolSpec(
    "add",
    "Add two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
CALL = ToolCall("", "add", {"a": 1, "b": 2})

Seen = tuple[str, str, str, str]
"""How a run ended, its answer, what was shown, and what is kept of the model's replies."""


def shown(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


def kept(messages: Sequence[Message]) -> str:
    return "\n".join(message.text for message in messages if isinstance(message, AssistantMessage))


async def chat(model: Model) -> Seen:
    run = Agent(model, [add]).stream("What is 1 + 2?")
    events = [event async for event in run]
    return run.result.finish, run.result.text, shown(events), kept(run.result.messages)


async def thread(model: Model) -> Seen:
    threads = ThreadManager(SQLiteStore(":memory:"))
    await threads.create_thread("t")
    await threads.add_message("t", "What is 1 + 2?")
    run = threads.run_agent("t", Agent(model, [add]))
    events = [event async for event in run]
    stored = str([entry.body for entry in (await threads.get_log("t")).entries])
    return run.result.finish, run.result.text, shown(events), stored


async def sub_agent(model: Model) -> Seen:
    inner = Agent(model, [add]).as_tool("ask", "Knows sums.")
    outer = ScriptedModel([ToolCall("", "ask", {"task": "1 + 2"}), "Told."])
    result = await Agent(outer, [inner]).run("?")
    said = result.messages[2]
    return "stop" if "stopped early" not in said.text else said.text, said.text, said.text, said.text


DOORS: dict[str, Callable[[Model], Awaitable[Seen]]] = {"chat": chat, "thread": thread, "sub-agent": sub_agent}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", formats.names())
def test_a_made_up_result_is_neither_shown_nor_kept_nor_the_answer(name: str, door: str) -> None:
    made_up = formats.render_result(name, "add", "c1", "MADE-UP")
    call = formats.render_calls(name, [CALL], [SPEC])
    for chunk in (None, 3):
        script = [f"{made_up}\nIt is MADE-UP.", f"{call}\n{made_up}\n{call}", "It is 3."]
        model = ScriptedModel(script, format=name, chunk=chunk)
        finish, answer, said, left = asyncio.run(DOORS[door](model))
        assert (finish, answer) == ("stop", "It is 3.")
        assert "MADE-UP" not in said + left


@pytest.mark.parametrize("name", [None, "hermes", "xml"])
def test_the_run_ends_when_the_model_goes_on_making_up_results(name: str | None) -> None:
    run = Agent(ScriptedModel([INVENTED] * 3, format=name), [add]).run_sync("What is 1 + 2?")
    assert (run.finish, run.text, run.turns) == ("invented_result", "", 3)
    run = Agent(ScriptedModel([INVENTED], format=name), [add], reply_retries=0).run_sync("What is 1 + 2?")
    assert (run.finish, run.turns) == ("invented_result", 1)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", [None, *formats.names()])
def test_an_unread_call_is_asked_for_again_and_is_no_answer(name: str | None, door: str) -> None:
    if name is not None and "```" in repr(formats.get(name).shapes):
        return  # a call in a fence is this format's own
    for chunk in (None, 3):
        model = ScriptedModel([UNREAD, CALL, "It is 3."], format=name, chunk=chunk)
        finish, answer, *_ = asyncio.run(DOORS[door](model))
        assert (finish, answer) == ("stop", "It is 3.")
        asked = model.requests[1].messages[-1]
        assert isinstance(asked, UserMessage)
        assert ("add" if name is None else example_call(name, SPEC, [SPEC]).strip()) in asked.text


@pytest.mark.parametrize("name", [None, "xml", "hermes"])
@pytest.mark.parametrize("again", [1, 40])
def test_calls_that_are_written_up_to_the_token_limit_are_no_answer(name: str | None, again: int) -> None:
    """Qwen2.5-Coder-0.5B writes the same call line after line."""
    line = '{"name": "add", "arguments": {"a": 1, "b": 2}}\n'
    cut = [Text(f"{line * again}{line[:20]}"), Finish("length")]
    run = Agent(ScriptedModel([cut, CALL, "It is 3."], format=name), [add]).run_sync("What is 1 + 2?")
    assert (run.finish, run.text) == ("stop", "It is 3.")
    for prose in ("You call it like this:\nadd(a=1, b=2)\nwhich me", f"In JSON:\n{line}and then"):
        run = Agent(ScriptedModel([[Text(prose), Finish("length")]], format=name), [add]).run_sync("?")
        assert (run.finish, run.text) == ("length", prose)


def test_the_event_has_the_attempt_as_it_was_written() -> None:
    async def unread() -> list[UnreadCall]:
        run = Agent(ScriptedModel([UNREAD, "I cannot."], format="xml"), [add]).stream("?")
        return [event async for event in run if isinstance(event, UnreadCall)]

    assert asyncio.run(unread()) == [UnreadCall('{"name": "add", "arguments": {"a": 1, "b": 2}}', "add")]


@pytest.mark.parametrize("name", [n for n in formats.names() if "```" not in repr(formats.get(n).shapes)])
def test_a_reply_that_is_one_call_in_another_form_is_read(name: str) -> None:
    braces = '{{"name": "add", "arguments": {"a": 1, "b": 2}}}'
    other = formats.render_calls("invoke" if name != "invoke" else "hermes", [CALL], [SPEC])
    for reply in (FENCED, braces, other):
        for chunk in (None, 3):
            run = Agent(ScriptedModel([reply, "It is 3."], format=name, chunk=chunk), [add]).run_sync("?")
            assert (run.finish, run.turns, run.text) == ("stop", 2, "It is 3."), reply


@pytest.mark.parametrize("name", [None, "xml"])
def test_an_empty_reply_is_asked_for_again_once(name: str | None) -> None:
    assert Agent(ScriptedModel(["", "Hi."], format=name), [add]).run_sync("Hi").text == "Hi."
    run = Agent(ScriptedModel(["", " \n"], format=name), [add]).run_sync("Hi")
    assert (run.finish, run.turns) == ("empty", 2)


@pytest.mark.parametrize("name", [None, "xml"])
def test_a_required_call_is_asked_for_again(name: str | None) -> None:
    agent = Agent(ScriptedModel(["It is 3.", CALL, "It is 3."], format=name), [add], tool_choice="required")
    run = agent.run_sync("What is 1 + 2?")
    assert (run.finish, run.turns) == ("stop", 3)
    run = Agent(ScriptedModel(["3"] * 3, format=name), [add], tool_choice="add").run_sync("What is 1 + 2?")
    assert (run.finish, run.turns) == ("no_call", 3)


def test_the_call_of_another_tool_than_the_required_one_does_not_run() -> None:
    def sub(a: int, b: int) -> int:
        raise AssertionError("not required")

    script = [ToolCall("", "sub", {"a": 1, "b": 2}), CALL, "It is 3."]
    run = Agent(ScriptedModel(script, format="xml"), [add, sub], tool_choice="add").run_sync("?")
    answers = [message.text for message in run.messages if isinstance(message, ToolMessage)]
    assert answers == ["not run: this reply must call add", "3"]
    assert run.finish == "stop"


@pytest.mark.parametrize("name", ["xml", "hermes", "invoke", "qwen3_coder"])
def test_a_copy_of_the_prompts_example_is_refused(name: str) -> None:
    """Qwen2.5-Coder-1.5B copies it when it does not know what to write."""
    greeted: list[str] = []

    def greet(name: str, loud: bool = False) -> str:
        """Greet someone."""
        greeted.append(name)
        return "greeted"

    copy = ToolCall("", "greet", {"name": "the name", "loud": False})
    script = [copy, ToolCall("", "greet", {"name": "Ada"}), "Done."]
    run = Agent(ScriptedModel(script, format=name), [greet]).run_sync("Greet Ada.")
    answers = [message.text for message in run.messages if isinstance(message, ToolMessage)]
    assert answers == ["these are the values of the prompt's example: write your own", "greeted"]
    assert greeted == ["Ada"]
    Agent(ScriptedModel([ToolCall("", "greet", {"name": "the name"}), "Done."]), [greet]).run_sync("Greet it.")
    assert greeted == ["Ada", "the name"]


@pytest.mark.parametrize(
    ("arguments", "is_copy"),
    [
        ({"title": "the title", "tags": ["the tags"], "limit": 1}, True),
        ({"title": "the title"}, True),
        ({"title": "the title", "tags": ["new"], "limit": 1}, False),
        ({"title": "Ulysses", "limit": 1}, False),
        ({"limit": 1, "mode": "the mode"}, False),
    ],
)
def test_a_copy_has_every_text_that_was_made_up(arguments: dict[str, Any], is_copy: bool) -> None:
    properties = {
        "title": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "limit": {"type": "integer"},
        "mode": {"type": "string", "enum": ["the mode", "other"]},
    }
    find = ToolSpec("find", "Find books.", {"type": "object", "properties": properties})
    assert is_example(find, arguments) is is_copy


def test_what_asks_again_is_sent_once() -> None:
    """In a later request, Qwen2.5-Coder-1.5B made the same call once more."""
    model = ScriptedModel([UNREAD, CALL, "It is 3."], format="xml")
    run = Agent(model, [add]).run_sync("What is 1 + 2?")
    asked, after = model.requests[1].messages[-1], model.requests[2].messages
    assert "could not be read" in asked.text
    assert asked not in after
    assert asked not in run.messages


def test_a_reply_that_fits_the_output_type_is_an_answer() -> None:
    script = ['{"name": "add", "arguments": {}}']
    run = Agent(ScriptedModel(script), [add], output_type=dict[str, Any]).run_sync("Which call?")
    assert (run.finish, run.output) == ("stop", {"name": "add", "arguments": {}})


def test_a_thread_answers_the_same_message_once() -> None:
    async def said() -> tuple[RunResult[Any], RunResult[Any]]:
        threads = ThreadManager(SQLiteStore(":memory:"))
        agent = Agent(ScriptedModel([UNREAD, "It is 3.", "Bye."], format="xml"), [add])
        await threads.create_thread("t")
        first = await threads.say("t", "What is 1 + 2?", agent=agent, client_id="m1")
        await threads.say("t", "Thanks.", agent=agent, client_id="m2")
        again = await threads.say("t", "What is 1 + 2?", agent=agent, client_id="m1")
        return first, again

    first, again = asyncio.run(said())
    assert (first.text, again.text) == ("It is 3.", "It is 3.")


@pytest.mark.parametrize("line", [INVENTED, f"{INVENTED}\n{FENCED}"])
def test_a_rollout_keeps_no_made_up_result_and_says_how_it_ended(line: str) -> None:
    rollout = Rollout([add], Lines(line), format="hermes")
    record = asyncio.run(rollout.run(Sample("s", (UserMessage("What is 1 + 2?"),))))
    assert (record.end, record.calls) == ("invented_result", ())
    assert "4" not in kept(record.messages)


def test_a_rollout_answers_a_call_that_cannot_be_read() -> None:
    rollout = Rollout([add], Lines(UNREAD), format="hermes")
    record = asyncio.run(rollout.run(Sample("s", (UserMessage("What is 1 + 2?"),))))
    assert (record.end, [call.error for call in record.calls]) == ("answered", ["ambiguous_call"])


def test_made_up_results_are_events() -> None:
    async def events() -> list[Event]:
        return [e async for e in Agent(ScriptedModel([f"So.\n{INVENTED}", "3"], format="hermes"), [add]).stream("?")]

    assert [e for e in asyncio.run(events()) if isinstance(e, InventedResult)] == [InventedResult(INVENTED)]


def test_what_leads_to_a_made_up_result_is_not_kept() -> None:
    invented = 'Result of add:\n<tool_result name="add" status="success">\n4\n</tool_result>\nIt is 4.'
    _, text, displayed, replies = asyncio.run(chat(ScriptedModel([invented, "It is 3."], format="xml")))
    assert (text, replies.strip()) == ("It is 3.", "It is 3.")
    assert "4" not in displayed
