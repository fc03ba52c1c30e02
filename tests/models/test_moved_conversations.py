"""Conversations made of recorded replies of all providers, moved to each provider and back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import pytest
from recordings import ABSENT, recording, rows
from wire_rules import check_anthropic, check_chat, check_gemini, check_responses

from agentkit.errors import ProviderError
from agentkit.messages import AssistantMessage, Message, ProviderPart, ThinkingPart, ToolMessage, user
from agentkit.models import ModelRequest
from agentkit.models.anthropic import anthropic_messages
from agentkit.models.gemini import gemini_contents
from agentkit.models.openai import chat_messages
from agentkit.models.responses import responses_input
from agentkit.processor import ResponseProcessor
from agentkit.testing import Replay
from agentkit.tool.codec import from_json, to_json
from agentkit.tool.registry import ToolRegistry

PREFIXES = {
    "openai-chat": "openai",
    "openai-responses": "responses",
    "anthropic-messages": "anthropic",
    "gemini": "gemini",
}
ROWS = [row for name in ("wire.jsonl", "wire_other.jsonl") for row in rows(name) if row["api"] in PREFIXES]
GOOD = [row for row in ROWS if row["response"]["status"] == 200]

WIRES: Final[dict[str, tuple[Callable[[list[Message], str], Any], Callable[[Any], None]]]] = {
    "openai": (chat_messages, check_chat),
    "responses": (responses_input, check_responses),
    "anthropic": (anthropic_messages, check_anthropic),
    "gemini": (gemini_contents, check_gemini),
}


@cache
def replies() -> list[list[Message]]:
    """Each recorded reply with the results of its calls, as it was kept by a store."""

    async def turn(row: dict[str, Any]) -> list[Message]:
        model = Replay([recording(row)]).model(f"{PREFIXES[row['api']]}:m")
        request = ModelRequest([user("Hi")], stream="sse" in row["response"])
        read = ResponseProcessor(ToolRegistry()).process(model.stream(request))
        with contextlib.suppress(ProviderError):
            async for _ in read:
                pass
        return [from_json(json.loads(json.dumps(to_json(message)))) for message in (read.message, *read.results)]

    async def all_of_them() -> list[list[Message]]:
        return [await turn(row) for row in GOOD]

    return asyncio.run(all_of_them())


def conversation(draw: random.Random) -> list[Message]:
    """Some replies of any providers, with a user's words between some of them, and results that are lost."""
    said: list[Message] = [user("Hi")]
    for _ in range(draw.randint(1, 8)):
        said += [m for m in draw.choice(replies()) if not isinstance(m, ToolMessage) or draw.random() > 0.1]
        said += [user("Go on")] * draw.randint(0, 1)
    return said


def own(said: list[Message], provider: str) -> set[str]:
    """The thought signatures in a conversation that are this provider's."""
    parts = [p for m in said if isinstance(m, AssistantMessage) for p in m.content]
    kept = [p.data for p in parts if isinstance(p, ProviderPart | ThinkingPart) and p.provider == provider and p.data]
    return {data[name] for data in kept for name in ("thoughtSignature", "signature") if data.get(name)}


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("provider", WIRES)
def test_600_conversations_moved_between_providers_stay_valid(provider: str) -> None:
    make, check = WIRES[provider]
    for seed in range(600):
        said = conversation(random.Random(seed))
        sent = make(said, provider)
        check(sent)
        text = json.dumps(sent)
        for other in WIRES:
            for signature in own(said, other):
                assert (json.dumps(signature) in text) <= (other == provider)


@pytest.mark.skipif(not ROWS, reason=ABSENT)
def test_gemini_gets_all_its_signatures_back() -> None:
    for seed in range(600):
        said = conversation(random.Random(seed))
        text = json.dumps(gemini_contents(said, "gemini"))
        assert all(json.dumps(signature) in text for signature in own(said, "gemini"))
