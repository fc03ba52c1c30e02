"""Going on after the token limit: what was written so far, and whether a further response goes on with it.

Pure. Knows text and events; knows no parser and no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from agentkit.events import CallEnd, CallError, CallStart, Markup, SourceEvent, Text, Thinking

_OPENING: Final = 24  # visible characters that tell a call begun again: `<tool_call>{"name":"add"`
_SPACE: Final = 1024  # characters of white space before them, at most


class Record:
    """The text of one response as it was written.

    A parser's events and the raw text of its calls are, in order, what it was fed (the law of conservation). What it
    was fed and has not told of is therefore the call that is open.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._from = 0
        self._told = 0
        self._lead = ""
        self.behind_call = False
        """Whether nothing was said since a call ended: what is open can then only be the end of its wrapping, or the
        very first characters of another call."""

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._pieces)

    @property
    def open(self) -> str:
        """What is not decided yet: the text of the open call, or what may become one."""
        return "".join(self._pieces[self._from :])[self._told :]

    def fed(self, text: str) -> None:
        """The parser was given this."""
        self._pieces.append(text)

    def told(self, events: Iterable[SourceEvent]) -> None:
        """The parser made these of it."""
        for event in events:
            match event:
                case CallEnd(call=call) | CallError(call=call):
                    self._told += len(call.raw)
                    self._lead, self.behind_call = "", True
                case Markup(text):
                    self._told += len(text)
                    self._lead += text
                case Text(text) | Thinking(text):
                    self._told += len(text)
                    self._lead, self.behind_call = "", False
                case CallStart():
                    self.behind_call = False
                case _:
                    pass

    def ended(self) -> None:
        """The parser is done; another one reads on."""
        self._from, self._told, self._lead, self.behind_call = len(self._pieces), 0, "", False

    def joint(self) -> Joint:
        """Where a continuation will meet what is open: a call begun again may begin with its wrapping, too."""
        return Joint((self.open, self._lead + self.open))


class Joint:
    """The beginning of a continuation: it goes on with the open call, or begins it again.

    Args:
        openings: how the open call began.
    """

    def __init__(self, openings: Sequence[str]) -> None:
        self._openings = [squeezed for opening in openings if (squeezed := _squeezed(opening))]
        self.text = ""

    def begins_again(self, text: str) -> bool | None:
        """Add to the continuation; None while it cannot be told. White space makes no difference."""
        self.text += text
        seen = _squeezed(self.text)
        if any(seen.startswith(opening) for opening in self._openings):
            return True
        undecided = len(self.text) < _SPACE and any(opening.startswith(seen) for opening in self._openings)
        return None if undecided else False


def _squeezed(text: str) -> str:
    return "".join(text[: _SPACE + _OPENING].split())[:_OPENING]
