"""Every wrong definition is refused at registration, in words that name method and parameter and how to fix it."""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Self, TypedDict, Union

import pytest
from pydantic import AliasChoices, BaseModel, Field

from agentkit.errors import ConfigError, SchemaError
from agentkit.tool.declare import openapi_schema, xml_schema
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolContext

# ruff: noqa: ANN001, ANN201, ANN202, D417 (missing hints and descriptions are what is wrong here)

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypes


# mypy: disable-error-code="no-untyped-def, misc, no-untyped-call"


def refused(tool: Any, **kwargs: Any) -> str:
    """The message with which a tool is refused; nothing of it is registered."""
    registry = ToolRegistry()
    with pytest.raises(SchemaError) as caught:
        registry.register_tool(tool, **kwargs) if isinstance(tool, type) else registry.register(tool)
    assert (dict(registry.tools), dict(registry.xml_tools)) == ({}, {})
    return str(caught.value)


def test_no_hint() -> None:
    class Files:
        @openapi_schema
        def read(self, path):
            return path

    assert refused(Files) == (
        "Files.read: parameter 'path' has no type; annotate it (path: str), or write its schema: "
        "@openapi_schema(parameters={'path': {'type': 'string'}})"
    )


def test_variadic_positional() -> None:
    class Files:
        @openapi_schema
        def read(self, *paths: str):
            return paths

    assert refused(Files) == (
        "Files.read: parameter '*paths' is variadic, which no schema can describe; "
        "declare one list parameter, such as paths: list[str]"
    )


def test_variadic_keyword() -> None:
    class Files:
        @openapi_schema
        def read(self, **options: str):
            return options

    assert refused(Files) == (
        "Files.read: parameter '**options' is variadic, which no schema can describe; "
        "declare named parameters, or one options: dict[str, str]"
    )


def test_positional_only() -> None:
    class Files:
        @openapi_schema
        def read(self, path: str, /):
            return path

    assert refused(Files) == (
        "Files.read: parameter 'path' is positional-only, but tools are called by name; remove the '/' from the "
        "signature"
    )


def test_a_docstring_that_documents_an_absent_parameter() -> None:
    class Files:
        @openapi_schema
        def read(self, path: str):
            """Read a file.

            Args:
                file: the file
            """

    assert refused(Files) == (
        "Files.read: the docstring documents parameter 'file', which does not exist (parameters: 'path'); "
        "rename or remove it in the docstring"
    )


class Connection:
    """Something that no model can write."""


@pytest.mark.parametrize("hint", [Connection, list[Connection], Connection | None, Callable[[int], int]])
def test_a_type_without_a_schema(hint: Any) -> None:
    def query(sql: str, connection):
        return sql

    query.__annotations__["connection"] = hint
    message = refused(query)
    assert message.startswith("query: parameter 'connection' has type ")
    assert "has no JSON Schema; use a dataclass" in message
    assert "errors.pydantic.dev" not in message


def test_a_lambda() -> None:
    assert refused(lambda: 1) == (
        "a lambda has no name that a model could call; use a def, or register_function(..., name='...')"
    )


def test_a_callable_object_without_a_name() -> None:
    class Adder:
        def __call__(self, a: int) -> int:
            return a

    with pytest.raises(SchemaError, match=r"^a Adder object has no name"):
        ToolRegistry().register_function(Adder())
    assert ToolRegistry().register_function(Adder(), "add").validate({"a": 1}, lenient=False) == {"a": 1}


def test_a_name_that_providers_refuse() -> None:
    def größe() -> None: ...

    assert refused(größe) == (
        "größe: 'größe' cannot be a tool's name: providers accept 1 to 64 letters, digits, '_' and '-'; "
        "register it under another name"
    )
    assert ToolRegistry().register_function(größe, "size").name == "size"


class Files:
    @openapi_schema
    @xml_schema(name="read")
    def read(self, path: str):
        return path


def test_duplicate_function_names_name_both_owners() -> None:
    class Books:
        @openapi_schema
        def read(self, title: str):
            return title

    registry = ToolRegistry(Files)
    with pytest.raises(SchemaError) as caught:
        registry.register_tool(Books)
    assert str(caught.value) == (
        "Books.read: the function name 'read' is taken by Files.read; register one of them under another name: "
        "register_tool(..., {'read': 'new_name'}) or register_function(..., name='new_name')"
    )
    assert registry.tools["read"].where == "Files.read"


def test_duplicate_tags_name_both_owners() -> None:
    class Books:
        @xml_schema(name="read")
        def open_book(self, title: str):
            return title

    with pytest.raises(SchemaError, match=r"^Books.open_book: the XML tag 'read' is taken by Files.read; register one"):
        ToolRegistry(Files).register_tool(Books)


