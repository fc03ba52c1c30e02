"""The decorators: every form, in either order, on every kind of method; they store and return what they got."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from itertools import product
from typing import Any, Literal

import pytest

from agentkit import formats
from agentkit.errors import SchemaError
from agentkit.messages import ToolCall
from agentkit.tool.declare import OpenAPISchema, SchemaType, XMLMapping, XMLSchema, openapi_schema, xml_schema
from agentkit.tool.registry import ToolRegistry
from agentkit.toolspec import Element, Node

# ruff: noqa: ANN001, ANN202, D417 (parameters described by other means than a docstring, or by a schema only)

READ_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "the file"}, "lines": {"type": "integer", "default": 10}},
    "required": ["path"],
    "additionalProperties": False,
}


class Bare:
    @openapi_schema
    def read(self, path: str, lines: int = 10) -> str:
        """Read a file.

        Args:
            path: the file
        """
        return f"{path}:{lines}"


class Called:
    @openapi_schema()
    def read(self, path: str, lines: int = 10) -> str:
        """Read a file.

        Args:
            path: the file
        """
        return f"{path}:{lines}"


class Keywords:
    @openapi_schema(description="Read a file.", path="the file")
    def read(self, path: str, lines: int = 10) -> str:
        return f"{path}:{lines}"


class Parameters:
    @openapi_schema(description="Read a file.", parameters={"path": "the file"})
    def read(self, path: str, lines: int = 10) -> str:
        return f"{path}:{lines}"


class OpenAIFunction:
    @openapi_schema(
        {"type": "function", "function": {"name": "read", "description": "Read a file.", "parameters": READ_SCHEMA}}
    )
    def read(self, path: str, lines: int = 10) -> str:
        return f"{path}:{lines}"


class InnerPart:
    @openapi_schema({"name": "read", "description": "Read a file.", "parameters": READ_SCHEMA})
    def read(self, path: str, lines: int = 10) -> str:
        return f"{path}:{lines}"


class Responses:
    @openapi_schema({"type": "function", "name": "read", "description": "Read a file.", "parameters": READ_SCHEMA})
    def read(self, path: str, lines: int = 10) -> str:
        return f"{path}:{lines}"


class Anthropic:
    @openapi_schema({"name": "read", "description": "Read a file.", "input_schema": READ_SCHEMA})
    def read(self, path: str, lines: int = 10) -> str:
        return f"{path}:{lines}"


class JSONSchema:
    @openapi_schema(READ_SCHEMA)
    def read(self, path: str, lines: int = 10) -> str:
        """Read a file."""
        return f"{path}:{lines}"


FORMS = [Bare, Called, Keywords, Parameters, OpenAIFunction, InnerPart, Responses, Anthropic, JSONSchema]


@pytest.mark.parametrize("tool", FORMS)
def test_every_form_declares_the_same_tool(tool: type) -> None:
    (bound,) = ToolRegistry().register_tool(tool)

    assert (bound.name, bound.description, bound.spec.parameters) == ("read", "Read a file.", READ_SCHEMA)
    assert bound.method(**bound.validate({"path": "a"}, lenient=False)) == "a:10"


@pytest.mark.parametrize("tool", FORMS)
def test_a_decorated_method_is_the_function_it_was(tool: Any) -> None:
    assert inspect.isfunction(tool.read)
    assert tool().read("a", lines=1) == "a:1"
    assert [schema.schema_type for schema in tool.read.tool_schemas] == [SchemaType.OPENAPI]


def test_decorators_return_the_very_object_they_got() -> None:
    def f(x: int) -> int:
        return x

    static, cls = staticmethod(f), classmethod(f)

    assert openapi_schema(f) is f
    assert openapi_schema(description="d")(f) is f
    assert xml_schema(f) is f
    assert xml_schema(name="f", content="x")(f) is f
    assert openapi_schema(static) is static
    assert xml_schema(cls) is cls


def test_each_decorator_appends_one_frozen_declaration() -> None:
    @openapi_schema(description="Add.", a="the first")
    @xml_schema(name="plus", attributes=["a"], elements=["b"])
    def add(a: int, b: int) -> int:
        return a + b

    assert add.tool_schemas == [  # type: ignore[attr-defined]
        XMLSchema("plus", (XMLMapping("a", "attribute"), XMLMapping("b", "element"))),
        OpenAPISchema("Add.", keywords={"a": "the first"}),
    ]


def test_strip_takes_white_space_around_values_away_where_it_is_asked_for() -> None:
    class Shell:
        @xml_schema(name="run", attributes=["where"], content="code", strip=True)
        def run(self, where: str, code: str) -> None: ...

        @xml_schema(name="swap", elements=["old", "new"], strip=True)
        def swap(self, old: str, new: str) -> None: ...

        @xml_schema(name="exact", content="code")
        def exact(self, code: str) -> None: ...

    specs = ToolRegistry(Shell()).specs()
    text = (
        '<run where=" a ">\n    x = 1\n</run>'
        "<swap><old>\n a b \n</old><new><![CDATA[ c ]]></new></swap>"
        "<exact>\n    x = 1\n</exact>"
    )
    assert [call.arguments for call in formats.calls(formats.parse(text, "xml", specs))] == [
        {"where": " a ", "code": "x = 1"},
        {"old": "a b", "new": " c "},
        {"code": "    x = 1\n"},
    ]


def test_a_declaration_does_not_change_with_the_dict_it_was_made_from() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}

    @openapi_schema(schema)
    def f(x: int) -> int:
        return x

    schema["required"] = []
    assert ToolRegistry(f).specs()[0].parameters["required"] == ["x"]


Decorate = Callable[[Any], Any]
BOTH_ORDERS: list[Decorate] = [
    lambda f: openapi_schema(xml_schema(f)),
    lambda f: xml_schema(openapi_schema(f)),
]


@pytest.mark.parametrize("both", BOTH_ORDERS)
def test_stacking_works_in_either_order_on_every_kind_of_method(both: Decorate) -> None:
    class Kinds:
        @both
        def plain(self, x: int) -> int:
            return x

        @both
        async def asynchronous(self, x: int) -> int:
            return x

        @both
        @staticmethod
        def static_outside(x: int) -> int:
            return x

        @staticmethod
        @both
        def static_inside(x: int) -> int:
            return x

        @both
        @classmethod
        def class_outside(cls, x: int) -> int:
            assert cls is Kinds
            return x

        @classmethod
        @both
        def class_inside(cls, x: int) -> int:
            assert cls is Kinds
            return x

    registry = ToolRegistry(Kinds)

    assert list(registry.tools) == [
        *("plain", "asynchronous", "static_outside", "static_inside", "class_outside", "class_inside")
    ]
    assert [bound.is_async for bound in registry.tools.values()] == [False, True, False, False, False, False]
    assert registry.xml_tools["static-outside"] is registry.tools["static_outside"]
    for bound in registry.tools.values():
        assert list(bound.spec.parameters["properties"]) == ["x"]
        result = bound.method(**bound.validate({"x": 5}, lenient=False))
        if inspect.iscoroutine(result):
            result.close()
        else:
            assert result == 5


def test_other_decorators_above_and_below_are_seen_through() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return ["logged", function(*args, **kwargs)]

        return wrapper

    class Tools:
        @logged
        @openapi_schema
        def above(self, x: int) -> int:
            """Above."""
            return x

        @openapi_schema
        @logged
        def below(self, x: int) -> int:
            """Below."""
            return x

    registry = ToolRegistry(Tools)
    assert [spec.description for spec in registry.specs()] == ["Above.", "Below."]
    assert [b.method(**b.validate({"x": 1}, lenient=False)) for b in registry.tools.values()] == [["logged", 1]] * 2


class Files:
    @openapi_schema(description="Read a file.", path="the file")
    @xml_schema(name="read", attributes=["path"])
    def read(self, path: str) -> str:
        return path

    @openapi_schema
    def drop(self, path: str) -> str:
        """Delete a file."""
        return path


def test_methods_are_inherited() -> None:
    class Inherited(Files):
        @openapi_schema
        def write(self, path: str) -> str:
            return path

    assert list(ToolRegistry(Inherited).tools) == ["read", "drop", "write"]


def test_an_override_without_a_decorator_keeps_the_declarations_and_brings_its_own_signature() -> None:
    class Limited(Files):
        def read(self, path: str, limit: int = 5) -> str:
            return path[:limit]

    bound = ToolRegistry(Limited).xml_tools["read"]
    assert bound.description == "Read a file."
    assert bound.validate({"path": "a", "limit": 1}, lenient=False) == {"path": "a", "limit": 1}


def test_an_override_with_a_decorator_replaces_that_kind_only() -> None:
    class Renamed(Files):
        @xml_schema(name="cat", attributes=["path"])
        def read(self, path: str) -> str:
            return path

    bound = ToolRegistry(Renamed).tools["read"]
    assert (bound.tag, bound.description) == ("cat", "Read a file.")


def test_an_override_by_what_cannot_be_called_withdraws_the_method() -> None:
    class ReadOnly(Files):
        drop = None  # type: ignore[assignment]

    assert list(ToolRegistry(ReadOnly).tools) == ["read"]


def test_an_override_inherits_the_docstring() -> None:
    class Quiet(Files):
        def drop(self, path: str) -> str:
            return "kept"

    assert ToolRegistry(Quiet).tools["drop"].description == "Delete a file."


def test_a_method_under_another_attribute_is_called_by_that_name() -> None:
    class Alias(Files):
        cat = Files.drop

    assert list(ToolRegistry(Alias).tools) == ["read", "drop", "cat"]


def xml(decorator: Any, function: Callable[..., Any]) -> Element:
    element = ToolRegistry(decorator(function)).specs()[0].element
    assert element is not None
    return element


def edit(path: str, mode: Literal["a", "b"], text: str, limit: int = 1, loud: bool | None = None) -> str:
    return path


def test_the_bare_xml_decorator_makes_attributes_of_short_scalars_and_elements_of_the_rest() -> None:
    assert xml(xml_schema, edit) == Element(
        "edit",
        (
            Node("path", "element", ("path",)),
            Node("mode", "attribute", ("mode",)),
            Node("text", "element", ("text",)),
            Node("limit", "attribute", ("limit",), required=False),
            Node("loud", "attribute", ("loud",), required=False),
        ),
    )


SHORT = xml_schema("edit", attributes=["path", "mode"], content="text")
LONG = xml_schema(
    tag_name="edit",
    mappings=[
        {"param_name": "path", "node_type": "attribute", "path": "."},
        {"param_name": "mode", "node_type": "attribute", "path": "mode", "required": True},
        {"param_name": "text", "node_type": "content", "path": "."},
    ],
)
TEXT = xml_schema(
    "edit",
    mappings=[
        XMLMapping("path", "attribute"),
        {"param_name": "mode", "node_type": "attribute"},
        {"param_name": "text", "node_type": "text"},
    ],
)


@pytest.mark.parametrize("decorator", [SHORT, LONG, TEXT])
def test_the_short_and_the_long_xml_form_declare_the_same_element(decorator: Any) -> None:
    def fresh(path: str, mode: Literal["a", "b"], text: str, limit: int = 1) -> str:
        return path

    assert xml(decorator, fresh) == Element(
        "edit", (Node("path", "attribute", ("path",)), Node("mode", "attribute", ("mode",)), Node("text", "content"))
    )


def test_a_nested_path_is_an_element_inside_an_element() -> None:
    def search(query: str, limit: int = 5, sort: str = "date") -> str:
        return query

    element = xml(
        xml_schema(
            mappings=[
                {"param_name": "query", "node_type": "attribute", "path": "q"},
                {"param_name": "limit", "path": "options/limit", "required": False},
                {"param_name": "sort", "path": "options/sort"},
            ]
        ),
        search,
    )
    assert element.nodes == (
        Node("query", "attribute", ("q",)),
        Node("limit", "element", ("options", "limit"), required=False),
        Node("sort", "element", ("options", "sort"), required=False),
    )


@pytest.mark.parametrize(
    ("name", "tag"),
    [("create_file", "create-file"), ("readHTMLPage", "read-html-page"), ("_run", "run"), ("a__b", "a--b")],
)
def test_a_tag_is_the_name_in_kebab_case(name: str, tag: str) -> None:
    @xml_schema
    def function() -> None: ...

    function.__name__ = name
    assert list(ToolRegistry(function).xml_tools) == [tag]


def test_the_keyword_name_is_the_tools_name_unless_a_parameter_is_called_so() -> None:
    @openapi_schema(name="greeting")
    def hello(who: str) -> str:
        return who

    @openapi_schema(name="whom to greet")
    def greet(name: str) -> str:
        return name

    registry = ToolRegistry(hello, greet)
    assert list(registry.tools) == ["greeting", "greet"]
    assert registry.tools["greet"].spec.parameters["properties"]["name"]["description"] == "whom to greet"


def test_the_keyword_timeout_is_the_tools_limit_when_it_is_a_number() -> None:
    @openapi_schema(timeout=2.5)
    def limited(x: int) -> int:
        return x

    @openapi_schema(timeout="seconds to wait")
    def wait(timeout: int) -> int:
        return timeout

    registry = ToolRegistry(limited, wait)
    assert [bound.timeout for bound in registry.tools.values()] == [2.5, None]
    assert registry.tools["wait"].spec.parameters["properties"]["timeout"]["description"] == "seconds to wait"


def test_parameters_describes_names_that_are_also_keywords() -> None:
    @openapi_schema(description="Tag it.", parameters={"description": "the words", "parameters": "more"})
    def tag(description: str, parameters: str) -> str:
        return description

    (spec,) = ToolRegistry(tag).specs()
    assert spec.description == "Tag it."
    assert [p["description"] for p in spec.parameters["properties"].values()] == ["the words", "more"]


def test_a_schema_for_one_parameter_covers_a_missing_hint_and_is_enforced() -> None:
    @openapi_schema(parameters={"color": {"type": "string", "pattern": "^#"}, "n": {"type": "integer", "maximum": 3}})
    def paint(color, n: int = 1):  # type: ignore[no-untyped-def]
        return color

    (bound,) = ToolRegistry(paint).tools.values()
    assert bound.validate({"color": "#fff"}, lenient=False) == {"color": "#fff"}
    with pytest.raises(ValueError, match=r'/color: expected string \(matching \^#\), found string "red"'):
        bound.validate({"color": "red"}, lenient=False)
    with pytest.raises(ValueError, match=r"/n: expected integer \(<= 3\), found integer 4"):
        bound.validate({"color": "#fff", "n": 4}, lenient=False)


@pytest.mark.parametrize(
    ("decorate", "message"),
    [
        (lambda: openapi_schema("Read a file"), r"write @openapi_schema\(description="),
        (lambda: xml_schema("a", tag_name="b"), "two tags"),
        (lambda: xml_schema("a", attributes=["x"], mappings=[]), "not both"),
        (lambda: xml_schema("a", attributes="x"), r"attributes=\['x'\]"),
        (lambda: xml_schema("a", content=["x"]), "expected one parameter's name, found list"),
        (lambda: xml_schema("a", mappings=[{"name": "x"}]), "param_name"),
        (lambda: openapi_schema(Files), "decorate its methods"),
        (lambda: openapi_schema(len), "wrap it in a def"),
    ],
)
def test_what_can_never_be_a_declaration_is_refused_at_once(decorate: Callable[[], Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        decorate()


PATHS = ("a", "b", "z", "o/a", "b/x")


def test_an_element_is_the_parameter_that_is_declared_there_whatever_the_others_are_called() -> None:
    tried = 0
    for paths in product(PATHS, repeat=3):
        mapped = [{"param_name": name, "path": path} for name, path in zip("abc", paths, strict=True)]
        for mappings in (mapped, mapped[::-1], mapped[:2]):
            registry = ToolRegistry()

            def tool(a: str = "", b: str = "", c: str = "") -> str:
                return a + b + c

            try:
                registry.register_function(xml_schema(name="tool", mappings=mappings)(tool))
            except SchemaError:
                continue  # two in one place
            registry.get_xml_examples()
            for names in ("abc", "b"):
                call = ToolCall("", "tool", {name: f"the {name}" for name in names})
                text = formats.render_calls("xml", [call], registry.specs())
                assert formats.calls(formats.parse(text, "xml", registry.specs()))[0].arguments == call.arguments
            tried += 1
    assert tried > 150
