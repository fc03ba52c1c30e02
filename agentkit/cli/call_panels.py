"""A call and its result as one compact panel, while it is written, while it runs, and when it is answered.

Loads rich; imported only by what draws on a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from rich.box import ROUNDED
from rich.console import Console, ConsoleOptions, RenderResult
from rich.panel import Panel
from rich.text import Text

from agentkit.cli.terminal import arguments, block, plain, visible
from agentkit.messages import ToolCall

LINES: Final = 10  # shown of the arguments, and of the result
STREAMED: Final = 3  # shown of the arguments while they are written: the last ones
TAIL: Final = 2_000  # characters kept of them
EDGE: Final = 4  # columns that a panel needs for its frame


class CallPanel:
    """One call.

    Args:
        name: the tool's name.
        began: when the call did, by the screen's clock.
    """

    def __init__(self, name: str, began: float) -> None:
        self.name = visible(name) or "unreadable call"
        self.began = began
        self.seconds: float | None = None  # how long it has run; None before it does
        self._given: Mapping[str, Any] | None = None  # None while they are written
        self._written = ""  # the end of what was written of them
        self._key: str | None = None
        self._note = ""
        self._mark = ("→", "cyan")
        self._answer: str | None = None

    def write(self, text: str, key: str | None) -> None:
        """Show more of the arguments."""
        if key != self._key:
            self._key = key
            text = f"\n{key}: {text}"
        self._written = (self._written + text)[-TAIL:]

    def called(self, call: ToolCall, note: str = "") -> None:
        """Show the whole call.

        Args:
            call: the call.
            note: what else to say in the title.
        """
        self.name = visible(call.name) or "unreadable call"
        self._given = call.arguments
        self._note = note

    def answer(self, mark: str, colour: str, text: str) -> None:
        """Show the result.

        Args:
            mark: one character that stands for it.
            colour: of the mark.
            text: the result.
        """
        self._mark = (mark, colour)
        self._answer = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(options.max_width - EDGE, 1)
        body = Text("\n", overflow="fold").join([*self._arguments(width), *self._result(width)])
        yield Panel(body, box=ROUNDED, title=self._title(width - 2), title_align="left", border_style="dim")

    def _title(self, width: int) -> Text:
        spent = "" if self.seconds is None else _seconds(self.seconds)
        title = Text.assemble(self._mark, " ", (self.name, "bold"))
        for word in filter(None, (self._note, spent)):
            title.append(f" · {word}", "dim")
        title.truncate(max(width, 1), overflow="ellipsis")
        return title

    def _arguments(self, width: int) -> Iterable[Text]:
        if self._given is None:
            lines = list(block(self._written.strip("\n"), width))[-STREAMED:]
            return [Text(line, "dim") for line in lines if line]
        return _first(list(arguments(self._given, width)), "")

    def _result(self, width: int) -> Iterable[Text]:
        if self._answer is None:
            return []
        text = plain(self._answer).strip("\n")
        shown = list(islice(block(text, max(width - 2, 1)), LINES + 2))  # a result can be long
        lines = _first(shown, "dim", len(text.splitlines())) if text else []
        return [Text.assemble(("= " if not n else "  ", "dim"), line) for n, line in enumerate(lines)]


def _first(lines: list[str], style: str, total: int | None = None) -> list[Text]:
    """The first of some lines, and how many more there are."""
    if len(lines) <= LINES + 1:
        return [Text(line, style) for line in lines]
    more = max((total or len(lines)) - LINES, 1)
    return [*(Text(line, style) for line in lines[:LINES]), Text(f"… {more} more lines", "dim italic")]


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
