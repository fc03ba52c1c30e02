"""Google's Gemini API, and Vertex AI by the settings of Google's own SDK."""

from __future__ import annotations

import json
import mimetypes
import os
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from agentkit.checks.unicode import clean
from agentkit.errors import ConfigError, install_command
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
)
from agentkit.models import prefill, valid_history
from agentkit.models.base import ABOUT_REPLY, ModelRequest
from agentkit.models.decompression import ACCEPT
from agentkit.models.files_taken import FilesTaken
from agentkit.models.gemini_wire import SIGNATURE, GeminiWire, events_of
from agentkit.models.model_options import ModelSettings
from agentkit.models.provider import RemoteModel
from agentkit.models.render_cache import RenderCache, Taken
from agentkit.models.sent_requests import RawResponse, SentRequests
from agentkit.models.vendors import GOOGLE, VERTEX
from agentkit.schemas import flavours

FILES: Final = FilesTaken(*(("text/*", "application/*", "audio/*", "video/*"),) * 2)
"""What it takes: the API itself refuses the types that a model cannot read. Source: Google, "File input methods"."""

IDS: Final = valid_history.IdRule(limit=64)
"""The rule for agentkit's ids, which are not sent: a call goes back with the id that Google gave it, or with none."""

_THIRD: Final = re.compile(r"(?:.*/)?gemini-(?:[3-9]|\d\d|[a-z-]+-latest$)")
"""Models from Gemini 3 on: they require signatures, take images in results, and a schema together with tools."""

UNSIGNED: Final = "skip_thought_signature_validator"
"""The signature of a call that another model made. Source: Google, "Thought signatures", FAQ."""

_CONTINUES: Final = {"role": "user", "parts": [{"text": "(the conversation continues)"}]}

# ---------------------------------------------------------------- request


def gemini_body(request: ModelRequest, model: str, provider: str) -> dict[str, Any]:
    """The body of a request, except its limits."""
    named = valid_history.named_tool(request)
    third = _THIRD.match(model) is not None
    contents = gemini_contents(request.messages, provider, request.rendered, request.written, third=third)
    body: dict[str, Any] = {"contents": contents, "stream": request.stream, "generationConfig": {}}
    if system := valid_history.system_text(request.messages):
        body["systemInstruction"] = {"parts": [{"text": system}]}
    if request.stop:
        body["generationConfig"]["stopSequences"] = list(request.stop)
    if request.tools:
        mode = {"auto": "AUTO", "none": "NONE"}.get(request.tool_choice, "ANY")
        only = {"allowedFunctionNames": [named]} if named else {}
        body["tools"] = [{"functionDeclarations": [flavours.gemini(spec) for spec in request.tools]}]
        body["toolConfig"] = {"functionCallingConfig": {"mode": mode, **only}}
    if request.output_schema is not None:
        schema = dict(request.output_schema.schema)
        body["generationConfig"] |= {"responseMimeType": "application/json", "responseJsonSchema": schema}
    return body


def gemini_contents(
    messages: Sequence[Message],
    provider: str,
    rendered: RenderCache | None = None,
    written: Set[str] = frozenset(),
    *,
    third: bool = True,
) -> list[dict[str, Any]]:
    """A conversation as contents of user and model in turn; system text is omitted.

    No content has results and a user's text: some models overlook the text. Source: pydantic-ai#4210.
    """
    make = partial(_contents, provider=provider, written=written, third=third)
    sent = (rendered or RenderCache()).of(("gemini", provider, third), messages, make, (written,))
    return [_CONTINUES, *sent] if sent and sent[0]["role"] == "model" else sent


def _contents(
    messages: Sequence[Message], taken: Taken, provider: str, written: Set[str], third: bool
) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = []
    last: type[Message] | None = None
    asked: dict[str, Mapping[str, Any]] = {}  # the calls so far, as they are sent
    for message in valid_history.conversation(messages, IDS, taken, written):
        match message:
            case SystemMessage():
                continue
            case AssistantMessage(content):
                parts = list(_signed(_said(content, provider, valid_history.own_blocks(message, provider)), third))
                sent = [part["functionCall"] for part in parts if "functionCall" in part]
                asked |= {call.id: one for call, one in zip(message.calls, sent, strict=True)}
            case ToolMessage():
                parts = _result(message, asked[message.call_id], third)
            case _:
                parts = list(_content(message.content))
        if parts and type(message) is last:
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": "model" if isinstance(message, AssistantMessage) else "user", "parts": parts})
            last = type(message)
    return contents


def _file(part: ImagePart | FilePart) -> dict[str, Any]:
    url = part.url
    if inline := re.match(r"data:([^;,]+);base64,", url or ""):
        return {"inlineData": {"mimeType": inline[1], "data": (url or "")[inline.end() :]}}
    if url is None:
        return {"inlineData": {"mimeType": part.media_type, "data": part.base64}}
    kind = part.media_type if isinstance(part, FilePart) else mimetypes.guess_type(url.partition("?")[0])[0]
    return {"fileData": {**({"mimeType": kind} if kind else {}), "fileUri": clean(url)}}


