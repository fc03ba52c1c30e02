"""The registry: one method under two keys, chosen, renamed, taken out; the XML example of each tag."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import Field

from agentkit import formats
from agentkit.errors import SchemaError
from agentkit.events import CallEnd
from agentkit.formats.teach import example_call
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.declare import openapi_schema, xml_schema
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import Tool, ToolContext, ToolResult
from agentkit.toolspec import Element, Node, ToolSpec

# ruff: noqa: D417 (some parameters are left undescribed)


class Files(Tool):
    def __init__(self, root: str = ".") -> None:
        self.root = root

    @openapi_schema(description="Create a file.", file_path="where", file_contents="the whole text")
    @xml_schema(
        tag_name="create-file",
        mappings=[
            {"param_name": "file_path", "node_type": "attribute", "path": "."},
            {"param_name": "file_contents", "node_type": "content", "path": "."},
        ],
        example='<create-file file_path="a.txt">hello</create-file>',
    )
    async def create_file(self, file_path: str, file_contents: str) -> ToolResult:
        return self.success_response(f"{self.root}/{file_path}")

    @openapi_schema()
    @xml_schema(name="str_replace_editor", attributes=["command", "path"], elements=["old_str", "new_str"])
    def str_replace(self, command: Literal["view", "replace"], path: str, old_str: str = "", new_str: str = "") -> str:
        """Replace text in a file.

        Args:
            path: the file
        """
        return f"{self.root}/{path}"

    @openapi_schema
    def size(self, path: str) -> int:
        """Tell a file's size."""
        return len(path)


def word_count(text: str) -> int:
    """Count words."""
    return len(text.split())


def test_both_keys_lead_to_the_same_tool_on_one_instance() -> None:
    """S1."""
    registry = ToolRegistry()
    created, replaced, sized = registry.register_tool(Files, root="/tmp")

    assert list(registry.tools) == ["create_file", "str_replace", "size"]
    assert list(registry.xml_tools) == ["create-file", "str_replace_editor"]
    assert registry.tools["create_file"] is registry.xml_tools["create-file"] is created
    assert registry.get_tool("str_replace") is registry.get_xml_tool("str_replace_editor") is replaced
    assert created.instance is replaced.instance is sized.instance
    assert (created.instance.root, created.tag, sized.tag) == ("/tmp", "create-file", None)
    assert (created.is_async, sized.is_async) == (True, False)
    assert sized.invoke(sized.validate({"path": "abc"}, lenient=False), ToolContext("1", "size")) == 3


def test_openapi_schemas_are_valid_json_schema() -> None:
    schemas = ToolRegistry(Files).get_openapi_schemas()
    assert [s["function"]["name"] for s in schemas] == ["create_file", "str_replace", "size"]
    for schema in schemas:
        Draft202012Validator.check_schema(schema["function"]["parameters"])


def test_registries_share_nothing() -> None:
    one, two = ToolRegistry(Files), ToolRegistry(Files)
    one.unregister("size")
    assert "size" in two.tools
    assert one.tools["create_file"].instance is not two.tools["create_file"].instance


def test_everything_that_is_a_tool_can_be_registered() -> None:
    class Shop:
        @openapi_schema
        def buy(self, item: str) -> str:
            return item

        def sell(self, item: str) -> str:
            return item

    registry = ToolRegistry(word_count, Files(), Shop, [Shop().sell])
    assert list(registry.tools) == ["word_count", "create_file", "str_replace", "size", "buy", "sell"]
    assert ToolRegistry(registry.tools["buy"]).tools["buy"] is registry.tools["buy"]


def test_a_function_is_registered_by_reference() -> None:
    registry = ToolRegistry("agentkit.tool.element:kebab")
    assert registry.tools["kebab"].validate({"name": "a"}, lenient=False) == {"name": "a"}


def test_a_function_registered_under_another_name_with_a_limit() -> None:
    bound = ToolRegistry().register_function(word_count, "words", timeout=1.5)
    assert (bound.name, bound.timeout, bound.description) == ("words", 1.5, "Count words.")


