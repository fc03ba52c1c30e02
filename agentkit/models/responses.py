"""OpenAI's Responses API.

The provider stores nothing (`store` is off): the conversation is kept here, and reasoning is sent as encrypted items.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from functools import partial
from itertools import takewhile
from typing import Any, Final

from agentkit.checks.unicode import clean
from agentkit.errors import ConfigError
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
    UserMessage,
)
from agentkit.models import prefill, valid_history
from agentkit.models.base import ModelRequest
from agentkit.models.files_taken import FilesTaken, name_of
from agentkit.models.provider import RemoteModel
from agentkit.models.render_cache import RenderCache, Taken
from agentkit.models.responses_wire import ResponsesWire, events_of
from agentkit.models.vendors import OPENAI
from agentkit.models.wire import text_of
from agentkit.schemas import flavours

IDS: Final = valid_history.IdRule(limit=64)  # "string too long. Expected a string with maximum length 64"

STATE: Final = "stored_response"
"""The type of the block that says where the provider has stored a conversation; it is never sent."""

FILES: Final = FilesTaken(("text/*", "application/*"), ("text/*", "application/*"))
"""What it takes. Source: OpenAI's guide "File inputs", November 2026; no audio and no video."""

_REASONS = re.compile(r"(?:.*/)?(?:o\d|codex|gpt-(?:5(?!-chat)|[6-9]|\d\d))")

# ---------------------------------------------------------------- request


def responses_body(request: ModelRequest, model: str, provider: str) -> dict[str, Any]:
    """The body of a request, except its limits."""
    if request.stop:
        raise ConfigError("the Responses API has no stop strings; omit `stop`, or use the prefix openai:")
    named = valid_history.named_tool(request)
    instructions, messages = _instructions(request.messages)
    body: dict[str, Any] = {
        "model": model,
        "instructions": instructions,
        "input": responses_input(messages, provider, request.rendered, request.written),
        "stream": request.stream,
        "store": False,
    }
    if _REASONS.match(model):  # models that do not reason refuse the request for encrypted reasoning
        body["include"] = ["reasoning.encrypted_content"]
    if request.tools:
        body["tools"] = [flavours.openai_responses(spec) for spec in request.tools]
        body["tool_choice"] = {"type": "function", "name": named} if named else request.tool_choice
        body["parallel_tool_calls"] = request.parallel_tool_calls
    if request.output_schema is not None:
        body["text"] = {"format": flavours.openai_responses_output(request.output_schema)}
    return body


def _instructions(messages: Sequence[Message]) -> tuple[str | None, Sequence[Message]]:
    """The system text at the conversation's beginning, and the rest."""
    first = list(takewhile(lambda message: isinstance(message, SystemMessage), messages))
    return valid_history.system_text(first) or None, messages[len(first) :]


def responses_input(
    messages: Sequence[Message], provider: str, rendered: RenderCache | None = None, written: Set[str] = frozenset()
) -> list[dict[str, Any]]:
    """A conversation as input items."""
    make = partial(_items, provider=provider, written=written)
    return (rendered or RenderCache()).of(("responses", provider), messages, make, (written,))


def _items(messages: Sequence[Message], taken: Taken, provider: str, written: Set[str]) -> list[dict[str, Any]]:
    fitted = valid_history.conversation(messages, IDS, taken, written)
    forms, answered = _known_calls(fitted, provider)
    items: list[dict[str, Any]] = []
    for message in fitted:
        match message:
            case SystemMessage(content):
                items.append({"role": "system", "content": clean(content)})
            case UserMessage(content):
                items.append({"role": "user", "content": _content(content)})
            case AssistantMessage(content):
                items += _assistant(content, provider, forms, answered)
            case ToolMessage(call_id, _, content):
                kind = forms.get(call_id, {}).get("type", "function_call")
                items.append({"type": f"{kind}_output", "call_id": call_id, "output": _content(content)})
    return items


def _known_calls(messages: Sequence[Message], provider: str) -> tuple[dict[str, Mapping[str, Any]], set[Any]]:
    """The provider's data for each call, by its id; and the ids of the calls that its own tools have answered."""
    own = [
        part
        for message in messages
        if isinstance(message, AssistantMessage)
        for part in message.content
        if isinstance(part, ProviderPart) and part.provider == provider
    ]
    answered = {part.data.get("call_id") for part in own if text_of(part.data.get("type")).endswith("_output")}
    return {part.call_id: part.data for part in own if part.call_id}, answered


def reply_items(message: AssistantMessage, provider: str) -> list[dict[str, Any]]:
    """One response as input items, without answers to its calls."""
    return _assistant(message.content, provider, *_known_calls([message], provider))


def media_item(part: ImagePart | FilePart) -> dict[str, Any]:
    """An image or a file, which the API takes, as a content part."""
    if isinstance(part, ImagePart):
        return {"type": "input_image", "image_url": clean(part.data_url), "detail": "auto"}
    if part.url is not None:
        return {"type": "input_file", "file_url": clean(part.url)}
    return {"type": "input_file", "filename": name_of(part), "file_data": part.data_url}


_content = partial(valid_history.text_or_parts, text_type="input_text", media=media_item)


def _assistant(
    content: Sequence[object], provider: str, forms: Mapping[str, Mapping[str, Any]], answered: set[Any]
) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for part in content:
        match part:
            case TextPart(text) if text:
                items.append({"type": "message", "role": "assistant", "content": clean(text)})
            case ToolCall():
                items.append(_call(part, forms.get(part.id, {})))
            case ThinkingPart(_, by, data) if by == provider and data and _readable(data):
                items.append(dict(data))
            case ProviderPart(by, data) if by == provider and data.get("type") == "message":
                if items and items[-1].get("type") == "message":
                    items[-1]["phase"] = data.get("phase")
            case ProviderPart(by, data, None) if by == provider and data.get("type") != STATE:
                asks = text_of(data.get("type")).endswith("_call") and data.get("call_id")
                if not asks or data["call_id"] in answered:  # a call that is not answered here would be refused
                    items.append(dict(data))
    while items and items[-1].get("type") == "reasoning":
        items.pop()  # refused without the item that it led to
    return items


def _readable(item: Mapping[str, Any]) -> bool:
    """Return whether the provider can read this reasoning item again; without `store` it cannot find items by id."""
    return bool(item.get("encrypted_content") or item.get("content"))


def _call(call: ToolCall, form: Mapping[str, Any]) -> dict[str, Any]:
    item = {
        **form,
        "type": form.get("type", "function_call"),
        "call_id": call.id,
        "name": valid_history.fit_name(call.name),
    }
    if item["type"] == "custom_tool_call":
        return {**item, "input": clean(str(valid_history.arguments_of(call).get("input", "")))}
    return {**item, "arguments": valid_history.arguments_text(call)}


# ---------------------------------------------------------------- model


class ResponsesModel(RemoteModel):
    """A model on the Responses API: OpenAI's own, or with `base_url` another server's."""

    prefix = "responses"
    vendor = OPENAI
    method = "responses"
    files = FILES
    wire = ResponsesWire
    as_streamed = staticmethod(events_of)

    def _asked(self, request: ModelRequest) -> dict[str, Any]:
        asked = request if self.is_vendor_api else valid_history.describe_output(request)
        body = responses_body(asked, self.model, self.provider)
        said = body["input"] if self.continues else prefill.complete(body["input"])
        limits = {"max_output_tokens": request.max_tokens, "temperature": request.temperature}
        return {**body, "input": said, **limits}
