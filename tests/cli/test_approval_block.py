"""The question about a call: what it shows in advance, and the keys of a real terminal that answer it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from command_line import FILES, called, chunk, command, said
from emulator import DrawnTerminal
from hypothesis import example, given
from hypothesis import strategies as st
from replay_server import ReplayServer
from terminal import Terminal

from agentkit import Agent, AskPerson, Guards, ToolCall, ToolContext, openapi_schema
from agentkit.cli.chat_storage import InMemory
from agentkit.cli.edited_arguments import from_text, to_text
from agentkit.cli.effect_rows import rows, title
from agentkit.cli.terminal import cells, fold
from agentkit.errors import ConfigError
from agentkit.testing import ScriptedModel
from agentkit.tool.call_effect import Effect, effect


def of(name: str, **arguments: object) -> Effect:
    return effect(ToolCall("c", name, arguments))


# What is shown in advance


def test_a_text_is_shown_as_it_is_and_a_tab_differs_from_spaces() -> None:
    about = of("create_file", file_path="a.py", file_contents="x = 1\n\ty\n")
    assert about == Effect("a.py", "2 lines", ("x = 1", "⇥   y"), "a.py")
    assert title(ToolCall("c", "create_file"), about, "1 of 2") == "create_file → a.py (2 lines) · 1 of 2"


def test_a_long_path_is_not_in_the_title() -> None:
    about = of("create_file", path="x" * 4_000, text="a\n")
    assert title(ToolCall("c", "create_file"), about, "") == "create_file"
    assert "".join(piece.strip(" ⋮") for _, piece in rows(about, 80)).count("x") == 4_001


NAMES = ["path", "file_path", "command", "code", "old_str", "new_str", "text", "to"]
PARTS = ["W", "W same", "\n", "\t", "\x1b", "\u202e", "same\n" * 40]
SHAPES = st.dictionaries(
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(PARTS), min_size=1),
)


@given(shapes=SHAPES, equal=st.booleans())
@example(shapes={"path": ["W"], "old_str": ["W"], "new_str": ["W"]}, equal=True)
def test_nothing_of_the_arguments_is_hidden(shapes: dict[str, list[str]], equal: bool) -> None:
    """Each word of each argument is shown, and no character that is invisible or a command. No two words are equal."""
    words = (f"w{n}w" for n in count())
    arguments = {
        name: "".join(re.sub("W|same", lambda _: next(words), part) for part in parts) for name, parts in shapes.items()
    }
    if equal and "old_str" in arguments:
        arguments["new_str"] = arguments["old_str"]
    about = effect(ToolCall("c", "f", arguments))
    shown = [about.target, about.note, *(piece for _, piece in rows(about, 10_000))]
    assert all(line.isprintable() for line in shown)
    for word in re.findall(r"w\d+w", " ".join(arguments.values())):
        assert word in " ".join(shown)


@given(text=st.text(st.sampled_from("ab 한é\u0301"), max_size=60), width=st.integers(2, 20))
def test_a_folded_line_is_complete_and_fits(text: str, width: int) -> None:
    pieces = list(fold(text, width))
    assert "".join(pieces) == text
    assert all(cells(piece) <= width for piece in pieces)


def test_folding_a_long_line_takes_no_time() -> None:
    """Five seconds when each piece was cut from a copy of the rest."""
    began = time.process_time()
    assert len(list(fold("é" * 40_000, 80))) == 500
    assert time.process_time() - began < 1


# Arguments in an editor


@given(given=st.dictionaries(st.text(max_size=3), st.text(st.sampled_from('a-\n{"} ')) | st.integers(), max_size=4))
def test_arguments_survive_the_editor(given: dict[str, object]) -> None:
    given = {name: value for name, value in given.items() if "\n" not in name}
    assert from_text(to_text(given), given) == given


def test_an_invisible_character_is_escaped_where_it_is_edited() -> None:
    assert "\\u202e" in to_text({"text": "a\n\u202eb", "path": "c"})
    assert from_text(to_text({"text": "a\n\u202eb"}), {"text": "a\n\u202eb"}) == {"text": "a\n\u202eb"}


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


KEYS = "y yes · a always"


def shows_keys(terminal: DrawnTerminal) -> bool:
    return any(KEYS in line for line in terminal.shown.lines)


def titles(terminal: DrawnTerminal) -> int:
    return sum("● create_file → a.py" in line for line in terminal.shown.lines)


def test_keys_decide_and_each_call_is_one_line(tmp_path: Path) -> None:
    """`y`, `n` with a reason, and a key that answers nothing."""
    with asked(tmp_path, several(create("a.py"), create("b.py"))) as terminal:
        terminal.until_shown("● create_file → a.py (1 line) · 1 of 2")
        terminal.until_shown(KEYS)
        terminal.type("x\r")
        terminal.read_until(lambda: not shows_keys(terminal), "no keys")
        terminal.until_shown(KEYS)
        terminal.type("y")
        terminal.until_shown("● create_file → b.py (1 line) · 2 of 2")
        terminal.until_shown(KEYS)
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


def test_keys_typed_before_the_question_is_complete_or_in_one_go_decide_nothing(tmp_path: Path) -> None:
    with asked(tmp_path, several(create("a.py"))) as terminal:
        terminal.until_shown("● create_file → a.py")
        assert not shows_keys(terminal)
        terminal.type("also please")
        terminal.until_shown(KEYS)
        terminal.type("also please")
        terminal.read_until(lambda: not shows_keys(terminal), "no keys")
        terminal.until_shown(KEYS)
        assert not list(tmp_path.glob("*.py"))
        terminal.type("y")
        terminal.until_shown("Done.")
    assert [path.name for path in tmp_path.glob("*.py")] == ["a.py"]


@pytest.mark.parametrize("text", ["x" * 3_000, "x" * 2_000 + "\nrm -rf /"])
def test_a_block_is_never_higher_than_the_window(tmp_path: Path, text: str) -> None:
    """Its title and its start are shown, and how much is left out; `v` shows all, and nothing else remains."""
    calls = several(("create_file", {"file_path": "a.py", "file_contents": text}))
    with asked(tmp_path, calls) as terminal:
        terminal.until_shown("v view")
        lines = list(terminal.shown.screen.display)
        assert any("● create_file → a.py" in line for line in lines)
        assert any(" more lines" in line for line in lines)
        terminal.type("v")
        terminal.read_until(lambda: titles(terminal) == 2, "the title twice")
        terminal.until_shown(KEYS)
        terminal.type("n")
        terminal.until_shown("no, because")
        terminal.type("\r")
        terminal.until_shown("Done.")
        assert titles(terminal) == 1  # what `v` printed
        assert "".join(terminal.shown.lines).count("x") >= text.count("x")


def test_always_is_for_one_tool_in_this_chat_and_can_be_revoked(tmp_path: Path) -> None:
    with asked(tmp_path, several(create("a.py"), create("b.py"))) as terminal:
        terminal.until_shown("a always for create_file in this chat")
        terminal.type("a")
        terminal.until_shown("Done.")
        assert sorted(path.name for path in tmp_path.glob("*.py")) == ["a.py", "b.py"]
        terminal.type("/allowed\r")
        terminal.until_shown("1. create_file: any arguments")
        terminal.type("/allowed revoke 1\r")
        terminal.until_shown("no calls run without asking that need approval")


@pytest.mark.parametrize("where", [(), ("--thread", "t")])
def test_a_pattern_is_allowed_and_everything_else_is_asked_about(tmp_path: Path, where: tuple[str, ...]) -> None:
    calls = several(create("a.py"), create("b.py"), create("c;py"))
    with asked(tmp_path, calls, *where) as terminal:
        terminal.until_shown("p pattern")
        terminal.type("p")
        terminal.until_shown("Allow such calls. * stands for letters, digits, spaces and _ . / : = @ , + -")
        terminal.until_shown("allow> ")
        terminal.type(f"\x15{json.dumps({'file_path': 'b*'})}\r")
        terminal.until_shown("these patterns do not fit this call itself")
        terminal.until_shown("p pattern")
        terminal.type("p")
        terminal.read_until(lambda: not shows_keys(terminal), "no keys")
        terminal.until_shown("allow> ")
        patterns = {"file_path": "*", "file_contents": "print('*')\n"}
        terminal.type(f"\x15{json.dumps(patterns)}\r")
        terminal.until_shown("● create_file → c;py")
        terminal.until_shown(KEYS)
        terminal.type("n")
        terminal.until_shown("no, because")
        terminal.type("\r")
        terminal.until_shown("Done.")
        terminal.type("/allowed\r")
        terminal.until_shown("1. create_file: file_path =")
    assert sorted(path.name for path in tmp_path.glob("*py")) == ["a.py", "b.py"]


def test_an_editor_that_fails_changes_nothing_and_is_named(tmp_path: Path) -> None:
    with asked(tmp_path, several(create("a.py")), VISUAL="false") as terminal:
        terminal.until_shown("e edit")
        terminal.type("e")
        terminal.until_shown("the editor 'false' ended with status 1; nothing is changed")
        terminal.until_shown(KEYS)
        terminal.type("y")
        terminal.until_shown("Done.")
    assert (tmp_path / "a.py").exists()


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
        shown = terminal.wait_for("[y]es [a]lways [p]attern [n]o [e]dit? ")
        assert "? create_file → a.py (1 line)\n  │ print('a.py')\n" in shown
        terminal.type("a\n")
        terminal.wait_for("Done.")
    assert (tmp_path / "a.py").exists()


@pytest.mark.anyio
async def test_always_does_not_overrule_a_guard_that_asks_for_a_person() -> None:
    sent: list[str] = []

    @openapi_schema(requires_approval=True)
    def send(to: str) -> str:
        """Send a letter."""
        sent.append(to)
        return "sent"

    def careful(call: ToolCall, context: ToolContext) -> AskPerson | None:
        return AskPerson() if call.arguments["to"] == "Eve" else None

    calls = [ToolCall("a", "send", {"to": "Ada"}), ToolCall("e", "send", {"to": "Eve"})]
    chat = InMemory(Agent(ScriptedModel([calls, "Done."]), [send], guards=Guards(call=[careful])))
    await chat.say("Write to both.")
    chat.keep(await chat.run())
    await chat.allow("send")
    assert [(call.id, await chat.allows(call)) for call in await chat.waiting()] == [("a", True), ("e", False)]
    chat.keep(await chat.run())
    assert (sent, [call.id for call in await chat.waiting()]) == (["Ada"], ["e"])
