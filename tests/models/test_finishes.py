"""What each word for the end of a response means, on every wire: only a normal end lets a call in its text run.

The words are written out here as servers send them, so that the table loses none; an unheard-of one is no normal end.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Agent
from agentkit.events import Finish, FinishReason
from agentkit.models.finishes import FINISHES, TAKEN_OUT, finish
from agentkit.rollout.policy import policies
from agentkit.testing import Replay

CALL = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
NORMAL: dict[FinishReason, tuple[str, ...]] = {
    "stop": (
        *("stop", "STOP", "end_turn", "stop_sequence", "STOP_SEQUENCE", "eos", "eos_token", "EOS_TOKEN", "COMPLETE"),
        *("FINISHED", "completed", "normal", "done"),
    ),
    "tool_calls": ("tool_calls", "tool-calls", "TOOL_CALL", "tool_use", "function_call"),
}
OTHER: dict[FinishReason, tuple[str, ...]] = {
    "length": (
        *("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "incomplete", "model_length", "TOKEN_LIMIT"),
        *("model_context_window_exceeded", "context_length_exceeded", "ERROR_LIMIT", "repetition"),
        "repetition_truncation",
    ),
    "content_filter": (
        *("content_filter", "content-filter", "content_filtered", "guardrail_intervened", "sensitive", "blacklist"),
        *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "ERROR_TOXIC"),
    ),
    "refusal": ("refusal",),
    "pause": ("pause_turn", "compaction"),
    "error": (
        *("error", "ERROR", "abort", "aborted", "cancelled", "canceled", "CANCELLED", "USER_CANCEL", "timeout"),
        *("TIMEOUT", "TIME_LIMIT", "network_error", "insufficient_system_resource", "overloaded", "engine_overloaded"),
        *("overloaded_error", "server_error", "rejected", "failed"),
    ),
    "unknown": (
        *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER", "other", "FINISH_REASON_UNSPECIFIED", "weird"),
        *("stop!", "not stop", "unknown"),
    ),
}
NAMES = {"openai": "qwen3", "anthropic": "claude-x"}


def streamed(events: list[dict[str, Any]]) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


def chat(text: str, word: str | None, *, stream: bool) -> Any:
    if not stream:
        return {"choices": [{"message": {"content": text}, "finish_reason": word}]}
    pieces: list[dict[str, Any]] = [{"delta": {"content": text}}, {"delta": {}, "finish_reason": word}]
    return streamed([{"choices": [{"index": 0, **piece}]} for piece in pieces])


def messages(text: str, word: str | None, *, stream: bool) -> Any:
    if not stream:
        return {"type": "message", "content": [{"type": "text", "text": text}], "stop_reason": word}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": word}},
        {"type": "message_stop"},
    ]
    return streamed(events)


WIRES = {"openai": chat, "anthropic": messages}


def ran(wire: str, word: str | None, *, stream: bool) -> bool:
    tapes = [WIRES[wire](CALL, word, stream=stream), WIRES[wire]("It is 3.", "stop", stream=stream)]
    model = Replay(tapes + tapes[1:] * 3).model(f"{wire}:{NAMES[wire]}", api_key="k", base_url="http://127.0.0.1:9/v1")
    added = []

    def add(a: int, b: int) -> None:
        """Add."""
        added.append(a + b)

    Agent(model, [add]).run_sync("What is 1 + 2?", stream=stream)
    return added == [3]


@pytest.mark.share(2)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", sorted(WIRES))
def test_a_call_in_the_text_runs_only_after_a_normal_end(wire: str, stream: bool) -> None:
    for words, normal in ((NORMAL, True), (OTHER, False)):
        for word, *_ in words.values():  # what the others mean is tried below
            assert ran(wire, word, stream=stream) == normal, word


@pytest.mark.parametrize("wire", sorted(WIRES))
@pytest.mark.parametrize("word", ["", None])
def test_a_server_that_gives_no_reason_ends_normally(wire: str, word: str | None) -> None:
    assert ran(wire, word, stream=False)


@pytest.mark.parametrize("reason", [*NORMAL, *OTHER])
def test_what_each_word_means(reason: FinishReason) -> None:
    for word in {**NORMAL, **OTHER}[reason]:
        assert finish(word, calls=False) == Finish(reason, word)


@given(st.sampled_from(sorted(FINISHES)), st.lists(st.booleans(), min_size=40, max_size=40))
def test_capitals_and_hyphens_say_the_same(word: str, flags: list[bool]) -> None:
    odd = "".join(c.upper() if up else c for c, up in zip(word, flags, strict=False))
    for spelt in (odd, odd.replace("_", "-"), f" {odd} "):
        assert finish(spelt, calls=False).reason == FINISHES[word]


def test_a_request_that_was_taken_out_is_an_error_but_no_fault_of_a_policy() -> None:
    assert {FINISHES[word] for word in TAKEN_OUT} == {"error"}
    assert {**FINISHES, **dict.fromkeys(TAKEN_OUT, "cancelled")} == policies._FINISHES
