"""Properties of the terminal's screen, for any text, width and chunks, read from an emulator."""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from collections.abc import Iterable

import pytest
from emulator import Shown
from hypothesis import given
from hypothesis import strategies as st

from agentkit.cli.live_screen import LiveScreen
from agentkit.cli.terminal import plain
from agentkit.events import (
    ApprovalRequired,
    ArgumentDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
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

MARKDOWN = """\
# Steps

Some **bold** and `code`, a [link](https://example.org/x) and <b>tags</b>.

- one
- two words
  - deeper
1. first

| name | what |
|------|-----:|
| a | 1 |

```python
def f(x):
    return "y"  # why
```

> quoted

---
Last &#27;[2J &amp; words"""
DENIED = "not run: the user denied this call"
CALL = ToolCall("c0", "add", {"a": 1, "b": "x\ny"})


class Clock:
    """Moves by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def drawn(
    events: Iterable[Event], monkeypatch: pytest.MonkeyPatch, columns: int = 80, rows: int = 24, ticks: bool = True
) -> tuple[list[str], str]:
    """What a terminal shows after a run, and all that was written to it."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", str(rows))
    monkeypatch.setenv("TERM", "xterm")
    out, clock = io.StringIO(), Clock()
    screen = LiveScreen(out, clock=clock)
    with screen.answering("m"):
        for event in events:
            screen.show(event)
            clock.now += 0.1
            if ticks:
                screen.tick()
    shown = Shown(columns, rows)
    shown.feed(out.getvalue().replace("\n", "\r\n"))
    return shown.lines, out.getvalue()


def cut(text: str, seed: int) -> list[Event]:
    """A text in pieces of any size."""
    chance = random.Random(seed)
    pieces, at = [], 0
    while at < len(text):
        size = chance.choice((1, 2, 5, 17, 80))
        pieces.append(text[at : at + size])
        at += size
    return [Text(piece) for piece in pieces]


def letters(lines: Iterable[str]) -> Counter[str]:
    return Counter(c for line in lines for c in line if c.isalnum())


def test_markdown_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, _ = drawn([Text(MARKDOWN)], monkeypatch, 60)
    assert lines == [
        "Steps",
        "",
        "Some bold and code, a link (https://example.org/x) and",
        "<b>tags</b>.",
        "",
        " • one",
        " • two words",
        "    • deeper",
        "",
        "1. first",
        "",
        " name  what",
        " ──────────",
        " a        1",
        "",
        "│ python",
        "│ def f(x):",
        '│     return "y"  # why',
        "",
        "▌ quoted",
        "",
        "-" * 60,
        "",
        "Last &#27;[2J &amp; words",
    ]


PIECES = st.sampled_from(
    [
        *("# ", "word ", "*", "**b**", "`c`", "\n", "\n\n", "```", "```py\n", "- ", "1. ", "> ", "---", "=", "    "),
        *("|a|b|\n|--|--|\n|", "[t](u)", "![i](v)", "[r]: w\n", "<i>", "&lt;", "~~", "\\", "\t", "漢字"),
        *("long" * 12, ">" * 30, "- " * 25),
    ]
)


