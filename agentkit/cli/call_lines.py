"""A call and its result as one line, with the first lines of the result below it if it has several.

No frame: each line starts at the left, so a terminal can fold it at any width. Loads rich; imported only by what draws.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from agentkit.checks.visible_text import visible
from agentkit.cli.screen import outcome, result_lines
from agentkit.cli.short_reasons import short_reason
from agentkit.cli.terminal import block, cells, duration, truncate
from agentkit.events import ToolCompleted, ToolFailed, ToolSkipped
from agentkit.messages import ToolCall
from agentkit.tool.call_effect import PATHS

STREAMED: Final = 3  # lines shown of the arguments while they are written: the last ones
TAIL: Final = 2_000  # characters kept of them
RESULT: Final = 5  # lines shown of a result
WAITING: Final = "waits for approval"
UNREADABLE: Final = "unreadable call"
BULLET, ELBOW = "● ", "  ⎿ "


class CallLine:
    """One call.

    Args:
        name: the tool's name.
        began: when the call did, by the screen's clock.
    """

    def __init__(self, name: str, began: float) -> None:
        self.name = visible(name) or UNREADABLE
        self.began = began
        self.seconds: float | None = None  # how long it has run; None before it does
        self.state = ""  # `waiting`, or what was decided about it
        self.call: ToolCall | None = None  # None while it is written
        self.answer: ToolCompleted | ToolFailed | ToolSkipped | None = None
        self._written = ""  # the end of what was written of the arguments
        self._key: str | None = None

    def write(self, text: str, key: str | None) -> None:
        """Show more of the arguments."""
        if key != self._key:
            self._key = key
            text = f"\n{key}: {text}"
        self._written = (self._written + text)[-TAIL:]

    def show_call(self, call: ToolCall) -> None:
        """Show the whole call."""
        self.name = visible(call.name) or UNREADABLE
        self.call = call

    def show_result(self, event: ToolCompleted | ToolFailed | ToolSkipped) -> None:
        """Show the result."""
        self.show_call(event.call)
        self.answer = event
        self.seconds = None if isinstance(event, ToolSkipped) else event.seconds

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        if self.answer is not None:
            yield from self._answered(width, self.answer)
            return
        spent = "" if self.seconds is None else duration(self.seconds)
        yield self._head(width, "cyan", "", " · ".join(filter(None, (self.state, spent))))
        if self.call is None:
            lines = list(block(self._written.strip("\n"), max(width - len(ELBOW), 1)))[-STREAMED:]
            yield from _below(lines)

    def _answered(self, width: int, event: ToolCompleted | ToolFailed | ToolSkipped) -> Iterator[Text]:
        mark, colour, code = outcome(event)
        spent = "" if self.seconds is None else duration(self.seconds)
        text = event.result.text
        if code:
            about = " · ".join(filter(None, (code, short_reason(code, text))))
            fits = cells(f"{BULLET}{self.name} {mark} {about} · {spent}") < width
            yield self._head(width, colour, mark, " · ".join(filter(None, (about if fits else code, spent))))
            yield from () if fits else _below(list(block(short_reason(code, text, 4 * width), width - len(ELBOW))))
            return
        lines = result_lines(text, max(width - len(ELBOW), 1), RESULT)
        if len(lines) == 1 and cells(f"{BULLET}{self.name} {mark} {lines[0]} · {spent}") + 20 < width:
            yield self._head(width, colour, mark, f"{lines[0]} · {spent}")
            return
        count = len(text.strip("\n").splitlines())
        many = f"{count} lines · " if count > 1 else ""
        yield self._head(width, colour, mark, f"{many}{spent}")
        yield from _below(lines)

    def _head(self, width: int, colour: str, mark: str, about: str) -> Text:
        """The line: a mark, the name, the arguments as far as they fit, and what became of it."""
        head = Text.assemble((BULLET, colour), (self.name, "bold"))
        end = Text.assemble((f" {mark}" if mark else "", colour), (f" {about}" if about and mark else "", "dim"))
        if about and not mark:
            end = Text(f" · {about}", "dim")
        free = width - head.cell_len - end.cell_len - 1
        if self.call is not None and free > 3 and (given := summary(self.call.arguments, free)):
            head.append(f" {given}")
        head.append_text(end)
        head.truncate(width, overflow="ellipsis")
        return head


class CallLines:
    """The calls that are not printed yet, in the order in which the model wrote them.

    A run that continues after an approval counts its calls anew, so those about which was decided are found by id.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lines: dict[int, CallLine] = {}  # the key is the order
        self._places: dict[int, int] = {}  # of the indices of this response

    def start(self, index: int, name: str) -> None:
        """Add a call that is being written."""
        self._places[index] = place = max(self._lines, default=-1) + 1
        self._lines[place] = CallLine(name, self._clock())

    def line(self, index: int, call: ToolCall | None = None) -> CallLine:
        """The line of a call; a new one if there is none."""
        if index not in self._places and call is not None and (place := self._place(call.id)) is not None:
            self._places[index] = place
        if self._places.get(index) not in self._lines:
            self.start(index, "" if call is None else call.name)
        line = self._lines[self._places[index]]
        if call is not None:
            line.show_call(call)
        return line

    def decide(self, id: str, state: str) -> None:
        """Note what a person has decided about a call."""
        if (place := self._place(id)) is not None:
            self._lines[place].state = state

    def take(self, id: str) -> CallLine | None:
        """Take out the call with this id."""
        place = self._place(id)
        return None if place is None else self._lines.pop(place)

    def tick(self) -> None:
        """Take the time of those that run."""
        for line in self._lines.values():
            if line.seconds is not None and line.answer is None:
                line.seconds = self._clock() - line.began

    def begin(self) -> None:
        """Begin another run; those about which nobody was asked are forgotten."""
        self._places = {}
        self._lines = {place: line for place, line in self._lines.items() if line.state != WAITING}

    def take_answered(self) -> Iterator[CallLine]:
        """Take out those that are answered, up to the first that is not."""
        while self._lines and self._lines[first := min(self._lines)].answer is not None:
            yield self._lines.pop(first)

    def take_ended(self) -> Iterator[CallLine]:
        """Take out all but those that wait for approval."""
        for place in sorted(self._lines):
            if self._lines[place].state != WAITING:
                yield self._lines.pop(place)

    def next_response(self) -> Iterator[CallLine]:
        """Take out those of an earlier response, once none of it runs."""
        if all(line.answer is not None or line.state for line in self._lines.values()):
            yield from self.take_ended()

    @property
    def open_lines(self) -> list[CallLine]:
        """The calls that are not printed and do not wait, in their order."""
        return [self._lines[place] for place in sorted(self._lines) if self._lines[place].state != WAITING]

    def _place(self, id: str) -> int | None:
        found = (place for place, line in self._lines.items() if line.call is not None and line.call.id == id)
        return next(found, None)


def summary(given: Mapping[str, Any], width: int) -> str:
    """Return arguments in at most `width` columns: the first, or a path, by its value, the others by name; no texts.

    >>> summary({"city": "Bern", "days": 2}, 40)
    'Bern days=2'
    """
    words: list[str] = []
    if path := next((name for name in PATHS if isinstance(given.get(name), str)), ""):
        others = {name: value for name, value in given.items() if not isinstance(value, str)}
        given = {path: given[path], **others}
    for name, value in given.items():
        quoted = json.dumps(value, ensure_ascii=False, default=str)
        short = value.strip("\n") if isinstance(value, str) else quoted
        if not words:
            words.append(visible(short.partition("\n")[0]))
        elif "\n" not in short:
            words.append(visible(f"{name}={quoted if ' ' in short else short}"))
    return truncate(" ".join(words), width)


def _below(lines: list[str]) -> Iterator[Text]:
    for n, line in enumerate(lines):
        yield Text(f"{' ' * len(ELBOW) if n else ELBOW}{line}", "dim")
