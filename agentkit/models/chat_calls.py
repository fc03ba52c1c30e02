"""Which call a piece of a chat completion belongs to. Pure.

The protocol identifies it by an index, and sends id and name once. Servers number all calls 0, omit indices, give all
calls one id, another id with each piece or none at all, repeat the name with each piece, or send it in fragments. The
content of the pieces decides: the names of the offered tools, and whether a call's arguments are already complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agentkit.models.native import NativeCall
from agentkit.models.native_arguments import ArgumentsError, read_arguments
from agentkit.unicode import clean


class ToolNames:
    """The names of one response's calls, which may come complete, repeated, or in pieces.

    Args:
        tools: the names of the tools that were offered; empty if they are unknown.
    """

    def __init__(self, tools: Iterable[str] = ()) -> None:
        self._tools = frozenset(tools)
        self._pieced: dict[int, list[str]] = {}  # of calls whose names came in pieces: the name before each further one
        self._ways: dict[int, set[str]] = {}  # how these pieces were put together

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def fits(self, name: str) -> bool:
        """Whether the name of an offered tool begins like this."""
        return any(tool.startswith(name) for tool in self._tools)

    def pieced(self, call: NativeCall) -> bool:
        """Whether the call's name came in pieces."""
        return call.index in self._pieced

    def more(self, call: NativeCall, name: str) -> str:
        """The name of a call after one more fragment; some servers repeat the fragment, or all of the name so far."""
        joined = call.name + name
        again = name if name.startswith(call.name) and (name in self._tools or joined not in self._tools) else joined
        if call.name and (name != call.name or joined in self._tools):
            self._pieced.setdefault(call.index, []).append(call.name)
            self._ways.setdefault(call.index, set()).add("joined" if again == joined else "grown")
        if again != joined and joined in self._tools and not call.text.strip():
            call.doubt = f"its name came in pieces, which may mean {again!r} or {joined!r}"
        elif call.name and again != call.name and call.values is not None:
            call.doubt = f"another name came after its arguments: {call.name!r} or {again!r}"
        return again

    def torn(self, call: NativeCall) -> bool:
        """Whether no tool has this name, and it is incomplete or consists of pieces that do not fit each other."""
        if call.name in self._tools:
            return call.index in self._pieced and (bool(call.doubt) or len(self._ways[call.index]) > 1)
        return call.index in self._pieced or (not call.text.strip() and self.fits(call.name))

    def may_take(self, call: NativeCall, name: str, calls: Iterable[NativeCall]) -> bool:
        """Whether a name that starts another call may be a piece of this one's name, which also came in pieces.

        Args:
            call: the first one.
            name: the name.
            calls: all calls of the response.
        """
        if not self.fits(name) and any(name in tool for tool in self._tools):
            return call.index in self._pieced
        rests = {c.name[len(before) :] for c in calls for before in self._pieced.get(c.index, ())}
        begun = [before + name for before in self._pieced.get(call.index, ())]
        return any(one in self._tools or any(self.fits(one + rest) for rest in rests) for one in begun)


