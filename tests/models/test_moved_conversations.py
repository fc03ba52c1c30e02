"""Conversations made of recorded replies of all providers, with images and files, moved to each provider and back."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import pytest
from recordings import ABSENT, recording, rows
from wire_rules import check_anthropic, check_chat, check_converse, check_gemini, check_responses

from agentkit import FilePart
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import SourceEvent
from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    user,
)
from agentkit.models import ModelRequest, anthropic, bedrock_body, gemini, messages_body, openai, responses
from agentkit.models.converse_wire import ConverseWire, events_of
from agentkit.models.files_taken import FilesTaken, fit_files
from agentkit.processor import ResponseProcessor
from agentkit.testing import Replay
from agentkit.tool.codec import from_json, to_json
from agentkit.tool.registry import ToolRegistry

PREFIXES = {
    "openai-chat": "openai",
    "openai-responses": "responses",
    "anthropic-messages": "anthropic",
    "gemini": "gemini",
    "bedrock-converse": "bedrock",
}
ROWS = [row for name in ("wire.jsonl", "wire_other.jsonl") for row in rows(name) if row["api"] in PREFIXES]
GOOD = [row for row in ROWS if row["response"]["status"] == 200]

THOUGHT = [  # of which no recording of Bedrock has any
    {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "of Bedrock's own"}}},
    {"reasoningContent": {"redactedContent": b"sealed by Bedrock"}},
    {"toolUse": {"toolUseId": "tooluse_1", "name": "weather", "input": {"city": "東京"}}},
]

FILES: tuple[ImagePart | FilePart, ...] = (
    ImagePart(b"png"),
    ImagePart(b"BM", "image/bmp"),
    ImagePart(url="https://ada:secret@a.example/y.png"),
    FilePart(b"%PDF-1.7", name="a.pdf"),
    FilePart(url="https://a.example/b.pdf"),
    FilePart(b"a,b", "text/csv"),
    FilePart(b"RIFF", "audio/wav"),
    FilePart(b"\0\0\0 ftyp", "video/mp4", name="c.mp4"),
    FilePart(b"PK", "application/zip"),
)


class Wire(NamedTuple):
    """How a conversation is written for a provider, the rules for that, and the files that it takes."""

    make: Callable[[Sequence[Message], str], list[dict[str, Any]]]
    check: Callable[[list[dict[str, Any]]], None]
    files: FilesTaken

    def sent(self, said: Sequence[Message], provider: str) -> list[dict[str, Any]]:
        return self.make(fit_files("m", ModelRequest(said), self.files), provider)


def converse(said: Sequence[Message], provider: str) -> list[dict[str, Any]]:
    blocks = messages_body.anthropic_messages(said, provider, content=bedrock_body.content_of)
    return bedrock_body.converse_messages(blocks)


WIRES: Final = {
    "openai": Wire(openai.chat_messages, check_chat, openai.FILES),
    "responses": Wire(responses.responses_input, check_responses, responses.FILES),
    "anthropic": Wire(messages_body.anthropic_messages, check_anthropic, anthropic.FILES),
    "gemini": Wire(gemini.gemini_contents, check_gemini, gemini.FILES),
    "bedrock": Wire(converse, check_converse, bedrock_body.FILES),
}


async def of_bedrock(body: Mapping[str, Any]) -> AsyncIterator[SourceEvent]:
    wire = ConverseWire("bedrock")
    for event in [*(found for one in events_of(body) for found in wire.feed(one)), *wire.close()]:
        yield event


def source(row: Mapping[str, Any]) -> AsyncIterator[SourceEvent]:
    if row["api"] == "bedrock-converse":
        return of_bedrock(row["response"]["body"])
    model = Replay([recording(row)]).model(f"{PREFIXES[row['api']]}:m")
    return model.stream(ModelRequest([user("Hi")], stream="sse" in row["response"]))


async def turn(events: AsyncIterator[SourceEvent]) -> list[Message]:
    read = ResponseProcessor(ToolRegistry()).process(events)
    with contextlib.suppress(ProviderError):
        async for _ in read:
            pass
    return [from_json(json.loads(json.dumps(to_json(message)))) for message in (read.message, *read.results)]


@cache
def replies() -> dict[str, list[list[Message]]]:
    """Each provider's replies with the results of their calls, as they were kept by a store."""

    async def all_of_them() -> dict[str, list[list[Message]]]:
        found: dict[str, list[list[Message]]] = {prefix: [] for prefix in PREFIXES.values()}
        for row in GOOD:
            found[PREFIXES[row["api"]]].append(await turn(source(row)))
        thought = {"output": {"message": {"content": THOUGHT}}, "stopReason": "tool_use"}
        found["bedrock"].append(await turn(of_bedrock(thought)))
        return found

    return asyncio.run(all_of_them())


