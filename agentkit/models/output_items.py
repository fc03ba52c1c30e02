"""Which item of a response an event of the Responses API is about. Pure.

Its place in the output decides, or its id if it has no place: GitHub Copilot changes the id with every event (Source:
openclaw#108630, vercel/ai#18548), LiteLLM gives one place to items of several kinds (Source: litellm#36375). In the
response as a whole, where both may differ from those that were streamed, it is the order of the items of one kind.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentkit.checks.unicode import Joiner
from agentkit.formats.pieces import Pieces
from agentkit.models.native import NativeCall

Stage = Literal["part", "start", "end", "response"]
"""The part of an item in an event: a piece; the item as it starts or ends; the item in the response as a whole."""


@dataclass(slots=True, eq=False)
class OutputItem:
    """An output item that is being received.

    Attributes:
        kind: `call`, `message`, `reasoning`, or the item's own type.
        call: of an item that is a call.
        text: the text so far of any other item.
        part: the text of the last part of a message.
        joiner: holds half a character until the other half comes.
        thoughts: the type of the events from which its thinking is taken; empty before the first one.
        first: the item as it was added; empty if it was not.
        ended: whether its end has come.
    """

    kind: str
    call_id: str = ""
    call: NativeCall | None = None
    text: Pieces = field(default_factory=Pieces)
    part: Pieces = field(default_factory=Pieces)
    joiner: Joiner = field(default_factory=Joiner)
    thoughts: str = ""
    first: Mapping[str, Any] = field(default_factory=dict)
    ended: bool = False

    def say(self, piece: str) -> str:
        """Add a piece of its text; returns the text that can be emitted now."""
        self.text.add(piece)
        self.part.add(piece)
        return self.joiner.feed(piece)


class OutputItems:
    """The items of one response, in the order of their starts.

    Attributes:
        in_whole: the ids of the calls in the response as a whole, once that came.
    """

    def __init__(self) -> None:
        self.all: list[OutputItem] = []
        self.in_whole: set[str] = set()
        self._of_kind: defaultdict[str, list[OutputItem]] = defaultdict(list)
        self._last: dict[tuple[str, int | str], OutputItem] = {}  # the key is its kind, and its place or its id
        self._calls: dict[str, OutputItem] = {}
        self._matched: set[OutputItem] = set()  # those that the response as a whole had so far
        self._counts: Counter[str] = Counter()  # items of each kind that the response as a whole had so far

    def item(self, kind: str, at: int | None, id: str, call_id: str = "", stage: Stage = "part") -> OutputItem:
        """Return the item of this kind that an event is about, at this place if it has one; a new one if unknown."""
        whole = stage == "response"
        found = self._calls.get(call_id) if call_id else None
        here = self._last.get((kind, at)) if at is not None else found
        if found is not None and (found in self._matched if whole else here is not found):
            found = None  # another call, with the same id: each has its place
        if found is None:
            found = self._in_order(kind, at) if whole else self._here(kind, id if at is None else at, stage)
        self._counts[kind] += whole
        other = found is not None and call_id and found.call_id not in ("", call_id)
        if found is None or (other and (found.call_id in self.in_whole if whole else at is None)):
            found = OutputItem(kind)
            self.all.append(found)
            self._of_kind[kind].append(found)
            self._last[kind, id] = found
            if at is not None:
                self._last[kind, at] = found
        if call_id and not found.call_id:
            found.call_id = call_id
            self._calls[call_id] = found
        self._matched |= {found} if whole else set()
        return found

    def _here(self, kind: str, place: int | str, stage: Stage) -> OutputItem | None:
        """Return the last item at this place or with this id, unless another begins."""
        last = self._last.get((kind, place))
        if last is None and isinstance(place, str):
            last = next(reversed(self._of_kind[kind]), None)
        another = last is not None and ((stage == "start" and last.first) or (stage == "end" and last.ended))
        return None if another else last

    def _in_order(self, kind: str, at: int | None) -> OutputItem | None:
        """Return the item at this place, else the one with this number among those of its kind."""
        number, known = self._counts[kind], self._of_kind[kind]
        here = self._last.get((kind, at)) if at is not None else None
        return here or (known[number] if number < len(known) else None)
