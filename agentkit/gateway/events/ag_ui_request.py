"""AG-UI's `RunAgentInput` as an agent reads it. Pure.

The agent has its own instructions, history, tools and state. Of the page's messages only the user's new ones count. The
page's tools are refused; its state and its instructions are left out. Its `context` precedes the last new message, as
the words of the application. Source: the schema of AG-UI 1.0, November 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentkit.agent import Denied
from agentkit.errors import show_value
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.events.page_request import (
    OWN_TOOLS,
    GivenDecision,
    NewMessage,
    PageRequest,
    decision_at,
    first_new,
    id_at,
    image_of,
    linked_image,
    other_part,
    thread_at,
    user_message,
    with_note,
)
from agentkit.gateway.request_fields import Fields, Part, content_at, invalid, mapping_at, objects_at, text_at
from agentkit.messages import AssistantMessage, TextPart, UserMessage

CONTEXT: Final = "Context of the application that the user writes in:\n"
"""Begins the note with the page's `context`."""

ABANDONED: Final = "the question was abandoned"
"""The reason of a denial for which a page sends `cancelled`."""


def input_of(body: Mapping[str, Any]) -> PageRequest:
    """Read a request.

    Args:
        body: a `RunAgentInput`, as JSON.

    Raises:
        RequestRefused: status 400; it offers tools, has a file other than an image, or is no `RunAgentInput`.
    """
    if body.get("tools"):
        raise RequestRefused(400, f"tools: {OWN_TOOLS}", "unsupported", param="tools")
    note = "".join(
        f"- {text_at(one.get('description'), 'context')}: {text_at(one.get('value'), 'context')}\n"
        for one in objects_at(body.get("context"), "context")
    )
    messages = objects_at(body.get("messages"), "messages")
    new = first_new([message.get("role") for message in messages])
    return PageRequest(
        thread_at(body.get("threadId"), "threadId"),
        id_at(body.get("runId"), "runId"),
        with_note(note and f"{CONTEXT}{note}\n", _new_messages(messages, new)),
        _decisions(objects_at(body.get("resume"), "resume")),
        tuple(_words(messages[:new])),
    )


def _new_messages(messages: list[Fields], first: int) -> Iterator[NewMessage]:
    for n, message in enumerate(messages[first:], first):
        at = f"messages[{n}]"
        if message.get("role") == "user" and (said := said_in(message.get("content"), f"{at}.content")) is not None:
            yield NewMessage(id_at(message.get("id"), f"{at}.id"), said)


def _words(messages: list[Fields]) -> Iterator[UserMessage | AssistantMessage]:
    for n, message in enumerate(messages):
        at = f"messages[{n}]"
        if message.get("role") == "user" and (said := said_in(message.get("content"), f"{at}.content")) is not None:
            yield said
        elif message.get("role") == "assistant" and (text := text_at(message.get("content"), at)).strip():
            yield AssistantMessage(text)


def said_in(content: Any, at: str) -> UserMessage | None:
    """Return the message of a user with this content; None if it says nothing.

    Args:
        content: a string, or AG-UI's parts.
        at: where it is in the request.

    Raises:
        RequestRefused: status 400; it is neither, or has a file other than an image.
    """
    return user_message(tuple(content_at(content, at, _part)))


def _part(part: Fields, at: str) -> Part:
    match part.get("type"):
        case "text":
            return TextPart(text_at(part.get("text"), at))
        case "image":
            source = mapping_at(part.get("source"), f"{at}.source")
            match source.get("type"):
                case "data":
                    return image_of(source.get("value"), source.get("mimeType"), at)
                case "url":
                    return linked_image(source.get("value"), at)
                case other:
                    raise invalid(
                        at, f"expected an image's data or URL, found a source of the type {show_value(other)}"
                    )
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
