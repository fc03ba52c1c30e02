"""Hostile paths, links, files and names, by the rows of the project's table of hostile inputs.

Row 21, the extraction of archives, does not apply: no tool extracts any.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentkit import ToolResult
from agentkit_tools.editor import StrReplaceEditor
from agentkit_tools.files import Files
from agentkit_tools.folder.textfiles import MAX_BYTES

SECRET = "outside\n"


@pytest.fixture
def files(tmp_path: Path, opener: str) -> Files:
    (tmp_path / "secret").write_text(SECRET)
    return Files(tmp_path / "work")


@pytest.fixture
def editor(files: Files) -> StrReplaceEditor:
    return StrReplaceEditor(files.root)


def every_way(files: Files, editor: StrReplaceEditor, path: str) -> dict[str, ToolResult]:
    """Each method and command that takes a path, called with it."""
    edit = editor.str_replace_editor
    return {
        "create_file": files.create_file(path, "x"),
        "read_file": files.read_file(path),
        "str_replace": files.str_replace(path, "outside", "x"),
        "replace_all": files.str_replace(path, "outside", "x", True),
        "full_file_rewrite": files.full_file_rewrite(path, "x"),
        "delete_file": files.delete_file(path),
        "move from": files.move(path, "moved"),
        "move to": files.move("there", path),
        "list_files": files.list_files(path),
        "search_files": files.search_files("outside", path),
        "view": edit("view", path),
        "create": edit("create", path, file_text="x"),
        "editor's str_replace": edit("str_replace", path, old_str="outside", new_str="x"),
        "insert": edit("insert", path, insert_line=0, insert_text="x"),
    }


def seen(root: Path) -> dict[str, bytes]:
    """Everything below a folder: the contents of files, the targets of links."""
    return {
        str(p): os.readlink(p).encode() if p.is_symlink() else p.read_bytes() if p.is_file() else b""
        for p in sorted(root.rglob("*"))
    }


@pytest.mark.parametrize(
    "path",
    [
        *("../secret", "../../etc/passwd", "a/../../secret", "/etc/passwd", "//etc/passwd", "~/.ssh/id_rsa", "~root/x"),
        *(
            "C:\\Windows\\win.ini",
            "c:x",
            "..\\secret",
            "a\x00.txt",
            "n" * 5000,
            "n" * 256,
            "é" * 128,
            "a/" * 2500 + "b",
        ),
    ],
)
def test_row_15_a_path_that_leads_out_is_refused_before_anything_is_opened(
    files: Files, editor: StrReplaceEditor, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_open(*_: object, **__: object) -> int:
        raise AssertionError("opened")

    (files.root / "there").write_text("x")
    before = seen(files.root.parent)
    monkeypatch.setattr(os, "open", no_open)
    monkeypatch.setattr("agentkit_tools.folder.beneath.beneath", no_open)
    for way, result in every_way(files, editor, path).items():
        assert not result.ok, way
        assert len(str(result.error)) < 300
    monkeypatch.undo()
    assert seen(files.root.parent) == before


LINKS: dict[str, Callable[[Path], str]] = {
    "file": lambda outside: str(outside / "secret"),
    "relative": lambda _: "../secret",
    "folder": str,
    "up": lambda _: "..",
    "proc": lambda _: "/proc/self/root",
    "cwd": lambda _: "/proc/self/cwd",
    "fd": lambda _: "/proc/self/fd/0",
    "dangling": lambda outside: str(outside / "new"),
    "loop": lambda _: "loop",
    "inside": lambda _: "plain",
}


@pytest.mark.parametrize(
    "path",
    [
        *("file", "relative", "folder", "up", "proc", "cwd", "fd", "dangling", "loop", "inside"),
        *(
            "folder/secret",
            "up/secret",
            "proc/etc/passwd",
            "cwd/x",
            "fd/x",
            "inside/a",
            "plain/up/secret",
            "up/work/there",
        ),
    ],
)
def test_row_16_no_link_is_followed(files: Files, editor: StrReplaceEditor, path: str) -> None:
    outside = files.root.parent
    (files.root / "plain").mkdir()
    (files.root / "plain/a").write_text("inside\n")
    (files.root / "plain/up").symlink_to("../..")
    (files.root / "there").write_text("x")
    for name, target in LINKS.items():
        (files.root / name).symlink_to(target(outside))
    before = seen(outside)
    for way, result in every_way(files, editor, path).items():
        assert not result.ok, way
        assert SECRET.strip() not in str(result.error)
        expected = "is a symbolic link" if way not in ("create_file", "create", "move to") else ""
        assert expected in str(result.error), way
    assert seen(outside) == before


def test_row_16_a_walk_names_links_and_does_not_enter_them(files: Files) -> None:
    (files.root / "a").write_text("inside\n")
    for name, target in LINKS.items():
        (files.root / name).symlink_to(target(files.root.parent))
    names = "\n".join(f"{name} (a symbolic link)" for name in sorted(LINKS))
    assert files.list_files().text == f"a\n{names}"
    assert files.search_files("outside|inside|root").text == "a:1:inside"


SWAP = """
import os, sys
spot, kept, outside = sys.argv[1:]
number = 0
while True:
    number += 1
    try:
        os.rename(kept, spot)
        os.rename(spot, kept)
        os.symlink(outside, spot)
        os.unlink(spot)
    except OSError:  # a tool was quicker and made the folder itself
        try:
            os.rename(spot, f"{spot}{number}")
        except OSError:
            pass
