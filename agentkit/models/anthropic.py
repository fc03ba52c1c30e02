"""Anthropic's Messages API."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence, Set
from contextlib import aclosing
from functools import partial
from typing import Any, ClassVar, Final

from agentkit.checks.unicode import clean
from agentkit.events import SourceEvent, Text
from agentkit.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    ProviderPart,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserPart,
)
from agentkit.models import prefill, valid_history
from agentkit.models.base import ModelRequest
from agentkit.models.caching import add_marks
from agentkit.models.files_taken import TEXTS, FilesTaken, check_files, is_text, text_of_file
from agentkit.models.messages_wire import MessagesWire, events_of
from agentkit.models.provider import RemoteModel, offered_schemas
from agentkit.models.render_cache import RenderCache, Taken
from agentkit.models.server_calls import BlockPlace, sent_blocks
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

IDS: Final = valid_history.IdRule(limit=64, allowed=lambda id: re.fullmatch("[a-zA-Z0-9_-]+", id) is not None)

# ---------------------------------------------------------------- request


def messages_body(request: ModelRequest, model: str, provider: str) -> dict[str, Any]:
    """The body of a request, except `max_tokens` and `temperature`."""
    named = valid_history.named_tool(request)
    messages = anthropic_messages(request.messages, provider, request.rendered, request.written)
    body: dict[str, Any] = {"model": model, "messages": messages, "stream": request.stream}
    body["system"] = valid_history.system_text(request.messages) or None
    body["stop_sequences"] = list(request.stop) or None
    if request.tools:
        body["tools"] = [flavours.anthropic(spec) for spec in request.tools]
        body["tool_choice"] = _tool_choice(request, named)
    elif names := _called(messages):  # a history with calls is refused without tools
        body["tools"] = [{"name": n, "input_schema": {"type": "object"}} for n in names]
        body["tool_choice"] = {"type": "none"}
    if request.output_schema is not None:
        body["output_config"] = {"format": flavours.anthropic_output(request.output_schema)}
    return body


def _tool_choice(request: ModelRequest, named: str | None) -> dict[str, Any] | None:
    kind = {"auto": "auto", "required": "any", "none": "none"}.get(request.tool_choice, "tool")
    choice: dict[str, Any] = {"type": kind, "name": named} if named else {"type": kind}
    if request.parallel_tool_calls is not None and kind != "none":
        choice["disable_parallel_tool_use"] = not request.parallel_tool_calls
    return choice


def _called(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the tools called in a conversation, in order."""
    return list(dict.fromkeys(b["name"] for m in messages for b in m["content"] if b["type"] == "tool_use"))


def anthropic_messages(
    messages: Sequence[Message], provider: str, rendered: RenderCache | None = None, written: Set[str] = frozenset()
) -> list[dict[str, Any]]:
    """A conversation as alternating user and assistant messages; results come first. System text is omitted."""
    make = partial(_messages, provider=provider, written=written)
    sent = (rendered or RenderCache()).of(("anthropic", provider), messages, make, (written,))
    if sent and sent[-1]["role"] == "assistant" and "text" in (end := sent[-1]["content"][-1]):
        end["text"] = end["text"].rstrip()  # "final assistant content cannot end with trailing whitespace"
    if sent and sent[0]["role"] == "assistant":
        sent.insert(0, {"role": "user", "content": [{"type": "text", "text": "(the conversation continues)"}]})
    return sent


def _messages(messages: Sequence[Message], taken: Taken, provider: str, written: Set[str]) -> list[dict[str, Any]]:
    fitted = [m for m in valid_history.conversation(messages, IDS, taken, written) if not isinstance(m, SystemMessage)]
    own = sent_blocks(fitted, provider, IDS)
    rendered: list[dict[str, Any]] = []
    for at, message in enumerate(fitted):
        if isinstance(message, AssistantMessage):
            role, blocks = "assistant", _assistant(message, provider, at, own)
        elif isinstance(message, ToolMessage):
            role, blocks = "user", [_result(message)]
        else:
            role, blocks = "user", list(_content(message.content))
        if blocks and rendered and rendered[-1]["role"] == role:
            rendered[-1]["content"] += blocks
        elif blocks:
            rendered.append({"role": role, "content": blocks})
    return rendered


