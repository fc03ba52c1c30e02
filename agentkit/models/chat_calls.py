"""Which call a piece of a chat completion belongs to. Pure.

The protocol identifies it by an index, and sends id and name once. Servers number all calls 0, omit indices, give all
calls one id, another id with each piece or none at all, repeat the name with each piece, or send it in fragments. The
content of the pieces decides: the names of the offered tools, and whether a call's arguments are already complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentkit.models.call_groups import CallGroup, Common
from agentkit.models.chat_doubts import Doubts
from agentkit.models.chat_known import Joint, KnownCalls
from agentkit.models.chat_names import CallNames
from agentkit.models.chat_rivals import Rivals
from agentkit.models.native import NativeCall
from agentkit.models.native_arguments import is_another, readable
from agentkit.unicode import clean

EMPTY: Final = "it may be the call after it, which was named again; all that came of its arguments is {}"


class WhichCall:
    """The calls of one response, identified by what their pieces name.

    Args:
        tools: the names of the tools that were offered; empty if they are unknown.
    """

    def __init__(self, tools: Iterable[str] = ()) -> None:
        self._names = CallNames(tools)
        self._known = KnownCalls(self._names)
        self._doubts = Doubts(self._known)
        self._rivals = Rivals(self._known)
        self._ids: dict[str, CallGroup] = {}
        self._waiting: list[NativeCall] = []  # calls without a place, and some that have one now
        self._waiting_with: dict[str, list[NativeCall]] = {}  # the same by their ids
        self._named: dict[str, CallGroup] = {}  # calls with ids by their names, and by those that they had before
        self._common: dict[tuple[object, ...], Common] = {}

    def add(self, call: NativeCall, index: int | None, id: str, name: str, text: str) -> None:
        """Remember what a piece of this call named, before its text is added."""
        known = self._known
        self._rivals.started(call)
        if id not in self._ids and text.strip() and call in known.all:
            for doubtful in self._rivals.unnamed(call):
                self._doubts.touch(doubtful)
        if call not in known.all:
            known.all.add(call)
            if index is None:
                known.unplaced.add(call)
                self._waiting.append(call)
            known.first[call.index] = name, bool(id) and id not in self._ids
        if index is not None:
            known.place(call, index)
        if id:
            self._identify(call, id)
        else:
            known.without_id.add(call.index)
        if call.id:
            self._named.setdefault(call.name, CallGroup()).add(call)
        self._rivals.touch(call)
        self._doubts.touch(call)

    def _identify(self, call: NativeCall, id: str) -> None:
        same = self._ids.setdefault(id, CallGroup())
        if call in same:
            self._known.ids_again = True
        else:
            same.add(call)
            if not self._known.places(call):
                self._waiting_with.setdefault(id, []).append(call)
        call.id = call.id or clean(id)

    def call(self, index: int | None, id: str, name: str, text: str) -> NativeCall | None:
        """The call that a piece continues; None if it starts one."""
        known, found = self._found(index, id, name, text)
        if found is None and known is not None and (index is None or index in self._known.placed):
            self._rivals.expect(index)
            if name == known.name and not known.id and known.values == {}:
                self._known.empty[known.index] = known
        return found

    def _found(self, index: int | None, id: str, name: str, text: str) -> tuple[NativeCall | None, NativeCall | None]:
        """The call that a piece might continue, by what it names; and the one that it does continue."""
        known = self._by_id(id, index, name) if id in self._ids else self._by_place(index, name)
        if known is None or not name:
            return known, known
        if id and known.id and clean(id) != known.id and id not in self._ids:
            return known, known if self._goes_on(known, index, name, text) else None
        if known.name and self._begins(known, name, text, id):
            return known, None
        return known, known

    def _goes_on(self, known: NativeCall, index: int | None, name: str, text: str) -> bool:
        """Whether a piece with its own id nevertheless continues a call: no new call could begin like this."""
        if not known.pieces.blank:
            return name == known.name and known.values is None and text.strip()[:1] not in ("", "{", '"')
        return index is not None and name not in self._names and self._names.fits(known.name + name)

    def _by_id(self, id: str, index: int | None, name: str) -> NativeCall | None:
        calls = self._ids[id]
        if index is None:
            return calls.calls[-1]
        if here := self._known.placed.get(index):
            key = ("id", id, index)
            if key not in self._common:
                self._common[key] = Common(calls, here, lambda call: -calls.ranks[call.index])
            if found := self._common[key].first(lambda _: True):
                return found
        if waiting := self._last_waiting(self._waiting_with.get(id, [])):
            return waiting
        return None if name else calls.calls[-1]  # one id for several calls, which have their own indices

    def _last_waiting(self, calls: list[NativeCall]) -> NativeCall | None:
        while calls and self._known.places(calls[-1]):
            calls.pop()
        return calls[-1] if calls else None

    def _by_place(self, index: int | None, name: str) -> NativeCall | None:
        if index is None:
            return self._repeated(self._known.all, index, name)
        if index in self._known.placed:
            return self._repeated(self._known.placed[index], index, name)
        waiting = self._last_waiting(self._waiting)
        return waiting if waiting and (not name or (name == waiting.name and not waiting.pieces)) else None

    def _repeated(self, here: CallGroup, index: int | None, name: str) -> NativeCall | None:
        """The last of these calls; or if that is complete and ids tell them apart, the last one with this name."""
        last = here.calls[-1] if here else None
        if last is None or last.name == name or not last.id or name not in self._named:
            return last
        key = ("name", name, index)
        if key not in self._common:
            self._common[key] = Common(self._named[name], here, lambda call: -here.ranks[call.index])
        found = self._common[key].first(lambda call: call.name == name)
        return found if found and last.values is not None else last

    def _begins(self, known: NativeCall, name: str, text: str, id: str) -> bool:
        """Whether a piece that names a tool starts another call although there is one that it might continue."""
        if name == known.name:
            values = known.values
            if values is None:
                return False
            begins = text.lstrip()[:1] in ("{", '"') and (
                not known.id or (bool(id) and is_another(values, text))  # where calls have ids, another has its own
            )
            if not begins:
                joint = Joint(known, len(known.pieces), "" if not known.id else "id" if id else "name")
                self._known.joints.setdefault(known.index, joint)
            return begins
        fragment = self._names.fits(known.name + name)
        if not known.pieces.blank:
            return name in self._names or not fragment
        return name in self._names and not fragment and not name.startswith(known.name)

    def name(self, call: NativeCall, name: str) -> str:
        """The name of a call after one more fragment."""
        return self._names.more(call, name)

    def is_alone(self, call: NativeCall, index: int | None, id: str) -> bool:
        """Whether a piece's id names this call and no other one; or its index, at a server that gives each its own."""
        if id and len(self._ids[id]) == 1:
            return call in self._ids[id]
        known = self._known
        here = known.placed.get(index) if index is not None else None
        return here is not None and len(here) == 1 and call in here and len(known.placed) == len(known.all)

    # ------------------------------------------------------------ what is ambiguous

    def unsure(self, call: NativeCall) -> bool:
        """Whether only the response's end shows what belongs to this call, the last one when another starts."""
        if (
            call.index in self._known.joints
            or call.index in self._known.empty
            or self._names.pieced(call)
            or self._rivals.has(call)
        ):
            return True
        return self._doubts.may_contain_another(call)

    def judge(self) -> None:
        """Mark the calls with ambiguous pieces, now that everything has come."""
        self._rivals.judge()
        self._doubts.judge()
        for call in self._known.empty.values():
            call.doubt = call.doubt or EMPTY
        for joint in self._known.joints.values():
            call = joint.call
            twice = call.name * 2 in self._names and bool(call.text[joint.at :].strip())
            if twice or _is_torn(joint):
                call.doubt = call.doubt or "it was named again once it was complete, with other arguments after it"


def _is_torn(joint: Joint) -> bool:
    """Whether what came since a call was named again is more than a repetition, or than what may follow `{}`."""
    text, rest = joint.call.text, joint.call.text[joint.at :].strip()
    before = readable(text[: joint.at])
    return bool(rest) and not (joint.how and before == readable(rest)) and not (joint.how == "name" and before == {})
