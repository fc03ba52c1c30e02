"""What each provider insists on in a conversation, as far as it can be checked without asking it."""

from __future__ import annotations

import json
import re
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_chat(messages: list[dict[str, Any]]) -> None:
    ids: list[str] = []
    waiting: list[str] = []
    for before, message in zip([{"role": ""}, *messages], messages, strict=False):
        assert not (before["role"] == message["role"] == "user")
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            assert isinstance(message["content"], str)
            continue
        assert waiting == []
        for call in message.get("tool_calls", ()):
            assert len(call["id"]) <= 40
            assert NAME.fullmatch(call["function"]["name"])
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            ids.append(call["id"])
            waiting.append(call["id"])
        assert message["content"] is not None or waiting
    assert waiting == []
    assert len(set(ids)) == len(ids)
    json.dumps(messages, ensure_ascii=False).encode()


def check_anthropic(messages: list[dict[str, Any]]) -> None:
    ids: list[str] = []
    waiting: list[str] = []
    for at, message in enumerate(messages):
        assert message["role"] == ("user", "assistant")[at % 2]
        blocks = message["content"]
        assert blocks
        assert all(b["text"].strip() for b in blocks if b["type"] == "text")
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert results == waiting
        assert all(b["type"] == "tool_result" for b in blocks[: len(results)])
        assert blocks[-1]["type"] not in ("thinking", "redacted_thinking") or message["role"] == "user"
        waiting = [b["id"] for b in blocks if b["type"] == "tool_use"]
        ids += waiting
        assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", i) for i in waiting)
        assert all(
            NAME.fullmatch(b["name"]) and isinstance(b["input"], dict) for b in blocks if b["type"] == "tool_use"
        )
    assert waiting == []
    assert len(set(ids)) == len(ids)
    json.dumps(messages, ensure_ascii=False).encode()


def check_responses(items: list[dict[str, Any]]) -> None:
    calls = [i["call_id"] for i in items if i.get("type") == "function_call"]
    answers = [i["call_id"] for i in items if i.get("type") == "function_call_output"]
    assert calls == answers
    assert len(set(calls)) == len(calls)
    assert all(len(i) <= 64 for i in calls)
    for item, after in zip(items, [*items, {}][1:], strict=True):
        if item.get("type") == "function_call":
            assert NAME.fullmatch(item["name"])
            assert isinstance(json.loads(item["arguments"]), dict)
        if item.get("type") == "reasoning":
            assert after.get("type", "user") != "user"  # it led to something that the model wrote
            assert not after["type"].endswith("_output")
    json.dumps(items, ensure_ascii=False).encode()
