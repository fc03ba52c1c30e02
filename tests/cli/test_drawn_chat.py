"""A chat in a real terminal that is drawn: keys in, and what an emulator shows out."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from pathlib import Path

import pytest
from command_line import called, chunk, command, said
from emulator import DrawnTerminal
from replay_server import Recorded, ReplayServer

TOOL = "def look(at: str) -> str:\n    'Look.'\n    return 'seen\\n' * 3\n"
ANSWER = "It is **there**:\n\n- one\n- two\n\n```python\nx = 1\n```\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    (tmp_path / "looker_of_cli_test.py").write_text(TOOL)
    return tmp_path


def timeless(lines: list[str]) -> list[str]:
    """Without the model's durations, which differ, and without empty lines."""
    return [re.sub(r"\d+ ms$", "… ms", line) for line in lines if line]


def prompts(terminal: DrawnTerminal) -> list[str]:
    """The line of the prompt, if it is the last one above the toolbar."""
    return [line for line in terminal.shown.lines[-3:] if line.startswith("you>")]


@pytest.mark.share(2)
@pytest.mark.parametrize("columns", [40, 80])
def test_a_chat_is_drawn(folder: Path, columns: int) -> None:
    """An answer with a call; a word for the program; several lines pasted as one message; the end."""
    call = (chunk({"reasoning_content": "Where?"})).encode() + called("look", json.dumps({"at": "it"}))
    with (
        ReplayServer([call, said(ANSWER), said("Three.")]) as server,
        DrawnTerminal(
            command(server, "--tools", "looker_of_cli_test:look"), columns=columns, folder=folder
        ) as terminal,
    ):
        terminal.until_shown("you>")
        terminal.type("Where?\r")
        terminal.read_until(lambda: prompts(terminal) == ["you>"] and "│ x = 1" in terminal.shown.lines, "x = 1")
        terminal.type("/modle\r")
        terminal.until_shown("//modle sends it" if columns > 78 else "sends it")
        terminal.type("\x1b[200~one\ntwo\nthree\x1b[201~")
        terminal.until_shown("three")
        terminal.type("\r")
        terminal.until_shown("Three.")
        terminal.read_until(lambda: prompts(terminal) == ["you>"], "you>")
        terminal.type("\x04")
        terminal.rest()
        assert terminal.status() == 0
        lines = timeless(terminal.shown.lines)
    start = lines.index("you> Where?")
    assert lines[start : start + 12] == [
        "you> Where?",
        "thought for 0 s: Where?",
        "● look it ✓ 3 lines · … ms",
        *("  ⎿ seen", "    seen", "    seen"),
        "It is there:",
        *(" • one", " • two"),
        *("│ python", "│ x = 1"),
        "you> /modle",
    ]
    assert [line for line in lines if line.startswith(("you> one", " ... ", "Three"))] == [
        "you> one",
        " ... two",
        " ... three",
        "Three.",
    ]
    assert [request.body["messages"][-1]["content"] for request in server.requests][::2] == [
        "Where?",
        "one\ntwo\nthree",
    ]
    history = folder / "state" / "agentkit" / "history"
    assert stat.S_IMODE(os.stat(history).st_mode) == 0o600
    assert [line for line in history.read_text().splitlines() if line.startswith("+")] == [
        *("+Where?", "+/modle", "+one", "+two", "+three"),
    ]


def test_keys(folder: Path) -> None:
    """Completion, another line, earlier messages, Ctrl-C at the prompt, Ctrl-C and Esc in an answer."""
    slow = said("Once", *[" upon"] * 3000)
    with (
        ReplayServer([said("One."), slow, slow, said("Yes.")], pace=0.01) as server,
        DrawnTerminal(command(server), folder=folder) as terminal,
    ):
        terminal.until_shown("you>")
        terminal.type("/appr\talw\t\r")
        terminal.until_shown("calls that wait for approval: always")
        terminal.type("first\x1b\rsecond\\\rthird\r")
        terminal.until_shown("One.")
        terminal.type("half")
        terminal.until_shown("half")
        terminal.type("\x03")  # removes it
        terminal.read_until(lambda: prompts(terminal)[-1:] == ["you>"], "you>")
        terminal.type("\x1b[A\x1b[A\x1b[A\x1b[A")  # up: through the lines of the message before this one
        terminal.read_until(lambda: prompts(terminal)[-1:] == ["you> /approve always"], "you> /approve always")
        terminal.type("\x03\x03")
        terminal.until_shown("(Ctrl-C again, or Ctrl-D, ends the chat)")
        terminal.type("tell\r")
        terminal.until_shown("Once upon upon")
        terminal.type("typed\x03")  # nothing of it is echoed into what is drawn
        terminal.until_shown("(stopped)")
        terminal.read_until(lambda: prompts(terminal)[-1:] == ["you> typed"], "you> typed")
        terminal.type("\x7f" * 5 + "again\r")
        terminal.read_until(lambda: sum("Once upon upon" in line for line in terminal.shown.lines) == 2, "Once")
        terminal.type("\x1b")
        terminal.read_until(lambda: terminal.shown.lines.count("(stopped)") == 2, "(stopped)")
        terminal.read_until(lambda: prompts(terminal)[-1:] == ["you>"], "you>")
        terminal.type("\x03")
        terminal.read_until(lambda: sum("(Ctrl-C again" in line for line in terminal.shown.lines) == 2, "(Ctrl-C")
        terminal.type("\x03")
        terminal.rest()
        assert terminal.status() == 0
        lines = terminal.shown.lines
    assert server.requests[0].body["messages"][-1]["content"] == "first\nsecond\nthird"
    assert not any("typed" in line and not line.startswith("you> ") for line in lines)


