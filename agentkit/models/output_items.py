"""Which item of a response an event of the Responses API is about. Pure.

Its place in the output decides, then the item's id: GitHub Copilot changes the id with every event (Source:
openclaw#108630, vercel/ai#18548), LiteLLM gives one place to items of several kinds (Source: litellm#36375). In the
response as a whole, where both may differ from those that were streamed, it is the order of the items of one kind.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentkit.formats.pieces import Pieces
from agentkit.models.native import NativeCall
from agentkit.unicode import Joiner

Stage = Literal["part", "start", "end", "response"]
"""The part of an item in an event: a piece; the item as it starts or ends; the item in the response as a whole."""


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
        """Return whether what has come ends like this."""
        return self._pieces.last(len(text)) == text

    def keep(self, piece: str) -> None:
        """Add a piece, without emitting it."""
        self._pieces.add(piece)

    def say(self, piece: str) -> str:
        """Add a piece; returns what can be emitted now."""
        self._pieces.add(piece)
        return self._joiner.feed(piece)

    def close(self) -> str:
        """Return the text that could not be emitted yet."""
        return self._joiner.close()


@dataclass(slots=True, eq=False)
class OutputItem:
    """An output item that is being received.

    Attributes:
        kind: `call`, `message`, `reasoning`, or the item's own type.
        at: its place in the output, if an event had it.
        said: the text of its deltas; for a call that has not started, the beginning of its arguments.
        told: the complete arguments, if the wire sent them other than in deltas.
        ends: whether it sent them like this, even if there are none.
        thoughts: the type of the events from which its thinking is taken; empty before the first one.
        first: the item as it was added; empty if it was not.
        ended: whether its end has come.
        rival: an item that was open at its place, under another call id: it may be one call or two.
    """

    kind: str
    at: int | None
    id: str
    call_id: str = ""
    call: NativeCall | None = None
    said: ItemText = field(default_factory=ItemText)
    told: str = ""
    ends: bool = False
    thoughts: str = ""
    first: Mapping[str, Any] = field(default_factory=dict)
    ended: bool = False
    rival: OutputItem | None = None


class OutputItems:
    """The items of one response, in the order of their starts.

    Attributes:
        in_whole: the ids of the calls in the response as a whole, once that came.
    """

    def __init__(self) -> None:
        self.all: list[OutputItem] = []
        self.in_whole: set[str] = set()
        self._of_kind: defaultdict[str, list[OutputItem]] = defaultdict(list)
        self._last: dict[tuple[str, int | None], OutputItem] = {}  # by kind and place
        self._ids: dict[tuple[str, str], OutputItem] = {}
        self._calls: dict[str, OutputItem] = {}
        self._counts: Counter[str] = Counter()  # items of each kind that the response as a whole had so far

    def item(self, kind: str, at: int | None, id: str, call_id: str = "", stage: Stage = "part") -> OutputItem:
        """Return the item that an event is about; a new one if it is unknown.

        Args:
            kind: of the item.
            at: its place in the output, if the event has it.
            id: its id.
            call_id: of a call.
            stage: what the event has of the item.
        """
        whole = stage == "response"
        found = self._calls.get(call_id) if call_id else None
        if found is None:
            found = self._in_order(kind, at, id) if whole else self._here(kind, at, id, stage)
        self._counts[kind] += whole
        if found is None or self._is_another(found, call_id, whole=whole):
            rival = None if found is None or found.ended or found.call_id in self.in_whole else found
            found = OutputItem(kind, at, id, rival=rival if stage != "start" else None)
            self.all.append(found)
            self._of_kind[kind].append(found)
            self._last[kind, at] = self._ids[kind, id] = found
        self._ids.setdefault((kind, id), found)
        if call_id and not found.call_id:
            found.call_id = call_id
            self._calls[call_id] = found
        return found

    def _is_another(self, found: OutputItem, call_id: str, *, whole: bool) -> bool:
        """Return whether this call id is of another call than the one found; the id of a call that ended may change."""
        if not (call_id and found.call_id) or call_id == found.call_id:
            return False
        return not (whole and found.ended and found.call_id not in self.in_whole)

    def _here(self, kind: str, at: int | None, id: str, stage: Stage) -> OutputItem | None:
        """Return the item of an id at this place, else the last one there, unless another begins."""
        named = self._ids.get((kind, id)) if id else None
        if named is not None and at in (None, named.at):
            return named
        last = self._last.get((kind, at)) if at is not None else next(reversed(self._of_kind[kind]), None)
        another = last is not None and ((stage == "start" and last.first) or (stage == "end" and last.ended))
        return None if another else last

    def _in_order(self, kind: str, at: int | None, id: str) -> OutputItem | None:
        """Return the item at this place, else that of the id, else the one with this number among those of its kind."""
        number, known = self._counts[kind], self._of_kind[kind]
        named = self._last.get((kind, at)) or (self._ids.get((kind, id)) if id else None)
        return named or (known[number] if number < len(known) else None)
