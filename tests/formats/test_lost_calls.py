"""No call is lost without an error where the text plainly writes one; and what only speaks of calls stays text.

A text writes a call plainly where the call's own opening stands, which nothing but calls has, and its tool's name
behind it. The fuzz (`judging.py`) counts those that become text in damaged texts.
"""

from __future__ import annotations

import pytest
from format_tools import ADD, ASK, NOTE, PING

from agentkit.events import CallEnd, CallError, CallStart, Event, Markup, Text, merge
from agentkit.formats import CATALOG, Format, Parser
from agentkit.formats.edges import weak
from agentkit.formats.format import Envelope, KeyEnvelope

TOOLS = (PING, NOTE, ADD, ASK)


def read(format: str | Format, text: str, size: int) -> list[Event]:
    parser = Parser(format, TOOLS)
    events = [event for i in range(0, len(text), size) for event in parser.feed(text[i : i + size])]
    return merge([*events, *parser.close()])


UNREADABLE: list[tuple[str, str, str]] = [
    ("pythonic", "The calls:\n\n[sums(a=1, b=2),\n add(a=1, b=2)]", "invalid_json"),
    ("pythonic", "[ping(), ", "truncated_call"),
    ("xlam", '[{"name": "add", "arguments"', "truncated_call"),
    ("mistral_compact", "[TOOL_CALLS]ping<cwd>/tmp</cwd>{}", "invalid_json"),
    ("mistral_compact", '[TOOL_CALLS]"ping"[ARGS]{}', "invalid_json"),
    ("mistral_compact", "[TOOL_CALLS]ping[CALL_ID]call2S]{} x", "invalid_json"),
    ("mistral_compact", "[TOOL_CALLS]ping[CALL_ID]call2", "truncated_call"),
    ("functiongemma", "<start_function_call>call:ping<cwd>/tmp</cwd>{}<end_function_call>", "invalid_json"),
    ("k2_horizon", "<ifm|tool_call>ping,</ifm|tool_call>", "invalid_json"),
    ("kimi_k2", "<|tool_call_begin|>functions.ping ping:0<|tool_call_argument_begin|>{}", "invalid_json"),
    ("hermes", '<tool_call>\n"{"name": "ping", "arguments": {}}\n</tool_call>', "invalid_json"),
    ("mistral", '[TOOL_CALLS]<cwd>x</cwd>{"name": "add add", "arguments": {"a": 1}}', "invalid_json"),
    ("deepseek_v31", "<｜tool▁call▁begin｜>ping<｜tool▁s", "truncated_call"),
    ("glm45", "Sure.\n<tool_call>ping", "truncated_call"),
    ("olmo3", '<function_calls>\n"ping"()\n</function_calls>', "invalid_json"),
    ("llama4_pythonic", '<|python_start|>[{"name": "ping", "input": {}}]<|python_end|>', "invalid_json"),
    ("invoke", '<invoke naAe="ping"></invoke>', "invalid_json"),
    ("llama4_pythonic", "<|python_start|>[ask\"text='x')]<|python_end|>", "invalid_json"),
    ("solar_open", "<|tool_call:begin|>c1<|tool_call:name|>ping ping<|tool_call:args|>{}", "invalid_json"),
    ("xml", '<add a, b="2"/>', "invalid_json"),
    ("legacy", "Sure.\n<note tex", "truncated_call"),
]


@pytest.mark.parametrize(("format", "text", "code"), UNREADABLE)
def test_what_names_a_tool_behind_its_opening_and_cannot_be_read_is_an_error(format: str, text: str, code: str) -> None:
    for size in (len(text), 1):
        events = read(format, text, size)
        assert [e.code for e in events if isinstance(e, CallError)] == [code]
        assert not any(isinstance(e, CallEnd) for e in events)


@pytest.mark.parametrize(("format", "text"), [(format, text) for format, text, _ in UNREADABLE])
def test_where_such_a_text_is_cut_in_two_makes_no_difference(format: str, text: str) -> None:
    whole = read(format, text, len(text))
    for at in range(1, len(text)):
        parser = Parser(format, TOOLS)
        assert merge([*parser.feed(text[:at]), *parser.feed(text[at:]), *parser.close()]) == whole, text[:at]


