"""Null for what a model leaves out in strict mode, wherever an object stands: in unions, lists, dicts and itself."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, make_dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, create_model

from agentkit.schemas.flavours import openai_strict
from agentkit.schemas.walk import alternatives, child, type_of
from agentkit.schemas.words import InvalidArguments
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.coercion import has_choice, without_omitted
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.reply import Output

# ruff: noqa: ANN001, ANN202 (parameters that get their hint below)


@dataclass
class Circle:
    r: float
    name: str = "c"


@dataclass
class Box:
    w: float
    h: float = 1.0
    name: str = "b"


@dataclass
class Tree:
    name: str
    kids: list[Tree] = field(default_factory=list)


@dataclass
class Link:
    first: Link | Chain | None = None
    next: Link | Circle | None = None
    size: int = 3


@dataclass
class Chain:
    first: Link | Chain | None = None
    size: int = 4


@dataclass
class Note:
    text: str
    by: str | None = "me"


def tool(hint: Any) -> BoundTool:
    """A tool with the one parameter `x`."""

    def f(x): ...  # type: ignore[no-untyped-def]

    f.__annotations__ = {"x": hint}
    return ToolRegistry().register_function(f)


# ---------------------------------------------------------------- the property

DEFAULTS: dict[Any, Any] = {int: 1, str: "d", float: 0.5, bool: True, Literal["p", "q"]: "p", list[int]: None}
LEAVES: list[Any] = [int, str, float, bool, Literal["p", "q"], Circle, Box, Tree, Link, Note]


@st.composite
def classes(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Any:
    """A dataclass or model of up to three fields; those with a default are optional, and some of them nullable.

    A model ignores unknown names, so it accepts more than strict mode lets a model write for it.
    """
    fields: list[Any] = [("a", draw(inner))] if draw(st.booleans()) else []
    for name in draw(st.sets(st.sampled_from("bcd"), max_size=2)):
        hint, nullable = draw(st.sampled_from(list(DEFAULTS))), draw(st.booleans())
        default = field(default_factory=list) if hint == list[int] else field(default=DEFAULTS[hint])
        fields.append((name, hint | None if nullable else hint, default))
    if draw(st.booleans()):
        given: dict[str, Any] = {name: (hint, _of_model(*default)) for name, hint, *default in fields}
        return create_model("C", **given)
    return make_dataclass("C", fields)


def _of_model(default: Any = None) -> Any:
    """A dataclass field's default, as pydantic has it."""
    if default is None:
        return ...
    return default.default if default.default_factory is MISSING else []


def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda t: list[t]),  # type: ignore[valid-type]
        inner.map(lambda t: dict[str, t]),  # type: ignore[valid-type]
        inner.map(lambda t: t | None),
        st.tuples(inner, inner).map(lambda t: t[0] | t[1]),
        classes(inner),
    )


HINTS = st.recursive(st.sampled_from(LEAVES) | classes(st.sampled_from(LEAVES)), around, max_leaves=4)


@st.composite
def sent(draw: st.DrawFn, schema: dict[str, Any], root: dict[str, Any], depth: int = 0) -> Any:
    """A value that strict mode allows: every property of an object, null for any that is optional."""
    options = list(alternatives(schema, root))
    shallow = [o for o in options if o["type"] not in ("object", "array")]
    option = draw(st.sampled_from(shallow if depth > 5 and shallow else options))
    if "enum" in option or "const" in option:
        return draw(st.sampled_from(option.get("enum") or [option["const"]]))
    match option["type"]:
        case "object" if (more := option.get("additionalProperties")) and "properties" not in option:
            return {name: draw(sent(more, root, depth + 1)) for name in draw(st.sets(st.sampled_from("abr")))}
        case "object":
            properties, required = option.get("properties", {}), option.get("required", ())
            nulls = {n for n in properties if n not in required and (depth > 4 or draw(st.booleans()))}
            return {n: None if n in nulls else draw(sent(s, root, depth + 1)) for n, s in properties.items()}
        case "array":
            size = 0 if depth > 4 else draw(st.integers(0, 2))
            return [draw(sent(option["items"], root, depth + 1)) for _ in range(size)]
        case kind:
            some = {"integer": [3, 7.0], "number": [2.5, 4.0, 6], "string": ["s", "p"], "boolean": [True]}
            return draw(st.sampled_from(some.get(kind, [None])))


