"""Signatures, hints and docstrings to JSON Schema in, typed Python values out."""

from __future__ import annotations

import datetime as dt
import enum
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Required, TypedDict, Union
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field
from typing_extensions import Doc, TypeAliasType

from agentkit.errors import SchemaError
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.declare import openapi_schema
from agentkit.tool.docstrings import Docstring, read_docstring
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolContext
from agentkit.tool.signature import read_signature

# ruff: noqa: ANN001, ANN202, B006, D417, UP007, UP045 (every way to write a hint, a default and a docstring)


class Color(enum.Enum):
    """The colours there are."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Tree:
    value: int
    children: list[Tree] = field(default_factory=list)


class Movie(TypedDict):
    title: str
    sequel: NotRequired[Movie]


class Options(TypedDict, total=False):
    limit: int
    movie: Required[Movie]


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Person(BaseModel):
    name: str = Field(description="full name", title="Name")
    title: str | None = None
    friends: list[Person] = []


Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | str | int | None")

TREE = {
    "type": "object",
    "properties": {
        "value": {"type": "integer"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
    },
    "required": ["value"],
    "additionalProperties": False,
}

TYPES: list[tuple[Any, Any, Any, dict[str, Any]]] = [
    # hint, what the model sends, what the method gets, the schema the model sees
    (str, "a", "a", {"type": "string"}),
    (int, 5, 5, {"type": "integer"}),
    (float, 5, 5.0, {"type": "number"}),
    (bool, True, True, {"type": "boolean"}),
    (None, None, None, {"type": "null"}),
    (Any, {"a": [1]}, {"a": [1]}, {}),
    (Optional[int], None, None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Union[int, str], "5", "5", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (int | str, 5, 5, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (Literal["a", "b"], "b", "b", {"enum": ["a", "b"], "type": "string"}),
    (Literal["a", 1], 1, 1, {"enum": ["a", 1]}),
    (list[int], [1, 2], [1, 2], {"type": "array", "items": {"type": "integer"}}),
    (list, [1, "a"], [1, "a"], {"type": "array", "items": {}}),
    (Iterable[int], [1], [1], {"type": "array", "items": {"type": "integer"}}),
    (Sequence[str], ["a"], ["a"], {"type": "array", "items": {"type": "string"}}),
    (dict[str, int], {"a": 1}, {"a": 1}, {"type": "object", "additionalProperties": {"type": "integer"}}),
    (dict[int, str], {"1": "a"}, {1: "a"}, {"type": "object", "additionalProperties": {"type": "string"}}),
    (Mapping[str, Any], {"a": 1}, {"a": 1}, {"type": "object", "additionalProperties": True}),
    (
        tuple[int, str],
        [1, "a"],
        (1, "a"),
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
    ),
    (tuple[int, ...], [1, 2], (1, 2), {"type": "array", "items": {"type": "integer"}}),
    (set[str], ["a", "b"], {"a", "b"}, {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (frozenset[int], [1], frozenset({1}), {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
    (
        dt.datetime,
        "2025-01-31T12:00:00Z",
        dt.datetime(2025, 1, 31, 12, tzinfo=dt.UTC),
        {"type": "string", "format": "date-time"},
    ),
    (dt.date, "2025-01-31", dt.date(2025, 1, 31), {"type": "string", "format": "date"}),
    (dt.time, "12:30:00", dt.time(12, 30), {"type": "string", "format": "time"}),
    (dt.timedelta, "PT90S", dt.timedelta(seconds=90), {"type": "string", "format": "duration"}),
    (Path, "a/b.txt", Path("a/b.txt"), {"type": "string", "format": "path"}),
    (UUID, "00000000-0000-0000-0000-000000000001", UUID(int=1), {"type": "string", "format": "uuid"}),
    (
        Decimal,
        "1.10",
        Decimal("1.10"),
        {"anyOf": [{"type": "number"}, {"type": "string", "format": "decimal"}]},
    ),
    (bytes, "ab", b"ab", {"type": "string", "format": "binary"}),
    (Annotated[int, Field(ge=1, le=5)], 3, 3, {"type": "integer", "minimum": 1, "maximum": 5}),
    (Annotated[str, Field(max_length=3)], "abc", "abc", {"type": "string", "maxLength": 3}),
]

NESTED: list[tuple[Any, Any, Any, str]] = [
    # hint, what the model sends, what the method gets, the type's name in $defs
    (Color, "red", Color.RED, "Color"),
    (Color | None, "blue", Color.BLUE, "Color"),
    (Level, 2, Level.HIGH, "Level"),
    (Point, {"x": 1}, Point(1), "Point"),
    (list[Point], [{"x": 1}, {"x": 2, "y": 3}], [Point(1), Point(2, 3)], "Point"),
    (dict[str, list[Point]], {"a": [{"x": 1}]}, {"a": [Point(1)]}, "Point"),
    (Point | str, {"x": 1}, Point(1), "Point"),
    (Tree, {"value": 1, "children": [{"value": 2}]}, Tree(1, [Tree(2)]), "Tree"),
    (Movie, {"title": "Alien"}, {"title": "Alien"}, "Movie"),
    (
        Movie,
        {"title": "Alien", "sequel": {"title": "Aliens"}},
        {"title": "Alien", "sequel": {"title": "Aliens"}},
        "Movie",
    ),
    (list[Options], [{"movie": {"title": "A"}}], [{"movie": {"title": "A"}}], "Options"),
    (Options | None, {"limit": 1, "movie": {"title": "A"}}, {"limit": 1, "movie": {"title": "A"}}, "Movie"),
    (Pair, [1], Pair(1, "r"), "Pair"),
    (Json, {"a": [1, None]}, {"a": [1, None]}, "Json"),
    (
        Person,
        {"name": "Ada", "friends": [{"name": "Bob"}]},
        Person(name="Ada", friends=[Person(name="Bob")]),
        "Person",
    ),
]


def tool(hint: Any, *default: Any) -> BoundTool:
    """A tool with the one parameter `x`."""

    def f(x):  # type: ignore[no-untyped-def]
        return x

    f.__annotations__ = {"x": hint}
    f.__defaults__ = default or None
    return ToolRegistry().register_function(f)


@pytest.mark.parametrize(
    ("hint", "sent", "received", "schema"), TYPES, ids=lambda v: str(sorted(v) if isinstance(v, set) else v)[:30]
)
def test_a_type_and_its_schema(hint: Any, sent: Any, received: Any, schema: dict[str, Any]) -> None:
    bound = tool(hint)
    assert bound.spec.parameters == {
        "type": "object",
        "properties": {"x": schema},
        "required": ["x"],
        "additionalProperties": False,
    }
    got = bound.validate({"x": sent}, lenient=False)
    assert (got, type(got["x"])) == ({"x": received}, type(received))


@pytest.mark.parametrize(
    ("hint", "sent", "received", "name"), NESTED, ids=lambda v: str(sorted(v) if isinstance(v, set) else v)[:30]
)
def test_a_named_type_stands_in_defs(hint: Any, sent: Any, received: Any, name: str) -> None:
    bound = tool(hint)
    schema = bound.spec.parameters
    assert name in schema["$defs"]
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate({"x": sent})
    assert bound.validate({"x": sent}, lenient=False) == {"x": received}


def test_a_field_that_a_constructor_does_not_take_is_not_shown() -> None:
    @dataclass
    class Box:
        width: int
        area: int = field(init=False, default=0)
        unit: str = field(init=False, default_factory=str)

    bound = tool(Box)
    assert list(bound.spec.parameters["$defs"]["Box"]["properties"]) == ["width"]


def test_a_recursive_type_refers_to_itself() -> None:
    assert tool(Tree).spec.parameters["$defs"] == {"Tree": TREE}


def test_titles_are_left_out_but_a_property_called_title_stays() -> None:
    person = tool(Person).spec.parameters["$defs"]["Person"]
    assert person["properties"]["name"] == {"type": "string", "description": "full name"}
    assert list(person["properties"]) == ["name", "title", "friends"]
    assert "title" not in person


def test_a_description_of_an_enum_is_kept() -> None:
    assert tool(Color).spec.parameters["$defs"]["Color"]["description"] == "The colours there are."


class Everything:
    @openapi_schema
    def everything(self, color: Color, points: list[Point], tree: Tree, when: dt.datetime, n: int = 1) -> str:
        return "ok"


def test_hints_written_as_text_are_resolved() -> None:
    """This module has `from __future__ import annotations`: every hint above is text."""
    (bound,) = ToolRegistry().register_tool(Everything)
    assert list(bound.spec.parameters["properties"]) == ["color", "points", "tree", "when", "n"]


def test_classes_defined_in_a_function_are_found_while_it_runs() -> None:
    @dataclass
    class Local:
        inner: Inner

    @dataclass
    class Inner:
        n: int

    class Tools:
        class Nested(enum.Enum):
            A = "a"

        @openapi_schema
        def use(self, local: Local, nested: Nested, again: list[Tools.Nested]) -> int:
            return local.inner.n

    kwargs = (
        ToolRegistry(Tools)
        .tools["use"]
        .validate({"local": {"inner": {"n": 1}}, "nested": "a", "again": ["a"]}, lenient=False)
    )
    assert kwargs == {"local": Local(Inner(1)), "nested": Tools.Nested.A, "again": [Tools.Nested.A]}


def test_a_local_class_is_not_found_after_its_function_has_returned() -> None:
    def make() -> Callable[..., Any]:
        @dataclass
        class Gone:
            n: int

        def use(gone: Gone) -> int:
            return 1

        return use

    with pytest.raises(
        SchemaError, match="the hint of parameter 'gone' uses 'Gone', which cannot be found; define Gone"
    ):
        ToolRegistry(make())


def test_a_local_class_that_the_function_itself_uses_is_found_after() -> None:
    def make() -> Callable[..., Any]:
        @dataclass
        class Kept:
            n: int

        def use(kept: Kept) -> bool:
            return isinstance(kept, Kept)

        return use

    use = make()
    bound = ToolRegistry().register_function(use)
    assert use(**bound.validate({"kept": {"n": 1}}, lenient=False))


def search(
    query: Annotated[str, "what to look for"],
    limit: Annotated[int, Field(description="how many", ge=1)] = 5,
    near: Annotated[Point | None, Doc("where")] = None,
    tags: Annotated[list[str], Field(max_length=3)] = [],
) -> str:
    """Search the shop.

    Args:
        query: overridden by the annotation
        tags: which tags
    """
    return query


def test_descriptions_bounds_and_defaults_reach_the_schema() -> None:
    assert ToolRegistry(search).specs()[0].parameters["properties"] == {
        "query": {"type": "string", "description": "what to look for"},
        "limit": {"type": "integer", "description": "how many", "minimum": 1, "default": 5},
        "near": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}], "description": "where", "default": None},
        "tags": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": 3,
            "description": "which tags",
            "default": [],
        },
    }


def test_the_decorators_description_wins() -> None:
    decorated = openapi_schema(query="the words")(partial(search).func)
    try:
        (spec,) = ToolRegistry(decorated).specs()
    finally:
        del search.tool_schemas  # type: ignore[attr-defined]
    assert spec.parameters["properties"]["query"]["description"] == "the words"


DEFAULTS: list[tuple[Any, Any, Any]] = [
    (Color, Color.RED, "red"),
    (Path, Path("a"), "a"),
    (tuple[int, ...], (1, 2), [1, 2]),
    (set[int], {1}, [1]),
    (Point, Point(1), {"x": 1, "y": 0}),
    (dt.date, dt.date(2025, 1, 31), "2025-01-31"),
    (float, 1, 1),
    (bool, False, False),
    (int | None, None, None),
]


@pytest.mark.parametrize(("hint", "default", "shown"), DEFAULTS, ids=str)
def test_a_default_is_shown_as_json_and_stays_the_functions_own(hint: Any, default: Any, shown: Any) -> None:
    bound = tool(hint, default)
    assert bound.spec.parameters["properties"]["x"]["default"] == shown
    assert bound.spec.parameters["required"] == []
    assert bound.validate({}, lenient=False) == {}
    assert bound.invoke({}, ToolContext("1", "f")) is default


def test_a_default_that_json_does_not_carry_is_not_shown() -> None:
    missing = object()
    bound = tool(int, missing)
    assert bound.spec.parameters["properties"]["x"] == {"type": "integer"}
    assert bound.invoke({}, ToolContext("1", "f")) is missing


def test_a_default_of_none_allows_null() -> None:
    bound = tool(int, None)
    assert bound.spec.parameters["properties"]["x"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "default": None,
    }
    assert bound.validate({"x": None}, lenient=False) == {"x": None}
    assert tool(Annotated[int, "how many"], None).spec.parameters["properties"]["x"]["description"] == "how many"


def test_parameters_of_any_name_are_taken() -> None:
    def odd(self_: int, _private: int, model_config: int, schema: int, copy: int, json: int, cls: int) -> None: ...

    sent = dict.fromkeys(["self_", "_private", "model_config", "schema", "copy", "json", "cls"], 1)
    assert ToolRegistry(odd).tools["odd"].validate(sent, lenient=False) == sent


def test_the_context_is_injected_and_hidden() -> None:
    class Tools:
        @openapi_schema
        def who(self, name: str, context: ToolContext, again: ToolContext | None = None) -> Any:
            """Say who.

            Args:
                name: the name
                context: filled in by the run
            """
            return name, context, again

    (bound,) = ToolRegistry().register_tool(Tools)
    context = ToolContext("call_1", "who", {"user": 7})

    assert bound.spec.parameters["properties"] == {"name": {"type": "string", "description": "the name"}}
    assert bound.invoke({"name": "Ada"}, context) == ("Ada", context, context)
    with pytest.raises(ValueError, match=r"/context: expected one of the names \"name\", found the unknown name"):
        bound.validate({"name": "Ada", "context": {}}, lenient=False)


def test_bound_methods_partials_and_callable_objects_are_functions() -> None:
    class Calculator:
        def __init__(self, base: int) -> None:
            self.base = base

        def add(self, n: int) -> int:
            """Add to the base."""
            return self.base + n

        async def __call__(self, n: int) -> int:
            return n

    registry = ToolRegistry(Calculator(10).add)
    registry.register_function(partial(Calculator(1).add, n=5), "six")
    registry.register_function(Calculator(2), "call")

    add, six, call = registry.tools.values()
    assert add.invoke({"n": 5}, ToolContext("1", "add")) == 15
    assert (add.instance.base, add.description) == (10, "Add to the base.")
    assert six.spec.parameters["properties"]["n"] == {"type": "integer", "default": 5}
    assert six.description == "Add to the base."
    assert six.invoke({}, ToolContext("1", "six")) == 6
    assert call.is_async


def test_a_plain_namedtuple_is_an_array_of_anything() -> None:
    Plain = namedtuple("Plain", "a b")
    assert tool(Plain).validate({"x": [1, "b"]}, lenient=False) == {"x": Plain(1, "b")}


GOOGLE = """Move a file.

    Keeps its owner.

    Args:
        src (str): from where,
            in full
        dst: to where: a path
        *rest: more

    Returns:
        nothing
    """
NUMPY = """Move a file.

    Keeps its owner.

    Parameters
    ----------
    src : str
        from where,
        in full
    dst
        to where: a path
    *rest
        more

    Returns
    -------
    None
    """
SPHINX = """Move a file.

    Keeps its owner.

    :param str src: from where,
        in full
    :param dst: to where: a path
    :param rest: more
    :returns: nothing
    """
EPYDOC = """Move a file.

    Keeps its owner.

    @param src: from where,
        in full
    @param dst: to where: a path
    @param rest: more
    @return: nothing
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX, EPYDOC], ids=["google", "numpy", "sphinx", "epydoc"])
def test_docstrings_of_four_styles_say_the_same(text: str) -> None:
    assert read_docstring(text) == Docstring(
        "Move a file.\n\nKeeps its owner.",
        {"src": "from where,\nin full", "dst": "to where: a path", "rest": "more"},
    )


