"""The body of a request to Amazon Bedrock's Converse API: the arguments of boto3's `converse`. Pure."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from mimetypes import guess_type
from typing import Any, Final

from agentkit.checks.keys import shown_url
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
    UserPart,
)
from agentkit.models import valid_history
from agentkit.models.base import ModelRequest
from agentkit.models.caching import MIN_TOKENS, mark_places
from agentkit.models.files_taken import TEXTS, FilesTaken, check_files
from agentkit.models.render_cache import RenderCache, Taken
from agentkit.models.tokens import PER_IMAGE, json_tokens
from agentkit.models.wire import mapping_of
from agentkit.schemas import flavours

IDS: Final = valid_history.IdRule(limit=64, allowed=lambda id: re.fullmatch("[a-zA-Z0-9_-]+", id) is not None)

CONSTRAINED: Final = re.compile(r"anthropic\.claude-(?:(?:haiku|sonnet|opus)-4-5|opus-4-6)|openai\.gpt-oss")
"""The models that can be constrained to a schema; others refuse the field.
Source: Amazon Bedrock, User Guide, Structured output; langchain-aws issue 883."""

_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
FORMATS: Final[Mapping[str, str]] = {
    **{f"image/{name}": name for name in ("png", "jpeg", "gif", "webp")},
    **{"application/pdf": "pdf", "text/csv": "csv", "text/html": "html", "text/markdown": "md"},
    **{"application/msword": "doc", f"{_OFFICE}.wordprocessingml.document": "docx"},
    **{"application/vnd.ms-excel": "xls", f"{_OFFICE}.spreadsheetml.sheet": "xlsx"},
    **{f"video/{name}": name for name in ("mp4", "webm", "mpeg")},
    **{"video/quicktime": "mov", "video/x-matroska": "mkv", "video/x-flv": "flv", "video/x-ms-wmv": "wmv"},
    **{"video/3gpp": "three_gp", "audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/x-m4a": "m4a"},
    **{f"audio/{name}": name for name in ("wav", "flac", "aac", "ogg", "opus", "mp4", "webm")},
}
"""The API's names of media types; any other text is `txt`. Source: the enumerations of its `…Format` types."""

_FILES: Final = (*(one for one in FORMATS if not one.startswith("image/")), *TEXTS)
FILES: Final = FilesTaken(_FILES, _FILES)

CACHE_POINT: Final[Mapping[str, Any]] = {"cachePoint": {"type": "default"}}

_NOT_IN_NAME: Final = re.compile(r"[^a-zA-Z0-9()\[\]-]+")
_NO_OUTPUT: Final = {"text": "(no output)"}  # an empty list and a blank text are refused
_WITH_DOCUMENT: Final = {"text": "(the document)"}  # "A text block must be included when using documents."
_NOT_AVAILABLE: Final = "Not available now: answer in words."


def converse_body(request: ModelRequest, model: str, provider: str) -> dict[str, Any]:
    """The body of a request, with the key `stream` that says which operation it is for."""
    named = valid_history.named_tool(request)
    messages = converse_messages(request.messages, provider, request.rendered, request.written)
    system = valid_history.system_text(request.messages)
    config = {"maxTokens": request.max_tokens, "temperature": request.temperature}
    config["stopSequences"] = list(request.stop) or None
    body: dict[str, Any] = {"modelId": model, "messages": messages, "stream": request.stream}
    body["system"] = [{"text": system}] if system.strip() else None
    body["inferenceConfig"] = {key: value for key, value in config.items() if value is not None} or None
    if valid_history.may_call(request):
        body["toolConfig"] = {"tools": [flavours.converse(spec) for spec in request.tools]}
        if request.tool_choice != "auto":  # which is the default, and all that some models know
            body["toolConfig"]["toolChoice"] = {"tool": {"name": named}} if named else {"any": {}}
    elif names := _called(messages):  # a history with calls is refused without tools
        body["toolConfig"] = {"tools": [_unavailable(name) for name in names]}
    if request.output_schema is not None:
        body["outputConfig"] = flavours.converse_output(request.output_schema)
    return body


