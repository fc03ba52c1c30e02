"""Which item of a response an event of the Responses API is about. Pure.

An event names it by a place in the output, which some servers use for several items; by an id, which some change from
event to event; and a call by its own id as well. Each is looked up, as there may be thousands of items.

A piece of a call under an unknown id may be another call's, and is kept apart until the end, which shows whose it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Final, Literal

from agentkit.formats.pieces import Pieces
from agentkit.models.native import NativeCall
from agentkit.unicode import Joiner


class ItemText:
    """The text of an item, which comes in pieces.

    Attributes:
        parts: the text of each part of a message.
    """

    def __init__(self) -> None:
        self.parts: dict[int, Pieces] = {}
        self._pieces = Pieces()
        self._joiner = Joiner()

    def __str__(self) -> str:
        return self._pieces.text()

    def __len__(self) -> int:
        return len(self._pieces)

    def ends(self, text: str) -> bool:
        """Whether what has come ends like this."""
        return self._pieces.last(len(text)) == text

    def keep(self, piece: str) -> None:
        """Add a piece, without emitting it."""
        self._pieces.add(piece)

    def say(self, piece: str) -> str:
        """Add a piece; returns what can be emitted now."""
        self._pieces.add(piece)
        return self._joiner.feed(piece)

    def close(self) -> str:
        """What could not be emitted yet."""
        return self._joiner.close()


@dataclass(slots=True, eq=False)
class OutputItem:
    """An output item that is being received.

    Attributes:
        number: how many items started before it.
        kind: `call`, `message`, `reasoning`, or the item's own type.
        at: its place in the output.
        said: the text of its deltas; for a call that has not started, the beginning of its arguments.
        told: the complete arguments, if the wire sent them other than in deltas.
        ends: whether it sent them like this, even if there are none.
        thoughts: the type of the events from which its thinking is taken; empty before the first one.
        first: the item as it was added; empty if it was not.
        ended: whether its end has come.
    """

    number: int
    kind: str
    at: int
    id: str
    call_id: str = ""
    call: NativeCall | None = None
    said: ItemText = field(default_factory=ItemText)
    told: str = ""
    ends: bool = False
    thoughts: str = ""
    first: Mapping[str, Any] = field(default_factory=dict)
    ended: bool = False


_ANY: Final = None

Stage = Literal["part", "start", "end", "response"]
"""What an event has of an item: a part; the item as it starts or ends; the item in the response as a whole."""

_Key = tuple[Any, ...]
_Place = tuple[str, int]


class OutputItems:
    """The items of one response, in the order of their starts."""

    def __init__(self) -> None:
        self.all: list[OutputItem] = []
        self._by: dict[_Key, list[tuple[int, OutputItem]]] = {}  # by what names them: heaps, the last item first
        self._again: set[int] = set()  # the numbers of those whose ids came more than once, and so do not change
        self._count: Counter[_Place] = Counter()  # items by kind and place
        self._open: Counter[_Place] = Counter()  # those of them that have not ended
        self._twins: dict[tuple[str, int], list[OutputItem]] = {}  # calls by the ids of their items and their places
        self._unstarted: dict[tuple[str, int], list[OutputItem]] = {}  # those without a start, and some with one

    def item(
        self, kind: str, at: int, id: str, call_id: str = "", *, stage: Stage = "part", said: str = ""
    ) -> OutputItem:
        """The item that an event is about; a new one if it is unknown.

        Args:
            kind: of the item.
            at: its place in the output, which some servers use for several items.
            id: its id, which some servers change from event to event.
            call_id: of a call.
            stage: what the event has of the item.
            said: the text of the whole item.
        """
        whole = stage != "part"
        found = self._named(kind, at, id, call_id)
        if found is not None and id and found.id == id:
            self._again.add(found.number)
        found = found or self._here(kind, at, "" if id else _ANY, call_id, whole)
        if found is None and kind != "call":
            # a call's piece under another id may be another call's: losing it costs an error, using it a wrong call
            found = self._changed(kind, at, stage, said)
        if found is None:
            item = OutputItem(len(self.all), kind, at, id, call_id)
            self.all.append(item)
            self._count[kind, at] += 1
            self._open[kind, at] += 1
            self._sort_in(item, set())
            return item
        if (id and not found.id) or (call_id and not found.call_id):
            known = set(_keys(found))
            found.id, found.call_id = found.id or id, found.call_id or call_id
            self._sort_in(found, known)
        return found

    def end(self, item: OutputItem) -> None:
        """An item has ended."""
        item.ended = True
        self._open[item.kind, item.at] -= 1

    def strewn(self) -> Iterator[tuple[OutputItem, NativeCall, list[OutputItem]]]:
        """The calls at whose places pieces came under ids that name none, each with these pieces in order."""
        owner: dict[int, tuple[OutputItem, NativeCall]] = {}
        pieces: dict[int, list[OutputItem]] = {}
        for item in self.all:
            if item.kind != "call":
                continue
            if item.call is None:
                pieces.setdefault(item.at, []).append(item)
                continue
            if item.at in owner and (before := pieces.pop(item.at, [])):
                yield *owner[item.at], before
            owner[item.at] = item, item.call  # what came before the first one is its own
        for at, last in pieces.items():
            if at in owner:
                yield *owner[at], last

    def is_twin(self, item: OutputItem) -> bool:
        """Whether another call came under a call's item id and at its place, unless each of them had its own start."""
        if not item.id:
            return False
        if not item.first:
            return len(self._twins[item.id, item.at]) > 1
        unstarted = self._unstarted[item.id, item.at]
        while unstarted and unstarted[-1].first:
            unstarted.pop()
        return bool(unstarted)

    def _sort_in(self, item: OutputItem, known: set[_Key]) -> None:
        for key in _keys(item):
            if key not in known:
                heappush(self._by.setdefault(key, []), (-item.number, item))
        if item.id and item.kind == "call" and ("id", "call", item.id, _ANY) not in known:
            self._twins.setdefault((item.id, item.at), []).append(item)
            self._unstarted.setdefault((item.id, item.at), []).append(item)

    def _named(self, kind: str, at: int, id: str, call_id: str) -> OutputItem | None:
        """The item by what names it best: its id and its place, the call's own id, its id."""
        calls = (call_id, "") if call_id else (_ANY,)
        keys: list[list[_Key]] = [[("call", kind, call_id)]] if call_id else []
        if id:
            keys = [[("both", kind, at, id, c) for c in calls], *keys, [("id", kind, id, c) for c in calls]]
        return next((found for one in keys if (found := self._last(one))), None)

    def _here(self, kind: str, at: int, id: str | None, call_id: str, whole: bool) -> OutputItem | None:
        calls = (call_id, "") if call_id else (_ANY,)
        return self._last([("place" if whole else "open", kind, at, id, c) for c in calls])

    def _changed(self, kind: str, at: int, stage: Stage, said: str) -> OutputItem | None:
        """The only item at a place, under another id."""
        whole = stage != "part"
        if (self._count if whole else self._open)[kind, at] != 1:
            return None
        item = self._here(kind, at, _ANY, "", whole)
        changes = item is not None and item.number not in self._again
        return item if item is None or not whole or _may_be(item, stage, said, changes=changes) else None

    def _last(self, keys: list[_Key]) -> OutputItem | None:
        """The last item that one of these keys names."""
        found: OutputItem | None = None
        for key in keys:
            heap = self._by.get(key, [])
            while heap and not _has(heap[0][1], key):
                heappop(heap)  # it has been named further, or has ended
            if heap and (found is None or heap[0][1].number > found.number):
                found = heap[0][1]
        return found


def _may_be(item: OutputItem, stage: Stage, said: str, *, changes: bool) -> bool:
    """Whether a whole item is the only one that is known at its place, whose id is another and may change."""
    if said and len(item.said) == len(said) and str(item.said) == said:
        return True
    if not changes or stage == "start":
        return False
    return said.startswith(str(item.said)) and (stage == "response" or not item.ended)


def _keys(item: OutputItem) -> list[_Key]:
    """All that may name an item."""
    kind, at = item.kind, item.at
    calls = (item.call_id, _ANY)
    keys: list[_Key] = [(w, kind, at, id, c) for w in ("place", "open") for id in (item.id, _ANY) for c in calls]
    if item.id:
        keys += [key for c in calls for key in (("both", kind, at, item.id, c), ("id", kind, item.id, c))]
    return [*keys, ("call", kind, item.call_id)] if item.call_id else keys


def _has(item: OutputItem, key: _Key) -> bool:
    """Whether a key that named an item still does."""
    if key[0] == "call":
        return True
    if key[0] in ("place", "open") and key[3] not in (item.id, _ANY):
        return False
    return key[-1] in (item.call_id, _ANY) and not (key[0] == "open" and item.ended)
