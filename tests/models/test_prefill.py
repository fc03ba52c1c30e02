"""Which models are asked to go on with a reply that was cut, what is sent for it, and what becomes of white space."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit import models
from agentkit.agent import Agent
from agentkit.messages import ToolMessage
from agentkit.models import prefill
from agentkit.models.base import continues
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
        untrimmed = prefill.Untrimmed("\n  ")
        pieces = [text[i : i + size] for i in range(0, len(text), size)] if size else [text]
        assert "".join(map(untrimmed.feed, pieces)) == new


def test_a_message_of_white_space_alone_is_not_sent() -> None:
    said: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    blank = {"type": "text", "text": " \n"}
    assert prefill.trimmed([*said, {"role": "assistant", "content": [blank]}]) == said
    thought = {"type": "thinking", "thinking": "…", "signature": "s"}
    kept = [*said, {"role": "assistant", "content": [thought]}]
    assert prefill.trimmed([*said, {"role": "assistant", "content": [thought, blank]}]) == kept


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
