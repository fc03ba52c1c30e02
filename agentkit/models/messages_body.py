"""A request to Anthropic's Messages API, and the messages of APIs that require the same of a conversation. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any, Final

from agentkit.checks.message_values import text_in
from agentkit.checks.unicode import clean
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
from agentkit.models import valid_history
from agentkit.models.base import ModelRequest
from agentkit.models.render_cache import RenderCache, Taken
from agentkit.models.server_calls import BlockPlace, sent_blocks
from agentkit.schemas import flavours

IDS: Final = valid_history.IdRule(limit=64, allowed=lambda id: re.fullmatch("[a-zA-Z0-9_-]+", id) is not None)

Content = Callable[[Sequence[UserPart]], Iterable[dict[str, Any]]]
"""Makes blocks of what a user or a tool says."""


def messages_body(request: ModelRequest, model: str, provider: str, content: Content | None = None) -> dict[str, Any]:
    """The body of a request, except `max_tokens` and `temperature`; for `content` see `anthropic_messages`."""
    named = valid_history.named_tool(request)
    messages = anthropic_messages(request.messages, provider, request.rendered, request.written, content)
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
    messages: Sequence[Message],
    provider: str,
    rendered: RenderCache | None = None,
    written: Set[str] = frozenset(),
    content: Content | None = None,
) -> list[dict[str, Any]]:
    """A conversation as alternating user and assistant messages; results come first. System text is omitted.

    Args:
        messages: the conversation.
        provider: whose blocks are sent back.
        rendered: what was made of the conversation before.
        written: see `ModelRequest`.
        content: how another API with such messages writes text, images and files; None for the Messages API.
    """
    make = partial(_messages, provider=provider, written=written, content_of=content or _content)
    sent = (rendered or RenderCache()).of(("anthropic", provider), messages, make, (written, content))
    if sent and sent[-1]["role"] == "assistant" and "text" in (end := sent[-1]["content"][-1]):
        end["text"] = end["text"].rstrip()  # "final assistant content cannot end with trailing whitespace"
    if sent and sent[0]["role"] == "assistant":
        sent.insert(0, {"role": "user", "content": [{"type": "text", "text": "(the conversation continues)"}]})
    return sent


def _messages(
    messages: Sequence[Message], taken: Taken, provider: str, written: Set[str], content_of: Content
) -> list[dict[str, Any]]:
    fitted = [m for m in valid_history.conversation(messages, IDS, taken, written) if not isinstance(m, SystemMessage)]
    own = sent_blocks(fitted, provider, IDS)
    rendered: list[dict[str, Any]] = []
    for at, message in enumerate(fitted):
        if isinstance(message, AssistantMessage):
            role, blocks = "assistant", _assistant(message, provider, at, own)
        elif isinstance(message, ToolMessage):
            role, blocks = "user", [_result(message, content_of)]
        else:
            role, blocks = "user", list(content_of(message.content))
        if blocks and rendered and rendered[-1]["role"] == role:
            rendered[-1]["content"] += blocks
        elif blocks:
            rendered.append({"role": role, "content": blocks})
    return rendered


def media_block(part: ImagePart | FilePart) -> dict[str, Any]:
    """An image or a document, which the API takes, as a content block."""
    if isinstance(part, ImagePart):
        return {"type": "image", "source": _image_source(part)}
    return {"type": "document", "source": _document_source(part), **({"title": clean(part.name)} if part.name else {})}


_content = partial(valid_history.filled_parts, media=media_block, type="text")


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
    if (text := text_in(file.data, file.media_type)) is not None:  # a text of any type is a plain one
        return {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "base64", "media_type": file.media_type, "data": file.base64}


def _result(message: ToolMessage, content_of: Content) -> dict[str, Any]:
    content = list(content_of(message.content))
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
