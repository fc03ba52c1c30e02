"""The last response as the model wrote it, and the tokens of a chat: for `/raw`, `/usage`, `/copy` and the toolbar.

Knows events only. Text, thinking, markup and the source of calls are, in order, exactly what the model wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentkit.checks.visible_text import visible
from agentkit.cli.short_reasons import short_reason
from agentkit.cli.terminal import block, plain
from agentkit.cli.transcript import Style
from agentkit.events import (
    CallEnd,
    CallError,
    CallStart,
    Event,
    Finish,
    InventedResult,
    Markup,
    Text,
    Thinking,
    ToolFailed,
    ToolSkipped,
    UnreadCall,
    Usage,
)
from agentkit.messages import ToolCall

WRITTEN: Final = (Text, Thinking, Markup, InventedResult, CallStart, CallEnd, CallError, UnreadCall)
ANSWERED: Final = (ToolFailed, ToolSkipped)
INDENT: Final = "    "


class ChatRecord:
    """The record of the events of a chat.

    Attributes:
        said: the user's last message; None before the first.
        usage: the tokens of all responses.
        responses: how many responses were counted.
        context: the tokens of the last request and its response.
    """

    def __init__(self) -> None:
        self.said: str | None = None
        self.usage = Usage()
        self.responses = 0
        self.context = 0
        self._events: list[Event] = []  # of the last response, and of the answers to its calls
        self._over = False  # whether that response has ended

    def add(self, event: Event) -> None:
        """Note one event of a run."""
        if isinstance(event, CallEnd | CallError) and self._over:
            return  # after an approval a run continues with calls that are known
        if isinstance(event, WRITTEN):
            if self._over:
                self._events, self._over = [], False
            self._events.append(event)
        elif isinstance(event, ANSWERED):
            self._events.append(event)
        elif isinstance(event, Finish):
            self._over = True
        elif isinstance(event, Usage):
            self.usage, self.responses = self.usage.plus(event), self.responses + 1
            self.context = event.input_tokens + event.output_tokens

    @property
    def text(self) -> str:
        """The visible text of the last response."""
        return "".join(event.text for event in self._events if isinstance(event, Text)).strip("\n")

    def raw(self, width: int, style: Style) -> Iterator[str]:
        """The last response as it was written, then what became of those of its calls that failed."""
        written = ""
        for event in self._events:
            match event:
                case CallEnd(_, call) | CallError(_, _, _, call):
                    colour = "red" if isinstance(event, CallError) else "cyan"
                    written += _styled(_source(call), style, colour)
                case InventedResult(text):
                    written += _styled(text, style, "dim", "red")
                case Thinking(text) | Markup(text):
                    written += _styled(text, style, "dim")
                case Text(text):
                    written += _styled(text, style)
        if written:
            yield from written.split("\n")
        yield from self._notes(width, style)

    def _notes(self, width: int, style: Style) -> Iterator[str]:
        if any(isinstance(event, InventedResult) for event in self._events):
            yield style("the model imitated a tool result: it is neither shown nor kept", "red")
        for event in self._events:
            match event:
                case CallEnd(_, call, repairs) if repairs:
                    yield style(f"↻ {visible(call.name)} was repaired: {', '.join(repairs)}", "cyan")
                case UnreadCall(_, name):
                    yield style(f"✗ a call{f' of {visible(name)}' if name else ''} could not be read", "red")
                case ToolFailed(_, call, result) | ToolSkipped(_, call, result):
                    code = plain(str(result.code))
                    name = visible(call.name) or "unreadable call"
                    yield style(f"✗ {name}: {code}, {short_reason(code, result.text, width)}", "red")
                    yield style("  the model reads:", "dim")
                    yield from (style(line, "dim") for line in block(result.text.strip(), width, INDENT))
                case _:
                    continue


def _styled(text: str, style: Style, *styles: str) -> str:
    """A text in which each line has the styles, and shows what is invisible."""
    return "\n".join(style(visible(line.expandtabs(4)), *styles) for line in text.split("\n"))


def _source(call: ToolCall) -> str:
    """A call as it was written; of a native one its name with the provider's JSON."""
    return call.raw if call.format else f"\n{call.name} {call.raw}\n"
