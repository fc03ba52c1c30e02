"""Listing and searching: one table that our walk and ripgrep itself must both satisfy, and what bounds a search."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agentkit_tools.files import Files
from agentkit_tools.folder import file_search, folder_walk
from agentkit_tools.folder.textfiles import MAX_BYTES, MAX_CHARACTERS


def grown(root: Path, tree: Mapping[str, str | bytes]) -> Path:
    """The folder with these files in it."""
    for name, content in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


class Row(NamedTuple):
    """A tree of files, options in our words and in ripgrep's, and the files that are then seen."""

    tree: Mapping[str, str | bytes]
    seen: str
    ours: Mapping[str, Any] = {}
    rgs: tuple[str, ...] = ()


def hit(*names: str, **more: str) -> dict[str, str | bytes]:
    """Files that all contain the line `hit`, and ignore files: `gitignore=…` and so on."""
    files = {f".{name}": text for name, text in more.items() if "_" not in name}
    below = {"/.".join(name.split("_", 1)): text for name, text in more.items() if "_" in name}
    return {**dict.fromkeys(names, "hit\n"), **files, **below}


SOURCE = hit("a.py", "b.ts", "src/c.py", "src/d.tsx", "src/deep/e.ts", ".env", ".ci/f.py", "g.log", gitignore="*.log\n")

TABLE = {
    "all": Row(SOURCE, "a.py b.ts src/c.py src/d.tsx src/deep/e.ts"),
    "hidden": Row(
        SOURCE,
        ".ci/f.py .env .gitignore a.py b.ts src/c.py src/d.tsx src/deep/e.ts",
        {"hidden": True},
        ("--hidden",),
    ),
    "ignored, too": Row(
        SOURCE, "a.py b.ts g.log src/c.py src/d.tsx src/deep/e.ts", {"ignored": True}, ("--no-ignore",)
    ),
    "a glob": Row(SOURCE, "a.py src/c.py", {"glob": "*.py"}, ("-g", "*.py")),
    "a glob with braces": Row(SOURCE, "b.ts src/d.tsx src/deep/e.ts", {"glob": "*.{ts,tsx}"}, ("-g", "*.{ts,tsx}")),
    "a glob with folders": Row(SOURCE, "src/c.py", {"glob": "src/*.py"}, ("-g", "src/*.py")),
    "a glob with any folders": Row(SOURCE, "src/deep/e.ts", {"glob": "src/**/*.ts"}, ("-g", "src/**/*.ts")),
    "a glob that excludes": Row(SOURCE, "a.py b.ts", {"glob": "!src"}, ("-g", "!src")),
    "a glob that outweighs ignore files and dots": Row(
        SOURCE, ".env g.log", {"glob": "{*.log,.env}"}, ("-g", "{*.log,.env}")
    ),
    "everything but": Row(hit("a/x.py", "a/x.txt", "b.py", gitignore="*\n!*/\n!*.py\n"), "a/x.py b.py"),
    "one folder only": Row(hit("src/a", "src/.h", "b", gitignore="/*\n!/src\n"), "src/a"),
    "folders, with an exception": Row(
        hit("build/x", "a/build/y", "keep.log", "x.log", "src/build", gitignore="build/\n*.log\n!keep.log\n"),
        "keep.log src/build",
    ),
    "what is in a folder": Row(hit("foo/a", "foo/b/c", "bar/foo/a", gitignore="foo/**\n"), "bar/foo/a"),
    "any folders between": Row(
        hit("tmp/a.x", "k/tmp/b.x", "a/z", "a/b/c/z", "z", gitignore="**/tmp/*.x\na/**/z\n"), "z"
    ),
    "classes": Row(hit("a1", "d1", "a2", "d2", gitignore="[a-c]1\n[!a-c]2\n"), "a2 d1"),
    "escapes": Row(hit("q?", "qq", "#x", "!y", gitignore="q\\?\n\\#x\n\\!y\n"), "qq"),
    "spaces at the end": Row(hit("sp", "lit ", "lit", gitignore="sp  \nlit\\ \n"), "lit"),
    "anchored": Row(hit("a/b", "x/a/b", "c", "x/c", gitignore="a/b\n/c\n"), "x/a/b x/c"),
    "braces": Row(hit("x.o", "x.a", "x.c", gitignore="*.{o,a}\n"), "x.c"),
    "a nested file outweighs": Row(hit("n", "other/n", gitignore="n\n", other_gitignore="!n\n"), "other/n"),
    "only below itself": Row(hit("n", "other/n", "other/sub/n", other_gitignore="/n\n"), "n other/sub/n"),
    "kinds by precedence": Row(hit("y", "z", rgignore="y\n", ignore="!y\nz\n"), ""),
    "an exception of a stronger kind": Row(hit("x.log", "y.log", ignore="!x.log\n", gitignore="*.log\n"), "x.log"),
    "an exception shows what is hidden": Row(hit(".github/w", ".x", "a", ignore="!.github\n"), ".github/w a"),
    "a repository within": Row({**hit("sub/n", "n", "a/n", gitignore="n\n"), "sub/.git/HEAD": "x"}, "sub/n"),
    "lines that are no patterns": Row(hit("ok", "z", "x{a", gitignore="[z-a]\nx{a\n\n/\n# z\nok\n"), "x{a z"),
    "CR LF": Row(hit("a", "b", gitignore="a\r\n"), "b"),
    "other alphabets": Row(hit("日本.txt", "é.md", "x.txt", gitignore="日*\né?md\n"), "x.txt"),
}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_which_files_are_seen(tmp_path: Path, row: Row) -> None:
    files = Files(grown(tmp_path, row.tree))
    listed = files.list_files(**row.ours).text.splitlines()
    assert sorted(path for path in listed if not path.endswith("/") and path[0] != "[") == row.seen.split()
    found = files.search_files("^hit$", **row.ours).text.splitlines()
    ignore_files = {".gitignore"}  # which do not contain it
    assert {line.split(":")[0] for line in found if line[0] != "["} == set(row.seen.split()) - ignore_files


