"""Files rewritten, deleted and moved, and pieces replaced everywhere; also by several at the same time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agentkit import ToolResult
from agentkit_tools.files import Files
from agentkit_tools.folder.file_changes import CRLF_KEPT
from agentkit_tools.folder.textfiles import MAX_BYTES


@pytest.fixture
def files(tmp_path: Path, opener: str) -> Files:
    return Files(tmp_path / "work")


def wrote(files: Files, name: str, content: bytes) -> Path:
    path = files.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def tree(files: Files) -> dict[str, bytes]:
    return {str(p.relative_to(files.root)): p.read_bytes() for p in files.root.rglob("*") if p.is_file()}


# Replacing everywhere


@pytest.mark.parametrize(
    ("content", "old", "new", "after", "said"),
    [
        (b"a b a\na\n", "a", "c", b"c b c\nc\n", "replaced 3 occurrences in f, lines 1, 1, 2"),
        (b"aaaa", "aa", "b", b"bb", "replaced 2 occurrences in f, lines 1, 1"),
        (b"a\r\nb\r\na\r\nb\r\n", "a\nb", "x", b"x\r\nx\r\n", "replaced 2 occurrences in f, lines 1, 3"),
        (b"a\r\n", "a", "x\ny", b"x\r\ny\r\n", f"replaced 1 occurrence in f, line 1{CRLF_KEPT}"),
        (b"a\r\na\r\n", "a", "\n", b"\r\n\r\n\r\n\r\n", f"replaced 2 occurrences in f, lines 1, 2{CRLF_KEPT}"),
        (b"a\r\n", "a", "x\r\ny", b"x\r\ny\r\n", "replaced 1 occurrence in f, line 1"),
        (b"a\r\na\n", "a\n", "x\ny\n", b"a\r\nx\ny\n", "replaced 1 occurrence in f, line 2"),
        (b"one", "one", "", b"", "replaced 1 occurrence in f, line 1"),
        (b"x\n" * 12, "x", "y", b"y\n" * 12, "replaced 12 occurrences in f, lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"),
    ],
)
def test_every_occurrence(files: Files, content: bytes, old: str, new: str, after: bytes, said: str) -> None:
    path = wrote(files, "f", content)
    assert files.str_replace("f", old, new, replace_all=True).text == said
    assert path.read_bytes() == after


def test_no_occurrence_is_an_error(files: Files) -> None:
    path = wrote(files, "f", b"a")
    assert "occurs 0 times in 'f', expected at least 1" in str(files.str_replace("f", "x", "y", True).error)
    assert path.read_bytes() == b"a"


def test_replacing_everywhere_does_not_fill_memory_or_disk(files: Files) -> None:
    path = wrote(files, "f", b"a" * 1_000_000)
    result = files.str_replace("f", "a", "b" * 10_000, True)
    assert result.error == f"'f' would have {10_000 * 1_000_000} bytes; only files of up to {MAX_BYTES} can be written"
    assert path.stat().st_size == 1_000_000


# Rewriting


def test_a_file_is_rewritten_and_keeps_what_is_not_its_content(files: Files) -> None:
    path = wrote(files, "f", b"old\r\n")
    path.chmod(0o754)
    assert files.full_file_rewrite("f", "new\n").text == "rewrote f (4 bytes)"
    assert (path.read_bytes(), path.stat().st_mode & 0o7777) == (b"new\n", 0o754)
    assert os.listdir(files.root) == ["f"]


def test_only_a_file_that_exists_is_rewritten(files: Files) -> None:
    wrote(files, "d/f", b"x")
    assert files.full_file_rewrite("g", "x").error == "'g' does not exist; its folder contains 'd'"
    assert files.full_file_rewrite("d", "x").error == "'d' is a folder, not a file"
    os.mkfifo(files.root / "pipe")
    assert files.full_file_rewrite("pipe", "x").error == "'pipe' is a pipe; only regular files are changed"


# Deleting


def test_a_file_and_an_empty_folder_are_deleted(files: Files) -> None:
    wrote(files, "d/f", b"x")
    assert files.delete_file("d/f").text == "deleted the file d/f"
    assert files.delete_file("d").text == "deleted the folder d"
    assert os.listdir(files.root) == []
    assert files.delete_file("d").error == "'d' does not exist; its folder contains nothing"


def test_a_folder_that_contains_anything_is_not_deleted(files: Files) -> None:
    wrote(files, "d/.hidden", b"x")
    assert files.delete_file("d").error == (
        "'d' is a folder that is not empty; only files and empty folders are deleted, so delete what it contains first"
    )
    assert tree(files) == {"d/.hidden": b"x"}


@pytest.mark.parametrize("path", ["", ".", "./", "d/..", ".."])
def test_the_working_folder_itself_is_not_deleted(files: Files, path: str) -> None:
    assert not files.delete_file(path).ok
    assert files.root.is_dir()


# Moving


def test_a_file_is_moved_with_all_that_belongs_to_it(files: Files) -> None:
    path = wrote(files, "a", b"\0binary")
    path.chmod(0o751)
    number = path.stat().st_ino
    assert files.move("a", "new/folder/b").text == "moved a to new/folder/b"
    moved = files.root / "new/folder/b"
    assert (moved.read_bytes(), moved.stat().st_mode & 0o7777, moved.stat().st_ino) == (b"\0binary", 0o751, number)
    assert os.listdir(files.root) == ["new"]


@pytest.mark.parametrize("target", ["b", "a", "d"])
def test_nothing_is_replaced_by_a_move(files: Files, target: str) -> None:
    for name in ("a", "b", "d/f"):
        wrote(files, name, name.encode())
    assert files.move("a", target).error == (
        f"{target!r} already exists and was not changed; delete it first, or choose another name"
    )
    assert tree(files) == {"a": b"a", "b": b"b", "d/f": b"d/f"}


def test_what_is_not_there_or_not_a_file_is_not_moved_and_makes_no_folder(files: Files) -> None:
    wrote(files, "d/f", b"x")
    (files.root / "link").symlink_to("d/f")
    assert files.move("nope", "x/y").error == "'nope' does not exist; its folder contains 'd', 'link'"
    assert files.move("d", "x/y").error == "'d' is a folder, not a file"
    assert files.move("link", "x/y").code == "denied"
    assert sorted(os.listdir(files.root)) == ["d", "link"]


@pytest.mark.parametrize(
    "act",
    [
        lambda files: files.move("a", ".env"),
        lambda files: files.move("a", ".github/workflows/a.yml"),
        lambda files: files.move(".envrc", "b"),
        lambda files: files.delete_file(".envrc"),
        lambda files: files.delete_file(".git"),
        lambda files: files.full_file_rewrite(".envrc", "x"),
        lambda files: files.str_replace(".envrc", "a", "x", True),
    ],
)
def test_protected_names_are_neither_taken_away_nor_made(files: Files, act: Callable[[Files], ToolResult]) -> None:
    before = {"a": b"a", ".envrc": b"a"}
    for name, content in before.items():
        wrote(files, name, content)
    (files.root / ".git").mkdir()
    assert act(files).code == "denied"
    assert tree(files) == before
    assert (files.root / ".git").is_dir()


# Several at once


def at_once(count: int, act: Callable[[int], object]) -> None:
    threads = [threading.Thread(target=act, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_of_many_moves_to_one_name_one_is_made(files: Files) -> None:
    for n in range(12):
        wrote(files, f"from/{n}", str(n).encode())
    results: dict[int, ToolResult] = {}
    at_once(12, lambda n: results.setdefault(n, Files(files.root).move(f"from/{n}", "to/one")))
    (made,) = [n for n, result in results.items() if result.ok]
    assert (files.root / "to/one").read_text() == str(made)
    assert tree(files) == {"to/one": b"%d" % made, **{f"from/{n}": b"%d" % n for n in range(12) if n != made}}


def test_of_many_moves_and_deletes_of_one_file_one_is_made(files: Files) -> None:
    for _ in range(10):
        wrote(files, "a", b"x")
        results: dict[int, ToolResult] = {}

        def act(n: int, results: dict[int, ToolResult] = results) -> None:
            one = Files(files.root)
            results[n] = one.move("a", f"to/{n}") if n % 2 else one.delete_file("a")

        at_once(6, act)
        (made,) = [n for n, result in results.items() if result.ok]
        assert tree(files) == ({f"to/{made}": b"x"} if made % 2 else {})
        if made % 2:
            assert files.delete_file(f"to/{made}").ok


def test_moves_in_opposite_directions_do_not_wait_for_each_other(files: Files) -> None:
    for n in range(40):
        wrote(files, f"{'ab'[n % 2]}/{n}", b"x")

    def act(n: int) -> None:
        here, there = "ab"[n % 2], "ba"[n % 2]
        assert Files(files.root).move(f"{here}/{n}", f"{there}/{n}").ok

    at_once(40, act)
    assert len(tree(files)) == 40
    assert all((files.root / "ba"[n % 2] / str(n)).is_file() for n in range(40))
