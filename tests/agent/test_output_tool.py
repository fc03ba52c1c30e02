"""Output by a call of `final_result`, and what an output does to the other calls."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from thread_kit import Failing
from wire_rules import check_anthropic, check_chat, check_responses

from agentkit import (
    Agent,
    Budget,
    Guards,
    ProcessorConfig,
    RunResult,
    ThreadManager,
    ToolCall,
    ToolContext,
    openapi_schema,
)
from agentkit.agent.options import CallsWithOutput
from agentkit.errors import ConfigError, OutputError, StoreError
from agentkit.events import ApprovalRequired, CallEnd, Event, ToolCompleted, ToolSkipped, ToolStarted
from agentkit.formats import CATALOG
from agentkit.messages import Message, ToolMessage, user
from agentkit.models.messages_body import anthropic_messages
from agentkit.models.openai import chat_messages
from agentkit.models.responses import responses_input
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore


class City(BaseModel):
    name: str
    people: int


ULM = City(name="Ulm", people=128000)
GOOD: dict[str, Any] = {"name": "Ulm", "people": 128000}
JSON = json.dumps(GOOD)


def final(arguments: dict[str, Any], id: str = "") -> ToolCall:
    return ToolCall(id, "final_result", arguments)


class Office:
    """Tools that say what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    @openapi_schema
    def look(self, city: str) -> str:
        """Look a city up."""
        self.done.append(city)
        return "128000"

    @openapi_schema(requires_approval=True)
    def delete(self, path: str) -> str:
        """Delete a file."""
        self.done.append(path)
        return "deleted"


def answers(messages: tuple[Message, ...]) -> list[tuple[str, str, str | None]]:
    return [(m.name, m.text, m.error) for m in messages if isinstance(m, ToolMessage)]


def run(script: list[Any], *, office: Office | None = None, **options: Any) -> RunResult[City]:
    agent = Agent(ScriptedModel(script), [office or Office()], output_type=City, output_mode="tool", **options)
    return agent.run_sync("Where does the Blau meet the Danube?")


def test_a_call_is_the_output_and_ends_the_run() -> None:
    result = run([final(GOOD)])
    assert (result.output, result.finish, result.turns) == (ULM, "stop", 1)
    assert result.text == JSON
    assert answers(result.messages) == [("final_result", "accepted", None)]


def test_the_model_gets_a_tool_in_place_of_a_schema() -> None:
    model = ScriptedModel([final(GOOD)])
    agent = Agent(model, [Office()], output_type=City, output_mode="tool")
    agent.run_sync("Where?")
    assert [tool.name for tool in model.requests[0].tools] == ["look", "delete", "final_result"]
    assert model.requests[0].tools[2].parameters["required"] == ["name", "people"]
    assert model.requests[0].output_schema is None
    assert [*agent.registry.tools] == ["look", "delete"]


def test_a_call_that_does_not_fit_is_answered_with_what_is_wrong() -> None:
    result = run([final({"name": "Ulm", "people": "many"}), final(GOOD)])
    assert result.output == ULM
    wrong = 'invalid arguments for final_result:\n- /people: expected integer, found string "many"'
    assert answers(result.messages) == [
        ("final_result", wrong, "invalid_arguments"),
        ("final_result", "accepted", None),
    ]


def test_calls_that_never_fit_end_the_run_as_replies_do() -> None:
    result = run([final({}), final({"name": "Ulm"}), final({"name": 1})], output_retries=2)
    assert (result.finish, result.turns) == ("invalid_output", 3)
    with pytest.raises(OutputError, match="/people: expected integer"):
        _ = result.output


def test_a_reply_in_words_is_asked_for_the_call() -> None:
    result = run(["It is Ulm.", final(GOOD)])
    assert result.output == ULM
    assert result.messages[2] == user(
        "the reply does not match the schema:\n- expected one JSON value, found no JSON in the reply\n"
        "Give the whole answer as the arguments of a call of final_result."
    )


def test_json_that_fits_is_the_output_without_a_call() -> None:
    assert run([JSON]).output == ULM


def test_a_call_that_was_written_as_json_is_a_call() -> None:
    written = json.dumps({"name": "final_result", "arguments": GOOD})
    result = Agent(
        ScriptedModel([f"```json\n{written}\n```"]), output_type=dict[str, Any], output_mode="tool"
    ).run_sync("?")
    assert result.output == GOOD