def _called(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the tools called in a conversation, in order."""
    return list(dict.fromkeys(b["toolUse"]["name"] for m in messages for b in m["content"] if "toolUse" in b))


def _unavailable(name: str) -> dict[str, Any]:
    schema = {"json": {"type": "object", "properties": {}}}
    return {"toolSpec": {"name": name, "description": _NOT_AVAILABLE, "inputSchema": schema}}


def check_media(model: str, messages: Iterable[Message]) -> None:
    """Refuse images and files that the API does not take.

    Raises:
        ConfigError: it names the type or the URL, and what the API takes.
    """
    messages = [message for message in messages if isinstance(message, UserMessage | ToolMessage)]
    for part in (part for message in messages for part in message.content if not isinstance(part, TextPart)):
        if part.url is not None and not part.url.startswith(("s3://", "data:")):
            raise ConfigError(f"{model}: takes no URL but s3://…, found {shown_url(part.url)!r}; pass the bytes as data=")
        if isinstance(part, ImagePart) and (kind := _media_type(part)) not in FORMATS:
            images = ", ".join(one for one in FORMATS if one.startswith("image/"))
            raise ConfigError(f"{model}: takes no image ({kind}); it takes {images}")
    check_files(model, messages, FILES)


def converse_messages(
    messages: Sequence[Message], provider: str, rendered: RenderCache | None = None, written: Set[str] = frozenset()
) -> list[dict[str, Any]]:
    """A conversation as alternating user and assistant messages; results come first. System text is omitted."""
    make = partial(_messages, provider=provider, written=written)
    sent = (rendered or RenderCache()).of(("converse", provider), messages, make, (written,))
    if sent and sent[-1]["role"] == "assistant" and "text" in (end := sent[-1]["content"][-1]):
        end["text"] = end["text"].rstrip()  # "final assistant content cannot end with trailing whitespace"
    if sent and sent[0]["role"] == "assistant":
        sent.insert(0, {"role": "user", "content": [{"text": "(the conversation continues)"}]})
    return sent


def _messages(messages: Sequence[Message], taken: Taken, provider: str, written: Set[str]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for message in valid_history.conversation(messages, IDS, taken, written):
        if isinstance(message, SystemMessage):
            continue
        if isinstance(message, AssistantMessage):
            role, blocks = "assistant", _assistant(message, provider)
        elif isinstance(message, ToolMessage):
            role, blocks = "user", [_result(message, taken)]
        else:
            role, blocks = "user", list(_content(message.content, taken))
        if blocks and made and made[-1]["role"] == role:
            made[-1]["content"] += blocks
        elif blocks:
            made.append({"role": role, "content": blocks})
    return made


def _content(parts: Sequence[UserPart], taken: Taken) -> Iterator[dict[str, Any]]:
    """Blocks of text, images and files; blank text, which the API refuses, is omitted."""
    texts = [part for part in parts if isinstance(part, TextPart) and part.text.strip()]
    if not texts and any(isinstance(part, FilePart) and part.kind == "document" for part in parts):
        yield dict(_WITH_DOCUMENT)
    for part in parts:
        if isinstance(part, TextPart):
            if part in texts:
                yield {"text": clean(part.text)}
            continue
        block = {"format": FORMATS.get(_media_type(part), "txt"), "source": _source(part)}
        if isinstance(part, ImagePart):
            yield {"image": block}
        elif part.kind == "document":
            yield {"document": {**block, "name": _document_name(part.name, taken)}}
        else:
            yield {part.kind: block}


def _media_type(part: ImagePart | FilePart) -> str:
    """The type of a part; that of an image's URL is in it."""
    if isinstance(part, FilePart) or part.url is None:
        return part.media_type
    return guess_type(part.url)[0] or part.media_type


def _source(part: ImagePart | FilePart) -> dict[str, Any]:
    if part.url is None:
        return {"bytes": part.data}
    if part.url.startswith("data:"):
        return {"bytes": base64.b64decode(part.url.partition(",")[2])}
    return {"s3Location": {"uri": part.url}}


def _document_name(name: str, taken: Taken) -> str:
    """A name of the characters that the API allows; two documents with one name are refused."""
    fitted = unique = _NOT_IN_NAME.sub(" ", name).strip()[:150] or "document"
    number = 1
    while f"document {unique}" in taken:  # no id of a call has a space
        number += 1
        unique = f"{fitted} ({number})"
    taken[f"document {unique}"] = 1
    return unique


def _result(message: ToolMessage, taken: Taken) -> dict[str, Any]:
    content = list(_content(message.content, taken)) or [dict(_NO_OUTPUT)]
    status = "success" if message.error is None else "error"
    return {"toolResult": {"toolUseId": message.call_id, "content": content, "status": status}}


def _assistant(message: AssistantMessage, provider: str) -> list[dict[str, Any]]:
    own = [p.data for p in message.content if isinstance(p, ProviderPart) and p.provider == provider]
    asked, answered = ({mapping_of(d.get(kind)).get("toolUseId") for d in own} for kind in ("toolUse", "toolResult"))
    blocks: list[dict[str, Any]] = []
    for part in message.content:
        match part:
            case TextPart(text) if text.strip():
                blocks.append({"text": clean(text)})
            case ToolCall():
                arguments = json.loads(valid_history.json_text(valid_history.arguments_of(part)))
                use = {"toolUseId": part.id, "name": valid_history.fit_name(part.name), "input": arguments}
                blocks.append({"toolUse": use})
            case ThinkingPart(_, by, data) if by == provider and data:
                blocks.append(_thought(data))
            case ProviderPart(by, data) if by == provider:
                ids = {mapping_of(block).get("toolUseId") for block in data.values()}
                blocks += [dict(data)] if ids <= asked & answered else []  # a call without an answer is refused
    while blocks and "reasoningContent" in blocks[-1]:
        blocks.pop()  # a message must not end with thinking
    return blocks


def _thought(data: Mapping[str, Any]) -> dict[str, Any]:
    """A block of thinking; its encrypted bytes are kept in base64."""
    redacted = mapping_of(data.get("reasoningContent")).get("redactedContent")
    if redacted is None:
        return dict(data)
    return {"reasoningContent": {"redactedContent": base64.b64decode(redacted)}}


# ---------------------------------------------------------------- prompt cache


def add_cache_points(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request's body with its cache points, at the places of `caching`; the original blocks are unchanged."""
    made = dict(body)
    config, system = mapping_of(made.get("toolConfig")), made.get("system") or []
    tools = config.get("tools") or []
    tokens = sum(map(json_tokens, [*tools, *system]))
    if tokens >= MIN_TOKENS and system:
        made["system"] = [*system, dict(CACHE_POINT)]
    elif tokens >= MIN_TOKENS:
        made["toolConfig"] = {**config, "tools": [*tools, dict(CACHE_POINT)]}
    places = set(mark_places(made["messages"], tokens, _block_tokens))
    made["messages"] = [_with_point(m) if at in places else m for at, m in enumerate(made["messages"])]
    return made


def _block_tokens(block: Mapping[str, Any]) -> int:
    if "toolResult" in block:
        return sum(map(_block_tokens, block["toolResult"]["content"]))
    return PER_IMAGE if block.keys() & {"image", "document", "video", "audio"} else json_tokens(block)


def _with_point(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message with a cache point at its end; before documents and videos, which it must not follow."""
    blocks = message["content"]
    at = len(blocks)
    while at > 1 and blocks[at - 1].keys() & {"document", "video"}:
        at -= 1
    return {**message, "content": [*blocks[:at], dict(CACHE_POINT), *blocks[at:]]}
