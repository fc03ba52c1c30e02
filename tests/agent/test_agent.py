"""The loop: one prompt, as many responses as it takes, one result."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any, TypeVar

import pytest

from agentkit import Agent, ProcessorConfig, ProviderError, ToolContext, ToolRegistry, openapi_schema, xml_schema
from agentkit.agent import RunResult, RunStream
from agentkit.errors import ConfigError
from agentkit.events import CallEnd, Event, Finish, SourceEvent, Text, ToolCompleted, ToolStarted, Usage
from agentkit.messages import (
    AssistantMessage,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    user,
)
from agentkit.models import ModelRequest
from agentkit.testing import Replay, ScriptedModel


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


CALL = ToolCall("x", "add", {"a": 1, "b": 2})
ContextT = TypeVar("ContextT", contravariant=True)


def asking(model: ScriptedModel, **arguments: Any) -> Agent:
    return Agent(model, [add], **arguments)


# ---------------------------------------------------------------- hello


def test_a_plain_function_is_a_tool_in_six_lines() -> None:
    model = ScriptedModel([CALL, "It is 3."])
    assert Agent(model, tools=[add]).run_sync("What is 1 + 2?").text == "It is 3."


def test_the_result_holds_the_whole_conversation() -> None:
    model = ScriptedModel([[CALL, Usage(10, 2)], ["It is 3.", Usage(20, 4)]])
    result = asking(model, system="Be brief.").run_sync("1 + 2?")
    prompt = (SystemMessage("Be brief."), UserMessage((TextPart("1 + 2?"),)))
    call = ToolCall("x", "add", {"a": 1, "b": 2}, None, '{"a": 1, "b": 2}')
    added = (
        AssistantMessage((call,)),
        ToolMessage("x", "add", (TextPart("3"),)),
        AssistantMessage((TextPart("It is 3."),)),
    )
    assert result == RunResult("It is 3.", prompt + added, Usage(30, 6), 2, "stop", start=2)
    assert result.new_messages == added


def test_the_model_sees_prompt_tools_and_results() -> None:
    model = ScriptedModel([CALL, "3"])
    asking(model).run_sync("1 + 2?", temperature=0.5, max_tokens=100)
    first, second = model.requests
    assert [t.name for t in first.tools] == ["add"]
    assert (first.temperature, first.max_tokens) == (0.5, 100)
    assert second.messages[-1] == ToolMessage("x", "add", (TextPart("3"),))


def test_a_conversation_goes_on_from_its_result() -> None:
    agent = asking(ScriptedModel(["Hello.", "Yes."]), system="Be brief.")
    first = agent.run_sync("Hi")
    second = agent.run_sync([*first.messages, user("Again?")])
    assert [type(m) for m in second.messages] == [
        SystemMessage,
        UserMessage,
        AssistantMessage,
        UserMessage,
        AssistantMessage,
    ]


@pytest.mark.parametrize("prompt", ["hi", user("hi"), [user("hi")]])
def test_a_prompt_is_text_a_message_or_messages(prompt: Any) -> None:
    model = ScriptedModel(["ok"])
    Agent(model).run_sync(prompt)
    assert model.requests[0].messages == (user("hi"),)


# ---------------------------------------------------------------- tools


class Counter:
    """Counts up."""

    def __init__(self) -> None:
        self.count = 0

    @openapi_schema
    @xml_schema
    async def increase(self, by: int) -> int:
        """Count up."""
        self.count += by
        return self.count


@pytest.mark.parametrize(
    "tools",
    [[Counter()], Counter(), [Counter], [f"{__name__}:Counter"], f"{__name__}:Counter", ToolRegistry(Counter())],
)
def test_tools_come_in_any_shape(tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    result = Agent(ScriptedModel([ToolCall("x", "increase", {"by": 2}), "done"]), tools).run_sync("go")
    assert result.messages[2] == ToolMessage("x", "increase", (TextPart("2"),))


def test_a_servers_fields_of_a_call_go_back_with_it_whatever_its_id_became() -> None:
    def asks(id: str, signature: str) -> dict[str, Any]:
        """Gemini's signature of a call, from a server that gives no ids or repeats them."""
        function = {"name": "add", "arguments": '{"a": 1, "b": 2}'}
        call = {"id": id, "type": "function", "function": function, "extra_content": signature}
        return {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}

    done = {"choices": [{"message": {"content": "3"}, "finish_reason": "stop"}]}
    tape = Replay([asks("t", "S1"), asks("t", "S2"), asks("", "S3"), done])
    Agent(tape.model("openai:m"), [add]).run_sync("1 + 2?")
    sent = [call for m in tape.requests[-1]["messages"] for call in m.get("tool_calls", ())]
    assert [call["extra_content"] for call in sent] == ["S1", "S2", "S3"]
    assert len({call["id"] for call in sent}) == 3


