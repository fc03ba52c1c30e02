"""Rollouts of models that call natively: run and answered as native calls; a call in their text is text."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from replay_server import ReplayServer
from rollout_kit import Lines, Sum, failures, hermes, rolled, said, sample
from small_tokenizers import tokenizer

from agentkit import model
from agentkit.errors import ConfigError
from agentkit.events import CallEnd, CallStart, Finish, SourceEvent, Text, Thinking
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.rollout import Generation, ModelPolicy, RecordFile, Rollout, RolloutLimits, read_records
from agentkit.testing import ScriptedModel


def chunks(*deltas: dict[str, Any], finish: str = "tool_calls") -> bytes:
    """A stream of chat completions, as an OpenAI-compatible server sends it."""
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [*({"delta": delta} for delta in deltas), {"delta": {}, "finish_reason": finish}]
    lines = (json.dumps(chunk | {"choices": [choice | {"index": 0}]}) for choice in choices)
    return b"".join(f"data: {line}\n\n".encode() for line in lines) + b"data: [DONE]\n\n"


def called(*arguments: str, name: str = "add") -> dict[str, Any]:
    return {
        "tool_calls": [
            {"index": at, "id": f"c{at}", "type": "function", "function": {"name": name, "arguments": text}}
            for at, text in enumerate(arguments)
        ]
    }


def test_a_chat_server_calls_natively_and_is_answered_natively() -> None:
    """add(1…8) in one trajectory; every request has the tools, the calls so far and their answers."""
    turns = [chunks(called(json.dumps({"n": n}))) for n in range(1, 9)]
    with ReplayServer([*turns, chunks({"content": "36."}, finish="stop")]) as at:
        policy = ModelPolicy(model("openai:m", base_url=at.url), format=None)
        record = asyncio.run(Rollout([Sum], policy, format=None).run(sample()))
        asked = [request.body for request in at.requests]
    assert said(record) == ["1", "3", "6", "10", "15", "21", "28", "36"]
    assert (record.end, record.messages[-1].text, len(asked)) == ("answered", "36.", 9)
    assert [tool["function"]["name"] for tool in asked[0]["tools"]] == ["add"]
    assert asked[1]["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c0", "type": "function", "function": {"name": "add", "arguments": '{"n": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "c0", "content": "1"},
    ]
    assert len({call.id for call in record.calls}) == 8  # the server gave each the same id


def test_calls_of_one_response_run_at_once_and_are_answered_in_order() -> None:
    turns = [chunks(called('{"n": 1}', '{"n": 2}', '{"n": }')), chunks({"content": "3."}, finish="stop")]
    with ReplayServer(turns) as at:
        policy = ModelPolicy(model("openai:m", base_url=at.url), format=None)
        record = asyncio.run(
            Rollout([Sum], policy, format=None, limits=RolloutLimits(max_parallel_calls=3)).run(sample())
        )
    assert failures(record) == [None, None, "invalid_json"]
    assert said(record)[:2] == ["1", "3"]
    assert [m.call_id for m in record.messages if isinstance(m, ToolMessage)] == ["c0", "c1", "c2"]


def one(*events: SourceEvent, finish: Any = "tool_calls") -> Generation:
    return Generation(events=events, finish=finish)


CALL = CallEnd(0, ToolCall("c1", "add", {"n": 1}))


def test_a_policy_of_ones_own_tells_events() -> None:
    record = rolled([Sum], one(Thinking("Hm."), Text("I add."), CALL), "It is 1.", format=None)
    assert said(record) == ["1"]
    asked = record.messages[1]
    assert isinstance(asked, AssistantMessage)
    assert (asked.thinking, asked.text, [call.name for call in asked.calls]) == ("Hm.", "I add.", ["add"])
    assert (record.end, record.messages[-1].text) == ("answered", "It is 1.")


def test_a_call_in_the_text_of_such_a_model_is_text() -> None:
    record = rolled([Sum], one(Text(hermes("add", n=1)), finish="stop"), format=None)
    assert (record.calls, record.end) == ((), "unread_call")
    assert record.messages[-1].text == hermes("add", n=1)


def test_a_call_that_did_not_end_is_answered_with_an_error() -> None:
    record = rolled([Sum], one(CallStart(0, "add", "c1"), finish="length"), format=None)
    assert failures(record) == ["truncated_call"]


def test_the_record_is_kept_in_a_file(tmp_path: Path) -> None:
    record = rolled([Sum], one(Thinking("Hm."), CALL), format=None)
    with RecordFile(tmp_path / "run.jsonl") as file:
        file.append(record)
    assert list(read_records(tmp_path / "run.jsonl")) == [record]


# ---------------------------------------------------------------- what does not go together


def test_tokens_of_native_calls_are_not_known() -> None:
    with pytest.raises(ConfigError, match=r"tokenizer=…\): a server that reads native calls .* omit the tokenizer"):
        Rollout([Sum], Lines(), format=None, tokenizer=tokenizer("chatml"))


def test_token_ids_alone_cannot_be_read() -> None:
    record = rolled([Sum], Generation(token_ids=[1, 2]), format=None)
    assert (record.end, record.error) == (
        "policy_error",
        "ConfigError: the policy returned token ids only; Rollout(format=None) reads a response's events, or its text",
    )


def test_native_calls_in_a_rollout_that_reads_text() -> None:
    record = rolled([Sum], one(CALL))
    assert record.end == "policy_error"
    assert "the rollout reads hermes: use Rollout(format=None)" in str(record.error)


@pytest.mark.parametrize(("taught", "read"), [("hermes", "xml"), (None, "hermes"), ("hermes", None)])
def test_a_model_that_is_taught_one_format_is_not_read_in_another(taught: Any, read: Any) -> None:
    policy = ModelPolicy(ScriptedModel([[Text("."), Finish("stop")]], format=None), taught)
    with pytest.raises(ConfigError, match=f"this policy's calls are in the format {taught!r}; name the same format"):
        Rollout([Sum], policy, read)


@pytest.mark.parametrize("reason", ["content_filter", "refusal"])
@pytest.mark.parametrize("where", ["finish", "events"])
def test_no_call_runs_that_the_provider_took_back(reason: Any, where: str) -> None:
    call = CallEnd(0, ToolCall("a", "add", {"n": 1}))
    line = Generation(events=[call], finish=reason) if where == "finish" else Generation(events=[call, Finish(reason)])
    record = rolled([Sum], line, format=None)
    assert (failures(record), record.end) == (["denied"], "answered")
