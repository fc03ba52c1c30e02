"""Which calls of a chat completion may contain pieces of each other. Pure.

Every call is compared with all others of which a server might mean it to be a part; they are found by their names and
places, as there may be thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from agentkit.models.call_groups import CallGroup, Common
from agentkit.models.chat_known import ALL, ANY_ID, UNPLACED, WITH_ID, WITHOUT_ID, IdKey, KnownCalls, Place
from agentkit.models.native import NativeCall

MIXED: Final = "another call started in its place before it was complete; their pieces cannot be told apart"

AGAIN: Final = "it may be the call next to it, named again under another id; none of its arguments came"

_Key = tuple[object, ...]


class Doubts:
    """Finds the calls that may contain pieces of each other, while they come and when all have come.

    Args:
        known: what is known of the calls.
    """

    def __init__(self, known: KnownCalls) -> None:
        self._known = known
        self._touched: dict[int, NativeCall] = {}  # calls that may have changed
        self._torn: set[int] = set()
        self._groups: dict[_Key, CallGroup] = {}
        self._common: dict[_Key, Common] = {}
        self._lengths: set[int] = set()  # of the names of calls without arguments

    def touch(self, call: NativeCall) -> None:
        """Something has come for a call, or it has become doubtful."""
        self._touched[call.index] = call

    def may_contain_another(self, call: NativeCall) -> bool:
        """Whether an earlier call may contain pieces of this one, the last, or it pieces of that."""
        self._sort_in()
        if len(self._torn) > (call.index in self._torn):
            return True
        again = "blank" if not call.pieces.blank else "name"
        keys = [(again, call.name), *_one_with(self._known, call, self._lengths)]
        return any(self._has(kind, name, call) for kind, name in keys)

    def _sort_in(self) -> None:
        names = self._known.names
        for call in self._touched.values():
            (self._torn.add if names.torn(call) else self._torn.discard)(call.index)
            kinds = ["name"]
            if call.pieces.blank:
                kinds.append("blank")
                self._lengths.add(len(call.name))
            if call.index in self._known.joints:
                kinds.append("joint")
            for kind in kinds:
                for id_key in self._known.keys(call):
                    self._groups.setdefault((kind, call.name, id_key), CallGroup()).add(call)
        self._touched.clear()

    def _has(self, kind: str, name: str, other: NativeCall) -> bool:
        known = self._known
        for id_key in known.alike(other):
            group = self._groups.get((kind, name, id_key))
            if group is None or (len(group) == 1 and group.calls[0] is other):
                continue
            for place in known.near(other):
                key = (kind, name, id_key, place)
                if key not in self._common:
                    self._common[key] = Common(group, known.group(place), lambda call: call.index)
                if self._common[key].first(self._valid(kind, name, id_key, place), but=other):
                    return True
        return False

    def _valid(self, kind: str, name: str, id_key: IdKey, place: Place) -> Callable[[NativeCall], bool]:
        def valid(call: NativeCall) -> bool:
            return (
                call.name == name
                and (kind != "blank" or call.pieces.blank)
                and (len(id_key) < 2 or (call.id == id_key[1] and call.index not in self._known.without_id))
                and (place != UNPLACED or not self._known.places(call))
            )

        return valid

    def judge(self) -> None:
        """Mark these calls, now that everything has come."""
        _Judgement(self._known).all()


def _one_with(known: KnownCalls, call: NativeCall, lengths: set[int]) -> Iterator[tuple[str, str]]:
    """The kinds and names of the earlier calls whose names may be of one with this call's.

    Such a call has no arguments, or was named again when complete.
    """
    name = call.name
    before = known.names.before(name)
    yield from (("blank", first) for first in before)
    yield from (("blank", name[:end]) for end in lengths if end < len(name) and name[:end] not in before)
    if name in known.names:
        yield from (("joint", first) for first in before)


class _Bucket:
    """The calls of one kind at one place."""

    __slots__ = ("calls", "first")

    def __init__(self, call: NativeCall) -> None:
        self.calls = [call]  # those that have not been marked
        self.first = call.index

    def add(self, call: NativeCall) -> None:
        self.calls.append(call)
        self.first = min(self.first, call.index)


class _Judgement:
    """Compares each call with all before it."""

    def __init__(self, known: KnownCalls) -> None:
        self._known = known
        self._buckets: dict[_Key, _Bucket] = {}
        self._rests = known.names.rests(known.all.calls)
        self._takers: dict[str, frozenset[str] | None] = {}
        self._lengths = {len(call.name) for call in known.all.calls if call.pieces.blank}
        self._torn: set[int] = set()
        self._kept: dict[int, NativeCall] = {}  # calls that have become torn

    def all(self) -> None:
        for call in self._known.all.calls:
            self._judge(call)
            for one in self._kept.values():
                if one.index < call.index and one.index not in self._torn and self._known.names.torn(one):
                    self._torn.add(one.index)
                    self._put(one, [("torn",)])
            self._kept.clear()
            self._sort_in(call)

    def _judge(self, other: NativeCall) -> None:
        near = [(place, id_key) for place in self._known.near(other) for id_key in self._known.alike(other)]
        mixed = [*self._found(self._strong(other), near), *self._taken(other, near)]
        wide = list(self._found([("all",)], near))
        if self._known.names.torn(other):
            mixed, wide = mixed + wide, []
        firsts = [bucket.first for bucket in mixed]
        self._mark_all(mixed, MIXED)
        again = self._named_again(other, near)
        if again and other.pieces.blank:
            firsts += [bucket.first for bucket in again]
            other.doubt = other.doubt or AGAIN
        if mixed:
            other.doubt = MIXED
        if firsts and wide and self._known.names.torn(other):  # it has become so with the first of them
            self._mark_after(min(firsts), wide, other)

    def _named_again(self, other: NativeCall, near: list[tuple[Place, IdKey]]) -> list[_Bucket]:
        """Mark the calls of which this one may be only a repetition, or they of it."""
        again = list(self._found([("name" if other.pieces.blank else "blank", other.name)], near))
        if again:
            self._mark_all(list(self._found([("again", other.name)], near)), AGAIN)
        return again

    def _mark_all(self, buckets: list[_Bucket], doubt: str) -> None:
        for bucket in buckets:
            for call in bucket.calls:
                self._mark(call, doubt)
            bucket.calls.clear()

    def _mark_after(self, first: int, buckets: list[_Bucket], other: NativeCall) -> None:
        for bucket in buckets:
            while bucket.calls and bucket.calls[-1].index > first:
                self._mark(bucket.calls.pop(), MIXED)
                other.doubt = MIXED

    def _mark(self, call: NativeCall, doubt: str) -> None:
        call.doubt = MIXED if doubt is MIXED else call.doubt or doubt
        if self._known.names.pieced(call):
            self._kept[call.index] = call

    def _strong(self, other: NativeCall) -> Iterator[_Key]:
        yield ("torn",)
        yield from _one_with(self._known, other, self._lengths)

    def _taken(self, other: NativeCall, near: list[tuple[Place, IdKey]]) -> Iterator[_Bucket]:
        """Of the calls whose names came in pieces, those of which this one's first name may be a piece.

        If that came with its own id, it is not a piece of a call that had pieces without one.
        """
        name, named = self._known.first[other.index]
        if name not in self._takers:
            self._takers[name] = self._known.names.takers(name, self._rests)
        takers = self._takers[name]
        if named:
            near = [(place, WITH_ID if ids == ANY_ID else ids) for place, ids in near if ids != WITHOUT_ID]
        keys: list[_Key] = [("pieced",)] if takers is None else [("beginning", start) for start in takers]
        yield from self._found(keys, near)

    def _found(self, keys: Iterator[_Key] | list[_Key], near: list[tuple[Place, IdKey]]) -> Iterator[_Bucket]:
        for key in keys:
            for place, id_key in near:
                if bucket := self._buckets.get((*key, place, id_key)):
                    yield bucket

    def _sort_in(self, call: NativeCall) -> None:
        names = self._known.names
        kinds: list[_Key] = [("all",), ("name", call.name)]
        if call.pieces.blank:
            kinds += [("blank", call.name), ("again", call.name)]
        if call.index in self._known.joints:
            kinds.append(("joint", call.name))
        if names.torn(call):
            kinds.append(("torn",))
            self._torn.add(call.index)
        if names.pieced(call):
            kinds.append(("pieced",))
            kinds += [("beginning", start) for start in names.beginnings(call)]
        self._put(call, kinds)

    def _put(self, call: NativeCall, kinds: list[_Key]) -> None:
        places: list[Place] = [*self._known.places(call)] or [UNPLACED]
        for place in (*places, ALL):
            for id_key in self._known.keys(call):
                for kind in kinds:
                    key = (*kind, place, id_key)
                    if bucket := self._buckets.get(key):
                        bucket.add(call)
                    else:
                        self._buckets[key] = _Bucket(call)
