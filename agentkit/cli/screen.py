"""Events as plain lines, for pipes and simple terminals. Knows events and results; runs nothing and asks nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from textwrap import indent
from typing import TYPE_CHECKING, Final, TextIO

from agentkit.cli.flag_words import in_flags
from agentkit.cli.printed_lines import PrintedLines
from agentkit.cli.terminal import plain, visible
from agentkit.events import (
    ApprovalRequired,
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Event,
    Finish,
    InventedResult,
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

STYLES: Final = {"dim": "2", "bold": "1", "red": "31", "green": "32", "cyan": "36"}
ARGUMENT: Final = 600  # characters shown of an argument as it streams
WRITTEN: Final = 80  # characters shown of a text call's source
RESULT: Final = 400  # characters shown of a result
NO_KEY: Final = object()
OF_CALLS: Final = (
    CallStart, CallEnd, CallError, ToolStarted, ToolCompleted, ToolFailed, ToolSkipped, ApprovalRequired,
    InventedResult, UnreadCall,
)  # fmt: skip
"""The events that show that the text before them was not the answer yet."""


class Screen:
    """Writes events as they arrive: text as it streams, calls and results on separate lines.

    Args:
        out: where to write.
        colour: None uses colour if `out` is a terminal and NO_COLOR is unset.
        answers: where answers go, and nothing else; None for `out`. An answer is what the model says after its last
            call, so it is written when it is complete.
    """

    def __init__(self, out: TextIO, colour: bool | None = None, answers: TextIO | None = None) -> None:
        self.out = out
        self.answers = answers
        self._answer = ""
        self._over = False  # whether the response that it is from is over
        self.printed = PrintedLines()  # by tools, while a run is shown
        self.colour = out.isatty() and not os.environ.get("NO_COLOR") if colour is None else colour
        self._fresh = True  # whether at the beginning of a line
        self._saying: object = None  # what the current line belongs to
        self._invented = False  # whether the last thing said was that
        self._key: object = NO_KEY  # the current argument's; None for a native call's JSON
        self._shown = 0  # characters shown of it
        self._held = ""  # line ends that are written only if something follows

    def show(self, event: Event) -> None:
        """Write one event; those that only concern a program are not shown."""
        self._others()
        if self._answer and isinstance(event, OF_CALLS):
            self._say("text", self._answer)
            self._answer = ""
        match event:
            case Finish(reason):
                self._over, self._invented = reason != "pause", False
            case InventedResult() | UnreadCall():
                self._no_answer(event)
            case Text(text) if self.answers is not None:
                if self._over:  # this is the answer to what somebody else has written in the meantime
                    self.answered()
                self._answer += text
            case Text(text):
                self._say("text", text)
            case Thinking(text):
                self._say("thinking", text, "dim")
            case _:
                self._of_calls(event)
        self.out.flush()

    def _no_answer(self, event: InventedResult | UnreadCall) -> None:
        """Say why what was said is not an answer; once for a made-up result, which streams."""
        if isinstance(event, UnreadCall):
            self.note(f"↻ this call of {event.name} could not be read" if event.name else "↻ a call could not be read")
        elif not self._invented:
            self.note("↻ the model went on with a result or a message that it made up; that is discarded")
        self._invented = isinstance(event, InventedResult)

    def _of_calls(self, event: Event) -> None:
        match event:
            case CallStart(index, name):
                self.line(f"→ {self.style(plain(name), 'cyan', 'bold')}", ("call", index))
            case ArgumentDelta(index, text, key):
                self._argument(index, text, key)
            case CallEnd(_, call) if call.format:
                self._written(call.format, call.raw)
            case ToolCompleted(_, call, result, seconds):
                self._result(f"{self.style('✓', 'green')} {plain(call.name)}", result.text, f" {seconds * 1000:.0f} ms")
            case ToolFailed(_, call, result, _):
                mark = self.style("✗", "red")
                self._result(
                    f"{mark} {plain(call.name) or 'unreadable call'} {plain(str(result.code))}", result.text, ""
                )
            case ToolSkipped(_, call, result):
                self._result(f"{self.style('○', 'red')} {plain(call.name)} {plain(str(result.code))}", result.text, "")
            case ApprovalRequired(_, call, reason):
                why = f": {plain(reason)}" if reason else ""
                self.line(f"{self.style('?', 'cyan', 'bold')} {plain(call.name)} waits for approval{why}")
            case _:
                return
        self.out.flush()

    @contextmanager
    def answering(self, who: str) -> Iterator[None]:
        """While a run is shown: what the tools print is not part of the answer.

        Args:
            who: the model's name.
        """
        self.printed = PrintedLines()
        try:
            with redirect_stdout(self.printed), redirect_stderr(self.printed):
                yield
        finally:
            self._others(rest=True)
            self.answered()

    def answered(self) -> None:
        """The run is over: write its answer."""
        if self.answers is not None and self._answer.strip():
            self.answers.write(plain(self._answer).strip("\n") + "\n")
            self.answers.flush()
        self._answer, self._over = "", False

    def ended(self, result: RunResult) -> None:
        """Show the tokens of a run, if the server reports them, and why it ended, if that is unusual."""
        notes = []
        if any(result.usage):
            notes.append(f"{result.usage.input_tokens} tokens in, {result.usage.output_tokens} out")
        if result.finish not in ("stop", "approval"):
            notes.append(f"ended by {result.finish}")
        self.fresh()
        if notes:
            self.note(f"({', '.join(notes)})")

    def broken_off(self, result: RunResult) -> None:
        """A run ended before its end, and why was shown; for a program, its result is still to be written."""

    def note(self, text: str) -> None:
        """Say something about the session, on a line."""
        self.line(self.style(visible(text), "dim"))

    def problem(self, text: str) -> None:
        """Say what the user should not miss, on a line."""
        self.line(self.style(plain(text), "red"))

    def failed(self, error: Exception) -> None:
        """Say what went wrong."""
        self.problem(f"error: {in_flags(str(error))}")

    def retrying(self, why: str, seconds: float) -> None:
        """Say that a request failed, and is made again.

        Args:
            why: what happened, and what follows.
            seconds: until then.
        """
        self.note(f"↻ {why}")

    def tick(self) -> None:
        """Called several times a second while a run is shown."""
        self._others()

    def _others(self, *, rest: bool = False) -> None:
        """Write what tools printed."""
        for line in self.printed.lines(rest=rest):
            self.line(line)

    def line(self, text: str = "", saying: object = None) -> None:
        """Write a separate line; later text of the same `saying` continues after it."""
        self.fresh()
        self.out.write(text if saying else f"{text}\n")
        self._fresh, self._saying, self._key = saying is None, saying, NO_KEY
        self.out.flush()

    def fresh(self) -> None:
        """End the current line, if any."""
        if not self._fresh:
            self.out.write("\n")
        self._fresh, self._saying, self._held = True, None, ""

    def style(self, text: str, *names: str) -> str:
        """The text in these styles, if colour is on."""
        return f"\x1b[{';'.join(STYLES[n] for n in names)}m{text}\x1b[0m" if self.colour and text else text

    def _say(self, saying: str, text: str, *styles: str) -> None:
        if self._saying != saying:
            self.fresh()
            text = text.lstrip("\n")
        if text := plain(text):
            self._write(text, "\n", *styles)
            self._saying = saying

    def _argument(self, index: int, text: str, key: str | None) -> None:
        if self._saying != ("call", index):
            self.line(f"  … of call {index + 1}", ("call", index))
        if self._key != key:
            self._key, self._shown, self._held = key, 0, ""
            self.out.write("\n    " + (f"{plain(key)}: " if key else ""))
        room = ARGUMENT - self._shown
        self._shown += len(text)
        if room > 0:
            self._write(plain(text[:room]), "\n    ", "dim")
            self.out.write(" …" if len(text) > room else "")

    def _write(self, text: str, newline: str, *styles: str) -> None:
        """Continue the current line; line ends at the end of `text` are held back until more follows."""
        body = text.rstrip("\n")
        if body:
            indented = re.sub("\n(?=[^\n])", newline, f"{self._held}{body}")
            self.out.write(self.style(indented, *styles))
            self._held, self._fresh = "", False
        self._held += "\n" * (len(text) - len(body))

    def _written(self, format: str, raw: str) -> None:
        """The call's source in the model's text; a native call has none."""
        first, _, rest = plain(raw).partition("\n")
        cut = len(first) > WRITTEN or rest
        self.line(self.style(f"    ({plain(format)}: {first[:WRITTEN]}{' …' if cut else ''})", "dim"))

    def _result(self, head: str, text: str, tail: str) -> None:
        shown = plain(text if len(text) <= RESULT else f"{text[:RESULT]} … ({len(text)} characters)").rstrip("\n")
        body = f" {shown}" if "\n" not in shown else f"\n{indent(shown, '    ')}"
        self.line(f"{head}{self.style(tail, 'dim')}:{body}")
