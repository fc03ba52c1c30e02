"""Other toolkits' names for the arguments of messages and parts, and for roles. Tables only."""

from __future__ import annotations

from typing import Final

from agentkit.foreign.attributes import Words, same

TOOL_CALL: Final[Words] = {
    **same("arguments", "args input kwargs parameters tool_args"),
    **same("name", "tool_name function tool"),
    **same("id", "call_id tool_call_id"),
    "type": "omit it: there is only one kind",
}

MESSAGE: Final[Words] = {
    **same("content", "text parts message prompt"),
    **same("a call is a part: AssistantMessage(['Let me see.', ToolCall(…)])", "calls tool_calls"),
    "thinking": "it is a part: AssistantMessage([ThinkingPart('…'), '…'])",
    "role": "omit it: the class determines it",
    **same("omit it: messages do not have it", "id name"),
}

USER: Final[Words] = {
    **same("pass it directly: user('Hello')", "text content message parts prompt"),
    **same("pass it directly: user('What is this?', ImagePart(url='https://…'))", "image images image_url"),
}

TEXT_PART: Final[Words] = {
    **same("text", "content value data"),
    "type": "omit it: the class determines it",
}

IMAGE_PART: Final[Words] = {
    **same("read a file first: ImagePart(Path('chart.png').read_bytes())", "path file filename"),
    "base64": "decode it first: ImagePart(base64.b64decode(…))",
    **same("data", "bytes content image"),
    **same("media_type", "mime_type content_type format"),
    **same("url", "image_url href address"),
    "type": "omit it: the class determines it",
}

FILE_PART: Final[Words] = {
    **same("read a file by its path: FilePart.from_path('report.pdf')", "path file file_path filepath"),
    "base64": "decode it first: FilePart(base64.b64decode(…))",
    **same("data", "bytes content file_data"),
    **same("media_type", "mime_type content_type format"),
    **same("url", "file_url href address uri"),
    **same("name", "filename title display_name"),
    "file_id": "a provider's own file is not referred to: pass its bytes or a URL",
    "type": "omit it: the media type determines it",
}

ROLES: Final[Words] = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant"}
