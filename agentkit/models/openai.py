"""OpenAI's chat completions, and every server compatible with them (vLLM, Ollama, OpenRouter, Groq, …)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final

from agentkit.checks.message_values import text_in
from agentkit.checks.unicode import Joiner, clean
from agentkit.errors import ProviderError
from agentkit.events import SourceEvent, Text, Usage
from agentkit.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    UserPart,
)
from agentkit.models import chat_thinking, prefill, valid_history
from agentkit.models.base import ModelRequest
from agentkit.models.chat_calls import WhichCall
from agentkit.models.chat_choices import Choice, calls_of, place_of
from agentkit.models.chat_thinking import ChatThinking
from agentkit.models.conversion import Conversion
from agentkit.models.files_taken import TEXTS, FilesTaken, name_of
from agentkit.models.finishes import finish, meaning, retracts
from agentkit.models.model_options import ModelSettings
from agentkit.models.provider import RemoteModel
from agentkit.models.render_cache import RenderCache, Taken
from agentkit.models.servers import SERVERS
from agentkit.models.stream_errors import ErrorInStream, raise_error
from agentkit.models.vendors import OPENAI
from agentkit.models.wire import (
    DONE,
    Wire,
    WireEvent,
    items_of,
    json_text_of,
    mapping_of,
    offered_schemas,
    openai_usage,
    text_of,
)
from agentkit.schemas import flavours

_AUDIO: Final = {"audio/wav": "wav", "audio/mpeg": "mp3"}
FILES: Final = FilesTaken(("application/pdf", *TEXTS, *_AUDIO))
"""What OpenAI takes. Source: OpenAI's guides "File inputs" (only PDF, no URLs) and "Audio", November 2026."""

IDS: Final = valid_history.IdRule(limit=40)  # "string too long. Expected a string with maximum length 40"

# ---------------------------------------------------------------- request


def chat_body(request: ModelRequest, model: str, provider: str, by_url: bool = False) -> dict[str, Any]:
    """The body of a request, except what depends on the server; for `by_url` see `Server`."""
    named = valid_history.named_tool(request)
    messages = chat_messages(request.messages, provider, request.rendered, request.written, by_url)
    body: dict[str, Any] = {"model": model, "messages": messages, "stream": request.stream}
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [flavours.openai_chat(spec) for spec in request.tools]
        body["tool_choice"] = {"type": "function", "function": {"name": named}} if named else request.tool_choice
        body["parallel_tool_calls"] = request.parallel_tool_calls
    if request.output_schema is not None:
        body["response_format"] = flavours.openai_chat_output(request.output_schema)
    body["stop"] = list(request.stop) or None
    return body


def chat_messages(
    messages: Sequence[Message],
    provider: str,
    rendered: RenderCache | None = None,
    written: Set[str] = frozenset(),
    by_url: bool = False,
) -> list[dict[str, Any]]:
    """A conversation as chat messages. A tool's images follow its results in a user message: results are text only."""
    make = partial(_messages, provider=provider, written=written, by_url=by_url)
    return (rendered or RenderCache()).of(("chat", provider, by_url), messages, make, (written,))


def _messages(
    messages: Sequence[Message], taken: Taken, provider: str, written: Set[str], by_url: bool
) -> list[dict[str, Any]]:
    rendered: list[dict[str, Any]] = []
    content = partial(valid_history.text_or_parts, text_type="text", media=partial(media_part, by_url=by_url))
    said: list[UserPart] | None = None  # by the user, since the last message in another role
    for message in valid_history.conversation(messages, IDS, taken, written):
        if isinstance(message, UserMessage):
            said = [*(said or ()), *message.content]
        elif isinstance(message, ToolMessage):
            images = _images(message)
            rendered.append(_result(message, images))
            said = [*(said or ()), *images] or None
        elif others := list(_others(message, provider)):
            if said is not None:
                rendered.append({"role": "user", "content": content(said)})
                said = None
            rendered += others
    if said is not None:
        rendered.append({"role": "user", "content": content(said)})
    return rendered


def media_part(part: ImagePart | FilePart, by_url: bool = False) -> dict[str, Any]:
    """An image or a file, which the API takes, as a content part; for `by_url` see `Server`."""
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": clean(part.data_url)}}
    if (text := text_in(part.data, part.media_type)) is not None:
        return {"type": "text", "text": f"{name_of(part)}:\n\n{text}"}
    if part.kind == "document":
        return {"type": "file", "file": {"filename": name_of(part), "file_data": part.data_url}}
    if not by_url and part.media_type in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": part.base64, "format": _AUDIO[part.media_type]}}
    return {"type": f"{part.kind}_url", f"{part.kind}_url": {"url": clean(part.data_url)}}


