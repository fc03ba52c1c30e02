"""Events drawn on a terminal: Markdown as it streams, each call as one line, and a line with the state of the run.

Complete parts are printed once and for good; only the part that may still change is drawn again, in the lines below.
So nothing flickers, and scrolled lines are never touched. Loads rich.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import ClassVar, Final, TextIO

from rich.console import Console, Group, RenderableType
from rich.text import Text as Styled

from agentkit.cli.call_lines import WAITING, CallLine, CallLines
from agentkit.cli.keyboard import disable_echo
from agentkit.cli.live_region import LiveRegion
from agentkit.cli.markdown_blocks import MarkdownBlocks
from agentkit.cli.markdown_lines import THEME, MarkdownLines, Safe
from agentkit.cli.run_status import RunStatus
from agentkit.cli.screen import OF_CALLS, PrintedLines, Screen
from agentkit.cli.terminal import plain, truncate
from agentkit.events import (
    ApprovalRequired,
    ArgumentDelta,
    CallEnd,
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
    Usage,
)
from agentkit.messages import ToolCall

THOUGHT: Final = 2_000  # characters kept of thinking, of which one line is shown
LONG: Final = 4_000  # characters of a block that is drawn as Markdown while it grows


class LiveScreen(Screen):
    """Draws events on a terminal that understands control sequences.

    Args:
        out: the terminal.
        answers: as for `Screen`.
        clock: seconds.
    """

    drawn: ClassVar = True

    def __init__(self, out: TextIO, answers: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = Console(
            file=out, force_terminal=True, theme=THEME, highlight=False, markup=False, emoji=False, soft_wrap=False
        )
        super().__init__(out, not self._console.no_color, answers)
        self._clock = clock
        self._region = LiveRegion(self._console, out)
        self._running = False  # whether a run is shown
        self._blocks = MarkdownBlocks()
        self._thought: tuple[float, str] | None = None  # since when, and the first of it
        self._calls = CallLines(clock)
        self._status = RunStatus(clock, "")
        self._after = ""  # the kind of the last part that was printed

    def show(self, event: Event) -> None:
        """Note one event; it is drawn at the next tick, or, if it completes something, at once."""
        if not isinstance(event, Thinking):
            self._finish_thinking()
        if isinstance(event, OF_CALLS):
            self._finish_text()
        match event:
            case Text(text):
                self._print_calls(self._calls.next_response())
                self._status.add_text("writing", text)
                self._blocks.feed(plain(text))
                self._answer += text
            case Thinking(text):
                self._print_calls(self._calls.next_response())
                self._status.add_text("thinking", text)
                began, said = self._thought or (self._clock(), "")
                self._thought = (began, (said + text)[:THOUGHT])
            case Usage() | Finish():
                self._invented = False
                if isinstance(event, Usage):
                    self._status.add_usage(event)
            case InventedResult() | UnreadCall():
                self._no_answer(event)
            case ModelSelected(model, failed) if failed:
                self.note(f"{model} answers: {failed[-1]}")
            case _:
                self._of_calls(event)

    def _of_calls(self, event: Event) -> None:
        match event:
            case CallStart(index, name):
                self._print_calls(self._calls.next_response())
                self._status.doing("calling", plain(name))
                self._calls.start(index, name)
            case ArgumentDelta(index, text, key):
                self._status.add_text("", text)
                self._calls.line(index).write(text, key)
            case CallEnd(index, call):
                self._calls.line(index, call)
            case ToolStarted(index, call):
                self._status.doing("running", plain(call.name))
                line = self._calls.line(index, call)
                line.began, line.seconds, line.state = self._clock(), 0.0, ""
            case ToolCompleted() | ToolFailed() | ToolSkipped():
                self._calls.line(event.index, event.call).show_result(event)
                self._print_calls(self._calls.take_answered())
                self._status.doing("running", "") if self._calls.open_lines else self._status.waiting()
            case ApprovalRequired(index, call, reason):
                self._calls.line(index, call).state = WAITING
                if reason:
                    self.note(f"{call.name}: {reason}")

    @contextmanager
    def answering(self, who: str) -> Iterator[None]:
        """While a run is shown, draw the region below the complete parts; the tools' output appears above it."""
        self._status = RunStatus(self._clock, plain(who))
        self.printed = PrintedLines()
        self._calls.begin()
        with disable_echo(), redirect_stdout(self.printed), redirect_stderr(self.printed):
            self._running = True
            self._draw()
            try:
                yield
            finally:
                self._finish_thinking()
                self._finish_text(whole=True)
                self._print_tool_output(rest=True)
                self._print_calls(self._calls.take_ended())
                self._running = False
                self._region.erase()
                self.write_answer()

    def tick(self) -> None:
        """Draw the changes since the last tick."""
        if not self._running:
            return
        self._print_tool_output()
        if self.answers is None:
            self._blocks_done(self._blocks.take_finished())
        self._calls.tick()
        self._draw()

    @property
    def size(self) -> tuple[int, int]:
        """The columns and rows of the terminal, now."""
        return self._console.width, self._console.height

    def start_at_bottom(self) -> None:
        """Scroll all lines away: the conversation grows at the bottom of the window, above the toolbar.

        Below the part that is drawn again nothing may be empty: for each row that narrowing adds, tmux would scroll a
        row away at the top, even if there are empty ones at the bottom.
        """
        self.out.write("\n" * (self._console.height - 1))

    def ask(self, part: RenderableType) -> None:
        """Draw a question, below the calls that are decided."""
        decided = self._calls.open_lines
        apart = [Styled("")] if self._after not in ("", "call") else []
        whole = Group(*apart, *decided, *([Styled("")] if decided else []), part)
        self._region.draw(Safe(whole, last=max(self._console.height - 1, 1)))

    def end_question(self) -> None:
        """Remove the question."""
        self._region.erase()

    def show_decision(self, call: ToolCall, state: str) -> None:
        """Show what was decided about a call: with it when it runs, or now if it does not run."""
        if state:
            self._calls.decide(call.id, state)
        elif (line := self._calls.take(call.id)) is not None:
            line.state = "left for later"
            self._print_calls(iter([line]))

    def line(self, text: str = "") -> None:
        """Write a separate line, folded between words."""
        self.fresh()
        self._print(Styled.from_ansi(text), "line" if text else "")

    def begin_turn(self) -> None:
        """Write the empty line between a message and its answer."""
        self._print(Styled(""), "")

    def gap(self) -> None:
        """Write an empty line, unless there is one."""
        if self._after:
            self._print(Styled(""), "")

    def fresh(self) -> None:
        """Print the rest of the text."""
        self._finish_thinking()
        self._finish_text()

    def show_retry(self, why: str, seconds: float) -> None:
        """Write that a failed request is made again."""
        super().show_retry(why, seconds)
        self._status.doing(f"waiting {seconds:.0f} s before the next attempt", "")

    def print_part(self, part: RenderableType) -> None:
        """Print something for good."""
        self._print(part, "line")

    def _finish_thinking(self) -> None:
        """Print the thinking as one line."""
        if self._thought is None:
            return
        (began, said), self._thought = self._thought, None
        head = f"thought for {self._clock() - began:.0f} s: "
        self._print(Styled(truncate(head + said, self._console.width), "dim italic"), "line")

    def _finish_text(self, whole: bool = False) -> None:
        """Print the rest of the text. With `answers` it is an answer only if it is the last."""
        blocks = self._blocks.close()
        if self.answers is None or not whole:
            self._blocks_done(blocks)
            self._answer = ""

    def _blocks_done(self, blocks: list[str]) -> None:
        for block in blocks:
            self._print(MarkdownLines(block), "text", apart=True)

    def _print_calls(self, lines: Iterator[CallLine]) -> None:
        for line in lines:
            self._print(line, "call", apart=self._after != "call")

    def _print_tool_output(self, *, rest: bool = False) -> None:
        for line in self.printed.lines(rest=rest):
            self._print(Styled(line), "line")

    def _print(self, part: RenderableType, kind: str, *, apart: bool = False) -> None:
        """Print a part for good, above what is drawn again.

        Args:
            part: the part.
            kind: what it is: `text`, `call` or `line`; empty for an empty line.
            apart: whether there is an empty line between it and the part before it.
        """
        self._region.erase()
        if apart and self._after:
            self._console.print()
        self._console.print(Safe(part), end="")
        self._after = kind
        if self._running:
            self._draw()

    def _draw(self) -> None:
        """Draw the part that may still change: never higher than the terminal, whose scrolled lines stay."""
        height = max(self._console.height - 2, 1)
        status = Styled(truncate(self._status.line(), self._console.width - 1), "dim")
        self._region.draw(Group(self._region.fitting(Group(*self._unfinished(height)), height), status))

    def _unfinished(self, height: int) -> Iterator[RenderableType]:
        gap = [Styled("")] if self._after else []
        if self._thought is not None:
            words = truncate(" ".join(self._thought[1].split())[-self._console.width :], self._console.width - 2)
            yield Safe(Styled(f"… {words}", "dim italic"))
        elif self._blocks.open.strip() and self.answers is None:
            yield Safe(*gap, _growing(self._blocks.open, height), last=height)
        yield from self._calls.open_lines


def _growing(source: str, height: int) -> RenderableType:
    """Return a block that is still being written; of a long one its visible end."""
    if len(source) <= LONG:
        return MarkdownLines(source)
    lines = source.split("\n")
    fence = lines[0] if lines[0].lstrip().startswith(("```", "~~~")) else ""
    end = "\n".join(lines[-height:])[-LONG:]
    return MarkdownLines(f"{fence}\n{end}") if fence else Styled(end)
