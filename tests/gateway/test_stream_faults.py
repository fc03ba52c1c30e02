"""Faults of chat completions: of streams that real servers sent (`data/odd_wires.jsonl`), and of whole replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recordings import ABSENT, rows

from agentkit.gateway import stream_faults as faults
from agentkit.gateway.stream_faults import faults_of

FILE = Path(__file__).parents[1] / "data" / "odd_wires.jsonl"
ROWS: dict[str, Any] = {row["id"]: row for row in map(json.loads, FILE.read_text(encoding="utf-8").splitlines())}


def stream(events: list[Any]) -> bytes:
    return "".join(f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n" for e in events).encode()


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("cloudflare-text-between", ()),
        ("interleaved-by-index", ()),
        ("vllm-all-0", (faults.SHARED,)),
        ("sglang-all-0-id-on-each", (faults.SHARED, faults.REPEATED)),
        ("ollama-no-index", (faults.NO_INDEX,)),
        ("bedrock-index-from-1", (faults.GAPS,)),
        ("glm-index-minus-1", (faults.NO_TEXT, faults.GAPS)),
        ("oci-empty-names-and-own-response-ids", (faults.STOP,)),
        ("nebius-index-counts-up", (faults.UNJOINED,)),
        ("arguments-twice", (faults.UNJOINED,)),
        ("copilot-calls-in-another-choice", (faults.OTHER_CHOICE,)),
        ("one-id-for-all", (faults.SAME_ID,)),
        ("vllm-no-ids-all-0", (faults.NO_ID, faults.SHARED)),
    ],
)
def test_what_real_servers_sent(row: str, found: tuple[str, ...]) -> None:
    assert (
        tuple(one for one in faults_of(stream(ROWS[row]["stream"]), streamed=True) if one != faults.NO_USAGE) == found
    )


CALL = {"id": "a", "function": {"name": "get", "arguments": "{}"}}
USAGE = {"completion_tokens": 5}


@pytest.mark.parametrize(
    ("message", "reason", "usage", "found"),
    [
        ({"content": "Hi."}, "stop", USAGE, ()),
        ({"tool_calls": [CALL]}, "tool_calls", USAGE, ()),
        ({"tool_calls": [CALL]}, "stop", USAGE, (faults.STOP,)),
        ({"tool_calls": [CALL | {"id": None}]}, "tool_calls", None, (faults.NO_USAGE, faults.NO_ID)),
        ({"tool_calls": [{"id": "a", "function": {"name": "get", "arguments": {}}}]}, None, USAGE, (faults.NO_FINISH,)),
    ],
)
def test_a_whole_reply(message: dict[str, Any], reason: str | None, usage: Any, found: tuple[str, ...]) -> None:
    body = {"choices": [{"message": message, "finish_reason": reason}], "usage": usage}
    assert faults_of(json.dumps(body).encode(), streamed=False) == found
    assert faults_of(json.dumps(body).encode(), streamed=True) == (faults.NO_STREAM, *found)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"data: {\n\n", b"data: \xff\n\n", b'data: {"choices": 5}\n\n'])
def test_no_body_whatever_raises(body: bytes) -> None:
    faults_of(body, streamed=True)
    faults_of(body, streamed=False)


def test_arguments_that_are_an_object() -> None:
    call = {"id": "a", "function": {"name": "get", "arguments": {"city": "Ulm"}}}
    body = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}], "usage": USAGE}
    assert faults_of(json.dumps(body).encode(), streamed=False) == (faults.NO_TEXT,)


RECORDED = [row for row in rows("wire.jsonl") if row["api"] == "openai-chat" and row["response"].get("sse")]


@pytest.mark.parametrize(
    "row",
    RECORDED or [pytest.param({}, marks=pytest.mark.skip(reason=ABSENT))],
    ids=lambda row: row.get("id", "absent"),
)
def test_what_providers_stream_harms_no_client(row: dict[str, Any]) -> None:
    body = row["response"]["sse"].encode()
    whole = faults.NO_FINISH if b'"error"' in body else None  # one provider's stream ends with its error
    assert set(faults_of(body, streamed=True)) - faults.HARMLESS <= {whole}
