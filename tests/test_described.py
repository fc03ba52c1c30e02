"""The snippets of the system that agentkit comes from, as written there; `§` is its document's section."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import pytest

from agentkit import SchemaType, ThreadManager, Tool, ToolRegistry, ToolResult, ToolSchema, openapi_schema, xml_schema
from agentkit.errors import SchemaError


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
    assert create_file.tool_schemas[1]["data"] == {"description": "创建文件"}


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
    with pytest.raises(SchemaError, match=r"lead to one entry: ask schema\.xml_schema"):
        _ = entry["schema"].schema_type
    only = ToolRegistry(xml_schema(echo))
    assert only.xml_tools["echo"]["schema"].schema_type == SchemaType.XML
    with pytest.raises(KeyError, match="the keys 'instance', 'method' and 'schema'; found 'name'"):
        entry["name"]  # type: ignore[index]


def test_6_1_calling_by_function_name() -> None:
    registry = ToolRegistry(SandboxFilesTool())
    tool_info = registry.tools["str_replace_editor"]
    assert tool_info["instance"].str_replace_editor(**ARGUMENTS).output == "成功替换 /path/to/file 中的内容"


def test_6_2_calling_by_tag() -> None:
    registry = ToolRegistry(SandboxFilesTool())
    xml_info = registry.xml_tools["str_replace_editor"]
    method = getattr(xml_info["instance"], xml_info["method"])
    assert method(**ARGUMENTS).success


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
    with pytest.raises(ValueError, match="says both"):
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
