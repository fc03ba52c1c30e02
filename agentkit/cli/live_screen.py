"""Events drawn on a terminal: Markdown as it streams, calls as panels, and a line with the state of the run.

Complete parts are printed once and for good; only the part that may still change is drawn again, in the lines below.
So nothing flickers, and scrolled lines are never touched. Loads rich.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, Final, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text as Styled

from agentkit.cli.call_panels import CallPanel
from agentkit.cli.keyboard import disable_echo
from agentkit.cli.markdown_blocks import MarkdownBlocks
from agentkit.cli.markdown_lines import THEME, MarkdownLines, Safe
from agentkit.cli.screen import OF_CALLS, PrintedLines, Screen
from agentkit.cli.terminal import plain, truncate, visible
from agentkit.events import (
    ApprovalRequired,
    ArgumentDelta,
    CallEnd,
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
    Usage,
)
from agentkit.models.tokens import text_tokens

THOUGHT: Final = 2_000  # characters kept of thinking, of which one line is shown
FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PER_SECOND: Final = 10  # frames
LONG: Final = 4_000  # characters of a block that is drawn as Markdown while it grows


class LiveScreen(Screen):
    """Draws events on a terminal that understands control sequences.

    Args:
        out: the terminal.
        answers: as for `Screen`.
        clock: seconds.
    """

    def __init__(self, out: TextIO, answers: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = Console(
            file=out, force_terminal=True, theme=THEME, highlight=False, markup=False, emoji=False, soft_wrap=False
        )
        super().__init__(out, not self._console.no_color, answers)
        self._clock = clock
        self._live: Live | None = None  # the region that is drawn again, while a run is shown
        self._blocks = MarkdownBlocks()
        self._thought: tuple[float, str] | None = None  # since when, and the first of it
        self._panels: dict[int, CallPanel] = {}
        self._status = Status(clock, "")
        self._after_text = False  # whether the last thing printed was a block of text

    def show(self, event: Event) -> None:
        """Note one event; it is drawn at the next tick, or, if it completes something, at once."""
        if not isinstance(event, Thinking):
            self._folded()
        if isinstance(event, OF_CALLS):
            self._said()
        match event:
            case Text(text):
                self._status.add_text("writing", text)
                self._blocks.feed(plain(text))
                self._answer += text
            case Thinking(text):
                self._status.add_text("thinking", text)
                began, said = self._thought or (self._clock(), "")
                self._thought = (began, (said + text)[:THOUGHT])
            case Usage() | Finish():
                self._invented = False
                if isinstance(event, Usage):
                    self._status.add_usage(event)
            case InventedResult() | UnreadCall():
                self._no_answer(event)
            case _:
                self._of_calls(event)

    def _of_calls(self, event: Event) -> None:
        match event:
            case CallStart(index, name):
                self._status.doing("calling", plain(name))
                self._panels[index] = CallPanel(name, self._clock())
            case ArgumentDelta(index, text, key):
                self._status.add_text("", text)
                self._panel(index).write(text, key)
            case CallEnd(index, call):
                self._panel(index).show_call(call)
            case ToolStarted(index, call):
                self._status.doing("running", plain(call.name))
                panel = self._panel(index, call)
                panel.began, panel.seconds = self._clock(), 0.0
            case ToolCompleted() | ToolFailed() | ToolSkipped():
                self._panel(event.index, event.call).show_result(event)
                self._print(self._panels.pop(event.index))
                self._status.doing("running", "") if self._panels else self._status.waiting()
            case ApprovalRequired(index, call, reason):
                self._panels.pop(index, None)  # its arguments are shown with the question, or with the answer
                why = f": {visible(reason)}" if reason else ""
                title = (("? ", "bold cyan"), (visible(call.name), "bold"))
                self._print(Styled.assemble(*title, f" waits for approval{why}"))

    def _panel(self, index: int, call: Any = None) -> CallPanel:
        if index not in self._panels:
            self._panels[index] = CallPanel(call.name if call is not None else "", self._clock())
            if call is not None:
                self._panels[index].show_call(call)
        return self._panels[index]

    @contextmanager
    def answering(self, who: str) -> Iterator[None]:
        """While a run is shown, draw the region below the complete parts; the tools' output appears above it."""
        self._status = Status(self._clock, plain(who))
        self.printed = PrintedLines()
        live = Live(
            get_renderable=self._region, console=self._console, auto_refresh=False, transient=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        with disable_echo(), redirect_stdout(self.printed), redirect_stderr(self.printed):
            live.start(refresh=True)
            self._live = live
            try:
                yield
            finally:
                self._folded()
                self._said(whole=True)
                self._others(rest=True)
                for panel in self._panels.values():
                    self._print(panel)
                self._panels.clear()
                self._live = None
                live.stop()
                self.write_answer()

    def tick(self) -> None:
        """Draw the changes since the last tick."""
        if self._live is None:
            return
        self._others()
        if self.answers is None:
            self._blocks_done(self._blocks.take_finished())
        for panel in self._panels.values():
            if panel.seconds is not None:
                panel.seconds = self._clock() - panel.began
        self._live.refresh()

    def line(self, text: str = "") -> None:
        """Write a separate line, folded between words."""
        self.fresh()
        self._print(Styled.from_ansi(text))

    def fresh(self) -> None:
        """Print the rest of the text."""
        self._folded()
        self._said()

    def show_retry(self, why: str, seconds: float) -> None:
        """Write that a failed request is made again."""
        super().show_retry(why, seconds)
        self._status.doing(f"waiting {seconds:.0f} s before the next attempt", "")

    def _folded(self) -> None:
        """Print the thinking as one line."""
        if self._thought is None:
            return
        (began, said), self._thought = self._thought, None
        head = f"thought for {self._clock() - began:.0f} s: "
        self._print(Styled(truncate(head + said, self._console.width), "dim italic"))

    def _said(self, whole: bool = False) -> None:
        """Print the rest of the text. With `answers` it is an answer only if it is the last."""
        blocks = self._blocks.close()
        if self.answers is None or not whole:
            self._blocks_done(blocks)
            self._answer = ""

    def _blocks_done(self, blocks: list[str]) -> None:
        for block in blocks:
            if self._after_text:
                self._console.print()
            self._print(MarkdownLines(block))
            self._after_text = True

    def _others(self, *, rest: bool = False) -> None:
        for line in self.printed.lines(rest=rest):
            self._print(Styled(line))

    def _print(self, part: RenderableType) -> None:
        self._console.print(Safe(part), end="")
        self._after_text = False

    def _region(self) -> RenderableType:
        """Return the part that may still change: never higher than the terminal, whose scrolled lines stay."""
        height = max(self._console.height - 2, 1)
        status = Styled(truncate(self._status.line(), self._console.width - 1), "dim")
        return Group(Safe(*self._unfinished(height), last=height), Safe(status))

    def _unfinished(self, height: int) -> Iterator[RenderableType]:
        if self._thought is not None:
            words = truncate(" ".join(self._thought[1].split())[-self._console.width :], self._console.width - 2)
            yield Safe(Styled(f"… {words}", "dim italic"))
        elif self._blocks.open.strip() and self.answers is None:
            yield Safe(*([""] if self._after_text else []), _growing(self._blocks.open, height), last=height)
        yield from map(Safe, self._panels.values())


class Status:
    """The state of one run of the model `who`."""

    def __init__(self, clock: Callable[[], float], who: str) -> None:
        self._clock, self._who = clock, who
        self._began = clock()
        self._spent = Usage()
        self._streamed = 0.0  # tokens of the response, as estimated
        self.waiting()

    def waiting(self) -> None:
        """Set the activity to waiting for the model."""
        self.doing("waiting for", self._who)

    def doing(self, what: str, name: str) -> None:
        """Set the activity: such as `running`, and a tool's name."""
        self._doing = f"{what} {name}".strip()

    def add_text(self, what: str, text: str) -> None:
        """Count some more of a response; `what` is such as `writing`, or empty to keep it."""
        self._doing = what or self._doing
        self._streamed += text_tokens(text)

    def add_usage(self, usage: Usage) -> None:
        """Take over the provider's count."""
        self._spent = self._spent.plus(usage)
        self._streamed = 0.0

    def line(self) -> str:
        """Write the state, now."""
        seconds = self._clock() - self._began
        parts = [f"{FRAMES[int(seconds * PER_SECOND) % len(FRAMES)]} {seconds:.0f} s", self._doing]
        out = self._spent.output_tokens + round(self._streamed)
        if self._spent.input_tokens:
            parts.append(f"{self._spent.input_tokens:,} tokens in")
        if out:
            unit = "out" if self._spent.input_tokens else f"token{'s' * (out != 1)} out"
            parts.append(f"{'~' if self._streamed else ''}{out:,} {unit}")
        return " · ".join(filter(None, parts))


def _growing(source: str, height: int) -> RenderableType:
    """Return a block that is still being written; of a long one its visible end."""
    if len(source) <= LONG:
        return MarkdownLines(source)
    lines = source.split("\n")
    fence = lines[0] if lines[0].lstrip().startswith(("```", "~~~")) else ""
    end = "\n".join(lines[-height:])[-LONG:]
    return MarkdownLines(f"{fence}\n{end}") if fence else Styled(end)
