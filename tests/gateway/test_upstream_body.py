"""A request's body for the upstream: unchanged, but for the name of the model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recordings import ABSENT, rows

from agentkit.gateway.request_tools import offered_tools
from agentkit.gateway.upstream_body import upstream_body

ROWS = [row["request"]["body"] for row in rows("wire.jsonl") if row["request"]["body"]]


def test_the_model_it_has_changes_nothing() -> None:
    raw = b'{ "model": "a" }'
    assert upstream_body(raw, {"model": "a"}, "a") is raw


def test_only_the_name_of_the_model_changes() -> None:
    raw = '{"temperature": 1.0, "model":"a/ü", "messages": [{"content": "the \\"model\\": a"}]}'.encode()
    assert upstream_body(raw, json.loads(raw), "b") == raw.replace("a/ü".encode(), b"b")


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model": "\\u0061", "n": 1}',
        b'{"metadata": {"model": "a"}, "model": "a", "n": 1}',
        b'{"model": "x", "model": "a", "n": 1}',
    ],
)
def test_a_body_in_which_the_name_is_not_found_is_written_again(raw: bytes) -> None:
    body = json.loads(raw)
    assert json.loads(upstream_body(raw, body, "b")) == {**body, "model": "b"}


@pytest.mark.skipif(not ROWS, reason=ABSENT)
def test_everything_else_in_a_recorded_request_is_equal() -> None:
    for body in ROWS:
        raw = json.dumps(body).encode()
        renamed = upstream_body(raw, body, "other")
        assert json.loads(renamed) == {**body, "model": "other"}
        name = json.dumps(body.get("model")).encode()
        assert raw.count(b'"model"') != 1 or renamed == raw.replace(b'"model": ' + name, b'"model": "other"')


TOOL = {"name": "add", "description": "Add.", "parameters": {"type": "object", "properties": {}}}
CHAT: dict[str, Any] = {"tools": [{"type": "function", "function": TOOL}]}


def test_the_tools_that_are_offered() -> None:
    schema = TOOL["parameters"]
    messages = {"tools": [{**TOOL, "input_schema": schema}, {"type": "web_search_20250305", "name": "web_search"}]}
    responses = {"tools": [{"type": "function", **TOOL}, {"type": "web_search"}]}
    (chat,) = offered_tools("chat", CHAT)
    assert (chat.name, chat.description, chat.parameters) == ("add", "Add.", schema)
    assert offered_tools("messages", messages) == offered_tools("responses", responses) == (chat,)


def test_only_the_tool_that_must_be_called() -> None:
    two = {"tools": [*CHAT["tools"], {"type": "function", "function": {"name": "note"}}]}
    choice = {"type": "function", "function": {"name": "note"}}
    assert [tool.name for tool in offered_tools("chat", {**two, "tool_choice": choice})] == ["note"]
    named = {"tools": [{"name": "add"}, {"name": "note"}], "tool_choice": {"type": "tool", "name": "add"}}
    assert [tool.name for tool in offered_tools("messages", named)] == ["add"]


def test_the_same_tools_are_the_same_objects() -> None:
    assert offered_tools("chat", CHAT)[0] is offered_tools("chat", json.loads(json.dumps(CHAT)))[0]


@pytest.mark.parametrize(
    "more",
    [
        {"tools": []},
        {"tools": 5},
        {"tools": CHAT["tools"] * 1_025},
        {"tool_choice": "none"},
        {"tool_choice": {"type": "none"}},
        {"n": 2},
    ],
    ids=["none", "no list", "too many", "choice", "type", "several"],
)
def test_no_tool_may_be_called(more: dict[str, Any]) -> None:
    assert offered_tools("chat", {**CHAT, **more}) == ()