_content = partial(valid_history.filled_parts, media=_file)


def _result(message: ToolMessage, call: Mapping[str, Any], third: bool) -> list[dict[str, Any]]:
    """A result with its images, which follow it for models that take none in it."""
    key = "output" if message.error is None else "error"
    images = [_file(part) for part in message.content if isinstance(part, ImagePart)]
    response: dict[str, Any] = {name: call[name] for name in ("id", "name") if name in call}
    response["response"] = {key: clean(message.text)}
    if third and images:
        response["parts"] = images
    return [{"functionResponse": response}, *(images if not third else ())]


def _said(content: Sequence[object], provider: str, forms: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for part in content:
        match part:
            case TextPart(text) if text:
                yield {"text": clean(text)}
            case ToolCall():
                form = forms.get(part.id, {})
                yield {"functionCall": _call(part, form), **({SIGNATURE: form[SIGNATURE]} if SIGNATURE in form else {})}
            case ThinkingPart(_, by, data) if by == provider and data:
                yield dict(data)
            case ProviderPart(by, data, None) if by == provider and data.keys().isdisjoint(ABOUT_REPLY):
                yield dict(data)


def _signed(parts: Iterable[dict[str, Any]], third: bool) -> Iterator[dict[str, Any]]:
    """The parts of a turn, with the signature of a text in its part, and with one on the first call."""
    waiting: dict[str, Any] = {}
    called = not third
    for part in parts:
        if waiting and part.keys() == {"text"}:
            part = {**part, **waiting}
        elif waiting:
            yield {"text": "", **waiting}
        waiting = part if part.keys() == {SIGNATURE} else {}
        if "functionCall" in part and not called:  # further calls have none
            part, called = {SIGNATURE: UNSIGNED, **part}, True
        if not waiting:
            yield part
    if waiting:
        yield {"text": "", **waiting}


def _call(call: ToolCall, form: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json.loads(valid_history.json_text(valid_history.arguments_of(call)))
    id = {"id": form["id"]} if "id" in form else {}
    return {**id, "name": valid_history.fit_name(call.name), "args": arguments}


def _only_says(content: Mapping[str, Any]) -> bool:
    return content["role"] == "model" and all("text" in part for part in content["parts"])


# ---------------------------------------------------------------- model


class GeminiModel(RemoteModel):
    """A model on the Gemini API, or on Vertex AI if the SDK's own environment variables say so."""

    prefix = "gemini"
    files = FILES
    wire = GeminiWire
    vendor = GOOGLE
    as_streamed = staticmethod(events_of)

    def __init__(self, model: str, settings: ModelSettings | None = None) -> None:
        if _uses_vertex():
            self.vendor = VERTEX
        super().__init__(model, settings)

    def _asked(self, request: ModelRequest) -> dict[str, Any]:
        if request.tools and not _THIRD.match(self.model):
            # "Function calling with a response mime type: 'application/json' is unsupported"
            request = valid_history.output_in_prompt(request, constrained=False)
        body = gemini_body(request, self.model, self.provider)
        if not self.continues:
            body["contents"] = prefill.complete(body["contents"], _only_says)
        limits = {"maxOutputTokens": request.max_tokens, "temperature": request.temperature}
        body["generationConfig"] |= {name: value for name, value in limits.items() if value is not None}
        return body

    def _made_client(self) -> SentRequests:
        try:
            from google.auth.exceptions import GoogleAuthError
            from google.genai import Client
        except ModuleNotFoundError as e:
            raise ConfigError(f"{self.name} needs Google's SDK: {install_command('gemini')}") from e

        def made(http_client: Any) -> Any:
            url = self._address.url
            options = {
                "base_url": None if url == self.vendor.home else url,
                "headers": {**ACCEPT, **self._address.headers, **(self.settings.headers or {})},
                "httpx_async_client": http_client,
            }
            try:
                return Client(api_key=self._api_key, http_options=options)  # type: ignore[arg-type]
            except (ValueError, GoogleAuthError) as e:
                raise ConfigError(f"{self.name}: {e}") from e

        return SentRequests(self._new_http_client(), made)

    @asynccontextmanager
    async def _request(self, client: SentRequests, body: dict[str, Any]) -> AsyncGenerator[RawResponse, None]:
        asked = {name: value for name, value in body.items() if name != "stream"}
        config = {"http_options": {"extra_body": asked}, "automatic_function_calling": {"disable": True}}
        models, given = client.sdk.aio.models, {"model": self.model, "contents": "-", "config": config}

        async def send() -> None:
            if not body.get("stream"):
                await models.generate_content(**given)
                return
            async for _ in await models.generate_content_stream(**given):
                pass

        async with client.send(send, self._timeout(), self._address.query) as response:
            yield response

    def _failures(self) -> tuple[type[Exception], ...]:
        from google.auth.exceptions import GoogleAuthError

        return (*super()._failures(), GoogleAuthError)


def _uses_vertex() -> bool:
    """Return whether the SDK will use Vertex AI: the newer of its two variables decides."""
    said = (os.environ.get(name) for name in ("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI"))
    return next((value for value in said if value is not None), "").lower() in ("true", "1")