def _content(parts: Sequence[UserPart]) -> Iterator[dict[str, Any]]:
    """Blocks of text, images and documents; blank text, which the API refuses, is omitted."""
    for part in parts:
        if isinstance(part, ImagePart):
            yield {"type": "image", "source": _image_source(part)}
        elif isinstance(part, FilePart):
            title = {"title": clean(part.name)} if part.name else {}
            yield {"type": "document", "source": _document_source(part), **title}
        elif part.text.strip():
            yield {"type": "text", "text": clean(part.text)}


def _image_source(image: ImagePart) -> dict[str, Any]:
    inline = re.match(r"data:([^;,]+);base64,", image.url or "")
    if inline and image.url:
        return {"type": "base64", "media_type": inline[1], "data": image.url[inline.end() :]}
    if image.url is not None:
        return {"type": "url", "url": image.url}
    return {"type": "base64", "media_type": image.media_type, "data": image.base64}


def _document_source(file: FilePart) -> dict[str, Any]:
    if file.url is not None:
        return {"type": "url", "url": clean(file.url)}
    if is_text(file):  # a text of any type is a plain one
        return {"type": "text", "media_type": "text/plain", "data": clean(text_of_file(file))}
    return {"type": "base64", "media_type": file.media_type, "data": file.base64}


def _result(message: ToolMessage) -> dict[str, Any]:
    content = list(_content(message.content))
    answer = {"type": "tool_result", "tool_use_id": message.call_id, "is_error": message.error is not None}
    return {**answer, "content": content} if content else answer


def _assistant(
    message: AssistantMessage, provider: str, at: int, own: Mapping[BlockPlace, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    parts = list(enumerate(message.content))
    callers = {p.call_id: own[at, n] for n, p in parts if isinstance(p, ProviderPart) and p.call_id and (at, n) in own}
    blocks: list[dict[str, Any]] = []
    for n, part in parts:
        match part:
            case TextPart(text) if text.strip():
                blocks.append({"type": "text", "text": clean(text)})
            case ToolCall():
                blocks.append(_tool_use(part, callers))
            case ThinkingPart(_, by, data) if by == provider and data:
                blocks.append(dict(data))
            case ProviderPart(_, _, None) if (at, n) in own:
                blocks.append(dict(own[at, n]))
    while blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        blocks.pop()  # a message must not end with thinking
    return blocks


def _tool_use(call: ToolCall, callers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    arguments = json.loads(valid_history.json_text(valid_history.arguments_of(call)))
    plain = {"type": "tool_use", "id": call.id, "name": valid_history.fit_name(call.name), "input": arguments}
    return {**callers.get(call.id, {}), **plain}


# ---------------------------------------------------------------- model


class AnthropicModel(RemoteModel):
    """A Claude model on the Messages API, or with `base_url` any server that speaks it."""

    prefix = "anthropic"
    vendor = ANTHROPIC
    method = "messages"
    required: ClassVar = {"messages": [], "max_tokens": 1}
    as_streamed = staticmethod(events_of)

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
        check_files(self.name, request.messages, FILES)
        body = messages_body(request, self.model, self.provider)
        if not self.continues:
            body["messages"] = prefill.complete(body["messages"])
        body |= {"max_tokens": self._max_tokens(request), "temperature": self._temperature(request)}
        return add_marks(body) if self.settings.cache else body

    def _complete(self, body: dict[str, Any]) -> None:
        super()._complete(body)
        thinking = mapping_of(body.get("thinking"))
        if body.get("max_tokens") is None:
            body["max_tokens"] = max_tokens_with(count_of(thinking.get("budget_tokens")))
        choice = mapping_of(body.get("tool_choice"))
        if thinking.get("type") in ("enabled", "adaptive") and choice.get("type") in ("any", "tool"):
            body["tool_choice"] = {k: v for k, v in choice.items() if k != "name"} | {"type": "auto"}

    def _wire(self, body: Mapping[str, Any]) -> MessagesWire:
        return MessagesWire(self.provider, offered_schemas(body))
