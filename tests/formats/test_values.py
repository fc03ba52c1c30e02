"""How a raw value ends: what is balanced in it is content, what belongs to the enclosing call ends it.

Over every format with raw values: where the text or a delimiter is cut, line ends, lists, elements.
"""

from __future__ import annotations

from typing import Any

import pytest
from format_tools import spec
from raw_values import LOOK, PARAMETERS, RAW, TOOLS, between, made, outcomes, pieces, read

from agentkit import formats
from agentkit.events import CallEnd
from agentkit.formats import Format, ToolSpec

every_format = pytest.mark.parametrize("format", RAW, ids=lambda f: f.name)


@every_format
def test_a_text_that_is_cut_off_in_a_value_that_quotes_a_call_makes_no_call_while_it_is_quoted(format: Format) -> None:
    main = pieces(format, "write", path="a", content="VALUE")
    value = f"see\n{main.call('b')}\nand more"
    text = main.call(value)
    for end in range(len(text)):
        got = made(outcomes(formats.parse(text[:end], format, TOOLS)))
        assert got in ([], [("write", {"path": "a", "content": value}, ())]), text[:end]


@every_format
@pytest.mark.parametrize("newline", ["\r\n", "\r", "\n\r", "\n"])
def test_line_ends_of_any_kind_obey_the_cut_law(format: Format, newline: str) -> None:
    one = pieces(format, "bash", command="VALUE")
    text = one.head.rstrip("\n") + f"{newline}ls{newline}" + one.close.lstrip("\n") + one.tail
    ((_, arguments, _),) = outcomes(read(format, text))  # type: ignore[misc]
    assert "ls" in arguments["command"]


@pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
@pytest.mark.parametrize("spaced", [True, False], ids=["as it is written", "without line breaks"])
def test_no_value_takes_in_its_neighbour_where_a_delimiter_between_them_is_not_whole(
    format: Format, spaced: bool
) -> None:
    head, close, opening, tail = (p if spaced else p.replace("\n", "") for p in between(format))
    sound = [{}, {"text": "ls -a"}, {"number": 912}, {"text": "ls -a", "number": 912}]
    middles = [piece + opening for n in range(len(close)) for piece in (close[:n], close[n:])]
    middles += [close + piece for n in range(len(opening)) for piece in (opening[:n], opening[n:])]
    wrong = [
        (middle, e.call.arguments)
        for middle in middles
        for e in formats.parse(head + middle + tail, format, (LOOK,))
        if isinstance(e, CallEnd) and e.call.arguments not in sound
    ]
    assert wrong == []


@pytest.mark.parametrize("value", ['>ls"', 'ls"', '(ls" + "x'])
def test_no_value_holds_a_quote_of_which_the_other_one_is_gone(value: str) -> None:
    text = f'<|tool_call>call:bash{{"command": {value}}}<tool_call|>'
    assert outcomes(read("gemma4", text)) == ["invalid_json"]


ITEMS = spec("take", None, ("items",), items={"type": "array"})


@pytest.mark.parametrize(
    ("written", "items"),
    [
        ("a, b", ["a", "b"]),
        ('["a, b", 1]', ["a, b", 1]),
        ('"a, b", 1]', '"a, b", 1]'),
        ('x"a", 1]', 'x"a", 1]'),
        ("[a, b", "[a, b"),
        ("{a, b}", "{a, b}"),
        ("a,\nb", ["a", "b"]),
        ("Paris (France), Rome < Milan", ["Paris (France)", "Rome < Milan"]),
        ("1. first", "1. first"),
        ("- a\n- b", "- a\n- b"),
        ("a\nb", "a\nb"),
        ("a,", "a,"),
        ("a,,b", "a,,b"),
        ("f(a, b), c", "f(a, b), c"),
        ("(a, b)", "(a, b)"),
        ("<item>a</item><item>b</item>", "<item>a</item><item>b</item>"),
        ("<item>a</item>, <item>b</item>", "<item>a</item>, <item>b</item>"),
    ],
)
def test_a_list_that_is_neither_json_nor_items_between_commas_is_not_guessed_at(written: str, items: object) -> None:
    text = f"<function=take>\n<parameter=items>\n{written}\n</parameter>\n</function>"
    assert outcomes(read("qwen3_coder", text, (ITEMS,))) == [("take", {"items": items}, ())]


def test_a_carriage_return_before_the_newline_of_the_format_belongs_to_the_format() -> None:
    text = "<function=bash>\r\n<parameter=command>\r\nls\r\n</parameter>\r\n</function>"
    assert outcomes(read("qwen3_coder", text)) == [("bash", {"command": "ls"}, ())]


# ---------------------------------------------------------------- elements


NESTED = spec(
    "nested", None, (), items={"type": "array", "items": {"type": "string"}}, object={"type": "object"}, text="string"
)
TOKEN = "]<]minimax[>["


def nested(body: str) -> list[object]:
    text = f'{TOKEN}<tool_call>\n{TOKEN}<invoke name="nested">{body}{TOKEN}</invoke>\n{TOKEN}</tool_call>'
    return outcomes(read("minimax_m3", text, (NESTED,)))


def test_an_empty_element_is_the_empty_value_of_its_type() -> None:
    body = "".join(f"{TOKEN}<{name}>{TOKEN}</{name}>" for name in ("items", "object", "text"))
    assert nested(body) == [("nested", {"items": [], "object": {}, "text": ""}, ())]


@pytest.mark.parametrize("body", ["a{}<item>b{}</item>", "{}<item>b{}</item>a"])
def test_text_beside_nested_elements_is_an_error(body: str) -> None:
    inner = body.replace("{}", TOKEN)
    assert nested(f"{TOKEN}<items>{inner}{TOKEN}</items>") == ["invalid_arguments"]


# ---------------------------------------------------------------- linear time


def test_an_attribute_without_a_value_is_null_where_the_parameter_is_null_if_left_out_and_else_an_error() -> None:
    string: dict[str, Any] = {"type": "string"}
    for schema, wanted in (({**string, "default": None}, [{"day": None}]), (string, [])):
        tool = ToolSpec("ask", "", {"type": "object", "properties": {"day": schema}})
        made = [e.call.arguments for e in formats.parse("<ask day/>", "xml", [tool]) if isinstance(e, CallEnd)]
        assert made == wanted
