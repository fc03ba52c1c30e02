"""The response that a run is writing into its thread: what of it is in the store, and what brings the rest there. Pure.

A response and its calls are one entry; a call that is about to start is in the store before its tool begins. The answer
to a call that is not in the store yet is held until its response is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from agentkit.agent.decisions import edited
from agentkit.agent.journal import Response
from agentkit.events import ApprovalRequired, ToolEvent, ToolStarted
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.threads.codec import call_from_json, planned_call, to_json
from agentkit.threads.store import Append, Call, CallStatus, Change, EntryKind, Move, NewCall, Revise
from agentkit.tool.result import ToolContext

UNANSWERED: Final[tuple[CallStatus, ...]] = ("planned", "waiting", "approved", "started")
_NEWEST: Final = -1  # stands for the place of an entry until it is written


class OpenResponse:
    """The response under way, and its calls."""

    def __init__(self) -> None:
        self.complete = False
        """Whether it is in the store to its end, all answers included."""
        self._seq: int | None = None  # its entry, once it is begun
        self._written: dict[str, int] = {}  # the ordinals of its calls that are in the store
        self._open: dict[str, tuple[int, int]] = {}  # calls in the store without an answer; _NEWEST for a new entry
        self._held: dict[str, ToolMessage | None] = {}  # answers (None: waits for approval) of calls not written yet
        self._keys: dict[str, str] = {}  # of open calls: under which their effects happen once
        self._attempts: dict[str, int] = {}
        self._edits: dict[str, ToolCall] = {}

    # -------------------------------------------------------------- its calls

    def reopen(self, call: Call, key: str, taken: set[str]) -> ToolCall:
        """A call of an earlier response that is to be run now, under an id that no other one has.

        Args:
            call: as it is stored.
            key: under which its effects happen once.
            taken: the ids of all calls of the thread.
        """
        id = call.id
        while not id or id in self._open or (id != call.id and id in taken):
            id += f"_{call.seq}_{call.ordinal}"
        self._open[id] = (call.seq, call.ordinal)
        self._keys[id] = key
        self._attempts[id] = call.attempts + 1
        said = replace(call_from_json(call.body), id=id)
        if call.note.get("edited"):
            self._edits[id] = said
        return said

    def key(self, id: str) -> str:
        """Under what the effects of a call that was begun happen once."""
        return self._keys[id]

    def context(self, call: ToolCall) -> ToolContext:
        """The key under which a call's effects happen once, and which attempt this is."""
        if call.id not in self._open:  # not begun: somebody asks whether it may
            return ToolContext(call.id, call.name)
        key, attempt = self._keys[call.id], self._attempts.get(call.id, 1)
        return ToolContext(call.id, call.name, idempotency_key=key, attempt=attempt)

    # -------------------------------------------------------------- what is to be written

    def changes(
        self,
        event: ToolEvent,
        said: AssistantMessage | None,
        answer: ToolMessage | None,
        response: Response | None,
        read: int,
    ) -> list[Change]:
        """What an event of a call has to have written. The arguments are those of `Journal.record`.

        The answer to a call that was not begun is written with what comes next: nothing is lost without it. `read` is
        the newest entry that the response answers.
        """
        id = event.call.id
        match event:
            case ToolStarted() if id in self._open:
                return [Move(*self._open[id], "started", ("planned", "approved", "started"))]
            case ToolStarted():
                assert said is not None
                return [self._whole(said, read, "partial", starting=id)]
            case ApprovalRequired() if id in self._open:
                note = {"edited": True} if id in self._edits else {}
                return [Move(*self._open.pop(id), "waiting", ("planned", "approved", "started"), note=note)]
            case ApprovalRequired():
                self._held[id] = None
                return []
        changes: list[Change] = []
        if id in self._open:
            changes.append(self._answer(id, answer))
        else:
            self._held[id] = answer
        if response is not None:
            assert said is not None
            changes.insert(0, self._whole(said, read, response=response))
        return changes

    def rest(
        self, said: AssistantMessage, answers: Sequence[ToolMessage], response: Response | None, read: int
    ) -> list[Change]:
        """What a turn that is over has left to be written."""
        if self.complete:
            return []
        changes: list[Change] = []
        for answer in answers:
            if answer.call_id in self._open:
                changes.append(self._answer(answer.call_id, answer))
            elif answer.call_id not in self._written:
                self._held[answer.call_id] = answer
        if response is not None and (said.content or self._seq is not None):
            changes.insert(0, self._whole(said, read, response=response))
        return changes

    def saved(self, answers: Sequence[ToolMessage]) -> Iterator[Change]:
        """The answers of tools that were begun, each by itself: what is still written after a write that failed."""
        for answer in answers:
            if self._open.get(answer.call_id, (_NEWEST, 0))[0] != _NEWEST:
                yield self._answer(answer.call_id, answer)

    # -------------------------------------------------------------- what was written

    def written(self, changes: Sequence[Change], places: Sequence[int]) -> None:
        """Its changes are in the store, at these places."""
        if self._seq is None and changes and isinstance(changes[0], Append):
            seq = self._seq = places[0]
            self._open = {id: (seq if at == _NEWEST else at, n) for id, (at, n) in self._open.items()}

    def answered(self, id: str, *, complete: bool) -> None:
        """The answer to a call is in the store."""
        self._open.pop(id, None)
        self.complete = complete

    def end(self) -> None:
        """It is over; the next one is new."""
        self.complete = False
        self._seq = None
        self._written.clear()
        self._open.clear()
        self._held.clear()

    def _whole(
        self,
        said: AssistantMessage,
        read: int,
        kind: EntryKind = "message",
        response: Response | None = None,
        starting: str = "",
    ) -> Change:
        """The response as far as it came, with those of its calls that are not in the store yet; one may start now."""
        seq = _NEWEST if self._seq is None else self._seq
        new: list[NewCall] = []
        for call in said.calls:
            if call.id in self._written:
                continue
            self._written[call.id] = ordinal = len(self._written)
            body = planned_call(call)
            self._keys[call.id] = body["key"]
            if call.id not in self._held:
                self._open[call.id] = (seq, ordinal)
                new.append(NewCall(call.id, body, "started" if call.id == starting else "planned"))
            elif (answer := self._held.pop(call.id)) is None:
                new.append(NewCall(call.id, body, "waiting"))
            else:
                new.append(NewCall(call.id, body, "answered", to_json(answer)))
        content: dict[str, Any] = {"message": to_json(said), "read": read}
        if response is not None:
            content["response"] = response._asdict() | {"usage": list(response.usage)}
        return Append(content, kind, calls=new) if self._seq is None else Revise(seq, content, kind, new)

    def _answer(self, id: str, answer: ToolMessage | None) -> Move:
        """A call's answer; with the arguments that it was run with, where a person changed them."""
        assert answer is not None
        if id in self._edits:
            answer = edited(answer, self._edits[id].arguments)
        return Move(*self._open[id], "answered", UNANSWERED, answer=to_json(answer))