class WhichCall:
    """The calls of one response, identified by what their pieces name.

    Args:
        tools: the names of the tools that were offered; empty if they are unknown.
    """

    def __init__(self, tools: Iterable[str] = ()) -> None:
        self._names = ToolNames(tools)
        self._all: list[NativeCall] = []
        self._placed: dict[int, list[NativeCall]] = {}
        self._ids: dict[str, list[NativeCall]] = {}
        self._unplaced: list[NativeCall] = []
        self._unfinished: list[NativeCall] = []  # incomplete calls in whose place another one starts with this piece
        self._rivals: list[tuple[NativeCall, NativeCall]] = []  # an incomplete call, and one that started in its place
        self._joints: dict[int, tuple[NativeCall, int, str]] = {}  # where a call was named again when complete, and how
        self._first: dict[int, tuple[str, bool]] = {}  # how each call started: its name; whether under its own id
        self._ids_again = False  # whether an id was repeated: then ids tell calls apart
        self._without_id: set[int] = set()  # calls that had a piece without an id

    def add(self, call: NativeCall, index: int | None, id: str, name: str, text: str) -> None:
        """Remember what a piece of this call named, before its text is added."""
        self._rivals += [(first, call) for first in self._unfinished]
        self._unfinished = []
        if id not in self._ids and text.strip() and call.index < len(self._all):
            self._doubt_unnamed(call)
        if call.index == len(self._all):
            self._all.append(call)
            self._unplaced += [call] if index is None else []
            self._first[call.index] = name, bool(id) and id not in self._ids
        if index is not None:
            if call in self._unplaced:
                self._unplaced.remove(call)
            self._remember(self._placed.setdefault(index, []), call)
        if id:
            self._ids_again = self._ids_again or call in self._ids.get(id, ())
            self._remember(self._ids.setdefault(id, []), call)
            call.id = call.id or clean(id)
        else:
            self._without_id.add(call.index)

    @staticmethod
    def _remember(calls: list[NativeCall], call: NativeCall) -> None:
        if call not in calls:
            calls.append(call)

    def call(self, index: int | None, id: str, name: str, text: str) -> NativeCall | None:
        """The call that a piece continues; None if it starts one."""
        known, found = self._found(index, id, name, text)
        if found is None and known is not None:
            here = self._all if index is None else self._placed.get(index, ())
            self._unfinished = [c for c in here if not c.ended and c.values is None]
        return found

    def _found(self, index: int | None, id: str, name: str, text: str) -> tuple[NativeCall | None, NativeCall | None]:
        """The call that a piece might continue, by what it names; and the one that it does continue."""
        known = self._by_id(self._ids[id], index, name) if id in self._ids else self._by_place(index, name)
        if known is None or not name:
            return known, known
        if id and known.id and clean(id) != known.id and id not in self._ids:
            return known, known if self._goes_on(known, index, name, text) else None
        if known.name and self._begins(known, name, text, id):
            return known, None
        return known, known

    def _goes_on(self, known: NativeCall, index: int | None, name: str, text: str) -> bool:
        """Whether a piece with its own id nevertheless continues a call: no new call could begin like this."""
        if known.text.strip():
            return name == known.name and known.values is None and text.strip()[:1] not in ("", "{", '"')
        return index is not None and name not in self._names and self._names.fits(known.name + name)

    def _by_id(self, calls: list[NativeCall], index: int | None, name: str) -> NativeCall | None:
        if index is None:
            return calls[-1]
        here = [c for c in calls if c in self._placed.get(index, ())] or [c for c in calls if c in self._unplaced]
        if here:
            return here[-1]
        return None if name else calls[-1]  # one id for several calls, which have their own indices

    def _by_place(self, index: int | None, name: str) -> NativeCall | None:
        if index is None:
            return self._repeated(self._all, name)
        if index in self._placed:
            return self._repeated(self._placed[index], name)
        waiting = self._unplaced[-1] if self._unplaced else None
        return waiting if waiting and (not name or (name == waiting.name and not waiting.text)) else None

    @staticmethod
    def _repeated(here: list[NativeCall], name: str) -> NativeCall | None:
        """The last of these calls; or if that is complete and ids tell them apart, the last one with this name."""
        if not here or here[-1].name == name or not here[-1].id or here[-1].values is None:
            return here[-1] if here else None
        return next((call for call in reversed(here) if call.id and call.name == name), here[-1])

    def _begins(self, known: NativeCall, name: str, text: str, id: str) -> bool:
        """Whether a piece that names a tool starts another call although there is one that it might continue."""
        if name == known.name:
            values = known.values
            if values is None:
                return False
            begins = text.lstrip()[:1] in ("{", '"') and (
                not known.id or (bool(id) and _contradicts(values, text))  # where calls have ids, another has its own
            )
            if not begins:
                how = "" if not known.id else "id" if id else "name"
                self._joints.setdefault(known.index, (known, len(known.text), how))
            return begins
        fragment = self._names.fits(known.name + name)
        if known.text.strip():
            return name in self._names or not fragment
        return name in self._names and not fragment and not name.startswith(known.name)

    def name(self, call: NativeCall, name: str) -> str:
        """The name of a call after one more fragment."""
        return self._names.more(call, name)

    # ------------------------------------------------------------ what is ambiguous

    def _doubt_unnamed(self, call: NativeCall) -> None:
        """Arguments came that name no call, after two had started and the first was incomplete."""
        for first, second in self._rivals:
            if call in (first, second) and first.values is None:
                first.doubt = second.doubt = MIXED

    def unsure(self, call: NativeCall) -> bool:
        """Whether only the response's end shows what belongs to this call, the last one when another starts."""
        if call.index in self._joints or self._names.pieced(call) or any(call in pair for pair in self._rivals):
            return True
        return any(
            self._may_be_one(first, call) or self._may_be_again(first, call) or self._names.torn(first)
            for first in self._all[: call.index]
        )

    def judge(self) -> None:
        """Mark the calls with ambiguous pieces, now that everything has come."""
        for first, second in self._rivals:
            if first.values is None:
                first.doubt = first.doubt or MIXED
                second.doubt = second.doubt or (MIXED if first.text.strip() else "")
        for other in self._all:
            for first in self._all[: other.index]:
                self._judge_both(first, other)
        for call, at, how in self._joints.values():
            twice = call.name * 2 in self._names and bool(call.text[at:].strip())
            if twice or self._is_torn(call.text, at, how):
                call.doubt = call.doubt or "it was named again once it was complete, with other arguments after it"

    def _judge_both(self, first: NativeCall, other: NativeCall) -> None:
        """Mark two calls if they may contain pieces of each other."""
        torn = self._names.torn(first) or self._names.torn(other)
        name, named = self._first[other.index]
        taken = self._may_take(first, name, named=named)
        if self._may_be_one(first, other) or ((torn or taken) and not self._apart(first, other)):
            first.doubt = other.doubt = MIXED
        elif self._may_be_again(first, other):
            for call in (first, other):
                call.doubt = call.doubt or (AGAIN if not call.text.strip() else "")

    def _may_be_again(self, first: NativeCall, other: NativeCall) -> bool:
        """Whether one of two calls may be only a repetition of the other's name, under an id that changes."""
        bare = not (first.text.strip() and other.text.strip())
        return bare and first.name == other.name and not self._apart(first, other)

    def _may_take(self, call: NativeCall, name: str, *, named: bool) -> bool:
        """Whether a name that starts another call may be a piece of this one's name, which also came in pieces.

        Args:
            call: the first one.
            name: the name.
            named: whether it came with its own id; then it is not a piece if pieces come without one.
        """
        return not (named and call.index in self._without_id) and self._names.may_take(call, name, self._all)

    def _may_be_one(self, first: NativeCall, other: NativeCall) -> bool:
        """Whether two names may be pieces of one: the first has no arguments, or was named again when complete."""
        bare = not first.text.strip()
        if not bare and not (first.index in self._joints and other.name in self._names):
            return False
        grows = bare and other.name.startswith(first.name) and other.name != first.name
        return (grows or self._names.fits(first.name + other.name)) and not self._apart(first, other)

    def _apart(self, one: NativeCall, other: NativeCall) -> bool:
        """Whether two calls have separate places, or are told apart by their ids in each piece."""
        named = self._without_id.isdisjoint((one.index, other.index)) and self._ids_again
        if named and one.id != other.id:
            return True
        places = [{at for at, calls in self._placed.items() if call in calls} for call in (one, other)]
        return all(places) and places[0].isdisjoint(places[1])

    @staticmethod
    def _is_torn(text: str, at: int, how: str) -> bool:
        """Whether what came since a call was named again is more than a repetition, or than what may follow `{}`."""
        rest = text[at:].strip()
        before = _read(text[:at])
        return bool(rest) and not (how and before == _read(rest)) and not (how == "name" and before == {})


MIXED: Final = "another call started in its place before it was complete; their pieces cannot be told apart"


AGAIN: Final = "it may be the call next to it, named again under another id; none of its arguments came"


def _read(text: str) -> Mapping[str, Any] | None:
    try:
        return read_arguments(text).values
    except ArgumentsError:
        return None


def _contradicts(values: Mapping[str, Any], text: str) -> bool:
    """Whether complete arguments do not repeat those that had come, with or without more."""
    try:
        others = read_arguments(text).values
    except ArgumentsError:
        return False
    return any(key not in others or others[key] != value for key, value in values.items())
