"""Events as lines of a terminal: literal events in, literal lines out."""

from __future__ import annotations

import io

import pytest

from agentkit.cli.screen import LINES, Screen
from agentkit.cli.terminal import plain, table
from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    Markup,
    Text,
    Thinking,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
    Usage,
)
from agentkit.messages import ToolCall
from agentkit.tool.result import ToolResult

CALL = ToolCall("c0", "add", {"a": 1})


def shown(*events: Event, colour: bool = False) -> str:
    out = io.StringIO()
    screen = Screen(out, colour)
    for event in events:
        screen.show(event)
    screen.fresh()
    return out.getvalue()


def test_text_goes_on_where_it_stopped() -> None:
    assert shown(Text("Hel"), Text("lo"), Text(".\nBye")) == "Hello.\nBye\n"


def test_a_native_call_between_texts() -> None:
    events = [
        Text("Now: "),
        CallStart(0, "add", "c0"),
        ArgumentDelta(0, '{"a":'),
        ArgumentDelta(0, "1}"),
        CallEnd(0, CALL),
    ]
    events += [ToolStarted(0, CALL), ToolCompleted(0, CALL, ToolResult(2), 0.0123), Text("\n\nIt is 2.")]
    assert shown(*events) == "Now: \n→ add\n    a: 1\n✓ add 12 ms: 2\nIt is 2.\n"


def test_a_text_call_shows_how_it_was_written() -> None:
    end = CallEnd(0, ToolCall("", "save", {"path": "a.py"}, "xml", '<save path="a.py">x\n\ny\n</save>'))
    assert shown(CallStart(0, "save"), end, Markup("\n")) == (
        '→ save\n    path: "a.py"\n    (xml: <save path="a.py">x y </save>)\n'
    )


def test_line_ends_show_only_where_something_follows() -> None:
    events = [Text("a\n"), Text("\n"), Text("b\n\n"), CallEnd(0, ToolCall("c", "f", {})), Text("\n\nc")]
    assert shown(*events) == "a\n\nb\n→ f\nc\n"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            ToolFailed(0, CALL, ToolResult(error="no\nway", code="timeout"), 1.0),
            "✗ add timeout 1.0 s:\n    no\n    way\n",
        ),
        (ToolFailed(0, ToolCall("c", ""), ToolResult(error="bad"), 0.0), "✗ unreadable call tool_error 0 ms: bad\n"),
        (ToolSkipped(0, CALL, ToolResult(error="too many", code="limit")), "○ add limit: too many\n"),
        (Usage(1, 2), ""),
        (Finish("stop"), ""),
    ],
)
def test_one_event(event: Event, line: str) -> None:
    assert shown(event) == line


def test_of_many_lines_the_first_are_shown() -> None:
    text = "x\n" * 20
    bars = "      | x\n" * (LINES - 1)
    assert shown(CallEnd(0, ToolCall("c", "f", {"a": text}))) == f"→ f\n    a:\n{bars}    … 12 more lines\n"
    said = "    x\n" * LINES
    assert shown(ToolCompleted(0, CALL, ToolResult(text), 0.0)) == f"✓ add 0 ms:\n{said}    … 10 more lines\n"


def test_colour_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(Thinking("hm"), colour=True) == "\x1b[2mhm\x1b[0m\n"
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    assert [Screen(terminal).colour, Screen(io.StringIO()).colour] == [True, False]
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Screen(terminal).colour


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[2J\x1b[H",  # clears the screen
        "\x1b]52;c;aGk=\x07",  # writes to the clipboard
        "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",  # a link that hides where it leads
        "\x9b31m",  # an 8-bit escape
        "a\rb\x08",  # overwrites what was said
        "\u202eevil",  # turns the direction
    ],
)
def test_no_text_commands_the_terminal(hostile: str) -> None:
    call = ToolCall("c", hostile)
    said = shown(
        Text(hostile),
        Thinking(hostile),
        CallStart(0, hostile),
        ArgumentDelta(0, hostile, hostile),
        ToolCompleted(0, call, ToolResult(hostile), 0.0),
        ToolFailed(0, call, ToolResult(error=hostile), 0.0),
        ToolSkipped(0, call, ToolResult(error=hostile)),
    )
    assert said == plain(said)


def test_table() -> None:
    assert table(("name", "n"), [("a", "1"), ("longer", "22")]) == [
        "name    n",
        "------  --",
        "a       1",
        "longer  22",
    ]


def answered(*events: Event) -> tuple[str, str]:
    """What a pipe gets, and what else is written."""
    out, answers = io.StringIO(), io.StringIO()
    screen = Screen(out, answers=answers)
    for event in events:
        screen.show(event)
    screen.write_answer()
    return answers.getvalue(), out.getvalue()


def test_each_response_is_an_answer_of_its_own() -> None:
    """If somebody else writes in the thread during an answer, the model is asked again."""
    assert answered(Text("On"), Text("e."), Finish("stop"), Text("Two."), Finish("stop")) == ("One.\nTwo.\n", "")
    assert answered(Text("On"), Finish("pause"), Text("e."), Finish("stop")) == ("One.\n", "")
    call = [CallStart(0, "add", "c0"), CallEnd(0, CALL), Finish("tool_calls")]
    assert answered(Text("Now:"), *call, Text("2."), Finish("stop"))[0] == "2.\n"
