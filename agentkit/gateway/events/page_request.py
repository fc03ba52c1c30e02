"""The request of a page, whichever protocol it speaks: new messages, and decisions about waiting calls. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from agentkit.agent import Approved, Decision, Denied, call_hash
from agentkit.errors import show_value
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.request_fields import Fields, flag, invalid, mapping_at, text_at
from agentkit.messages import AssistantMessage, FilePart, ImagePart, TextPart, ToolCall, UserContent, UserMessage

MAX_ID: Final = 200  # characters of an id that a page chooses

OWN_TOOLS: Final = "the agent runs its own tools and cannot call those of a page: send none"


class NewMessage(NamedTuple):
    """A message of the user; `id` is the page's own, under which a repeated request adds it only once."""

    id: str
    message: UserMessage


class GivenDecision(NamedTuple):
    """A person's decision about a waiting call.

    Attributes:
        call_id: the call.
        seen: the `call_hash` of the call that was shown.
        decision: the decision.
    """

    call_id: str
    seen: str
    decision: Decision


class PageRequest(NamedTuple):
    """One request of a page.

    Attributes:
        thread_id: the conversation.
        run_id: the id that the page gives to the run; empty if it gives none.
        messages: the user's messages that no reply has answered.
        decisions: the decisions, at most one for each call.
        history: the words of user and assistant before them, for a thread that is not stored yet. Calls and results are
            left out: one that a page wrote must never be run.
    """

    thread_id: str
    run_id: str
    messages: tuple[NewMessage, ...] = ()
    decisions: tuple[GivenDecision, ...] = ()
    history: tuple[UserMessage | AssistantMessage, ...] = ()


def approval_id(call: ToolCall) -> str:
    """Return the id under which a page decides about a call: its own, and its hash."""
    return f"{call.id}:{call_hash(call)}"


def decision_at(id: Any, payload: Any, at: str) -> GivenDecision:
    """Return the decision that a page sends.

    Args:
        id: as `approval_id` wrote it.
        payload: `{"approved": true or false, "editedArgs": {…}, "reason": "…"}`, of which the last two may be missing.
        at: where it is in the request.

    Raises:
        RequestRefused: status 400; it is something else.
    """
    call_id, colon, seen = text_at(id, at).rpartition(":")
    if not (call_id and colon):
        raise invalid(at, f"expected the id of an interrupt, found {show_value(id)}")
    given = mapping_at(payload, at)
    approved = flag(given, "approved")
    if approved is None:
        raise invalid(at, f"expected approved: true or false, found {show_value(payload)}")
    if not approved:
        return GivenDecision(call_id, seen, Denied(text_at(given.get("reason"), f"{at}.reason")))
    edited = given.get("editedArgs")
    return GivenDecision(
        call_id, seen, Approved(None if edited is None else dict(mapping_at(edited, f"{at}.editedArgs")))
    )


def check_decisions(decisions: Sequence[GivenDecision], pending: Iterable[ToolCall]) -> None:
    """Make sure that decisions cover the waiting calls, no more and no fewer: a run can act only on all of them.

    Raises:
        RequestRefused: status 409; a call is missing, does not wait, or is not the one that was shown.
    """
    waiting = {call.id: call for call in pending}
    for given in decisions:
        call = waiting.pop(given.call_id, None)
        if call is None:
            raise _outdated(f"no call {given.call_id!r} waits: it was decided before, or the user wrote again")
        if given.seen != call_hash(call):
            raise _outdated(f"the call {given.call_id!r} is not the one that was shown: it has other arguments now")
    if waiting:
        raise _outdated(f"each waiting call needs a decision; missing: {', '.join(map(repr, waiting))}")


def id_at(value: Any, at: str) -> str:
    """Return an id that a page chose.

    Raises:
        RequestRefused: status 400; it is empty, too long or no string.
    """
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID or not value.isprintable():
        raise invalid(at, f"expected an id of 1 to {MAX_ID} printable characters, found {show_value(value)}")
    return value


