"""The snippets of the system that agentkit comes from, as written there; `§` is its document's section."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import pytest

from agentkit import (
    Agent,
    SchemaType,
    ThreadManager,
    Tool,
    ToolCall,
    ToolRegistry,
    ToolResult,
    ToolSchema,
    openapi_schema,
    xml_schema,
)
from agentkit.errors import SchemaError
from agentkit.messages import ToolMessage
from agentkit.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class SandboxFilesTool(Tool):
    """§2.1, with the file in memory."""

    def __init__(self) -> None:
        self.file = "old text"

    def _rpc_call(self, name: str, arguments: dict[str, Any]) -> str:
        if name == "write_file":
            self.file = arguments["content"]
        return self.file

    @openapi_schema(
        description="文件内容的字符串替换编辑器",
        path="要编辑的文件路径",
        old_str="要替换的确切字符串",
        new_str="替换后的新字符串",
    )
    @xml_schema(name="str_replace_editor", attributes=["command", "path"], elements=["old_str", "new_str"])
    def str_replace_editor(self, command: Literal["str_replace"], path: str, old_str: str, new_str: str) -> ToolResult:
        """执行文件内容替换"""  # noqa: D415 (as it is written there)
        try:
            content = self._rpc_call("read_file", {"path": path})
            if old_str not in content:
                return ToolResult(error=f"未找到字符串: {old_str}")
            new_content = content.replace(old_str, new_str, 1)
            self._rpc_call("write_file", {"path": path, "content": new_content})
            return ToolResult(output=f"成功替换 {path} 中的内容")
        except Exception as e:  # noqa: BLE001 (as it is written there)
            return ToolResult(error=str(e))

    @openapi_schema
    @xml_schema(
        tag_name="ask",
        mappings=[{"param_name": "text", "node_type": "content", "path": "."}],
        example="<ask>Why?</ask>",
    )
    def ask(self, text: str) -> str:
        return text


ARGUMENTS = {"command": "str_replace", "path": "/path/to/file", "old_str": "old text", "new_str": "new text"}


def test_1_3_declarations_are_listed_in_the_order_in_which_they_were_made() -> None:
    @openapi_schema(description="创建文件")
    @xml_schema(name="create-file", elements=["content"])
    def create_file(content):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        return f"File created with: {content}"

    assert create_file("x") == "File created with: x"
    assert [(s["type"], bool(s["data"])) for s in create_file.tool_schemas] == [("xml", True), ("openapi", True)]
    assert [schema["data"] for schema in create_file.tool_schemas] == [
        {"name": "create-file", "elements": ["content"]},
        {"description": "创建文件"},
    ]
    assert repr(create_file.tool_schemas) == (
        "[@xml_schema(name='create-file', elements=['content']), @openapi_schema(description='创建文件')]"
    )
    with pytest.raises(KeyError, match="the keys 'type' and 'data'; found 'schema'"):
        create_file.tool_schemas[0]["schema"]


def test_4_3_a_schema_by_itself_says_where_it_comes_from() -> None:
    with pytest.raises(SchemaError, match=r"write @openapi_schema\(\{…\}\) or @xml_schema"):
        ToolSchema(schema_type=SchemaType.OPENAPI, schema={})


def test_3_1_a_schema_may_be_added_by_hand() -> None:
    def _add_schema(func, schema: ToolSchema):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        if not hasattr(func, "tool_schemas"):
            func.tool_schemas = []
        func.tool_schemas.append(schema)
        return func

    def ask(text: str) -> str:
        return text

    _add_schema(ask, SandboxFilesTool.ask.tool_schemas[0])  # type: ignore[attr-defined]
    assert list(ToolRegistry(ask).xml_tools) == ["ask"]


def test_3_2_a_base_class_may_collect_the_schemas() -> None:
    class Collecting(SandboxFilesTool):
        def __init__(self) -> None:
            self._schemas: dict[str, Any] = {}
            self._register_schemas()

        def _register_schemas(self) -> None:
            for name, method in inspect.getmembers(self, predicate=inspect.ismethod):
                if hasattr(method, "tool_schemas"):
                    self._schemas[name] = method.tool_schemas

    assert list(Collecting()._schemas) == ["ask", "str_replace_editor"]


def test_3_2_the_base_class_has_a_place_for_them() -> None:
    class SandboxToolsBase(SandboxFilesTool):
        def _register_schemas(self) -> None:
            for name, method in inspect.getmembers(self, predicate=inspect.ismethod):
                if hasattr(method, "tool_schemas"):
                    self._schemas[name] = method.tool_schemas

    tool = SandboxToolsBase()
    assert list(tool._schemas) == ["str_replace_editor", "ask"]
    tool._register_schemas()
    assert tool._schemas["ask"] == SandboxFilesTool.ask.tool_schemas  # type: ignore[attr-defined]


def test_4_1_the_manager_has_a_tool_registry(tmp_path: Any) -> None:
    thread_manager = ThreadManager(tmp_path / "a.db")
    thread_manager.add_tool(SandboxFilesTool)
    assert "str_replace_editor" in thread_manager.tool_registry.tools


def test_4_2_registering_by_hand() -> None:
    tool_instance = SandboxFilesTool()
    tools: dict[str, Any] = {}
    xml_tools: dict[str, Any] = {}
    schemas = tool_instance.get_schemas()
    for func_name, schema_list in schemas.items():
        for schema in schema_list:
            if schema.schema_type == SchemaType.OPENAPI:
                tools[func_name] = {"instance": tool_instance, "schema": schema}
            if schema.schema_type == SchemaType.XML and schema.xml_schema:
                xml_tools[schema.xml_schema.tag_name] = {
                    "instance": tool_instance,
                    "method": func_name,
                    "schema": schema,
                }
    registry = ToolRegistry()
    registry.register_tool(tool_instance)
    assert list(tools) == list(registry.tools) == ["str_replace_editor", "ask"]
    assert list(xml_tools) == list(registry.xml_tools) == ["str_replace_editor", "ask"]
    for entry, ours in [
        *zip(tools.values(), registry.tools.values(), strict=True),
        *zip(xml_tools.values(), registry.xml_tools.values(), strict=True),
    ]:
        assert all(ours[key] == entry[key] for key in entry if key != "schema")


def echo(text: str) -> str:
    """A function with a tag of its own."""
    return text


def test_5_an_entry_has_instance_method_and_schema() -> None:
    registry = ToolRegistry(SandboxFilesTool())
    entry = registry.xml_tools["str_replace_editor"]
    assert entry is registry.tools["str_replace_editor"]
    assert (entry["instance"], entry["method"]) == (entry.instance, "str_replace_editor")
    assert entry["schema"].xml_schema.tag_name == "str_replace_editor"
    assert not hasattr(entry["schema"], "schema_type")
    with pytest.raises(AttributeError, match=r"AgentPress has SchemaType\.OPENAPI under the function's name and"):
        _ = entry["schema"].schema_type
    only = ToolRegistry(xml_schema(echo))
    assert only.xml_tools["echo"]["schema"].schema_type == SchemaType.XML
    with pytest.raises(KeyError, match="the keys 'instance', 'method' and 'schema'; found 'name'"):
        entry["name"]  # type: ignore[index]


async def test_6_1_calling_by_function_name() -> None:
    """The method is a plain one, and its result is awaited all the same."""
    registry, arguments = ToolRegistry(SandboxFilesTool()), ARGUMENTS
    tool_info = registry.tools["str_replace_editor"]
    result = await tool_info["instance"].str_replace_editor(**arguments)
    assert result.output == "成功替换 /path/to/file 中的内容"


async def test_6_2_calling_by_tag() -> None:
    registry, parsed_args = ToolRegistry(SandboxFilesTool()), ARGUMENTS
    xml_info = registry.xml_tools["str_replace_editor"]
    method = getattr(xml_info["instance"], xml_info["method"])
    result = await method(**parsed_args)
    assert result.success


WRITTEN = """<str_replace_editor command="str_replace" path="/path/to/file">
    <old_str>old text</old_str>
    <new_str>new text</new_str>
