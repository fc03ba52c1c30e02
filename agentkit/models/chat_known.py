"""What the pieces of a chat completion have named so far: its calls, their places and their ids. Pure."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from agentkit.models.call_groups import CallGroup
from agentkit.models.chat_names import CallNames
from agentkit.models.native import NativeCall

Place = int | Literal["all", "unplaced"]
"""Where calls are: at an index; wherever that is; or without one since they began."""

ALL: Final = "all"
UNPLACED: Final = "unplaced"

IdKey = tuple[str, ...]
"""Calls by their ids: all; those that had a piece without one; all others, also only those with a certain id."""

ANY_ID: Final[IdKey] = ("any",)
WITHOUT_ID: Final[IdKey] = ("without",)
WITH_ID: Final[IdKey] = ("with",)


class Joint(NamedTuple):
    """Where a call was named again once its arguments were complete.

    Attributes:
        call: the call.
        at: how many characters of its arguments had come.
        how: `id` if it was named by name and id, `name` if by its name alone; empty if it has no id.
    """

    call: NativeCall
    at: int
    how: Literal["", "id", "name"]


class KnownCalls:
    """The calls of one response that have started.

    Attributes:
        names: their names.
        all: the calls.
        placed: the calls at each place.
        unplaced: calls that began without a place.
        joints: by the calls' indexes.
        empty: by their indexes, the calls without an id of which only `{}` had come when a piece named them again.
        first: how each call started, by its index: its name; whether under its own id.
        ids_again: whether an id was repeated: then ids tell calls apart.
        without_id: the indexes of calls that had a piece without an id.
    """

    def __init__(self, names: CallNames) -> None:
        self.names = names
        self.all = CallGroup()
        self.placed: dict[int, CallGroup] = {}
        self.unplaced = CallGroup()
        self.joints: dict[int, Joint] = {}
        self.empty: dict[int, NativeCall] = {}
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

    def group(self, place: Place) -> CallGroup:
        """The calls at a place, of those that began without one, or all."""
        if isinstance(place, int):
            return self.placed[place]
        return self.all if place == ALL else self.unplaced

    def near(self, call: NativeCall) -> list[Place]:
        """Where the calls are that have no separate place."""
        return [*self.places(call), UNPLACED] if self.places(call) else [ALL]

    def alike(self, call: NativeCall) -> list[IdKey]:
        """The calls that are not told apart from this one by their ids in each piece."""
        if self.ids_again and call.index not in self.without_id:
            return [WITHOUT_ID, (*WITH_ID, call.id)]
        return [ANY_ID]

    def keys(self, call: NativeCall) -> list[IdKey]:
        """Among which of these the call itself is found."""
        return [ANY_ID, *([WITHOUT_ID] if call.index in self.without_id else [WITH_ID, (*WITH_ID, call.id)])]
