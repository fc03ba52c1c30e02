"""Every recorded exchange, as bytes through the real SDK: what we read equals what the SDK itself accumulates."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from recordings import ABSENT, recording, rows
from streams import answer
from wire_rules import check_anthropic, check_chat, check_gemini, check_responses

from agentkit.errors import ProviderError
from agentkit.events import CallEnd, CallError, Event, Finish, Text, UnreadCall, Usage
from agentkit.messages import Message, ToolCall, user
from agentkit.models import ModelRequest
from agentkit.models.gemini import gemini_contents
from agentkit.models.messages_body import anthropic_messages
from agentkit.models.openai import chat_messages
from agentkit.models.responses import responses_input
from agentkit.processor import ResponseProcessor
from agentkit.testing import Replay
from agentkit.testing.replay import Chunks
from agentkit.tool.registry import ToolRegistry
from agentkit.toolspec import ToolSpec

ROWS = rows("wire.jsonl") + [row for row in rows("wire_other.jsonl") if row["api"] == "gemini"]
ERRORS = rows("wire_errors.jsonl")

PREFIXES = {
    "openai-chat": "openai",
    "openai-responses": "responses",
    "anthropic-messages": "anthropic",
    "gemini": "gemini",
}

KINDS = {400: "bad_request", 401: "authentication", 404: "not_found", 429: "rate_limit"}


def pieces_of_any_size(body: bytes) -> Iterator[bytes]:
    sizes = random.Random(len(body))
    at = 0
    while at < len(body):
        size = sizes.choice([1, 2, 3, 7, 50, 400])
        yield body[at : at + size]
        at += size


CHUNKS: dict[str, Chunks] = {"bytes": 1, "random": pieces_of_any_size, "lines": "lines"}


FINAL = ToolSpec("final_result", "", {})
"""The tool of the rows in which a server refuses the model's reply."""


class Read(NamedTuple):
    """What a response says, whoever reads it."""

    text: str
    calls: list[tuple[str, str, Any]]
    usage: Usage | None


def run(row: dict[str, Any], chunks: Chunks) -> tuple[list[Event], ProviderError | None]:
    """Our events of a row, and the error in which they end."""
    model = Replay([recording(row)], chunks=chunks).model(f"{PREFIXES[row['api']]}:m")
    tools = [FINAL] if "failed_generation" in json.dumps(row["response"]) else []
    return answer(model, stream="sse" in row["response"], tools=tools)


def ours(events: Iterable[Event]) -> Read:
    calls = [e.call for e in events if isinstance(e, CallEnd | CallError)]
    return Read(
        "".join(e.text for e in events if isinstance(e, Text)),
        [(c.id, c.name, arguments_of(c)) for c in calls],
        next((e for e in events if isinstance(e, Usage)), None),
    )


def arguments_of(call: ToolCall) -> Any:
    """The arguments; of a truncated call those that have come, as the SDK shows them."""
    from jiter import from_json

    return call.arguments or (from_json(call.raw.encode(), partial_mode=True) if call.raw else {})


# ---------------------------------------------------------------- the SDKs' own reading


async def chat(row: dict[str, Any]) -> Read:
    import openai
    from openai.lib.streaming.chat import ChatCompletionStreamState

    client = openai.AsyncOpenAI(api_key="k", http_client=Replay([recording(row)]).client())
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    if "sse" in row["response"]:
        state: Any = ChatCompletionStreamState()
        async for chunk in await client.chat.completions.create(**asked, stream=True):
            state.handle_chunk(chunk)
        whole = state.get_final_completion()
    else:
        whole = await client.chat.completions.create(**asked)
    message, usage = whole.choices[0].message, whole.usage
    calls = [(c.id, c.function.name, json.loads(c.function.arguments or "{}")) for c in message.tool_calls or []]
    if usage is None:
        return Read(message.content or "", calls, None)
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    cached, written = (prompt.cached_tokens, prompt.cache_write_tokens) if prompt else (0, 0)
    reasoning = completion.reasoning_tokens if completion else 0
    counts = (usage.prompt_tokens, usage.completion_tokens, cached or 0, written or 0, reasoning or 0)
    return Read(message.content or "", calls, Usage(*counts))


async def responses(row: dict[str, Any]) -> Read:
    import openai

    client = openai.AsyncOpenAI(api_key="k", http_client=Replay([recording(row)]).client())
    if "sse" in row["response"]:
        async with client.responses.stream(model="m", input="Hi") as stream:
            whole: Any = await stream.get_final_response()
    else:
        whole = await client.responses.create(model="m", input="Hi")
    calls = [(i.call_id, i.name, json.loads(i.arguments)) for i in whole.output if i.type == "function_call"]
    calls += [(i.call_id, i.name, {"input": i.input}) for i in whole.output if i.type == "custom_tool_call"]
    usage = whole.usage
    read = usage.input_tokens_details
    counts = (
        usage.input_tokens,
        usage.output_tokens,
        read.cached_tokens,
        getattr(read, "cache_write_tokens", None) or 0,
    )
    return Read(whole.output_text, calls, Usage(*counts, usage.output_tokens_details.reasoning_tokens))


async def messages(row: dict[str, Any]) -> Read:
    import anthropic

    client = anthropic.AsyncAnthropic(api_key="k", http_client=Replay([recording(row)]).client())
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 100}
    if "sse" in row["response"]:
        async with client.messages.stream(**asked) as stream:
            whole: Any = await stream.get_final_message()
    else:
        whole = await client.messages.create(**asked)
    text = "".join(b.text for b in whole.content if b.type == "text")
    calls = [(b.id, b.name, b.input) for b in whole.content if b.type == "tool_use"]
    usage = whole.usage
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    thought = usage.output_tokens_details.thinking_tokens if usage.output_tokens_details else 0
    return Read(text, calls, Usage(usage.input_tokens + read + written, usage.output_tokens, read, written, thought))