needs_rg = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep (rg) is not installed")


def rg(folder: Path, *options: str) -> list[str]:
    """What ripgrep prints, confined to the folder as far as its options allow."""
    confined = ("--no-config", "--no-require-git", "--no-ignore-parent", "--no-ignore-global", "--no-ignore-exclude")
    done = subprocess.run(["rg", *confined, *options], cwd=folder, capture_output=True, check=False)
    return sorted(line.removeprefix("./") for line in done.stdout.decode(errors="replace").splitlines())


@needs_rg
@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_ripgrep_sees_the_same_files(tmp_path: Path, row: Row) -> None:
    assert rg(grown(tmp_path, row.tree), "--files", *row.rgs) == row.seen.split()


TEXTS: Mapping[str, str | bytes] = {
    "a.txt": "one\ntwo three\nTWO\n\nfour two\nfive",
    "b/crlf.txt": b"one\r\ntwo\r\n",
    "b/bom.txt": b"\xef\xbb\xbftwo\n",
    "b/latin.txt": b"caf\xe9 two\n",
    "b/binary": b"two\0two\n",
    "b/empty": b"",
    "b/odd.txt": "a.b(c\nna\u00efve \u00c4RGER\n",
}

PATTERNS: Mapping[str, tuple[str, Mapping[str, Any], tuple[str, ...]]] = {
    "plain": ("two", {}, ()),
    "at the beginning": ("^two", {}, ()),
    "at the end": ("two$", {}, ()),
    "either": ("one|five", {}, ()),
    "an empty line": ("^$", {}, ()),
    "any line": ("", {}, ()),
    "every line": (".*", {}, ()),
    "either case": ("two", {"ignore_case": True}, ("-i",)),
    "either case of other letters": ("\u00e4rger", {"ignore_case": True}, ("-i",)),
    "as text": ("a.b(c", {"literal": True}, ("-F",)),
    "groups": (r"(t)(w)(o)\s+(?:three)", {}, ()),
    "not a line end": ("one[^x]two", {}, ()),
    "context": ("three", {"context": 1}, ("-C1",)),
    "context that overlaps": ("two", {"context": 1}, ("-C1",)),
    "context of several": ("one|four", {"context": 1}, ("-C1",)),
}


@needs_rg
@pytest.mark.parametrize(("pattern", "ours", "rgs"), PATTERNS.values(), ids=PATTERNS)
def test_ripgrep_finds_the_same_lines(
    tmp_path: Path, pattern: str, ours: Mapping[str, Any], rgs: tuple[str, ...]
) -> None:
    if not pattern:
        assert Files(tmp_path).search_files(pattern).error == "pattern is empty"
        return
    found = Files(grown(tmp_path, TEXTS)).search_files(pattern, **ours).text.splitlines()
    theirs = rg(tmp_path, "-n", "--no-heading", *rgs, "-e", pattern, ".")
    assert sorted(line for line in found if line[0] != "[") == [line.rstrip("\r") for line in theirs]


