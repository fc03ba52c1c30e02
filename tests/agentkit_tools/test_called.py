"""Every ready-made tool, called as models call: natively in JSON and in three text formats; always the same call.

A row is one call: how the tool is made in a new folder, its name, its arguments, and a piece of the answer. A method
that is in the package and not in the table fails the last test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confining import WHY
from ready_made import methods, tool_classes
from site_server import Page, SiteServer
from small_pdf import pdf

from agentkit import Agent
from agentkit.messages import ToolCall, ToolMessage
from agentkit.testing import ScriptedModel
from agentkit_tools.conversation import Conversation
from agentkit_tools.editor import StrReplaceEditor
from agentkit_tools.files import Files
from agentkit_tools.pdf import Pdf
from agentkit_tools.python import Python
from agentkit_tools.remote_python import RemotePython
from agentkit_tools.rewards import Geo3k, Gsm8k
from agentkit_tools.search import MassiveDS, RetrievalSearch, SemanticScholar, SerperSearch
from agentkit_tools.shell import Shell
from agentkit_tools.tasks import TaskList
from agentkit_tools.web import Web

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


def editor(folder: Path) -> StrReplaceEditor:
    return StrReplaceEditor(files(folder).root)


def pdf_folder(folder: Path) -> Pdf:
    (folder / "a.pdf").write_bytes(pdf("one", "two"))
    return Pdf(folder)


EDITOR = "str_replace_editor"


def conversation(folder: Path) -> Conversation:
    return Conversation()


def task_list(folder: Path) -> TaskList:
    tasks = TaskList(folder / "tasks.json")
    tasks.create_tasks(["read", "write"], section="Work")
    return tasks


SERVICES = {
    "/page": Page(b"<title>Tea</title><p>Leaves in <b>hot</b> water."),
    "/serper": Page({"organic": [{"title": "Tea", "link": "https://tea.example/", "snippet": "Leaves."}]}),
    "/s2": Page({"data": [{"snippet": {"text": "Leaves."}, "paper": {"corpusId": "7", "title": "On tea"}}]}),
    "/massive": Page({"results": {"passages": [["Leaves in water."]]}}),
    "/execute": Page({"output": "42\n", "error": None, "success": True}),
    "/retrieve": Page({"result": [[{"document": {"contents": "Tea\nLeaves."}, "score": 1}], []]}),
}
"""The services that some of the tools use, on this machine."""

SITE = SiteServer(SERVICES)


@pytest.fixture(scope="module", autouse=True)
def services() -> Iterator[None]:
    with SITE:
        yield


def web(folder: Path) -> Web:
    return Web(allow=["127.0.0.1"])


def serper(folder: Path) -> SerperSearch:
    return SerperSearch(url=f"{SITE.url}/serper", api_key="key-of-a-test")


def s2(folder: Path) -> SemanticScholar:
    return SemanticScholar(url=f"{SITE.url}/s2")


def massive_ds(folder: Path) -> MassiveDS:
    return MassiveDS(f"{SITE.url}/massive")


def retrieval(folder: Path) -> RetrievalSearch:
    return RetrievalSearch(f"{SITE.url}/retrieve")


def remote_python(folder: Path) -> RemotePython:
    return RemotePython(f"{SITE.url}/execute")


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
    Called(
        files, "str_replace", {"file_path": "a.txt", "old_str": "o", "new_str": "0", "replace_all": True}, "2 occurr"
    ),
    Called(files, "full_file_rewrite", {"file_path": "a.txt", "file_contents": "<b>&amp;\n"}, "rewrote a.txt (9"),
    Called(files, "delete_file", {"file_path": "a.txt"}, "deleted the file a.txt"),
    Called(files, "move", {"file_path": "a.txt", "new_path": "b/c.txt"}, "moved a.txt to b/c.txt"),
    Called(files, "list_files", {"glob": "*.txt", "depth": 1}, "a.txt"),
    Called(files, "search_files", {"pattern": "^t.o$", "context": 1}, "a.txt-1-one\na.txt:2:two"),
    Called(pdf_folder, "read_pdf", {"file_path": "a.pdf", "first_page": 2}, "two"),
    Called(editor, EDITOR, {"command": "view", "path": "a.txt", "view_range": [2, -1]}, "     2\ttwo"),
    Called(editor, EDITOR, {"command": "create", "path": "b.txt", "file_text": "<x>\n"}, "created b.txt (4 bytes)"),
    Called(editor, EDITOR, {"command": "str_replace", "path": "a.txt", "old_str": "two"}, "lines 1-2 are now"),
    Called(editor, EDITOR, {"command": "insert", "path": "a.txt", "insert_line": 0, "insert_text": "0"}, "     1\t0"),
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
    Called(web, "fetch_page", {"url": f"{SITE.url}/page?a=1&b=2", "whole": True}, "Leaves in **hot** water."),
    Called(serper, "serper_search", {"query": 'tea & "milk"'}, "1. Tea\n   https://tea.example/\n   Leaves."),
    Called(s2, "s2_search", {"query": "tea"}, "1. On tea\n   https://api.semanticscholar.org/CorpusID:7\n   Leaves."),
    Called(remote_python, "python", {"code": "x = 6\nif x < 7 and x > 1:\n    print('42')"}, "42"),
    Called(massive_ds, "massive_ds_search", {"query": "tea"}, "1. Leaves in water."),
    Called(
        retrieval, "search", {"query_list": ["tea", "milk, hot"]}, "tea:\n1. Tea\n   Leaves.\n\nmilk, hot:\nno results"
    ),
    Called(lambda _: Geo3k("12"), "calc_geo3k_reward", {"answer": r"\boxed{12}"}, "reward=1.0"),
    Called(lambda _: Gsm8k("#### 72"), "calc_gsm8k_reward", {"answer": "72"}, "reward=1.0"),
]


@pytest.mark.share(4)
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
    assert {name for cls in tool_classes() for name in methods(cls)} - {row.name for row in TABLE} == set()
