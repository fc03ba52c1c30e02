"""The sixteen contradictions of the two big parsers, each with the one right answer, whole and character by character.

What they do there is told in `formats.md` of the reference: they lose calls, text or arguments, send broken JSON, or
call a tool that nobody named, and which of it depends on how the text was cut.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from format_tools import spec

from agentkit.events import ArgumentDelta, CallEnd, CallError, CallStart, Event, Markup, SourceEvent, Text, merge
from agentkit.formats import Parser

TOOLS = (
    spec("write_file", None, ("path",), path="string", content="string"),
    spec("get_time", None, (), tz="string"),
    spec("add", None, (), a="integer", b="integer"),
    spec("find", None, (), filter={"type": "object"}, query="string"),
)


class End(NamedTuple):
    """A call that was read, without the source text that conservation checks."""

    name: str
    arguments: dict[str, Any]
    repairs: tuple[str, ...] = ()


class Error(NamedTuple):
    """A call that could not be read."""

    name: str
    code: str
    message: str


def fed(format: str, text: str, size: int) -> list[Event]:
    parser = Parser(format, TOOLS)
    events: list[SourceEvent] = []
    for i in range(0, len(text), size):
        events += parser.feed(text[i : i + size])
    return merge([*events, *parser.close()])


NOT_RUN = "not run: a call before it in this reply cannot be read; write that one and this one again"


def read(format: str, text: str) -> list[object]:
    """Texts, markup and answers, the same whole and by the character; calls shortened to what they ask for."""
    events = fed(format, text, len(text))
    assert fed(format, text, 1) == events
    return [_short(e) for e in events if not isinstance(e, CallStart | ArgumentDelta)]


def _short(event: Event) -> object:
    match event:
        case CallEnd(_, call, repairs):
            return End(call.name, dict(call.arguments), repairs)
        case CallError(_, code, message, call):
            return Error(call.name, code, message)
    return event


def test_1_a_closing_tag_inside_a_json_string_is_content() -> None:
    text = (
        '<tool_call>\n{"name": "write_file", "arguments": {"path": "a", "content": "x </tool_call> y"}}\n</tool_call>'
    )
    assert read("hermes", text) == [End("write_file", {"path": "a", "content": "x </tool_call> y"})]


def test_2_the_name_may_follow_arguments_that_hold_a_name() -> None:
    text = '<tool_call>{"arguments": {"path": "a", "name": "bob"}, "name": "write_file"}</tool_call>'
    assert read("hermes", text) == [End("write_file", {"path": "a", "name": "bob"})]


def test_3_keys_behind_the_arguments_are_no_arguments() -> None:
    text = '<tool_call>{"name": "get_time", "arguments": {"tz": "UTC"}, "id": "x1"}</tool_call>'
    assert read("hermes", text) == [End("get_time", {"tz": "UTC"})]


def test_4_a_call_without_arguments_is_a_call_without_arguments() -> None:
    text = '<tool_call>{"name": "get_time"}</tool_call>'
    assert read("hermes", text) == [End("get_time", {})]


def test_5_a_raw_newline_and_a_trailing_comma_are_repaired_and_reported() -> None:
    text = (
        '<tool_call>{"name": "write_file", "arguments": {"path": "a\n'
        'b",}}</tool_call>\n'
        '<tool_call>{"name": "get_time", "arguments": {}}</tool_call>'
    )
    assert read("hermes", text) == [
        End("write_file", {"path": "a\nb"}, ("raw_newlines", "trailing_comma")),
        Markup("\n"),
        End("get_time", {}),
    ]


def test_5_damage_costs_one_call_and_what_follows_is_answered_and_does_not_run() -> None:
    text = (
        '<tool_call>{"name": "write_file", "arguments": {"path" "a"}}</tool_call>\n'
        '<tool_call>{"name": "get_time", "arguments": {}}</tool_call>'
    )
    assert read("hermes", text) == [
        Error("write_file", "invalid_json", "expected ':', got '\"a\"}}</tool_call>' at position 55"),
        Markup("\n"),
        Error("get_time", "skipped", NOT_RUN),
    ]


def test_6_text_before_between_and_after_calls_stays() -> None:
    text = (
        'one <tool_call>{"name": "get_time", "arguments": {}}</tool_call> two <tool_call>{"name": '
        '"get_time", "arguments": {}}</tool_call> three'
    )
    assert read("hermes", text) == [
        Text("one "),
        End("get_time", {}),
        Text(" two "),
        End("get_time", {}),
        Text(" three"),
    ]


def test_7_prose_that_mentions_the_tag_is_prose() -> None:
    text = "I write <tool_call> to call a tool, and then go on."
    assert read("hermes", text) == [Text("I write <tool_call> to call a tool, and then go on.")]


def test_7_prose_that_mentions_the_tag_is_prose_for_parameters_too() -> None:
    text = "I write <tool_call> to call a tool, and then go on."
    assert read("qwen3_coder", text) == [Text("I write <tool_call> to call a tool, and then go on.")]


def test_8_tags_of_the_calls_own_kind_inside_a_value_refuse_it_and_it_is_told_how_to_write_them() -> None:
    text = (
        "<tool_call>\n"
        "<function=write_file>\n"
        "<parameter=content>\n"
        "see </function> and <function=foo> and </parameter> here\n"
        "</parameter>\n"
        "</function>\n"
        "</tool_call>"
    )
    error = next(e for e in read("qwen3_coder", text) if isinstance(e, Error))
    assert (error.name, error.code) == ("write_file", "ambiguous_call")
    assert "put text that contains such markup in <![CDATA[ … ]]>" in error.message


def test_9_a_call_cut_off_in_a_value_is_an_error_with_what_was_read() -> None:
    text = "<tool_call>\n<function=write_file>\n<parameter=content>\nabc def"
    assert read("qwen3_coder", text) == [
        Markup("<tool_call>\n"),
        Error(
            "write_file",
            "truncated_call",
            "the text ended inside 'content', before </parameter> at position 61; write the whole call again",
        ),
    ]


def test_9_text_behind_a_call_stays() -> None:
    text = "<tool_call>\n<function=get_time>\n</function>\n</tool_call>\nDone."
    assert read("qwen3_coder", text) == [
        Markup("<tool_call>\n"),
        End("get_time", {}),
        Markup("\n</tool_call>"),
        Text("\nDone."),
    ]


def test_10_the_closing_tag_of_the_call_inside_a_value_refuses_it() -> None:
    text = "<tool_call>write_file\n<arg_key>content</arg_key>\n<arg_value>a </tool_call> b</arg_value>\n</tool_call>"
    codes = [e.code for e in read("glm45", text) if isinstance(e, Error)]
    assert codes == ["ambiguous_call"]


def test_10_the_closing_tag_of_the_invoke_inside_a_value_refuses_it() -> None:
    text = (
        "<minimax:tool_call>\n"
        '<invoke name="write_file">\n'
        '<parameter name="content">a </invoke> b</parameter>\n'
        "</invoke>\n"
        "</minimax:tool_call>"
    )
    codes = [e.code for e in read("minimax_m2", text) if isinstance(e, Error)]
    assert codes == ["ambiguous_call"]


def test_10_a_call_of_an_unknown_tool_is_a_call_and_its_neighbours_stay() -> None:
    text = "Hi <tool_call>nope\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call> bye"
    assert read("glm45", text) == [
        Text("Hi "),
        End("nope", {"a": "1"}),
        Text(" bye"),
    ]


def test_11_text_may_stand_before_json_and_arguments_may_be_empty() -> None:
    text = 'I will look. {"name": "get_time", "parameters": {"tz": "UTC"}}; {"name": "get_time", "parameters": {}}'
    assert read("llama3_json", text) == [
        Text("I will look. "),
        End("get_time", {"tz": "UTC"}),
        Markup("; "),
        End("get_time", {}),
    ]


def test_11_an_answer_in_json_is_text() -> None:
    text = '{"answer": 42}'
    assert read("llama3_json", text) == [Text('{"answer": 42}')]


def test_12_two_fenced_calls_in_any_cutting() -> None:
    text = (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n"
        "```json\n"
        '{"a": 3}\n'
        "```<｜tool▁call▁end｜>\n"
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n"
        "```json\n"
        '{"b": 4}\n'
        "```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    )
    assert read("deepseek_v3", text) == [
        Markup("<｜tool▁calls▁begin｜>"),
        End("add", {"a": 3}),
        Markup("\n"),
        End("add", {"b": 4}),
        Markup("<｜tool▁calls▁end｜>"),
    ]


def test_12_two_calls_behind_tokens_in_any_cutting() -> None:
    text = (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{"a": 3}<｜tool▁call▁end｜><｜tool▁call▁begin｜>'
        'add<｜tool▁sep｜>{"b": 4}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    )
    assert read("deepseek_v31", text) == [
        Markup("<｜tool▁calls▁begin｜>"),
        End("add", {"a": 3}),
        End("add", {"b": 4}),
        Markup("<｜tool▁calls▁end｜>"),
    ]


def test_13_positional_arguments_take_the_names_of_the_parameters() -> None:
    text = 'Sure: [get_time("UTC")]'
    assert read("pythonic", text) == [
        Text("Sure: "),
        Markup("["),
        End("get_time", {"tz": "UTC"}),
        Markup("]"),
    ]


def test_13_text_may_stand_before_the_list() -> None:
    text = 'Sure: [get_time(tz="UTC")]'
    assert read("pythonic", text) == [
        Text("Sure: "),
        Markup("["),
        End("get_time", {"tz": "UTC"}),
        Markup("]"),
    ]


def test_14_two_parameters_of_functiongemma() -> None:
    text = "<start_function_call>call:add{a:<escape>1<escape>,b:<escape>2<escape>}<end_function_call>"
    assert read("functiongemma", text) == [End("add", {"a": 1, "b": 2})]


def test_14_two_calls_of_xlam() -> None:
    text = '[{"name": "add", "arguments": {"a": 1}}, {"name": "add", "arguments": {"b": 2}}]'
    assert read("xlam", text) == [
        Markup("["),
        End("add", {"a": 1}),
        Markup(", "),
        End("add", {"b": 2}),
        Markup("]"),
    ]


def test_14_jamba_by_the_character() -> None:
    text = '<tool_calls>[\n{"name": "add", "arguments": {"a": 1}}\n]</tool_calls>'
    assert read("jamba", text) == [
        Markup("<tool_calls>[\n"),
        End("add", {"a": 1}),
        Markup("\n]</tool_calls>"),
    ]


def test_14_an_argument_that_wraps_the_arguments_is_unwrapped_and_reported() -> None:
    text = (
        "<｜DSML｜function_calls>\n"
        '<｜DSML｜invoke name="add">\n'
        '<｜DSML｜parameter name="input" string="false">{"a": 1, "b": 2}</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n"
        "</｜DSML｜function_calls>"
    )
    assert read("deepseek_v32", text) == [
        Markup("<｜DSML｜function_calls>\n"),
        End("add", {"a": 1, "b": 2}, ("wrapped_arguments",)),
        Markup("\n</｜DSML｜function_calls>"),
    ]


def test_15_phi4_mini_streams_its_call() -> None:
    text = 'functools[{"name": "add", "arguments": {"a": 1, "b": 2}}]'
    assert read("phi4_mini_json", text) == [
        Markup("functools["),
        End("add", {"a": 1, "b": 2}),
        Markup("]"),
    ]


def test_15_a_name_inside_the_arguments_is_no_call() -> None:
    text = (
        '<tool_calls>[{"name": "find", "arguments": {"filter": {"name": "John Doe", "arguments": {"y": '
        "1}}}}]</tool_calls>"
    )
    assert read("hunyuan_a13b", text) == [
        Markup("<tool_calls>["),
        End("find", {"filter": {"name": "John Doe", "arguments": {"y": 1}}}),
        Markup("]</tool_calls>"),
    ]


def test_16_entities_in_values_stay_and_python_objects_are_objects() -> None:
    text = (
        "<tool_call>\n"
        "<function=find>\n"
        "<parameter=query>\n"
        "a &lt; b\n"
        "</parameter>\n"
        "<parameter=filter>\n"
        "{'site': 'x', 'recent': True, 'n': None}\n"
        "</parameter>\n"
        "</function>\n"
        "</tool_call>"
    )
    assert read("qwen3_coder", text) == [
        Markup("<tool_call>\n"),
        End("find", {"query": "a &lt; b", "filter": {"site": "x", "recent": True, "n": None}}),
        Markup("\n</tool_call>"),
    ]
