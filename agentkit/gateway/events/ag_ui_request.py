"""AG-UI's `RunAgentInput` as an agent reads it. Pure.

The agent has its own instructions, history, tools and state. Of the page's messages only the user's new ones count. The
page's tools are refused; its state and its instructions are left out. Its `context` precedes the last new message, as
the words of the application. Source: the schema of AG-UI 1.0, November 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentkit.agent import Denied
from agentkit.errors import show_value
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.events.page_request import (
    OWN_TOOLS,
    GivenDecision,
    PageRequest,
    conversation_of,
    decision_at,
    file_of,
    id_at,
    linked_file,
    other_part,
    thread_at,
    user_message,
    with_note,
)
from agentkit.gateway.request_fields import Fields, content_at, invalid, mapping_at, objects_at, text_at
from agentkit.messages import TextPart, UserMessage, UserPart

CONTEXT: Final = "Context of the application that the user writes in:\n"
"""Begins the note with the page's `context`."""

ABANDONED: Final = "the question was abandoned"
"""The reason of a denial for which a page sends `cancelled`."""


_TYPES: Final = {
    "image": "image/png",
    "audio": "audio/mpeg",
    "video": "video/mp4",
    "document": "application/pdf",
}
"""Of a file whose URL comes without a type."""


def input_of(body: Mapping[str, Any]) -> PageRequest:
    """Read a request.

    Args:
        body: a `RunAgentInput`, as JSON.

    Raises:
        RequestRefused: status 400; it offers tools, has a damaged file, or is no `RunAgentInput`.
    """
    if body.get("tools"):
        raise RequestRefused(400, f"tools: {OWN_TOOLS}", "unsupported", param="tools")
    note = "".join(
        f"- {text_at(one.get('description'), 'context')}: {text_at(one.get('value'), 'context')}\n"
        for one in objects_at(body.get("context"), "context")
    )
    history, new = conversation_of(
        objects_at(body.get("messages"), "messages"),
        lambda message, at: said_in(message.get("content"), f"{at}.content"),
        lambda message, at: text_at(message.get("content"), at),
    )
    return PageRequest(
        thread_at(body.get("threadId"), "threadId"),
        id_at(body.get("runId"), "runId"),
        with_note(note and f"{CONTEXT}{note}\n", new),
        _decisions(objects_at(body.get("resume"), "resume")),
        tuple(history),
    )


def said_in(content: Any, at: str) -> UserMessage | None:
    """Return the message of a user with this content; None if it says nothing.

    Args:
        content: a string, or AG-UI's parts.
        at: where it is in the request.

    Raises:
        RequestRefused: status 400; it is neither, or has a damaged file.
    """
    return user_message(tuple(content_at(content, at, _part)))


def _part(part: Fields, at: str) -> UserPart:
    match part.get("type"):
        case "text":
            return TextPart(text_at(part.get("text"), at))
        case "image" | "audio" | "video" | "document" as kind:
            source = mapping_at(part.get("source"), f"{at}.source")
            value, media_type = source.get("value"), source.get("mimeType")
            name = mapping_at(part.get("metadata"), at).get("name")
            match source.get("type"):
                case "data":
                    return file_of(value, media_type, name, at)
                case "url":
                    return linked_file(value, media_type or _TYPES[kind], name, at)
                case other:
                    raise invalid(at, f"expected a file's data or URL, found a source of the type {show_value(other)}")
        case kind:
            raise other_part(kind, at)


def _decisions(entries: list[Fields]) -> tuple[GivenDecision, ...]:
    found: dict[str, GivenDecision] = {}
    for n, entry in enumerate(entries):
        at, id = f"resume[{n}]", entry.get("interruptId")
        match entry.get("status"):
            case "resolved":
                given = decision_at(id, entry.get("payload"), at)
            case "cancelled":
                given = decision_at(id, {"approved": False}, at)._replace(decision=Denied(ABANDONED))
            case other:
                raise invalid(at, f"expected the status resolved or cancelled, found {show_value(other)}")
        if given.call_id in found:
            raise invalid(at, f"two decisions about the call {given.call_id!r}")
        found[given.call_id] = given
    return tuple(found.values())