def test_an_answer(tmp_path: Path) -> None:
    files = Files(grown(tmp_path, TEXTS))
    assert files.search_files("two", context=1, glob="a.txt").text == (
        "a.txt-1-one\na.txt:2:two three\na.txt-3-TWO\na.txt-4-\na.txt:5:four two\na.txt-6-five"
    )
    assert files.search_files("two", folder="b").text == (
        "b/bom.txt:1:two\nb/crlf.txt:2:two\nb/latin.txt:1:caf\ufffd two\n[not seen: 1 binary files]"
    )
    assert files.search_files("nowhere", folder="a.txt").text == "[nothing found in 1 file]"
    assert files.list_files("b", depth=1, glob="*.txt").text == "b/bom.txt\nb/crlf.txt\nb/latin.txt\nb/odd.txt"
    assert files.list_files(depth=1).text == "a.txt\nb/"
    assert files.list_files(glob="*.md").text == "[nothing to list]"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"pattern": "(", "literal": False}, "is not a regular expression: missing ): (; to search for it as plain"),
        ({"pattern": r"(a)\1"}, "is not a regular expression: invalid escape sequence"),
        ({"pattern": "(?=a)"}, "is not a regular expression"),
        ({"pattern": "(a{1000}){1000}"}, "is not a regular expression"),
        ({"pattern": "a\nb"}, "pattern contains a line end; lines are searched one by one"),
        ({"pattern": "a", "limit": 0}, "limit counts from 1 and context from 0; got limit=0, context=0"),
        ({"pattern": "a", "folder": "nope"}, "'nope' does not exist"),
        ({"pattern": "a", "folder": "../x"}, "folder '../x' contains .."),
        ({"pattern": "a", "folder": "/etc"}, "folder '/etc' is absolute"),
        ({"pattern": "a", "glob": "a[b"}, "glob 'a[b' is not a pattern"),
        ({"pattern": "a", "glob": "#"}, "glob '#' is not a pattern"),
    ],
)
def test_what_cannot_be_searched(tmp_path: Path, arguments: dict[str, Any], why: str) -> None:
    assert why in str(Files(grown(tmp_path, {"a": "a"})).search_files(**arguments).error)


# Bounds


def test_no_pattern_takes_long(tmp_path: Path) -> None:
    """Patterns on which Python's own engine would take longer than the universe has existed."""
    files = Files(grown(tmp_path, {"a": "x" * 100_000 + "\n"}))
    for pattern in ("(x+x+)+y", "(x|x)*y", "(x*)*(x*)*(x*)*[xy]{500}z"):
        start = time.process_time()
        assert files.search_files(pattern).text == "[nothing found in 1 file]"
        assert time.process_time() - start < 5


def test_a_pattern_that_is_slow_even_in_linear_time_is_kept_from_lines_that_are_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RE2's slowest mode on letters that it cannot foresee: whole lines are left out, and counted."""
    monkeypatch.setattr(file_search, "WORK", 25_000_000)
    letters = "".join(random.Random(2).choices("ab", k=1_000_000))
    files = Files(grown(tmp_path, {"f": f"{letters}\nac\n{letters}\n\nc{'b' * 300}\n{letters}"}))
    start = time.process_time()
    slow = "^[ab]*a[ab]{200}c|^ac$|^$|cb{300}$"
    assert files.search_files(slow).text == (
        f"f:2:ac\nf:4:\nf:5:c{'b' * 300}\n[not seen: 3 lines that are too long for this pattern]"
    )
    assert files.search_files("c").text == f"f:2:ac\nf:5:c{'b' * 300}"
    assert time.process_time() - start < 5


def test_no_ignore_file_and_no_glob_takes_long(tmp_path: Path) -> None:
    grown(tmp_path, {"a" * 250: "hit", ".gitignore": "*a" * 40 + "b\n"})
    start = time.process_time()
    assert Files(tmp_path).list_files(glob="*a" * 40).text == "a" * 250
    assert "nothing" in Files(tmp_path).list_files(glob="*a" * 40 + "c").text
    assert time.process_time() - start < 5


def test_the_clock_ends_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(grown(tmp_path, {f"{n}.txt": "hit\n" for n in range(10)}))
    monkeypatch.setattr(folder_walk, "SECONDS", 0.0)
    assert files.search_files("hit").text == "[nothing found in 0 files; stopped after 0 s]"
    assert files.list_files().text == "[nothing to list; stopped after 0 s]"


def test_the_answer_is_bounded_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(grown(tmp_path, {"a": "hit\n" * 1000, "b": "hit\n"}))
    text = files.search_files("hit", limit=3).text
    assert (
        text
        == "a:1:hit\na:2:hit\na:3:hit\n[cut: the first 3 lines found; choose a folder, a glob or a narrower pattern]"
    )
    assert files.search_files("hit", limit=1001).text.endswith("\nb:1:hit")
    text = Files(grown(tmp_path, {"a": ("hit" + "x" * 400 + "\n") * 1000})).search_files("hit", limit=1000).text
    assert len(text) <= MAX_CHARACTERS + 200
    assert text.endswith("[cut: no room for more; choose a folder, a glob or a narrower pattern]")
    monkeypatch.setattr(file_search, "MAX_LISTED", 1)
    assert files.list_files().text == "a\n[cut: the first 1 entries; choose a folder, a glob or a depth]"


