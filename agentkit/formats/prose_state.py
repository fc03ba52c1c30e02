"""The state of the reader between calls, which continues after an interruption. A value only."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING

from agentkit.formats.other_json import OtherJson
from agentkit.formats.quoting import Quoting

if TYPE_CHECKING:
    from agentkit.formats.prosereader import ProseReader
    from agentkit.formats.reader import Wait


class ProseState:
    """The state of the reader of a text: the code, region, block or JSON that is open.

    `silent` is True until visible text was emitted; `continuation` reads the rest of an open region, aside or run of
    marks; `block` is the indentation of the line that starts a block of Python; `blocked` is True in that block;
    `other` is the open JSON, in which an unmarked call does not count; `broken` is True after a call that could not be
    read, after which none runs. `tail` is the end of the text before an interruption, if later text might have changed
    its reading: it is read once more.
    """

    __slots__ = ("block", "blocked", "broken", "continuation", "other", "quoting", "silent", "tail")

    def __init__(self, quoting: Quoting) -> None:
        self.quoting, self.tail = quoting, ""
        self.silent, self.broken, self.blocked = True, False, False
        self.block: int | None = None
        self.continuation: Callable[[ProseReader], Wait] | None = None
        self.other: OtherJson | None = None

    def copy_from(self, before: ProseState) -> None:
        """Become a copy of another state."""
        self.quoting, self.other, self.continuation = before.quoting.copy(), copy(before.other), before.continuation
        self.silent, self.broken, self.blocked, self.block = before.silent, before.broken, before.blocked, before.block

    def with_tail(self, tail: str) -> ProseState:
        """Return this state with an end of a text that is to be read once more."""
        state = ProseState(self.quoting)
        state.copy_from(self)
        state.tail = tail
        return state
