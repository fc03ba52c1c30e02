"""The response that a run is writing to its thread: which of it is in the store, and how the rest gets there. Pure.

A response and its calls are one entry. A call that is about to start is in the store before its tool starts; a call
that waits for a person, before anyone can decide about it. The answer to a call that is not in the store yet waits
until its response is written. An answer that someone else has written in the meantime stays.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentkit.agent.decisions import add_edit_note
from agentkit.agent.journal import Response
from agentkit.events import ApprovalRequired, ToolEvent, ToolSkipped, ToolStarted
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.threads.conversation import answer_of, is_denied
from agentkit.threads.entries import (
    SECONDS,
    PartialBody,
    before_guards,
    guarded_call,
    mark_idempotent,
    planned_call,
    waits_for,
)
from agentkit.threads.resume import may_continue, may_have_run, not_again, open_note, waits_inside
from agentkit.threads.store import Append, Body, Call, CallStatus, Change, EntryKind, Move, NewCall, Revise
from agentkit.tool.codec import call_from_json, to_json
from agentkit.tool.result import ToolContext

if TYPE_CHECKING:
    from agentkit.tool.bound_tool import BoundTool
    from agentkit.tool.registry import ToolRegistry

UNANSWERED: Final[tuple[CallStatus, ...]] = ("planned", "waiting", "approved", "started")
_STARTS: Final[tuple[CallStatus, ...]] = ("planned", "approved", "started")
_STARTS_INSIDE: Final[tuple[CallStatus, ...]] = (*_STARTS, "waiting")
_NEWEST: Final = -1  # a placeholder for the `seq` of an entry until it is written


class _Attempt(NamedTuple):
    """An attempt at a call: its idempotency key, its number, whether it has started, and the call as it is stored."""

    key: str
    number: int
    started: bool = False
    body: Body = MappingProxyType({})


class OpenResponse:
    """The current response, and its calls."""

    def __init__(self) -> None:
        self.complete = False
        """Whether it is completely in the store, including all answers."""
        self._written: dict[str, int] = {}  # the ordinals of its calls that are in the store
        self._open: dict[str, tuple[int, int]] = {}  # calls in the store without an answer; _NEWEST for a new entry
        self._held: dict[str, ToolMessage] = {}  # answers of calls not written yet
        self._waits: dict[str, tuple[int, int]] = {}  # calls that wait for a person; not in `_open` if they wait inside
        self.given: dict[str, ToolMessage] = {}
        """The answers that someone else has written in the meantime, by the ids of their calls."""
        self.stays: set[str] = set()
        """The calls that a cancelled run leaves as they are: a person has decided, or decides on calls inside."""
        self.inside: set[str] = set()
        """The calls whose sub-agents have calls without an answer: a run that is cancelled does not answer them."""
        self._attempts: dict[str, _Attempt] = {}  # of open calls
        self._partial = PartialBody()
        self._reopened: dict[str, Call] = {}  # those of an earlier response, as they were
        self.tools: ToolRegistry | None = None
        """Those of the run, which say what is idempotent."""

    # -------------------------------------------------------------- its calls

    def reopen(self, call: Call, key: str, taken: set[str]) -> ToolCall:
        """A call of an earlier response that is to be run now, under an id that is unique.

        Args:
            call: the stored call.
            key: its idempotency key.
            taken: the ids of all calls of the thread.
        """
        id = call.id
        while not id or id in self._open or (id != call.id and id in taken):
            id += f"_{call.seq}_{call.ordinal}"
        self._open[id] = (call.seq, call.ordinal)
        self._attempts[id] = _Attempt(key, call.attempts + 1 if may_have_run(call) else 1, body=call.body)
        reopened = replace(call_from_json(before_guards(call.body)), id=id)
        self._reopened[id] = call
        if may_continue(call):
            self.stays.add(id)
        return reopened

    def _is_edited(self, id: str) -> bool:
        """Return True if a person has changed the arguments of a reopened call."""
        return id in self._reopened and bool(self._reopened[id].note.get("edited"))

    def _kept_note(self, id: str) -> Body:
        """Return a reopened call's note without a person's decision."""
        return open_note(self._reopened[id]) if id in self._reopened else {}

    def _tool(self, name: str) -> BoundTool | None:
        return None if self.tools is None else self.tools.get_tool(name)

    def _is_idempotent(self, name: str) -> bool:
        tool = self._tool(name)
        return tool is not None and tool.policy.idempotent

    def _started(self, call: ToolCall) -> Body | None:
        """The body of a call that starts, if its tool or its arguments are others than written; None to keep it."""
        stored = self._attempts[call.id].body
        body = mark_idempotent(guarded_call(stored, call), self._is_idempotent(call.name))
        return None if body == stored else body

    def begin_inside(self, id: str) -> None:
        """The sub-agent of a call begins; if it continues a run, it has open calls until `mark` says otherwise."""
        if id in self._reopened and self._reopened[id].note.get("inside"):
            self.inside.add(id)

    def key(self, id: str) -> str:
        """The idempotency key of a call that was started."""
        return self._attempts[id].key

    def context(self, call: ToolCall) -> ToolContext:
        """A call's idempotency key, and which attempt this is."""
        if call.id not in self._open:  # not started: only a check whether it may start
            return ToolContext(call.id, call.name)
        attempt = self._attempts[call.id]
        return ToolContext(call.id, call.name, idempotency_key=attempt.key, attempt=attempt.number)

    # -------------------------------------------------------------- changes to write

    def changes(
        self,
        event: ToolEvent,
        said: AssistantMessage | None,
        answer: ToolMessage | None,
        response: Response | None,
        read: int,
    ) -> list[Change]:
        """The changes that an event of a call requires. The arguments are those of `Journal.record`.

        The answer to a call that was not started is written with the next change: nothing is lost without it. `read` is
        the newest entry that the response answers.
        """
        id = event.call.id
        match event:
            case ToolStarted() if id in self._open:
                self.stays.discard(id)
                self._attempts[id] = self._attempts[id]._replace(started=True)
                waited = id in self._reopened and waits_inside(self._reopened[id])
                expect = _STARTS_INSIDE if waited else _STARTS
                return [Move(*self._open[id], "started", expect, body=self._started(event.call))]
            case ToolStarted():
                assert said is not None
                return [self._whole(said, read, "partial", now=event)]
            case ApprovalRequired() if id in self._open:
                note, body = dict(self._kept_note(id)), None
                self._waits[id] = place = self._open[id]
                if not event.inside:
                    guarded = guarded_call(self._attempts[id].body, event.call)
                    body = waits_for(guarded, self._tool(event.call.name), event.reason)
                else:
                    note["inside"] = True
                    del self._open[id]
                    self.stays.add(id)  # what waits inside it is in a separate thread, and may be decided already
                return [Move(*place, "waiting", _STARTS, body=body, note=note)]
            case ApprovalRequired():
                assert said is not None
                whole = self._whole(said, read, "partial", now=event)
                self._waits[id] = self._open[id]
                return [whole]
        changes: list[Change] = []
        assert answer is not None
        if self._answers(answer):
            seconds = None if isinstance(event, ToolSkipped) else event.seconds
            changes.append(self._answer(id, answer, skipped=isinstance(event, ToolSkipped), seconds=seconds))
        elif id not in self.stays:
            self._held[id] = answer
        if response is not None:
            assert said is not None
            changes.insert(0, self._whole(said, read, response=response))
        return changes

    def rest(
        self,
        said: AssistantMessage,
        answers: Sequence[ToolMessage],
        response: Response | None,
        read: int,
        skipped: Container[str] = (),
    ) -> list[Change]:
        """The remaining changes of a turn that is over. The arguments are those of `Journal.respond`, and `read`."""
        if self.complete:
            return []
        changes: list[Change] = []
        for answer in answers:
            if self._answers(answer):
                changes.append(self._answer(answer.call_id, answer, skipped=answer.call_id in skipped))
            elif answer.call_id not in self._written and answer.call_id not in self.stays:
                self._held[answer.call_id] = answer
        if response is not None and (said.content or self._partial.seq is not None):
            changes.insert(0, self._whole(said, read, response=response))
        return changes

    def unsaved_answers(self, answers: Sequence[ToolMessage], skipped: Container[str] = ()) -> Iterator[Change]:
        """Yield the answers of started tools, one change each: these are still written after a failed write."""
        for answer in answers:
            if self._answers(answer) and self._open[answer.call_id][0] != _NEWEST:
                yield self._answer(answer.call_id, answer, skipped=answer.call_id in skipped)

    def possible(self, changes: Sequence[Change], calls: Sequence[Call]) -> list[Change]:
        """The changes without those of calls that someone else has answered or decided on in the meantime.

        Args:
            changes: refused by the store as they are.
            calls: the same calls as they are in the store.
        """
        stored = {(call.seq, call.ordinal): call for call in calls}
        ids = {place: id for id, place in (self._waits | self._open).items()}
        left: list[Change] = []
        for change in changes:
            call = stored.get((change.seq, change.ordinal)) if isinstance(change, Move) else None
            id = None if call is None else ids.get((call.seq, call.ordinal))
            if call is None or id is None or not isinstance(change, Move) or call.status in change.expect:
                left.append(change)
            elif call.answer is None or is_denied(call):
                self.stays.add(id)
            else:
                self.stays.discard(id)
                self.given[id] = replace(answer_of(call), call_id=id)
        return left

    # -------------------------------------------------------------- changes written

    def set_places(self, changes: Sequence[Change], places: Sequence[int]) -> None:
        """Take over the positions of written changes."""
        if self._partial.seq is None and changes and isinstance(changes[0], Append):
            seq = self._partial.seq = places[0]
            self._open = {id: (seq if at == _NEWEST else at, n) for id, (at, n) in self._open.items()}

    def close_call(self, id: str, *, complete: bool) -> None:
        """Remove a call whose answer is in the store."""
        self._open.pop(id, None)
        self.complete = complete

    def end(self) -> None:
        """The response is over; the next one is new."""
        self.complete = False
        self._written.clear()
        self._open.clear()
        self._held.clear()
        self._waits.clear()
        self._reopened.clear()
        self.given.clear()
        self.stays.clear()
        self.inside.clear()
        self._partial = PartialBody()

    def _whole(
        self,
        said: AssistantMessage,
        read: int,
        kind: EntryKind = "message",
        response: Response | None = None,
        now: ToolStarted | ApprovalRequired | None = None,
    ) -> Change:
        """The response so far, with those of its calls that are not in the store yet; one may start or wait `now`."""
        seq = _NEWEST if self._partial.seq is None else self._partial.seq
        content: Body = {"message": to_json(said), "read": read} if kind == "message" else {}
        before: Mapping[str, Any] = {}
        if kind == "partial":
            content, before = self._partial.build(said, read, len(self._written.keys() | {c.id for c in said.calls}))
        if response is not None:
            content = {**content, "response": response._asdict() | {"usage": list(response.usage)}}
        new: list[NewCall] = []
        for call in said.calls:
            if call.id in self._written:
                continue
            self._written[call.id] = ordinal = len(self._written)
            body = planned_call(call, idempotent=self._is_idempotent(call.name))
            status: CallStatus = "planned"
            if now is not None and call.id == now.call.id:
                body, status = guarded_call(body, now.call), "started"
                if isinstance(now, ApprovalRequired):
                    body, status = waits_for(body, self._tool(call.name), now.reason), "waiting"
            if call.id in before:
                body["before"] = before[call.id]
            self._attempts[call.id] = _Attempt(body["key"], 1, body=body)
            if call.id not in self._held:
                self._open[call.id] = (seq, ordinal)
                new.append(NewCall(call.id, body, status))
            else:
                new.append(NewCall(call.id, body, "answered", to_json(self._held.pop(call.id))))
        return Append(content, kind, calls=new) if self._partial.seq is None else Revise(seq, content, kind, new)

    def _answers(self, answer: ToolMessage) -> bool:
        """Return True if the answer is to be written to its call: not if the call stays as it is."""
        id = answer.call_id
        if id in self.stays and answer.error not in ("cancelled", "limit"):
            self.stays.discard(id)
        return id in self._open and id not in self.stays

    def _answer(self, id: str, answer: ToolMessage, *, skipped: bool, seconds: float | None = None) -> Move:
        """A call's answer; with the arguments that it was run with, if a person changed them.

        With the `seconds` that its tool took: the times in the store also include writing.

        A run that is cancelled withdraws the calls that still wait for a person: one that is approved stays so. If a
        call was only marked as started, and its tool took no step (`skipped`), it is again what it was before. One that
        has open calls inside waits for these.
        """
        before = self._reopened.get(id) if skipped and answer.error == "cancelled" else None
        continues = before is not None and before.note.get("inside")
        if answer.error == "cancelled" and (continues or id in self.inside):
            self.stays.add(id)
            note = {"inside": True, **({"edited": True} if self._is_edited(id) else {})}
            return Move(*self._open[id], "waiting", ("started",), note=note)
        if before is not None and before.status == "approved" and not may_have_run(before):
            self.stays.add(id)
            note = {**before.note, "untouched": True}
            return Move(*self._open[id], before.status, ("started",), note=note)
        withdrawn = id in self._waits and answer.error == "cancelled"
        attempt = self._attempts[id]
        if answer.error is not None and attempt.number > 1 and (skipped or not attempt.started):
            answer = self.given[id] = not_again(answer)
        if self._is_edited(id):
            answer = add_edit_note(answer, call_from_json(before_guards(self._reopened[id].body)).arguments)
        said = to_json(answer) if seconds is None else {**to_json(answer), SECONDS: seconds}
        return Move(*self._open[id], "answered", ("waiting",) if withdrawn else UNANSWERED, answer=said)
