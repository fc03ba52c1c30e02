"""Text calling on servers of open models: how each is asked, and what is said of a reply from which a call was cut."""

from __future__ import annotations

from typing import Any

import pytest
from streams import answer, events_of

from agentkit.errors import ConfigError
from agentkit.events import Finish, Text
from agentkit.models import model
from agentkit.models.servers import SERVERS
from agentkit.testing import Replay
from agentkit.toolspec import ToolSpec

PING = [ToolSpec("ping", "Ping.", {"type": "object", "properties": {}})]
LOCAL = "http://127.0.0.1:8000/v1"


def reply(text: str | None, tokens: int, finish: str = "stop", **fields: Any) -> dict[str, Any]:
    choices = [{"message": {"content": text, **fields}, "finish_reason": finish}]
    return {"choices": choices, "usage": {"prompt_tokens": 9, "completion_tokens": tokens}}


@pytest.mark.parametrize("server", SERVERS)
def test_a_named_server_is_asked_to_leave_calls_in_the_text(server: str) -> None:
    tape = Replay([reply("Hi", 2)])
    made = tape.model("openai:m", base_url=LOCAL, server=server, format="hermes")
    assert Text("Hi") in events_of(made, tools=PING, stream=False)
    assert {k: v for k, v in tape.requests[0].items() if k in ("skip_special_tokens", "parse_tool_calls")} == {
        "vllm": {"skip_special_tokens": False},
        "sglang": {"skip_special_tokens": False},
        "llamacpp": {"parse_tool_calls": False},
    }.get(server, {})


@pytest.mark.parametrize(
    "settings", [{}, {"format": "hermes"}, {"server": "vllm"}], ids=["plain", "unnamed", "native calls"]
)
def test_nobody_else_is_asked(settings: dict[str, Any]) -> None:
    tape = Replay([reply("Hi", 2)])
    events_of(tape.model("openai:m", **settings), tools=PING, stream=False)
    assert tape.requests[0].keys() <= {"model", "messages", "stream", "tools", "tool_choice"}


def test_what_the_author_says_wins() -> None:
    tape = Replay([reply("Hi", 2)])
    made = tape.model("openai:m", server="vllm", format="hermes", extra={"skip_special_tokens": True})
    events_of(made, stream=False)
    assert tape.requests[0]["skip_special_tokens"] is True


def test_an_unknown_server_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"model\(server='vLLM'\): expected one of vllm, sglang, llamacpp, ollama, lm"
    ):
        model("openai:m", base_url=LOCAL, server="vLLM")


@pytest.mark.parametrize(
    ("server", "advice"),
    [("vllm", "start vLLM without --tool-call-parser"), (None, "name the server with model(…, server=…)")],
)
def test_a_call_that_was_cut_out_is_told(server: str | None, advice: str) -> None:
    made = Replay([reply("", 24)]).model("openai:m", base_url=LOCAL, server=server, format="qwen3_coder")
    _, error = answer(made, tools=PING, stream=False)
    assert error is not None
    assert str(error).startswith("127.0.0.1:8000: the model wrote 24 tokens, but the reply has no text: ")
    assert advice in str(error)


@pytest.mark.parametrize(
    "body",
    [
        reply("Hi", 24),
        reply("", 1),  # the end of the reply alone
        reply("", 24, reasoning="Hm."),
        reply("", 24, "length"),
        {"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]},
        reply("", 24) | {"usage": {"completion_tokens": 24, "completion_tokens_details": {"reasoning_tokens": 22}}},
    ],
    ids=["text", "empty", "thinking", "cut", "no usage", "hidden thinking"],
)
def test_what_is_no_sign_of_it(body: dict[str, Any]) -> None:
    events_of(Replay([body]).model("openai:m", base_url=LOCAL, format="hermes"), tools=PING, stream=False)


@pytest.mark.parametrize("block", [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": " "}])
def test_a_reply_without_words_of_anthropics_own_is_no_sign_either(block: dict[str, Any]) -> None:
    body = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block]}
    body |= {"stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 9}}
    made = Replay([body]).model("anthropic:m", format="xml")
    (end,) = [event for event in events_of(made, tools=PING, stream=False) if isinstance(event, Finish)]
    assert end.reason == "stop"
