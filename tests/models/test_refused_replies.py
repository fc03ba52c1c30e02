"""A server reports a call that it cannot read as an error. The error has what the model wrote: that is the reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentkit import Agent, ProviderError
from agentkit.messages import ToolMessage, user
from agentkit.testing import Recording, Replay

DONE: dict[str, Any] = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
FAILED = "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."


def read(path: str) -> str:
    """Read a file."""
    return f"text of {path}"


def groq(said: str, message: str = FAILED) -> dict[str, Any]:
    error = {"message": message, "type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": said}
    return {"error": error}


def llama(said: str) -> dict[str, Any]:
    return {"error": {"code": 500, "message": f"Failed to parse input at pos 395: {said}", "type": "server_error"}}


def ollama(said: str) -> dict[str, Any]:
    message = f"error parsing tool call: raw='{said}', err=invalid character ']' after top-level value"
    return {"error": {"message": message, "type": "api_error", "param": None, "code": None}}


def streamed(*events: dict[str, Any]) -> Recording:
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    return Recording(text.encode(), headers={"content-type": "text/event-stream"})


def thought(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"reasoning": text}, "finish_reason": None}]}


HERMES = '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>'
PYTHONIC = "<|tool_call_start|>[read(path='a')]<|tool_call_end|>"
QWEN3_CODER = "<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>"

UNREAD = "A call of yours could not be read, and did not run. Call the tool by its name, with JSON as arguments."


@pytest.mark.parametrize(
    "refusal",
    [
        Recording(groq('<function=read>{"path": "a"}</function>'), status=400),
        Recording(groq(HERMES), status=400),
        streamed(thought("Read it."), groq(HERMES)),
        Recording(llama(PYTHONIC), status=500),  # llama.cpp#23838
        Recording(llama(QWEN3_CODER), status=500),  # llama.cpp#24644
        streamed(thought("Read it."), llama(QWEN3_CODER)),
    ],
)
def test_a_call_in_a_refused_reply_runs(refusal: Recording) -> None:
    tape = Replay([refusal, DONE])
    run = Agent(tape.model("openai:m", base_url="http://127.0.0.1:1/v1"), [read]).run_sync("x")
    assert run.text == "ok"
    assert [m.text for m in run.messages if isinstance(m, ToolMessage)] == ["text of a"]


@pytest.mark.parametrize(
    ("refusal", "asks"),
    [
        (Recording(groq('<function=read>{"file": "a"}</function>'), status=400), UNREAD),
        (Recording(groq('read{"path": "a"}</function>'), status=400), UNREAD),  # smolagents#1119
        (Recording(groq("Tool use failed: JSON does not match the expected schema"), status=400), UNREAD),
        (Recording(llama("</tool_call>"), status=500), UNREAD),  # llama.cpp#20761
        (Recording(ollama('{"path": "a"}]'), status=500), UNREAD),  # ollama#17638
        (streamed(thought("Read it."), ollama('{"path": "a')), UNREAD),
    ],
)
def test_the_model_is_asked_again_if_no_call_can_be_read(refusal: Recording, asks: str) -> None:
    tape = Replay([refusal, DONE])
    run = Agent(tape.model("openai:m", base_url="http://127.0.0.1:1/v1"), [read]).run_sync("x")
    assert (run.text, [asks in str(request["messages"]) for request in tape.requests]) == ("ok", [False, True])
    assert not any(isinstance(m, ToolMessage) for m in run.messages)


def test_a_wrong_value_in_a_refused_reply_is_answered_like_any_other() -> None:
    message = "tool call validation failed: parameters for tool read did not match schema"
    tape = Replay([Recording(groq('<function=read>{"path": 5}</function>', message), status=400), DONE])
    run = Agent(tape.model("openai:m", base_url="http://127.0.0.1:1/v1"), [read]).run_sync("x")
    assert [m.error for m in run.messages if isinstance(m, ToolMessage)] == ["invalid_arguments"]
    assert run.text == "ok"


def test_a_reply_that_has_begun_a_call_is_not_read_a_second_time() -> None:
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": '{"pa'}}
    begun = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
    tape = Replay([streamed(begun, groq(HERMES))])
    with pytest.raises(ProviderError, match="tool_use_failed"):
        Agent(tape.model("openai:m", base_url="http://127.0.0.1:1/v1"), [read]).run_sync([user("x")])


ECHOED = "<read>\n<path>a</path>\n</read>"


@pytest.mark.parametrize(
    "error",
    [
        Recording({"error": {"message": f"invalid content: Failed to parse input at pos 0: {HERMES}"}}, status=400),
        Recording(f"<html>Failed to parse input at pos 0: {HERMES}</html>".encode(), status=502),
        Recording(groq(HERMES), status=401),
        Recording({"error": {"message": "no", "failed_generation": HERMES}}, status=400),
    ],
)
def test_another_error_that_contains_a_call_is_an_error(error: Recording) -> None:
    tape = Replay([error])
    with pytest.raises(ProviderError):
        Agent(tape.model("openai:m", base_url="http://127.0.0.1:1/v1"), [read]).run_sync("x")


def test_a_model_that_calls_in_text_has_no_native_call_to_refuse() -> None:
    tape = Replay([Recording(llama(ECHOED), status=500)])
    with pytest.raises(ProviderError):
        Agent(tape.model("openai:m", base_url="http://127.0.0.1:1/v1", format="xml"), [read]).run_sync(ECHOED)