def test_a_call_whose_id_cannot_be_read_is_told_once_and_what_is_before_it_stays_as_it_is() -> None:
    text = "[TOOL_CALLS]ping[CALL_ID]call1[ARGS]{}\n[TOOL_CALLS]ping[CALL_ID]call2S]{}"
    for size in (len(text), 1):
        begun, _, first, between, again, error = read("mistral_compact", text, size)
        assert isinstance(first, CallEnd)
        assert isinstance(error, CallError)
        assert (between, first.call.raw + "\n" + error.call.raw) == (Markup("\n"), text)
        assert [begun, again] == [CallStart(0, "ping"), CallStart(1, "ping")]


TAGS = ("The tag <add <b>two</b> numbers", "A <note <i>x</i> y> tag.", "<ask <b>me</b>", "(<add</b>) ping).")
"""Text that only mentions a tool's tag: other tags in it come before no attribute."""


@pytest.mark.parametrize("text", TAGS)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_tag_of_which_prose_speaks_is_text(text: str, size: int) -> None:
    assert not any(isinstance(e, CallEnd | CallError) for e in read("xml", text, size))


def test_a_value_that_begins_like_the_rest_of_a_tag_is_content_where_it_is_marked_as_such_or_does_not_end() -> None:
    texts = (
        '<call_tool name="note">name="a" b > 2</call_tool>',
        '<call_tool name="note"><![CDATA[ name="a">]]></call_tool>',
    )
    read_ = [e.call.arguments for text in texts for e in read("dr_tulu", text, 3) if isinstance(e, CallEnd)]
    assert read_ == [{"text": 'name="a" b > 2'}, {"text": ' name="a">'}]


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_internlm_calls_without_the_word_for_a_plugin_are_read(size: int) -> None:
    text = '<|action_start|>{"name": "ping", "parameters": {}}<|action_end|>'
    assert [e.call.name for e in read("internlm", text, size) if isinstance(e, CallEnd)] == ["ping"]


PROSE_WITH_A_BRACKET = (
    "From a[0 on: ", "x[i ", "The interval [0, 1): ", "[[1, 2 and ", "[see ", "[</b>", '["a ', "See [this\n",
)  # fmt: skip


@pytest.mark.parametrize(
    ("format", "calls"),
    [
        ("pythonic", "[note(text='x'), ping()]"),
        ("llama4_pythonic", "<|python_start|>[note(text='x'), ping()]<|python_end|>"),
        ("llama4_pythonic", "[note(text='x'), ping()]"),
    ],
)
@pytest.mark.parametrize("prose", PROSE_WITH_A_BRACKET)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_bracket_in_prose_is_no_list_of_calls_that_begins_with_damage(
    format: str, calls: str, prose: str, size: int
) -> None:
    """The list behind it has a bracket of its own."""
    events = read(format, prose + calls, size)
    assert "".join(e.text for e in events if isinstance(e, Text)) == prose
    assert [e.call.name for e in events if isinstance(e, CallEnd | CallError)] == ["note", "ping"]
    assert not any(isinstance(e, CallError) for e in events)


LISTS = [f for f in CATALOG if f.section is not None and isinstance(f.call[0], Envelope | KeyEnvelope)]
LISTS = [f for f in LISTS if not weak(f.section.open)]  # type: ignore[union-attr]


def test_a_parameter_after_the_end_of_a_call_refuses_it_in_every_cutting() -> None:
    note = '<invoke name="note">\n<parameter name="text">a</parameter>\n</invoke>'
    text = f'<function_calls>\n{note}\n<parameter name="text">b</parameter>\n</invoke>\n</function_calls>'
    whole = read("invoke", text, len(text))
    assert [e.code for e in whole if isinstance(e, CallError)] == ["ambiguous_call"]
    for at in range(1, len(text)):
        parser = Parser("invoke", TOOLS)
        assert merge([*parser.feed(text[:at]), *parser.feed(text[at:]), *parser.close()]) == whole, text[:at]
