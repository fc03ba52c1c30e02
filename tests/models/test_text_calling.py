"""Text calling on any model: what the model behind it is asked, and that its own turns come back as it wrote them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import events_of

from agentkit import Agent, formats
from agentkit.errors import ConfigError, FormatError
from agentkit.events import CallEnd, CallError, Finish, Markup, Text, Thinking
from agentkit.formats.format import Envelope
from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    MarkupPart,
    Message,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    user,
)
from agentkit.models import TextCalling, model
from agentkit.models.text import text_messages
from agentkit.testing import Replay, ScriptedModel
from agentkit.toolspec import ToolSpec

ADD = ToolSpec(
    "add",
    "Add two numbers.",
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
)
NOTE = ToolSpec("note", "", {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
TOOLS = [ADD, NOTE]
FORMATS = formats.names()


def add(a: int, b: int) -> int:
    return a + b


def asked(format: str, messages: list[Message], **request: Any) -> list[Message]:
    """What the model behind a text-calling one is asked."""
    inner = ScriptedModel(["ok"])
    events_of(TextCalling(inner, format), messages, tools=TOOLS, **request)
    (sent,) = inner.requests
    assert (sent.tools, sent.tool_choice, sent.parallel_tool_calls) == ((), "auto", None)
    return list(sent.messages)


def text_of(message: Message) -> str:
    assert isinstance(message, UserMessage | AssistantMessage)
    return "".join(p.text for p in message.content if isinstance(p, TextPart))


def test_format_hermes_on_any_model() -> None:
    inner = ScriptedModel(["<tool_call>"])
    spoken = TextCalling(inner, "hermes")
    assert (spoken.name, spoken.format) == ("scripted", "hermes")
    assert events_of(spoken, tools=TOOLS) == [Text("<tool_call>"), Finish("stop", "stop")]


def test_a_format_of_ones_own_needs_no_catalogue() -> None:
    own = replace(formats.get("hermes"), name="mine", call=("<<<", Envelope(), ">>>"), section=None, also=())
    inner = ScriptedModel(['<<<{"name": "add", "arguments": {"a": 1, "b": 2}}>>>', "3"])
    spoken = TextCalling(inner, own)
    assert (spoken.format, repr(spoken)) == (own, f"TextCalling({inner!r}, 'mine')")
    result = Agent(spoken, add).run_sync("1 + 2?")
    assert [call.format for m in result.messages if isinstance(m, AssistantMessage) for call in m.calls] == ["mine"]
    assert [m.text for m in result.messages if isinstance(m, ToolMessage)] == ["3"]
    assert "<<<" in str(inner.requests[0].messages[0])
    assert model("openai:m", base_url="http://localhost:1/v1", format=own).format == own
    scripted = ScriptedModel([ToolCall("", "add", {"a": 1, "b": 2}), "3"], format=own)
    assert len(Agent(scripted, add).run_sync("1 + 2?").new_messages) == 3


def test_a_declaration_from_the_catalogue_is_known_by_its_name() -> None:
    assert TextCalling(ScriptedModel([]), formats.get("hermes")).format == "hermes"


def test_prompt_follows_the_instructions() -> None:
    system, question = asked("hermes", [SystemMessage("Be brief."), user("Hi")])
    assert isinstance(system, SystemMessage)
    assert system.content == "Be brief.\n\n" + formats.render_prompt("hermes", TOOLS)
    assert question == user("Hi")


def test_prompt_without_instructions() -> None:
    assert asked("hermes", [user("Hi")]) == [SystemMessage(formats.render_prompt("hermes", TOOLS)), user("Hi")]


def test_prompt_says_which_tool_must_be_called() -> None:
    system, _ = asked("xml", [user("Hi")], tool_choice="add", parallel_tool_calls=False)
    wanted = formats.render_prompt("xml", TOOLS, tool_choice="add", parallel=False)
    assert system == SystemMessage(wanted)


def test_no_tools_no_prompt() -> None:
    assert asked("xml", [user("Hi")], tool_choice="none") == [user("Hi")]


def test_unknown_tool_choice() -> None:
    with pytest.raises(ConfigError, match="found 'sub'"):
        asked("xml", [user("Hi")], tool_choice="sub")


def test_unknown_format() -> None:
    with pytest.raises(FormatError, match="no format is called 'yaml'"):
        model("openai:gpt-5", api_key="k", format="yaml")


def test_results_come_back_in_the_format_in_one_message() -> None:
    png = ImagePart(data=b"png")
    turn = AssistantMessage((ToolCall("c1", "add"), ToolCall("c2", "note")))
    results = [ToolMessage("c1", "add", (TextPart("3"), png)), ToolMessage("c2", "note", (TextPart("no"),), "timeout")]
    _, _, last = asked("xml", [turn, *results, user("And now?")])
    assert last == UserMessage(
        (
            TextPart(formats.render_result("xml", "add", "c1", "3", None, TOOLS)),
            png,
            TextPart(formats.render_result("xml", "note", "c2", "no", "timeout", TOOLS)),
            TextPart("And now?"),
        )
    )


@pytest.mark.parametrize("format", FORMATS)
def test_native_turn_is_rewritten_in_the_format(format: str) -> None:
    calls = (ToolCall("c1", "add", {"a": 1, "b": 2}), ToolCall("c2", "note", {"text": "hi"}))
    _, turn, _ = asked(format, [AssistantMessage((TextPart("Sure."), *calls))])
    read = [e.call for e in formats.parse(text_of(turn), format, TOOLS) if isinstance(e, CallEnd)]
    assert [(c.name, c.arguments) for c in read] == [("add", {"a": 1, "b": 2}), ("note", {"text": "hi"})]
    assert text_of(turn).startswith("Sure.\n")


def test_turn_of_another_format_is_rewritten_without_its_markup() -> None:
    call = ToolCall("c", "add", {"a": 1, "b": 2}, "invoke", '<invoke name="add">…</invoke>')
    turn = AssistantMessage((MarkupPart("<function_calls>\n"), call, MarkupPart("\n</function_calls>")))
    _, turn_then, _ = asked("hermes", [turn])
    assert text_of(turn_then) == f"\n{formats.render_calls('hermes', [call], TOOLS)}\n"


def test_damaged_native_call_is_shown_as_it_was_written() -> None:
    _, turn, _ = asked("hermes", [AssistantMessage((ToolCall("c", "note", {}, None, '{"text": "a'),))])
    assert '"INVALID_JSON": "{\\"text\\": \\"a"' in text_of(turn)


def test_value_that_the_format_cannot_carry_is_shown_as_json() -> None:
    call = ToolCall("c", "a b<", {"x y": object()})
    _, turn, _ = asked("xml", [AssistantMessage((call,))])
    assert '"name": "a_b_"' in text_of(turn)


def test_native_thinking_stays_a_part() -> None:
    thought = ThinkingPart("Hm.", "anthropic", {"type": "thinking", "thinking": "Hm.", "signature": "S"})
    turn = AssistantMessage((thought, TextPart("Yes")))
    assert text_messages([turn], formats.get("xml"), TOOLS) == [turn]


WRITTEN = {
    "xml": "I add. <add><a>1</a><b>2</b></add>\n\n<note><text>x &amp; y</text></note> Done.",
    "invoke": (
        '<function_calls>\n<invoke name="add">\n<parameter name="a">1</parameter>\n<parameter name="b">2</parameter>\n'
        '</invoke>\n<invoke name="note"><parameter name="text">\n\nhi</parameter></invoke>\n</function_calls>\n'
    ),
    "hermes": '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "add", "arguments": {"a": 1,"b": 2}}\n</tool_call>\n',
}


def turn_of(text: str, format: str) -> AssistantMessage:
    """The message that a text becomes: what the processor makes of the parser's events."""
    parts: list[Any] = []
    for number, event in enumerate(formats.parse(text, format, TOOLS)):
        match event:
            case Text(said):
                parts.append(TextPart(said))
            case Thinking(said):
                parts.append(ThinkingPart(said))
            case Markup(said):
                parts.append(MarkupPart(said))
            case CallEnd(call=call) | CallError(call=call):
                parts.append(ToolCall(f"c{number}", call.name, call.arguments, call.format, call.raw))
    return AssistantMessage(tuple(parts))