def test_a_list_chooses_methods() -> None:
    registry = ToolRegistry()
    registry.register_tool(Files, ["size", "create_file"])
    assert list(registry.tools) == ["create_file", "size"]
    assert list(registry.xml_tools) == ["create-file"]


def test_a_mapping_chooses_and_renames_methods() -> None:
    registry = ToolRegistry()
    registry.register_tool(Files, function_names={"create_file": "write_file", "size": "size"})
    assert list(registry.tools) == ["write_file", "size"]
    assert list(registry.xml_tools) == ["write-file"]
    assert registry.specs()[0].name == "write_file"


def test_a_function_renames_all_methods_so_that_two_instances_fit_into_one_registry() -> None:
    registry = ToolRegistry()
    registry.register_tool(Files("left"), "left_{}".format)
    registry.register_tool(Files("right"), "right_{}".format)
    assert list(registry.xml_tools) == [
        *("left-create-file", "left-str-replace", "right-create-file", "right-str-replace")
    ]
    assert registry.tools["right_size"].instance.root == "right"
    assert (
        registry.get_xml_examples()[0]
        == '<left-create-file file_path="the file path">the file contents</left-create-file>'
    )


def test_a_function_leaves_methods_out_by_none() -> None:
    registry = ToolRegistry()
    registry.register_tool(Files, lambda name: None if name == "size" else name)
    assert list(registry.tools) == ["create_file", "str_replace"]
    assert list(registry.xml_tools) == ["create-file", "str_replace_editor"]


def test_constructor_arguments_may_have_any_name() -> None:
    class Odd:
        def __init__(self, tool: int, name: str, names: int, prefix: str, timeout: int, self_: int = 0) -> None:
            self.given = (tool, name, names, prefix, timeout)

        @openapi_schema
        def ping(self) -> str:
            return "pong"

    (bound,) = ToolRegistry().register_tool(Odd, tool=1, name="n", names=2, prefix="p", timeout=3)
    assert bound.instance.given == (1, "n", 2, "p", 3)


def test_an_exception_of_the_constructor_is_not_dressed_up() -> None:
    class Failing:
        def __init__(self) -> None:
            raise TypeError("my own trouble")

        @openapi_schema
        def ping(self) -> str:
            return "pong"

    with pytest.raises(TypeError, match="my own trouble"):
        ToolRegistry().register_tool(Failing)


def test_unregister_takes_both_keys_out() -> None:
    registry = ToolRegistry(Files)
    removed = registry.unregister("create_file")
    assert removed.name == "create_file"
    assert (registry.get_tool("create_file"), registry.get_xml_tool("create-file")) == (None, None)
    registry.register(removed)
    assert registry.xml_tools["create-file"] is removed


def test_the_views_follow_later_registrations() -> None:
    registry = ToolRegistry()
    tools, xml_tools = registry.tools, registry.xml_tools
    registry.register(Files)
    assert (len(tools), len(xml_tools)) == (3, 2)


def test_the_views_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        ToolRegistry(Files).tools["x"] = 1  # type: ignore[index]


def test_a_failed_registration_leaves_the_registry_as_it_was() -> None:
    registry = ToolRegistry(word_count)
    before = dict(registry.tools)
    with pytest.raises(SchemaError):
        registry.register(Files, word_count)
    assert registry.tools == before
    assert registry.xml_tools == {}


def test_specs_are_chosen_and_ordered_by_names() -> None:
    registry = ToolRegistry(Files)
    assert [spec.name for spec in registry.specs(["size", "create_file"])] == ["size", "create_file"]