def test_duplicate_names_within_one_class_register_nothing() -> None:
    class Twice:
        @openapi_schema(name="go")
        def walk(self):
            return 1

        @openapi_schema(name="go")
        def run(self):
            return 2

    assert "Twice.run: the function name 'go' is taken by Twice.walk" in refused(Twice)


def test_an_unknown_name_in_the_decorator() -> None:
    class Files:
        @openapi_schema(description="Read", file="the file")
        def read(self, path: str, context: ToolContext):
            return path

    assert refused(Files) == (
        "Files.read: @openapi_schema describes parameter 'file', which does not exist (parameters: 'path'); "
        "rename or remove it"
    )


def test_a_description_of_the_context() -> None:
    @openapi_schema(context="the context")
    def read(path: str, context: ToolContext):
        return path

    assert refused(read) == "read: @openapi_schema describes 'context', which is the hidden ToolContext; remove it"


def test_a_description_that_is_no_string() -> None:
    @openapi_schema(path={"type": "string"})
    def read(path: str):
        return path

    assert refused(read).endswith("a JSON Schema goes into parameters={'path': {...}}")


def test_two_decorators_of_one_kind() -> None:
    @xml_schema(name="a")
    @xml_schema(name="b")
    def read(path: str):
        return path

    assert refused(read) == "read has 2 @xml_schema decorators; keep one"


def written(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"name": "read", "parameters": {"type": "object", "properties": properties, "required": required}}


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            written({"path": TEXT}, ["path"]),
            "parameter 'lines' is missing from the hand-written schema; add it to 'properties'",
        ),
        (
            written({"path": TEXT, "lines": NUMBER, "mode": TEXT}, ["path"]),
            "the hand-written schema has parameter 'mode', which is not in the signature; remove it there",
        ),
        (
            written({"path": TEXT, "lines": NUMBER, "context": {}}, ["path"]),
            "the hand-written schema has parameter 'context', which receives the ToolContext; remove it there",
        ),
        (
            written({"path": TEXT, "lines": NUMBER}, []),
            (
                "parameter 'path' has no default, but the hand-written schema does not require it; add it to "
                "'required', or give it a default"
            ),
        ),
        (
            written({"path": TEXT, "lines": NUMBER}, ["path", "lines"]),
            (
                "parameter 'lines' has a default, but the hand-written schema requires it; remove it from 'required', "
                "or remove the default"
            ),
        ),
        (
            written({"path": TEXT, "lines": {"type": "integer", "default": 20}}, ["path"]),
            (
                "parameter 'lines' has default 10 in the signature, but default 20 in the hand-written schema; make "
                "them the same"
            ),
        ),
        (
            written({"path": {"type": "string", "default": "."}, "lines": NUMBER}, ["path"]),
            (
                "parameter 'path' has no default in the signature, but default '.' in the hand-written schema; make "
                "them the same"
            ),
        ),
        (
            written({"path": TEXT, "lines": TEXT}, ["path"]),
            "parameter 'lines' is integer by its hint, but string in the hand-written schema; make them the same",
        ),
        (
            {"type": "object", "properties": {"path": {"type": "strin"}}},
            "not valid JSON Schema at properties/path/type",
        ),
        (
            written({"path": {"$ref": "#/$defs/Path"}, "lines": NUMBER}, ["path"]),
            "the hand-written schema refers to '#/$defs/Path', which it does not contain; put the definition under ",
        ),
        ({"parameters": {"type": "array"}}, "the hand-written schema must describe an object"),
        ({"title": "x"}, "the hand-written schema has the keys ['title']; write an OpenAI function"),
        ({}, "the hand-written schema has the keys []; write an OpenAI function"),
    ],
)
def test_a_hand_written_schema_that_disagrees_with_the_signature(schema: dict[str, Any], message: str) -> None:
    class Files:
        @openapi_schema(schema)
        def read(self, path: str, context: ToolContext, lines: int = 10):
            return path

    assert refused(Files).startswith("Files.read: ")
    assert message in refused(Files)


def test_a_hand_written_schema_with_descriptions_beside_it() -> None:
    @openapi_schema(written({"path": TEXT}, ["path"]), path="the file")
    def read(path: str):
        return path

    assert refused(read).endswith("descriptions of ['path']; move the descriptions into the schema")


