"""Values as Python writes them mean what Python means by them, or they are an error: nothing is guessed or computed."""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

import pytest
from format_tools import spec
from hypothesis import assume, given
from hypothesis import strategies as st

from agentkit import formats
from agentkit.events import CallEnd, CallError
from agentkit.formats import ToolSpec
from agentkit.messages import ToolCall
from agentkit.schemas.typed.values import same

TOOLS = (spec("run", None, ("x",), x={}, y={}, s={"type": "string"}),)

words = st.text(st.sampled_from("ab %'\"\\/{}+,)=#\n.0é\u2028"), max_size=6)
quoted = st.builds(
    lambda prefix, quote, text: f"{prefix}{quote}{text}{quote}",
    st.sampled_from(["", "", "", "r", "R", "b", "u", "f", "F", "rb", "rf", "t"]),
    st.sampled_from(["'", '"', '"""', "'''"]),
    words,
)
strings = quoted | words.map(repr) | words.map(json.dumps)
numbers = st.sampled_from(
    [
        "0",
        "7",
        "-2",
        "10",
        "1.5",
        ".5",
        "1e3",
        "0x1F",
        "0b11",
        "0o17",
        "1_000",
        "007",
        "1__0",
        "1j",
        "9" * 50,
        "0xg",
        "1e999",
    ]
)
atoms = strings | numbers | st.sampled_from(["True", "False", "None", "name", "[]", "{}", "()", "..."])


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = [
        " ",
        "",
        " + ",
        "+",
        " % ",
        " * ",
        "*",
        "/",
        "-",
        " - ",
        "**",
        "//",
        " and ",
        " in ",
        " == ",
        ", ",
        " if x else ",
    ]
    return (
        st.builds("{}{}{}".format, inner, st.sampled_from(operators), inner)
        | st.builds("({})".format, inner)
        | st.builds("[{}]".format, inner)
        | st.builds("[{}, {}]".format, inner, inner)
        | st.builds("{{{}: {}}}".format, strings, inner)
        | st.builds("{}{}".format, inner, st.sampled_from([".upper()", ".format(1)", "[0]", "[1:]", "()", " % (1,)"]))
    )


expressions = st.recursive(atoms, joined, max_leaves=4)


def python(text: str) -> Any:
    """Return Python's value, with arithmetic and joined strings; raises for anything but such a constant expression."""
    call = ast.parse(f"run(x={text}, y=1)", mode="eval").body
    if not isinstance(call, ast.Call) or call.args or [k.arg for k in call.keywords] != ["x", "y"]:
        raise SyntaxError("more than one argument")
    return constant(call.keywords[0].value)


def constant(node: ast.expr) -> Any:
    match node:
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as sign, right):
            a, b = constant(left), constant(right)
            texts = isinstance(a, str) and isinstance(b, str) and isinstance(sign, ast.Add)
            if not texts and not all(isinstance(v, int | float) and not isinstance(v, bool) for v in (a, b)):
                raise ValueError("not computed")
            compute = {ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.Div: "__truediv__"}[type(sign)]
            value = getattr(a, compute)(b)
            return value if value is not NotImplemented else getattr(float(a), compute)(b)
        case ast.List(items) | ast.Tuple(items):
            return [constant(item) for item in items]
        case ast.Dict(keys, values):
            pairs = [(constant(k) if k else None, constant(v)) for k, v in zip(keys, values, strict=True)]
            if not all(isinstance(k, str) for k, _ in pairs):
                raise ValueError("a key that is no string")
            return dict(pairs)
        case ast.JoinedStr(parts) if all(isinstance(p, ast.Constant) for p in parts):
            return "".join(p.value for p in parts if isinstance(p, ast.Constant))
    value = ast.literal_eval(node)
    if not isinstance(value, str | int | float | bool | None):
        raise ValueError("no value of JSON")
    return value


def read(text: str) -> tuple[Any, tuple[str, ...]] | None:
    """The argument that we read, with what was mended; None for an error."""
    events = formats.parse(f"<|python_tag|>[run(x={text}, y=1)]", "pythonic", TOOLS)
    ends = [e for e in events if isinstance(e, CallEnd | CallError)]
    if len(ends) == 1 and isinstance(ends[0], CallEnd) and ends[0].call.arguments.get("y") == 1:
        return ends[0].call.arguments["x"], ends[0].repairs
    return None


def without_digits(value: Any) -> Any:
    """A value with 12 digits of its floats: Python computes with rounded ones, and has none but those of a float."""
    match value:
        case float():
            return float(f"{value:.12g}")
        case dict():
            return {key: without_digits(inner) for key, inner in value.items()}
        case list():
            return [without_digits(inner) for inner in value]
    return value


