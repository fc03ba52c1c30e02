"""A call and its result as one compact panel, while it is written, while it runs, and when it is answered.

Loads rich; imported only by what draws on a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.box import ROUNDED
from rich.console import Console, ConsoleOptions, RenderResult
from rich.panel import Panel
from rich.text import Text

from agentkit.cli.screen import LINES, outcome, result_lines
from agentkit.cli.terminal import arguments, block, duration, first_lines, visible
from agentkit.events import ToolCompleted, ToolFailed, ToolSkipped
from agentkit.messages import ToolCall

STREAMED: Final = 3  # lines shown of the arguments while they are written: the last ones
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

    def show_call(self, call: ToolCall) -> None:
        """Show the whole call."""
        self.name = visible(call.name) or "unreadable call"
        self._given = call.arguments
        self._note = f"in {call.format}" if call.format else ""

    def show_result(self, event: ToolCompleted | ToolFailed | ToolSkipped) -> None:
        """Show the result."""
        self.show_call(event.call)
        mark, colour, code = outcome(event)
        self.seconds = None if isinstance(event, ToolSkipped) else event.seconds
        self._mark, self._note, self._answer = (mark, colour), code or self._note, event.result.text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(options.max_width - EDGE, 1)
        body = Text("\n", overflow="fold").join([*self._arguments(width), *self._result(width)])
        title = Text.assemble(self._mark, " ", (self.name, "bold"))
        for word in filter(None, (self._note, "" if self.seconds is None else duration(self.seconds))):
            title.append(f" · {word}", "dim")
        title.truncate(max(width - 2, 1), overflow="ellipsis")
        yield Panel(body, box=ROUNDED, title=title, title_align="left", border_style="dim")

    def _arguments(self, width: int) -> Iterator[Text]:
        if self._given is None:
            lines = list(block(self._written.strip("\n"), width))[-STREAMED:]
            yield from (Text(line, "dim") for line in lines if line)
        else:
            yield from map(Text, first_lines(list(arguments(self._given, width)), LINES))

    def _result(self, width: int) -> Iterator[Text]:
        lines = [] if self._answer is None else result_lines(self._answer, max(width - 2, 1))
        yield from (Text(f"{'  ' if n else '= '}{line}", "dim") for n, line in enumerate(lines))