@pytest.mark.parametrize(
    ("decorator", "message"),
    [
        (
            xml_schema(attributes=["path", "mode"], elements=["old"]),
            (
                "@xml_schema maps parameter 'mode', which does not exist (parameters: 'path', 'old', 'times'); rename "
                "or remove it"
            ),
        ),
        (
            xml_schema(attributes=["path"]),
            (
                "parameter 'old' is required, but @xml_schema does not map it, so an XML call could never succeed; "
                "add it to attributes, elements or content"
            ),
        ),
        (
            xml_schema(mappings=[]),
            (
                "parameter 'path' is required, but @xml_schema does not map it, so an XML call could never succeed; "
                "add it to attributes, elements or content"
            ),
        ),
        (
            xml_schema(
                mappings=[{"param_name": "path", "node_type": "content"}, {"param_name": "old", "node_type": "text"}]
            ),
            "@xml_schema has two contents, 'path' and 'old'; a tag has only one text",
        ),
        (
            xml_schema(content="old", elements=["path"]),
            (
                "@xml_schema has content ('old') together with elements ('path'), which cannot be told apart; make "
                "the content an element too, or the elements attributes"
            ),
        ),
        (
            xml_schema(
                mappings=[
                    {"param_name": "path", "node_type": "attribute", "path": "p"},
                    {"param_name": "old", "node_type": "attribute", "path": "p"},
                ]
            ),
            "@xml_schema puts parameters 'path' and 'old' into the same attribute 'p'; give one of them another path",
        ),
        (
            xml_schema(mappings=[{"param_name": "path", "path": "x"}, {"param_name": "old", "path": "x/y"}]),
            "@xml_schema puts parameters 'path' and 'old' into the same element 'x'; give one of them another path",
        ),
        (
            xml_schema(attributes=["path"], elements=["path", "old"]),
            "@xml_schema maps parameter 'path' 2 times; keep one",
        ),
        (
            xml_schema(name="my tag", attributes=["path", "old"]),
            (
                "@xml_schema has 'my tag' as tag, which is not an XML name; use ASCII letters, digits, '_', '-' and "
                "'.', starting with a letter or '_'"
            ),
        ),
        (
            xml_schema(tag_name="", attributes=["path", "old"]),
            (
                "@xml_schema has '' as tag, which is not an XML name; use ASCII letters, digits, '_', '-' and '.', "
                "starting with a letter or '_'"
            ),
        ),
        (
            xml_schema(mappings=[{"param_name": "path", "path": "a//b"}, {"param_name": "old"}]),
            (
                "@xml_schema has '' as element (path 'a//b' of parameter 'path'), which is not an XML name; use ASCII "
                "letters, digits, '_', '-' and '.', starting with a letter or '_'"
            ),
        ),
        (
            xml_schema(mappings=[{"param_name": "path", "path": "o/text/o"}, {"param_name": "old"}]),
            (
                "@xml_schema has path 'o/text/o' for parameter 'path', which names an element inside one of the same "
                "name; give one of them another name"
            ),
        ),
        (
            xml_schema(mappings=[{"param_name": "path", "node_type": "attr"}, {"param_name": "old"}]),
            "@xml_schema maps parameter 'path' as 'attr'; write one of attribute, element, content, text",
        ),
        (
            xml_schema(
                mappings=[{"param_name": "path", "node_type": "attribute", "path": "a/b"}, {"param_name": "old"}]
            ),
            (
                "@xml_schema maps parameter 'path' as an attribute with the nested path 'a/b'; attributes belong to "
                "the tag itself: use node_type 'element', or the attribute's name alone"
            ),
        ),
        (
            xml_schema(mappings=[{"param_name": "path", "node_type": "content", "path": "a"}, {"param_name": "old"}]),
            "@xml_schema maps parameter 'path' as content with path 'a'; content is the tag's own text and has no path",
        ),
        (
            xml_schema(mappings=[{"param_name": "path", "required": False}, {"param_name": "old"}]),
            (
                "@xml_schema says that parameter 'path' is optional, but the signature says the opposite; omit "
                "'required' to follow the signature"
            ),
        ),
        (
            xml_schema(
                mappings=[{"param_name": "path"}, {"param_name": "old"}, {"param_name": "times", "required": True}]
            ),
            (
                "@xml_schema says that parameter 'times' is required, but the signature says the opposite; omit "
                "'required' to follow the signature"
            ),
        ),
    ],
)
def test_a_wrong_xml_mapping(decorator: Any, message: str) -> None:
    class Files:
        def replace(self, path: str, old: str, times: int = 1):
            return path

    Files.replace = decorator(Files.replace)  # type: ignore[method-assign]
    assert refused(Files) == f"Files.replace: {message}"


