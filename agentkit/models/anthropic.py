"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, ClassVar, Final

from agentkit.events import SourceEvent, Text
from agentkit.models import prefill, valid_history
from agentkit.models.base import ModelRequest
from agentkit.models.caching import add_marks
from agentkit.models.files_taken import TEXTS, FilesTaken
from agentkit.models.messages_body import messages_body
from agentkit.models.messages_wire import MessagesWire, events_of
from agentkit.models.provider import RemoteModel
from agentkit.models.vendors import ANTHROPIC
from agentkit.models.wire import count_of, mapping_of
from agentkit.schemas import flavours

MAX_TOKENS: Final = 16_384
"""Sent if `max_tokens` is not set: the API requires a number. Enough for a long file in one call; every model from
Claude 3.7 on accepts it (the smallest limit among them is 32,000)."""

SMALLEST_LIMIT: Final = 32_000  # the smallest limit on `max_tokens` of any model that thinks


def max_tokens_with(budget: int) -> int:
    """The `max_tokens` that is sent if none is set: the thinking counts, and leaves as much room as without it.

    Up to `SMALLEST_LIMIT` it is a number that every model accepts, while that leaves 2,000 tokens for the answer.

    Args:
        budget: the `budget_tokens` of thinking; 0 if it has none.
    """
    needed = budget + MAX_TOKENS
    return min(needed, SMALLEST_LIMIT) if budget <= SMALLEST_LIMIT - 2_000 else needed


FILES: Final = FilesTaken(("application/pdf", *TEXTS), ("application/pdf",))
"""What it takes. Source: Anthropic, "PDF support" and the API reference of document blocks, November 2026."""


class AnthropicModel(RemoteModel):
    """A Claude model on the Messages API, or with `base_url` any server that speaks it."""

    prefix = "anthropic"
    vendor = ANTHROPIC
    method = "messages"
    required: ClassVar = {"messages": [], "max_tokens": 1}
    files = FILES
    as_streamed = staticmethod(events_of)
    wire = MessagesWire

    async def stream(self, request: ModelRequest) -> AsyncGenerator[SourceEvent, None]:
        """Answer a request. A continuation of its last message continues all of it, even white space at its end."""
        untrimmed = prefill.UntrimmedContinuation(prefill.space_after(request.messages) if self.continues else "")
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                if not isinstance(event, Text):
                    yield event
                elif text := untrimmed.feed(event.text):
                    yield Text(text)

    def _continues(self) -> bool:
        return self.is_official_host and prefill.claude_continues(self.model, self.settings.extra or {})

    def _asked(self, request: ModelRequest) -> dict[str, Any]:
        output = request.output_schema
        if output is not None and not (self.is_official_host and flavours.anthropic_output(output)):
            request = valid_history.output_in_prompt(request, constrained=False)
        body = messages_body(request, self.model, self.provider)
        if not self.continues:
            body["messages"] = prefill.complete(body["messages"])
        body |= {"max_tokens": request.max_tokens, "temperature": request.temperature}
        return add_marks(body) if self.settings.cache else body

    def _complete(self, body: dict[str, Any]) -> None:
        super()._complete(body)
        thinking = mapping_of(body.get("thinking"))
        if body.get("max_tokens") is None:
            body["max_tokens"] = max_tokens_with(count_of(thinking.get("budget_tokens")))
        choice = mapping_of(body.get("tool_choice"))
        if thinking.get("type") in ("enabled", "adaptive") and choice.get("type") in ("any", "tool"):
            body["tool_choice"] = {k: v for k, v in choice.items() if k != "name"} | {"type": "auto"}
