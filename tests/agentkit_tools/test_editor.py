"""The tool with the command first, as models that were trained on it call it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Agent, ToolRegistry
from agentkit.messages import ToolMessage
from agentkit.testing import ScriptedModel
from agentkit_tools.editor import StrReplaceEditor, insert_lines
from agentkit_tools.folder.file_changes import CRLF_KEPT


@pytest.fixture
def editor(tmp_path: Path, opener: str) -> StrReplaceEditor:
    tool = StrReplaceEditor(tmp_path)
    (tmp_path / "a.py").write_text("def f():\n    return 1\n\n\ndef g():\n    return 2\n\n\nprint(f())\nprint(g())\n")
    return tool


def test_view_a_file(editor: StrReplaceEditor) -> None:
    edit = editor.str_replace_editor
    assert edit("view", "a.py", view_range=[5, 6]).text == "     5\tdef g():\n     6\t    return 2\n"
    assert edit("view", "a.py", view_range=[9, -1]).text == "     9\tprint(f())\n    10\tprint(g())\n"
    assert edit("view", "a.py").text.count("\n") == 10
    (editor.root / "none").write_text("")
    assert edit("view", "none").text == "[the file is empty]"
    (editor.root / "latin").write_bytes(b"caf\xe9")
    assert edit("view", "latin").text == (
        "     1\tcaf\ufffd\n[not valid UTF-8: U+FFFD replaces what cannot be decoded]"
    )


def test_view_what_is_long(editor: StrReplaceEditor) -> None:
    (editor.root / "long").write_text("".join(f"line {n}\n" for n in range(20_000)))
    note = editor.str_replace_editor("view", "long").text.rpartition("\n")[2]
    assert note.startswith("[cut: lines 1-")
    following = int(note.split("view_range=[")[1].split(",")[0])
    view = editor.str_replace_editor("view", "long", view_range=[following, -1]).text
    assert view.startswith(f"{following:6}\tline {following - 1}\n")
    (editor.root / "wide").write_text("x" * 100_000)
    assert editor.str_replace_editor("view", "wide").text.endswith(
        "\n[cut: the beginning of line 1, which is 100007 characters long]"
    )


def test_view_a_folder(editor: StrReplaceEditor) -> None:
    (editor.root / "src/deep/deeper").mkdir(parents=True)
    (editor.root / "src/b.py").touch()
    (editor.root / "src/deep/c.py").touch()
    for path in (".", str(editor.root)):
        assert editor.str_replace_editor("view", path).text == "a.py\nsrc/\nsrc/b.py\nsrc/deep/"
    assert editor.str_replace_editor("view", "src/").text == "src/b.py\nsrc/deep/\nsrc/deep/c.py\nsrc/deep/deeper/"


def test_create(editor: StrReplaceEditor) -> None:
    assert editor.str_replace_editor("create", "new/b.py", file_text="x\n").text == "created new/b.py (2 bytes)"
    assert (editor.root / "new/b.py").read_text() == "x\n"
    assert "already exists and was not changed" in str(editor.str_replace_editor("create", "a.py", file_text="x").error)


def test_str_replace_shows_what_became_of_it(editor: StrReplaceEditor) -> None:
    result = editor.str_replace_editor("str_replace", "a.py", old_str="return 2", new_str="x = 2\n    return x")
    assert result.text == (
        "changed a.py; lines 2-11 are now:\n     2\t    return 1\n     3\t\n     4\t\n     5\tdef g():\n"
        "     6\t    x = 2\n     7\t    return x\n     8\t\n     9\t\n    10\tprint(f())\n    11\tprint(g())"
    )
    assert "occurs 2 times" in str(editor.str_replace_editor("str_replace", "a.py", old_str="return", new_str="").error)
    assert editor.str_replace_editor("str_replace", "a.py", old_str="print(g())\n").ok
    assert (editor.root / "a.py").read_text().endswith("print(f())\n")


@pytest.mark.parametrize(
    ("content", "line", "text", "after"),
    [
        (b"a\nb\n", 0, "x", b"x\na\nb\n"),
        (b"a\nb\n", 1, "x\n", b"a\nx\nb\n"),
        (b"a\nb\n", 2, "x\ny", b"a\nb\nx\ny\n"),
        (b"a\nb", 2, "x", b"a\nb\nx"),  # no newline at the end: none is added
        (b"a\nb", 2, "x\n", b"a\nb\nx\n"),  # but one that is given stays
        (b"a\nb", 2, "\n", b"a\nb\n\n"),
        (b"a\r\nb", 2, "x\n", b"a\r\nb\r\nx\r\n"),
        (b"a\r\nb", 2, "x\r\n", b"a\r\nb\r\nx\r\n"),
        (b"a\r\nb\r\n", 1, "x\ny", b"a\r\nx\r\ny\r\nb\r\n"),
        (b"", 0, "x", b"x\n"),
        (b"a\n", 1, "", b"a\n\n"),
    ],
)
@pytest.mark.parametrize("parameter", ["insert_text", "new_str"])
def test_insert_puts_whole_lines(
    editor: StrReplaceEditor, content: bytes, line: int, text: str, after: bytes, parameter: str
) -> None:
    (editor.root / "f").write_bytes(content)
    done = editor.str_replace_editor("insert", "f", insert_line=line, **{parameter: text})
    told = CRLF_KEPT if b"\r" in after and "\r" not in text else ""
    assert done.text.startswith(f"changed f{told}; lines 1-")
    assert (editor.root / "f").read_bytes() == after


@given(st.text("ab\n"), st.text("xy\n"), st.data())
def test_inserted_text_is_written_as_given(before: str, text: str, data: st.DataObject) -> None:
    """A newline is added only where the text and the line next to it would be one line."""
    lines = before.splitlines(keepends=True)
    line = data.draw(st.integers(0, len(lines)))
    above, below = "".join(lines[:line]), "".join(lines[line:])
    joint = "\n" if above and not above.endswith("\n") else ""
    end = "" if text.endswith("\n") or joint else "\n"
    after = insert_lines(before.encode(), line, text.encode(), "f").content.decode()
    assert after == f"{above}{joint}{text}{end}{below}"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"command": "create", "path": "b"}, "the command create needs file_text"),
        ({"command": "str_replace", "path": "a.py"}, "the command str_replace needs old_str"),
        ({"command": "insert", "path": "a.py", "insert_text": "x"}, "the command insert needs insert_line"),
        ({"command": "insert", "path": "a.py", "insert_line": 1}, "the command insert needs insert_text"),
        ({"command": "insert", "path": "a.py", "insert_line": 11, "insert_text": "x"}, "insert_line 11 does not exist"),
        ({"command": "view", "path": "a.py", "view_range": [1]}, "view_range is the first and the last line"),
        ({"command": "view", "path": "a.py", "view_range": [11, -1]}, "'a.py' has 10 lines"),
        ({"command": "view", "path": "a.py", "view_range": [3, 2]}, "view_range [3, 2] does not fit"),
        ({"command": "view", "path": ".", "view_range": [1, 2]}, "view_range is for files"),
        ({"command": "view", "path": "nope"}, "'nope' does not exist; its folder contains 'a.py'"),
        ({"command": "view", "path": "/etc/passwd"}, "path '/etc/passwd' is absolute"),
        ({"command": "view", "path": "../x"}, "contains .."),
        ({"command": "create", "path": ".env", "file_text": ""}, "may be read but not written"),
        ({"command": "insert", "path": ".env", "insert_line": 0, "insert_text": "x"}, "may be read but not written"),
    ],
)
def test_what_is_missing_or_does_not_fit(editor: StrReplaceEditor, arguments: dict[str, object], why: str) -> None:
    before = {name: (editor.root / name).read_bytes() for name in os.listdir(editor.root)}
    assert why in str(editor.str_replace_editor(**arguments).error)  # type: ignore[arg-type]
    assert {name: (editor.root / name).read_bytes() for name in os.listdir(editor.root)} == before


def test_an_absolute_path_is_taken_if_it_begins_with_the_folder_s_own(editor: StrReplaceEditor) -> None:
    root = editor.root
    assert editor.str_replace_editor("create", f"{root}/c", file_text="x").text == "created c (1 bytes)"
    for path in (f"{root}/../c", f"{root}x/c", f"{root}//../../etc/passwd"):
        assert not editor.str_replace_editor("view", path).ok


def test_it_is_called_as_an_xml_element(editor: StrReplaceEditor) -> None:
    said = (
        '<str_replace_editor command="str_replace" path="a.py"><old_str>return 1</old_str>'
        "<new_str>return 1 < 2 && 3</new_str></str_replace_editor>"
    )
    seen = '<str_replace_editor command="view" path="a.py"><view_range>[2, 2]</view_range></str_replace_editor>'
    result = Agent(ScriptedModel([said, seen, "Done."], format="xml"), [editor]).run_sync("Go.")
    changed, viewed = [m.text for m in result.messages if isinstance(m, ToolMessage)]
    assert changed.startswith("changed a.py; lines 1-6 are now:\n")
    assert viewed == "     2\t    return 1 < 2 && 3\n"
    assert list(ToolRegistry(editor).xml_tools) == ["str_replace_editor"]
