"""A process that is killed while it changes a file: the file is as before or complete, and what is left goes away."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from agentkit import ToolResult
from agentkit_tools.editor import StrReplaceEditor
from agentkit_tools.files import Files
from agentkit_tools.folder import atomic_replace
from agentkit_tools.tasks import TaskList

STEPS = ("open", "close", "stat", "fstat", "fsync", "link", "rename", "unlink", "fchmod", "fdopen", "mkdir", "rmdir")
BEFORE = {"a": b"one\ntwo\n"}

CHANGES: dict[str, tuple[Callable[[Files, StrReplaceEditor], ToolResult], dict[str, bytes]]] = {
    "create": (lambda files, _: files.create_file("b", "new"), {**BEFORE, "b": b"new"}),
    "create below": (lambda files, _: files.create_file("c/b", "new"), {**BEFORE, "c/b": b"new"}),
    "create with the editor": (
        lambda _, editor: editor.str_replace_editor("create", "b", file_text="new"),
        {**BEFORE, "b": b"new"},
    ),
    "rewrite": (lambda files, _: files.full_file_rewrite("a", "new"), {"a": b"new"}),
    "replace": (lambda files, _: files.str_replace("a", "one", "1"), {"a": b"1\ntwo\n"}),
    "insert": (
        lambda _, editor: editor.str_replace_editor("insert", "a", insert_line=0, insert_text="0"),
        {"a": b"0\none\ntwo\n"},
    ),
    "delete": (lambda files, _: files.delete_file("a"), {}),
}


def killed(act: Callable[[], object], step: int) -> bool:
    """Do something in a process that is killed before its n-th use of the file system; False if it has no more."""
    child = os.fork()
    if child == 0:
        try:
            left = step

            def killing(function: Callable[..., object]) -> Callable[..., object]:
                def called(*args: object, **named: object) -> object:
                    nonlocal left
                    left -= 1
                    if left < 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return function(*args, **named)

                return called

            for name in STEPS:
                setattr(os, name, killing(getattr(os, name)))
            act()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def seen(root: Path) -> dict[str, bytes]:
    """The files that a model is shown."""
    listed = Files(root).list_files(hidden=True)
    paths = [] if listed.text == "[nothing to list]" else listed.text.splitlines()
    return {path: (root / path).read_bytes() for path in paths if not path.endswith("/")}


@pytest.mark.share(4)
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it is multi-threaded; the child starts nothing
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_made_as_a_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    act, after = CHANGES[change]
    step = left = 0
    while True:
        root = tmp_path / str(step)
        root.mkdir()
        (root / "a").write_bytes(BEFORE["a"])
        tools = Files(root), StrReplaceEditor(root)
        if not killed(partial(act, *tools), step):
            break
        assert seen(root) in (BEFORE, after)
        if seen(root) == BEFORE:
            assert act(*tools).ok
            assert seen(root) == after
        left += len(drafts := list(root.rglob(".agentkit-*")))
        monkeypatch.setattr(atomic_replace, "ABANDONED", -1.0)
        for folder in {path.parent for path in drafts}:
            assert Files(folder).create_file("last", "").ok
        monkeypatch.undo()
        assert list(root.rglob(".agentkit-*")) == []
        step += 1
    assert seen(root) == after
    assert step > 5
    assert left > 0 or change == "delete"


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_list_of_tasks_is_kept_as_a_whole_and_what_is_left_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 0
    for step in count():
        file = tmp_path / str(step) / "tasks.json"
        TaskList(file).create_tasks(["one"])
        if not killed(partial(TaskList(file).create_tasks, ["two"]), step):
            break
        assert [task.content for task in TaskList(file).tasks] in (["one"], ["one", "two"])
        left += len(os.listdir(file.parent)) - 1
        with monkeypatch.context() as patched:
            patched.setattr(atomic_replace, "ABANDONED", -1.0)
            TaskList(file).create_tasks(["three"])
        assert os.listdir(file.parent) == ["tasks.json"]
    assert step > 5
    assert left > 0


def test_a_draft_that_is_being_written_stays(tmp_path: Path) -> None:
    """On a file system without locks, somebody else may be writing it."""
    names = [".agentkit-0000000000000000.tmp", ".agentkit-00112233445566aa.tmp", ".agentkit-mine.tmp"]
    for name in names:
        (tmp_path / name).write_text("draft")
    files = Files(tmp_path)
    assert files.create_file("a", "new").ok
    assert sorted(path.name for path in tmp_path.iterdir()) == [*names, "a"]
    assert files.list_files(hidden=True).text == ".agentkit-mine.tmp\na"
    assert files.search_files("draft", hidden=True).text == ".agentkit-mine.tmp:1:draft"
    assert files.read_file("nope").error == "'nope' does not exist; its folder contains '.agentkit-mine.tmp', 'a'"
    for name in names[:2]:
        assert sorted(path.name for path in tmp_path.iterdir()) == [*names, "a"], "the first one tells of the others"
        os.utime(tmp_path / name, (0, 0))
        assert files.full_file_rewrite("a", "newer").ok
    assert sorted(path.name for path in tmp_path.iterdir()) == [".agentkit-mine.tmp", "a"]


def test_no_file_can_be_given_the_name_of_a_draft(tmp_path: Path) -> None:
    """It would be hidden, and removed some time."""
    result = Files(tmp_path).create_file(".agentkit-0123456789abcdef.tmp", "x")
    assert "reserved for drafts" in (result.error or "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_nothing_but_such_a_draft_is_empty(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    draft = tmp_path / "d/.agentkit-00112233445566aa.tmp"
    draft.touch()
    os.utime(draft, (0, 0))
    assert Files(tmp_path).delete_file("d").ok


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    files = Files(tmp_path)
    assert files.create_file("a", "new").ok
    assert files.create_file("a", "other").error == "'a' already exists and was not changed; change it with str_replace"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "new")]


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_a_name_that_is_taken_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    flush = os.fsync

    def taken(handle: int) -> None:
        flush(handle)
        (tmp_path / "a").write_text("of an editor")

    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "fsync", taken)
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    assert Files(tmp_path).create_file("a", "new").error == (
        "'a' already exists and was not changed; change it with str_replace"
    )
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "of an editor")]