def test_real_tools_run_before_the_output() -> None:
    office = Office()
    assert run([ToolCall("", "look", {"city": "Ulm"}), final(GOOD)], office=office).output == ULM
    assert office.done == ["Ulm"]


def test_an_output_beside_calls_waits_for_their_results() -> None:
    office = Office()
    both = [final(GOOD), ToolCall("", "look", {"city": "Ulm"})]
    result = run([both, final(GOOD)], office=office)
    assert (result.output, result.turns, office.done) == (ULM, 2, ["Ulm"])
    first = (
        "not run: this reply also calls other tools, so it is not the final answer: read their results, then call "
        "final_result alone"
    )
    assert answers(result.messages)[0] == ("final_result", first, "skipped")


@pytest.mark.parametrize("execute", ["end", "stream"])
@pytest.mark.parametrize("strategy", ["parallel", "sequential"])
@pytest.mark.parametrize("last", [True, False])
def test_the_calls_beside_an_output_can_be_skipped(execute: Any, strategy: Any, last: bool) -> None:
    office, calls = Office(), [ToolCall("", "delete", {"path": "a"}), ToolCall("", "nothing", {})]
    reply = [*calls, final(GOOD)] if last else [final(GOOD), *calls]
    config = ProcessorConfig(execute=execute, strategy=strategy)
    result = run([reply], office=office, calls_with_output="skip", config=config)
    assert (result.output, result.finish, result.pending, office.done) == (ULM, "stop", (), [])
    assert {name: code for name, _, code in answers(result.messages)} == {
        "final_result": None,
        "delete": "skipped",
        "nothing": "unknown_tool",
    }


@pytest.mark.parametrize("steps", range(4))
def test_nobody_is_asked_about_a_call_that_was_skipped_while_a_guard_decided(steps: int) -> None:
    async def slow(call: ToolCall, context: ToolContext) -> None:
        for _ in range(steps):
            await asyncio.sleep(0)

    async def watch() -> tuple[list[type], RunResult[City]]:
        model = ScriptedModel([[ToolCall("d", "delete", {"path": "a"}), final(GOOD)]])
        skips: dict[str, Any] = {"output_mode": "tool", "calls_with_output": "skip", "guards": Guards(call=[slow])}
        run = Agent(model, [Office()], output_type=City, **skips).stream("Where?")
        seen: list[type] = []
        async for event in run:
            seen.append(type(event))
            await asyncio.sleep(0)
        return seen, run.result

    seen, result = asyncio.run(watch())
    assert ApprovalRequired not in seen[seen.index(ToolSkipped) :]
    assert (result.output, result.pending, len(answers(result.messages))) == (ULM, (), 2)


def test_the_calls_beside_a_json_reply_can_be_skipped() -> None:
    office = Office()
    model = ScriptedModel([[JSON, ToolCall("", "look", {"city": "Ulm"})]])
    result = Agent(model, [office], output_type=City, calls_with_output="skip").run_sync("Where?")
    assert (result.output, result.finish, result.turns, office.done) == (ULM, "stop", 1, [])
    assert answers(result.messages) == [
        ("look", "not run: this reply is the final answer, and nothing follows it", "skipped")
    ]


def test_the_calls_beside_another_reply_run() -> None:
    office = Office()
    model = ScriptedModel([["I look it up.", ToolCall("", "look", {"city": "Ulm"})], JSON])
    result = Agent(model, [office], output_type=City, calls_with_output="skip").run_sync("Where?")
    assert (result.output, office.done) == (ULM, ["Ulm"])


def test_two_equal_outputs_are_one() -> None:
    result = run([[final(GOOD), final(GOOD)]])
    assert (result.output, result.turns) == (ULM, 1)
    assert [code for _, _, code in answers(result.messages)] == [None, "skipped"]


def test_of_two_different_outputs_none_is_chosen() -> None:
    result = run([[final(GOOD), final({**GOOD, "people": 1})], final(GOOD)])
    assert (result.output, result.turns) == (ULM, 2)
    several = "not run: this reply has 2 different final answers: call final_result once, with the whole answer"
    assert answers(result.messages)[:2] == [("final_result", several, "ambiguous_call")] * 2


