"""What each provider insists on in a conversation, as far as it can be checked without asking it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from agentkit.formats.format import Format
from agentkit.messages import AssistantMessage, Message, SystemMessage, TextPart, ToolCall, ToolMessage, UserMessage

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_chat(messages: list[dict[str, Any]]) -> None:
    """Each call is answered by the tool messages directly after it, in order, under an id of its own."""
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
        assert message["role"] == "assistant" or "tool_calls" not in message
        if isinstance(message["content"], list):  # an empty list, and images by anybody else, are refused
            assert message["content"]
            assert message["role"] == "user"
    assert waiting == []
    _check_unique(ids)
    _check_encodes(messages)


def check_anthropic(messages: list[dict[str, Any]]) -> None:
    """Users and assistants take turns; what a user says begins with the results of all calls before it."""
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
        assert message["role"] == "assistant" or not waiting
        ids += waiting
        assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", i) for i in waiting)
        assert all(
            NAME.fullmatch(b["name"]) and isinstance(b["input"], dict) for b in blocks if b["type"] == "tool_use"
        )
    assert waiting == []
    _check_server_tools(messages)
    _check_unique(ids)
    _check_encodes(messages)


def check_converse(messages: list[dict[str, Any]]) -> None:
    """As for Anthropic; each block has one key, a document has text next to it and a name of its own."""
    ids: list[str] = []
    waiting: list[str] = []
    names: list[str] = []
    for at, message in enumerate(messages):
        assert message["role"] == ("user", "assistant")[at % 2]
        blocks = message["content"]
        assert blocks
        assert all(len(block) == 1 for block in blocks)
        results = [b["toolResult"]["toolUseId"] for b in blocks if "toolResult" in b]
        assert results == waiting
        assert all("toolResult" in b for b in blocks[: len(results)])
        assert all(b["toolResult"]["content"] for b in blocks[: len(results)])
        inner = [*blocks, *(one for b in blocks[: len(results)] for one in b["toolResult"]["content"])]
        assert all(b["text"].strip() for b in inner if "text" in b)
        assert "reasoningContent" not in blocks[-1]
        documents = [b["document"]["name"] for b in blocks if "document" in b]
        assert not documents or any("text" in b for b in blocks)
        assert all(re.fullmatch(r"[a-zA-Z0-9()\[\]-]+( [a-zA-Z0-9()\[\]-]+)*", name) for name in documents)
        names += documents
        uses = [b["toolUse"] for b in blocks if "toolUse" in b and "type" not in b["toolUse"]]
        waiting = [use["toolUseId"] for use in uses]
        assert message["role"] == "assistant" or not waiting
        ids += waiting
        assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", i) for i in waiting)
        assert all(NAME.fullmatch(use["name"]) and isinstance(use["input"], dict) for use in uses)
    assert waiting == []
    _check_unique(ids)
    _check_unique(names)


def _check_server_tools(messages: Sequence[dict[str, Any]]) -> None:
    """The provider's own calls have their results behind them, except those that wait; callers are calls before.

    Those that wait are in the last response that does something, or called in it, and no user has spoken since.
    """
    begun: dict[str, int] = {}
    known: set[str] = set()
    called: dict[int, set[str]] = {}
    for at, message in enumerate(messages):
        for block in message["content"]:
            caller = (block.get("caller") or {}).get("tool_id")
            assert caller is None or caller in known
            called.setdefault(at, set()).add(caller)
            if block["type"] == "tool_result":
                continue
            if "tool_use_id" in block:
                del begun[block["tool_use_id"]]
            elif block["type"].endswith("_tool_use"):
                begun[block["id"]] = at
                known.add(block["id"])
        _check_unique([b["id"] for b in message["content"] if b["type"].endswith("tool_use")])
    last = max((at for at, message in enumerate(messages) if _does(message)), default=0)
    assert all(begun[id] == last or id in called[last] for id in begun)
    after = [block for message in messages[last + 1 :] if message["role"] == "user" for block in message["content"]]
    assert not begun or all(block["type"] == "tool_result" for block in after)


def _does(message: dict[str, Any]) -> bool:
    """Whether a response does more than to say something."""
    words = ("text", "thinking", "redacted_thinking")
    return message["role"] == "assistant" and any(b["type"] not in words for b in message["content"])


def check_responses(items: list[dict[str, Any]]) -> None:
    """Each call has one output, which nobody's message parts from it; reasoning is followed by what it led to."""
    waiting: list[str] = []
    ids: list[str] = []
    for item, after in zip(items, [*items, {}][1:], strict=True):
        kind = item.get("type", "message")
        if kind in ("function_call", "custom_tool_call"):
            assert NAME.fullmatch(item["name"])
            assert len(item["call_id"]) <= 64
            assert kind == "custom_tool_call" or isinstance(json.loads(item["arguments"]), dict)
            waiting.append(item["call_id"])
            ids.append(item["call_id"])
        elif kind in ("function_call_output", "custom_tool_call_output"):
            assert item["call_id"] == waiting.pop(0)
        elif kind == "computer_call":
            raise AssertionError("nobody answers it here")
        elif kind == "reasoning":
            assert after
            assert after.get("role", "assistant") == "assistant"  # it led to something that the model wrote
            assert not after.get("type", "").endswith("_output")
        elif kind == "message" and item["role"] != "assistant":
            assert waiting == []
    assert waiting == []
    _check_unique(ids)
    _check_encodes(items)


