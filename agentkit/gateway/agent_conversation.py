"""A client's request as an agent reads it: the words of its conversation, its thread, and what is refused. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from agentkit.gateway.client_request import ClientRequest, RequestRefused
from agentkit.gateway.foreign_parts import with_files
from agentkit.messages import AssistantMessage, Message, SystemMessage, TextPart, UserMessage, UserPart

THREAD_HEADER: Final = "x-agentkit-thread"
"""The header that names a request's thread, and that of a reply."""

THREAD_FIELD: Final = "thread_id"
"""The field of a request's body that names its thread, for clients that can set no header."""

REPEAT_HEADER: Final = "idempotency-key"
"""The header with the client's own id of its last message: on a thread, a repeated request adds it only once."""

SYSTEM: Final = "Instructions of the application that the user writes in:\n"
"""Begins the client's system message, which the agent reads as its user's words."""

_THREAD: Final = re.compile(r"[!-~]{1,200}")


class AgentInput(NamedTuple):
    """The words of one request.

    Attributes:
        history: the conversation before the last message; only what user and assistant said.
        last: the message to answer.
    """

    history: tuple[UserMessage | AssistantMessage, ...]
    last: UserMessage

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole conversation."""
        return (*self.history, self.last)


def input_of(asked: ClientRequest) -> AgentInput:
    """Read a client's conversation for an agent.

    The client has a user's authority, and no more: the agent's own instructions stay, and a system message of the
    client becomes a user message. Calls and results are left out: an agent's own are never sent to a client, and a call
    that a client writes must never be run.

    Raises:
        RequestRefused: status 400; the request offers tools, asks for a schema, has a file that only another
            server has, or does not end with words of the user.
    """
    _refuse_what_an_agent_has(asked)
    messages = with_files(asked.request.messages, asked.parts, "an agent's conversation")
    said = [one for message in messages if (one := _words(message)) is not None]
    last = messages[-1] if messages else None
    if not isinstance(last, UserMessage) or _words(last) is None:
        raise RequestRefused(
            400,
            f"{asked.model!r} is an agent, which answers its user: expected a user message with text or a file at "
            "the end of the conversation",
            "invalid_request",
            param="messages",
        )
    return AgentInput(tuple(said[:-1]), last)


def thread_of(headers: Mapping[str, str], body: Mapping[str, Any]) -> str | None:
    """The id of a request's thread; None if the conversation is the request's own.

    Args:
        headers: the client's, with lower-case names.
        body: the request.

    Raises:
        RequestRefused: status 400; it is not an id.
    """
    found = headers.get(THREAD_HEADER, body.get(THREAD_FIELD))
    if found is None:
        return None
    if not isinstance(found, str) or not _THREAD.fullmatch(found):
        raise RequestRefused(
            400,
            f"{THREAD_HEADER}: expected an id of 1 to 200 visible ASCII characters, found {str(found)[:60]!r}",
            "invalid_request",
            param=THREAD_FIELD,
        )
    return found


def _refuse_what_an_agent_has(asked: ClientRequest) -> None:
    request = asked.request
    if request.tools and request.tool_choice != "none":
        found, param = "it cannot be offered others: omit `tools`, or send `tool_choice` none", "tools"
    elif request.output_schema is not None:
        found, param = "its replies have their own form: omit the schema", "response_format"
    else:
        return
    raise RequestRefused(
        400, f"{asked.model!r} is an agent with its own tools; {found}", "invalid_request", param=param
    )


def _words(message: Message) -> UserMessage | AssistantMessage | None:
    """Return the words of a message; None if it has none."""
    match message:
        case SystemMessage(content) if content.strip():
            return UserMessage(f"{SYSTEM}{content}")
        case UserMessage(content) if _says(content):
            return message
        case AssistantMessage() if message.text.strip():
            return AssistantMessage(message.text)
        case _:
            return None


def _says(content: Sequence[UserPart]) -> bool:
    return any(not isinstance(part, TextPart) or part.text.strip() for part in content)