async def gemini(row: dict[str, Any]) -> Read:
    from google import genai

    client = genai.Client(api_key="k", http_options={"httpx_async_client": Replay([recording(row)]).client()})
    asked: Any = {"model": "m", "contents": "Hi"}
    if "sse" in row["response"]:
        pieces = [piece async for piece in await client.aio.models.generate_content_stream(**asked)]
    else:
        pieces = [await client.aio.models.generate_content(**asked)]
    calls = [(c.id or "", c.name or "", c.args) for piece in pieces for c in piece.function_calls or ()]
    usage: Any = pieces[-1].usage_metadata
    thought = usage.thoughts_token_count or 0
    counts = (
        usage.prompt_token_count + (usage.tool_use_prompt_token_count or 0),
        (usage.candidates_token_count or 0) + thought,
        usage.cached_content_token_count or 0,
        0,
        thought,
    )
    return Read("".join(piece.text or "" for piece in pieces), calls, Usage(*counts))


SDK = {"openai-chat": chat, "openai-responses": responses, "anthropic-messages": messages, "gemini": gemini}

GOOD = [row for row in ROWS if row["response"]["status"] == 200]
REFUSED = [row for row in ROWS if row["response"]["status"] != 200]

REFUSED_REPLY = [Text("maybe"), UnreadCall("maybe", ""), Finish("stop", "tool_use_failed")]
"""What Groq's model wrote in place of a call that it had to make; Groq reports it as an error."""


def ids(row: object) -> str:
    return str(row["id"]) if isinstance(row, dict) else str(row)


@pytest.mark.share(4)
@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("row", GOOD, ids=ids)
def test_row_reads_as_the_sdk_reads_it(row: dict[str, Any], chunks: str) -> None:
    events, error = run(row, CHUNKS[chunks])
    assert error is None
    if "failed_generation" in row["response"].get("sse", ""):
        assert events[-3:] == [Text("maybe"), UnreadCall("", ""), Finish("stop", "tool_use_failed")]
        return
    assert isinstance(events[-1], Finish)
    assert ours(events) == asyncio.run(SDK[row["api"]](row))


DIGESTS = dict(
    line.split() for line in (Path(__file__).parents[1] / "data" / "wire_readings.txt").read_text().splitlines()
)
"""Of each recorded exchange, what was read of it when the readings were recorded."""


ENDS = CallEnd | CallError | UnreadCall


def digest(row: dict[str, Any]) -> str:
    """What is read of a row: its text, its calls with what becomes of them, its finish, and its error."""
    events, error = run(row, "whole")
    ends = [
        (type(e).__name__, getattr(e, "code", "")) for e in events if isinstance(e, CallEnd | CallError | UnreadCall)
    ]
    last = [list(e) for e in events if isinstance(e, Finish)]
    read = [ours(events), ends, last, error and [error.kind, error.status, error.code]]
    return hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()[:16]


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("row", [*ROWS, *ERRORS], ids=ids)
def test_row_reads_as_it_was_read(row: dict[str, Any]) -> None:
    assert digest(row) == DIGESTS[row["id"]]


RENDER: dict[str, Callable[[list[Message], str], Any]] = {
    "openai-chat": chat_messages,
    "openai-responses": responses_input,
    "anthropic-messages": anthropic_messages,
    "gemini": gemini_contents,
}
RULES: dict[str, Callable[[Any], None]] = {
    "openai-chat": check_chat,
    "openai-responses": check_responses,
    "anthropic-messages": check_anthropic,
    "gemini": check_gemini,
}


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("row", GOOD, ids=ids)
def test_what_came_in_can_be_sent_back(row: dict[str, Any]) -> None:
    """The response, through the processor into a conversation, is a valid next request with the same calls in it."""

    async def turn() -> list[Message]:
        model = Replay([recording(row)]).model(f"{PREFIXES[row['api']]}:m")
        read = ResponseProcessor(ToolRegistry()).process(
            model.stream(ModelRequest([user("Hi")], stream="sse" in row["response"]))
        )
        with contextlib.suppress(ProviderError):
            async for _ in read:
                pass
        return [user("Hi"), read.message, *read.results, user("Go on")]

    conversation = asyncio.run(turn())
    sent = RENDER[row["api"]](conversation, PREFIXES[row["api"]])
    RULES[row["api"]](sent)
    again = json.dumps(sent, ensure_ascii=False)
    for call in ours(run(row, "whole")[0]).calls:
        assert f'"{call[0]}"' in again or not call[0]
    for signature in re.findall(r'"thoughtSignature": ?"(.*?)"', json.dumps(row["response"]).replace("\\", "")):
        assert f'"{signature}"' in again


@pytest.mark.skipif(not ERRORS, reason=ABSENT)
@pytest.mark.parametrize("row", [*ERRORS, *REFUSED], ids=ids)
def test_error_row_gives_its_provider_error(row: dict[str, Any]) -> None:
    events, error = run(row, "whole")
    body = row["response"]["body"]["error"]
    if "failed_generation" in body:
        assert (events, error) == (REFUSED_REPLY, None)
        return
    assert events == []
    assert error is not None
    assert (error.kind, error.status) == (KINDS[row["response"]["status"]], row["response"]["status"])
    assert error.code == str(body.get("code") or body["type"])
    assert body["message"] in str(error)
