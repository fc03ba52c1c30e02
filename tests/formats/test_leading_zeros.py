"""A number that begins with a zero is a code: no format and no type makes another number of it in silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from agentkit import ToolRegistry, formats
from agentkit.events import CallEnd, CallError
from agentkit.formats import CATALOG
from agentkit.messages import ToolCall
from agentkit.schemas.words import InvalidArguments
from agentkit.tool.bound_tool import BoundTool

# ruff: noqa: ANN001, ANN202 (parameters that get their hint below)


@dataclass
class Mode:
    bits: int


class One(BaseModel):
    kind: Literal["one"]
    bits: int


class Two(BaseModel):
    kind: Literal["two"]
    bits: str


def tool_of(hint: Any) -> BoundTool:
    def run(x): ...

    run.__annotations__ = {"x": hint}
    return ToolRegistry(run).tools["run"]


HINTS = (
    int, float, int | None, int | float, int | list[int], Annotated[int, Field(ge=0)], list[int], list[float],
    tuple[int, float], set[int], dict[str, int], list[int | None], Mode, list[Mode],
    Annotated[One | Two, Field(discriminator="kind")],
)  # fmt: skip
TOOLS = {str(hint): tool_of(hint) for hint in HINTS}


def wrapped(value: Any) -> list[Any]:
    """The value in all the shapes that are tried for any type."""
    return [
        value,
        [value],
        [65537, value],
        {"a": value},
        {"bits": value},
        [{"bits": value}],
        {"kind": "one", "bits": value},
    ]


def numbers(value: Any) -> list[Any]:
    match value:
        case bool() | str() | None:
            return []
        case int() | float():
            return [value]
        case dict():
            return [n for inner in value.values() for n in numbers(inner)]
        case list() | tuple() | set():
            return [n for inner in value for n in numbers(inner)]
    return numbers(vars(value))


CODE = st.from_regex(r"[+-]?0_?[0-9]{1,4}(\.|\.5|\.0|e2)?", fullmatch=True)


@pytest.mark.share(12)
@pytest.mark.parametrize("name", TOOLS)
@given(code=CODE)
def test_no_string_that_begins_with_a_zero_is_a_number(name: str, code: str) -> None:
    tool = TOOLS[name]
    for value in wrapped(code):
        for lenient in (True, False):
            try:
                taken = tool.validate({"x": value}, lenient=lenient)["x"]
            except InvalidArguments:
                continue
            assert [n for n in numbers(taken) if n != 65537] == [], (value, taken)


CODES = ["0644", "-010", "0_1", "01.5", "00700"]


@pytest.mark.share(6)
@pytest.mark.parametrize("format", [f.name for f in CATALOG])
@pytest.mark.parametrize("kind", [int, float, list[int], int | None])
def test_a_code_is_an_error_in_every_format(format: str, kind: Any) -> None:
    tool = tool_of(kind)
    sample: Any = [11, 97531] if kind == list[int] else 97531
    text = formats.render_calls(format, [ToolCall("", "run", {"x": sample})], [tool.spec])
    for code in CODES:
        (end,) = [
            e
            for e in formats.parse(text.replace("97531", code), format, [tool.spec])
            if isinstance(e, CallEnd | CallError)
        ]
        if isinstance(end, CallEnd):
            with pytest.raises(InvalidArguments):
                tool.validate(end.call.arguments, lenient=formats.get(format).textual)


@pytest.mark.parametrize("number", ["07", "007", "000", "018956", "0089"])
@pytest.mark.parametrize("format", [f.name for f in CATALOG])
def test_a_number_with_one_reading_is_read_and_the_repair_is_named(format: str, number: str) -> None:
    """Two digits in every format; more where a value is text, if no octal number would be another one."""
    tool = tool_of(int)
    if number != "07" and not formats.get(format).textual:
        return
    text = formats.render_calls(format, [ToolCall("", "run", {"x": 97531})], [tool.spec]).replace("97531", number)
    (end,) = [e for e in formats.parse(text, format, [tool.spec]) if isinstance(e, CallEnd | CallError)]
    assert isinstance(end, CallEnd)
    assert (end.call.arguments, end.repairs) == ({"x": int(number)}, ("leading_zeros",))
    parser = formats.Parser(format, [tool.spec], repairs=())
    (end,) = [e for e in [*parser.feed(text), *parser.close()] if isinstance(e, CallEnd | CallError)]
    if isinstance(end, CallEnd):
        with pytest.raises(InvalidArguments):
            tool.validate(end.call.arguments, lenient=formats.get(format).textual)


@pytest.mark.parametrize("text", ["07, 08", "[07, 08]", "(07, 08)"])
def test_two_digits_are_a_month_in_a_list(text: str) -> None:
    for hint, value, repairs in ((list[int], [7, 8], ("leading_zeros",)), (list[str], ["07", "08"], ())):
        if hint == list[str] and text[0] != "0":
            continue
        call = f"<function=run>\n<parameter=x>\n{text}\n</parameter>\n</function>"
        (end,) = [e for e in formats.parse(call, "qwen3_coder", [tool_of(hint).spec]) if isinstance(e, CallEnd)]
        assert (end.call.arguments, end.repairs) == ({"x": value}, repairs)