def _others(message: SystemMessage | AssistantMessage, provider: str) -> Iterator[dict[str, Any]]:
    if isinstance(message, SystemMessage):
        yield {"role": "system", "content": clean(message.content)}
        return
    extras = valid_history.own_blocks(message, provider)
    thinking = _joined_thinking(
        [p.data for p in message.content if isinstance(p, ThinkingPart) and p.provider == provider and p.data]
    )
    text = clean(message.text)
    calls = [_call(part, extras) for part in message.content if isinstance(part, ToolCall)]
    if text or calls:  # thinking alone is refused
        yield {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {}), **thinking}


def _call(call: ToolCall, extras: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    function = {"name": valid_history.fit_name(call.name), "arguments": valid_history.arguments_text(call)}
    return {**extras.get(call.id, {}), "id": call.id, "type": "function", "function": function}


def _joined_thinking(blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several stretches of thinking in one message's fields."""
    fields: dict[str, Any] = {}
    for block in blocks:
        for name, value in block.items():
            fields[name] = fields[name] + value if name in fields else value
    return fields


def _images(message: ToolMessage) -> list[TextPart | ImagePart]:
    """A result's images, with a line that names the call they belong to."""
    images = [p for p in message.content if isinstance(p, ImagePart)]
    name = message.name or valid_history.UNNAMED
    return [TextPart(f"What {name} ({message.call_id}) returned:"), *images] if images else []


def _result(message: ToolMessage, images: Sequence[TextPart | ImagePart]) -> dict[str, Any]:
    text = clean(message.text) or ("The image is in the next user message." if images else "")
    return {"role": "tool", "tool_call_id": message.call_id, "content": text}


# ---------------------------------------------------------------- response


class ChatWire(Wire):
    """One response of chat completions.

    Args:
        provider: the provider that wrote the blocks.
        tools: the names of the tools that were offered.
        schemas: their schemas, by name.
        alternatives: whether several answers were requested, of which the first one is read. Otherwise the calls in
            another choice are those of the answer, if the first choice has none and says that it has.
    """

    def __init__(
        self,
        provider: str,
        tools: Iterable[str] = (),
        schemas: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        *,
        alternatives: bool = False,
    ) -> None:
        super().__init__(provider, schemas, whole=False)
        self._whole: Mapping[str, Any] = {}  # the message as a whole, if a stream has it in addition to its pieces
        self._said = False
        self._which = WhichCall(tools, self._calls.takes_nothing)
        self._others: dict[int, list[Choice]] | None = None if alternatives else {}
        self._text, self._thinking = Joiner(), ChatThinking(provider)
        self._usage: Usage | None = None
        self._refused = False

    def feed(self, event: WireEvent) -> list[SourceEvent]:
        """One chunk, or `DONE`."""
        raise_error(event)
        if event is DONE:
            self.done = self.over = True
        events: list[SourceEvent] = []
        choices = items_of(event.get("choices"))
        for place in (event, event.get("x_groq"), *choices):  # Moonshot has it in the choice
            self._count(mapping_of(place).get("usage"))
        for at, choice in enumerate(choices):
            index = choice.get("index")
            place = index if type(index) is int else at
            if choice.get("error") and (place <= 0 or self._others is not None):
                raise ErrorInStream.of(choice["error"])
            if place <= 0:
                events += self._choice(choice)
            elif self._others is not None:
                self._others.setdefault(place, []).append(choice)
        if not (choices or "choices" in event or event.get("usage") or event is DONE):
            self._calls.unread(event)
        return events

    def _count(self, usage: object) -> None:
        """Counts are totals so far: zeros after others count nothing."""
        if usage:
            now = openai_usage(mapping_of(usage), "prompt", "completion")
            self._usage = Usage(*(new or old for new, old in zip(now, self._usage or Usage(), strict=True)))

    def _choice(self, choice: Mapping[str, Any]) -> list[SourceEvent]:
        reason = choice.get("finish_reason")
        if reason is not None:
            self._finish = self._finish if retracts(self._finish) else text_of(reason)
            self.done = True
        self._whole = mapping_of(choice.get("message")) or self._whole
        deltas = items_of(choice.get("delta")) or [{"content": text_of(choice.get("text"))}]
        said = (*deltas, self._whole)
        self._refused = self._refused or any("refusal" in one and text_of(one["refusal"]) for one in said)
        return [event for delta in deltas for event in self._delta(delta)]

    def close(self) -> list[SourceEvent]:
        """The last events."""
        events = self._finally() + self._say(self._text.close()) + self._thinking.end()
        ending = None
        if self.done:
            ending = finish(self._finish, calls=self.called, refused=self._refused)
        return events + self._calls.close(self._usage, ending)

    def _delta(self, delta: Mapping[str, Any]) -> list[SourceEvent]:
        events = [] if chat_thinking.NAMES.isdisjoint(delta) else self._thinking.feed(delta)
        content, refusal = delta.get("content") or delta.get("text"), text_of(delta.get("refusal"))
        if not content or isinstance(content, str):
            events += self._say(self._text.feed(text_of(content)))
        else:
            for part in content if isinstance(content, list) else [content]:  # Mistral's reasoning models
                inner = "".join(text_of(p.get("text")) for p in items_of(mapping_of(part).get("thinking")))
                words = text_of(part) or text_of(mapping_of(part).get("text"))
                events += self._thinking.say(inner) + self._say(self._text.feed(words))
        if refusal:
            events += self._say(self._text.feed(refusal))
        for piece in items_of(delta.get("tool_calls")):
            events += self._call_piece(piece)
        return events

    def _finally(self) -> list[SourceEvent]:
        """Read what only the message as a whole has, or another choice: the words or the calls, if no piece had any."""
        words = {} if self._said else {k: self._whole[k] for k in ("content", "refusal") if k in self._whole}
        events = self._delta(words)
        if not self.called:
            events += self._delta({"tool_calls": in_places(items_of(self._whole.get("tool_calls")))})
        if self._others and not self.called and meaning(self._finish) == "tool_calls":
            events += self._delta({"tool_calls": calls_of(self._others)})
        self._which.judge()
        return events

    def _say(self, text: str) -> list[SourceEvent]:
        self._said = self._said or bool(text)
        return [*self._thinking.end(), Text(text)] if text else []

    def _call_piece(self, piece: Mapping[str, Any]) -> list[SourceEvent]:
        function = function_of(piece)
        id, name = clean(text_of(piece.get("id"))), clean(text_of(function.get("name")))
        text, index = json_text_of(function.get("arguments")), place_of(piece)
        events = self._thinking.end()
        call = self._which.find(index, id, name, text)
        if call is None:
            call, begun = self._calls.begin(id, name)
            events += begun
            self._which.begin(call, index)
        else:
            self._which.continue_call(call, index, id, name)
        call.has_arguments = call.has_arguments or "arguments" in function
        # such as Gemini's thought signatures
        call.extras |= {k: v for k, v in piece.items() if k not in PLAIN and v}
        return events + self._calls.more(call, text)


PLAIN: Final = frozenset(("index", "id", "type", "function", "custom", "name", "arguments"))
"""The fields of a call that are read; all others are its extras."""


def function_of(piece: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name and arguments in a piece of a call, with or without the object `function` (Source: home-llm#348)."""
    function = mapping_of(piece.get("function"))
    if function and "name" not in piece and "arguments" not in piece:
        return function
    given = {k: piece[k] for k in ("name", "arguments") if piece.get(k) and not function.get(k)}
    return {**function, **given} if given else function or {"name": mapping_of(piece.get("custom")).get("name")}


def chunks_of(body: Mapping[str, Any]) -> list[WireEvent]:
    """A whole completion as the chunk in which it would have been streamed."""
    if body.get("error"):
        return [body]
    choices = []
    for choice in items_of(body.get("choices")):
        message = mapping_of(choice.get("message"))
        delta = {**message, "tool_calls": in_places(items_of(message.get("tool_calls")))}
        choices.append({**choice, "message": None, "delta": delta})
    return [{"choices": choices, "usage": body.get("usage")}] + ([DONE] if choices else [])


def in_places(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The calls of a whole message, as pieces of a stream."""
    return [{**call, "index": at} for at, call in enumerate(calls)]


# ---------------------------------------------------------------- model


class OpenAIModel(RemoteModel):
    """A model on chat completions: OpenAI's own, or with `base_url` any compatible server's."""

    prefix = "openai"
    vendor = OPENAI
    method = "chat.completions"
    required: ClassVar = {"messages": []}
    as_streamed = staticmethod(chunks_of)

    def __init__(self, model: str, settings: ModelSettings | None = None) -> None:
        super().__init__(model, settings)
        self._conversion = Conversion(self.name, self.server)
        self.files = FILES if self.server is None else SERVERS[self.server].files

    def _asked(self, request: ModelRequest) -> dict[str, Any]:
        own = self.is_vendor_api
        fitted = request if own else self._conversion.fit(valid_history.describe_output(request))
        server = SERVERS.get(self.server or "")
        body = chat_body(fitted, self.model, self.provider, server is not None and server.by_url)
        # OpenAI's reasoning models refuse the old name, most other servers do not know the new one
        body["max_completion_tokens" if own else "max_tokens"] = request.max_tokens
        if not self.continues:
            body["messages"] = prefill.complete(body["messages"])
        elif prefill.is_unfinished(body["messages"]):
            body = prefill.chat_continued(body, self._address.url)
        return {**body, "temperature": request.temperature}

    def _explain(self, error: ProviderError, request: ModelRequest) -> str:
        return "" if self.is_vendor_api else self._conversion.explain(error, request)

    def _continues(self) -> bool:
        told = (self.settings.extra or {}).get("continue_final_message")
        return bool(told) or prefill.server_continues(self._address.url)

    def _wire(self, body: Mapping[str, Any]) -> ChatWire:
        tools = offered_schemas(body)
        return ChatWire(self.provider, tools, tools, alternatives=body.get("n") not in (None, 1))