</str_replace_editor>"""


@pytest.mark.parametrize("said", [ToolCall("", "str_replace_editor", ARGUMENTS), WRITTEN], ids=["6.1", "6.2"])
def test_6_both_paths_lead_to_one_instance(said: Any) -> None:
    tool = SandboxFilesTool()
    model = ScriptedModel([said, "done"], format=None if isinstance(said, ToolCall) else "xml")
    Agent(model, [tool]).run_sync("go")
    assert tool.file == "new text"


def test_5_1_the_tables_are_read_and_written_through_the_registry() -> None:
    registry = ToolRegistry()
    assert (registry.tools, registry.xml_tools) == ({}, {})
    with pytest.raises(TypeError, match=r"write registry.register\(…\)"):
        registry.tools["ask"] = {"instance": object(), "schema": {}}  # type: ignore[index]


class OneOfEach:
    @openapi_schema
    def by_name(self, text: str) -> str:
        """Say it by name."""
        return text

    @xml_schema(content="text")
    def by_tag(self, text: str) -> str:
        """Say it by tag."""
        return text


def test_4_2_a_method_with_a_tag_alone_is_in_xml_tools_alone() -> None:
    registry = ToolRegistry(OneOfEach())
    assert (list(registry.tools), list(registry.xml_tools)) == (["by_name"], ["by-tag"])
    assert [schema["function"]["name"] for schema in registry.get_openapi_schemas()] == ["by_name"]


@pytest.mark.parametrize(
    ("format", "offered"),
    [(None, ["by_name"]), ("hermes", ["by_name"]), ("invoke", ["by_name"]), ("xml", ["by_name", "by_tag"])],
)
def test_4_2_it_is_offered_to_models_that_write_tags(format: str | None, offered: list[str]) -> None:
    """And to no other: a call of it by name is a call of a tool that is not there."""
    model = ScriptedModel([ToolCall("", "by_tag", {"text": "hi"}), "done"], format=format)
    result = Agent(model, [OneOfEach()]).run_sync("go")
    assert [tool.name for tool in model.requests[0].tools] == offered
    (answer,) = [m for m in result.messages if isinstance(m, ToolMessage)]
    told = (None, "hi") if format == "xml" else ("unknown_tool", "there is no tool 'by_tag'")
    assert answer.error == told[0]
    assert answer.text.startswith(told[1])


def test_8_2_looking_tools_up() -> None:
    registry = ToolRegistry(SandboxFilesTool())
    assert registry.tools.get("str_replace_editor") is registry.xml_tools.get("str_replace_editor")
    assert registry.tools.get("nobody") is None
    with pytest.raises(KeyError, match="did you mean 'str_replace_editor'"):
        registry.tools["str-replace-editor"]


def test_8_1_schemas_and_examples() -> None:
    registry = ToolRegistry(SandboxFilesTool())
    examples = []
    for xml_info in registry.xml_tools.values():
        if xml_info["schema"].xml_schema and xml_info["schema"].xml_schema.example:
            examples.append(  # noqa: PERF401 (as it is written there)
                xml_info["schema"].xml_schema.example
            )
    assert examples == ["<ask>Why?</ask>"]
    assert examples[0] in registry.get_xml_examples()
    assert [schema["function"]["name"] for schema in registry.get_openapi_schemas()] == ["str_replace_editor", "ask"]


def test_results_in_its_words() -> None:
    assert ToolResult(success=True, output="done") == ToolResult(output="done")
    failed = ToolResult(success=False, output="no such file")
    assert (failed.success, failed.error, failed.text) == (False, "no such file", "no such file")
    with pytest.raises(ValueError, match="is contradictory"):
        ToolResult(success=True, error="x")


def test_a_function_schema_may_be_spread() -> None:
    written = {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Look.",
            "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
        },
    }

    @openapi_schema(**written)
    def search(q):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        return q

    assert ToolRegistry(search).get_openapi_schemas() == [written]
