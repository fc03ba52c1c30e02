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
    NewMessage,
    PageRequest,
    decision_at,
    id_at,
    linked_image,
    other_part,
    user_message,
)
from agentkit.gateway.request_fields import Fields, Part, mapping_at, objects_at, text_at
from agentkit.messages import TextPart


def chat_input_of(body: Mapping[str, Any]) -> PageRequest:
    """Read a request.

    Args:
        body: as `DefaultChatTransport` sends it.

    Raises:
        RequestRefused: status 400; it asks for another answer to an old message, has a file other than an image, or is
            no such request.
    """
    if body.get("trigger") == "regenerate-message":
        raise RequestRefused(
            400,
            "trigger: a reply that a thread has cannot be written again: send a new message, or fork the thread",
            "unsupported",
            param="trigger",
        )
    thread, messages = id_at(body.get("id"), "id"), objects_at(body.get("messages"), "messages")
    last = messages[-1] if messages else {}
    if last.get("role") == "assistant":
        return PageRequest(thread, "", (), _decisions(last, f"messages[{len(messages) - 1}]"))
    return PageRequest(thread, "", tuple(_new_messages(messages)))


def _new_messages(messages: list[Fields]) -> list[NewMessage]:
    """The user's messages after the last reply."""
    first = max((n + 1 for n, message in enumerate(messages) if message.get("role") == "assistant"), default=0)
    found = []
    for n, message in enumerate(messages[first:], first):
        if message.get("role") != "user":
            continue
        at = f"messages[{n}]"
        parts = [
            _part(part, f"{at}.parts[{m}]") for m, part in enumerate(objects_at(message.get("parts"), f"{at}.parts"))
        ]
        said = user_message(tuple(part for part in parts if part is not None))
        if said is not None:
            found.append(NewMessage(id_at(message.get("id"), f"{at}.id"), said))
    return found


def _part(part: Fields, at: str) -> Part | None:
    kind = part.get("type")
    if kind == "text":
        return TextPart(text_at(part.get("text"), at))
    if kind == "file" and str(part.get("mediaType")).startswith("image/"):
        return linked_image(part.get("url"), at)
    if isinstance(kind, str) and kind.startswith("data-"):  # between the page's own parts
        return None
    raise other_part(part.get("mediaType", kind), at)


def _decisions(message: Fields, at: str) -> tuple[GivenDecision, ...]:
    found = []
    for n, part in enumerate(objects_at(message.get("parts"), f"{at}.parts")):
        if part.get("state") == "approval-responded":
            approval = mapping_at(part.get("approval"), f"{at}.parts[{n}].approval")
            found.append(decision_at(approval.get("id"), approval, f"{at}.parts[{n}].approval"))
    return tuple(found)