def check_gemini(contents: Sequence[dict[str, Any]]) -> None:
    """User and model take turns; the results of a turn's calls are the next content, alone, in order, under its ids.

    What the SDK's types refuse, the API refuses.
    """
    from google.genai import types

    waiting: list[tuple[str, str | None]] = []
    before = "model"
    for content in contents:
        types.Content.model_validate_json(json.dumps(content))
        parts = content["parts"]
        assert parts
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        assert [(result["name"], result.get("id")) for result in results] == waiting
        kind = "results" if results else content["role"]
        assert (before, kind) in TURNS
        assert not results or all(part.keys() & {"functionResponse", "inlineData", "fileData"} for part in parts)
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        assert content["role"] == "model" or not calls
        assert all(NAME.fullmatch(call["name"]) and isinstance(call["args"], dict) for call in calls)
        assert all(part["text"].strip() for part in parts if content["role"] == "user" and "text" in part)
        assert all(any(part.values()) for part in parts)
        waiting, before = [(call["name"], call.get("id")) for call in calls], kind
    assert waiting == []
    _check_encodes(contents)


TURNS = {("model", "user"), ("model", "results"), ("results", "user"), ("results", "model"), ("user", "model")}
"""Who may follow whom at Gemini; a user's text is never in the content of results."""


def check_text(messages: Sequence[Message], format: Format, answers: Sequence[str]) -> None:
    """A conversation in a text format: words and images alone, turn about, with every answer in a user's message.

    Args:
        messages: the conversation.
        format: how its calls look.
        answers: what each result looks like, in order.
    """
    spoken = [m for m in messages if isinstance(m, UserMessage | AssistantMessage)]
    assert not any(isinstance(m, ToolMessage) for m in messages)
    assert not any(isinstance(p, ToolCall) for m in spoken for p in m.content)
    for before, message in pairwise(messages):
        assert type(before) is not type(message) or isinstance(message, SystemMessage)
    said = [p.text for m in spoken if isinstance(m, UserMessage) for p in m.content if isinstance(p, TextPart)]
    left = iter(said)
    assert all(answer in left for answer in answers), format.name


def _check_unique(ids: Sequence[str]) -> None:
    assert len(set(ids)) == len(ids)


def _check_encodes(wire: Iterable[dict[str, Any]]) -> None:
    json.dumps(wire, ensure_ascii=False, allow_nan=False).encode()
