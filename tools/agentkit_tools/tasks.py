"""A list of tasks that the model keeps for itself, in memory or in a file."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Literal, NamedTuple

from agentkit import Tool, ToolResult, openapi_schema, xml_schema
from agentkit.errors import ConfigError
from agentkit_tools.folder import atomic_replace

Status = Literal["pending", "in_progress", "completed", "cancelled"]

MAX_TASKS: Final = 200  # a longer list helps no model, and each answer contains all of it
MAX_LENGTH: Final = 500  # characters of one task or section
_MARKS: Final[dict[Status, str]] = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}


@dataclass(frozen=True, slots=True)
class Task:
    """One task.

    Args:
        id: its number, counted from 1 and never used again.
        content: the work to do.
        section: the heading above it; empty for none.
        status: `pending`, `in_progress`, `completed` or `cancelled`.
    """

    id: int
    content: str
    section: str = ""
    status: Status = "pending"


class _Kept(NamedTuple):
    last: int
    tasks: list[Task]


class TaskList(Tool):
    """A list of tasks: the model writes down a plan, and the state of each point.

    Every answer contains the whole list, so that the model need not remember it. A call does all that it was asked for,
    or nothing. One instance belongs to one conversation; the list can be read as `tasks`.

    Args:
        file: a JSON file that keeps the list, so that it survives the process; created at the first change. By
            default the list is only in memory. Each change writes a draft, as `Files` does, which takes its place.

    Raises:
        ConfigError: the file exists and contains no list of tasks.
    """

    def __init__(self, file: str | Path | None = None) -> None:
        self._file = None if file is None else Path(file)
        self._tasks, self._last = _load(self._file)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks, in the order of their creation."""
        return tuple(self._tasks.values())

    @openapi_schema(idempotent=True)
    @xml_schema(name="view-tasks")
    def view_tasks(self) -> ToolResult:
        """Read the list of tasks with their numbers and states."""
        return ToolResult(self._text())

    @openapi_schema(exclusive=True)
    @xml_schema(name="create-tasks", attributes=["section"], elements=["tasks"])
    def create_tasks(self, tasks: list[str], section: str = "") -> ToolResult:
        """Add tasks at the end of the list. Write down a plan before work that takes several steps.

        Args:
            tasks: what is to be done, one step each
            section: a heading for these tasks, such as "Research"; may be one that exists
        """
        if not tasks:
            return ToolResult(error="tasks is empty; pass at least one task")
        if complaint := _wrong(*tasks) or (_wrong(section) if section else None):
            return ToolResult(error=complaint)
        if len(self._tasks) + len(tasks) > MAX_TASKS:
            return ToolResult(error=f"the list would have over {MAX_TASKS} tasks; write fewer, larger ones")
        made = {self._last + n: Task(self._last + n, text, section) for n, text in enumerate(tasks, 1)}
        return self._update(self._tasks | made, self._last + len(tasks))

    @openapi_schema(exclusive=True)
    @xml_schema(name="update-tasks", attributes=["task_ids", "status"], elements=["content"])
    def update_tasks(self, task_ids: list[int], status: Status | None = None, content: str | None = None) -> ToolResult:
        """Change the state of tasks, or the text of one. Mark a task as completed as soon as it is.

        Args:
            task_ids: the numbers of the tasks
            status: their new state
            content: a new text; only for a single task
        """
        if complaint := self._unknown(task_ids):
            return ToolResult(error=complaint)
        if status is None and content is None:
            return ToolResult(error="nothing to change: pass status or content")
        if content is not None and len(set(task_ids)) > 1:
            return ToolResult(error=f"one content for the tasks {task_ids}; update their texts one call each")
        if content is not None and (complaint := _wrong(content)):
            return ToolResult(error=complaint)
        new = {
            i: replace(task, status=status or task.status, content=task.content if content is None else content)
            for i, task in self._tasks.items()
            if i in task_ids
        }
        return self._update(self._tasks | new, self._last)

    @openapi_schema(exclusive=True)
    @xml_schema(name="delete-tasks", attributes=["task_ids"])
    def delete_tasks(self, task_ids: list[int]) -> ToolResult:
        """Remove tasks from the list. To drop a task but keep it visible, set its state to cancelled instead.

        Args:
            task_ids: the numbers of the tasks
        """
        if complaint := self._unknown(task_ids):
            return ToolResult(error=complaint)
        return self._update({i: task for i, task in self._tasks.items() if i not in task_ids}, self._last)

    @openapi_schema(exclusive=True)
    @xml_schema(name="clear-all")
    def clear_all(self) -> ToolResult:
        """Remove all tasks from the list."""
        return self._update({}, self._last)

    def _unknown(self, ids: list[int]) -> str | None:
        if not ids:
            return "task_ids is empty; pass the numbers of the tasks"
        missing = ", ".join(str(i) for i in ids if i not in self._tasks)
        present = ", ".join(map(str, self._tasks)) or "none"
        return missing and f"no task has the number {missing}; nothing was changed. The numbers are: {present}"

    def _update(self, tasks: dict[int, Task], last: int) -> ToolResult:
        if self._file is not None:
            _save(self._file, tasks, last)
        self._tasks, self._last = tasks, last
        return ToolResult(self._text())

    def _text(self) -> str:
        if not self._tasks:
            return "the list of tasks is empty"
        sections = dict.fromkeys(task.section for task in self._tasks.values())
        return "\n".join(self._section(name) for name in sorted(sections, key=bool))  # those without a section first

    def _section(self, name: str) -> str:
        lines = [f"{t.id}. {_MARKS[t.status]} {t.content}" for t in self._tasks.values() if t.section == name]
        return "\n".join([f"{name}:", *lines] if name else lines)


def _wrong(*texts: str) -> str | None:
    for text in texts:
        if not text.strip() or len(text) > MAX_LENGTH or "\n" in text:
            return f"{text[:80]!r} is not a task or section: expected one line of 1 to {MAX_LENGTH} characters"
    return None


def _load(file: Path | None) -> tuple[dict[int, Task], int]:
    if file is None or not file.exists():
        return {}, 0
    from pydantic import TypeAdapter

    try:
        last, tasks = TypeAdapter(_Kept).validate_json(file.read_bytes(), strict=True)
    except (OSError, ValueError) as e:
        raise ConfigError(f"TaskList(file={str(file)!r}): not a list of tasks ({e}); name another file") from e
    return {task.id: task for task in tasks}, last


def _save(file: Path, tasks: dict[int, Task], last: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    content = json.dumps([last, [asdict(task) for task in tasks.values()]], ensure_ascii=False).encode()
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with atomic_replace.lock_folder(folder):
            atomic_replace.put(folder, file.name, content)
    finally:
        os.close(folder)
