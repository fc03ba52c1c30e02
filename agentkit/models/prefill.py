"""Which models continue their own last message, and what has to be sent for it. Pure.

A model that does is asked to continue a reply that was cut by its token limit; any other would start a new message,
which must not be joined to the old one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agentkit.messages import AssistantMessage, Message, TextPart

_CLAUDE: Final = re.compile(r"claude-(?:[23](?=[-.])|instant-|(?:opus|sonnet|haiku)-4(?:-[015])?(?:-\d{8})?$)")
"""Claude's models up to 4.5. Those from 4.6 on answer 400, "This model does not support assistant message prefill".
Source: Anthropic, What's new in Claude 4.6, Prefill removal; strands-agents issue 1694."""

_PREFIX: Final = re.compile(r"https://api\.(?:mistral\.ai|deepseek\.com/beta)(?:/|$)")
"""Servers that continue a last message that has `"prefix": true`.
Source: DeepSeek, Chat prefix completion (beta); Mistral, API specification, AssistantMessage.prefix."""

CONTINUE: Final[Mapping[str, Any]] = {"continue_final_message": True, "add_generation_prompt": False}
"""The fields that vLLM and SGLang require; llama.cpp and Ollama continue without them.
Source: their requests of chat completions."""


def claude_continues(model: str, extra: Mapping[str, Any]) -> bool:
    """Return whether Anthropic's API lets this model continue: "not supported with extended thinking"."""
    thinking = extra.get("thinking")
    thinks = isinstance(thinking, Mapping) and thinking.get("type") != "disabled"
    return not thinks and _CLAUDE.match(model) is not None


def server_continues(base_url: str) -> bool:
    """Return whether a chat server at this URL is known to let its models continue."""
    return _PREFIX.match(base_url) is not None


def chat_continued(body: Mapping[str, Any], base_url: str) -> dict[str, Any]:
    """A request of chat completions whose last message, the model's own, is to be continued."""
    *before, last = body["messages"]
    if server_continues(base_url):
        return {**body, "messages": [*before, {**last, "prefix": True}]}
    return {**body, **CONTINUE}


def is_unfinished(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the last message is an unfinished reply; a reply that only waits for results does not count."""
    return bool(messages) and messages[-1].get("role") == "assistant" and not messages[-1].get("tool_calls")


_WORDS: Final = frozenset(("text", "thinking", "redacted_thinking"))


def complete(
    messages: list[dict[str, Any]], only_says: Callable[[Mapping[str, Any]], bool] | None = None
) -> list[dict[str, Any]]:
    """A conversation for a model that does not continue: without an unfinished reply at its end, which it may refuse.

    It answers again, as in a thread. A reply that the provider itself paused stays, as does a first message.

    Args:
        messages: those of any API.
        only_says: returns whether the model says something in one of them, and does nothing; None for the three APIs
            with the role `assistant`.
    """
    end, only_says = len(messages), only_says or _is_said
    while end and only_says(messages[end - 1]):
        end -= 1
    return messages[:end] if any(m.get("role") != "system" for m in messages[:end]) else messages


def _is_said(message: Mapping[str, Any]) -> bool:
    """Return whether the model says something here, and does nothing."""
    if message.get("role") != "assistant":
        return message.get("type") == "reasoning"
    blocks = message["content"] if isinstance(message["content"], list) else []
    return not message.get("tool_calls") and all(block["type"] in _WORDS for block in blocks)


def space_after(messages: Sequence[Message]) -> str:
    """The white space at the end of the last message, the model's own, which is not sent."""
    last = messages[-1] if messages else None
    if not isinstance(last, AssistantMessage) or not last.content or not isinstance(last.content[-1], TextPart):
        return ""
    text = last.content[-1].text
    return text[len(text.rstrip()) :]


class UntrimmedContinuation:
    """The text of a continuation, as if the white space had been sent: without it if it was written again.

    Args:
        space: the white space that was not sent.
    """

    def __init__(self, space: str) -> None:
        self._space = space
        self._seen = ""

    def feed(self, text: str) -> str:
        """More text in, its new part out; nothing while it may still be that white space."""
        if not self._space:
            return text
        self._seen += text
        if self._space.startswith(self._seen):
            return ""
        seen, space, self._space = self._seen, self._space, ""
        return seen.removeprefix(space)
