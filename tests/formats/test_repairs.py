"""Repairs of calls that cannot be read as written, each with its name; and the cost of damage in a tag."""

from __future__ import annotations

from typing import Any

from format_tools import ADD, ASK, CREATE_FILE, NOTE, PING, spec

from agentkit.events import CallEnd, CallError, Event, SourceEvent, Text, merge
from agentkit.formats import Parser, ToolSpec

WEATHER = spec("weather", None, ("city", "state"), city="string", state="string", unit="string", days="integer")
BASH = spec("bash", None, ("command",), command="string", timeout="integer")
TODO = spec("todo", None, ("items",), items="array")
TOOLS = (WEATHER, BASH, TODO, NOTE, CREATE_FILE, ASK, ADD, PING)


def read(format: str, text: str, tools: tuple[ToolSpec, ...] = TOOLS, **how: Any) -> list[Event]:
    """The events of a text, the same whole and by the character."""
    found = []
    for size in (len(text), 1):
        parser = Parser(format, tools, **how)
        events: list[SourceEvent] = []
        for i in range(0, len(text), size):
            events += parser.feed(text[i : i + size])
        found.append(merge([*events, *parser.close()]))
    assert found[0] == found[1]
    return found[0]


def call(format: str, text: str, **how: Any) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """The only call of a text, and what was mended in it."""
    (end,) = (e for e in read(format, text, **how) if isinstance(e, CallEnd))
    return end.call.name, dict(end.call.arguments), end.repairs


def codes(format: str, text: str, **how: Any) -> list[str]:
    """Return the outcome of each call: its name, or the code of its error."""
    return [
        e.call.name if isinstance(e, CallEnd) else e.code
        for e in read(format, text, **how)
        if isinstance(e, CallEnd | CallError)
    ]


# ---------------------------------------------------------------- Python calls


def test_quotes_inside_a_string_are_damage_where_that_is_not_to_be_mended() -> None:
    assert codes("pythonic", "[bash(command='echo 'done' && ls')]", repairs=()) == ["invalid_json"]


def test_parentheses_around_one_value_are_no_list() -> None:
    assert call("pythonic", '[weather(city=("Paris"), state="F", days=(2*3))]')[1] == {
        "city": "Paris",
        "state": "F",
        "days": 6,
    }
    assert call("pythonic", "[todo(items=(1,))]")[1] == {"items": [1]}


# ---------------------------------------------------------------- parameters between tags


def test_json_escaped_once_more_is_read_where_a_list_is_wanted() -> None:
    value = r"[{\"id\": 1, \"a\": \"x\\ny\"}]"
    text = f"<tool_call>todo<arg_key>items</arg_key><arg_value>{value}</arg_value></tool_call>"
    assert call("glm45", text)[1] == {"items": [{"id": 1, "a": "x\ny"}]}


def test_newlines_between_keys_and_values_may_come_as_their_escape() -> None:
    text = (
        "<tool_call>weather\\n<arg_key>city</arg_key>\\n<arg_value>Paris</arg_value>\\n"
        "<arg_key>state</arg_key>\\n<arg_value>F\\n</arg_value>\\n</tool_call>"
    )
    assert call("glm45", text)[1] == {"city": "Paris", "state": "F\\n"}


def test_an_undeclared_parameter_is_the_text_that_is_written() -> None:
    text = "<function=ping>\n<parameter=mode>\n0644\n</parameter>\n<parameter=x>\nnull\n</parameter>\n</function>"
    assert call("qwen3_coder", text)[1] == {"mode": "0644", "x": "null"}


def test_json_in_an_attribute_is_text_where_the_schema_knows_only_a_string() -> None:
    text = (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="note">\n'
        '<｜DSML｜parameter name="text" string="false">null</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    )
    assert call("deepseek_v32", text)[1] == {"text": "null"}


def test_a_newline_at_the_start_belongs_to_a_verbatim_value() -> None:
    text = "<tool_call><function=note><parameter=text>\nx\n</parameter></function></tool_call>"
    assert call("mimo", text)[1] == {"text": "\nx\n"}
    assert call("qwen3_coder", text)[1] == {"text": "x"}


def test_names_in_an_attribute_are_decoded() -> None:
    tool = spec("a&b", None, (), **{'k"': "string"})
    text = (
        '<|open|>tools<|sep|><|open|>call tool="a&amp;b" index="1"<|sep|><|open|>argument key="k&quot;" type="string"'
        "<|sep|>&quot;<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
    )
    (end,) = (e for e in read("kimi_k3", text, (tool,)) if isinstance(e, CallEnd))
    assert (end.call.name, end.call.arguments) == ("a&b", {'k"': "&quot;"})


# ---------------------------------------------------------------- JSON bodies that nothing closes


def test_a_damaged_body_is_mended_where_the_next_call_closes_it() -> None:
    python = "<tool_call>\n{'name': 'note', 'arguments': {'text': 'a'}}\n"
    text = f'{python}<tool_call>\n{{"name": "note", "arguments": {{"text": "b"}}}}\n</tool_call>'
    assert codes("hermes", text) == ["note", "note"]


def test_a_damaged_body_is_mended_in_a_format_that_closes_none() -> None:
    text = "<function_call> {'name': 'note', 'arguments': {'text': 'a'}} and more"
    end, rest = (e for e in read("granite-20b-fc", text) if isinstance(e, CallEnd | Text))
    assert isinstance(end, CallEnd)
    assert (end.call.arguments, end.repairs, rest) == ({"text": "a"}, ("python_quotes",), Text(" and more"))


def test_what_is_damaged_and_not_closed_at_the_end_was_cut_off() -> None:
    assert codes("hermes", "<tool_call>\n{'name': 'note', 'arguments': {'text': 'a'}}") == ["invalid_json"]


def test_calls_whose_opening_was_forgotten_are_read_one_after_the_other() -> None:
    one = '{"name": "note", "arguments": {"text": "a"}}\n</tool_call>'
    assert codes("hermes", f"<tool_call>\n{one}\n{one}\n{one}") == ["note"] * 3


# ---------------------------------------------------------------- damage inside an element's own tag


def test_a_call_that_is_cut_off_says_that_it_must_be_written_again() -> None:
    (error,) = (e for e in read("hermes", '<tool_call>{"name": "note", "argu') if isinstance(e, CallError))
    assert (error.code, error.message) == (
        "truncated_call",
        "the text ended inside the JSON at position 33; write the whole call again",
    )


def test_the_last_value_of_a_call_that_another_parameter_of_other_case_ends_is_not_taken_for_its_own() -> None:
    text = '<invoke name="bash"><parameter name="command">ls</par\n<PARAMETER NAME="TIMEOUT">5</parameter></invoke>'
    assert codes("invoke", f"<function_calls>{text}</function_calls>") == ["ambiguous_call"]
