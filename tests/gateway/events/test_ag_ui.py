"""Events of runs as AG-UI events, literally; each is judged by AG-UI's own models."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import pytest
from page_reading import AgUiReader, judge

from agentkit.agent import Lifecycle, RunResult, TurnStarted, call_hash
from agentkit.errors import ConfigError, ProviderError, ThreadBusy
from agentkit.events import (
    ApprovalRequired,
    ArgumentDelta,
    CallEnd,
    CallError,
    CallQuoted,
    CallStart,
    Event,
    Finish,
    InventedResult,
    Markup,
    ProviderBlock,
    Text,
    Thinking,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
    UnreadCall,
    Usage,
)
from agentkit.gateway.events import AgUiRun, sse
from agentkit.messages import ImagePart, ToolCall
from agentkit.models import ModelRequest
from agentkit.processor.not_run import BROKEN_OFF
from agentkit.tool.result import ToolResult
from agentkit.toolspec import ToolSpec

ADD: Final = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}})
CALL: Final = ToolCall("c1", "add", {"a": 1})
PNG: Final = bytes.fromhex("89504e470d0a1a0a")
REQUEST: Final = ModelRequest([])
STARTED: Final = {"type": "STEP_STARTED", "stepName": "turn 1"}
TWO_STEPS: Final = [(f"STEP_{what}", f"turn {n}") for n in (1, 2) for what in ("STARTED", "FINISHED")]
NATIVE: Final = {"format": None, "raw": "", "repairs": []}


def encoder() -> AgUiRun:
    return AgUiRun("t", "r", tools={"add": ADD}, clock=lambda: 12.5)


def fed(*events: Event | Lifecycle, run: AgUiRun | None = None) -> list[dict[str, Any]]:
    run = run or encoder()
    found = [one for event in events for one in run.feed(event)]
    for one in found:
        judge(one)
    return found


def result(finish: Any = "stop", pending: Iterable[ToolCall] = ()) -> RunResult[Any]:
    return RunResult("", (), Usage(5, 3, 2, 1, 0), 1, finish, pending=tuple(pending))


def ours(event: dict[str, Any]) -> Any:
    return event["metadata"]["agentkit"]


# ---------------------------------------------------------------- the run


def test_a_run_begins_with_its_ids_and_the_version() -> None:
    (started,) = encoder().start(parentRunId="p")
    judge(started)
    assert started == {
        "type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0", "parentRunId": "p",
    }  # fmt: skip


def test_a_run_ends_with_its_usage() -> None:
    (finished,) = encoder().finish(result())
    judge(finished)
    assert finished == {
        "type": "RUN_FINISHED",
        "threadId": "t",
        "runId": "r",
        "outcome": {"type": "success"},
        "usage": [
            {
                "inputTokens": 5,
                "outputTokens": 3,
                "totalTokens": 8,
                "reasoningTokens": 0,
                "cachedInputTokens": 2,
                "cacheWriteInputTokens": 1,
            }
        ],
        "metadata": {"agentkit": {"finish": "stop"}},
    }


@pytest.mark.parametrize(
    ("finish", "outcome"),
    [("stop", "success"), ("max_turns", "success"), ("cancelled", "cancelled"), ("approval", "interrupt")],
)
def test_the_outcome_of_a_run(finish: Any, outcome: str) -> None:
    (finished,) = encoder().finish(result(finish, [CALL] if finish == "approval" else []))
    judge(finished)
    assert finished["outcome"]["type"] == outcome
    assert ours(finished) == {"finish": finish}


def test_calls_that_wait_although_the_run_ended_otherwise_are_pending() -> None:
    (finished,) = encoder().finish(result("call_budget", [CALL]))
    judge(finished)
    assert finished["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (
            ProviderError("the key is wrong", kind="authentication", provider="openai"),
            "the key is wrong",
            "authentication",
        ),
        (ThreadBusy("it runs elsewhere"), "it runs elsewhere", "thread_busy"),
        (ConfigError("no model"), "no model", "agent_failed"),
        (ValueError("secret"), "the agent failed (ValueError)", "agent_failed"),
        (KeyboardInterrupt(), "the run was ended (KeyboardInterrupt)", "run_ended"),
    ],
)
def test_an_error_ends_the_run(error: BaseException, message: str, code: str) -> None:
    (failed,) = encoder().fail(error)
    judge(failed)
    assert failed == {"type": "RUN_ERROR", "message": message, "code": code}


def test_the_end_closes_everything() -> None:
    for end in ("finish", "fail"):
        run = encoder()
        events = [*run.start(), *fed(Thinking("hm"), CallStart(0, "add", "c1"), ArgumentDelta(0, '{"a'), run=run)]
        events += run.feed(Text("so"))
        events += run.finish(result()) if end == "finish" else run.fail(ValueError())
        view = AgUiReader().read(events)
        assert (view.thinking, view.text, view.damaged) == ("hm", "so", ["c1"])
        cut = next(event for event in events if event["type"] == "TOOL_CALL_END")
        assert ours(cut)["error"]["code"] == "truncated_call"


# ---------------------------------------------------------------- texts and turns


def test_text() -> None:
    assert fed(Text("Hel"), Text(""), Text("lo"), Finish("stop")) == [
        STARTED,
        {"type": "TEXT_MESSAGE_START", "messageId": "r-1", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "r-1", "delta": "Hel"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "r-1", "delta": "lo"},
        {"type": "TEXT_MESSAGE_END", "messageId": "r-1"},
        {"type": "STEP_FINISHED", "stepName": "turn 1", "metadata": {"agentkit": {"finish": "stop"}}},
    ]


def test_thinking_has_a_message_for_each_stretch() -> None:
    found = fed(Thinking("a"), Text("b"), Thinking("c"), Thinking("d"))
    assert found[:5] == [
        STARTED,
        {"type": "REASONING_START", "messageId": "r-1-r1"},
        {"type": "REASONING_MESSAGE_START", "messageId": "r-1-r1", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r-1-r1", "delta": "a"},
        {"type": "REASONING_MESSAGE_END", "messageId": "r-1-r1"},
    ]
    assert [(one["messageId"], one["delta"]) for one in found if "delta" in one] == [
        ("r-1-r1", "a"), ("r-1", "b"), ("r-1-r3", "c"), ("r-1-r3", "d"),
    ]  # fmt: skip


def test_a_text_after_a_call_continues_the_message() -> None:
    found = fed(Text("a"), CallStart(0, "add", "c1"), CallEnd(0, CALL), Text("b"))
    texts = [one["type"] for one in found if one.get("messageId") == "r-1"]
    assert texts == [f"TEXT_MESSAGE_{what}" for what in ("START", "CONTENT", "END", "START", "CONTENT")]


def test_the_event_after_a_finish_begins_a_turn() -> None:
    found = fed(
        CallStart(0, "add", "c1"), CallEnd(0, CALL), Finish("tool_calls"), ToolStarted(0, CALL),
        ToolCompleted(0, CALL, ToolResult(2), 0.1), Text("2"), Finish("stop"),
    )  # fmt: skip
    steps = [(one["type"], one["stepName"]) for one in found if "stepName" in one]
    assert steps == TWO_STEPS
    assert found[-2] == {"type": "TEXT_MESSAGE_END", "messageId": "r-2"}


def test_the_events_for_hooks_number_the_turns() -> None:
    """Also where one brings nothing, as after a refusal of its length."""
    found = fed(TurnStarted(1, REQUEST), TurnStarted(2, REQUEST), Text("a"), Finish("stop"))
    steps = [(one["type"], one["stepName"]) for one in found if "stepName" in one]
    assert steps == TWO_STEPS


def test_calls_of_an_earlier_run_have_only_answers() -> None:
    found = fed(CallEnd(0, CALL), ToolStarted(0, CALL), ToolCompleted(0, CALL, ToolResult(2), 0.5), Text("2"))
    assert [one["type"] for one in found] == [
        "CUSTOM", "TOOL_CALL_RESULT", "STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT",
    ]  # fmt: skip


def test_usage_of_each_response() -> None:
    found = fed(Text("a"), Usage(10, 2, 4, 0, 1), Finish("stop"), Usage(11, 2))
    assert [one["value"] for one in found if one["type"] == "CUSTOM"] == [
        {
            "messageId": "r-1",
            "usage": {"inputTokens": 10, "outputTokens": 2, "cachedTokens": 4, "reasoningTokens": 1},
        },
        {
            "messageId": "r-1",
            "usage": {"inputTokens": 11, "outputTokens": 2, "cachedTokens": 0, "reasoningTokens": 0},
        },
    ]


def test_what_a_model_made_up_or_failed_to_write() -> None:
    assert fed(InventedResult("42"), UnreadCall("add(1", "add"))[1:] == [
        {"type": "CUSTOM", "name": "agentkit:invented", "value": {"messageId": "r-1", "text": "42"}},
        {"type": "CUSTOM", "name": "agentkit:unread", "value": {"messageId": "r-1", "text": "add(1", "name": "add"}},
    ]


def test_what_a_page_does_not_see() -> None:
    block = ProviderBlock("anthropic", {"type": "redacted_thinking"}, thinking=True)
    assert fed(Markup("<think>"), CallQuoted(CALL), block) == []


# ---------------------------------------------------------------- calls


def test_a_native_call() -> None:
    found = fed(CallStart(0, "add", "c1"), ArgumentDelta(0, '{"a": 1'), ArgumentDelta(0, "}"), CallEnd(0, CALL))
    assert found == [
        STARTED,
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "add", "parentMessageId": "r-1"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{"},  # a number may go on
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '"a": 1'},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "}"},
        {"type": "TOOL_CALL_END", "toolCallId": "c1", "metadata": {"agentkit": {"arguments": {"a": 1}, **NATIVE}}},
    ]


def test_a_call_written_as_text_says_how() -> None:
    call = ToolCall("c1", "add", {"a": 1}, "xml", "<add><a>'1'</a></add>")
    deltas = fed(CallStart(0, "add", "c1"), ArgumentDelta(0, "1", "a"), CallEnd(0, call, ("quoted_value",)))
    assert [one["delta"] for one in deltas if one["type"] == "TOOL_CALL_ARGS"] == ['{"a": 1}']
    repairs = ours(deltas[-1]).pop("repairs")
    assert ours(deltas[-1]) == {"arguments": {"a": 1}, "format": "xml", "raw": "<add><a>'1'</a></add>"}
    assert repairs[0]["code"] == "quoted_value"
    assert "in quotes" in repairs[0]["text"]


def test_an_id_that_only_the_end_has() -> None:
    found = fed(CallStart(0, "add"), ArgumentDelta(0, '{"a": 1'), CallEnd(0, CALL))
    assert [one["type"] for one in found] == ["STEP_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]
    assert found[2]["delta"] == '{"a": 1}'


def test_arguments_that_contradict_their_beginning_are_in_the_end() -> None:
    found = fed(CallStart(0, "add", "c1"), ArgumentDelta(0, '{"b": 2, '), CallEnd(0, CALL))
    assert [one["delta"] for one in found if one["type"] == "TOOL_CALL_ARGS"] == ['{"b": 2']
    assert ours(found[-1])["arguments"] == {"a": 1}


def test_two_calls_at_once() -> None:
    other = ToolCall("c2", "add", {"a": 2})
    found = fed(
        CallStart(0, "add", "c1"), CallStart(1, "add", "c2"), ArgumentDelta(0, '{"a"'), ArgumentDelta(1, '{"a"'),
        ArgumentDelta(1, ": 2}"), ArgumentDelta(0, ": 1}"), CallEnd(1, other), CallEnd(0, CALL),
    )  # fmt: skip
    for id, text in (("c1", '{"a": 1}'), ("c2", '{"a": 2}')):
        assert "".join(one["delta"] for one in found if "delta" in one and one["toolCallId"] == id) == text


def test_a_call_that_cannot_be_read() -> None:
    raw = ToolCall("c1", "add", raw='{"a": oops}')
    failed = ToolFailed(0, raw, ToolResult(error="not JSON", code="invalid_json"), 0.0)
    found = fed(CallStart(0, "add", "c1"), CallError(0, "invalid_json", "not JSON", raw, 6), failed)
    error = {"code": "invalid_json", "message": "not JSON", "position": 6}
    assert ours(found[-2]) == {"error": error, "format": None, "raw": '{"a": oops}'}
    assert found[-1] == {
        "type": "TOOL_CALL_RESULT",
        "messageId": "c1-result",
        "toolCallId": "c1",
        "role": "tool",
        "content": "not JSON",
        "metadata": {"agentkit": {"status": "failed", "code": "invalid_json", "seconds": 0.0}},
    }


def test_a_tool_starts() -> None:
    value = {"toolCallId": "c1", "at": 12.5}
    assert fed(ToolStarted(0, CALL)) == [{"type": "CUSTOM", "name": "agentkit:started", "value": value}]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("denied", "denied"),
        ("cancelled", "stopped"),
        ("skipped", "skipped"),
        ("interrupted", "interrupted"),
        ("timeout", "failed"),
        ("limit", "failed"),
    ],
)
def test_why_a_call_has_no_output(code: Any, status: str) -> None:
    (found,) = fed(ToolSkipped(0, CALL, ToolResult(error="no", code=code)))
    assert ours(found) == {"status": status, "code": code, "seconds": None}


def test_a_call_that_never_started_is_not_interrupted() -> None:
    (found,) = fed(ToolSkipped(0, CALL, BROKEN_OFF.result()))
    assert ours(found) == {"status": "skipped", "code": "interrupted", "seconds": None}


def test_a_result_with_a_picture_is_in_parts() -> None:
    (found,) = fed(ToolCompleted(0, CALL, ToolResult(["a plot", ImagePart(PNG)]), 0.1))
    picture = {"type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png"}
    assert found["content"] == [{"type": "text", "text": "a plot"}, {"type": "image", "source": picture}]


def test_what_a_page_adds_about_a_call() -> None:
    run = AgUiRun("t", "r", about=lambda call: {"effect": f"adds {call.arguments['a']}"})
    found = fed(CallStart(0, "add", "c1"), CallEnd(0, CALL), ApprovalRequired(0, CALL), run=run)
    assert ours(found[-2])["effect"] == "adds 1"
    assert found[-1]["value"]["effect"] == "adds 1"


# ---------------------------------------------------------------- approval


def test_a_call_waits() -> None:
    run = encoder()
    (found,) = fed(ApprovalRequired(0, CALL, "it was started before"), run=run)
    what = {"toolCallId": "c1", "hash": call_hash(CALL), "name": "add", "arguments": {"a": 1}}
    assert found == {
        "type": "CUSTOM",
        "name": "agentkit:approval",
        "value": {**what, "reason": "it was started before", "inside": []},
    }
    (finished,) = run.finish(result("approval", [CALL]))
    judge(finished)
    assert finished["outcome"]["interrupts"] == [
        {
            "id": f"c1:{call_hash(CALL)}",
            "reason": "tool_call",
            "toolCallId": "c1",
            "message": "Run add? it was started before",
            "responseSchema": {
                "type": "object",
                "properties": {
                    "approved": {"type": "boolean"},
                    "editedArgs": ADD.parameters,
                    "reason": {"type": "string"},
                },
                "required": ["approved"],
            },
            "metadata": {"agentkit": {"hash": call_hash(CALL), "name": "add", "arguments": {"a": 1}}},
        }
    ]


def test_calls_wait_inside_a_call() -> None:
    inner = [ToolCall("c1/x", "pay", {"sum": 1}), ToolCall("c1/y", "pay", {"sum": 2})]
    found = fed(ApprovalRequired(0, CALL, "", tuple(inner)))
    assert [(one["value"]["toolCallId"], one["value"]["inside"]) for one in found] == [
        ("c1/x", ["c1"]),
        ("c1/y", ["c1"]),
    ]


# ---------------------------------------------------------------- bytes


def test_a_server_sent_event() -> None:
    odd = {"type": "TEXT_MESSAGE_CONTENT", "delta": "a\n\u2028\x85\ud800é"}
    written = sse(odd, "e.7").decode()
    assert written == 'id: e.7\ndata: {"type":"TEXT_MESSAGE_CONTENT","delta":"a\\n\\u2028\\u0085\\ufffdé"}\n\n'
    assert json.loads(sse(odd).removeprefix(b"data: "))["delta"] == "a\n\u2028\x85\ufffdé"