def conversation(draw: random.Random) -> list[Message]:
    """Replies of any providers, with a user's words and files between them; results are lost or have files."""
    said: list[Message] = [user("Hi")]
    for _ in range(draw.randint(1, 8)):
        said += [user("Look", *draw.sample(FILES, draw.randint(1, 3)))] * draw.randint(0, 1)
        for message in draw.choice(replies()[draw.choice([*WIRES])]):
            if isinstance(message, ToolMessage) and draw.random() < 0.1:
                continue
            if isinstance(message, ToolMessage) and draw.random() < 0.1:
                message = ToolMessage(message.call_id, message.name, (TextPart("See"), *FILES[:3]))
            said.append(message)
        said += [user("Go on")] * draw.randint(0, 1)
    return said


def own(said: Sequence[Message], provider: str) -> set[str]:
    """The thinking in a conversation that only this provider can read: its signatures and encrypted pieces."""
    parts = [p for m in said if isinstance(m, AssistantMessage) for p in m.content]
    kept = [p.data for p in parts if isinstance(p, ProviderPart | ThinkingPart) and p.provider == provider and p.data]
    sealed = {data[name] for data in kept for name in ("thoughtSignature", "signature") if data.get(name)}
    return sealed | {data["data"] for data in kept if data.get("type") == "redacted_thinking"}


def text_of(sent: Any) -> str:
    """What is sent, as JSON; bytes as boto3 writes them."""
    return json.dumps(sent, ensure_ascii=False, default=lambda data: base64.b64encode(data).decode())


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.share(6)
@pytest.mark.parametrize("first", range(0, 600, 50))
@pytest.mark.parametrize("provider", WIRES)
def test_600_conversations_moved_between_providers_stay_valid(provider: str, first: int) -> None:
    wire = WIRES[provider]
    for seed in range(first, first + 50):
        said = conversation(random.Random(seed))
        sent = wire.sent(said, provider)
        wire.check(sent)
        text = text_of(sent)
        assert provider != "bedrock" or "secret" not in text
        for other in WIRES:
            for signature in own(said, other):
                assert (json.dumps(signature) in text) <= (other == provider)


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("provider", ["gemini", "bedrock"])
def test_a_provider_gets_its_own_signatures_back(provider: str) -> None:
    found = 0
    for seed in range(200):
        said = conversation(random.Random(seed))
        text = text_of(WIRES[provider].sent(said, provider))
        assert all(json.dumps(signature) in text for signature in own(said, provider))
        found += len(own(said, provider))
    assert found > 20


# ---------------------------------------------------------------- files that a model does not take

URL = ImagePart(url="https://ada:secret@a.example/y.png")


def test_an_image_that_was_answered_is_named_for_a_model_that_does_not_take_it() -> None:
    said: list[Message] = [
        user("Look", URL, FilePart(b"ID3", "audio/mpeg", name="a.mp3")),
        AssistantMessage("Red."),
        user("And now?"),
    ]
    assert WIRES["bedrock"].sent(said, "bedrock")[0]["content"] == [
        {"text": "Look"},
        {"text": "[image, not shown to you: https://a.example/y.png]"},
        {"audio": {"format": "mp3", "source": {"bytes": b"ID3"}}},
    ]
    assert WIRES["anthropic"].sent(said, "anthropic")[0]["content"] == [
        {"type": "text", "text": "Look"},
        {"type": "image", "source": {"type": "url", "url": URL.url}},
        {"type": "text", "text": "[audio, not shown to you: a.mp3]"},
    ]


def test_an_image_in_a_result_is_named_even_in_the_last_message() -> None:
    said: list[Message] = [user("Look"), AssistantMessage((ToolCall("c", "see"),)), ToolMessage("c", "see", (URL,))]
    assert WIRES["bedrock"].sent(said, "bedrock")[2]["content"][0]["toolResult"]["content"] == [
        {"text": "[image, not shown to you: https://a.example/y.png]"}
    ]


def test_an_image_that_no_model_has_answered_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"takes no URL but s3://…, found .https://a\.example/y\.png."):
        WIRES["bedrock"].sent([user("Look", URL)], "bedrock")
    with pytest.raises(ConfigError, match="pass the bytes as data="):
        WIRES["bedrock"].sent([user("Hi"), AssistantMessage("Yes?"), user("Look", URL)], "bedrock")


def test_the_other_messages_are_the_same_objects() -> None:
    """So a `RenderCache` renders them once."""
    said: list[Message] = [
        user("Look", URL),
        AssistantMessage("Red."),
        user("Hi", ImagePart(b"png")),
        AssistantMessage("Hi."),
    ]
    fitted = fit_files("m", ModelRequest(said), bedrock_body.FILES)
    assert [one is other for one, other in zip(fitted, said, strict=True)] == [False, True, True, True]