@pytest.mark.parametrize("format", WRITTEN)
def test_own_turn_comes_back_character_by_character(format: str) -> None:
    turn = turn_of(WRITTEN[format], format)
    assert turn.calls
    assert text_of(text_messages([turn], formats.get(format), TOOLS)[0]) == WRITTEN[format]


PIECES = ["<add>", "<a>", "1", "</a>", "</add>", '<invoke name="add">', "</invoke>", "<tool_call>", "{", "}", "\n"]


@given(st.sampled_from(FORMATS), st.lists(st.sampled_from([*PIECES, "<think>", "</think>", " x"])).map("".join))
def test_any_turn_comes_back_character_by_character(format: str, text: str) -> None:
    turn = turn_of(text, format)
    rendered = text_messages([turn], formats.get(format), TOOLS)
    set_aside = not any(isinstance(part, TextPart | ToolCall) for part in turn.content)  # nothing to go on from
    assert "".join(text_of(m) for m in rendered if isinstance(m, AssistantMessage)) == ("" if set_aside else text)


ADD_EXAMPLE = "Write the call in exactly this form, with your own values:\n\n<add>\n<a>1</a>\n<b>1</b>\n</add>"


def test_a_call_that_could_not_run_as_written_is_not_sent_again() -> None:
    """Models repeat it when they see it; what they said beside it stays."""
    bad = ToolCall("c1", "add", {}, "xml", "<add>\n<1>\n</add>")
    history = [
        user("What is 1 + 2?"),
        AssistantMessage((TextPart("I add them. "), bad)),
        ToolMessage("c1", "add", (TextPart("<1> is not a parameter of 'add'"),), "invalid_arguments"),
    ]
    assert text_messages(history, formats.get("xml"), TOOLS) == [
        user("What is 1 + 2?"),
        AssistantMessage((TextPart("I add them. "),)),
        user(f"Your call of add failed: <1> is not a parameter of 'add'\n\n{ADD_EXAMPLE}"),
    ]