@given(text=st.lists(PIECES, max_size=12).map("".join), seed=st.integers(0, 9), columns=st.sampled_from([20, 40, 80]))
def test_no_word_is_lost_and_no_cut_shows(text: str, seed: int, columns: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        whole, _ = drawn([Text(text)], patch, columns, ticks=False)
        pieces, _ = drawn(cut(text, seed), patch, columns)
    assert pieces == whole
    assert letters([plain(text)]) - letters(whole) == Counter()


@pytest.mark.parametrize(("columns", "seed"), [(12, 0), (40, 1), (80, 2)])
def test_what_has_scrolled_away_is_there_once(monkeypatch: pytest.MonkeyPatch, columns: int, seed: int) -> None:
    """Also of a block that is much longer than the terminal is high."""
    code = "```\n" + "".join(f"line{n:03}\n" for n in range(90)) + "```\n"
    items = "\n" + "".join(f"- item{n:03}\n" for n in range(60)) + "\nend"
    lines, _ = drawn(cut(code + items, seed), monkeypatch, columns, rows=10)
    said = [line for line in lines if line]
    assert said == [*(f"│ line{n:03}" for n in range(90)), *(f" • item{n:03}" for n in range(60)), "end"]


def test_what_is_complete_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the block that still grows is drawn again: nothing above it flickers."""
    _, written = drawn([Text("alpha\n\nbeta\n\n"), *[Text("gamma ")] * 30], monkeypatch)
    assert [written.count(word) for word in ("alpha", "beta")] == [1, 1]


def test_a_call_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Event] = [
        *(Thinking("Let me "), Thinking("add.\nThen answer."), Text("On it."), CallStart(0, "add", "c0")),
        *(ArgumentDelta(0, '{"a": 1, '), CallEnd(0, CALL), Usage(10, 3), Finish("tool_calls"), ToolStarted(0, CALL)),
        *(ToolCompleted(0, CALL, ToolResult("\n".join(f"row {n}" for n in range(20))), 0.0123), Text("Done.")),
        *(ToolFailed(1, CALL, ToolResult(error="no way", code="timeout"), 2.0),),
        *(ToolFailed(2, CALL, ToolResult(error="expected <a>, found '<b>' at 7", code="invalid_arguments"), 0.0),),
        *(ToolSkipped(3, ToolCall("d", "f"), ToolResult(error=f"{DENIED}: no", code="denied")),),
        *(ToolCompleted(4, ToolCall("e", "g", {"path": "a.txt"}), ToolResult("written"), 0.005),),
    ]
    assert drawn(events, monkeypatch, 44)[0] == [
        "thought for 0 s: Let me add. Then answer.",
        "",
        "On it.",
        "",
        "● add 1 ✓ 20 lines · 12 ms",
        "  ⎿ row 0",
        *(f"    row {n}" for n in range(1, 5)),
        "    … 15 more lines",
        "",
        "Done.",
        "",
        "● add 1 ✗ timeout · no way · 2.0 s",
        "● add 1 ✗ invalid_arguments · 0 ms",
        "  ⎿ the arguments do not fit the tool",
        "● f ○ denied · no",
        "● g a.txt ✓ written · 5 ms",
    ]


def test_results_are_in_the_order_of_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = ToolCall("c1", "f", {"n": 1}), ToolCall("c2", "f", {"n": 2})
    events: list[Event] = [
        *(CallEnd(0, one), CallEnd(1, two), ToolStarted(0, one), ToolStarted(1, two)),
        *(ToolCompleted(1, two, ToolResult("second"), 0.1), ToolCompleted(0, one, ToolResult("first"), 0.2)),
    ]
    assert drawn(events, monkeypatch)[0] == ["● f 1 ✓ first · 200 ms", "● f 2 ✓ second · 100 ms"]


def test_after_an_approval_results_are_in_the_order_of_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that continues counts anew, and answers a denied call first."""
    monkeypatch.setenv("TERM", "xterm")
    out = io.StringIO()
    screen = LiveScreen(out, clock=Clock())
    calls = [ToolCall(f"c{n}", "f", {"n": n}) for n in range(3)]
    with screen.answering("m"):
        for n in (1, 2):
            screen.show(CallEnd(n, calls[n]))
            screen.show(ApprovalRequired(n, calls[n]))
    screen.show_decision(calls[1], "approved")
    screen.show_decision(calls[2], "denied")
    with screen.answering("m"):
        screen.show(ToolSkipped(1, calls[2], ToolResult(error="no", code="denied")))
        screen.show(ToolStarted(0, calls[1]))
        screen.show(ToolCompleted(0, calls[1], ToolResult("done"), 0.1))
    shown = Shown()
    shown.feed(out.getvalue().replace("\n", "\r\n"))
    assert shown.lines == ["● f 1 ✓ done · 100 ms", "● f 2 ○ denied · no"]


def refolded(before: Shown, columns: int, rows: int) -> Shown:
    """The same terminal with another width: it folds longer lines, and the cursor stays in its line."""
    at = len(before.screen.history.top) + before.screen.cursor.y
    past = ["".join(line[x].data for x in range(before.screen.columns)) for line in before.screen.history.top]
    lines = [line.rstrip() for line in [*past, *before.screen.display]]
    while len(lines) > at + 1 and not lines[-1]:
        lines.pop()
    after = Shown(columns, rows)
    after.feed("\r\n".join(lines))
    row = sum(max(1, -(-len(line) // columns)) for line in lines[:at])
    after.screen.cursor.x, after.screen.cursor.y = 0, row - len(after.screen.history.top)
    assert after.screen.cursor.y >= 0, "the first line that is drawn again has scrolled away"
    return after


@pytest.mark.parametrize(("widths", "above"), [((41, 110), 0), ((70, 45, 110, 50), 0), ((70, 45, 110, 50), 40)])
def test_a_resize_during_an_answer_shows_nothing_twice_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, widths: tuple[int, ...], above: int
) -> None:
    """Whatever the terminal has made of the lines: it folds them before the program learns of it."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("LINES", "30")
    out = io.StringIO()
    screen, shown, words = LiveScreen(out, clock=Clock()), Shown(110, 30), [f"w{n:03}" for n in range(200)]

    def pass_on() -> None:
        shown.feed(out.getvalue().replace("\n", "\r\n"))
        out.seek(0)
        out.truncate()

    screen.start_at_bottom()
    for n in range(above):
        screen.line(f"line {n}")
    with screen.answering("m"):
        for n, word in enumerate(words):
            screen.show(Text(f"{word} "))
            screen.tick()
            pass_on()
            if n and n % 40 == 0 and n // 40 <= len(widths):
                shown = refolded(shown, widths[n // 40 - 1], 30)
                screen.show(Text("late "))  # still drawn for the former width
                screen.tick()
                pass_on()
                screen._console.width = widths[n // 40 - 1]
                screen.tick()
                pass_on()
    pass_on()
    assert re.findall(r"w\d\d\d", " ".join(shown.lines)) == words
    assert [line for line in shown.lines if line.startswith("line ")] == [f"line {n}" for n in range(above)]


def test_a_line_tells_what_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    out, clock = io.StringIO(), Clock()
    screen = LiveScreen(out, clock=clock)
    seen = []
    with screen.answering("openai:m"):
        for event in (None, Thinking("hm"), Text("word " * 40), Usage(1200, 50), ToolStarted(0, CALL)):
            if event is not None:
                screen.show(event)
            clock.now += 1.0
            screen.tick()
            shown = Shown(60)
            shown.feed(out.getvalue().replace("\n", "\r\n"))
            seen.append(shown.lines[-1])
        screen.show_retry("localhost 429: slow down; attempt 2 of 3 in 2.0 s", 2.0)
    assert seen == [
        "⠋ 1 s · waiting for openai:m",
        "⠋ 2 s · thinking · ~1 token out",
        "⠋ 3 s · writing · ~42 tokens out",
        "⠋ 4 s · writing · 1,200 tokens in · 50 out",
        "⠋ 5 s · running add · 1,200 tokens in · 50 out",
    ]
    assert "↻ localhost 429: slow down; attempt 2 of 3 in 2.0 s" in out.getvalue()


HOSTILE = "\x1b[2J\x1b]52;c;aGk=\x07\x9b31m\r\x08\u202e\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\"
OWN = re.compile(r"\x1b\[(?:[0-9;]*m|\?(?:25|7)[hl]|\d*[AJK])|\r(?=\x1b)")
"""What is drawn with: styles, the cursor shown or hidden, lines folded or cut, up some lines, lines erased."""


@pytest.mark.parametrize(
    "hostile", [HOSTILE, "&#27;[2J&#x9b;31m", f"[{HOSTILE}](&#27;]0;x)", f"```{HOSTILE}\n{HOSTILE}\n```"]
)
def test_no_text_commands_the_terminal(monkeypatch: pytest.MonkeyPatch, hostile: str) -> None:
    call = ToolCall("c", hostile, {hostile: hostile})
    events: list[Event] = [
        *(
            Thinking(hostile),
            Text(f"{hostile}\n\n{hostile}"),
            CallStart(0, hostile),
            ArgumentDelta(0, hostile, hostile),
        ),
        *(CallEnd(0, call), ToolStarted(0, call), ToolCompleted(0, call, ToolResult(hostile), 0.0), Text(hostile)),
        *(ToolFailed(1, call, ToolResult(error=hostile), 0.0), ToolSkipped(2, call, ToolResult(error=hostile))),
        ApprovalRequired(3, call, hostile),
    ]
    _, written = drawn(events, monkeypatch)
    left = OWN.sub("", written)
    assert left == plain(left)


def test_every_colour_can_be_read_on_white_and_on_black(monkeypatch: pytest.MonkeyPatch) -> None:
    """No background, and of the palette only red, green, magenta and cyan."""
    code = "".join(
        f"```{name}\n{text}\n```\n"
        for name, text in (("diff", "-a\n+b"), ("html", '<a b="c">&amp;'), ("c", "int x=1;"))
    )
    failed = ToolFailed(0, CALL, ToolResult(error="no"), 0.0)
    _, written = drawn([Thinking("x"), Text(MARKDOWN + "\n" + code), failed], monkeypatch)
    used = {int(n) for codes in re.findall(r"\x1b\[([0-9;]*)m", written) for n in codes.split(";") if n}
    assert used <= {0, 1, 2, 3, 4, 9, 31, 32, 35, 36}
    assert {31, 32, 35, 36} <= used


def test_no_colour_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    _, written = drawn([Text(MARKDOWN)], monkeypatch)
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", written)


def test_what_a_tool_prints_stands_above_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out, clock = io.StringIO(), Clock()
    screen = LiveScreen(out, clock=clock)
    with screen.answering("m"):
        screen.show(Text("grow"))
        print("printed \x1b[2J by a tool")
        clock.now = 1.0
        screen.tick()
        screen.show(Text("ing"))
    shown = Shown()
    shown.feed(out.getvalue().replace("\n", "\r\n"))
    assert shown.lines == ["printed [2J by a tool", "", "growing"]


def test_answers_go_where_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out, answers = io.StringIO(), io.StringIO()
    screen = LiveScreen(out, answers, Clock())
    with screen.answering("m"):
        for event in (
            Text("On it."),
            CallStart(0, "add"),
            ToolCompleted(0, CALL, ToolResult(2), 0.0),
            Text("*Two*.\n"),
        ):
            screen.show(event)
    assert answers.getvalue() == "*Two*.\n"
    assert "On it." in out.getvalue()
    assert "Two" not in out.getvalue()
