"""Which call a piece of a chat completion belongs to. Pure.

The call that its id names, else the one at its index, else the last one. Servers number all calls 0, omit indexes, give
all calls one id, another id with each piece or none, repeat the name, or send it in fragments. So what has come decides
with it: nothing follows a complete object, and a name after one starts a call. Where indexes contradict each other
(Source: agno#8879), a piece goes to the one call that is incomplete. What starts in the place of an incomplete call, or
fits none, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from agentkit.models.native import NativeCall
from agentkit.models.native_arguments import is_another
from agentkit.unicode import clean

MIXED: Final = "another call started in its place before it was complete; their pieces cannot be told apart"

EMPTY: Final = "it may be the call next to it, which was named again; none of its arguments came"

DISPLACED: Final = "calls share an index, and a piece fits none of them; their pieces cannot be told apart"


class WhichCall:
    """The calls of one response, identified by what their pieces name.

    Args:
        tools: the names of the tools that were offered; empty if they are unknown.
    """

    def __init__(self, tools: Iterable[str] = ()) -> None:
        self._tools = frozenset(tools)
        self._ids: dict[str, NativeCall] = {}  # the last call under each id
        self._at: dict[int, NativeCall] = {}  # the last call at each index
        self._places: dict[int, int] = {}  # by the calls' numbers: where each was last
        self._open: dict[int, NativeCall] = {}  # those that are incomplete, and some that are complete now
        # those that started in another's place, after that, and whether both have ids of their own
        self._displaced: list[tuple[NativeCall, NativeCall, bool]] = []
        self._last: NativeCall | None = None
        self._before: NativeCall | None = None  # the call that the next piece does not continue, as it starts another

    def call(self, index: int | None, id: str, name: str, text: str) -> NativeCall | None:
        """The call that a piece continues; None if it starts one."""
        known = self._named(index, id, name)
        self._before = None
        if not (name or id) and self._contradicts(known, index, text):
            known = self._only_open(text) or known
        if known is not None and self._starts(known, id, name, text):
            self._before, known = known, None
        return known

    def _named(self, index: int | None, id: str, name: str) -> NativeCall | None:
        known = self._ids.get(id) if id else None
        if index is None:
            return known or self._last
        here = self._at.get(index)
        if known is not None:
            place = self._places.get(known.index)
            apart = place is not None and place != index and self._at[place] is known
            return (here or (None if name else known)) if apart else known  # one id for calls with their own indexes
        if here is None and self._last is not None and self._last.index not in self._places and not name:
            return self._last  # its index comes late
        return here

    def _contradicts(self, known: NativeCall | None, index: int | None, text: str) -> bool:
        """Whether no call is at a piece's index, or one of which nothing more can come."""
        if index is None or known is None:
            return index is not None
        return bool(text.strip()) and not text.lstrip().startswith("{") and known.values is not None

    def _only_open(self, text: str) -> NativeCall | None:
        """The one call that is incomplete, if it is the last one and its arguments may continue like this."""
        for number, call in list(self._open.items()):
            if call.values is not None:
                del self._open[number]
            elif call is not self._last:
                return None
        last = self._last
        if last is None or self._open.keys() != {last.index}:
            return None
        displaced = bool(self._displaced) and self._displaced[-1][1] is last
        begins = text.lstrip().startswith("{")  # it may be another call's, whose name comes later
        return last if (displaced or not begins) and last.pieces.blank == begins else None

    def _starts(self, known: NativeCall, id: str, name: str, text: str) -> bool:
        """Whether a piece starts another call although there is one that it might continue."""
        complete, joined = known.values is not None, known.name + name
        if name and name not in self._tools and known.pieces.blank and any(t.startswith(joined) for t in self._tools):
            return False
        if id and known.id and clean(id) != known.id and (name or (complete and text.strip())):
            return True  # without a name, it is the same call under an id that changes with each piece
        if not (name and known.name):
            return False
        if complete and name == known.name and known.id:  # where calls have ids, another has its own
            return bool(id and text.strip()) and (not known.values or is_another(known.values, text))
        if complete:
            return name != known.name or bool(text.strip())
        if name == known.name:
            return False
        grows = name.startswith(known.name) or joined in self._tools
        return not known.pieces.blank or (known.name in self._tools and name in self._tools and not grows)

    def add(self, call: NativeCall, index: int | None, id: str) -> None:
        """Remember what a piece of this call named, before its text is added."""
        before, self._before = self._before, None
        if before is not None:
            apart = bool(id and before.id) and clean(id) != before.id
            self._displaced.append((before, call, apart))
            if not apart:
                call.doubt = call.doubt or before.doubt
            if not before.ended and before.values is None and not (before.pieces.blank and before.told):
                before.doubt = call.doubt = MIXED
        if id:
            call.id = call.id or clean(id)
            self._ids[id] = call
        if index is not None:
            self._at[index] = call
            self._places[call.index] = index
        self._open[call.index] = call
        self._last = call

    def name(self, call: NativeCall, name: str) -> str:
        """The name of a call after one more fragment; some servers repeat the fragment, or all of the name so far."""
        joined = call.name + name
        again = name if name.startswith(call.name) and (name in self._tools or joined not in self._tools) else joined
        if again != joined and joined in self._tools:
            call.doubt = f"its name came in pieces, which may mean {again!r} or {joined!r}"
        return again

    def unsure(self, call: NativeCall) -> bool:
        """Whether only the response's end shows what belongs to this call, the last one when another starts."""
        return call.values == {} or bool(self._displaced)

    def judge(self, calls: Sequence[NativeCall]) -> None:
        """Mark the calls with ambiguous pieces, now that everything has come."""
        again = {call.name for _, call, apart in self._displaced if not apart}
        for before, call, apart in self._displaced:
            joined, blank, same = before.name + call.name, before.pieces.blank, before.name == call.name
            fragments = blank and any(tool.startswith(joined) for tool in self._tools)
            if (
                fragments
                or (blank and (before.name in again or call.name.startswith(before.name)))
                or (same and before.values == {} and not apart)
            ):
                before.doubt = before.doubt or EMPTY
            if fragments or (same and call.pieces.blank):
                call.doubt = call.doubt or EMPTY
        if self._displaced and any(not call.name for call in calls):
            for call in calls[self._displaced[0][1].index :]:
                call.doubt = call.doubt or DISPLACED