def test_of_a_long_line_the_part_around_the_find_is_shown(tmp_path: Path) -> None:
    line = "a" * 3000 + "hit" + "b" * 3000
    (found,) = Files(grown(tmp_path, {"a": line})).search_files("hit").text.splitlines()
    assert found.startswith("a:1:[characters 2876-3375 of 6003] aaa")
    assert "hit" in found
    assert len(found) < 600


def test_a_huge_line_is_searched(tmp_path: Path) -> None:
    files = Files(grown(tmp_path, {"a": b"x" * (MAX_BYTES - 4) + b"hit\n"}))
    assert files.search_files("hit$").text.startswith("a:1:[characters ")


def test_a_file_that_is_too_long_is_named_not_dropped(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(10 << 30)
    assert Files(tmp_path).search_files("hit").text == (
        f"[nothing found in 0 files; not seen: 1 files of more than {MAX_BYTES} bytes]"
    )


def test_folders_that_are_too_deep_are_counted(tmp_path: Path) -> None:
    (tmp_path / "/".join("d" * (folder_walk.MAX_DEPTH + 5))).mkdir(parents=True)
    listed = Files(tmp_path).list_files().text.splitlines()
    assert len(listed) == folder_walk.MAX_DEPTH + 1
    assert listed[-1] == f"[not seen: 1 folders deeper than {folder_walk.MAX_DEPTH} levels]"


def test_odd_names_are_shown_and_cannot_forge_lines(tmp_path: Path) -> None:
    for name in (b"caf\xe9", b"a\nb:1:forged", b"\x1b[31mred"):
        (tmp_path / os.fsdecode(name)).write_bytes(b"hit\n")
    listed = Files(tmp_path).list_files().text
    assert listed == "'\\x1b[31mred'\n'a\\nb:1:forged'\n'caf\\udce9'"
    assert Files(tmp_path).search_files("hit").text.splitlines()[1] == "'a\\nb:1:forged':1:hit"


def test_without_the_library_the_answer_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "re2", None)
    assert "pip install 'agentkit-calls[files]'" in str(Files(tmp_path).search_files("x").error)
    assert Files(tmp_path).create_file("a", "x").ok


@pytest.mark.parametrize("many", [1000, pytest.param(10_000, marks=pytest.mark.soak)])
def test_thousands_of_files(tmp_path: Path, many: int) -> None:
    """Prints the time of a search next to ripgrep's."""
    words = random.Random(1).choices(["alpha", "beta", "gamma", "return", "import", "class", "self", "None"], k=800)
    text = "\n".join(" ".join(words[n : n + 8]) for n in range(0, 800, 8))
    for n in range(many):
        folder = tmp_path / f"package{n % 10}" / f"module{n % 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{n}.py").write_text(text + ("\nneedle\n" if n % 100 == 50 else "\n"))
    (tmp_path / ".gitignore").write_text("\n".join(f"*.x{n}" for n in range(100)))
    files = Files(tmp_path)
    start, cpu = time.perf_counter(), time.process_time()
    found = files.search_files("need[l]e").text.splitlines()
    print(f"{many} files: {time.perf_counter() - start:.2f} s, of CPU {time.process_time() - cpu:.2f} s", end="")
    assert len(found) == many // 100
    if shutil.which("rg"):
        start = time.perf_counter()
        assert rg(tmp_path, "-n", "--no-heading", "need[l]e", ".") == sorted(found)
        print(f"; rg {time.perf_counter() - start:.2f} s")


@pytest.mark.parametrize(
    ("ignored", "number"),
    [("a" * 100_000, 1), ("(a+)+$\n" * 20_000, 20_001), ("**/" * 2000 + "a", 1), ("*.log\n" + "{" * 3000, 1)],
)
def test_patterns_that_cannot_be_read_are_left_out_and_counted(tmp_path: Path, ignored: str, number: int) -> None:
    files = Files(grown(tmp_path, {"a.txt": "hello\n", ".gitignore": ignored}))
    note = f"[not seen: {number} patterns of ignore files that are too long or too many]"
    assert files.list_files().text == f"a.txt\n{note}"
    assert files.search_files("hello").text == f"a.txt:1:hello\n{note}"


def test_a_glob_that_is_too_long_is_refused(tmp_path: Path) -> None:
    assert "is not a pattern" in (Files(tmp_path).list_files(glob="a" * 100_000).error or "")
