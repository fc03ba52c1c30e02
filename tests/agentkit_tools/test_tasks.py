"""The list of tasks: what each call changes, what it refuses, and that a file keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentkit import ConfigError
from agentkit_tools.tasks import MAX_TASKS, Task, TaskList


@pytest.fixture
def planned() -> TaskList:
    tasks = TaskList()
    tasks.create_tasks(["read", "compare"], section="Research")
    tasks.create_tasks(["write"])
    return tasks


def test_a_plan_is_shown_by_sections(planned: TaskList) -> None:
    assert planned.update_tasks([1], status="completed").text == (
        "3. [ ] write\nResearch:\n1. [x] read\n2. [ ] compare"
    )
    assert planned.tasks[0] == Task(1, "read", "Research", "completed")
    assert planned.update_tasks([2], content="compare prices").text.endswith("2. [ ] compare prices")


def test_numbers_are_never_used_again(planned: TaskList) -> None:
    planned.delete_tasks([3])
    assert planned.create_tasks(["publish"]).text.startswith("4. [ ] publish")
    planned.clear_all()
    assert planned.create_tasks(["again"]).text == "5. [ ] again"


@pytest.mark.parametrize(
    ("call", "arguments", "error"),
    [
        ("create_tasks", {"tasks": []}, "tasks is empty; pass at least one task"),
        (
            "create_tasks",
            {"tasks": ["ok", " "]},
            "' ' is not a task or section: expected one line of 1 to 500 characters",
        ),
        ("create_tasks", {"tasks": ["a\nb"]}, r"'a\nb' is not a task or section"),
        ("create_tasks", {"tasks": ["a"], "section": "\n"}, r"'\n' is not a task or section"),
        ("create_tasks", {"tasks": ["a"] * MAX_TASKS}, f"the list would have over {MAX_TASKS} tasks"),
        ("update_tasks", {"task_ids": [1, 9], "status": "completed"}, "no task has the number 9; nothing was changed."),
        ("update_tasks", {"task_ids": [], "status": "completed"}, "task_ids is empty"),
        ("update_tasks", {"task_ids": [1]}, "nothing to change: pass status or content"),
        ("update_tasks", {"task_ids": [1, 2], "content": "x"}, "one content for the tasks [1, 2]"),
        ("delete_tasks", {"task_ids": [7]}, "no task has the number 7; nothing was changed. The numbers are: 1, 2, 3"),
    ],
)
def test_a_call_does_all_or_nothing(planned: TaskList, call: str, arguments: dict[str, object], error: str) -> None:
    before = planned.tasks
    assert (getattr(planned, call)(**arguments).error or "").startswith(error)
    assert planned.tasks == before


def test_a_file_keeps_the_list(tmp_path: Path) -> None:
    file = tmp_path / "new" / "tasks.json"
    TaskList(file).create_tasks(["größer", "kleiner"])
    TaskList(file).delete_tasks([2])
    assert TaskList(file).create_tasks(["mehr"]).text == "1. [ ] größer\n3. [ ] mehr"
    assert [entry.name for entry in file.parent.iterdir()] == ["tasks.json"]


@pytest.mark.parametrize(
    "kept",
    [
        "",
        "[]",
        "{}",
        '[1, [{"id": 1}]]',
        '[1, [{"id": 1, "content": 2}]]',
        '[1, [{"id": 1, "content": "a", "status": "?"}]]',
    ],
)
def test_a_file_that_is_no_list_is_refused_and_not_changed(tmp_path: Path, kept: str) -> None:
    file = tmp_path / "tasks.json"
    file.write_text(kept)
    with pytest.raises(ConfigError, match="not a list of tasks"):
        TaskList(file)
    assert file.read_text() == kept
