"""Thinking or a block of the provider divides a text, and changes nothing of what is code or an aside in it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agentkit import ProcessorConfig, ResponseProcessor, ToolCall, ToolRegistry
from agentkit.events import CallEnd, Finish, ProviderBlock, SourceEvent, Text, Thinking
from agentkit.formats import render_calls


def note(text: str) -> str:
    """Note something."""
    return text


REGISTRY = ToolRegistry(note)


def call_in(format: str, text: str) -> str:
    return render_calls(format, [ToolCall("c", "note", {"text": text})], REGISTRY.specs())


def called(events: Sequence[SourceEvent], **config: Any) -> list[str]:
    """The texts of the calls in text that were read as calls."""

    async def main() -> list[str]:
        turn = ResponseProcessor(REGISTRY, ProcessorConfig(**config)).process([*events, Finish("stop")])
        found = [event async for event in turn]
        return [e.call.arguments["text"] for e in found if isinstance(e, CallEnd) and e.call.format is not None]

    return asyncio.run(main())


READERS = [
    ({}, "hermes"),
    ({"formats": ("hermes",)}, "hermes"),
    ({"formats": ("xml",)}, "xml"),
    ({"formats": "auto"}, "invoke"),
]
DIVIDE = (Thinking("hm"), ProviderBlock("m", {"type": "x"}))


@pytest.mark.parametrize("divide", DIVIDE, ids=["thinking", "block"])
@pytest.mark.parametrize(("config", "format"), READERS, ids=["native", "hermes", "xml", "auto"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Look:\n```py\nx = 1\n", "```\nCALL"),
        ("Use `x", "` then\nCALL"),
        ("<!-- Hm", " -->\nCALL"),
        ("First.\n", "CALL"),
        ("First", " then CALL"),
        ("CALL", "\nCALL"),
    ],
)
def test_no_call_after_what_ends_is_lost(
    config: dict[str, Any], format: str, divide: SourceEvent, before: str, after: str
) -> None:
    first, second = (text.replace("CALL", call_in(format, text[:1])) for text in (before, after))
    expected = called([Text(first), Text(second)], **config)
    assert expected
    assert called([Text(first), divide, Text(second)], **config) == expected
