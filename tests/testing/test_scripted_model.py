"""The offline models that ship for users' own tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from streams import answer, events_of

from agentkit.checks.bounds import lacking
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import ArgumentDelta, CallEnd, CallStart, Event, Finish, Text, Thinking, Usage
from agentkit.messages import AssistantMessage, TextPart, ThinkingPart, ToolCall, user
from agentkit.models import Model, ModelRequest
from agentkit.testing import Recording, Replay, ScriptedModel
from agentkit.toolspec import ToolSpec

PING = ToolCall("p", "ping")


def chunks(model: ScriptedModel) -> list[Event]:
    """The events of one answer, as they come."""

    async def run() -> list[Event]:
        stream: AsyncIterator[Event] = model.stream(ModelRequest([user("Hi")]))
        return [event async for event in stream]

    return asyncio.run(run())


def test_text() -> None:
    assert events_of(ScriptedModel(["Hello"])) == [Text("Hello"), Finish("stop", "stop")]


def test_text_in_pieces() -> None:
    assert chunks(ScriptedModel(["Hello"], chunk=2)) == [Text("He"), Text("ll"), Text("o"), Finish("stop", "stop")]


def test_call() -> None:
    call = ToolCall("c", "add", {"a": 1}, None, '{"a": 1}')
    assert chunks(ScriptedModel([ToolCall("c", "add", {"a": 1})], chunk=4)) == [
        CallStart(0, "add", "c"),
        ArgumentDelta(0, '{"a"'),
        ArgumentDelta(0, ": 1}"),
        CallEnd(0, call),
        Finish("tool_calls", "tool_calls"),
    ]


def test_calls_are_counted_and_get_ids() -> None:
    model = ScriptedModel([["Two:", ToolCall("", "a"), ToolCall("", "b")], ToolCall("", "c")])
    first, second = events_of(model), events_of(model)
    ends = [(e.index, e.call.id) for e in [*first, *second] if isinstance(e, CallEnd)]
    assert ends == [(0, "call_1"), (1, "call_2"), (0, "call_3")]


def test_turn_of_events() -> None:
    turn = [Thinking("Hm."), Text("Yes"), Usage(1, 2), Finish("length", "length")]
    assert events_of(ScriptedModel([turn])) == turn


def test_single_event_as_a_turn() -> None:
    assert events_of(ScriptedModel([Text("Hi")])) == [Text("Hi"), Finish("stop", "stop")]


def test_message_as_a_turn() -> None:
    message = AssistantMessage((ThinkingPart("Hm."), TextPart("Yes"), PING))
    assert [type(e) for e in events_of(ScriptedModel([message]))] == [
        Thinking,
        Text,
        CallStart,
        ArgumentDelta,
        CallEnd,
        Finish,
    ]


def test_error_in_the_middle_of_a_turn() -> None:
    error = ProviderError("cut", kind="connection", provider="scripted")
    assert answer(ScriptedModel([["Hel", error]])) == ([Text("Hel")], error)


def test_function_as_a_script() -> None:
    model = ScriptedModel(lambda request: f"{len(request.messages)} messages")
    assert events_of(model)[0] == Text("1 messages")


def test_async_function_as_a_script() -> None:
    async def script(request: ModelRequest) -> str:
        return "later"

    assert events_of(ScriptedModel(script))[0] == Text("later")


def test_calls_written_in_a_format() -> None:
    add = ToolSpec("add", "", {"type": "object", "properties": {"a": {"type": "integer"}}})
    model = ScriptedModel([["Sure. ", ToolCall("", "add", {"a": 1})]], format="hermes")
    assert events_of(model, tools=[add])[0] == Text(
        'Sure. <tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    )


def test_it_remembers_what_it_was_asked() -> None:
    model = ScriptedModel(["a", "b"])
    messages = [user("Hi")]
    events_of(model, messages, temperature=0.5)
    messages.append(user("More"))
    assert [(r.messages, r.temperature) for r in model.requests] == [((user("Hi"),), 0.5)]


def test_script_used_up() -> None:
    with pytest.raises(ConfigError, match=r"has 0 turns, but this is request 1: add a turn .* 'Hi'"):
        events_of(ScriptedModel([]))


def test_script_not_used_up() -> None:
    with (
        pytest.raises(AssertionError, match="1 of 2 turns were never requested; the next one is 'b'"),
        ScriptedModel(["a", "b"]) as model,
    ):
        events_of(model)


def test_it_is_a_model() -> None:
    assert lacking(ScriptedModel([]), Model) == ()
    assert lacking(Replay([]).model("openai:m"), Model) == ()


def test_bad_chunk() -> None:
    with pytest.raises(ConfigError, match=r"chunk=0\): expected an integer \(1 characters or more\)"):
        ScriptedModel(["a"], chunk=0)


# ---------------------------------------------------------------- replay

HELLO = 'data: {"choices": [{"index": 0, "delta": {"content": "é"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize("chunks", ["whole", "lines", 1, lambda body: [body[:60], body[60:]]])
def test_replay_cuts_as_told(chunks: object) -> None:
    tape = Replay([HELLO], chunks=chunks)  # type: ignore[arg-type]
    assert events_of(tape.model("openai:m")) == [Text("é"), Finish("stop", "stop")]
    assert tape.requests[0]["messages"] == [{"role": "user", "content": "Hi"}]
    tape.assert_finished()


def test_replay_of_status_and_cut() -> None:
    tape = Replay([Recording({"error": {"message": "No."}}, 404), Recording(HELLO, cut=10)])
    model = tape.model("openai:m")
    kinds = [error.kind for _, error in (answer(model), answer(model)) if error]
    assert kinds == ["not_found", "connection"]


def test_replay_used_up() -> None:
    with pytest.raises(ConfigError, match="has 0 recordings, but this is request 1"):
        events_of(Replay([]).model("openai:m"))


def test_replay_not_used_up() -> None:
    with pytest.raises(AssertionError, match="1 of 1 recordings were never requested"):
        Replay([HELLO]).assert_finished()
