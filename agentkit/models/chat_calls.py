"""Which call a piece of a chat completion belongs to. Pure.

A piece with an id and no name belongs to the call with that id, any other one to the call at its index. Without an
index, it belongs to the last call, as does a piece without id and name if only the last call is incomplete.

Servers number all calls 0, count the index on
with each piece, omit it, give all calls one id, another id with each piece or none, repeat the name, or send it in
fragments; the reports of each are in `tests/data/odd_wires.jsonl`. What begins in the place of an incomplete call, or
fits none, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from agentkit.models.native import NativeCall

MIXED: Final = "another call started in its place before it was complete; their pieces cannot be told apart"

EMPTY: Final = "it may be the call next to it, which was named again; none of its arguments came"

DISPLACED: Final = "calls share an index, and a piece fits none of them; their pieces cannot be told apart"


class WhichCall:
    """The calls of one response, identified by what their pieces name.

    Args:
        tools: the names of the tools that were offered; empty if they are unknown.
        takes_nothing: whether the tool of a name takes no arguments, so that a call of it is complete without any.
    """

    def __init__(self, tools: Iterable[str] = (), takes_nothing: Callable[[str], bool] = lambda name: False) -> None:
        self._tools = frozenset(tools)
        self._takes_nothing = takes_nothing
        self._calls: list[NativeCall] = []
        self._ids: dict[str, NativeCall] = {}  # by their own ids
        self._at: dict[int, NativeCall] = {}  # the last call at each index
        self._complete = 0  # the number of calls at the beginning that are complete
        self._shared: int | None = None  # the number of the first call that began in another one's place
        self._again: list[NativeCall] = []  # the calls that began in the place of one with the same name
        self._before: NativeCall | None = None  # from `find` to `begin`: the call that a piece replaces by another

    def find(self, index: int | None, id: str, name: str, text: str) -> NativeCall | None:
        """Return the call that a piece continues; None if it begins one."""
        known = self._known(index, id, name, text)
        begins = known is not None and self._begins(known, id, name, text)
        self._before = known if begins else None
        return None if begins else known

    def _known(self, index: int | None, id: str, name: str, text: str) -> NativeCall | None:
        named = self._ids.get(id) if id else None
        last = self._calls[-1] if self._calls else None
        if index is None:
            return named or last
        here = self._at.get(index)
        if named is not None and not name and not (here is not None and here.id == id):
            return named  # with a name, the index decides: some servers give all calls one id
        return last if not (id or name) and last is not None and self._goes_to_last(here, text) else here

    def _goes_to_last(self, here: NativeCall | None, text: str) -> bool:
        """Return whether a piece at this call's index continues the last call, the only one that is incomplete."""
        last = self._calls[-1]
        if here is last or last.values is not None or (here is not None and not (text.strip() and here.values)):
            return False
        while self._calls[self._complete] is not last and self._calls[self._complete].values is not None:
            self._complete += 1
        return self._calls[self._complete] is last

    def _begins(self, known: NativeCall, id: str, name: str, text: str) -> bool:
        """Return whether a piece begins another call although there is one that it might continue."""
        if id and known.id and id != known.id:  # without a name, it is an id that changes with each piece
            return bool(name) or (text.lstrip().startswith("{") and bool(known.values))
        if not (name and known.name):
            return False
        if known.blank and name != known.name:  # a fragment of its name, unless both are tools
            return {name, known.name} <= self._tools and known.name + name not in self._tools
        return name != known.name or (bool(text.strip()) and not known.id and known.values is not None)

    def begin(self, call: NativeCall, index: int | None) -> None:
        """Remember a call that begins, perhaps in the place of another one."""
        before, self._before = self._before, None
        if before is not None:
            self._shared = len(self._calls) if self._shared is None else self._shared
            self._again += [call] if call.name == before.name else []
            bare = self._takes_nothing(before.name)
            values = {} if before.blank and bare else before.values
            if before.ambiguity or values is None:
                before.ambiguity = call.ambiguity = MIXED
            elif not (values or bare or (before.id and call.id)) and before.name == call.name:
                before.ambiguity = EMPTY
        self._calls.append(call)
        self._place(call, index)

    def go_on(self, call: NativeCall, index: int | None, id: str, name: str) -> None:
        """Remember what a piece of a call named: its id, and more of its name, which some servers repeat."""
        call.id = call.id or id
        if name or (id and id == call.id):
            self._place(call, index)
        if not (name and call.name):
            call.name = call.name or name
        elif name != call.name:
            call.name += name
        elif call.name + name in self._tools:
            call.ambiguity = f"its name came in pieces, which may mean {name!r} or {call.name + name!r}"

    def _place(self, call: NativeCall, index: int | None) -> None:
        if call.id:
            self._ids[call.id] = call
        if index is not None:
            self._at[index] = call

    def judge(self) -> None:
        """Refuse calls that may be parts of others.

        That is one without arguments that began in the place of one with its name; and, if a piece fits no call, each
        call since the first that began in another one's place.
        """
        for call in self._again:
            if call.blank and not self._takes_nothing(call.name):
                call.ambiguity = call.ambiguity or EMPTY
        if self._shared is not None and any(not (call.name or call.blank) for call in self._calls):
            for call in self._calls[self._shared :]:
                call.ambiguity = call.ambiguity or DISPLACED
