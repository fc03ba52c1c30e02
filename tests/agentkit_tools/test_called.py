"""Every ready-made tool, called as models call: natively in JSON and in three text formats; always the same call.

A row is one call: how the tool is made in a new folder, its name, its arguments, and a piece of the answer. A method
that is in the package and not in the table fails the last test.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confining import WHY

import agentkit_tools
from agentkit import Agent, Tool
from agentkit.messages import ToolCall, ToolMessage
from agentkit.testing import ScriptedModel
from agentkit_tools.conversation import Conversation
from agentkit_tools.files import Files
from agentkit_tools.python import Python
from agentkit_tools.shell import Shell
from agentkit_tools.tasks import TaskList

FORMATS = (None, "xml", "qwen3_coder", "hermes")
"""Native calls; an element per tool; parameters between tags; JSON in text."""


END = "That is all."


class Called(NamedTuple):
    """One call of a tool, a piece of its answer, and what this machine lacks for it."""

    tool: Callable[[Path], object]
    name: str
    arguments: dict[str, Any]
    answer: str
    missing: str = ""


def files(folder: Path) -> Files:
    (folder / "a.txt").write_text("one\ntwo\n")
    return Files(folder)


def conversation(folder: Path) -> Conversation:
    return Conversation()


def task_list(folder: Path) -> TaskList:
    tasks = TaskList(folder / "tasks.json")
    tasks.create_tasks(["read", "write"], section="Work")
    return tasks


def python(folder: Path) -> Python:
    return Python(folder)


def shell(folder: Path) -> Shell:
    return Shell(folder)


def shell_with_session(folder: Path) -> Shell:
    tool = Shell(folder)
    asyncio.run(tool.execute_command("echo ready; sleep 60", blocking=False, session_name="server"))
    return tool


TABLE = [
    Called(files, "create_file", {"file_path": "b.txt", "file_contents": "x < y && z\n"}, "created b.txt (11 bytes)"),
    Called(files, "read_file", {"file_path": "a.txt", "offset": 2}, "two"),
    Called(files, "str_replace", {"file_path": "a.txt", "old_str": "two", "new_str": "2"}, "replaced 1 occurrence"),
    Called(conversation, "ask", {"text": "a < b?", "attachments": ["a.md", "b.md"]}, "asked"),
    Called(conversation, "complete", {"text": "All done."}, "completed"),
    Called(task_list, "view_tasks", {}, "1. [ ] read\n2. [ ] write"),
    Called(
        task_list, "create_tasks", {"tasks": ["rest", "a, b"], "section": "After"}, "After:\n3. [ ] rest\n4. [ ] a, b"
    ),
    Called(task_list, "update_tasks", {"task_ids": [1, 2], "status": "completed"}, "1. [x] read\n2. [x] write"),
    Called(task_list, "delete_tasks", {"task_ids": [1]}, "Work:\n2. [ ] write"),
    Called(
        python, "python", {"code": "x = 3\nif x < 5 and x > 1:\n    print('<b>', x)\nx * 2"}, "<b> 3\n[value]\n6", WHY
    ),
    Called(shell, "execute_command", {"command": "echo 'a < b' && pwd | wc -l"}, "a < b\n1\n[exit code 0]", WHY),
    Called(shell_with_session, "check_command_output", {"session_name": "server"}, "[session server is running", WHY),
    Called(shell_with_session, "terminate_command", {"session_name": "server"}, "[session server was terminated]", WHY),
    Called(shell_with_session, "list_commands", {}, "server: running, started", WHY),
    Called(task_list, "clear_all", {}, "the list of tasks is empty"),
]


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format or "native")
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_every_tool_is_called_in_every_way(row: Called, format: str | None, tmp_path: Path) -> None:
    if row.missing:
        pytest.skip(row.missing)
    model = ScriptedModel([ToolCall("", row.name, row.arguments), END], format=format, chunk=7)
    result = Agent(model, tools=[row.tool(tmp_path)]).run_sync("Go.")
    [answer] = [message for message in result.messages if isinstance(message, ToolMessage)]
    assert (answer.name, row.answer in answer.text) == (row.name, True), answer.text
    assert result.finish == "agent_terminated" or result.text == END


def test_no_tool_is_missing_from_the_table() -> None:
    modules = [m.name for m in pkgutil.walk_packages(agentkit_tools.__path__, "agentkit_tools.")]
    classes = [
        cls
        for module in map(importlib.import_module, modules)
        for cls in vars(module).values()
        if inspect.isclass(cls) and issubclass(cls, Tool) and cls.__module__ == module.__name__
    ]
    methods = {name for cls in classes for name, method in inspect.getmembers(cls) if hasattr(method, "tool_schemas")}
    assert methods - {row.name for row in TABLE} == set()