def test_a_tool_that_can_be_iterated_is_one_tool_all_the_same() -> None:
    class Notes:
        def __iter__(self) -> Iterator[str]:
            return iter(())

        @openapi_schema
        def put(self, note: str) -> str:
            return note

    class Shelf(list[str]):
        @openapi_schema
        def take(self, book: str) -> str:
            return book

    assert list(Agent(ScriptedModel([]), Notes()).registry.tools) == ["put"]
    assert list(Agent(ScriptedModel([]), Shelf(["Moby-Dick"])).registry.tools) == ["take"]


def test_an_agent_can_be_given_one_type_or_both() -> None:
    """Also before Python 3.13, which has no defaults for the second one."""

    class Shop: ...

    class Seller(Agent[Shop]): ...

    class Clerk(Agent[ContextT, str]): ...

    for kind in (Agent, Agent[Shop], Agent[Shop, str], Seller, Clerk, Clerk[Shop]):
        agent: Agent[Any, Any] = kind(ScriptedModel(["Sold."]))
        assert agent.run_sync("A book, please").text == "Sold."
    with pytest.raises(TypeError, match="Too many"):
        Agent[Shop, str, int]  # type: ignore[misc]


def test_a_tool_that_fails_does_not_end_the_run() -> None:
    def fail() -> None:
        """Fail."""
        raise ValueError("no")

    model = ScriptedModel([[ToolCall("x", "fail"), ToolCall("y", "add", {"a": 1, "b": 2})], "I see."])
    result = Agent(model, [fail, add]).run_sync("go")
    assert [(m.error, m.text) for m in result.messages if isinstance(m, ToolMessage)] == [
        ("tool_error", "ValueError: no"),
        (None, "3"),
    ]
    assert result.text == "I see."


def test_the_runs_context_reaches_the_tools_and_not_the_model() -> None:
    def whoami(context: ToolContext) -> str:
        """Say who."""
        return str(context.state["user"])

    model = ScriptedModel([ToolCall("x", "whoami"), "ok"])
    result = Agent(model, [whoami]).run_sync("go", context={"user": "ann"})
    assert result.messages[2] == ToolMessage("x", "whoami", (TextPart("ann"),))
    assert model.requests[0].tools[0].parameters["properties"] == {}


# ---------------------------------------------------------------- formats


def test_a_model_that_writes_calls_as_text_needs_no_configuration() -> None:
    tool = Counter()
    model = ScriptedModel(["Now: <increase by='2'/>", "done"], format="xml", chunk=1)
    result = Agent(model, [tool]).run_sync("go")
    assert (tool.count, result.text) == (2, "done")


def test_formats_of_the_configuration_win() -> None:
    tool = Counter()
    model = ScriptedModel(["<increase by='2'/>"], format="xml")
    result = Agent(model, [tool], config=ProcessorConfig(formats=())).run_sync("go")
    assert (tool.count, result.text) == (0, "<increase by='2'/>")


# ---------------------------------------------------------------- how a run ends


def test_a_run_ends_at_its_limit_of_turns_and_says_so() -> None:
    model = ScriptedModel(lambda request: ToolCall("", "add", {"a": 1, "b": 2}))
    result = asking(model, max_turns=3).run_sync("go")
    assert (result.turns, result.finish) == (3, "max_turns")
    assert isinstance(result.messages[-1], ToolMessage)


