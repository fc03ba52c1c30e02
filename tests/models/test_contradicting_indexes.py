"""A call without a name, whose index fits no other: it is answered in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentkit import Agent
from agentkit.messages import ToolCall, UserMessage
from agentkit.models.wire import WireEvent
from agentkit.testing import Recording, Replay

Piece = tuple[int, str, str]
"""Its index, the id with which it names its call, and its text."""

ONE: list[Piece] = [(0, "a", '{"n": '), (0, "", "1}")]


def chunk(index: int, id: str, text: str) -> WireEvent:
    named = {"id": id, "type": "function"} if id else {}
    function = {"arguments": text, **({"name": f"get_{id}"} if id else {})}
    call = {"index": index, "function": function, **named}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}


END: WireEvent = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}


def replied(*pieces: Piece) -> Recording:
    events = [*(chunk(*piece) for piece in pieces), END]
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    return Recording(text.encode(), headers={"content-type": "text/event-stream"})


def get_a(n: int) -> str:
    """Get one."""
    return f"got {n}"


@pytest.mark.parametrize("beside", [[], ONE])
def test_a_call_without_a_name_is_answered_in_words_and_not_kept(beside: list[Piece]) -> None:
    done: dict[str, Any] = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
    tape = Replay([replied(*beside, (7, "", '{"n": 2}')), done])
    run = Agent(tape.model("openai:m", base_url="http://127.0.0.1:1/v1"), [get_a]).run_sync("x")
    assert (run.text, run.finish) == ("ok", "stop")
    calls = [part for message in run.messages for part in getattr(message, "content", ()) if isinstance(part, ToolCall)]
    assert [call.name for call in calls] == ["get_a"] * bool(beside)
    assert [m.text for m in run.messages if isinstance(m, UserMessage)] == ["x"]
    words = "A call of yours could not be read, and did not run. Call the tool by its name, with JSON as arguments."
    last = tape.requests[1]["messages"][-1]
    assert (last["role"], last["content"].removeprefix("x\n\n")) == ("user", words)
