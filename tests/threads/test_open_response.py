"""What a run has to write of the response under way: events in, changes out. No store."""

from __future__ import annotations

import pytest

from agentkit.agent.journal import Response
from agentkit.events import ApprovalRequired, ToolCompleted, ToolStarted, Usage
from agentkit.messages import AssistantMessage, TextPart, ToolCall, ToolMessage
from agentkit.threads.open_response import UNANSWERED, OpenResponse
from agentkit.threads.store import Append, Call, CallStatus, Change, Move, Revise
from agentkit.tool.result import ToolResult

PAY, LOOK = ToolCall("p", "pay", {"amount": 5}), ToolCall("l", "look")
PAID, LOOKED = ToolMessage("p", "pay", "paid"), ToolMessage("l", "look", "a lake")
WHOLE = Response("run", "model", Usage(3, 2), "tool_calls", 0.5)
DONE = ToolCompleted(0, PAY, ToolResult("paid"), 0.1)


def told(changes: list[Change]) -> list[object]:
    """The changes in few words: what is written where, and how far the calls have come."""
    said: list[object] = []
    for change in changes:
        match change:
            case Append():
                said.append((change.kind, [(call.id, call.status) for call in change.calls]))
            case Revise():
                said.append((change.seq, change.kind, [(call.id, call.status) for call in change.calls]))
            case Move():
                said.append((change.seq, change.ordinal, change.to))
    return said


def test_a_call_is_written_with_its_response_before_it_starts_and_its_answer_with_the_rest_of_it() -> None:
    one = OpenResponse()
    begin = one.changes(ToolStarted(0, PAY), AssistantMessage(PAY), None, None, read=0)
    assert told(begin) == [("partial", [("p", "started")])]
    one.set_places(begin, [1])
    end = one.changes(DONE, AssistantMessage(PAY), PAID, WHOLE, read=0)
    assert told(end) == [(1, "message", []), (1, 0, "answered")]
    one.set_places(end, [1])
    one.close_call("p", complete=True)
    assert one.complete
    assert one.rest(AssistantMessage(PAY), [PAID], WHOLE, read=0) == []


def test_a_second_call_joins_the_entry_and_waits_there_before_anyone_knows() -> None:
    one = OpenResponse()
    begin = one.changes(ToolStarted(0, PAY), AssistantMessage(PAY), None, None, read=0)
    one.set_places(begin, [4])
    wait = one.changes(ApprovalRequired(1, LOOK), AssistantMessage((PAY, LOOK)), None, None, read=0)
    assert told(wait) == [(4, "partial", [("l", "waiting")])]
    one.set_places(wait, [4])
    rest = one.rest(AssistantMessage((PAY, LOOK)), [PAID], WHOLE, read=0)
    assert told(rest) == [(4, "message", []), (4, 0, "answered")]


def test_of_a_response_that_started_nothing_all_is_written_at_its_end() -> None:
    one = OpenResponse()
    assert told(one.rest(AssistantMessage(LOOK), [LOOKED], WHOLE, read=0)) == [("message", [("l", "answered")])]
    assert one.rest(AssistantMessage(()), [], WHOLE, read=0) == []


def test_a_call_of_an_earlier_response_is_moved_where_it_is_under_an_id_of_its_own() -> None:
    one = OpenResponse()
    stored = Call(
        2, 0, "", "approved", {"type": "call", "id": "", "name": "pay", "arguments": "{}", "raw": ""}, attempts=1
    )
    said = one.reopen(stored, "key", {"", "_2_0"})
    assert (said.id, said.name) == ("_2_0_2_0", "pay")
    context = one.context(said)
    assert (context.idempotency_key, context.attempt) == ("key", 2)
    (move,) = one.changes(ToolStarted(0, said), None, None, None, read=0)
    assert move == Move(2, 0, "started", ("planned", "approved", "started"))


@pytest.mark.parametrize("attempts", [0, 1])
@pytest.mark.parametrize("was", ["approved", "started"])
def test_an_approval_is_put_back_only_if_the_tool_has_certainly_never_run(was: CallStatus, attempts: int) -> None:
    one, body = OpenResponse(), {"type": "call", "id": "c1", "name": "pay", "arguments": "{}", "raw": ""}
    said = one.reopen(Call(2, 0, "c1", was, body, {"hash": "h", "by": None}, attempts=attempts), "key", set())
    one.changes(ToolStarted(0, said), None, None, None, read=0)
    not_run = ToolMessage("c1", "pay", (TextPart("not run"),), "cancelled")
    (move,) = one.unsaved_answers([not_run], {"c1"})
    assert isinstance(move, Move)
    assert move.to == ("approved" if was == "approved" and attempts == 0 else "answered")
    assert move.note == ({"hash": "h", "by": None, "untouched": True} if move.to == "approved" else None)


def test_after_a_write_that_failed_only_answers_of_calls_that_are_in_the_store_are_saved() -> None:
    one = OpenResponse()
    begin = one.changes(ToolStarted(0, PAY), AssistantMessage(PAY), None, None, read=0)
    assert list(one.unsaved_answers([PAID])) == []  # the write failed
    one.set_places(begin, [1])
    (move,) = one.unsaved_answers([PAID, LOOKED])
    assert isinstance(move, Move)
    assert (move.seq, move.ordinal, move.to, move.expect) == (1, 0, "answered", UNANSWERED)
