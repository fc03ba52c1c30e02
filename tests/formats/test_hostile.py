"""Texts meant to hurt a parser: bombs, depth, floods of openers, calls hidden where none counts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from corpora import calls_of, source
from format_tools import NOTE, TOOLS
from growth import assert_linear, reading_seconds

from agentkit import formats
from agentkit.events import CallError, merge
from agentkit.formats import CATALOG, Format, Limits, Parser
from agentkit.messages import ToolCall

every_format = pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
QUOTED = {
    "hermes": '<tool_call>{"name": "ping", "arguments": {}}</tool_call>',
    "invoke": '<invoke name="ping"></invoke>',
    "qwen3_coder": "<tool_call><function=ping></function></tool_call>",
    "xml": "<ping/>",
}
BY_PARAMETER, BY_JSON, BY_PYTHON, BY_BRACES = "invoke", "hermes", "pythonic", "gemma4"


def note(format: Format | str, text: str = "x") -> str:
    return formats.render_calls(format, [ToolCall("", NOTE.name, {"text": text})], TOOLS)


def read(format: str, text: str, **how: Any) -> list[tuple[str, dict[str, Any]]]:
    return calls_of(formats.parse(text, format, TOOLS, **how))


def error(format: str, text: str) -> str:
    """The code of the only error, where nothing is called."""
    events = formats.parse(text, format, TOOLS)
    assert source(events) == text
    assert calls_of(events) == []
    (found,) = (e for e in events if isinstance(e, CallError))
    return found.code


def json_call(arguments: str) -> str:
    return f'<tool_call>{{"name": "anything", "arguments": {arguments}}}</tool_call>'


# ---------------------------------------------------------------- 1-5: calls that no model made, or did not mean


def test_quoted_calls_are_made_where_that_is_asked_for() -> None:
    assert read("hermes", f"Say `{QUOTED['hermes']}`.", in_code="execute") == [("ping", {})]


# ---------------------------------------------------------------- 8: XML


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE a [<!ENTITY b "bbb"><!ENTITY c "&b;&b;&b;">]>&c;',
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>&x;',
        '<?xml-stylesheet href="http://evil/"?><xi:include href="file:///etc/passwd"/>',
        "if (a && b < c) { x = a <b> c; }",
        "\x00\x01\u202e\ufeff",
        "<ask>" * 50,
        "]]>",
    ],
)
@pytest.mark.parametrize("format", ["xml", "invoke", "qwen3_coder", "glm45", "minimax_m2"])
def test_nothing_in_a_value_is_expanded_loaded_or_dropped(format: str, text: str) -> None:
    assert read(format, note(format, text)) == [("note", {"text": text})]


def test_entities_in_attributes_are_characters_or_stay() -> None:
    text = '<create-file file_path="&xxe;&#x41;&#0;&#xD800;&#1114112;&quot;">x</create-file>'
    assert read("xml", text) == [("create_file", {"file_path": '&xxe;A\ufffd\ufffd\ufffd"', "file_contents": "x"})]


@pytest.mark.parametrize(
    ("format", "text", "code"),
    [
        ("xml", '<create-file file_path="a" file_path="b">x</create-file>', "invalid_arguments"),
        (
            BY_PARAMETER,
            '<invoke name="note"><parameter name="text">1</parameter><parameter name="text">2</parameter></invoke>',
            "ambiguous_call",
        ),
        (BY_PYTHON, '[note(text="1", text="2")]', "ambiguous_call"),
        (BY_JSON, '<tool_call>{"name": "note", "arguments": {"text": "1", "text": "2"}}</tool_call>', "ambiguous_call"),
        (BY_JSON, '<tool_call>{"name": "note", "name": "ask", "arguments": {}}</tool_call>', "ambiguous_call"),
        (BY_JSON, '<tool_call>{"name": "f", "arguments": {}, "arguments": {"a": 1}}</tool_call>', "ambiguous_call"),
        (BY_JSON, "<tool_call>{'name': 'note', 'arguments': {'text': '1', 'text': '2'}}</tool_call>", "invalid_json"),
        (BY_BRACES, '<|tool_call>call:note{free:{a:1,a:2}}<tool_call|>', "ambiguous_call"),
    ],
)  # fmt: skip
def test_an_argument_given_twice_with_different_values_is_an_error(format: str, text: str, code: str) -> None:
    assert error(format, text) == code


@pytest.mark.parametrize(
    ("format", "text"),
    [
        (BY_PARAMETER, '<invoke name="note">' + '<parameter name="text">1</parameter>' * 2 + "</invoke>"),
        (BY_PYTHON, '[note(text="1", text="1")]'),
        ("hermes", '<tool_call>{"name": "note", "arguments": {"text": "1", "text": "1"}}</tool_call>'),
    ],
)  # fmt: skip
def test_an_argument_given_twice_with_the_same_value_is_given(format: str, text: str) -> None:
    assert read(format, text) == [("note", {"text": "1"})]


# ---------------------------------------------------------------- 9: JSON and Python


@pytest.mark.parametrize(
    "arguments",
    [
        '{"free": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"free": ' + '{"a":' * 100_000,
        '{"number": ' + "1" * 1_000_000 + "}",
        '{"number": NaN}',
        '{"number": -Infinity}',
        '{"number": 1e999}',
        '{"text": "x"} trailing}',
        '\ufeff{"text": "x"}',
    ],
    ids=lambda a: a[:24],
)
def test_hostile_json_is_an_error(arguments: str) -> None:
    assert error(BY_JSON, json_call(arguments)) in ("invalid_json", "truncated_call")


def test_numbers_and_keys_are_exact() -> None:
    arguments = '{"number": 123456789012345678901234567890, "__proto__": {"a": 1}}'
    assert read(BY_JSON, json_call(arguments)) == [("anything", json.loads(arguments))]


@pytest.mark.share(12)
@pytest.mark.parametrize(
    "value",
    ['__import__("os").system("x")', "open('/etc/passwd')", '"a" * 10**9', "x", "1e999", "9" * 10_000, "[" * 100_000,
     "lambda: 0", "(yield)", "f'{x}'", "*[1]", "**{}"],
    ids=lambda v: v[:20],
)  # fmt: skip
def test_python_is_read_and_never_run(value: str) -> None:
    assert error(BY_PYTHON, f"[note(text={value})]") in ("invalid_arguments", "invalid_json")


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 10_000, "NaN", "1e999", "{'a': __import__('os')}"])
def test_text_that_is_no_value_of_its_type_stays_text_for_validation_to_refuse(value: str) -> None:
    text = f'<invoke name="anything"><parameter name="number">{value}</parameter></invoke>'
    assert read(BY_PARAMETER, text) == [("anything", {"number": value})]


def test_braces_have_a_depth() -> None:
    assert error(BY_BRACES, "<|tool_call>call:anything{free:" + "[" * 100_000) == "invalid_json"


# ---------------------------------------------------------------- 10-13: names


def test_calls_of_two_formats_in_one_text_come_in_order_each_once() -> None:
    text = f"a {note('hermes', '1')} b {note('invoke', '2')} c {note('hermes', '3')} {note('qwen3_coder', '4')}"
    events = formats.parse(text, ["hermes", "invoke", "qwen3_coder"], TOOLS)
    assert calls_of(events) == [("note", {"text": str(i)}) for i in range(1, 5)]


@pytest.mark.parametrize("name", ["n\u043ete", "Note", "notes", "_note"])
def test_a_name_that_only_looks_like_one_is_no_other(name: str) -> None:
    """The first has a Cyrillic letter. A call keeps the name that was written; an element of that name is text."""
    for format in ("hermes", "invoke", "qwen3_coder"):
        assert read(format, note(format).replace("note", name)) == [(name, {"text": "x"})]
    assert read("xml", f"<{name}>x</{name}>") == []


def test_only_arguments_come_of_odd_names() -> None:
    """They are arguments like others: validation refuses what no tool declares, and no object is touched by them."""
    odd = {"self": "1", "__class__": "2", "_private": "3", "kwargs": "4"}
    xml = "<ask " + " ".join(f'{k}="{v}"' for k, v in odd.items()) + ">x</ask>"
    assert read("xml", xml) == [("ask", {**odd, "text": "x"})]
    assert read(BY_JSON, json_call(json.dumps(odd))) == [("anything", odd)]
    assert read(BY_PYTHON, "[note(self=1, __class__=2)]") == [("note", {"self": 1, "__class__": 2})]


# ---------------------------------------------------------------- 7, 11: floods, in linear time


def floods(format: Format) -> list[Callable[[int], str]]:
    """Texts of about so many characters that are openers, closers, halves of calls, and calls."""
    one = note(format)
    start, end = one[: max(4, len(one) // 3)], one[-max(4, len(one) // 3) :]
    half = one[: one.rindex("x")]
    return [
        lambda n: start * (n // len(start)),
        lambda n: half * (n // len(half)),
        lambda n: half + end * (n // len(end)),
        lambda n: half + "<" * n,
        lambda n: half + ("x" + " " * 99) * (n // 100),
        lambda n: f"{one} " * (n // (len(one) + 1)),
    ]


@pytest.mark.share(24)
@every_format
@pytest.mark.parametrize("flood", range(6), ids=["openers", "halves", "closers", "angles", "space", "calls"])
def test_a_flood_twice_as_long_takes_about_twice_as_long(format: Format, flood: int) -> None:
    def seconds(size: int) -> float:
        return reading_seconds(format, floods(format)[flood](size), 64)

    assert_linear(seconds, 8_000, most=2.3)


@pytest.mark.share(24)
@pytest.mark.parametrize(
    "text",
    ["<ask>" * 16_000, "<ask>" * 10_000 + "</ask>" * 10_000, "<ask " * 16_000, '<invoke name="ask">' * 16_000,
     '<tool_call>{"' * 16_000, "`" * 16_000, "<![CDATA[" * 16_000, " \n" * 16_000],
    ids=lambda t: t[:20],
)  # fmt: skip
def test_sixteen_thousand_openers_are_read_at_once(text: str) -> None:
    for format in ("xml", "hermes"):
        start = time.process_time()
        assert source(formats.parse(text, format, TOOLS)) == text
        assert time.process_time() - start < 10  # seconds: 0.1 is usual, a quadratic reader takes minutes


NO_ESCAPE = ("gemma4", "functiongemma", "minimax_m3")
"""Formats in which no value can contain a call of their own."""


@every_format
def test_a_call_longer_than_its_limit_ends_the_reading_as_what_follows_may_be_in_its_value(format: Format) -> None:
    ping = ToolCall("", "ping", {})
    quoted = "ping" if format.name in NO_ESCAPE else formats.render_calls(format, [ping], TOOLS)
    call = ToolCall("", "note", {"text": "word " * 2500 + f"\n{quoted}\n"})
    text = f"Before. {formats.render_calls(format, [call, ping], TOOLS)} After."
    for size in (7, 5000, len(text)):
        parser = Parser(format, TOOLS, limits=Limits(call=10_000))
        events = merge([e for i in range(0, len(text), size) for e in parser.feed(text[i : i + size])] + parser.close())
        assert source(events) == text
        assert [e.code for e in events if isinstance(e, CallError)] == ["limit"]
        assert calls_of(events) == []


@pytest.mark.share(12)
@every_format
def test_a_flood_of_blank_lines_costs_no_more_than_short_lines(format: Format) -> None:
    """A model that loops writes them by the thousand; where a line may open a call, each was looked over again."""
    blank, short = "\n" * 8000, "a\n" * 4000
    assert any(reading_seconds(format, blank, 4) <= 3 * reading_seconds(format, short, 4) for _ in range(5))


@pytest.mark.parametrize("text", [7, None, b"bytes", ["a"]])
@pytest.mark.parametrize("before", ["", "said ", "<tool_call>"])
def test_what_is_no_string_is_refused_and_not_read_for_ever(before: str, text: Any) -> None:
    parser = Parser("hermes")
    parser.feed(before)
    with pytest.raises(TypeError):
        parser.feed(text)
