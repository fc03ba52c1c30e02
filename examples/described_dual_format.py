"""The file tool of the dual-format system that agentkit comes from, as its document writes it, on a real folder.

Both decorators and the method are unchanged: one method, called once with JSON and once with XML. The document's
`_rpc_call` talks to a sandbox; this one talks to a folder. For a tool of your own take `agentkit_tools.files.Files`, or
`agentkit_tools.editor.StrReplaceEditor` for all four commands: no link leads them out, and no change is lost.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from agentkit import Agent, Tool, ToolCall, ToolResult, openapi_schema, xml_schema
from agentkit.messages import ToolMessage
from agentkit.testing import ScriptedModel


class SandboxToolsBase(Tool):
    """What the document's tools share: the way to the files."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def _rpc_call(self, name: str, arguments: dict[str, Any]) -> Any:
        path = (self.root / arguments["path"]).resolve()
        if not path.is_relative_to(self.root):
            raise PermissionError(f"{arguments['path']} is outside the folder")
        match name:
            case "read_file":
                return path.read_text(encoding="utf-8")
            case "write_file":
                return path.write_text(arguments["content"], encoding="utf-8")
        raise ValueError(f"no such call: {name}")


class SandboxFilesTool(SandboxToolsBase):
    """As in the document."""

    @openapi_schema(
        description="文件内容的字符串替换编辑器",
        path="要编辑的文件路径",
        old_str="要替换的确切字符串",
        new_str="替换后的新字符串",
    )
    @xml_schema(name="str_replace_editor", attributes=["command", "path"], elements=["old_str", "new_str"])
    def str_replace_editor(self, command: Literal["str_replace"], path: str, old_str: str, new_str: str) -> ToolResult:
        """执行文件内容替换"""  # noqa: D415 (as in the document)
        try:
            # 读取文件内容
            content = self._rpc_call("read_file", {"path": path})

            # 检查 old_str 是否存在
            if old_str not in content:
                return ToolResult(error=f"未找到字符串: {old_str}")

            # 执行替换
            new_content = content.replace(old_str, new_str, 1)

            # 写回文件
            self._rpc_call("write_file", {"path": path, "content": new_content})

            return ToolResult(output=f"成功替换 {path} 中的内容")

        except Exception as e:  # noqa: BLE001 (as in the document)
            return ToolResult(error=str(e))


as_json = ToolCall(
    "", "str_replace_editor", {"command": "str_replace", "path": "a.txt", "old_str": "old", "new_str": "new"}
)
as_xml = """<str_replace_editor command="str_replace" path="a.txt">
<old_str>text</old_str>
<new_str>words, if a < b && c</new_str>
</str_replace_editor>"""

with TemporaryDirectory() as folder:
    file = Path(folder, "a.txt")
    file.write_text("old text\n")
    tool = SandboxFilesTool(Path(folder))
    for model in (ScriptedModel([as_json, "完成"]), ScriptedModel([as_xml, "完成"], format="xml")):
        result = Agent(model, tools=[tool]).run_sync("请编辑 a.txt")
        answer = next(message for message in result.messages if isinstance(message, ToolMessage))
        print(answer.text, "|", file.read_text(), end="")
    assert file.read_text() == "new words, if a < b && c\n"
    print(tool.str_replace_editor("str_replace", "../b.txt", "x", "y").text)