@given(text=expressions)
def test_what_python_means_or_an_error(text: str) -> None:
    got = read(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            meant = python(text)
        except (SyntaxError, ValueError, OverflowError, ZeroDivisionError, TypeError):
            try:
                ast.parse(f"run(x={text}, y=1)", mode="eval")
            except (SyntaxError, ValueError):
                return  # Python does not read it, either: what was mended has a name, which others test
            assert got is None, "Python would compute it; ours must not guess"
            return
    assume("\\ud" not in text.lower())
    if got is not None:
        assert same(without_digits(got[0]), without_digits(meant))
        assert set(got[1]) <= {"arithmetic", "leading_zeros"}  # Python has `00`, and no other number that begins so


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"rm -rf " "build"', "rm -rf build"),
        ("'a' \"b\" '''c'''", "abc"),
        ('"a" + "b"', "ab"),
        (r'r"\d+" "\n"', "\\d+\n"),
        (r'"\033[1m\x41\/"', "\x1b[1mA\\/"),
        ('("a"\n  "b")', "ab"),
        ('["a" "b", "c"]', ["ab", "c"]),
        ("0b11", 3),
        ("1_000", 1000),
    ],
)
def test_python_strings_and_numbers_are_read_without_a_repair(text: str, value: Any) -> None:
    assert read(text) == (value, ())


@pytest.mark.parametrize(
    "text",
    [
        '"%s" % "x"', '"a".upper()', '"a" if x else "b"', '"a" and "b"', '"a" * 3', '"a"[0]', '"a" in "b"', 'f"a"',
        '"\\N{BULLET}"', 'b"x"', '"a" + name', '"a" + 1', "9**9**9", "7//2", "1/0", "2024-12-25", "12/25/2024", "1e999",
        "9" * 5000, "0x" + "f" * 9000, "-".join("9" * 400), "*".join(["1" + "0" * 200] * 3), "1.5*" + "9" * 400,
    ],
)  # fmt: skip
def test_what_python_would_compute_is_an_error_and_no_quotes_are_guessed(text: str) -> None:
    assert read(text) is None


DOUBTFUL = [
    "10-20", "12/31", "555-1234", "2024-12", "2024-12-25", "12/25/2024", "1-555-0100", "10 -20", "10- 20", "9/11",
    "2020 - 01 - 02", "0644", "-007", "007", "000", "0089", "018956", "-07", "01.5", "00.5", "0_1", "07.5", "01e3",
]  # fmt: skip
"""More likely ranges, dates, telephone numbers, modes and codes than numbers."""
ONE_READING = re.compile(r"-?0+[0-9]|0+[89][0-9]*|018956")


@pytest.mark.parametrize("format", ["xml", "invoke", "qwen3_coder", "glm45", "cline"])
@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("text", [t for t in DOUBTFUL if not ONE_READING.fullmatch(t)] + ["-0755", "+010", "00012"])
def test_nor_is_it_a_number_where_a_value_is_text(text: str, kind: str, format: str) -> None:
    run = ToolSpec("run", "", {"type": "object", "properties": {"x": {"type": kind}, "s": {"type": "string"}}})
    call = formats.render_calls(format, [ToolCall("", "run", {"x": 11, "s": "VALUE"})], [run]).replace("11", text)
    (end,) = (e for e in formats.parse(call, format, [run]) if isinstance(e, CallEnd | CallError))
    assert isinstance(end, CallEnd)
    assert end.call.arguments["x"] == text  # no number: the check of the arguments tells the model


@given(
    numbers=st.lists(st.integers(0, 9999), min_size=2, max_size=4), signs=st.lists(st.sampled_from("-/"), min_size=3)
)
def test_numbers_between_dashes_and_slashes_are_never_computed(numbers: list[int], signs: list[str]) -> None:
    assert read("".join(f"{n}{sign}" for n, sign in zip(numbers, signs, strict=False)) + "1") is None


@pytest.mark.parametrize(
    ("text", "value"), [(r'"a\ud800"', "a\ufffd"), (r'["\uDFFF"]', ["\ufffd"]), ('"\ud800"', "\ufffd")]
)
def test_half_a_character_is_replaced_by_name(text: str, value: Any) -> None:
    """In a string of Python and of JSON, mended or not; what is whole, or was U+FFFD before, has no such name."""
    for tail in ("", ","):
        in_json = f'<tool_call>{{"name": "run", "arguments": {{"x": {text}{tail}}}}}</tool_call>'
        (end,) = (e for e in formats.parse(in_json, "hermes", TOOLS) if isinstance(e, CallEnd))
        assert (end.call.arguments["x"], end.repairs) == (
            value,
            (*(["trailing_comma"] if tail else []), "lone_surrogate"),
        )
    assert read(text) == (value, ("lone_surrogate",))
    for whole in (r'"\ud83d\ude00"', '"\ufffd"', r'"\ufffd"'):
        assert read(whole) is not None
        assert read(whole)[1] == ()  # type: ignore[index]
