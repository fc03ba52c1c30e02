"""Events of runs as chunks of the AI SDK's UI message stream, literally."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pytest
from page_reading import AiSdkReader

from agentkit.agent import RunResult, call_hash
from agentkit.errors import ConfigError
from agentkit.events import (
    ApprovalRequired,
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Event,
    Finish,
    InventedResult,
    ModelSelected,
    Text,
    Thinking,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
    Usage,
)
from agentkit.gateway.events import AiSdkRun
from agentkit.messages import ImagePart, ToolCall
from agentkit.tool.result import ToolResult

CALL: Final = ToolCall("c1", "add", {"a": 1})
PNG: Final = bytes.fromhex("89504e470d0a1a0a")
INPUT: Final = {"type": "tool-input-available", "toolCallId": "c1", "toolName": "add", "input": {"a": 1}}


def fed(*events: Event, run: AiSdkRun | None = None) -> list[dict[str, Any]]:
    run = run or AiSdkRun("r")
    return [one for event in events for one in run.feed(event)]


def result(finish: Any = "stop", pending: Iterable[ToolCall] = ()) -> RunResult[Any]:
    return RunResult("", (), Usage(5, 3), 1, finish, pending=tuple(pending))


def test_a_run_is_a_message() -> None:
    assert AiSdkRun("r").start() == [{"type": "start", "messageId": "r"}]
    assert AiSdkRun("r", continues=True).start() == [{"type": "start"}]
    usage = {"inputTokens": 5, "outputTokens": 3}
    assert AiSdkRun("r").finish(result()) == [
        {
            "type": "finish",
            "finishReason": "stop",
            "messageMetadata": {"agentkit": {"finish": "stop", "usage": usage}},
        }
    ]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("approval", "tool-calls"), ("max_turns", "length"), ("refusal", "content-filter"), ("loop_detected", "other")],
)
def test_why_a_run_ended(finish: Any, reason: str) -> None:
    assert AiSdkRun("r").finish(result(finish))[0]["finishReason"] == reason


def test_a_stopped_run_is_aborted() -> None:
    assert AiSdkRun("r").finish(result("cancelled")) == [{"type": "abort", "reason": "the run was stopped"}]


def test_an_error_ends_the_message() -> None:
    run = AiSdkRun("r")
    chunks = [*run.start(), *fed(Text("so"), run=run), *run.fail(ConfigError("no model"))]
    assert chunks[-3:] == [
        {"type": "text-end", "id": "1-1"}, {"type": "finish-step"}, {"type": "error", "errorText": "no model"},
    ]  # fmt: skip
    AiSdkReader().read(chunks)


def test_texts_and_thinking() -> None:
    assert fed(Thinking("hm"), Text("a"), Text("b"), Usage(), InventedResult("x"), Finish("stop")) == [
        {"type": "start-step"},
        {"type": "reasoning-start", "id": "1-1"},
        {"type": "reasoning-delta", "id": "1-1", "delta": "hm"},
        {"type": "reasoning-end", "id": "1-1"},
        {"type": "text-start", "id": "1-2"},
        {"type": "text-delta", "id": "1-2", "delta": "a"},
        {"type": "text-delta", "id": "1-2", "delta": "b"},
        {"type": "text-end", "id": "1-2"},
    ]


def test_the_model_of_a_chain_that_answers_is_a_part_of_the_pages_own() -> None:
    assert fed(ModelSelected("openai:b", ("openai:a: 529: busy",)), Text("a"))[:2] == [
        {"type": "start-step"},
        {"type": "data-agentkit-model", "data": {"model": "openai:b", "failed": ["openai:a: 529: busy"]}},
    ]


def test_a_call_and_its_answer_are_one_step() -> None:
    found = fed(
        CallStart(0, "add", "c1"), ArgumentDelta(0, '{"a": 1}'), CallEnd(0, CALL), Finish("tool_calls"),
        ToolStarted(0, CALL), ToolCompleted(0, CALL, ToolResult("2"), 0.1), Text("2"),
    )  # fmt: skip
    assert found[:-1] == [
        {"type": "start-step"},
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "add"},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"a": 1'},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": "}"},
        INPUT,
        {"type": "tool-output-available", "toolCallId": "c1", "output": "2"},
        {"type": "finish-step"},
        {"type": "start-step"},
        {"type": "text-start", "id": "2-1"},
    ]


def test_a_call_that_cannot_be_read() -> None:
    raw = ToolCall("c1", "add", raw='{"a": oops}')
    failed = ToolFailed(0, raw, ToolResult(error="not JSON", code="invalid_json"), 0.0)
    found = fed(CallStart(0, "add", "c1"), CallError(0, "invalid_json", "not JSON", raw, 6), failed)
    ids = {"toolCallId": "c1", "toolName": "add"}
    assert found[2:] == [
        {"type": "tool-input-error", **ids, "input": '{"a": oops}', "errorText": "not JSON"},
        {"type": "tool-output-error", "toolCallId": "c1", "errorText": "not JSON"},
    ]


@pytest.mark.parametrize(
    ("given", "output"),
    [("2", "2"), ({"rows": [1]}, {"rows": [1]}), ([1, 2], [1, 2]), (2, "2"), (None, "ok"), ([float("nan")], ["NaN"])],
)
def test_an_output_that_is_an_object_stays_one(given: Any, output: Any) -> None:
    found = fed(CallEnd(0, CALL), ToolCompleted(0, CALL, ToolResult(given), 0.1))
    assert found[-1]["output"] == output


def test_a_long_result_is_cut() -> None:
    for given in ("x" * 200_000, ["x" * 200_000]):
        (*_, found) = fed(CallEnd(0, CALL), ToolCompleted(0, CALL, ToolResult(given), 0.1))
        assert len(found["output"]) <= 100_000


def test_pictures_of_a_result_are_files() -> None:
    found = fed(CallEnd(0, CALL), ToolCompleted(0, CALL, ToolResult(["a plot", ImagePart(PNG)]), 0.1))
    assert found[-2:] == [
        {"type": "tool-output-available", "toolCallId": "c1", "output": "a plot"},
        {"type": "file", "url": "data:image/png;base64,iVBORw0KGgo=", "mediaType": "image/png"},
    ]


def test_a_denied_call() -> None:
    found = fed(ToolSkipped(0, CALL, ToolResult(error="no", code="denied")))
    assert found == [INPUT, {"type": "tool-output-denied", "toolCallId": "c1"}]


def test_a_call_of_an_earlier_run_is_shown_before_its_answer() -> None:
    """A page stops at the answer of a call that its message does not have."""
    assert fed(CallEnd(0, CALL), ToolCompleted(0, CALL, ToolResult("2"), 0.1))[0] == INPUT


def test_a_call_waits() -> None:
    found = fed(CallStart(0, "add", "c1"), CallEnd(0, CALL), ApprovalRequired(0, CALL))
    assert found[-1] == {
        "type": "tool-approval-request", "approvalId": f"c1:{call_hash(CALL)}", "toolCallId": "c1",
    }  # fmt: skip


def test_a_call_waits_inside_a_call() -> None:
    inner = ToolCall("c1/x", "pay", {"sum": 1})
    found = fed(CallStart(0, "add", "c1"), CallEnd(0, CALL), ApprovalRequired(0, CALL, "", (inner,)))
    assert found[-2:] == [
        {"type": "tool-input-available", "toolCallId": "c1/x", "toolName": "pay", "input": {"sum": 1}},
        {"type": "tool-approval-request", "approvalId": f"c1/x:{call_hash(inner)}", "toolCallId": "c1/x"},
    ]