def readings(value: Any, schema: Any, root: dict[str, Any]) -> Iterator[Any]:
    """All that a value can mean: by each alternative that it matches as strict mode has it, without its nulls."""
    options = list(alternatives(schema, root))
    kinds = {option["type"] for option in options}
    for option in options:
        names = option.get("properties", {})
        if isinstance(value, list) and option["type"] == "array":
            parts = [list(readings(item, child(option, i), root)) for i, item in enumerate(value)]
            yield from map(list, itertools.product(*parts))
        elif isinstance(value, dict) and option["type"] == "object":
            optional = names.keys() - set(option.get("required", ()))
            left = {n for n in optional if value.get(n) is None and None not in readings(None, names[n], root)}
            kept = [n for n in value if n not in left]
            if value.keys() == names.keys() or (not names and option.get("additionalProperties")):
                found = [list(readings(value[n], child(option, n), root)) for n in kept]
                yield from (dict(zip(kept, each, strict=True)) for each in itertools.product(*found))
        elif type_of(value) not in ("array", "object") and Draft202012Validator(option).is_valid(value):
            whole = isinstance(value, float) and option["type"] == "integer" and "number" not in kinds
            yield int(value) if whole else value


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(HINTS, st.data())
def test_all_that_strict_mode_allows_is_accepted_and_means_the_value_without_its_nulls(
    hint: Any, data: st.DataObject
) -> None:
    bound = tool(hint)
    schema = dict(bound.spec.parameters)
    arguments = {"x": data.draw(sent(schema["properties"]["x"], schema))}
    if '"additionalProperties": {' not in json.dumps(schema):
        offered = openai_strict(bound.spec)[0]["function"]["parameters"]
        assert Draft202012Validator(offered).is_valid(arguments)
    meant = list(itertools.islice(readings(arguments, schema, schema), 50))
    assume(meant)
    accept = bound.validate(arguments, lenient=False)
    assert accept in [bound.validate(one, lenient=False) for one in meant]
    if arguments in meant:  # no null must be left out
        assert accept == bound.validate(arguments, lenient=True)


# ---------------------------------------------------------------- by example


class Flat(BaseModel):
    x: float
    y: float


class Solid(Flat):
    z: float = 0.0
    label: str = ""


@pytest.mark.parametrize(
    ("hint", "value", "got"),
    [
        (Circle | Box, {"r": 1, "name": None}, Circle(1)),
        (Circle | Box, {"w": 1, "h": None, "name": None}, Box(1)),
        (list[Circle | Box], [{"r": 1, "name": "x"}, {"w": 1, "h": 2, "name": None}], [Circle(1, "x"), Box(1, 2)]),
        (list[Circle] | list[Box], [{"w": 1, "h": None, "name": None}], [Box(1)]),
        (dict[str, Circle | Box], {"a": {"r": 1, "name": None}}, {"a": Circle(1)}),
        (Tree | dict[str, int], {"name": "a", "kids": [{"name": "b", "kids": None}]}, Tree("a", [Tree("b")])),
        (Circle | dict[str, str], {"r": 1, "name": None}, Circle(1)),
        (Circle | Note, {"text": "hi", "by": None}, Note("hi", None)),
        (list[Circle | Note], [{"r": 1, "name": None}, {"text": "hi", "by": None}], [Circle(1), Note("hi", None)]),
        (Flat | Solid, {"x": 1, "y": 2, "z": 3, "label": None}, Solid(x=1, y=2, z=3)),
        (dict[str, str | None] | Circle, {"name": None}, {"name": None}),
    ],
)
def test_null_in_a_member_of_a_union(hint: Any, value: Any, got: Any) -> None:
    assert tool(hint).validate({"x": value}, lenient=False) == {"x": got}
    assert tool(hint).validate({"x": value}, lenient=True) == {"x": got}


def test_null_in_a_reply() -> None:
    assert Output(Circle | Box).read('{"w": 2, "h": null, "name": null}') == Box(2)
    assert Output(list[Circle | Box]).read('{"value": [{"r": 1, "name": null}]}') == [Circle(1)]


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Circle | Box, {"r": None, "name": None}),
        (Circle | Box, {"r": "1", "name": None}),
        (Circle | Box, {"name": None}),
        (list[Circle] | list[Box], [{"w": 1, "name": None}, {"r": 1, "name": None}]),
        (Circle | Box, None),
    ],
)
def test_what_matches_no_member_is_refused(hint: Any, value: Any) -> None:
    with pytest.raises(InvalidArguments):
        tool(hint).validate({"x": value}, lenient=False)


class Word(BaseModel):
    letters: Annotated[str, Field(pattern=r"^\p{L}+$")]
    name: str = "w"


def test_a_pattern_that_python_has_not_raises_nothing() -> None:
    assert tool(Word | Box).validate({"x": {"letters": "é", "name": None}}, lenient=False) == {"x": Word(letters="é")}
    for hint in (Word, Word | Box):
        with pytest.raises(InvalidArguments, match="/x/letters"):
            tool(hint).validate({"x": {"letters": "1", "name": None}}, lenient=False)


def test_a_deep_value_is_read_to_the_end() -> None:
    value: Any = {"name": "leaf", "kids": None}
    for _ in range(50):
        value = {"name": "a", "kids": [value]}
    found = tool(Tree).validate({"x": value}, lenient=False)["x"]
    while found.kids:
        (found,) = found.kids
    assert found == Tree("leaf")


@pytest.mark.parametrize(
    ("hint", "choice"),
    [
        (Circle | Box, True),
        (list[Tree] | list[int], True),
        (dict[str, list[Circle | Box]], True),
        (Link, True),
        (Tree | str | None, False),
        (list[int] | dict[str, int], False),
    ],
)
def test_only_a_tool_with_a_choice_of_members_looks_for_null_first(hint: Any, choice: bool) -> None:
    schema = tool(hint).spec.parameters
    assert has_choice(schema, schema) is choice


def test_alternatives_within_each_other_take_no_power_of_time() -> None:
    """Each `Link` may hold a `Link` in two ways that both fail; trying all would take 2 to the power of 100 steps."""
    value: Any = {"r": "wrong", "name": None}
    for _ in range(100):
        value = {"first": value, "next": None, "size": 3}
    schema = tool(Link | Chain).spec.parameters
    assert without_omitted({"x": value}, schema) == {"x": value}