def test_nor_is_one_that_was_cut_off() -> None:
    """Qwen2.5-Coder-1.5B wrote it again, to the token limit."""
    cut = ToolCall("c1", "add", {}, "xml", "<add>\n<a>1" + "\n" * 300)
    failed = ToolMessage("c1", "add", (TextPart("the text ended inside <a>"),), "truncated_call")
    assert text_messages([user("Go."), AssistantMessage((cut,)), failed], formats.get("xml"), TOOLS) == [
        user("Go.", f"Your call of add failed: the text ended inside <a>\n\n{ADD_EXAMPLE}")
    ]


def test_beside_a_call_that_ran_it_is_sent() -> None:
    calls = (ToolCall("c1", "add", {}, "xml", "<add>\n<1>\n</add>"), ToolCall("c2", "note", {"text": "x"}))
    results = [ToolMessage("c1", "add", (), "invalid_arguments"), ToolMessage("c2", "note", (TextPart("kept"),))]
    rendered = text_messages([user("Go."), AssistantMessage(calls), *results], formats.get("xml"), TOOLS)
    assert "<add>\n<1>\n</add>" in text_of(rendered[1])
    assert 'status="invalid_arguments"' in text_of(rendered[2])


def test_an_error_of_the_tool_itself_is_a_result() -> None:
    call = ToolCall("c1", "add", {"a": 1, "b": 2}, "xml", "<add><a>1</a><b>2</b></add>")
    failed = ToolMessage("c1", "add", (TextPart("too busy"),), "tool_error")
    rendered = text_messages([user("Go."), AssistantMessage((call,)), failed], formats.get("xml"), TOOLS)
    assert text_of(rendered[1]) == call.raw
    assert "too busy" in text_of(rendered[2])


def test_through_a_real_sdk() -> None:
    tape = Replay([{"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"}])
    spoken = TextCalling(tape.model("anthropic:m"), "xml")
    history = [user("Hi"), AssistantMessage((ToolCall("c", "add", {"a": 1, "b": 2}),)), ToolMessage("c", "add", ())]
    events_of(spoken, history, tools=TOOLS)
    (body,) = tape.requests
    assert "tools" not in body
    assert body["system"] == formats.render_prompt("xml", TOOLS)
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][1]["content"][0]["text"] == "\n<add>\n<a>1</a>\n<b>2</b>\n</add>\n"
