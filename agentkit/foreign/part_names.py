"""Other toolkits' names for the arguments of messages and parts, and for roles. Tables only."""

from __future__ import annotations

from typing import Final

from agentkit.foreign.attributes import Words

TOOL_CALL: Final[Words] = {
    **dict.fromkeys(("args", "input", "kwargs", "parameters", "tool_args"), "arguments"),
    **dict.fromkeys(("tool_name", "function", "tool"), "name"),
    **dict.fromkeys(("call_id", "tool_call_id"), "id"),
    "type": "omit it: there is only one kind",
}

MESSAGE: Final[Words] = {
    **dict.fromkeys(("text", "parts", "message", "prompt"), "content"),
    **dict.fromkeys(("calls", "tool_calls"), "a call is a part: AssistantMessage(['Let me see.', ToolCall(…)])"),
    "thinking": "it is a part: AssistantMessage([ThinkingPart('…'), '…'])",
    "role": "omit it: the class determines it",
    **dict.fromkeys(("id", "name"), "omit it: messages do not have it"),
}

USER: Final[Words] = {
    **dict.fromkeys(("text", "content", "message", "parts", "prompt"), "pass it directly: user('Hello')"),
    **dict.fromkeys(
        ("image", "images", "image_url"), "pass it directly: user('What is this?', ImagePart(url='https://…'))"
    ),
}

TEXT_PART: Final[Words] = {
    **dict.fromkeys(("content", "value", "data"), "text"),
    "type": "omit it: the class determines it",
}

IMAGE_PART: Final[Words] = {
    **dict.fromkeys(("path", "file", "filename"), "read a file first: ImagePart(Path('chart.png').read_bytes())"),
    "base64": "decode it first: ImagePart(base64.b64decode(…))",
    **dict.fromkeys(("bytes", "content", "image"), "data"),
    **dict.fromkeys(("mime_type", "content_type", "format"), "media_type"),
    **dict.fromkeys(("image_url", "href", "address"), "url"),
    "type": "omit it: the class determines it",
}

FILE_PART: Final[Words] = {
    **dict.fromkeys(
        ("path", "file", "file_path", "filepath"), "read a file by its path: FilePart.from_path('report.pdf')"
    ),
    "base64": "decode it first: FilePart(base64.b64decode(…))",
    **dict.fromkeys(("bytes", "content", "file_data"), "data"),
    **dict.fromkeys(("mime_type", "content_type", "format"), "media_type"),
    **dict.fromkeys(("file_url", "href", "address", "uri"), "url"),
    **dict.fromkeys(("filename", "title", "display_name"), "name"),
    "file_id": "a provider's own file is not referred to: pass its bytes or a URL",
    "type": "omit it: the media type determines it",
}

ROLES: Final[Words] = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant"}