def test_the_context_cannot_be_mapped() -> None:
    @xml_schema(attributes=["path", "context"])
    def read(path: str, context: ToolContext):
        return path

    assert refused(read).startswith("read: @xml_schema maps parameter 'context', which does not exist")


def test_a_class_without_a_decorated_method() -> None:
    class Plain:
        def read(self, path: str):
            return path

    assert refused(Plain) == (
        "Plain has no decorated method; put @openapi_schema (and @xml_schema for an XML tag) on the methods that a "
        "model may call, such as `@openapi_schema` above `def read`"
    )
    assert refused(Plain()).startswith("an instance of Plain has no decorated method; put @openapi_schema")


def test_a_choice_of_an_absent_method_lists_the_present_ones() -> None:
    assert refused(Files, function_names=["write"]) == "Files has no decorated method 'write'; it has 'read'"
    assert refused(Files, function_names={"write": "w"}) == "Files has no decorated method 'write'; it has 'read'"
    assert refused(Files, function_names="read") == "function_names is a list of method names; write ['read']"


def test_constructor_arguments_that_do_not_fit() -> None:
    class Rooted:
        def __init__(self, root: str) -> None:
            self.root = root

        @openapi_schema
        def read(self, path: str):
            return path

    assert refused(Rooted) == (
        "Rooted cannot be constructed with no arguments: missing a required argument: 'root'; pass its arguments to "
        "register_tool(Rooted, ...), or an instance"
    )
    with pytest.raises(SchemaError, match=r"received an instance of Rooted and constructor arguments \['root'\]"):
        ToolRegistry().register_tool(Rooted("a"), root="b")


def test_a_method_without_its_instance() -> None:
    assert refused(Files.read) == "Files.read is a method without an instance; register Files() or Files().read"


