"""The estimate of tokens, beside what was really counted."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest
from recordings import ABSENT, recording, rows
from streams import answer

from agentkit.events import CallEnd, Text, Usage
from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    ProviderPart,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    user,
)
from agentkit.models.tokens import (
    PER_CALL,
    PER_IMAGE,
    PER_MESSAGE,
    json_tokens,
    message_tokens,
    messages_tokens,
    text_tokens,
)
from agentkit.testing import Replay

STREAMS = [row for row in rows("raw_streams.jsonl") if row.get("chunks")]
PREFIXES = {"openai-chat": "openai", "openai-responses": "responses", "anthropic-messages": "anthropic"}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (".", 1),
        ("The quick brown fox jumps over the lazy dog.", 10),
        ('{"path": "src/main.py", "line": 120}', 14),
        ("    for i in range(10):\n        total += i * i\n", 11),
        ("快速的棕色狐狸跳过了懒狗", 12),
        ("Съешь же ещё этих мягких французских булок", 19),
        ("🙂🙂🙂", 6),
        ("\ud800", 1),
    ],
    ids=["nothing", "sign", "words", "json", "code", "chinese", "russian", "emoji", "surrogate"],
)
def test_texts(text: str, tokens: int) -> None:
    assert text_tokens(text) == tokens


@pytest.mark.parametrize(
    ("message", "beside", "text"),
    [
        (user("Hello there"), PER_MESSAGE, "Hello there"),
        (SystemMessage("Be brief."), PER_MESSAGE, "Be brief."),
        (user("See", ImagePart(data=b"png")), PER_MESSAGE + PER_IMAGE, "See"),
        (ToolMessage("c", "f", (TextPart("It failed."),), "tool_error"), PER_MESSAGE, "It failed."),
        (AssistantMessage((ThinkingPart("Hm, well."),)), PER_MESSAGE, "Hm, well."),
        (AssistantMessage((ThinkingPart("Hm, well.", "a", {"signature": "x" * 900}),)), PER_MESSAGE, "Hm, well."),
    ],
)
def test_messages(message: Message, beside: int, text: str) -> None:
    assert message_tokens(message) == beside + text_tokens(text)


def test_calls_and_blocks() -> None:
    call = ToolCall("c", "add", {"a": 1})
    beside = PER_MESSAGE + PER_CALL
    assert message_tokens(AssistantMessage((call,))) == beside + text_tokens("add") + text_tokens('{"a": 1}')
    block = AssistantMessage((ProviderPart("openai", {"type": "search"}),))
    assert message_tokens(block) == PER_MESSAGE + json_tokens({"type": "search"})
    assert messages_tokens([block, block]) == 2 * message_tokens(block)


@pytest.mark.skipif(not STREAMS, reason=ABSENT)
@pytest.mark.parametrize("row", STREAMS, ids=lambda row: row["id"])
def test_streams_whose_every_piece_is_a_token(row: dict[str, Any]) -> None:
    """Special tokens such as `<|channel|>` are no text and left out."""
    pieces = [piece for piece in row["chunks"] if not piece.startswith("<|")]
    assert len(pieces) * 0.85 <= text_tokens("".join(pieces)) <= len(pieces) * 1.25


def estimates() -> list[float]:
    """Our estimate of recorded responses, divided by what the provider reported."""
    ratios: list[float] = []
    for row in rows("wire.jsonl"):
        tape = Replay([recording(row)])
        events, _ = answer(tape.model(f"{PREFIXES[row['api']]}:m"), stream=bool(row["response"].get("sse")))
        usage = next((e for e in events if isinstance(e, Usage)), Usage())
        real = usage.output_tokens - usage.reasoning_tokens
        if real < 10:
            continue
        text = text_tokens("".join(e.text for e in events if isinstance(e, Text)))
        calls = [e.call for e in events if isinstance(e, CallEnd)]
        estimate = text + sum(PER_CALL + text_tokens(c.name) + text_tokens(c.raw) for c in calls)
        ratios.append(estimate / real)
    return sorted(ratios)


@pytest.mark.skipif(not rows("wire.jsonl"), reason=ABSENT)
def test_recorded_responses() -> None:
    ratios = estimates()
    tenth = len(ratios) // 10
    assert len(ratios) > 50
    assert 0.8 < median(ratios) < 1.25
    assert ratios[tenth] > 0.4
    assert ratios[-tenth] < 2.1
