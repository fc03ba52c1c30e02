"""The file tools: what they do, what they refuse, and that nothing leads out of their folder."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import ToolRegistry, ToolResult
from agentkit_tools.files import Files
from agentkit_tools.folder.textfiles import MAX_BYTES, MAX_CHARACTERS

SECRET = "outside\n"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    (tmp_path / "secret").write_text(SECRET)
    return Files(tmp_path / "work")


def wrote(files: Files, name: str, content: bytes) -> Files:
    (files.root / name).write_bytes(content)
    return files


def entries(files: Files) -> list[str]:
    return sorted(os.listdir(files.root))


# What they do


def test_create_read_change(files: Files) -> None:
    assert files.create_file("src/a.py", "x = 1\n").text == "created src/a.py (6 bytes)"
    assert files.read_file("src/a.py").text == "x = 1\n"
    assert files.str_replace("src/a.py", "1", "2").text == "replaced 1 occurrence in src/a.py, line 1"
    assert (files.root / "src/a.py").read_bytes() == b"x = 2\n"


def test_all_are_registered_under_name_and_tag(files: Files) -> None:
    registry = ToolRegistry()
    registry.register_tool(files)
    names = ["create_file", "read_file", "str_replace", "full_file_rewrite", "delete_file", "move"]
    names += ["list_files", "search_files"]
    assert sorted(registry.tools) == sorted(names)
    assert sorted(registry.xml_tools) == sorted(name.replace("_", "-") for name in names)
    assert registry.xml_tools["str-replace"] is registry.tools["str_replace"]


def test_create_makes_folders_and_leaves_nothing_else(files: Files) -> None:
    assert files.create_file("a/b/c.txt", "").ok
    assert [str(p.relative_to(files.root)) for p in sorted(files.root.rglob("*"))] == ["a", "a/b", "a/b/c.txt"]


def test_create_never_touches_a_file_that_exists(files: Files) -> None:
    wrote(files, "a.txt", b"old")
    assert files.create_file("a.txt", "new").error == (
        "'a.txt' already exists and was not changed; change it with str_replace"
    )
    assert (files.root / "a.txt").read_bytes() == b"old"


def test_a_path_may_wander_inside(files: Files) -> None:
    assert files.create_file("./a//./b.txt", "x").ok
    assert files.read_file("a/b.txt").text == "x"


def test_a_missing_file_is_answered_with_what_is_there(files: Files) -> None:
    wrote(files, "main.py", b"")
    assert files.read_file("mian.py").error == "'mian.py' does not exist; its folder contains 'main.py'"
    assert files.read_file("src/main.py").error == "'src' does not exist; its folder contains 'main.py'"
    assert files.str_replace("nope", "a", "b").error == "'nope' does not exist; its folder contains 'main.py'"


# What is refused before anything is opened


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../secret", "contains .., which could leave the folder"),
        ("../../etc/passwd", "contains .., which could leave the folder"),
        ("a/../../secret", "contains .., which could leave the folder"),
        ("a/..", "contains .., which could leave the folder"),
        ("/etc/passwd", "is absolute"),
        ("//etc/passwd", "is absolute"),
        ("~/.ssh/id_rsa", "starts with ~"),
        ("~root/x", "starts with ~"),
        ("C:\\Windows\\win.ini", "starts with a drive letter"),
        ("c:x", "starts with a drive letter"),
        ("..\\secret", "contains a backslash"),
        ("a\x00.txt", "contains a NUL character"),
        ("n" * 5000, "is too long"),
        ("n" * 256, "is too long"),
        ("é" * 128, "is too long"),
        ("a/" * 2500 + "b", "is too long"),
        ("\udcff.txt", "is a lone surrogate"),
        ("", "does not name a file"),
        (".", "does not name a file"),
        ("a/", "does not name a file"),
        ("a/.", "does not name a file"),
    ],
)
def test_such_a_path_is_refused_before_open(files: Files, path: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_open(*_: object, **__: object) -> int:
        raise AssertionError("opened")

    monkeypatch.setattr(os, "open", no_open)
    for result in (files.read_file(path), files.create_file(path, "x"), files.str_replace(path, "a", "b")):
        assert why in str(result.error)
        assert len(str(result.error)) < 300


@pytest.mark.parametrize("path", ["...", "a..b", ".hidden", "a b", "-rf", "ä/日本.txt", "con", "ab:c", "x~", "\n"])
def test_an_odd_name_is_still_a_name(files: Files, path: str) -> None:
    assert files.create_file(path, "x").ok
    assert files.read_file(path).text == "x"


@given(st.text(st.sampled_from("./~\\ab\0:C"), max_size=12))
def test_no_path_leads_out(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    base = tmp_path_factory.mktemp("base")
    files = Files(base / "work")
    made = files.create_file(path, "x")
    assert [p.name for p in base.iterdir()] == ["work"]
    assert made.ok == any(p.is_file() for p in files.root.rglob("*"))


# Links and what is no file


@pytest.fixture
def linked(files: Files) -> Files:
    """Every kind of link that could lead out, and some that stay inside."""
    outside = files.root.parent
    (files.root / "plain").mkdir()
    for name, target in {
        "file": outside / "secret",
        "relative": Path("../secret"),
        "folder": outside,
        "up": Path(".."),
        "proc": Path("/proc/self/root"),
        "cwd": Path("/proc/self/cwd"),
        "dangling": outside / "new",
        "loop": Path("loop"),
        "inside": Path("plain"),
    }.items():
        (files.root / name).symlink_to(target)
    return files


@pytest.mark.parametrize(
    "path",
    ["file", "relative", "dangling", "loop", "folder/secret", "up/secret", "proc/etc/passwd", "cwd/x", "inside/x"],
)
def test_no_link_is_followed(linked: Files, path: str) -> None:
    before = sorted(linked.root.parent.iterdir())
    read, changed, created = (
        linked.read_file(path),
        linked.str_replace(path, "outside", "x"),
        linked.create_file(path, "x"),
    )
    assert (read.code, changed.code) == ("denied", "denied")
    assert read.error == f"{path.split('/')[0]!r} is a symbolic link; only regular files and folders are opened"
    assert not created.ok
    assert sorted(linked.root.parent.iterdir()) == before
    assert (linked.root.parent / "secret").read_text() == SECRET


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert Files(tmp_path / "link").create_file("a", "x").ok
    assert (tmp_path / "real/a").read_text() == "x"


def test_a_pipe_is_refused_without_waiting(files: Files) -> None:
    os.mkfifo(files.root / "pipe")
    assert files.read_file("pipe").error == "'pipe' is a pipe, not a file"
    assert files.str_replace("pipe", "a", "b").error == "'pipe' is a pipe, not a file"


def test_a_socket_is_refused(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files.root)  # a socket's whole path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        assert files.read_file("sock").error == "'sock' is a socket; only regular files and folders are opened"


def test_a_device_is_refused() -> None:
    assert Files("/dev").read_file("zero").error == "'zero' is a device, not a file"


def test_a_folder_is_no_file_and_a_file_no_folder(files: Files) -> None:
    files.create_file("a/b", "x")
    assert files.read_file("a").error == "'a' is a folder, not a file"
    assert files.read_file("a/b/c").error == "'a/b' is a file, not a folder"
    assert files.create_file("a/b/c", "x").error == "'a/b' is a file, not a folder"


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".env", "sub/.env", ".GIT/config", "pkg/sitecustomize.py"])
def test_protected_names_are_not_written(files: Files, path: str) -> None:
    (files.root / path).parent.mkdir(parents=True, exist_ok=True)
    for result in (files.create_file(path, "x"), files.str_replace(path, "a", "b")):
        assert (result.code, "may be read but not written" in str(result.error)) == ("denied", True)
    (files.root / path).write_text("a")
    assert files.read_file(path).text == "a"


def test_protection_is_the_application_s_to_choose(tmp_path: Path) -> None:
    assert Files(tmp_path, protected=()).create_file(".env", "x").ok
    assert Files(tmp_path, protected={"settings.toml"}).create_file("Settings.toml", "x").code == "denied"


# Reading what is long, odd or no text


def test_a_long_file_is_cut_with_a_mark_that_says_how_to_read_on(files: Files) -> None:
    wrote(files, "a", b"".join(b"%d\n" % n for n in range(1, 6)))
    assert files.read_file("a", limit=2).text == "1\n2\n[cut: lines 1-2 of 5; continue with offset=3]"
    assert files.read_file("a", offset=3, limit=2).text == "3\n4\n[cut: lines 3-4 of 5; continue with offset=5]"
    assert files.read_file("a", offset=5).text == "5\n[lines 5-5 of 5]"


def test_reading_on_by_the_marks_gives_the_whole_file(files: Files) -> None:
    text = "".join(f"line {n}\n" for n in range(40_000))
    wrote(files, "a", text.encode())
    pieces, offset = [], 1
    while True:
        piece, _, mark = files.read_file("a", offset=offset).text.rpartition("\n")
        pieces.append(piece + "\n")
        if "offset=" not in mark:
            break
        offset = int(mark.split("offset=")[1].rstrip("]"))
    assert "".join(pieces) == text


@pytest.mark.parametrize(
    ("offset", "limit", "why"),
    [
        (3, 10, "'a' has 2 lines; offset=3 is past its end"),
        (0, 10, "offset and limit count lines from 1, got offset=0, limit=10"),
        (1, -1, "offset and limit count lines from 1, got offset=1, limit=-1"),
    ],
)
def test_lines_that_do_not_exist(files: Files, offset: int, limit: int, why: str) -> None:
    assert wrote(files, "a", b"1\n2\n").read_file("a", offset, limit).error == why


def test_one_endless_line_is_cut(files: Files) -> None:
    wrote(files, "a", b"x" * (MAX_CHARACTERS + 5))
    text = files.read_file("a").text
    assert text.startswith("x" * MAX_CHARACTERS + "\n[")
    assert text.endswith(f"\n[cut: the first {MAX_CHARACTERS} of the {MAX_CHARACTERS + 5} characters of line 1]")


def test_a_huge_sparse_file_costs_no_memory(files: Files) -> None:
    with (files.root / "a").open("wb") as file:
        file.truncate(10 << 30)
    assert files.read_file("a").error == f"'a' is binary ({10 << 30} bytes, with NUL near the beginning), not text"


def test_beyond_the_readable_bytes(files: Files) -> None:
    wrote(files, "a", b"12345678\n" * (MAX_BYTES // 9 + 5))
    lines = MAX_BYTES // 9 + 1
    size = (MAX_BYTES // 9 + 5) * 9
    note = f"; only the first {MAX_BYTES} of the file's {size} bytes can be read]"
    assert files.read_file("a", limit=1).text == f"12345678\n[cut: lines 1-1 of {lines}; continue with offset=2{note}"
    assert files.read_file("a", offset=lines).text == f"1\n[lines {lines}-{lines} of {lines}{note}"
    assert "only files of up to" in str(files.str_replace("a", "1", "2").error)


def test_a_binary_file_is_not_shown(files: Files) -> None:
    assert (
        wrote(files, "a", b"\x7fELF\0").read_file("a").error
        == "'a' is binary (5 bytes, with NUL near the beginning), not text"
    )


def test_what_is_not_utf8_is_shown_as_far_as_it_can_be(files: Files) -> None:
    assert wrote(files, "a", b"caf\xe9\n").read_file("a").text == (
        "caf\ufffd\n[not valid UTF-8: U+FFFD replaces what cannot be decoded]"
    )


def test_an_empty_file_says_so(files: Files) -> None:
    assert wrote(files, "a", b"").read_file("a").text == "[the file is empty]"


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=200))
def test_what_is_created_is_read_to_the_byte(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    files = Files(tmp_path_factory.mktemp("work"))
    files.create_file("a", text)
    assert (files.root / "a").read_bytes() == text.encode()
    assert files.read_file("a").text == text


FITTING = {
    "file_path": "a",
    "new_path": "b",
    "file_contents": "x",
    "old_str": "x",
    "new_str": "z",
    "folder": ".",
    "glob": "*",
    "pattern": "x",
}
TEXTS = [
    (spec.name, parameter, [name for name in spec.parameters["properties"] if name in FITTING])
    for spec in ToolRegistry(Files("/")).specs()
    for parameter, schema in spec.parameters["properties"].items()
    if schema["type"] == "string"
]


@pytest.mark.parametrize(("name", "parameter", "others"), TEXTS, ids=lambda value: value if type(value) is str else "")
@pytest.mark.parametrize("text", ["\ud83d", "a\ud83d", "[\ud83d]", "\udcff*"], ids=ascii)
def test_no_parameter_takes_a_lone_surrogate(
    files: Files, name: str, parameter: str, others: list[str], text: str
) -> None:
    given = {other: FITTING[other] for other in others} | {parameter: text}
    result = getattr(wrote(files, "a", b"x y"), name)(**given)
    place = next(n for n, char in enumerate(text) if char >= "\ud800")
    assert f"character {place} is a lone surrogate" in str(result.error)


def test_a_lone_surrogate_is_refused_and_nothing_is_made(files: Files) -> None:
    assert files.create_file("a", "ab\ud800").error == (
        "file_contents cannot be written as UTF-8: character 2 is a lone surrogate"
    )
    assert entries(files) == []


# Changing


@pytest.mark.parametrize(
    ("content", "old", "new", "after"),
    [
        (b"a\nb", "b", "c", b"a\nc"),  # no newline at the end: none is added
        (b"a\r\nb\r\n", "a\nb", "x\ny", b"x\r\ny\r\n"),  # a file of CRLF lines stays one
        (b"a\r\nb\r\n", "a\r\nb", "x", b"x\r\n"),
        (b"a\r\nb\n", "b", "c\nd", b"a\r\nc\nd\n"),  # mixed line ends: as given
        (b"\xff\xfe a b", "a", "\u00e9", b"\xff\xfe \xc3\xa9 b"),  # bytes that are no UTF-8 stay
        (b"\xef\xbb\xbfa", "a", "b", b"\xef\xbb\xbfb"),  # a byte-order mark stays
        (b"a b c", " b", "", b"a c"),
        (b"x = $1 \\1", "$1 \\1", "\\g<0>", b"x = \\g<0>"),  # nothing is a pattern
    ],
)
def test_only_the_piece_changes(files: Files, content: bytes, old: str, new: str, after: bytes) -> None:
    assert wrote(files, "a", content).str_replace("a", old, new).ok
    assert (files.root / "a").read_bytes() == after


@pytest.mark.parametrize(
    ("content", "old", "why"),
    [
        (b"abc", "x", "old_str occurs 0 times in 'a', expected exactly 1; read the file and copy the piece"),
        (b"if x:\n\ty()", "    y()", "without the surrounding white space it occurs 1 times"),
        (
            b"x\ny\nx\n",
            "x",
            "old_str occurs 2 times in 'a' (lines 1, 3), expected exactly 1; include more of the surrounding text",
        ),
        (b"aaa", "aa", "old_str occurs 2 times in 'a' (lines 1, 1)"),  # overlapping: which one is meant?
        (b"x\n" * 12, "x", "old_str occurs 12 times in 'a' (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)"),
        (b"x" * 500, "x", "old_str occurs 100 times or more in 'a'"),
        (b"x", "", "old_str is empty"),
        (b"x", "y", "old_str and new_str are the same: nothing would change"),
    ],
)
def test_no_guess_where_the_piece_is(files: Files, content: bytes, old: str, why: str) -> None:
    result = wrote(files, "a", content).str_replace("a", old, "y")
    assert why in str(result.error)
    assert (files.root / "a").read_bytes() == content
    assert entries(files) == ["a"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o444])
def test_the_mode_is_kept(files: Files, mode: int) -> None:
    wrote(files, "a", b"x")
    (files.root / "a").chmod(mode)
    assert files.str_replace("a", "x", "y").ok
    assert (files.root / "a").stat().st_mode & 0o7777 == mode


def test_a_new_file_has_the_mode_of_the_umask(files: Files) -> None:
    old = os.umask(0o027)
    try:
        files.create_file("a", "x")
    finally:
        os.umask(old)
    assert (files.root / "a").stat().st_mode & 0o7777 == 0o640


def test_a_hard_link_to_the_outside_is_cut_not_written_through(files: Files) -> None:
    os.link(files.root.parent / "secret", files.root / "a")
    assert files.str_replace("a", "outside", "changed").ok
    assert (files.root.parent / "secret").read_text() == SECRET


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_loses_nothing_and_leaves_nothing(files: Files) -> None:
    wrote(files, "a", b"old")
    assert files.str_replace("a", "old", "new").error == "system error: No space left on device"
    assert files.create_file("b", "new").error == "system error: No space left on device"
    assert (entries(files), (files.root / "a").read_bytes()) == (["a"], b"old")


def test_changes_in_parallel_are_all_kept(files: Files) -> None:
    files.create_file("a", "".join(f"<{n}>\n" for n in range(20)))
    results: list[ToolResult] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(files.str_replace("a", f"<{n}>", f"[{n}]")))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result.ok for result in results)
    assert files.read_file("a").text == "".join(f"[{n}]\n" for n in range(20))


LINES = st.lists(st.sampled_from([b"a\r\n", b"b\r\n", b"ab\r\n"]), max_size=4).map(b"".join)


@given(
    before=st.binary(max_size=20) | LINES,
    old=st.text("ab\n\r", min_size=1, max_size=4),
    new=st.text("ab\n\r", max_size=4),
)
def test_a_change_is_one_exact_replacement_or_none(
    tmp_path_factory: pytest.TempPathFactory, before: bytes, old: str, new: str
) -> None:
    files = wrote(Files(tmp_path_factory.mktemp("work")), "a", before.replace(b"\0", b"a"))
    content = (files.root / "a").read_bytes()
    done = files.str_replace("a", old, new)
    after = (files.root / "a").read_bytes()
    crlf = {(old.encode(), new.encode()), (old.replace("\n", "\r\n").encode(), new.replace("\n", "\r\n").encode())}
    if done.ok:
        assert after in {content.replace(o, n) for o, n in crlf if content.count(o) == 1}
        given = {content.replace(o, new.encode()) for o, _ in crlf if content.count(o) == 1}
        assert after in given or "end with CRLF" in done.text  # never another text in silence
    else:
        assert after == content