def test_examples_are_declared_or_generated() -> None:
    assert ToolRegistry(Files).get_xml_examples() == [
        '<create-file file_path="a.txt">hello</create-file>',
        (
            '<str_replace_editor command="view" path="the path">\n'
            "<old_str>the old str</old_str>\n<new_str>the new str</new_str>\n</str_replace_editor>"
        ),
    ]


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("nodes", "properties", "example"),
    [
        ([], {}, "<t/>"),
        ([Node("x", "content")], {"x": TEXT}, "<t>the x</t>"),
        ([Node("x", "content", (), False)], {"x": TEXT}, "<t>the x</t>"),
        ([Node("x", "attribute", ("a",))], {"x": {"enum": ['"<&>"']}}, '<t a="&quot;&lt;&amp;&gt;&quot;"/>'),
        ([Node("x", "content")], {"x": {"const": "a && b < c"}}, "<t>a && b < c</t>"),
        ([Node("x", "content")], {"x": {"const": "<t>]]></t>"}}, "<t><![CDATA[<t>]]]]><![CDATA[></t>]]></t>"),
        ([Node("x", "content")], {"x": {"examples": [[1, 2]]}}, "<t>[1, 2]</t>"),
        (
            [Node("x", "element", ("o", "x")), Node("z", "element", ("z",)), Node("y", "element", ("o", "y"))],
            {"x": TEXT, "y": {"type": "integer"}, "z": {"type": "array"}},
            "<t>\n<o>\n<x>the x</x>\n<y>1</y>\n</o>\n<z>[]</z>\n</t>",
        ),
    ],
)
def test_a_generated_example(nodes: list[Node], properties: dict[str, Any], example: str) -> None:
    parameters = {"type": "object", "properties": properties, "required": [n.parameter for n in nodes if n.required]}
    tool = ToolSpec("t", "", parameters, Element("t", tuple(nodes)))
    assert example_call("xml", tool, [tool]) == example


def edit(
    path: str,
    mode: Literal["<a>", 'b"c'],
    text: str,
    limit: int,
    ratio: float,
    tags: list[str],
    where: dict[str, int],
    loud: bool | None,
    note: str = "n",
) -> None: ...


@pytest.mark.parametrize(
    "decorator",
    [
        xml_schema,
        xml_schema(name="edit", attributes=["path", "mode", "limit", "ratio", "tags", "where", "loud"], content="text"),
        xml_schema(
            mappings=[
                {"param_name": name, "path": f"options/deep/{name}"}
                for name in ["path", "mode", "text", "limit", "ratio", "tags", "where", "loud"]
            ]
        ),
    ],
)
def test_a_generated_example_is_a_valid_call_of_its_tool(decorator: Any) -> None:
    def fresh() -> None: ...

    fresh.__annotations__ = dict(edit.__annotations__)
    registry = ToolRegistry(decorated(decorator))
    (bound,) = registry.xml_tools.values()
    (example,) = registry.get_xml_examples()

    calls = [e.call for e in formats.parse(example, "xml", registry.specs()) if isinstance(e, CallEnd)]
    assert [call.name for call in calls] == ["edit"]
    assert bound.validate(calls[0].arguments, lenient=True)["mode"] == "<a>"


def decorated(decorator: Any) -> Any:
    """`edit` with a declaration, without leaving the declaration on it."""
    marked = decorator(edit)
    bound = ToolRegistry().register_function(marked)
    del marked.tool_schemas
    return bound


def test_a_tool_with_many_parameters_lists_them_in_order() -> None:
    bound: BoundTool = ToolRegistry().register_function(edit)
    assert list(bound.spec.parameters["properties"]) == [
        *("path", "mode", "text", "limit", "ratio", "tags", "where", "loud", "note")
    ]
    assert bound.spec.parameters["required"] == [*("path", "mode", "text", "limit", "ratio", "tags", "where", "loud")]


def test_short_strings_by_their_bounds_are_attributes() -> None:
    @xml_schema
    def tag(word: Annotated[str, Field(max_length=100)], text: Annotated[str, Field(max_length=101)]) -> None: ...

    element = ToolRegistry(tag).specs()[0].element
    assert element is not None
    assert [node.kind for node in element.nodes] == ["attribute", "element"]