def test_a_tool_of_that_name_stays_what_it_is() -> None:
    def final_result(text: str) -> str:
        """Publish a text."""
        return f"published {text}"

    model = ScriptedModel([ToolCall("", "final_result", {"text": "a"}), ToolCall("", "final_result_2", GOOD)])
    result = Agent(model, [final_result], output_type=City, output_mode="tool").run_sync("Where?")
    assert result.output == ULM
    assert answers(result.messages)[0] == ("final_result", "published a", None)


def test_neither_approval_nor_budget_applies_to_it() -> None:
    config = ProcessorConfig(requires_approval=True, attended=False)
    look = ToolCall("", "look", {"city": "Ulm"})
    result = run([look, final(GOOD)], config=config, budget=Budget(tool_calls=1))
    assert result.output == ULM
    assert result.messages[2].error == "denied"  # type: ignore[union-attr]  # the answer to `look`


def test_a_call_that_waits_for_a_person_comes_before_the_output() -> None:
    office = Office()
    agent = Agent(
        ScriptedModel([[ToolCall("c", "delete", {"path": "a"}), final(GOOD)], final(GOOD)]),
        [office],
        output_type=City,
        output_mode="tool",
    )
    waits = agent.run_sync("Where?")
    assert (waits.finish, [call.name for call in waits.pending]) == ("approval", ["delete"])
    from agentkit import Approved

    result = agent.run_sync(waits, decisions={"c": Approved()})
    assert (result.output, office.done) == (ULM, ["a"])


def test_no_tool_but_the_output() -> None:
    model = ScriptedModel([[ToolCall("", "look", {"city": "Ulm"})], final(GOOD)])
    office = Office()
    result = Agent(model, [office], output_type=City, output_mode="tool").run_sync("Where?", tool_choice="none")
    assert (result.output, office.done) == (ULM, [])
    assert [request.tool_choice for request in model.requests] == ["final_result", "final_result"]


def test_the_last_turn_may_be_the_output() -> None:
    look = ToolCall("", "look", {"city": "Ulm"})
    assert run([look, final(GOOD)], max_turns=2).output == ULM
    result = run([look, look], max_turns=2)
    assert (result.finish, result.output_error) == ("max_turns", None)


def test_a_cut_call_is_no_output() -> None:
    from agentkit.events import ArgumentDelta, CallStart, Finish

    cut = [CallStart(0, "final_result", "x"), ArgumentDelta(0, '{"name": "Ulm", "peo'), Finish("length")]
    result = run([cut, final(GOOD)])
    assert (result.output, result.turns) == (ULM, 2)


@pytest.mark.parametrize(("kind", "value"), [(list[int], [1, 2]), (int | str, "a"), (City | None, None)])
def test_a_value_that_is_no_object_is_one_argument(kind: Any, value: Any) -> None:
    agent = Agent(ScriptedModel([final({"value": value})]), output_type=kind, output_mode="tool")
    assert agent.run_sync("?").output == value


class Team(BaseModel):
    lead: City
    others: list[City]


@pytest.mark.parametrize("format", CATALOG, ids=lambda format: format.name)
def test_in_every_text_format(format: Any) -> None:
    written = {"lead": GOOD, "others": [GOOD, {"name": "Linz", "people": 7}]}
    model = ScriptedModel([final({"lead": GOOD}), final(written)], format=format)
    office = Office()
    result = Agent(model, [office], output_type=Team, output_mode="tool").run_sync("Where?")
    assert result.output == Team(lead=ULM, others=[ULM, City(name="Linz", people=7)])
    assert result.turns == 2


def test_a_sub_agent_answers_with_its_output() -> None:
    sub = Agent(ScriptedModel([final(GOOD)]), output_type=City, output_mode="tool")
    model = ScriptedModel([ToolCall("", "find", {"task": "Where?"}), "In Ulm."])
    result = Agent(model, [sub.as_tool("find", "Finds a city.")]).run_sync("Where?")
    assert answers(result.messages) == [("find", JSON, None)]


def test_events_of_the_output() -> None:
    async def events() -> list[Event]:
        agent = Agent(ScriptedModel([final(GOOD)]), output_type=City, output_mode="tool")
        return [event async for event in agent.stream("Where?")]

    kinds = [type(event) for event in asyncio.run(events()) if isinstance(event, CallEnd | ToolStarted | ToolCompleted)]
    assert kinds == [CallEnd, ToolStarted, ToolCompleted]


