"""Guards of requests and replies: what they change and refuse, and that one that fails refuses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from agentkit import (
    Agent,
    AskAgain,
    Budget,
    ConfigError,
    Guards,
    ModelRequest,
    OutputError,
    ProcessorConfig,
    Refused,
    TextPart,
    ToolCall,
    ToolRegistry,
    openapi_schema,
)
from agentkit.agent import RunEnded, RunStream, TurnStarted
from agentkit.errors import ProviderError
from agentkit.events import Finish
from agentkit.formats import get
from agentkit.formats.write import render_calls
from agentkit.messages import AssistantMessage, ToolMessage, UserMessage, user
from agentkit.models.text import text_messages
from agentkit.testing import ScriptedModel

pytestmark = pytest.mark.anyio

QUICK = 0.05


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


ADD = ToolCall("c", "add", {"a": 1, "b": 2})


def texts(request: ModelRequest) -> list[str]:
    return [m.content[0].text for m in request.messages if isinstance(m, UserMessage)]  # type: ignore[union-attr]


# ---------------------------------------------------------------- requests


def test_a_request_is_changed_in_order_and_the_conversation_is_not() -> None:
    def without_names(request: ModelRequest, run: RunStream[Any]) -> ModelRequest:
        return replace(request, messages=[user("[name] asks"), *request.messages[1:]])

    def cold(request: ModelRequest, run: RunStream[Any]) -> ModelRequest:
        assert texts(request) == ["[name] asks"]
        return replace(request, temperature=0.0)

    model, seen = ScriptedModel([ADD, "3"]), list[ModelRequest]()
    agent = Agent(
        model,
        [add],
        guards=Guards(request=[without_names, cold]),
        hooks=[lambda event, run: seen.append(event.request) if isinstance(event, TurnStarted) else None],
    )
    result = agent.run_sync("Ada asks")
    assert [(texts(request), request.temperature) for request in model.requests] == [(["[name] asks"], 0.0)] * 2
    assert [texts(request) for request in seen] == [["[name] asks"]] * 2
    assert result.messages[0] == user("Ada asks")


def test_a_refused_request_is_not_sent_and_ends_the_run() -> None:
    def refuses(request: ModelRequest, run: RunStream[Any]) -> Refused | None:
        return Refused("3 is secret") if isinstance(request.messages[-1], ToolMessage) else None

    model, ended = ScriptedModel([["One moment.", ADD], "3"]), list[Any]()
    hook = lambda event, run: ended.append(event.result) if isinstance(event, RunEnded) else None  # noqa: E731
    result = Agent(model, [add], guards=Guards(request=[refuses]), hooks=[hook]).run_sync("1 + 2?")
    assert (result.finish, result.guard_reason, len(model.requests)) == ("refused_by_guard", "3 is secret", 1)
    assert [(one.finish, one.guard_reason) for one in ended] == [("refused_by_guard", "3 is secret")]


@pytest.mark.parametrize("format", [None, "hermes"])
def test_what_a_guard_hides_is_nowhere_in_the_request(format: str | None) -> None:
    def hide(request: ModelRequest, run: RunStream[Any]) -> ModelRequest:
        return request.map_texts(lambda text: text.replace('"4711"', "[code]").replace("815", "[n]"))

    def echo(text: str, n: int) -> str:
        """Repeat a text."""
        return text

    turns = [["The code is", ToolCall("c", "echo", {"text": '"4711"', "n": 815})], "Done."]
    model = ScriptedModel(turns, format=format)
    Agent(model, [echo], system='Say "4711".', guards=Guards(request=[hide])).run_sync('"4711"?')
    sent = repr(model.requests[1].messages)
    assert sent.count("[code]") == 4  # instructions, prompt, argument, result
    assert ("4711" in sent, "815" in sent) == (False, False)


def test_changed_texts_leave_yes_and_no_as_they_are() -> None:
    call = ToolCall("c", "save", {"n": 1, "shared": True})
    changed = (
        ModelRequest([AssistantMessage(call)]).map_texts(str.upper).map_texts(lambda text: text.replace("1", "[n]"))
    )
    assert changed.messages[0].calls[0].arguments == {"N": "[n]", "SHARED": True}


def test_the_text_of_a_call_whose_arguments_a_guard_changed_is_not_sent() -> None:
    def hide(request: ModelRequest, run: RunStream[Any]) -> ModelRequest:
        first, *others = request.messages
        hidden = [
            replace(m, content=tuple(replace(call, arguments={"a": 0, "b": 0}) for call in m.calls))
            if isinstance(m, AssistantMessage)
            else m
            for m in others
        ]
        return replace(request, messages=[first, *hidden])

    model = ScriptedModel([ADD, "3"], format="hermes")
    Agent(model, [add], guards=Guards(request=[hide])).run_sync("1 + 2?")
    assert text_messages(model.requests[1].messages, get("hermes"), [])[1] == AssistantMessage(
        '\n<tool_call>\n{"name": "add", "arguments": {"a": 0, "b": 0}}\n</tool_call>\n'
    )


def test_what_a_guard_changes_in_a_request_in_place_has_no_effect() -> None:
    def spoils(request: Any, run: RunStream[Any]) -> None:
        request.messages[0] = user("other")
        request.messages.append(user("more"))
        request.extra["top_p"] = 1
        request.tools[0].parameters["properties"].clear()
        for message in request.messages:
            for call in getattr(message, "calls", ()):
                call.arguments["a"] = 100

    model = ScriptedModel([ADD, "3"])
    result = Agent(model, [add], guards=Guards(request=[spoils]), extra={"seed": 1}).run_sync("1 + 2?")
    for request in model.requests:
        assert texts(request) == ["1 + 2?"]
        assert (request.extra, [*request.tools[0].parameters["properties"]]) == ({"seed": 1}, ["a", "b"])
    assert [m.calls[0].arguments for m in result.messages if isinstance(m, AssistantMessage) and m.calls] == [
        {"a": 1, "b": 2}
    ]


@pytest.mark.parametrize("format", [None, "hermes", "xml"])
@pytest.mark.parametrize("offered_tools", [None, 1])
def test_only_the_tools_that_a_guard_left_in_the_request_can_be_called(
    format: str | None, offered_tools: int | None
) -> None:
    def only_look(request: ModelRequest, run: RunStream[Any]) -> ModelRequest:
        return replace(request, tools=[tool for tool in request.tools if tool.name != "add"])

    def look() -> str:
        """Look."""
        return "seen"

    added: list[int] = []

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        added.append(a + b)
        return a + b

    raw = "" if format is None else render_calls(get(format), [ADD], ToolRegistry(add).specs())
    model = ScriptedModel([replace(ADD, raw=raw), "3"], format=format)
    options: dict[str, Any] = {"offered_tools": offered_tools, "config": ProcessorConfig(requires_approval=True)}
    result = Agent(model, [look, add], guards=Guards(request=[only_look]), **options).run_sync("Look, and add 1 and 2.")
    assert (added, result.pending) == ([], ())
    if (format, offered_tools) != ("xml", 1):  # there it is text
        assert result.messages[2].content[0] == TextPart("not run: add was not offered")


def test_a_guard_forbids_calls() -> None:
    def no_tools(request: ModelRequest, run: RunStream[Any]) -> ModelRequest:
        return replace(request, tool_choice="none")

    result = Agent(ScriptedModel([ADD, "3"]), [add], guards=Guards(request=[no_tools])).run_sync("1 + 2?")
    answer = next(m for m in result.messages if isinstance(m, ToolMessage))
    assert answer.text == "not run: no tool may be called now (tool_choice='none'); answer in words"


def test_a_reply_that_is_continued_continues_the_request_that_was_sent() -> None:
    def hides(request: ModelRequest, run: RunStream[Any]) -> ModelRequest:
        return replace(request, messages=[user("hidden"), *request.messages[1:]])

    first = ['<tool_call>\n{"name": "add", "arg', Finish("length")]
    model = ScriptedModel([first, 'uments": {"a": 1, "b": 2}}\n</tool_call>', "3"], format="hermes", continues=True)
    Agent(model, [add], guards=Guards(request=[hides])).run_sync("secret")
    assert [texts(request)[0] for request in model.requests] == ["hidden"] * 3


# ---------------------------------------------------------------- replies


def polite(reply: AssistantMessage, run: RunStream[Any]) -> AskAgain | None:
    return None if "please" in reply.text else AskAgain("say please")


def test_the_model_is_asked_again_and_the_conversation_has_it() -> None:
    result = Agent(ScriptedModel(["No.", "No, please."]), guards=Guards(reply=[polite])).run_sync("Tea?")
    assert (result.finish, result.text, result.guard_reason) == ("stop", "No, please.", None)
    assert result.messages[2] == user("Your reply was not accepted: say please\nWrite the whole reply again.")


def test_it_counts_against_the_retries_and_no_refused_reply_is_the_result() -> None:
    agent = Agent(ScriptedModel(["No."] * 3), guards=Guards(reply=[polite]), reply_retries=2)
    result = agent.run_sync("Tea?")
    assert (result.finish, result.text, result.guard_reason, result.turns) == (
        *("refused_by_guard", "", "say please", 3),
    )


def test_a_refused_reply_ends_the_run() -> None:
    guards = Guards(reply=[lambda reply, run: Refused("rude")])
    result = Agent(ScriptedModel(["No."]), guards=guards).run_sync("Tea?")
    assert (result.finish, result.output, result.guard_reason) == ("refused_by_guard", "", "rude")


def test_a_reply_is_guarded_once_it_fits_the_output_type() -> None:
    class City(BaseModel):
        name: str

    seen: list[str] = []

    def big(reply: AssistantMessage, run: RunStream[Any]) -> AskAgain | Refused | None:
        seen.append(reply.text)
        return Refused("a village") if "Ulm" in reply.text else None

    model = ScriptedModel(["Ulm", '{"name": "Ulm"}'])
    result = Agent(model, output_type=City, guards=Guards(reply=[big])).run_sync("Where?")
    assert seen == ['{"name": "Ulm"}']
    with pytest.raises(OutputError, match="finish='refused_by_guard': a village"):
        _ = result.output


def test_a_guard_reads_the_text_that_the_result_would_have() -> None:
    class Answer(BaseModel):
        text: str

    def careful(reply: AssistantMessage, run: RunStream[Any]) -> AskAgain | None:
        return AskAgain("promise nothing") if "refund" in reply.text else None

    rude, fine = (ToolCall("", "final_result", {"text": text}) for text in ("We refund you.", "We look at it."))
    agent = Agent(
        ScriptedModel([["Here it is.", rude], fine]),
        output_type=Answer,
        output_mode="tool",
        guards=Guards(reply=[careful]),
    )
    result = agent.run_sync("It broke.")
    assert (result.text, result.output, result.turns) == (
        '{"text": "We look at it."}',
        Answer(text="We look at it."),
        2,
    )


@pytest.mark.parametrize("mode", ["schema", "tool"])
@pytest.mark.parametrize("finish", ["length", "content_filter", "refusal"])
def test_an_output_that_was_not_accepted_is_not_that_of_a_later_reply(finish: Any, mode: Any) -> None:
    first = ToolCall("c", "final_result", {"n": 1}) if mode == "tool" else '{"n": 1}'
    guards = Guards(reply=[lambda reply, run: None if "no" in reply.text else AskAgain("not 1")])
    model = ScriptedModel([first, ["I have no", Finish(finish)]])
    result = Agent(model, output_type=dict[str, int], output_mode=mode, guards=guards).run_sync("?")
    assert (result.finish, result.text) == (finish, "I have no")
    with pytest.raises(OutputError):
        _ = result.output


def test_the_call_that_ends_a_run_is_guarded_as_its_reply() -> None:
    @openapi_schema(terminates=True)
    def submit(answer: str) -> str:
        """Submit the answer."""
        return answer

    def guard(reply: AssistantMessage, run: RunStream[Any]) -> AskAgain | None:
        return AskAgain("42 is right") if reply.calls[0].arguments["answer"] != "42" else None

    calls = [ToolCall("a", "submit", {"answer": "41"}), ToolCall("b", "submit", {"answer": "42"})]
    result = Agent(ScriptedModel(calls), [submit], guards=Guards(reply=[guard])).run_sync("?")
    assert (result.finish, result.turns) == ("agent_terminated", 2)


@pytest.mark.parametrize("ends", ["max_turns", "cancelled", "error"])
async def test_a_run_that_ends_before_a_reply_was_accepted_has_no_text(ends: str) -> None:
    stop = asyncio.Event()

    def again(reply: AssistantMessage, run: RunStream[Any]) -> AskAgain:
        if ends == "cancelled":
            stop.set()
        return AskAgain("more")

    script: list[Any] = (
        ["No.", ProviderError("down", provider="openai", kind="server")] if ends == "error" else ["No."] * 3
    )
    agent = Agent(ScriptedModel(script), guards=Guards(reply=[again]), max_turns=1 if ends == "max_turns" else 5)
    run = agent.stream("Tea?", cancel=stop)
    try:
        await run.complete()
    except ProviderError:
        assert ends == "error"
    assert (run.result.finish, run.result.text) == (ends, "")


@pytest.mark.parametrize("finish", ["refused_by_guard", "max_turns"])
def test_a_calling_agent_does_not_read_what_the_guards_of_its_sub_agent_refused(finish: str) -> None:
    answer = Refused("rude") if finish == "refused_by_guard" else AskAgain("rude")
    clerk = Agent(ScriptedModel(["DAMN"] * 5), guards=Guards(reply=[lambda reply, run: answer]), max_turns=2)
    boss = ScriptedModel([ToolCall("c", "ask", {"task": "Tea?"}), "done"])
    result = Agent(boss, clerk.as_tool("ask", "Asks.")).run_sync("Tea?")
    (told,) = (m.text for m in result.messages if isinstance(m, ToolMessage))
    assert told == f"the agent stopped early ({finish}); a guard: rude"


def test_the_guards_of_a_run_hold_in_its_sub_agents() -> None:
    seen: list[str] = []

    def note(kind: str) -> Any:
        return lambda subject, run: seen.append(f"{kind} of {run.agent.name}")

    clerk = Agent(ScriptedModel(["Yes."]), name="clerk", guards=Guards(reply=[note("inner reply")]))
    boss = ScriptedModel([ToolCall("c", "ask", {"task": "Tea?"}), "done"])
    guards = Guards(request=[note("request")], reply=[note("reply")])
    Agent(boss, clerk.as_tool("ask", "Asks."), name="boss", guards=guards).run_sync("Tea?")
    assert seen == [
        "request of boss",
        "request of clerk",
        "reply of clerk",
        "inner reply of clerk",
        "request of boss",
        "reply of boss",
    ]


# ---------------------------------------------------------------- guards that fail


async def hangs(subject: Any, run: RunStream[Any]) -> None:
    await asyncio.sleep(60)


async def cancels(subject: Any, run: RunStream[Any]) -> None:
    raise asyncio.CancelledError


def raises(error: BaseException) -> Any:
    def guard(subject: Any, run: RunStream[Any]) -> None:
        raise error

    return guard


@pytest.mark.parametrize(
    ("guard", "why"),
    [
        (hangs, "the guard hangs did not answer in time"),
        (cancels, "the guard cancels raised CancelledError"),
        (raises(ValueError("secret")), "the guard raises.<locals>.guard raised ValueError"),
        (raises(SystemExit(1)), "the guard raises.<locals>.guard raised SystemExit"),
        (lambda subject, run: True, "returned a bool, not one of None, "),
    ],
)
@pytest.mark.parametrize("kind", ["request", "reply"])
def test_a_guard_that_fails_refuses(kind: str, guard: Any, why: str, caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(["Yes."])
    result = Agent(model, guards=Guards(**{kind: [guard]}, timeout=QUICK)).run_sync("Tea?")
    assert (result.finish, result.text) == ("refused_by_guard", "")
    assert why in str(result.guard_reason)
    assert "secret" not in str(result.guard_reason)
    assert len(model.requests) == (0 if kind == "request" else 1)
    assert f"the {kind} guard" in caplog.text


@pytest.mark.parametrize("kind", ["request", "reply"])
@pytest.mark.parametrize("ends", ["cancelled", "time_budget"])
async def test_a_run_that_is_stopped_does_not_wait_for_a_guard(kind: str, ends: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.1 if ends == "cancelled" else 60, stop.set)
    budget = Budget(seconds=0.2) if ends == "time_budget" else None
    agent = Agent(ScriptedModel(["Yes."]), guards=Guards(**{kind: [hangs]}, timeout=60), budget=budget)
    result = await asyncio.wait_for(agent.run("Tea?", cancel=stop), 30)
    assert (result.finish, result.text) == (ends, "")


# ---------------------------------------------------------------- wrong settings


def one(subject: Any) -> None: ...


def several(subject: Any, run: Any) -> Any:
    yield


class Several:
    def __call__(self, subject: Any, run: Any) -> Any:
        yield


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (
            {"call": [one]},
            r"Guards\(call=…\): .*one.* cannot be called with two arguments: expected `def guard\(call, ",
        ),
        ({"reply": [several]}, r"Guards\(reply=…\): several yields, so calling it does nothing: expected `def guard"),
        ({"call": [Several()]}, r"Guards\(call=…\): Several yields, so calling it does nothing: expected `def guard"),
        ({"request": one}, r"Guards\(request=.*\): expected a list of functions, such as call=\[guard\]"),
        ({"timeout": 0}, r"Guards\(timeout=0\): expected seconds, more than 0"),
        ({"input": []}, "Guards has no argument 'input'; .*request"),
    ],
)
def test_guards_that_can_decide_nothing_are_refused(given: Any, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        Guards(**given)


def test_a_function_alone_is_no_guards() -> None:
    with pytest.raises(ConfigError, match=r"expected Guards, such as Guards\(call=\[function\]\), or None"):
        Agent(ScriptedModel(["Yes."]), guards=[hangs])  # type: ignore[arg-type]
