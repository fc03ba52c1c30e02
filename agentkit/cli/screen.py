"""Events as plain lines, for pipes and simple terminals. Knows events and results; runs nothing and asks nothing."""

from __future__ import annotations

import io
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final, TextIO

from agentkit.checks.visible_text import visible
from agentkit.cli.flag_words import in_flags
from agentkit.cli.short_reasons import REASONS, short_reason
from agentkit.cli.terminal import arguments, block, duration, first_lines, plain, truncate, width
from agentkit.events import (
    ApprovalRequired,
    CallEnd,
    CallError,
    CallStart,
    Event,
    Finish,
    InventedResult,
    ModelSelected,
    Text,
    Thinking,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
    UnreadCall,
)

if TYPE_CHECKING:
    from agentkit.agent import RunResult
    from agentkit.messages import ToolCall

STYLES: Final = {"dim": "2", "bold": "1", "red": "31", "green": "32", "cyan": "36"}
LINES: Final = 10  # shown of the arguments, and of the result
OF_CALLS: Final = (
    CallStart, CallEnd, CallError, ToolStarted, ToolCompleted, ToolFailed, ToolSkipped, ApprovalRequired,
    InventedResult, UnreadCall,
)  # fmt: skip
"""The events that show that the text before them was not the answer yet."""


def outcome(event: ToolCompleted | ToolFailed | ToolSkipped) -> tuple[str, str, str]:
    """Return the mark of an answered call, the mark's colour, and the code of the error; empty if there is none."""
    if isinstance(event, ToolCompleted):
        return "✓", "green", ""
    return "○" if isinstance(event, ToolSkipped) else "✗", "red", plain(str(event.result.code))


def result_lines(text: str, width: int, most: int = LINES) -> list[str]:
    """Return the first lines of a result, and how many more there are; cheap if it is long."""
    text = plain(text).strip("\n")
    shown = list(islice(block(text, width), most + 2)) if text else []
    return first_lines(shown, most, len(text.splitlines()))


class PrintedLines(io.TextIOBase):
    """A stream in place of standard output, for all threads: whole lines, to be taken out later."""

    def __init__(self) -> None:
        self._unended = ""
        self._lines: deque[str] = deque()

    def write(self, text: str) -> int:
        """Keep a text."""
        *lines, self._unended = (self._unended + text).split("\n")
        self._lines.extend(map(plain, lines))
        return len(text)

    def writable(self) -> bool:
        """True."""
        return True

    def lines(self, *, rest: bool = False) -> Iterator[str]:
        """Take the lines that were printed since the last time.

        Args:
            rest: also a line that did not end.
        """
        if rest and self._unended:
            self.write("\n")
        while self._lines:
            yield self._lines.popleft()