# ---------------------------------------------------------------- threads


async def threads_with(file: Path, script: list[Any], **options: Any) -> tuple[RunResult[City], RunResult[City], int]:
    """The results of a run on a thread, and of another run with nothing to do; and what that asked."""
    async with ThreadManager(file) as threads:
        thread = await threads.create_thread()
        await threads.add_message(thread, "Where?")
        agent = Agent(ScriptedModel(script), [Office()], output_type=City, **options)
        first = await threads.run_agent(thread, agent)
    async with ThreadManager(file) as threads:
        model = ScriptedModel([])
        again = await threads.run_agent(thread, Agent(model, [Office()], output_type=City, **options))
        plain = await threads.run_agent(thread, Agent(model, [Office()]))
        assert plain.finish in ("stop", "agent_terminated")
        return first, again, len(model.requests)


LOOK = ToolCall("c", "look", {"city": "Ulm"})


@pytest.mark.parametrize(
    ("script", "mode", "others"),
    [
        ([final(GOOD)], "tool", "run"),
        ([LOOK, final(GOOD)], "tool", "run"),
        ([[LOOK, final(GOOD)], final(GOOD)], "tool", "run"),
        ([[LOOK, final(GOOD)]], "tool", "skip"),
        ([[JSON, LOOK]], "schema", "skip"),
        ([[JSON, LOOK], JSON], "schema", "run"),
    ],
)
def test_a_thread_that_has_its_output_is_over(
    tmp_path: Path, script: list[Any], mode: str, others: CallsWithOutput
) -> None:
    first, again, asked = asyncio.run(
        threads_with(tmp_path / "a.db", script, output_mode=mode, calls_with_output=others)
    )
    assert (first.output, first.finish) == (ULM, "stop")
    assert (again.output, again.finish, asked) == (ULM, "stop", 0)
    assert again.messages == first.messages
    for check, wire in (
        (check_chat, chat_messages),
        (check_anthropic, anthropic_messages),
        (check_responses, responses_input),
    ):
        sent: Any = wire(first.messages, "openai")
        check(sent if not isinstance(sent, tuple) else sent[-1])


async def _say_twice(agent: Agent[Any, City]) -> RunResult[City]:
    async with ThreadManager(":memory:") as threads:
        await threads.say("t", "Where?", agent=agent, client_id="1")
        await threads.say("t", "Thanks.", ScriptedModel(["Bye."]))
        return await threads.say("t", "Where?", agent=agent, client_id="1")


def test_a_message_that_is_said_again_gets_the_stored_output() -> None:
    model = ScriptedModel([["Here it is.", final(GOOD)]])
    stored = asyncio.run(_say_twice(Agent(model, output_type=City, output_mode="tool")))
    assert (stored.finish, stored.text, stored.output) == ("stop", JSON, ULM)


def test_a_thread_whose_process_died_gets_its_output(tmp_path: Path) -> None:
    """At each of its writes, done or not."""

    async def die(at: int, done: bool) -> bool:
        file = tmp_path / f"{at}{done}.db"
        async with ThreadManager(Failing(SQLiteStore(file), at, done=done)) as threads:  # type: ignore[arg-type]
            thread = await threads.create_thread()
            failed = False
            try:
                await threads.add_message(thread, "Where?")
                agent = Agent(ScriptedModel([final(GOOD)]), output_type=City, output_mode="tool")
                await threads.run_agent(thread, agent)
            except StoreError:
                failed = True
        async with ThreadManager(file) as threads:
            if not await threads.get_llm_messages(thread):
                return failed
            agent = Agent(ScriptedModel([final(GOOD)]), output_type=City, output_mode="tool")
            result = await threads.run_agent(thread, agent)
            assert result.output == ULM
        return failed

    for done in (True, False):
        at = 1
        while asyncio.run(die(at, done)):
            at += 1
        assert at > 3


def test_wrong_options() -> None:
    with pytest.raises(ConfigError, match=r"output_mode='tools'\): expected one of schema, tool"):
        Agent(ScriptedModel([]), output_mode="tools")  # type: ignore[arg-type]
