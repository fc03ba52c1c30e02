"""Where the reader of a text is between its calls, which continues over an interruption. A value only."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING

from agentkit.formats.other_json import OtherJson
from agentkit.formats.quoting import Quoting

if TYPE_CHECKING:
    from agentkit.formats.prosereader import ProseReader
    from agentkit.formats.reader import Wait


class Reached:
    """Where the reader of a text is: in what code, region, block or JSON.

    `silent` means that nothing visible was emitted yet, only calls; `within`, what reads the rest of a region, an aside
    or a run of marks that is open; `block`, the indentation of the line that starts a block of Python; `blocked`,
    whether this place is in that block; `other`, the JSON that is open here, in which a call does not count that
    nothing marks as one; `broken`, whether a call could not be read, after which none runs. `tail` is the end of a text
    that is over, if that might have been read otherwise with what follows: it is read once more.
    """

    __slots__ = ("block", "blocked", "broken", "other", "quoting", "silent", "tail", "within")

    def __init__(self, quoting: Quoting) -> None:
        self.quoting, self.tail = quoting, ""
        self.silent, self.broken, self.blocked = True, False, False
        self.block: int | None = None
        self.within: Callable[[ProseReader], Wait] | None = None
        self.other: OtherJson | None = None

    def follow(self, before: Reached) -> None:
        """Be where another one is; several may follow it."""
        self.quoting, self.other, self.within = before.quoting.copy(), copy(before.other), before.within
        self.silent, self.broken, self.blocked, self.block = before.silent, before.broken, before.blocked, before.block

    def before(self, tail: str) -> Reached:
        """The same place, before this end of a text."""
        place = Reached(self.quoting)
        place.follow(self)
        place.tail = tail
        return place