def thread_at(value: Any, at: str) -> str:
    """Return the id of a thread; those with a slash belong to sub-agents, and a URL's path cannot have dots alone.

    Raises:
        RequestRefused: status 400; it is not the id of a thread.
    """
    thread = id_at(value, at)
    if "/" in thread or not thread.strip("."):
        raise invalid(
            at, f"expected the id of a thread, which has no slash and not only dots, found {show_value(value)}"
        )
    return thread


def conversation_of(
    messages: Sequence[Fields], said: Callable[[Fields, str], UserMessage | None], text: Callable[[Fields, str], str]
) -> tuple[list[UserMessage | AssistantMessage], list[NewMessage]]:
    """Return the words of a page's messages up to the last reply or result, and the user's messages after it.

    Args:
        messages: all messages of the page.
        said: reads a message of the user, and where it is; None if it says nothing.
        text: reads the text of a reply, and where it is.
    """
    first = max((n for n, one in enumerate(messages, 1) if one.get("role") in ("assistant", "tool")), default=0)
    history: list[UserMessage | AssistantMessage] = []
    new = []
    for n, message in enumerate(messages):
        at, role = f"messages[{n}]", message.get("role")
        if role == "user" and (words := said(message, at)) is not None:
            if n < first:
                history.append(words)
            else:
                new.append(NewMessage(id_at(message.get("id"), f"{at}.id"), words))
        elif role == "assistant" and (reply := text(message, at)).strip():
            history.append(AssistantMessage(reply))
    return history, new


def user_message(content: UserContent) -> UserMessage | None:
    """Return the message with this content; None if it says nothing."""
    says = any(not isinstance(part, TextPart) or part.text.strip() for part in content)
    return UserMessage(content) if says else None


def file_of(data: Any, media_type: Any, name: Any, at: str) -> ImagePart | FilePart:
    """Return the image or file with these bytes in base64.

    Raises:
        RequestRefused: status 400; it is neither, or a damaged image.
    """
    kind, label = text_at(media_type, at), name if isinstance(name, str) else ""
    try:
        content = base64.b64decode(text_at(data, at), validate=True)
        if not kind.startswith("image/"):
            return FilePart(content, kind, name=label)
        image = ImagePart(content, kind).repaired_image
    except (binascii.Error, ValueError) as e:
        raise invalid(at, f"expected a file in base64, and its type: {e}") from None
    if (fault := image.fault) is not None:  # a provider would refuse the conversation from now on
        raise invalid(at, fault)
    return image


def linked_file(url: Any, media_type: Any, name: Any, at: str) -> ImagePart | FilePart:
    """Return the image or file at a URL, which may be a data URL.

    Raises:
        RequestRefused: status 400; it is not such a URL.
    """
    head, comma, data = text_at(url, at).partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return file_of(data, head.removeprefix("data:").removesuffix(";base64"), name, at)
    kind, label = text_at(media_type, at), name if isinstance(name, str) else ""
    try:
        file = ImagePart(url=url) if kind.startswith("image/") else FilePart(None, kind, url, label)
    except ValueError as e:
        raise invalid(at, str(e)) from None
    if not head.lower().startswith(("https://", "http://")):
        raise invalid(at, f"expected an https URL, an http URL or a file's data, found {show_value(url)}")
    return file


def other_part(kind: Any, at: str) -> RequestRefused:
    """Return the refusal of a content part that is neither text nor a file."""
    return invalid(at, f"an agent reads text, images and files, found a part of the type {show_value(kind)}: omit it")


def with_note(note: str, messages: Iterable[NewMessage]) -> tuple[NewMessage, ...]:
    """Put a note before the content of the last message; without a message there is no note."""
    found = list(messages)
    if note and found:
        id, last = found[-1]
        found[-1] = NewMessage(id, UserMessage((TextPart(note), *last.content)))
    return tuple(found)


def _outdated(message: str) -> RequestRefused:
    return RequestRefused(409, message, "decision_outdated")
