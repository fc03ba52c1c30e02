"""A number that is written keeps its digits: an integer or a `Decimal` is exact, or an error, in every format."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentkit import ToolCall, ToolRegistry, formats
from agentkit.events import CallEnd, CallError, Finish
from agentkit.formats import CATALOG
from agentkit.models.native import NativeCalls
from agentkit.models.native_arguments import read_arguments
from agentkit.schemas.typed.exact import RoundedNumber, as_integer, exactly, nearest
from agentkit.schemas.words import InvalidArguments
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.reply import InvalidOutput, Output

# ruff: noqa: ANN001, ANN202 (parameters that get their hint below)


class Price(BaseModel):
    amount: Decimal
    count: int = 0


def tool_of(hint: Any) -> BoundTool:
    def run(x): ...

    run.__annotations__ = {"x": hint}
    return ToolRegistry(run).tools["run"]


HINTS = (int, Decimal, Decimal | None, int | None, list[int], list[Decimal], dict[str, int], Price, list[Price])
TOOLS = {str(hint): tool_of(hint) for hint in HINTS}
SAMPLES: dict[Any, Any] = {
    list[int]: [1, 97531],
    list[Decimal]: [1, 97531],
    dict[str, int]: {"a": 97531},
    Price: {"amount": 97531, "count": 97531},
    list[Price]: [{"amount": 97531}],
}
NUMBERS = st.one_of(
    st.from_regex(r"-?(0|[1-9][0-9]{0,22})(\.[0-9]{1,22})?([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    st.integers().map(lambda n: f"{n}.0"),
    st.integers(0, 400).map(lambda n: f"1e-{n}"),
    st.integers(0, 30).map(lambda n: f"{'9' * n}e{n}" if n else "0"),
)


def numbers(value: Any) -> list[Any]:
    match value:
        case int() | Decimal():
            return [value]
        case dict():
            return [n for inner in value.values() for n in numbers(inner)]
        case list():
            return [n for inner in value for n in numbers(inner)]
        case BaseModel():
            return numbers(dict(value))
    return []


def read(format: str, tool: BoundTool, sample: Any, number: str) -> CallEnd | CallError:
    """The call with this number in place of the sample's."""
    text = formats.render_calls(format, [ToolCall("", "run", {"x": sample})], [tool.spec]).replace("97531", number)
    (end,) = [e for e in formats.parse(text, format, [tool.spec]) if isinstance(e, CallEnd | CallError)]
    return end


def check(tool: BoundTool, arguments: Any, number: str, *, lenient: bool) -> None:
    """Check that the tool gets this number, or nothing."""
    try:
        taken = tool.validate(arguments, lenient=lenient)["x"]
    except InvalidArguments:
        return
    assert {Fraction(n) for n in numbers(taken)} <= {Fraction(number), Fraction(0), Fraction(1)}, (number, taken)
    assert Fraction(number) in {Fraction(n) for n in numbers(taken)}


@pytest.mark.share(60)
@pytest.mark.parametrize("hint", HINTS, ids=str)
@given(number=NUMBERS, format=st.sampled_from([f.name for f in CATALOG]))
def test_a_number_is_exact_or_an_error(hint: Any, number: str, format: str) -> None:
    tool = TOOLS[str(hint)]
    sample = SAMPLES.get(hint, 97531)
    end = read(format, tool, sample, number)
    if isinstance(end, CallEnd):
        check(tool, end.call.arguments, number, lenient=formats.get(format).textual)
    native = json.dumps({"x": sample}).replace("97531", number)
    try:
        arguments = read_arguments(native).values
    except ValueError:
        return
    check(tool, arguments, number, lenient=False)
    schema = tool.spec.parameters
    stored = json.loads(json.dumps(exactly(arguments, schema, schema)))
    check(tool, stored, number, lenient=False)


@pytest.mark.share(12)
@pytest.mark.parametrize("format", [f.name for f in CATALOG])
@pytest.mark.parametrize(
    ("hint", "number", "value"),
    [
        (Decimal, "12345678901234567.89", Decimal("12345678901234567.89")),
        (int, "12345678901234567.0", 12345678901234567),
        (int, "1e23", 10**23),
        (int, "0.99999999999999999999", None),
        (int, "1e-400", None),
        (float, "0.99999999999999999999", 1.0),
    ],
)
def test_the_digits_are_kept_in_every_format(format: str, hint: Any, number: str, value: Any) -> None:
    tool = tool_of(hint)
    end = read(format, tool, 97531, number)
    assert isinstance(end, CallEnd)
    lenient = formats.get(format).textual
    if value is None:
        with pytest.raises(InvalidArguments):
            tool.validate(end.call.arguments, lenient=lenient)
    else:
        assert tool.validate(end.call.arguments, lenient=lenient) == {"x": value}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9007199254740993*1.0", 9007199254740993),
        ("0.1 * 30", 3),
        ("0.9999999999999999 + 0.00000000000000001", None),
        ("1e-300 * 1e-300", None),
    ],
)
def test_arithmetic_is_exact_or_an_error(text: str, value: int | None) -> None:
    tool = tool_of(int)
    (end,) = [
        e for e in formats.parse(f"[run(x={text})]", "pythonic", [tool.spec]) if isinstance(e, CallEnd | CallError)
    ]
    assert isinstance(end, CallEnd)
    if value is None:
        with pytest.raises(InvalidArguments):
            tool.validate(end.call.arguments, lenient=False)
    else:
        assert tool.validate(end.call.arguments, lenient=False) == {"x": value}


def test_a_native_call_keeps_the_digits_in_what_is_stored() -> None:
    tool = TOOLS[str(Price)]
    received = NativeCalls("provider", marks_ends=False, schemas={"run": tool.spec.parameters})
    call, _ = received.begin("1", "run")
    received.more(call, '{"x": {"amount": 12345678901234567.89, "count": 12345678901234567.0}}')
    [end] = [event for event in received.close(None, Finish("tool_calls")) if isinstance(event, CallEnd)]
    assert end.call.arguments == {"x": {"amount": "12345678901234567.89", "count": 12345678901234567}}


def test_a_final_reply_keeps_the_digits() -> None:
    assert Output(Decimal).read("12345678901234567.89") == Decimal("12345678901234567.89")
    assert Output(Price).read('{"amount": 12345678901234567.89}').amount == Decimal("12345678901234567.89")
    assert Output(int).read("12345678901234567.0") == 12345678901234567
    with pytest.raises(InvalidOutput):
        Output(int).read("0.99999999999999999999")


def test_a_rounded_number_is_a_float_that_can_be_copied() -> None:
    number = nearest("12345678901234567.0")
    assert isinstance(number, RoundedNumber)
    assert (number, as_integer(number)) == (12345678901234568.0, 12345678901234567)
    assert as_integer(pickle.loads(pickle.dumps(number))) == 12345678901234567
    assert type(nearest("0.1")) is type(nearest("1e23")) is type(nearest("0.30000000000000004")) is float
