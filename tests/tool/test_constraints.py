"""A constraint of each kind at each type: refused when the tool is registered, or applied in every call."""

from __future__ import annotations

import datetime
import enum
import json
import uuid
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from agentkit.errors import SchemaError
from agentkit.schemas.words import InvalidArguments
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.reply import Output


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class City(BaseModel):
    name: str


@dataclass
class Point:
    x: int

    def __len__(self) -> int:
        return self.x


class Move(TypedDict):
    to: int


ID = "12345678-1234-5678-1234-567812345678"
TYPES: dict[Any, list[Any]] = {
    str: ["abc"], int: [3], float: [1.5], bool: [True], bytes: ["abc"], Decimal: ["1.5"], None: [None],
    list[int]: [[1]], dict[str, int]: [{"a": 1}], set[int]: [[1]], frozenset[int]: [[1]], tuple[int, int]: [[1, 2]],
    datetime.date: ["2020-01-01"], datetime.time: ["10:00:00"], datetime.datetime: ["2020-01-01T10:00:00"],
    datetime.timedelta: ["P1D"], uuid.UUID: [ID], Any: [], Colour: ["red"], Level: [1], Literal["a"]: ["a"],
    City: [{"name": "Ulm"}], Point: [{"x": 1}], Move: [{"to": 1}], int | str: [1, "abc"], int | None: [1, None],
    str | None: ["abc", None], list[int] | None: [[1], None], int | list[int]: [1, [1]], Literal["a", 1]: ["a", 1],
}  # fmt: skip
"""Types, and values of which a model could send one; of `Any`, whatever a constraint can be applied to."""

CONSTRAINTS: list[dict[str, Any]] = [
    {"min_length": 1}, {"max_length": 9}, {"ge": 0}, {"gt": 0}, {"le": 9}, {"lt": 9}, {"multiple_of": 1},
    {"pattern": "."}, {"max_digits": 5}, {"decimal_places": 5}, {"strict": True}, {"allow_inf_nan": False},
    {"ge": 0, "min_length": 1}, {"min_length": 1, "max_length": 9},
]  # fmt: skip


def registered(hint: Any) -> BoundTool:
    """A tool with one parameter of this type."""

    def take(x: Any) -> None:
        """Take a value."""

    take.__annotations__["x"] = hint
    registry = ToolRegistry()
    registry.register(take)
    return registry.tools["take"]


def is_applied(hint: Any, value: Any) -> bool:
    """Whether pydantic itself can tell whether the value is as wanted."""
    try:
        TypeAdapter(hint).validate_json(json.dumps(value), strict=True)
    except ValueError:
        return True
    except Exception:  # noqa: BLE001 - a TypeError of the value, or whatever building the type raises
        return False
    return True


@pytest.mark.share(4)
@pytest.mark.parametrize(("kind", "options"), list(product(TYPES, CONSTRAINTS)), ids=str)
def test_a_constraint_is_refused_at_registration_or_applied_in_each_call(kind: Any, options: dict[str, Any]) -> None:
    hint = Annotated[kind, Field(**options)]
    applied = all(is_applied(hint, value) for value in TYPES[kind])
    try:
        tool = registered(hint)
    except SchemaError:
        assert not applied or kind is Any
        return
    assert applied
    for value in TYPES[kind]:
        with suppress(InvalidArguments):  # it may be another value than is wanted, which the model is told
            tool.validate({"x": value}, lenient=False)


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        (
            Annotated[int, Field(min_length=3)],
            "take: parameter 'x' has type int, but min_length=3 cannot be applied to int; remove it",
        ),
        (
            Annotated[int | str, Field(max_length=3)],
            "has type int | str, but max_length=3 cannot be applied to int; write it only at the types that it is for",
        ),
        (list[Annotated[str, Field(ge=1)]], "but ge=1 cannot be applied to str; remove it"),
        (dict[str, Annotated[bool, Field(pattern="a")]], "but pattern='a' cannot be applied to bool; remove it"),
        (Annotated[City, Field(min_length=1)], "has type City, but min_length=1 cannot be applied to City; remove it"),
        (Annotated[Colour, Field(ge=1)], "but ge=1 cannot be applied to Colour.RED; remove it"),
        (Annotated[str, Field(allow_inf_nan=False)], "but allow_inf_nan=False cannot be applied to str; remove it"),
        (
            Annotated[datetime.date, Field(ge=0)],
            "has type date, which pydantic refuses: 'ge' must be coercible to a date instance",
        ),
        (Annotated[str, Field(pattern="[")], "which pydantic refuses: regex parse error"),
        (
            Annotated[None, Field(strict=True)],
            "which pydantic refuses: Unable to apply constraint 'strict' to schema of type 'none'",
        ),
    ],
)
def test_it_is_refused_in_words(hint: Any, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        registered(hint)
    assert message in str(caught.value)


def test_what_the_authors_own_function_makes_of_a_value_is_not_known() -> None:
    tool = registered(Annotated[int, AfterValidator(str), Field(min_length=2)])
    assert tool.validate({"x": 12}, lenient=False) == {"x": "12"}
    with pytest.raises(InvalidArguments):
        tool.validate({"x": 1}, lenient=False)


def test_the_type_of_a_reply_is_held_to_the_same() -> None:
    with pytest.raises(SchemaError, match="output_type is int, but min_length=3 cannot be applied to int; remove it"):
        Output(Annotated[int, Field(min_length=3)])