def test_a_long_paste_is_folded_and_sent_whole(folder: Path) -> None:
    text = "\n".join(f"line {n}" for n in range(50))
    with ReplayServer([said("Read.")]) as server, DrawnTerminal(command(server), folder=folder) as terminal:
        terminal.until_shown("you>")
        terminal.type(f"look: \x1b[200~{text}\x1b[201~")
        terminal.until_shown("you> look: [50 lines pasted]")
        terminal.type("\r")
        terminal.until_shown("Read.")
        terminal.type("\x04")
        terminal.rest()
        assert "line 7" not in terminal.raw
    assert server.requests[0].body["messages"][-1]["content"] == f"look: {text}"


def test_keys_that_are_typed_during_an_answer_are_read_after_it_as_they_were_typed(folder: Path) -> None:
    """A line, several pasted lines and Ctrl-D; none of them is echoed."""
    with (
        ReplayServer([said("Once", *[" upon"] * 100), said("Two."), said("Three.")], pace=0.01) as server,
        DrawnTerminal(command(server), folder=folder) as terminal,
    ):
        terminal.until_shown("you>")
        terminal.type("tell\r")
        terminal.until_shown("Once upon upon")
        terminal.type("next\r\x1b[200~one\ntwo\x1b[201~\r\x04")
        terminal.rest()
        assert terminal.status() == 0
        lines = terminal.shown.lines
    assert [request.body["messages"][-1]["content"] for request in server.requests] == ["tell", "next", "one\ntwo"]
    assert [line for line in lines if line.endswith(("next", "one", "two", "[201~"))] == [
        "you> next",
        "you> one",
        " ... two",
    ]


def test_without_the_extra_the_terminal_is_plain_and_says_what_would_be_better(folder: Path) -> None:
    script = "import sys; sys.modules['rich'] = None; from agentkit.cli import main; sys.exit(main(sys.argv[1:]))"
    with (
        ReplayServer([said("*Hi*.")]) as server,
        DrawnTerminal([sys.executable, "-c", script, *command(server)[3:]], folder=folder) as terminal,
    ):
        terminal.until_shown("you>")
        terminal.type("Hi\r")
        terminal.until_shown("*Hi*.")
        terminal.read_until(lambda: terminal.shown.lines[-1] == "you>", "you>")
        terminal.type("\x04")
        terminal.rest()
        lines = terminal.shown.lines
    assert lines[0] == "plain display; for Markdown and history: pip install 'agentkit-calls[cli]'"
    assert lines[2:] == ["you> Hi", "", "*Hi*.", "", "you>"]


def test_an_answer_in_a_pipe_and_all_else_on_the_terminal(folder: Path) -> None:
    """`agentkit run … > file`: what goes on is drawn on standard error."""
    with ReplayServer([called("look", '{"at": "it"}'), said("*There*.")]) as server:
        words = [*command(server)[:3], "run", "Where?", *command(server)[4:], "--tools", "looker_of_cli_test:look"]
        with DrawnTerminal(["bash", "-c", '"$@" > answer', "bash", *words], folder=folder) as terminal:
            terminal.rest()
            assert terminal.status() == 0
            lines = timeless(terminal.shown.lines)
    assert (folder / "answer").read_text() == "*There*.\n"
    assert lines[0] == "● look it ✓ 3 lines · … ms"
    assert "There" not in "\n".join(lines)


def test_a_failed_message_is_retried_and_the_one_before_it_stays(folder: Path) -> None:
    failed = Recorded(b'{"error": {"message": "no"}}', 400)
    with (
        ReplayServer([said("One."), failed, said("Two.")]) as server,
        DrawnTerminal(command(server), folder=folder) as terminal,
    ):
        terminal.until_shown("you>")
        for typed, shown in (("first", "One."), ("second", "error: "), ("/retry", "Two.")):
            terminal.type(f"{typed}\r")
            terminal.until_shown(shown)
            terminal.read_until(lambda: prompts(terminal) == ["you>"], "you>")
        terminal.type("\x04")
        terminal.rest()
        messages = server.requests[-1].body["messages"]
    assert [message["content"] for message in messages] == ["first", "One.", "second"]
