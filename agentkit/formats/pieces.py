"""Text that arrives in pieces, kept in little more memory than its characters take. Knows nothing of its content."""

from __future__ import annotations

from itertools import chain
from typing import Final

_SMALL: Final = 512  # pieces that stay separate: each takes about 60 bytes more than its characters
_JOINED: Final = 4096  # characters of a call in such pieces: at most about 64 KiB of memory


class Pieces:
    """A text put together from pieces; many small ones would take many times its memory.

    Args:
        text: its beginning.
    """

    __slots__ = ("_joined", "_length", "_small")

    def __init__(self, text: str = "") -> None:
        self._length = len(text)
        self._small: list[str] = [text] if text else []
        self._joined: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._small or self._joined)

    def __len__(self) -> int:
        return self._length

    def add(self, text: str) -> None:
        """Add a piece."""
        self._length += len(text)
        small = self._small
        small.append(text)
        if len(small) >= _SMALL:
            self._joined.append("".join(small))
            small.clear()

    def last(self, count: int) -> str:
        """Return the last `count` characters; all of them if there are fewer."""
        taken: list[str] = []
        for piece in chain(reversed(self._small), reversed(self._joined)):
            if count <= 0:
                break
            taken.append(piece[-count:])
            count -= len(piece)
        return "".join(reversed(taken))

    def text(self) -> str:
        """Return the whole text; a second call takes no further time or memory."""
        if self._joined:
            self._small = [*self._joined, *self._small]
            self._joined = []
        if len(self._small) > 1:
            self._small = ["".join(self._small)]
        return self._small[0] if self._small else ""


class CallText:
    """The text of the open call.

    `pieces` were consumed and have left the buffer; `since` is the index in the buffer of the other consumed text.
    `mark` is the absolute offset at which the call starts, `room` the one at which it is too long, and `surplus` the
    text that arrived beyond that. A small string takes many times its text in memory: at each offset `full`, the pieces
    after the first `joined` ones become one.
    """

    __slots__ = ("full", "joined", "mark", "pieces", "room", "since", "surplus")

    def __init__(self, since: int, mark: int, room: int) -> None:
        self.pieces: list[str] = []
        self.joined = 0
        self.since, self.mark, self.room = since, mark, room
        self.full = mark + _JOINED if mark + _JOINED < room else room
        self.surplus = ""

    def join(self, end: int) -> bool:
        """Join the small pieces of a call that is read up to this absolute offset; False if it is beyond its limit."""
        self.pieces[self.joined :] = ["".join(self.pieces[self.joined :])]
        self.joined += 1
        self.full = min(end + _JOINED, self.room)
        return end <= self.room

    def text(self, start: int, end: int, past: int) -> str:
        """Return the text between two absolute offsets, given the one after the last piece.

        If it is long and was in several pieces, these become one: the returned text takes no further memory.
        """
        pieces, last = self.pieces, len(self.pieces)
        if not self.joined:  # as for most calls: all of it is short
            if last > 1:
                pieces[:] = ["".join(pieces)]
            return pieces[0][start - self.mark : end - self.mark] if start < end else ""
        if start >= end:
            return ""
        while past - len(pieces[last - 1]) >= end:
            last -= 1
            past -= len(pieces[last])
        first, excess = last, past - end
        while past > start:
            first -= 1
            past -= len(pieces[first])
        taken = pieces[first:last]
        after = taken[-1][-excess:] if excess else ""
        taken[-1] = taken[-1][:-excess] if excess else taken[-1]
        before = taken[0][: start - past]
        taken[0] = taken[0][start - past :]
        text = "".join(taken)
        if len(text) > _JOINED and len(taken) > 1:
            self.joined = min(self.joined, first)
            before = "".join((*pieces[self.joined : first], before))
            pieces[self.joined : last] = [before, text, after]
            self.joined += 2
        return text

    def limit(self, text: str, end: int) -> str:
        """Return the part of a chunk at this absolute offset that is within the call's limit; the rest is surplus."""
        fits = max(self.room - end, 0) if not self.surplus else 0
        self.surplus += text[fits:]
        return text[:fits]