def test_a_run_goes_on_whatever_the_finish_says_as_long_as_there_are_results() -> None:
    assert asking(ScriptedModel([[CALL, Finish("stop", "stop")], "3"])).run_sync("go").text == "3"


def test_a_paused_turn_is_sent_back() -> None:
    model = ScriptedModel([["Wait", Finish("pause", "pause_turn")], " done"])
    result = Agent(model).run_sync("go")
    assert (result.turns, result.text) == (2, " done")
    assert model.requests[1].messages[-1] == AssistantMessage((TextPart("Wait"),))


def test_a_model_may_say_nothing() -> None:
    result = Agent(ScriptedModel([[]]), reply_retries=0).run_sync("go")
    assert (result.text, result.messages, result.finish) == ("", (user("go"),), "empty")


def test_a_forced_call_is_forced_once() -> None:
    model = ScriptedModel([CALL, "3"])
    asking(model, tool_choice="required").run_sync("go")
    assert [r.tool_choice for r in model.requests] == ["required", "auto"]


def test_a_forced_call_stays_forced_until_it_came() -> None:
    model = ScriptedModel([["hm", Finish("pause")], CALL, "3"])
    asking(model).run_sync("go", tool_choice="add")
    assert [r.tool_choice for r in model.requests] == ["add", "add", "auto"]


@pytest.mark.parametrize("format", [None, "hermes", "xml"])
def test_no_call_runs_if_none_may_be_made(format: str | None) -> None:
    result = asking(ScriptedModel([CALL, "Then in words."], format=format), tool_choice="none").run_sync("Go.")
    (answer,) = [m for m in result.messages if isinstance(m, ToolMessage)]
    assert answer.error == "denied"
    assert "no tool may be called now (tool_choice='none')" in answer.text
    assert result.text == "Then in words."


def test_a_provider_error_is_raised_and_the_stream_keeps_what_was() -> None:
    broken = ProviderError("overloaded", kind="overloaded", provider="anthropic")

    async def main() -> RunStream:
        stream = asking(ScriptedModel([CALL, ["Half", broken]])).stream("go")
        with pytest.raises(ProviderError, match="overloaded"):
            await stream.complete()
        return stream

    result = asyncio.run(main()).result
    assert (result.finish, result.turns, result.text) == ("error", 2, "Half")
    assert [type(m) for m in result.messages] == [UserMessage, AssistantMessage, ToolMessage, AssistantMessage]


# ---------------------------------------------------------------- streams


def test_a_run_streams_its_events() -> None:
    async def main() -> tuple[list[Event], RunResult]:
        stream = asking(ScriptedModel([CALL, "It is 3."], chunk=4)).stream("go")
        events = [event async for event in stream]
        return events, stream.result

    events, result = asyncio.run(main())
    assert [type(e).__name__ for e in events if not isinstance(e, Text)][-4:] == [
        "Finish",
        "ToolStarted",
        "ToolCompleted",
        "Finish",
    ]
    assert "".join(e.text for e in events if isinstance(e, Text)) == "It is 3."
    assert result.text == "It is 3."


def test_a_run_that_is_left_keeps_a_valid_conversation() -> None:
    async def hang() -> None:
        """Hang."""
        await asyncio.Event().wait()

    async def main() -> RunStream:
        async with Agent(ScriptedModel([["Let me see. ", ToolCall("x", "hang")]]), [hang]).stream("go") as stream:
            async for event in stream:
                if isinstance(event, ToolStarted):
                    asyncio.get_running_loop().call_soon(stream.cancel)
        return stream

    result = asyncio.run(main()).result
    assert result.finish == "cancelled"
    assert result.messages[-1] == ToolMessage(
        "x", "hang", (TextPart("cancelled while it ran: what it had done by then may have taken effect"),), "cancelled"
    )


def test_a_run_has_no_result_before_its_end() -> None:
    async def main() -> None:
        stream = Agent(ScriptedModel(["hi"])).stream("go")
        async for _ in stream:
            with pytest.raises(RuntimeError, match="not over"):
                _ = stream.result
        assert stream.result.text == "hi"

    asyncio.run(main())


