"""Which calls of a chat completion may contain pieces of each other. Pure.

Every call is compared with all others of which a server might mean it to be a part; they are found by their names and
places, as there may be thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from agentkit.models.call_groups import CallGroup, Common
from agentkit.models.chat_names import ToolNames
from agentkit.models.native import NativeCall

MIXED: Final = "another call started in its place before it was complete; their pieces cannot be told apart"

AGAIN: Final = "it may be the call next to it, named again under another id; none of its arguments came"

_Key = tuple[object, ...]

_ALL: Final = "all"
_UNPLACED: Final = "unplaced"
_ANY: Final = "any"
_UNNAMED: Final = "unnamed"
_NAMED: Final = "named"


class Known:
    """What the pieces of a response named: the calls' places and ids.

    Attributes:
        names: their names.
        all: the calls.
        placed: the calls at each place.
        unplaced: calls that began without a place.
        joints: where a call was named again when it was complete, and how.
        first: how each call started: its name; whether under its own id.
        ids_again: whether an id was repeated: then ids tell calls apart.
        without_id: calls that had a piece without an id.
    """

    def __init__(self, names: ToolNames) -> None:
        self.names = names
        self.all = CallGroup()
        self.placed: dict[int, CallGroup] = {}
        self.unplaced = CallGroup()
        self.joints: dict[int, tuple[NativeCall, int, str]] = {}
        self.first: dict[int, tuple[str, bool]] = {}
        self.ids_again = False
        self.without_id: set[int] = set()
        self._places: dict[int, list[int]] = {}

    def place(self, call: NativeCall, index: int) -> None:
        """A call is at a place."""
        here = self.placed.setdefault(index, CallGroup())
        if call not in here:
            here.add(call)
            self._places.setdefault(call.index, []).append(index)

    def places(self, call: NativeCall) -> list[int]:
        """The places of a call."""
        return self._places.get(call.index, [])

    def group(self, place: object) -> CallGroup:
        """The calls at a place, of those that began without one, or all."""
        if place == _ALL:
            return self.all
        return self.unplaced if place == _UNPLACED else self.placed[place]  # type: ignore[index]

    def near(self, call: NativeCall) -> list[object]:
        """Where the calls are that have no separate place."""
        return [*self.places(call), _UNPLACED] if self.places(call) else [_ALL]

    def tags(self, call: NativeCall) -> list[_Key]:
        """The ids of the calls that are not told apart from this one by their ids in each piece."""
        if self.ids_again and call.index not in self.without_id:
            return [(_UNNAMED,), (_NAMED, call.id)]
        return [(_ANY,)]

    def own_tags(self, call: NativeCall) -> list[_Key]:
        """Under which of these the call itself is found."""
        own: list[_Key] = [(_UNNAMED,)] if call.index in self.without_id else [(_NAMED,), (_NAMED, call.id)]
        return [(_ANY,), *own]


class Doubts:
    """Finds such calls, while they come and when all have come.

    Args:
        known: what is known of the calls.
    """

    def __init__(self, known: Known) -> None:
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
        if self._torn - {call.index} if len(self._torn) < 2 else self._torn:
            return True
        again = "blank" if not call.pieces.blank else "name"
        keys = [(again, call.name)] + [(kind, name) for kind, name in _one_with(self._known, call, self._lengths)]
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
                for tag in self._known.own_tags(call):
                    self._groups.setdefault((kind, call.name, tag), CallGroup()).add(call)
        self._touched.clear()

    def _has(self, kind: str, name: str, other: NativeCall) -> bool:
        known = self._known
        for tag in known.tags(other):
            group = self._groups.get((kind, name, tag))
            if group is None or (len(group) == 1 and group.calls[0] is other):
                continue
            for place in known.near(other):
                key = (kind, name, tag, place)
                if key not in self._common:
                    self._common[key] = Common(group, known.group(place), lambda call: call.index)
                if self._common[key].first(self._valid(kind, name, tag, place), but=other):
                    return True
        return False

    def _valid(self, kind: str, name: str, tag: _Key, place: object) -> Callable[[NativeCall], bool]:
        def valid(call: NativeCall) -> bool:
            return (
                call.name == name
                and (kind != "blank" or call.pieces.blank)
                and (len(tag) < 2 or (call.id == tag[1] and call.index not in self._known.without_id))
                and (place != _UNPLACED or not self._known.places(call))
            )

        return valid

    def judge(self) -> None:
        """Mark them, now that everything has come."""
        _Judgement(self._known).all()


def _one_with(known: Known, call: NativeCall, lengths: set[int]) -> Iterator[tuple[str, str]]:
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

    def __init__(self, known: Known) -> None:
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
        near = [(place, tag) for place in self._known.near(other) for tag in self._known.tags(other)]
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

    def _named_again(self, other: NativeCall, near: list[tuple[object, _Key]]) -> list[_Bucket]:
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

    def _taken(self, other: NativeCall, near: list[tuple[object, _Key]]) -> Iterator[_Bucket]:
        """Of the calls whose names came in pieces, those of which this one's first name may be a piece.

        If that came with its own id, it is not a piece of a call that had pieces without one.
        """
        name, named = self._known.first[other.index]
        if name not in self._takers:
            self._takers[name] = self._known.names.takers(name, self._rests)
        takers = self._takers[name]
        if named:
            near = [(place, (_NAMED,) if tag == (_ANY,) else tag) for place, tag in near if tag != (_UNNAMED,)]
        keys: list[_Key] = [("pieced",)] if takers is None else [("beginning", start) for start in takers]
        yield from self._found(keys, near)

    def _found(self, keys: Iterator[_Key] | list[_Key], near: list[tuple[object, _Key]]) -> Iterator[_Bucket]:
        for key in keys:
            for place, tag in near:
                if bucket := self._buckets.get((*key, place, tag)):
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
        places: list[object] = [*self._known.places(call)]
        for place in [*(places or [_UNPLACED]), _ALL]:
            for tag in self._known.own_tags(call):
                for kind in kinds:
                    key = (*kind, place, tag)
                    if bucket := self._buckets.get(key):
                        bucket.add(call)
                    else:
                        self._buckets[key] = _Bucket(call)
