"""Which call a piece of a chat completion belongs to. Pure.

The protocol tells it by an index, and says id and name once. Servers number all calls 0, leave indices out, give all
calls one id, another id with each piece or none at all, repeat the name with each piece, or send it in fragments. What
the pieces say decides: the names of the offered tools, and whether a call's arguments are whole already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentkit.models.arguments import ArgumentsError, read_arguments
from agentkit.models.surrogates import clean
from agentkit.models.wire import NativeCall


class WhichCall:
    """The calls of one response by what their pieces name.

    Args:
        tools: the names of the tools that were offered; empty where they are not known.
    """

    def __init__(self, tools: Iterable[str] = ()) -> None:
        self._tools = frozenset(tools)
        self._last: NativeCall | None = None
        self._placed: dict[int, list[NativeCall]] = {}
        self._ids: dict[str, list[NativeCall]] = {}
        self._unplaced: list[NativeCall] = []

    def add(self, call: NativeCall, index: int | None, id: str) -> None:
        """Remember what a piece of this call named."""
        if self._last is None or call.index > self._last.index:
            self._last = call
            self._unplaced += [call] if index is None else []
        if index is not None:
            if call in self._unplaced:
                self._unplaced.remove(call)
            self._remember(self._placed.setdefault(index, []), call)
        if id:
            self._remember(self._ids.setdefault(id, []), call)
            call.id = call.id or clean(id)

    @staticmethod
    def _remember(calls: list[NativeCall], call: NativeCall) -> None:
        if call not in calls:
            calls.append(call)

    def call(self, index: int | None, id: str, name: str, text: str) -> NativeCall | None:
        """The call that a piece continues; None when it begins one."""
        known = self._by_id(self._ids[id], index, name) if id in self._ids else self._by_place(index, name)
        if known is None or not name:
            return known
        if id and known.id and clean(id) != known.id:
            goes_on = index is not None and not known.text and name not in self._tools and self._fits(known.name + name)
            return known if goes_on else None
        if known.name and self._begins(known, name, text, same_id=bool(id and known.id)):
            return None
        return known

    def _by_id(self, calls: list[NativeCall], index: int | None, name: str) -> NativeCall | None:
        if index is None:
            return calls[-1]
        here = [c for c in calls if c in self._placed.get(index, ())] or [c for c in calls if c in self._unplaced]
        if here:
            return here[-1]
        return None if name else calls[-1]  # one id for several calls, which have indices of their own

    def _by_place(self, index: int | None, name: str) -> NativeCall | None:
        if index is None:
            return self._last
        if index in self._placed:
            return self._placed[index][-1]
        waiting = self._unplaced[-1] if self._unplaced else None
        return waiting if waiting and (not name or (name == waiting.name and not waiting.text)) else None

    def _begins(self, known: NativeCall, name: str, text: str, *, same_id: bool) -> bool:
        """Whether a piece that names a tool begins another call, where one is known that it might continue."""
        if name == known.name:
            values = _values(known)
            if values is None or text.lstrip()[:1] not in ("{", '"'):
                return False
            return not same_id or _contradicts(values, text)
        fragment = self._fits(known.name + name)
        if known.text.strip():
            return name in self._tools or not fragment
        return name in self._tools and not fragment and not name.startswith(known.name)

    def _fits(self, name: str) -> bool:
        """Whether the name of an offered tool begins so."""
        return any(tool.startswith(name) for tool in self._tools)

    def name(self, call: NativeCall, name: str) -> str:
        """The name of a call of which one more fragment has come; some servers repeat it, or all of it so far."""
        joined = call.name + name
        if name.startswith(call.name) and (name in self._tools or joined not in self._tools):
            return name
        return joined


def _values(call: NativeCall) -> Mapping[str, Any] | None:
    """The arguments that have come, if they are whole."""
    if not call.text or not call.text.rstrip().endswith("}"):  # not to read all of it for each piece
        return None
    try:
        return read_arguments(call.text).values
    except ArgumentsError:
        return None


def _contradicts(values: Mapping[str, Any], text: str) -> bool:
    """Whether whole arguments are no repetition of those that had come, with or without more."""
    try:
        others = read_arguments(text).values
    except ArgumentsError:
        return False
    return any(key not in others or others[key] != value for key, value in values.items())