def test_runs_of_one_agent_do_not_meet() -> None:
    def answer(request: ModelRequest) -> Any:
        last = request.messages[-1]
        if isinstance(last, ToolMessage):
            return last.text
        number = int(last.content[0].text) if isinstance(last, UserMessage) else 0  # type: ignore[union-attr]
        return ToolCall("", "add", {"a": number, "b": 0})

    async def main() -> list[str]:
        agent = asking(ScriptedModel(answer))
        return [r.text for r in await asyncio.gather(*(agent.run(str(i)) for i in range(20)))]

    assert asyncio.run(main()) == [str(i) for i in range(20)]


# ---------------------------------------------------------------- models of one's own


class Echo:
    """A model in five lines."""

    name = "echo"
    format = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        last = request.messages[-1]
        if isinstance(last, UserMessage):
            yield CallEnd(0, CALL)
        else:
            yield Text("done")


def test_a_model_is_whatever_streams_events() -> None:
    result = Agent(Echo(), [add]).run_sync("go")
    assert (result.text, result.finish) == ("done", "unknown")


# ---------------------------------------------------------------- mistakes


def test_run_sync_inside_an_event_loop_says_what_to_write() -> None:
    async def main() -> None:
        Agent(ScriptedModel([])).run_sync("go")

    with pytest.raises(RuntimeError, match=r"await agent\.run"):
        asyncio.run(main())


def test_a_model_string_is_read_at_once_and_its_key_is_looked_for_at_the_first_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigError, match="nobody:gpt"):
        Agent("nobody:gpt", [add])
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    agent = Agent("openai:gpt", [add])
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        agent.run_sync("go")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_turns": 0}, r"expected an integer \(1 or more\)"),
        ({"temprature": 1}, "Agent has no argument 'temprature'; did you mean 'temperature'?"),
    ],
)
def test_a_wrong_argument_says_what_was_wanted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        asking(ScriptedModel([]), **arguments)


def test_a_tool_choice_that_is_no_tool() -> None:
    with pytest.raises(ConfigError, match="'sub' is not a tool of this agent: expected one of auto, required, none"):
        asking(ScriptedModel([])).run_sync("go", tool_choice="sub")


def test_building_an_agent_loads_no_sdk() -> None:
    script = (
        "import sys; from agentkit import Agent; from agentkit.testing import ScriptedModel\n"
        "def add(a: int) -> int: return a\n"
        "Agent(ScriptedModel(['hi']), [add]).run_sync('go')\n"
        "print(*sorted({'openai', 'anthropic', 'lxml', 'jsonschema', 'httpx', 'httpx2'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "\n"


def test_started_comes_before_completed() -> None:
    async def main() -> list[Event]:
        return [e async for e in asking(ScriptedModel([CALL, "3"])).stream("go")]

    kinds = [type(e) for e in asyncio.run(main())]
    assert kinds.index(ToolStarted) < kinds.index(ToolCompleted)


# ---------------------------------------------------------------- what a failure leaves


def test_what_was_done_before_a_failure_is_in_the_error() -> None:
    """A call that was complete when the stream broke off has run: whoever catches the error must know."""
    model = ScriptedModel([[CALL, Usage(10, 2), ProviderError("lost", kind="connection", provider="p")]])
    with pytest.raises(ProviderError) as raised:
        asking(model).run_sync("1 + 2?")
    result = raised.value.result
    assert (result.finish, result.turns, result.usage) == ("error", 1, Usage(10, 2))
    assert result.new_messages[-1] == ToolMessage("x", "add", (TextPart("3"),))
    again = asking(ScriptedModel(["It is 3."])).run_sync([*result.messages, user("Go on.")])
    assert again.text == "It is 3."


def test_an_error_of_no_run_has_no_result() -> None:
    assert ProviderError("no", kind="server", provider="p").result is None


def test_without_asyncio_a_run_says_what_it_needs() -> None:
    """As under trio, which drives coroutines without asyncio's event loop."""
    with pytest.raises(RuntimeError, match="a RunStream runs on asyncio, and no asyncio event loop runs here"):
        asking(ScriptedModel([])).run("1 + 2?").send(None)
