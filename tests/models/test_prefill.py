"""Which models are asked to go on with a reply that was cut, what is sent for it, and what becomes of white space."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conversations import MESSAGES, PARTS
from hypothesis import given
from hypothesis import strategies as st

from agentkit import models
from agentkit.agent import Agent
from agentkit.messages import (
    AssistantMessage,
    Message,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolMessage,
    UserMessage,
    user,
)
from agentkit.models import prefill
from agentkit.models.base import ModelRequest, continues
from agentkit.models.messages_body import anthropic_messages
from agentkit.testing import Recording, Replay
from agentkit.tool.registry import ToolRegistry

RAN: list[tuple[str, str]] = []


def put(name: str, text: str) -> str:
    """Keep a text."""
    RAN.append((name, text))
    return "kept"


REGISTRY = ToolRegistry(put)
CALL = "<put>\n<name>a</name>\n<text>one\n    two</text>\n</put>"


def claude(text: str, reason: str = "end_turn") -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": reason, "usage": {}}


def chat(text: str, reason: str = "stop") -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": reason}]}


REFUSED = Recording(
    {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "This model does not support assistant message prefill. The conversation must end with a user "
            "message.",
        },
    },
    status=400,
)


def ran(tape: Replay, model: str, **settings: Any) -> Any:
    RAN.clear()
    result = Agent(tape.model(model, format="xml", **settings), REGISTRY, stream=False).run_sync("Go.")
    tape.assert_finished()
    return result


@pytest.mark.parametrize(
    ("model", "settings", "goes_on"),
    [
        ("anthropic:claude-3-7-sonnet-20250219", {}, True),
        ("anthropic:claude-3-5-haiku-latest", {}, True),
        ("anthropic:claude-sonnet-4-20250514", {}, True),
        ("anthropic:claude-opus-4-1-20250805", {}, True),
        ("anthropic:claude-haiku-4-5", {}, True),
        ("anthropic:claude-haiku-4-5", {"extra": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}, False),
        ("anthropic:claude-haiku-4-5", {"base_url": "http://127.0.0.1:1"}, False),
        ("anthropic:claude-opus-4-6", {}, False),
        ("anthropic:claude-sonnet-4-6-20260201", {}, False),
        ("anthropic:claude-opus-4-8", {}, False),
        ("anthropic:claude-opus-5", {}, False),
        ("anthropic:claude-opus-5", {"continues": True}, True),
        ("openai:gpt-5", {}, False),
        ("responses:gpt-5", {}, False),
        ("openai:deepseek-chat", {"base_url": "https://api.deepseek.com/v1"}, False),
        ("openai:deepseek-chat", {"base_url": "https://api.deepseek.com/beta"}, True),
        ("openai:mistral-large-latest", {"base_url": "https://api.mistral.ai/v1"}, True),
        ("openai:Qwen/Qwen3-8B", {"base_url": "http://127.0.0.1:8000/v1"}, False),
        ("openai:Qwen/Qwen3-8B", {"base_url": "http://127.0.0.1:8000/v1", "continues": True}, True),
        ("openai:mistral-large-latest", {"base_url": "https://api.mistral.ai/v1", "continues": False}, False),
    ],
)
def test_who_goes_on(model: str, settings: dict[str, Any], goes_on: bool) -> None:
    assert continues(models.model(model, api_key="sk-x-not-real", **settings)) == goes_on
    assert continues(models.model(model, api_key="sk-x-not-real", format="xml", **settings)) == goes_on


SENT = {
    "https://api.deepseek.com/beta": ({"prefix": True}, {}),
    "https://api.mistral.ai/v1": ({"prefix": True}, {}),
    "http://127.0.0.1:8000/v1": ({}, {"continue_final_message": True, "add_generation_prompt": False}),
}


@pytest.mark.parametrize("url", SENT)
def test_what_a_chat_server_is_sent_to_go_on(url: str) -> None:
    at = CALL.index("two")
    tape = Replay([chat(CALL[:at], "length"), chat(CALL[at:]), chat("Done.")])
    ran(tape, "openai:some", base_url=url, continues=True)
    assert list(RAN) == [("a", "one\n    two")]
    with_message, with_body = SENT[url]
    first, second, third = tape.requests
    assert second["messages"][-1] == {"role": "assistant", "content": CALL[:at], **with_message}
    fields = {"prefix", "continue_final_message", "add_generation_prompt"}
    assert {name: second[name] for name in fields & second.keys()} == with_body
    assert not fields & first.keys()
    assert not fields & third.keys()


@pytest.mark.parametrize("again", [True, False], ids=["written again", "gone on behind it"])
@pytest.mark.parametrize("at", [CALL.index("<name>"), CALL.index("two"), CALL.index("</put>")])
def test_white_space_at_the_end_is_not_sent_and_not_lost(at: int, again: bool) -> None:
    cut = CALL[:at]
    rest = CALL[len(cut.rstrip()) :] if again else CALL[at:]
    tape = Replay([claude(cut, "max_tokens"), claude(rest), claude("Done.")])
    result = ran(tape, "anthropic:claude-opus-4-5")
    assert tape.requests[1]["messages"][-1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": cut.rstrip()}],
    }
    assert list(RAN) == [("a", "one\n    two")]
    assert result.messages[1].calls[0].raw == CALL


@pytest.mark.parametrize("size", [1, 3, None])
def test_white_space_that_comes_in_pieces(size: int | None) -> None:
    for text, new in (("\n  x", "x"), ("x", "x"), ("\n", ""), ("\n    x", "  x"), ("  x", "  x")):
        untrimmed = prefill.UntrimmedContinuation("\n  ")
        pieces = [text[i : i + size] for i in range(0, len(text), size)] if size else [text]
        assert "".join(map(untrimmed.feed, pieces)) == new


def test_a_message_of_white_space_alone_is_not_sent() -> None:
    blank = AssistantMessage((TextPart(" \n"),))
    assert anthropic_messages([user("Hi"), blank], "anthropic") == anthropic_messages([user("Hi")], "anthropic")


@pytest.mark.parametrize("model", ["anthropic:claude-opus-4-5", "openai:some"])
def test_a_refusal_to_go_on_ends_the_reply_and_not_the_run(model: str) -> None:
    said = claude if model.startswith("anthropic") else chat
    limit = "max_tokens" if said is claude else "length"
    tape = Replay([said(f"{CALL}\n<put>\n<name>b</name>\n<te", limit), REFUSED, said("Done.")])
    result = ran(tape, model, continues=True)
    assert (result.finish, result.text, RAN) == ("stop", "Done.", [("a", "one\n    two")])
    assert [m.error for m in result.messages if isinstance(m, ToolMessage)] == [None, "truncated_call"]
    assert tape.requests[2]["messages"][-1]["role"] == "user"


def test_a_model_that_would_refuse_is_not_asked() -> None:
    tape = Replay([claude(CALL[:30], "max_tokens"), claude(CALL), claude("Done.")])
    ran(tape, "anthropic:claude-opus-4-6")
    assert tape.requests[1]["messages"][-1]["role"] == "user"
    assert list(RAN) == [("a", "one\n    two")]


# ---------------------------------------------------------------- a conversation that ends with a reply


MODELS = {
    "openai": (lambda text: chat(text), "messages"),
    "anthropic": (lambda text: claude(text), "messages"),
    "responses": (
        lambda text: {
            "status": "completed",
            "output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}],
        },
        "input",
    ),
}


def sent(prefix: str, messages: list[Message], **settings: Any) -> list[dict[str, Any]]:
    """What the provider is sent of a conversation."""
    say, field = MODELS[prefix]
    tape = Replay([say("Done.")])
    model = tape.model(f"{prefix}:some", **settings)

    async def ask() -> None:
        async for _ in model.stream(ModelRequest(messages, stream=False)):
            pass

    asyncio.run(ask())
    found: list[dict[str, Any]] = tape.requests[0][field]
    return found


@pytest.mark.parametrize("prefix", MODELS)
@given(messages=MESSAGES, end=st.lists(st.builds(AssistantMessage, PARTS.map(lambda part: (part,))), max_size=2))
def test_no_conversation_ends_with_a_reply_unless_the_model_continues(
    prefix: str, messages: list[Message], end: list[Message]
) -> None:
    wanted = [user("Hi"), *messages, *end]
    found = sent(prefix, wanted)
    assert found
    last = found[-1]
    blocks = last["content"] if prefix == "anthropic" else []
    assert last.get("role") != "assistant" or any(block["type"] not in ("text", "thinking") for block in blocks)
    assert last.get("type") != "reasoning"
    assert (
        found == sent(prefix, [*wanted, AssistantMessage((TextPart("Hello th"),))]) or last.get("role") == "assistant"
    )


@pytest.mark.parametrize("prefix", MODELS)
@pytest.mark.parametrize("part", [TextPart("Hello th"), ThinkingPart("Hm", "some", {"reasoning_content": "Hm"})])
def test_a_reply_that_was_lost_is_made_again(prefix: str, part: TextPart | ThinkingPart) -> None:
    first = sent(prefix, [user("Hi")])
    assert sent(prefix, [user("Hi"), AssistantMessage((part,))]) == first
    assert sent(prefix, [user("Hi"), AssistantMessage((part,)), UserMessage(())]) == first


@pytest.mark.parametrize("prefix", MODELS)
def test_white_space_of_a_reply_that_is_not_sent_is_not_taken_from_the_next(prefix: str) -> None:
    tape = Replay([MODELS[prefix][0]("\n\nDone.")])
    result = Agent(tape.model(f"{prefix}:some"), stream=False).run_sync(
        [user("Hi"), AssistantMessage((TextPart("So\n"),))]
    )
    assert result.messages[-1].text == "\n\nDone."


def test_what_a_provider_paused_is_sent_as_it_is() -> None:
    call = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    paused = AssistantMessage((TextPart("Let me see."), ProviderPart("anthropic", call)))
    assert [b["type"] for b in sent("anthropic", [user("Hi"), paused])[-1]["content"]] == ["text", "server_tool_use"]