class Screen:
    """Writes events as they arrive: text as it streams, calls and results on separate lines.

    Args:
        out: where to write.
        colour: None uses colour if `out` is a terminal and NO_COLOR is unset.
        answers: where answers go, and nothing else; None for `out`. An answer is what the model says after its last
            call, so it is written when it is complete.
    """

    drawn: ClassVar = False
    """Whether this is a terminal that draws, and reads single keys."""

    def __init__(self, out: TextIO, colour: bool | None = None, answers: TextIO | None = None) -> None:
        self.out = out
        self.answers = answers
        self._answer = ""
        self._over = False  # whether the response that it is from is over
        self.printed = PrintedLines()  # by tools, while a run is shown
        self.colour = out.isatty() and not os.environ.get("NO_COLOR") if colour is None else colour
        self._saying = ""  # the kind of text that the current line belongs to; empty at the beginning of a line
        self._invented = False  # whether the last thing said was that
        self._line_ends = ""  # line ends that are written only if something follows

    def show(self, event: Event) -> None:
        """Write one event; those that only concern a program are not shown."""
        self._print_tool_output()
        if self._answer and isinstance(event, OF_CALLS):
            self._say("text", self._answer)
            self._answer = ""
        match event:
            case Finish(reason):
                self._over, self._invented = reason != "pause", False
            case InventedResult() | UnreadCall():
                self._no_answer(event)
            case ModelSelected(model, failed) if failed:
                self.note(f"{model} answers: {failed[-1]}")
            case Text(text) if self.answers is not None:
                if self._over:  # this is the answer to what somebody else has written in the meantime
                    self.write_answer()
                self._answer += text
            case Text(text):
                self._say("text", text)
            case Thinking(text):
                self._say("thinking", text, "dim")
            case _:
                self._of_calls(event)
        self.out.flush()

    def _no_answer(self, event: InventedResult | UnreadCall) -> None:
        """Write why the text is not an answer; once for a made-up result, which streams."""
        if isinstance(event, UnreadCall):
            self.note(f"↻ this call of {event.name} could not be read" if event.name else "↻ a call could not be read")
        elif not self._invented:
            self.note("(the model imitated a tool result)")
        self._invented = isinstance(event, InventedResult)

    def _of_calls(self, event: Event) -> None:
        match event:
            case CallEnd(_, call):
                self.line(f"→ {self.style(plain(call.name), 'cyan', 'bold')}")
                given = list(arguments(call.arguments, width(), "    "))
                written = [f"    ({plain(call.format)}: {truncate(call.raw, width() - 20)})"] if call.format else []
                for line in (*first_lines(given, LINES, indent="    "), *written):
                    self.line(self.style(line, "dim"))
            case ToolCompleted() | ToolFailed() | ToolSkipped():
                mark, colour, code = outcome(event)
                spent = "" if isinstance(event, ToolSkipped) else duration(event.seconds)
                head = [plain(event.call.name) or "unreadable call", code, self.style(spent, "dim")]
                text = event.result.text
                lines = result_lines(short_reason(code, text) if code in REASONS else text, width() - 4)
                separator = " " if len(lines) == 1 else "\n    "
                said = separator.join(["", *lines])
                self.line(f"{self.style(mark, colour)} {' '.join(filter(None, head))}:{said}")
            case ApprovalRequired(_, call, reason):
                why = f": {plain(reason)}" if reason else ""
                self.line(f"{self.style('?', 'cyan', 'bold')} {plain(call.name)} waits for approval{why}")

    @contextmanager
    def answering(self, who: str) -> Iterator[None]:
        """Show a run; the tools' output is not part of the answer.

        Args:
            who: the model's name.
        """
        self.printed = PrintedLines()
        try:
            with redirect_stdout(self.printed), redirect_stderr(self.printed):
                yield
        finally:
            self._print_tool_output(rest=True)
            self.write_answer()

    def write_answer(self) -> None:
        """Write the run's answer."""
        if self.answers is not None and self._answer.strip():
            self.answers.write(plain(self._answer).strip("\n") + "\n")
            self.answers.flush()
        self._answer, self._over = "", False

    def show_end(self, result: RunResult) -> None:
        """Show why a run ended, if that is unusual."""
        self.fresh()
        if result.finish not in ("stop", "approval"):
            self.note(f"(ended by {result.finish})")

    def show_break(self, result: RunResult) -> None:
        """Write the result of an interrupted run, for a program; a person has seen why."""

    def show_decision(self, call: ToolCall, state: str) -> None:
        """Show what was decided about a call; empty: nothing yet. Here the answer to the question shows it."""

    def start_at_bottom(self) -> None:
        """Start a conversation; a terminal that draws scrolls its lines away."""

    def begin_turn(self) -> None:
        """Write the empty line between a message and its answer."""
        self.line()

    def gap(self) -> None:
        """Write an empty line, unless there is one."""
        self.line()

    def note(self, text: str) -> None:
        """Write a line about the session."""
        self.line(self.style(visible(text), "dim"))

    def problem(self, text: str) -> None:
        """Write an important line."""
        self.line(self.style(plain(text), "red"))

    def show_error(self, error: Exception) -> None:
        """Write an error message."""
        self.problem(f"error: {in_flags(str(error))}")

    def show_retry(self, why: str, seconds: float) -> None:
        """Write that a failed request is made again after a delay, and why."""
        self.note(f"↻ {why}")

    def tick(self) -> None:
        """Called several times a second while a run is shown."""
        self._print_tool_output()

    def _print_tool_output(self, *, rest: bool = False) -> None:
        for line in self.printed.lines(rest=rest):
            self.line(line)

    def line(self, text: str = "") -> None:
        """Write a separate line."""
        self.fresh()
        self.out.write(f"{text}\n")
        self.out.flush()

    def fresh(self) -> None:
        """End the current line, if any."""
        if self._saying:
            self.out.write("\n")
        self._saying = self._line_ends = ""

    def style(self, text: str, *names: str) -> str:
        """The text in these styles, if colour is on."""
        return f"\x1b[{';'.join(STYLES[n] for n in names)}m{text}\x1b[0m" if self.colour and text else text

    def _say(self, saying: str, text: str, *styles: str) -> None:
        """Continue a text; line ends at its end are held back until more follows."""
        if self._saying != saying:
            self.fresh()
            text = text.lstrip("\n")
        text = self._line_ends + plain(text)
        if body := text.rstrip("\n"):
            self.out.write(self.style(body, *styles))
            self._saying = saying
        self._line_ends = text[len(body) :]
