"""Messages that an application adds to a thread, as entries of its log. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentkit.agent.prompts import Prompt, messages_from
from agentkit.errors import ConfigError
from agentkit.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from agentkit.threads.store import Append, NewCall
from agentkit.tool.codec import call_to_json, to_json


def planned_call(call: ToolCall) -> dict[str, Any]:
    """A call that is to be run, as a JSON object, with a unique idempotency `key`, so that its effect happens once."""
    return {**call_to_json(call), "key": secrets.token_hex(16)}


def one_message(message: Prompt, calls: Mapping[str, str]) -> Message:
    """One message, in any form that a prompt accepts; `calls` are the tools' names by call id, for a result.

    Raises:
        ConfigError: it is not exactly one message.
    """
    messages = messages_from(message, calls=calls)
    if len(messages) != 1:
        raise ConfigError(f"expected one message, found {len(messages)}")
    return messages[0]


def entries_of(messages: Sequence[Message]) -> list[Append]:
    """Messages as entries; results as the answers to their calls.

    Raises:
        ConfigError: a system message, or a result without its call.
    """
    entries: list[Append] = []
    for message in messages:
        match message:
            case SystemMessage():
                raise ConfigError("a thread has no system message: pass it to run_thread(…, system_prompt=…)")
            case ToolMessage():
                _answer(entries, message)
            case AssistantMessage():
                calls = [NewCall(call.id, planned_call(call)) for call in message.calls]
                entries.append(Append({"message": to_json(message)}, calls=calls))
            case UserMessage():
                entries.append(Append({"message": to_json(message)}))
    return entries


def _answer(entries: list[Append], said: ToolMessage) -> None:
    for at in reversed(range(len(entries))):
        for n, call in enumerate(entries[at].calls):
            if call.id == said.call_id and call.status == "planned":
                answered = replace(call, status="answered", answer=to_json(said))
                calls = [*entries[at].calls[:n], answered, *entries[at].calls[n + 1 :]]
                entries[at] = replace(entries[at], calls=calls)
                return
    raise ConfigError(f"the result {said.call_id!r} does not answer an earlier call")
