"""OpenAI's Responses API.

Nothing is kept at the provider (`store` is off): the conversation lives here, and reasoning travels as encrypted items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final

from agentkit import flavours
from agentkit.errors import ConfigError
from agentkit.events import Finish, FinishReason, SourceEvent, Text, Thinking, Usage
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
    UserMessage,
)
from agentkit.models import history
from agentkit.models.base import ModelRequest
from agentkit.models.openai import told
from agentkit.models.remote import RemoteModel
from agentkit.models.surrogates import Joiner, clean
from agentkit.models.wire import (
    ErrorInStream,
    NativeCall,
    NativeCalls,
    WireEvent,
    count_of,
    finish,
    items_of,
    last_events,
    mapping_of,
    provider_block,
    text_of,
)

IDS: Final = history.IdRule(limit=64)  # "string too long. Expected a string with maximum length 64"

FINISHES: Final[Mapping[str, FinishReason]] = {
    "completed": "stop",
    "max_output_tokens": "length",
    "max_tokens": "length",  # vLLM
    "content_filter": "content_filter",
}
"""Of a completed response its status, of an incomplete one its reason."""

CALLS: Final[Mapping[str, str]] = {"function_call": "arguments", "custom_tool_call": "input"}
"""The kinds of calls that are answered here, and where each keeps what it hands over."""

_REASONS = re.compile(r"(?:.*/)?(?:o\d|codex|gpt-(?:5(?!-chat)|[6-9]|\d\d))")
_PLAIN_FIELDS = frozenset(("type", "id", "call_id", "name", "arguments", "input", "status"))

# ---------------------------------------------------------------- request


def responses_body(request: ModelRequest, model: str, provider: str) -> dict[str, Any]:
    """The body of a request, but for its bounds."""
    if request.stop:
        raise ConfigError("the Responses API knows no stop strings; leave `stop` out, or use the prefix openai:")
    named = history.named_tool(request)
    instructions, messages = _instructions(request.messages)
    body: dict[str, Any] = {
        "model": model,
        "instructions": instructions,
        "input": responses_input(messages, provider),
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
    at = 0
    while at < len(messages) and isinstance(messages[at], SystemMessage):
        at += 1
    return history.system_text(messages[:at]) or None, messages[at:]


def responses_input(messages: Sequence[Message], provider: str) -> list[dict[str, Any]]:
    """A conversation as input items."""
    fitted = history.conversation(messages, IDS)
    own = [
        part
        for message in fitted
        if isinstance(message, AssistantMessage)
        for part in message.content
        if isinstance(part, ProviderPart) and part.provider == provider
    ]
    forms = {part.call_id: part.data for part in own if part.call_id}
    answered = {part.data.get("call_id") for part in own if text_of(part.data.get("type")).endswith("_output")}
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


def _content(parts: Sequence[TextPart | ImagePart]) -> str | list[dict[str, Any]]:
    if not any(isinstance(p, ImagePart) for p in parts):
        return "\n\n".join(clean(p.text) for p in parts if isinstance(p, TextPart))
    return [
        {"type": "input_text", "text": clean(p.text)}
        if isinstance(p, TextPart)
        else {"type": "input_image", "image_url": clean(p.data_url), "detail": "auto"}
        for p in parts
    ]


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
            case ProviderPart(by, data, None) if by == provider:
                asks = text_of(data.get("type")).endswith("_call") and data.get("call_id")
                if not asks or data["call_id"] in answered:  # a call that nobody here answers would be refused
                    items.append(dict(data))
    while items and items[-1].get("type") == "reasoning":
        items.pop()  # refused without the item that it led to
    return items


def _readable(item: Mapping[str, Any]) -> bool:
    """Whether the provider can read this reasoning item again; without `store` it knows no item by its id."""
    return bool(item.get("encrypted_content") or item.get("content"))


def _call(call: ToolCall, form: Mapping[str, Any]) -> dict[str, Any]:
    item = {**form, "type": form.get("type", "function_call"), "call_id": call.id, "name": history.fit_name(call.name)}
    if item["type"] == "custom_tool_call":
        return {**item, "input": clean(str(history.arguments_of(call).get("input", "")))}
    return {**item, "arguments": history.arguments_text(call)}


# ---------------------------------------------------------------- response


@dataclass(slots=True, eq=False)
class _Item:
    """An output item that is being received. `said` counts the characters of it that have come."""

    call: NativeCall | None = None
    said: int = 0
    joiner: Joiner = field(default_factory=Joiner)
    thoughts: str = ""


class ResponsesWire:
    """One response of the Responses API.

    Args:
        provider: whose blocks these are.
    """

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self._calls = NativeCalls(marks_ends=True, before_end=self._form)
        self._items: dict[int, _Item] = {}
        self._forms: dict[int, dict[str, Any]] = {}
        self._usage: Usage | None = None
        self._finish: str | None = None
        self._refused = False
        self.done = self.over = False

    def feed(self, event: WireEvent) -> list[SourceEvent]:
        """One event of the stream."""
        at = count_of(event.get("output_index"))
        delta = text_of(event.get("delta"))
        match event.get("type"):
            case "response.output_item.added":
                return self._added(at, mapping_of(event.get("item")))
            case "response.output_text.delta" | "response.refusal.delta" as kind:
                self._refused = self._refused or kind == "response.refusal.delta"
                return self._say(at, delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" as kind:
                return self._think(at, delta, kind)
            case "response.reasoning_summary_part.added" if count_of(event.get("summary_index")):
                return self._think(at, "\n\n", "response.reasoning_summary_text.delta")
            case "response.function_call_arguments.delta":
                return self._hand_over(at, delta)
            case "response.output_item.done":
                return self._ended(at, mapping_of(event.get("item")))
            case "response.completed" | "response.incomplete":
                return self._complete(mapping_of(event.get("response")))
            case "response.failed" | "response.cancelled" as kind:
                error = mapping_of(event.get("response")).get("error")
                raise ErrorInStream.of(error or {"message": "no reason given", "code": kind})
            case "error":
                raise ErrorInStream.of(event.get("error") or event)
        return []

    def close(self) -> list[SourceEvent]:
        """The last events."""
        ending: Finish | None = None
        if self.done:
            ending = finish(FINISHES, self._finish, calls=bool(self._calls.all))
            if self._refused and ending.reason == "stop":
                ending = ending._replace(reason="refusal")
        return last_events(self._calls, self._usage, ending)

    def _item(self, at: int) -> _Item:
        return self._items.setdefault(at, _Item())

    def _added(self, at: int, item: Mapping[str, Any]) -> list[SourceEvent]:
        if text_of(item.get("type")) not in CALLS:
            self._item(at)
            return []
        id = text_of(item.get("call_id")) or text_of(item.get("id"))
        self._item(at).call, events = self._calls.begin(id, text_of(item.get("name")))
        return events

    def _say(self, at: int, text: str) -> list[SourceEvent]:
        item = self._item(at)
        item.said += len(text)
        said = item.joiner.feed(text)
        return [Text(said)] if said else []

    def _think(self, at: int, text: str, kind: str) -> list[SourceEvent]:
        """Thinking, of which a server gives a summary, or all, or both; the first of them counts."""
        item = self._item(at)
        item.thoughts = item.thoughts or kind
        if kind != item.thoughts:
            return []
        item.said += len(text)
        said = item.joiner.feed(text)
        return [Thinking(said)] if said else []

    def _hand_over(self, at: int, text: str) -> list[SourceEvent]:
        item = self._item(at)
        if item.call is None:
            return []
        item.said += len(text)
        return self._calls.more(item.call, text)

    def _ended(self, at: int, whole: Mapping[str, Any]) -> list[SourceEvent]:
        """An item is complete. What of it did not stream before is said now; a whole response arrives only here."""
        kind = text_of(whole.get("type"))
        item = self._item(at)
        rest = item.joiner.close()
        if kind in CALLS:
            return self._end_call(at, whole)
        if kind == "message":
            parts = items_of(whole.get("content"))
            self._refused = self._refused or any(p.get("type") == "refusal" for p in parts)
            text = rest + "".join(text_of(p.get("text")) or text_of(p.get("refusal")) for p in parts)[item.said :]
            said: list[SourceEvent] = [Text(clean(text))] if text else []
            phase = whole.get("phase")
            return [*said, provider_block(self.provider, {"type": "message", "phase": phase})] if phase else said
        if kind == "reasoning":
            text = rest or ("" if item.said else clean(_thoughts(whole)))
            thought: list[SourceEvent] = [Thinking(text)] if text else []
            return [*thought, provider_block(self.provider, dict(whole), thinking=True)]
        return [provider_block(self.provider, dict(whole))] if kind else []

    def _end_call(self, at: int, whole: Mapping[str, Any]) -> list[SourceEvent]:
        item = self._item(at)
        events = self._added(at, whole) if item.call is None else []
        call = item.call
        if call is None:
            return events
        text = text_of(whole.get(CALLS[str(whole["type"])]))
        extra = {k: v for k, v in whole.items() if k not in _PLAIN_FIELDS and v and v != {"type": "direct"}}
        if whole["type"] == "custom_tool_call":
            text = json.dumps({"input": text}, ensure_ascii=False)
        if extra or whole["type"] == "custom_tool_call":
            self._forms[call.index] = {**extra, "type": whole["type"]}
        events += self._calls.more(call, text[item.said :], name=text_of(whole.get("name")))
        return events if whole.get("status") == "incomplete" else events + self._calls.end(call)

    def _complete(self, response: Mapping[str, Any]) -> list[SourceEvent]:
        events: list[SourceEvent] = []
        if not self._items:  # a server that streams nothing but the end
            for at, item in enumerate(items_of(response.get("output"))):
                events += self._ended(at, item)
        self.done = self.over = True
        if response.get("usage"):
            self._usage = usage_of(mapping_of(response["usage"]))
        reason = mapping_of(response.get("incomplete_details")).get("reason")
        self._finish = text_of(reason) or text_of(response.get("status")) or "completed"
        return events

    def _form(self, call: NativeCall) -> list[SourceEvent]:
        """What a call says beyond a plain function call (its namespace, its caller): the provider wants it back."""
        form = self._forms.get(call.index)
        return [provider_block(self.provider, form, index=call.index)] if form else []


def _thoughts(item: Mapping[str, Any]) -> str:
    parts = items_of(item.get("content")) or items_of(item.get("summary"))
    return "\n\n".join(text_of(p.get("text")) for p in parts)


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """The usage of a response."""
    details = mapping_of(usage.get("input_tokens_details"))
    return Usage(
        input_tokens=count_of(usage.get("input_tokens")),
        output_tokens=count_of(usage.get("output_tokens")),
        cached_tokens=count_of(details.get("cached_tokens")),
        cache_write_tokens=count_of(details.get("cache_write_tokens")),
        reasoning_tokens=count_of(mapping_of(usage.get("output_tokens_details")).get("reasoning_tokens")),
    )


def events_of(body: Mapping[str, Any]) -> Iterator[WireEvent]:
    """A whole response as the events it would have been streamed in."""
    status = body.get("status")
    if status in ("failed", "cancelled") or (body.get("error") and status is None):
        yield {"type": f"response.{status or 'failed'}", "response": body}
        return
    for at, item in enumerate(items_of(body.get("output"))):
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    if status in ("completed", "incomplete"):
        yield {"type": f"response.{status}", "response": body}


# ---------------------------------------------------------------- model


class ResponsesModel(RemoteModel):
    """A model behind the Responses API: OpenAI's own, or with `base_url` another server's."""

    prefix = "responses"
    home = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"
    url_variable = "OPENAI_BASE_URL"

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        own = self.at_home or self.provider.endswith(".azure.com")
        body = responses_body(request if own else told(request), self.model, self.provider)
        body["max_output_tokens"] = self._max_tokens(request)
        body["temperature"] = self._temperature(request)
        return self._merged(request, body)

    def _request(self, client: Any, body: dict[str, Any]) -> AbstractAsyncContextManager[Any]:
        return self._send(client.responses.with_streaming_response.create, body, model=self.model)

    def _as_streamed(self, body: Mapping[str, Any]) -> list[WireEvent]:
        return list(events_of(body))

    def _wire(self, body: Mapping[str, Any]) -> ResponsesWire:
        return ResponsesWire(self.provider)

    def _new_client(self, **arguments: Any) -> Any:
        import openai

        return openai.AsyncOpenAI(**arguments)

    def _sdk_errors(self) -> tuple[type[Exception], ...]:
        import openai

        return (openai.OpenAIError,)
