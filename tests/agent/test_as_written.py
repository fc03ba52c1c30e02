"""What a native model is sent after it wrote its calls as text: what it wrote, and the results in words.

Source: docs/prompts.md. Models that write calls as text repeat them when they see them as native ones.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agentkit import Agent
from agentkit.testing import Replay, ScriptedModel

LOCAL = "http://127.0.0.1:8000/v1"
WRITTEN = '```json\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n```'
RESULT = "Result of add:\n3"
GO_ON = "If the request is done, answer it in words now. If another call is needed, make it."


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def chat(text: str = "", *calls: str) -> dict[str, Any]:
    natively = [
        {"id": f"n{at}", "type": "function", "function": {"name": "add", "arguments": arguments}}
        for at, arguments in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, "tool_calls": natively or None}
    return {"choices": [{"message": message, "finish_reason": "tool_calls" if calls else "stop"}]}


def anthropic(text: str) -> dict[str, Any]:
    body = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    return body | {"content": [{"type": "text", "text": text}], "usage": {"input_tokens": 9, "output_tokens": 9}}


def response(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
    return {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [item]}


def sent(replies: list[dict[str, Any]], model: str, key: str, **settings: Any) -> list[dict[str, Any]]:
    """The conversation that the last request brings, without the instructions."""
    tape = Replay(replies)
    result = asyncio.run(Agent(tape.model(model, **settings), [add]).run("What is 1 + 2?"))
    assert result.text == "It is 3."
    assert len(tape.requests) == len(replies)
    return [m for m in tape.requests[-1][key] if m.get("role") != "system"]


def test_chat_completions() -> None:
    messages = sent([chat(WRITTEN), chat("It is 3.")], "openai:m", "messages", base_url=LOCAL)
    assert messages == [
        {"role": "user", "content": "What is 1 + 2?"},
        {"role": "assistant", "content": WRITTEN},
        {"role": "user", "content": f"{RESULT}\n\n{GO_ON}"},
    ]


def test_messages() -> None:
    messages = sent([anthropic(WRITTEN), anthropic("It is 3.")], "anthropic:m", "messages")
    assert [(m["role"], [part["text"] for part in m["content"]]) for m in messages] == [
        ("user", ["What is 1 + 2?"]),
        ("assistant", [WRITTEN]),
        ("user", [RESULT, GO_ON]),
    ]


def test_responses() -> None:
    items = json.dumps(sent([response(WRITTEN), response("It is 3.")], "responses:m", "input"))
    assert json.dumps(WRITTEN)[1:-1] in items
    assert json.dumps(RESULT)[1:-1] in items
    assert "function_call" not in items


def test_what_came_before_and_between_the_calls_stays_in_its_place() -> None:
    call = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
    two = f"I add them twice.\n{call}\n{call}"
    messages = sent([chat(two), chat("It is 3.")], "openai:m", "messages", base_url=LOCAL)
    assert messages[1]["content"] == two
    assert messages[2]["content"] == f"{RESULT}\n\n{RESULT}\n\n{GO_ON}"


@pytest.mark.parametrize("first", ["natively", "as text"])
def test_a_native_call_goes_back_natively(first: str) -> None:
    native, text = chat("", '{"a": 1, "b": 2}'), chat(WRITTEN)
    replies = [native, text] if first == "natively" else [text, native]
    messages = sent([*replies, chat("It is 3.")], "openai:m", "messages", base_url=LOCAL)
    roles = [message["role"] for message in messages]
    if first == "natively":
        assert roles == ["user", "assistant", "tool", "assistant", "user"]
    else:
        assert roles == ["user", "assistant", "user", "assistant", "tool"]


def test_runs_without_such_calls_share_what_was_rendered() -> None:
    """It is compared by identity: a new one for each run would render a long thread again in each."""
    seen: list[object] = []
    agent = Agent(ScriptedModel(lambda request: [seen.append(request.written), "Hi."][1]), [add])
    asyncio.run(agent.run("Hello."))
    asyncio.run(agent.run("And again."))
    assert seen[0] is seen[1]
