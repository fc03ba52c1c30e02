"""A final reply of a type under a grammar: one JSON value, or calls; no free text."""

from __future__ import annotations

import json

import pytest
from engines import Guidance, accepts
from format_tools import NOTE
from grammar_texts import WITH

from agentkit.errors import FormatError
from agentkit.events import CallStart
from agentkit.formats import Format, parse, render_calls
from agentkit.grammar import grammar
from agentkit.messages import ToolCall
from agentkit.toolspec import OutputSchema

every_format = pytest.mark.parametrize("format", WITH, ids=lambda f: f.name)
CITY = OutputSchema(
    "City",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "kind": {"enum": ["<town>", "port"]}, "size": {"type": "integer"}},
        "required": ["city"],
    },
)
ROME = '{"city": "Rome", "kind": "port", "size": 3}'


@every_format
def test_a_reply_is_calls_or_the_value(format: Format) -> None:
    found = Guidance(grammar(format, [NOTE], target="gbnf", output=CITY))
    call = render_calls(format, [ToolCall("", "note", {"text": "Rome"})], [NOTE])
    texts = {ROME: True, '{"city":"Rome"}': True, call: True, f"\n{ROME}": True}
    texts |= {"Rome": False, f"It is {ROME}": False, f"{call} Done": False, '{"size": 3}': False, "{}": False}
    assert {text: accepts(found, text) for text in texts} == texts


@every_format
def test_without_tools_it_is_the_value_alone(format: Format) -> None:
    for found in (
        Guidance(grammar(format, [], target="gbnf", output=CITY)),
        Guidance(grammar(format, [NOTE], target="gbnf", output=CITY, tool_choice="none")),
    ):
        assert accepts(found, ROME)
        assert not accepts(found, render_calls(format, [ToolCall("", "note", {"text": "Rome"})], [NOTE]))
        assert not accepts(found, "Rome")


@every_format
def test_a_forced_call_comes_before_the_value(format: Format) -> None:
    found = Guidance(grammar(format, [NOTE], target="gbnf", output=CITY, tool_choice="required"))
    assert accepts(found, render_calls(format, [ToolCall("", "note", {"text": "Rome"})], [NOTE]))
    assert not accepts(found, ROME)


@every_format
def test_a_call_in_a_string_of_the_value_is_none(format: Format) -> None:
    found = Guidance(grammar(format, [NOTE], target="gbnf", output=CITY))
    call = render_calls(format, [ToolCall("", "note", {"text": "Rome"})], [NOTE])
    text = json.dumps({"city": call}, ensure_ascii=False)
    if any(isinstance(event, CallStart) for event in parse(text, format, [NOTE])):
        assert not accepts(found, text)


def test_a_mark_of_calls_is_escaped_in_strings() -> None:
    found = Guidance(grammar("hermes", [NOTE], target="gbnf", output=CITY))
    assert accepts(found, r'{"city": "a \u003c b", "kind": "\u003ctown>"}')
    assert not accepts(found, '{"city": "a < b"}')


def test_a_server_gets_it_as_a_part_of_the_tag() -> None:
    tag = grammar("hermes", [], output=CITY, thinking="no_thinking")
    assert tag["format"]["type"] == "grammar"


def test_an_output_without_a_value_is_refused() -> None:
    never = OutputSchema("Never", {"type": "object", "properties": {"a": False}, "required": ["a"]})
    with pytest.raises(FormatError, match="no reply can be written: output type Never: a: the schema allows no value"):
        grammar("hermes", [], output=never)