@pytest.mark.parametrize(
    ("text", "docstring"),
    [
        (None, Docstring()),
        ("", Docstring()),
        ("Ping the server", Docstring("Ping the server")),
        ("One line: with a colon.", Docstring("One line: with a colon.")),
        ("Two\nlines here", Docstring("Two\nlines here")),
        ("Move.\n\nAttributes:\n    a: no parameter", Docstring("Move.")),
        ("Plot.\n\nParameters\n----------\nx, y : int\n    where", Docstring("Plot.", {"x": "where", "y": "where"})),
    ],
)
def test_other_docstrings(text: str | None, docstring: Docstring) -> None:
    assert read_docstring(text) == docstring


LINES = st.sampled_from(
    [
        *("Args:", "Parameters", "-----", "Returns:", "Raises", "text", ":", "@", "", "    ", ">>> f({})"),
        *("  a: b", "a : int", ":param x: y", ":param", "   :type x: int", ":returns:", "@param z: q", ":x:`y` z"),
    ]
)


@pytest.mark.parametrize(
    "text",
    [
        "Args:\n    a: first\n    b: second",
        "Parameters\n----------\na : int\n    first\nb : int\n    second",
        ":param a: first\n:param b: second",
        "@param a: first\n@param b: second",
    ],
)
def test_docstring_that_begins_with_its_parameters(text: str) -> None:
    assert read_docstring(text) == Docstring("", {"a": "first", "b": "second"})


@given(st.lists(LINES).map("\n".join) | st.text())
def test_no_docstring_whatever_stops_a_registration_by_an_error_of_the_parser(text: str) -> None:
    docstring = read_docstring(text)
    assert (docstring != Docstring()) == bool(text.strip())


def test_a_docstring_that_is_inherited_may_document_other_parameters() -> None:
    class Base:
        @openapi_schema
        def read(self, path: str, lines: int = 1) -> str:
            """Read.

            Args:
                path: the file
                lines: how many
            """
            return path

    class Simple(Base):
        def read(self, path: str) -> str:  # type: ignore[override]
            return path

    assert ToolRegistry(Simple).specs()[0].parameters["properties"] == {
        "path": {"type": "string", "description": "the file"}
    }


def test_a_signature_is_read_without_pydantic() -> None:
    signature = read_signature(search)
    assert (signature.where, signature.names) == ("search", ("query", "limit", "near", "tags"))
    assert [p.required for p in signature.parameters] == [True, False, False, False]
