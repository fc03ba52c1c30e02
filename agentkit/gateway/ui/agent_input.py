"""The input of a run as clients of AG-UI send it: a conversation, and answers to interrupts. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.ui.page_requests import wrong
from agentkit.gateway.ui.thread_actions import user_message
from agentkit.messages import UserMessage


@dataclass(frozen=True, slots=True)
class InterruptAnswer:
    """A person's answer to one interrupt.

    Args:
        call: the id of the waiting call.
        hash: of the call that the person saw.
        approved: whether it may run.
        arguments: in place of the model's; None keeps those.
        reason: why it may not run.
    """

    call: str
    hash: str
    approved: bool
    arguments: Mapping[str, Any] | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RunInput:
    """A request for a run.

    Args:
        thread: the conversation's id.
        run: the client's id of the run.
        history: the messages before the last ones of the user, in OpenAI's form, without instructions.
        said: the user's messages after them, each with its id.
        answers: to the interrupts of the run before.
    """

    thread: str
    run: str
    history: Sequence[Mapping[str, Any]] = ()
    said: Sequence[tuple[str, UserMessage]] = ()
    answers: Sequence[InterruptAnswer] = field(default_factory=tuple)


def read_input(body: Mapping[str, Any]) -> RunInput:
    """Read the body of a request.

    Raises:
        RequestRefused: it is not a `RunAgentInput` of AG-UI.
    """
    thread, run = (_text(body, name) for name in ("threadId", "runId"))
    if "/" in thread or not thread:
        raise wrong("threadId", "a name without a slash", thread)
    messages = [one for one in _items(body, "messages") if one.get("role") in ("user", "assistant", "tool")]
    last = max((n for n, one in enumerate(messages, 1) if one["role"] != "user"), default=0)
    said = [(_text(one, "id"), user_message(one.get("content"))) for one in messages[last:]]
    history = [_message(one) for one in messages[:last]]
    return RunInput(thread, run, history, said, [_answer(one) for one in _items(body, "resume")])


def _message(found: Mapping[str, Any]) -> dict[str, Any]:
    """A message in OpenAI's form."""
    content = found.get("content")
    match found["role"]:
        case "user":
            parts = user_message(content).content
            return {"role": "user", "content": parts if len(parts) > 1 else content}
        case "tool":
            text = content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content or ())
            return {"role": "tool", "tool_call_id": _text(found, "toolCallId"), "content": text}
        case _:
            calls = [
                {"id": _text(call, "id"), "type": "function", "function": dict(call.get("function") or {})}
                for call in _items(found, "toolCalls")
            ]
            return {"role": "assistant", "content": content or "", **({"tool_calls": calls} if calls else {})}


def _answer(found: Mapping[str, Any]) -> InterruptAnswer:
    call, _, digest = _text(found, "interruptId").rpartition(":")
    if found.get("status") == "cancelled":
        return InterruptAnswer(call, digest, approved=False)
    payload = found.get("payload")
    if not isinstance(payload, Mapping) or not isinstance(payload.get("approved"), bool):
        raise wrong("resume", "a payload such as {'approved': true}", payload)
    arguments = payload.get("editedArgs")
    if arguments is not None and not isinstance(arguments, dict):
        raise wrong("editedArgs", "an object", arguments)
    reason = payload.get("reason")
    return InterruptAnswer(call, digest, payload["approved"], arguments, reason if isinstance(reason, str) else "")


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise wrong(name, "a string", value)
    return value


def _items(found: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = found.get(name) or []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise wrong(name, "a list of objects", value)
    return value


def refusal(message: str, code: str = "invalid_request") -> RequestRefused:
    """Return why a run is refused that is well-formed."""
    return RequestRefused(409, message, code)
