"""A request of the AI SDK's `useChat` as an agent reads it. Pure.

The agent has its own history: of the page's messages only the user's new ones count, and the decisions in the last
message of the assistant. Source: `HttpChatTransport` of the npm package `ai` 6, November 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.events.page_request import (
    GivenDecision,
    PageRequest,
    conversation_of,
    decision_at,
    linked_file,
    other_part,
    thread_at,
    user_message,
)
from agentkit.gateway.request_fields import Fields, mapping_at, objects_at, text_at
from agentkit.messages import TextPart, UserMessage, UserPart


def chat_input_of(body: Mapping[str, Any]) -> PageRequest:
    """Read a request.

    Args:
        body: as `DefaultChatTransport` sends it.

    Raises:
        RequestRefused: status 400; it asks for another answer to an old message, has a damaged file, or is not such a
            request.
    """
    if body.get("trigger") == "regenerate-message":
        raise RequestRefused(
            400,
            "trigger: a reply that a thread has cannot be written again: send a new message, or fork the thread",
            "unsupported",
            param="trigger",
        )
    thread, messages = thread_at(body.get("id"), "id"), objects_at(body.get("messages"), "messages")
    last = (messages or [{}])[-1]
    history, new = conversation_of(messages, _said, _text)
    decisions = _decisions(last, f"messages[{len(messages) - 1}]") if last.get("role") == "assistant" else ()
    return PageRequest(thread, "", tuple(new), decisions, tuple(history))


def _text(message: Fields, at: str) -> str:
    parts = objects_at(message.get("parts"), f"{at}.parts")
    return "".join(text_at(part.get("text"), at) for part in parts if part.get("type") == "text")


def _said(message: Fields, at: str) -> UserMessage | None:
    parts = enumerate(objects_at(message.get("parts"), f"{at}.parts"))
    read = [_part(part, f"{at}.parts[{n}]") for n, part in parts]
    return user_message(tuple(part for part in read if part is not None))


def _part(part: Fields, at: str) -> UserPart | None:
    kind = part.get("type")
    if kind == "text":
        return TextPart(text_at(part.get("text"), at))
    if kind == "file":
        return linked_file(part.get("url"), part.get("mediaType"), part.get("filename"), at)
    if isinstance(kind, str) and kind.startswith("data-"):  # between the page's own parts
        return None
    raise other_part(kind, at)


def _decisions(message: Fields, at: str) -> tuple[GivenDecision, ...]:
    found = []
    for n, part in enumerate(objects_at(message.get("parts"), f"{at}.parts")):
        if part.get("state") == "approval-responded":
            approval = mapping_at(part.get("approval"), f"{at}.parts[{n}].approval")
            found.append(decision_at(approval.get("id"), approval, f"{at}.parts[{n}].approval"))
    return tuple(found)