"""

SWAP_FILE = """
import os, sys
spot, kept, outside = sys.argv[1:]
file, plain, secret = kept + "/b.txt", kept + "/plain", outside + "/a.txt"
while True:
    try:
        # without O_NOFOLLOW it would itself write to the outside, whenever its last link could not be moved
        out = os.open(plain, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW)
        os.write(out, b"inside\\n")
        os.close(out)
        os.rename(plain, file)
        os.symlink(secret, plain)
        os.rename(plain, file)
    except OSError:
        try:
            os.unlink(plain)
        except OSError:
            pass
"""


@contextmanager
def attacked(*programs: str, arguments: list[str]) -> Iterator[None]:
    """Other processes that swap folders and files for links to the outside and back, as fast as they can."""
    attackers = [subprocess.Popen([sys.executable, "-c", program, *arguments]) for program in programs]
    try:
        yield
        assert [attacker.poll() for attacker in attackers] == [None] * len(attackers)
    finally:
        for attacker in attackers:
            attacker.kill()
            attacker.wait()


@pytest.mark.parametrize("seconds", [1, pytest.param(10, marks=pytest.mark.soak)])
def test_row_17_links_swapped_in_between_check_and_use_are_never_followed(files: Files, seconds: int) -> None:
    """Every method, for so many seconds, next to two processes that swap."""
    outside, kept = files.root.parent / "outside", files.root / "kept"
    for folder, text in ((outside, SECRET), (kept, "inside\n")):
        folder.mkdir()
        (folder / "a.txt").write_text(text)
        (folder / "b.txt").write_text(text)
    before = seen(outside)
    acts: list[Callable[[int], ToolResult]] = [
        *[lambda n: files.read_file(f"spot/{'ab'[n % 2]}.txt")] * 4,
        lambda _: files.read_file("kept/b.txt"),
        lambda _: files.search_files("."),
        lambda _: files.list_files(),
        lambda n: files.create_file(f"spot/new{n}", "x"),
        lambda _: files.str_replace("spot/a.txt", "side", "x"),
        lambda _: files.str_replace("spot/b.txt", "i", "x", True),
        lambda _: files.full_file_rewrite("spot/b.txt", "x"),
        lambda n: files.move("spot/b.txt", f"c{n}"),
        lambda n: files.move(f"c{n}", "spot/c"),
        lambda _: files.delete_file("spot/c"),
    ]
    done = reached = 0
    with attacked(SWAP, SWAP_FILE, arguments=[str(files.root / "spot"), str(kept), str(outside)]):
        for act in acts:
            end = time.monotonic() + seconds / len(acts)
            while time.monotonic() < end:
                done += 1
                result = act(done)
                assert SECRET.strip() not in result.text
                reached += result.ok
    print(f"{done} operations in {seconds} s, {reached} successful, 0 escapes")
    assert seen(outside) == before
    assert reached  # the race was run, not merely refused


def test_row_18_pipes_sockets_and_devices_hang_nothing(
    files: Files, editor: StrReplaceEditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files.root)  # a socket's whole path must be short
    os.mkfifo("pipe")
    os.mkfifo(".gitignore")
    (files.root / "there").write_text("x")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        for path in ("pipe", "sock"):
            for way, result in every_way(files, editor, path).items():
                assert not result.ok, way
        assert files.list_files().text == "pipe (a pipe)\nsock (a socket)\nthere"
        assert files.search_files(".").text == "there:1:x"


def test_row_18_devices_are_not_read(opener: str) -> None:
    dev = Files("/dev")
    assert dev.read_file("zero").error == "'zero' is a device, not a file"
    assert dev.search_files("x", glob="{zero,null,random}").text == "[nothing found in 0 files]"


def test_row_18_huge_sparse_and_binary_files_cost_nothing(files: Files) -> None:
    def sparse() -> None:
        with (files.root / "huge").open("wb") as file:
            file.truncate(10 << 30)

    sparse()
    start = time.process_time()
    edit = StrReplaceEditor(files.root).str_replace_editor
    for result in (
        files.read_file("huge"),
        files.str_replace("huge", "a", "b", True),
        edit("view", "huge"),
        edit("insert", "huge", insert_line=0, insert_text="x"),
    ):
        assert result.error == f"'huge' is binary ({10 << 30} bytes, with NUL near the beginning), not text"
    assert files.search_files(".").text == (
        f"[nothing found in 0 files; not seen: 1 files of more than {MAX_BYTES} bytes]"
    )
    assert files.full_file_rewrite("huge", "x").ok
    sparse()
    assert files.move("huge", "moved").ok
    assert files.delete_file("moved").ok
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("content", "old", "every", "after"),
    [
        (b"a", "x", False, None),
        (b"a", "x", True, None),
        (b"aa", "a", False, None),
        (b"a\r\nb\r\n", "a\nb", False, b"z\r\n"),
        (b"a\r\nb\n", "b", False, b"a\r\nz\n"),
        (b"a\nb", "b", False, b"a\nz"),
        (b"\xff a \xfe", "a", False, b"\xff z \xfe"),
        (b"\xff a a\r", "a", True, b"\xff z z\r"),
    ],
)
def test_row_19_a_change_is_exact_or_an_error(
    files: Files, content: bytes, old: str, every: bool, after: bytes | None
) -> None:
    path = files.root / "f"
    path.write_bytes(content)
    path.chmod(0o640)
    assert files.str_replace("f", old, "z", every).ok == (after is not None)
    assert path.read_bytes() == (content if after is None else after)
    assert path.stat().st_mode & 0o7777 == 0o640
    assert os.listdir(files.root) == ["f"]


WAYS_TO_WRITE_A_NAME = {
    "as it is": str,
    "upper case": str.upper,
    "invisible characters": lambda name: name[:2] + "\u200b\u2060" + name[2:],
    "full width": lambda name: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" and c != "/" else c for c in name),
    "dots at the end": lambda name: name + "..",
    "a space at the end": lambda name: name + " ",
    "a stream": lambda name: name + "::$DATA",
    "long s": lambda name: name.replace("s", "\u017f"),
}


@pytest.mark.parametrize("name", [".git/hooks/pre-commit", ".env", "sitecustomize.py", "conftest.py", ".claude"])
@pytest.mark.parametrize("way", WAYS_TO_WRITE_A_NAME.values(), ids=WAYS_TO_WRITE_A_NAME)
def test_row_20_protected_names_are_not_written_however_they_are_spelt(
    files: Files, editor: StrReplaceEditor, name: str, way: Callable[[str], str]
) -> None:
    (files.root / "there").write_text("x")
    path = "/".join(map(way, name.split("/")))
    for act, result in every_way(files, editor, path).items():
        reading = act in ("read_file", "list_files", "search_files", "view")
        assert (result.code == "denied") != reading, (act, result.error)
    assert os.listdir(files.root) == ["there"]


def test_row_20_the_short_name_of_git_is_protected_and_what_only_resembles_one_is_not(files: Files) -> None:
    assert files.create_file("git~1/hooks/x", "x").code == "denied"
    for name in ("...", "env.", "git:x", ".environment", "s. .x"):
        assert files.create_file(name, "x").ok, name


def test_names_are_bytes_and_forms_of_unicode_stay_apart(files: Files) -> None:
    composed, split = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))
    assert files.create_file(composed, "1").ok
    if not files.create_file(split, "2").ok:
        pytest.skip("this file system takes both forms for one name")
    assert (files.read_file(composed).text, files.read_file(split).text) == ("1", "2")
    assert len(files.list_files().text.splitlines()) == 2


def test_a_name_that_is_not_utf8_is_shown_and_harms_nothing(files: Files) -> None:
    (files.root / os.fsdecode(b"caf\xe9")).mkdir()
    (files.root / os.fsdecode(b"caf\xe9/a\xff")).write_text("hit\n")
    assert files.list_files().text == "'caf\\udce9/'/\n'caf\\udce9/a\\udcff'".replace("/'/", "'/")
    assert files.search_files("hit").text == "'caf\\udce9/a\\udcff':1:hit"
    assert files.read_file("nope").error == "'nope' does not exist; its folder contains 'caf\\udce9'"
    assert "is a lone surrogate" in str(files.read_file("caf\udce9").error)


def test_thousands_of_files_in_one_folder(files: Files) -> None:
    for n in range(3000):
        (files.root / f"{n:04}").touch()
    listed = files.list_files().text.splitlines()
    assert (listed[0], listed[1999], listed[2000][:28]) == ("0000", "1999", "[cut: the first 2000 entries")
    error = str(files.read_file("nope").error)
    assert error.endswith("'0019' and 2980 more")


def test_a_tree_that_changes_while_it_is_walked_is_walked_to_its_end(files: Files) -> None:
    for n in range(50):
        (files.root / f"d{n}").mkdir()
        (files.root / f"d{n}" / "f").write_text("hit\n")
    stop = threading.Event()

    def restless() -> None:
        n = 0
        while not stop.is_set():
            n = (n + 1) % 50
            (files.root / f"d{n}").rename(files.root / "away")
            (files.root / "away").rename(files.root / f"d{n}")

    thread = threading.Thread(target=restless)
    thread.start()
    try:
        for _ in range(20):
            found = files.search_files("hit").text.splitlines()
            lines = [line for line in found if line[0] != "["]
            assert 40 <= len(set(lines)) == len(lines) <= 51
    finally:
        stop.set()
        thread.join()
