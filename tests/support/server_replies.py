"""Replies for tool parsers inside a server: tools, calls as each format writes them, texts in pieces; their judge."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from agentkit import formats
from agentkit.formats import ToolSpec
from agentkit.messages import ToolCall

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Search.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        },
    },
]
SPECS = tuple(ToolSpec(**tool["function"]) for tool in TOOLS)
CALLS = (
    ToolCall("", "search", {"query": 'if a < b and "é":\n    run("x\\n")'}),
    ToolCall("", "weather", {"city": "Paris", "days": 3}),
)
ONE_TEXT = (ToolCall("", "search", {"query": "what now?"}),)
PROSE = "I look it up.\n"

Calls = list[tuple[str, dict[str, Any]]]


def written(name: str) -> tuple[str, Calls]:
    """A reply with prose and calls in a format, and its calls; in `legacy`, whose calls hold one text, only one."""
    calls = ONE_TEXT if name == "legacy" else CALLS
    text = PROSE + formats.render_calls(name, calls, SPECS)
    return text, [(call.name, dict(call.arguments)) for call in calls]


def pieces(text: str, seed: int) -> Iterator[str]:
    """A text in random pieces of up to 12 characters."""
    rng, at = random.Random(seed), 0
    while at < len(text):
        end = at + rng.randint(1, 12)
        yield text[at:end]
        at = end


def judged(deltas: Iterable[Mapping[str, Any]]) -> Any:
    """The message that OpenAI's SDK gathers from a stream's deltas."""
    state = ChatCompletionStreamState()
    for delta, finish in [*((delta, None) for delta in deltas), ({}, "stop")]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    return state.get_final_completion().choices[0].message


def calls_of(message: Any) -> Calls:
    """The calls of a message of OpenAI's SDK."""
    return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]


def is_json(text: str) -> bool:
    """Whether a text is complete JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
