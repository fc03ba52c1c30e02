"""Where an Anthropic request is marked for the prompt cache: `cache_control`, on four blocks at most. Pure.

The part before a mark is cached for five minutes, and costs a tenth when a later request begins with it; a request
finds it again by a mark at the same place. One mark is after the tools and the system prompt, the others at the end of
user messages: the last one, which the next request will find; the one before it, where this request finds what the
previous one left; and one further back that only moves every 8,192 tokens, for a conversation whose end was changed. A
user message ends with the results of all calls before it or with what the user said, so that no mark separates a call
from its result.

Source: https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentkit.models.tokens import PER_FILE, PER_IMAGE, json_tokens

MIN_TOKENS: Final = 1_024  # a shorter beginning is not cached; some models require more, and ignore such a mark

STRIDE: Final = 8_192  # tokens between the possible places of the mark further back

MARK: Final[Mapping[str, Any]] = {"type": "ephemeral"}


def add_marks(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request's body with its marks; the original blocks are unchanged.

    >>> body = {"system": "Be brief. " * 600, "messages": []}
    >>> add_marks(body)["system"][0]["cache_control"]
    {'type': 'ephemeral'}
    """
    made = dict(body)
    tools, system, messages = made.get("tools") or [], made.get("system"), made.get("messages") or []
    tokens = sum(map(json_tokens, tools)) + (json_tokens(system) if system else 0)
    if tokens >= MIN_TOKENS and isinstance(system, str):
        made["system"] = [{"type": "text", "text": system, "cache_control": dict(MARK)}]
    elif tokens >= MIN_TOKENS and tools and not system:
        made["tools"] = [*tools[:-1], {**tools[-1], "cache_control": dict(MARK)}]
    places = set(_places(messages, tokens))
    made["messages"] = [_with_mark(m) if at in places else m for at, m in enumerate(messages)]
    return made


def _places(messages: Sequence[Mapping[str, Any]], tokens: int) -> list[int]:
    """The messages whose ends are marked: three at most. `tokens` is the size of what is before the conversation."""
    ends: list[int] = []
    far: list[int] = []
    strides = tokens // STRIDE
    for at, message in enumerate(messages):
        tokens += sum(map(_block_tokens, message["content"]))
        if message["role"] != "user" or tokens < MIN_TOKENS:
            continue
        ends.append(at)
        if tokens // STRIDE > strides:
            strides = tokens // STRIDE
            far.append(at)
    return [*[at for at in far if at not in ends[-2:]][-1:], *ends[-2:]]


_SIZES: Final = {"image": PER_IMAGE, **dict.fromkeys(("document", "audio", "video"), PER_FILE)}


def _block_tokens(block: Mapping[str, Any]) -> int:
    if block["type"] in _SIZES:  # not by the characters of its data
        return _SIZES[block["type"]]
    return sum(map(_block_tokens, block.get("content", ()))) if block["type"] == "tool_result" else json_tokens(block)


def _with_mark(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message with a mark on its last block."""
    *before, last = message["content"]
    return {**message, "content": [*before, {**last, "cache_control": dict(MARK)}]}
