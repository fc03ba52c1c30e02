"""The question about a call: what it shows in advance, and the keys of a real terminal that answer it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import FILES, called, chunk, command, said
from emulator import DrawnTerminal
from hypothesis import given
from hypothesis import strategies as st
from replay_server import ReplayServer
from terminal import Terminal

from agentkit import ToolCall, ToolRegistry
from agentkit.cli.call_effect import SHOWN, Effect, effect, rest_lines, rows, title
from agentkit.cli.edited_arguments import from_text, to_text
from agentkit.errors import ConfigError
from agentkit_tools.files import Files


def of(folder: Path, name: str, **arguments: object) -> Effect:
    """The effect of a call of the file tools in a folder."""
    registry = ToolRegistry()
    registry.register_tool(Files(folder))
    return effect(ToolCall("c", name, arguments), registry.get_tool(name))


# What is shown in advance


def test_a_new_file_is_shown_as_such(tmp_path: Path) -> None:
    about = of(tmp_path, "create_file", file_path="a.py", file_contents="x = 1\n\ty\n")
    assert about == Effect("a.py", "new, 2 lines", ("x = 1", "    y"), "a.py", {})
    assert title(ToolCall("c", "create_file"), about, "1 of 2") == "create_file → a.py (new, 2 lines) · 1 of 2"


def test_an_edit_is_a_diff_with_its_surroundings(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a\nx = 1\nb\n")
    about = of(tmp_path, "str_replace", file_path="a.py", old_str="x = 1", new_str="x = 2", replace_all=True)
    assert about == Effect(
        "a.py", "", ("@@ -1,3 +1,3 @@", " a", "-x = 1", "+x = 2", " b"), "diff", {"replace_all": True}
    )


@pytest.mark.parametrize(("text", "note"), [("x x", "found 2 times"), ("y", "the text is not in the file")])
def test_an_edit_that_does_not_fit_the_file_says_so(tmp_path: Path, text: str, note: str) -> None:
    (tmp_path / "a.py").write_text(text)
    about = of(tmp_path, "str_replace", file_path="a.py", old_str="x", new_str="z")
    assert about == Effect("a.py", note, ("@@ -1 +1 @@", "-x", "+z"), "diff", {})


def test_a_rewrite_is_a_diff_against_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a\nb\n")
    about = of(tmp_path, "full_file_rewrite", file_path="a.py", file_contents="a\nc\n")
    assert (about.note, about.body) == ("exists, 2 lines", ("@@ -1,2 +1,2 @@", " a", "-b", "+c"))


def test_no_file_outside_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / "secret")
    for path in ("../secret", str(tmp_path / "secret"), "link", "x" * 5000, "\0"):
        about = of(tmp_path / "work", "full_file_rewrite", file_path=path, file_contents="new")
        assert (about.note, about.body) == ("1 line", ("new",))


def test_a_command_and_plain_arguments() -> None:
    assert effect(ToolCall("c", "run", {"command": "ls -l\npwd", "timeout": 5}), None) == Effect(
        body=("ls -l", "pwd"), language="bash", rest={"timeout": 5}
    )
    assert effect(ToolCall("c", "send", {"to": "bob"}), None) == Effect(rest={"to": "bob"})


SHAPES = st.dictionaries(
    st.sampled_from(["path", "file_path", "command", "code", "old_str", "new_str", "text", "to"]),
    st.text(st.sampled_from("ab\n \t\x1b\u202e"), min_size=1),
)


@given(arguments=SHAPES)
def test_nothing_of_the_arguments_is_hidden(arguments: dict[str, str]) -> None:
    """Each word of each argument is shown, in its own place, and no character that is invisible or a command."""
    about = effect(ToolCall("c", "f", arguments), None)
    pieces, left = rows(about, 10_000, None)
    shown = [about.target, about.note, *(piece for _, piece in pieces), *rest_lines(about, 10_000)]
    assert left == 0
    assert all(line.isprintable() for line in shown)
    words = "\n".join(shown)
    for value in arguments.values():
        for word in value.replace("\x1b", " ").replace("\u202e", " ").split():
            assert word in words


def test_a_long_body_says_how_much_is_left_out() -> None:
    about = effect(ToolCall("c", "f", {"path": "a", "text": "x\n" * 50}), None)
    assert [len(part) if isinstance(part, list) else part for part in rows(about, 80, SHOWN)] == [SHOWN, 50 - SHOWN]


# Arguments in an editor


@given(given=st.dictionaries(st.text(max_size=3), st.text(st.sampled_from('a-\n{"} ')) | st.integers(), max_size=4))
def test_arguments_survive_the_editor(given: dict[str, object]) -> None:
    given = {name: value for name, value in given.items() if "\n" not in name}
    assert from_text(to_text(given), given) == given


def test_a_text_is_edited_as_it_is() -> None:
    given = {"path": "a.py", "text": "one\ntwo\n"}
    assert from_text(to_text(given).replace("two", 'th"ree'), given) == {"path": "a.py", "text": 'one\nth"ree\n'}
    with pytest.raises(ConfigError, match="the line '-------- text --------' is missing"):
        from_text('{"path": "a.py"}', given)


# The keys of a terminal


def several(*calls: tuple[str, dict[str, object]]) -> bytes:
    """A streamed response with several calls."""
    deltas = [
        {"index": n, "id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for n, (name, given) in enumerate(calls)
    ]
    return (chunk({"tool_calls": deltas}) + chunk({}, "tool_calls") + "data: [DONE]\n\n").encode()


def create(name: str) -> tuple[str, dict[str, object]]:
    return "create_file", {"file_path": name, "file_contents": f"print('{name}')\n"}


@contextmanager
def asked(folder: Path, response: bytes, *options: str, **environment: str) -> Iterator[DrawnTerminal]:
    """A chat whose calls all need approval, in a terminal, after the user has said something."""
    with ReplayServer([response, said("Done.")]) as server:
        words = command(server, "--tools", FILES, "--require-approval", *options)
        with DrawnTerminal(words, columns=100, folder=folder, environment=environment) as terminal:
            terminal.until_shown("you>")
            terminal.type("go\r")
            yield terminal
            terminal.type("\x04")
            terminal.rest()


def test_keys_decide_and_each_call_is_one_line(tmp_path: Path) -> None:
    """`y`, `n` with a reason, and a key that answers nothing."""
    with asked(tmp_path, several(create("a.py"), create("b.py"))) as terminal:
        terminal.until_shown("● create_file → a.py (new, 1 line) · 1 of 2")
        terminal.type("x\r")
        terminal.type("y")
        terminal.until_shown("● create_file → b.py (new, 1 line) · 2 of 2")
        terminal.type("n")
        terminal.until_shown("no, because")
        terminal.type("not that\r")
        terminal.until_shown("Done.")
        lines = [line for line in terminal.shown.lines if line.startswith(("●", "  "))]
    assert [line.rpartition(" · ")[0] for line in lines] == [
        "● create_file a.py ✓ created a.py (14 bytes)",
        "● create_file b.py ○ denied",
    ]
    assert lines[1].endswith("denied · not that")
    assert sorted(path.name for path in tmp_path.glob("*.py")) == ["a.py"]


def test_always_is_for_one_tool_in_this_chat_and_can_be_revoked(tmp_path: Path) -> None:
    with asked(tmp_path, several(create("a.py"), create("b.py"))) as terminal:
        terminal.until_shown("a always for create_file in this chat")
        terminal.type("a")
        terminal.until_shown("Done.")
        assert sorted(path.name for path in tmp_path.glob("*.py")) == ["a.py", "b.py"]
        terminal.type("/approve\r")
        terminal.until_shown("calls that wait for approval: ask; always for create_file")
        terminal.type("/approve ask create_file\r")
        terminal.read_until(lambda: terminal.shown.lines.count("calls that wait for approval: ask") == 1, "ask")


def test_a_call_is_edited_in_the_editor(tmp_path: Path) -> None:
    with asked(tmp_path, several(create("a.py")), VISUAL="sed -i s/a[.]py/c.py/") as terminal:
        terminal.until_shown("e edit")
        terminal.type("e")
        terminal.until_shown("Done.")
    assert [path.name for path in tmp_path.glob("*.py")] == ["c.py"]


def test_escape_leaves_a_call_for_later(tmp_path: Path) -> None:
    with asked(tmp_path, several(create("a.py")), "--thread", "t") as terminal:
        terminal.until_shown("l later")
        terminal.type("\x1b")
        terminal.until_shown("agentkit threads approve t call_0")
        assert "● create_file a.py · left for later" in terminal.shown.lines
    assert not list(tmp_path.glob("*.py"))


def test_a_terminal_without_single_keys_keeps_the_typed_line(tmp_path: Path) -> None:
    with (
        ReplayServer([called("create_file", json.dumps(create("a.py")[1])), said("Done.")]) as server,
        Terminal(command(server, "--tools", FILES, "--require-approval"), folder=tmp_path) as terminal,
    ):
        terminal.wait_for("you> ")
        terminal.type("go\n")
        shown = terminal.wait_for("[y]es [a]lways [n]o [e]dit? ")
        assert "? create_file → a.py (new, 1 line)\n  │ print('a.py')\n" in shown
        terminal.type("a\n")
        terminal.wait_for("Done.")
    assert (tmp_path / "a.py").exists()
