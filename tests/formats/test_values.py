"""How a raw value ends: what is balanced in it is content, what belongs to the enclosing call ends it.

Over every format with raw values: what a value quotes, whether it is closed, what follows, how the text is cut.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from format_tools import spec
from growth import assert_linear, reading_seconds
from raw_values import BASH, LOOK, PARAMETERS, RAW, TOOLS, between, made, outcomes, pieces, read

from agentkit import formats
from agentkit.events import CallEnd
from agentkit.formats import Format, ToolSpec
from agentkit.formats.format import Pairs, TagParameters, ToolElement
from agentkit.formats.valueends import end_of_value
from agentkit.messages import ToolCall
from agentkit.schemas.typed import values

every_format = pytest.mark.parametrize("format", RAW, ids=lambda f: f.name)


QUOTES = ("nothing", "a whole call", "two whole calls", "its own call", "half a call", "an opening", "closings",
          "one closing", "another format's call")  # fmt: skip


def quoted(format: Format, what: str) -> str:
    """What a value quotes."""
    bash, write = pieces(format, "bash", command="VALUE"), pieces(format, "write", path="a", content="VALUE")
    other = "invoke" if format.name == "hermes" else "hermes"
    return {
        "nothing": "if a < b && c > d: pass",
        "a whole call": bash.call("ls"),
        "two whole calls": f"{bash.call('ls')} and {write.call('b')}",
        "its own call": write.call("b"),
        "half a call": bash.head,
        "an opening": bash.head.split("command")[0],
        "closings": f"{write.close}{write.tail}",
        "one closing": write.close,
        "another format's call": formats.render_calls(other, [ToolCall("", "bash", {"command": "ls"})], TOOLS),
    }[what]


FOLLOWS = ("nothing", "a call", "text", "text and a call")
CERTAIN = ("nothing", "a whole call", "two whole calls", "its own call", "one closing", "another format's call")
"""What a value may quote so that everything is told: of the rest, some is an error, and nothing else."""


@pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
def test_no_value_holds_the_end_of_its_call_and_a_parameter_of_another_tool_that_is_closed_for_it(
    format: Format,
) -> None:
    one = pieces(format, "bash", command="VALUE")
    key = formats.render_calls(format, [ToolCall("", "look", {"text": "VALUE"})], (LOOK,)).split("VALUE")[0]
    part = next(p for p in format.call if isinstance(p, Pairs | TagParameters))
    key = key[key.rindex(part.key.strip() if isinstance(part, Pairs) else f"<{part.name}") :]
    end = one.tail.strip().split("\n")[0]
    got = made(outcomes(read(format, f"{one.head}ls\n{end}So.\n\n{key}a{one.close}{one.tail}")))
    assert all("So." not in str(call) for call in got), got


@pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
def test_no_value_holds_a_missing_parameter_behind_the_beginning_of_its_closing(format: Format) -> None:
    head, close, middle, rest = between(format)
    for size in range(3, len(close.strip())):
        text = f"{head}{close.strip()[:size]}\n{middle.strip()}{rest.partition(close.strip())[0]}{close}"
        got = made(outcomes(read(format, text + close + rest.partition(close.strip())[2], (*TOOLS, LOOK))))
        assert all("912" not in str(call[1].get("text")) for call in got), (size, got)  # type: ignore[index]


@every_format
def test_a_text_that_is_cut_off_in_a_value_that_quotes_a_call_makes_no_call_while_it_is_quoted(format: Format) -> None:
    main = pieces(format, "write", path="a", content="VALUE")
    value = f"see\n{quoted(format, 'its own call')}\nand more"
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


@every_format
@pytest.mark.parametrize("junk", ["", "x", "</s>", '"', "}]}", "<cwd>/tmp</cwd>", "half"])
def test_a_closing_that_is_not_whole_is_not_run_as_part_of_the_value(format: Format, junk: str) -> None:
    one = pieces(format, "bash", command="VALUE")
    close = one.close.strip()
    for size in range(3, len(close)):
        inside = close[: size - 1] if junk == "half" else junk
        text = one.head + "ls" + close[:size] + inside + (close[size:] if junk else "") + "\n" + one.tail.lstrip()
        made = [g for g in outcomes(read(format, text)) if not isinstance(g, str)]
        assert made in ([], [("bash", {"command": "ls"}, ("missing_close",))]), text


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


@pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
def test_no_value_that_quotes_half_a_call_takes_in_its_neighbour_whose_opening_is_gone(format: Format) -> None:
    head, close, _, tail = between(format)
    quoted = f"{pieces(format, 'bash', command='VALUE').head}pwd"
    text = head + quoted + close + "\n" + tail
    made = [e.call.arguments for e in formats.parse(text, format, (LOOK,)) if isinstance(e, CallEnd)]
    assert not [found for found in made if "912" in str(found.get("text"))]


@pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
def test_a_value_that_quotes_half_a_call_does_not_run_on_into_the_next_one_whose_opening_is_misspelt(
    format: Format,
) -> None:
    main, inner = pieces(format, "write", path="a", content="VALUE"), pieces(format, "bash", command="VALUE")
    value, wrong = f"see {inner.head}ls", []
    for i, other in product(range(len(inner.head)), ">x"):
        head = inner.head[:i] + other + inner.head[i + 1 :]
        text = f"{main.call(value)}\nDone.\n{head}pwd{inner.close}{inner.tail}"
        made = [e.call for e in formats.parse(text, format, TOOLS) if isinstance(e, CallEnd)]
        wrong += [(text, c) for c in made if c.name == "write" and c.arguments != {"path": "a", "content": value}]
    assert wrong == []


@every_format
@pytest.mark.parametrize("junk", ["x", "</s>", '"', "[", "<cwd>/tmp</cwd>", "half"])
@pytest.mark.parametrize("then", ["other quotes", "no names", "no openings"])
def test_no_value_runs_on_into_the_next_call_where_both_are_damaged(format: Format, junk: str, then: str) -> None:
    """Something stands behind the first one's value, and the second one's opening cannot be read."""
    one = pieces(format, "bash", command="VALUE")
    junk = one.close.strip()[: len(one.close.strip()) // 2] if junk == "half" else junk
    head = {
        "other quotes": one.head.replace('"', "'"),
        "no names": one.head.replace("bash", "").replace("command", ""),
        "no openings": one.head.replace(one.head.strip()[0], ""),
    }[then]
    text = f"{one.head}ls{one.close}\n{junk}\n{one.tail.lstrip()}\n{head}pwd{one.close}{one.tail}"
    made = [g for g in outcomes(read(format, text)) if not isinstance(g, str)]
    assert all(g[:2] in (("bash", {"command": "ls"}), ("bash", {"command": "pwd"})) for g in made), made  # type: ignore[index]


@pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
@pytest.mark.parametrize("what", ["the end of the call", "another tag", "the end of the call, misspelt"])
def test_an_argument_is_not_lost_where_something_stands_before_it(format: Format, what: str) -> None:
    head, close, opening, tail = between(format)
    end = end_of_value(format.shapes[0], next(p for p in format.call if isinstance(p, Pairs | TagParameters))).over
    stray = {"another tag": "<b>", "the end of the call": end}.get(what, end[:-2] + end[-1:])
    made = [
        e.call.arguments
        for e in formats.parse(head + close + stray + opening + tail, format, (LOOK,))
        if isinstance(e, CallEnd)
    ]
    assert made in ([], [{"text": "ls -a", "number": 912}])


@pytest.mark.parametrize("value", ['>ls"', 'ls"', '(ls" + "x'])
def test_no_value_holds_a_quote_of_which_the_other_one_is_gone(value: str) -> None:
    text = f'<|tool_call>call:bash{{"command": {value}}}<tool_call|>'
    assert outcomes(read("gemma4", text)) == ["invalid_json"]


@pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
def test_values_that_cross_are_one_another_s_and_no_value(format: Format) -> None:
    """One closes that nothing opens, and behind it one opens, which nothing closes, or which another one crosses."""
    one = pieces(format, "bash", command="VALUE")
    opening = between(format)[2].strip().replace("number", "command")
    for crossed in (f"ls{one.close} , {opening}pwd", f"ls{one.close} , {opening}pwd{one.close}\n{opening[:3]}pwd"):
        text = one.call(crossed)
        assert [g for g in outcomes(read(format, text, (BASH,))) if not isinstance(g, str)] == []


@every_format
@pytest.mark.parametrize("what", ["a call in a value", "two calls in a value", "half a call in a value"])
def test_behind_damage_no_call_is_made_that_stood_in_a_value(format: Format, what: str) -> None:
    if any(isinstance(p, ToolElement) for p in format.call):
        return  # a tool's element ends with its own tag alone: any other tool's tag is the next call
    main, inner = pieces(format, "write", path="a", content="VALUE"), pieces(format, "bash", command="VALUE")
    call = inner.call("ls")
    value = {"a": f"see {call}", "two": f"see {call} and {call}", "half": f"see {inner.head}ls"}[what.split()[0]]
    nameless = "".join(main.head.rpartition("content")[::2])
    made = [g for g in outcomes(read(format, nameless + value + main.close + main.tail)) if not isinstance(g, str)]
    assert not [name for name, *_ in made if name == "bash"], made  # type: ignore[misc]


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


def floods(format: Format) -> list[tuple[str, str]]:
    one = pieces(format, "bash", command="VALUE")
    return [
        ("", one.call("ls", closed=False)),
        (one.head, one.close + one.tail),
        (one.head, one.call("x")),
        ("", one.head + one.call("x", closed=False)),
        ("", one.call("x") + "\nprose\n"),
        (one.head, one.tail),
    ]


@every_format
@pytest.mark.parametrize("flood", range(6), ids=["unclosed", "closings", "quotes", "mixed", "prose", "ends"])
def test_floods_of_what_must_be_weighed_take_linear_time(format: Format, flood: int) -> None:
    head, piece = floods(format)[flood]

    def seconds(size: int) -> float:
        return reading_seconds(format, head + piece * (size // len(piece)), 64)

    assert_linear(seconds, 8_000, most=2.3)


def test_an_attribute_without_a_value_is_null_where_the_parameter_is_null_if_left_out_and_else_an_error() -> None:
    string: dict[str, Any] = {"type": "string"}
    for schema, wanted in (({**string, "default": None}, [{"day": None}]), (string, [])):
        tool = ToolSpec("ask", "", {"type": "object", "properties": {"day": schema}})
        made = [e.call.arguments for e in formats.parse("<ask day/>", "xml", [tool]) if isinstance(e, CallEnd)]
        assert made == wanted


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        (",a", {"type": "array", "items": {"type": "string"}}, ",a"),
        (", a", {"type": "array", "items": {"type": "string"}}, ", a"),
        ("a, None", {"type": "array", "items": {"type": "string"}}, ["a", "None"]),
        ("None", {"type": "array", "items": {"type": "string"}}, "None"),
        ("NULL", {"type": "array", "items": {"type": "string"}}, "NULL"),
        ("0x1F", {"type": "integer"}, 31),
        ("1_000", {"type": "integer"}, 1000),
        ("1_000.5", {"type": "number"}, 1000.5),
        ("0o644", {"type": "integer"}, 420),
        ("0x1F * 2", {"type": "integer"}, "0x1F * 2"),
        ("{'x': 1}", {}, {"x": 1}),
        ("(1, 'a')", {}, [1, "a"]),
        ("None", {}, None),
        ("'a'", {}, "a"),
        ("0x1F", {}, "0x1F"),
        ("1_000", {}, "1_000"),
        ("(see below)", {}, "(see below)"),
        ("'tis", {}, "'tis"),
    ],
)
def test_text_is_json_or_a_python_literal_or_items(text: str, schema: dict[str, Any], value: Any) -> None:
    assert values.read(text, schema, {}) == value