def test_what_is_no_tool_at_all() -> None:
    assert refused(object()).startswith("an instance of object has no decorated method")
    assert refused(int) == (
        "int has no decorated method; put @openapi_schema (and @xml_schema for an XML tag) on the methods that a "
        "model may call, such as `@openapi_schema` above `def your_method`"
    )


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (
            "json",
            "'json' is not a tool: pass the function or class itself, tools=[json], or its module and name",
        ),
        (
            "json.dumps",
            "'json.dumps' is not a tool reference; write 'module:Class' or 'module:function'; did you mean 'json:dumps",
        ),
        ("agentkit_tools.files", "or 'module:function'; did you mean 'agentkit_tools.files:Files'?"),
        ("agentkit_tools.search", "or 'module:function'; did you mean 'agentkit_tools:search'?"),
        (
            "./json.py:f",
            "'./json.py:f' is not a tool reference; write 'module:Class' or 'module:function'; name the module as in",
        ),
        (
            ".json:f",
            "'.json:f' is not a tool reference; write 'module:Class' or 'module:function'; name the module as in",
        ),
        ("no_such_module_at_all:f", "'no_such_module_at_all:f': module 'no_such_module_at_all' cannot be imported"),
        ("json:nothing", "'json:nothing': json has no 'nothing'"),
        ("agentkit_tools.fils:Files", "No module named 'agentkit_tools.fils'; did you mean 'agentkit_tools.files'?"),
    ],
)
def test_a_reference_that_leads_nowhere(reference: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        ToolRegistry(reference)


def test_a_context_manager() -> None:
    @contextmanager
    def sync(to: int) -> Iterator[int]:
        yield to

    @asynccontextmanager
    async def async_(to: int) -> AsyncIterator[int]:
        yield to

    for function in (sync, async_):
        with pytest.raises(SchemaError, match="is a context manager, whose body would never run"):
            ToolRegistry(function)


def test_a_generator() -> None:
    def count(to: int) -> Iterator[int]:
        yield to

    async def acount(to: int) -> AsyncIterator[int]:
        yield to

    expected = "is a generator; a tool returns its result: collect what it yields and return that"
    assert refused(count) == f"count {expected}"
    assert refused(acount) == f"acount {expected}"


def test_a_name_that_only_type_checkers_see() -> None:
    def pay(amount: OnlyForTypes) -> str:
        return str(amount)

    assert refused(pay) == (
        "pay: the hint of parameter 'amount' uses 'OnlyForTypes', which cannot be found; define OnlyForTypes at module "
        "level (not under `if TYPE_CHECKING:`), or register the tool while it is visible"
    )


def test_a_return_hint_is_not_needed() -> None:
    def pay(amount: int) -> OnlyForTypes: ...  # type: ignore[empty-body]

    assert ToolRegistry(pay).tools["pay"].validate({"amount": 1}, lenient=False) == {"amount": 1}


def test_a_hint_that_cannot_be_evaluated() -> None:
    def pay(amount: int) -> None: ...

    pay.__annotations__["amount"] = "list[1/0]"
    assert refused(pay) == (
        "pay: the hint of parameter 'amount' cannot be evaluated (ZeroDivisionError: division by zero); fix it"
    )


def test_a_pydantic_field_as_default() -> None:
    def pay(amount: int = Field(5, ge=1)):
        return amount

    assert refused(pay) == (
        "pay: parameter 'amount' has a pydantic Field as its default, which the method would receive; write "
        "amount: Annotated[<type>, Field(...)] = <default>"
    )


@pytest.mark.parametrize("timeout", [0, -1.5])
def test_a_limit_that_is_none(timeout: float) -> None:
    @openapi_schema(timeout=timeout)
    def pay():
        return 1

    assert refused(pay) == f"pay: timeout={timeout}: expected seconds above 0, or None"


class Tupled(enum.Enum):
    A = (1, 2)


class Plain(enum.Enum):
    A = "a"


class Nothing(enum.Enum):
    pass


@dataclass
class Tupling:
    value: Tupled


class Picked(BaseModel):
    kind: Literal[Plain.A]


@dataclass
class Handler:
    kind: type[Connection]


Recursive = Union[int, list["Recursive"]]  # noqa: UP007 (a `|` of a string fails)


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        (Tupled, "whose member A is (1, 2), which no model can write; use strings or numbers"),
        (Literal[Plain.A], "whose values no model can write; write the Enum class itself, or Literal of their values"),
        (Nothing, "in which the Enum Nothing has no members; give it some"),
        (list[Tupling], "whose member A is (1, 2), which no model can write"),
        (Picked, "whose values no model can write"),
        (Literal[b"a"], "whose values no model can write"),
        (type[int], "which contains type[int], and no JSON value is a class; name the classes in a Literal or an Enum"),
        (Handler | None, "which contains type[Connection], and no JSON value is a class"),
        (int | type[Plain], "which contains type[Plain], and no JSON value is a class"),
        (re.Pattern[bytes], "which no JSON value can be; write str"),
        (Generator[int, None, None], "which no JSON value can be; write a list"),
        (NotRequired[int], "which is for the fields of a TypedDict; a parameter is optional if it has a default"),
        (list[Self], "which contains Self; write the name of the class"),
        (
            Annotated[int, Field(alias="z")],
            "has type int, whose Field has another name for it, 'z'; rename the parameter to 'z', or remove the alias",
        ),
        (Annotated[Any, Field(validation_alias=AliasChoices("z", "y"))], "rename the parameter, or remove the alias"),
        (list["Recursive"], "which contains itself; write the recursive type as a dataclass, TypedDict or"),
    ],
)
def test_a_type_of_which_no_model_can_write_a_value(hint: Any, message: str) -> None:
    def pay(x):
        return x

    pay.__annotations__["x"] = hint
    assert message in refused(pay)


def test_a_default_of_another_type() -> None:
    def pay(amount: int = "five"):  # type: ignore[assignment]
        return amount

    assert refused(pay) == (
        "pay: parameter 'amount' has default 'five', which is string, but its hint says integer; change one of them"
    )


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes typing.TypedDict everywhere from 3.12 on")
def test_a_typed_dict_inside_a_dataclass_before_python_3_12() -> None:
    def pay(bill: Bill):
        return bill

    assert refused(pay).endswith(
        "which contains a typing.TypedDict inside another class; before Python 3.12 import TypedDict from "
        "typing_extensions there"
    )


class Line(TypedDict):
    amount: int


@dataclass
class Bill:
    lines: list[Line]


def test_an_unknown_tool_or_flavour_is_named_with_those_that_are_there() -> None:
    registry = ToolRegistry(Files)
    with pytest.raises(SchemaError, match=r"no tool is registered as 'write' \(registered: 'read'\)"):
        registry.unregister("write")
    with pytest.raises(SchemaError, match=r"no tool is registered as 'write' \(registered: 'read'\)"):
        registry.specs(["write"])
    with pytest.raises(ConfigError, match="there is no flavour of schemas 'cohere'; there are chat, responses"):
        registry.get_openapi_schemas("cohere")


def test_a_method_that_forgot_self() -> None:
    class Shelf:
        @openapi_schema
        def put(book: str) -> str:
            """Put a book on the shelf."""
            return book

    with pytest.raises(SchemaError, match=r"put has no 'self': its first parameter is 'book'; write 'self' first"):
        ToolRegistry(Shelf())
