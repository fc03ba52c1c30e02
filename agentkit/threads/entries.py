"""Messages as entries of a thread's log: those that an application adds, and a response that grows. Pure."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from agentkit.agent.prompts import Prompt, messages_from
from agentkit.agent.unanswered_calls import answer_open_calls
from agentkit.errors import ConfigError, show_value
from agentkit.messages import (
    AssistantMessage,
    Message,
    MessagePart,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.models.render_cache import Taken
from agentkit.models.valid_history import IdRule, fit_ids
from agentkit.threads.store import Append, Body, Call, Entry, NewCall
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.codec import call_to_json, part_to_json, to_json

IDEMPOTENT: Final = "idempotent"
"""In a call's body: that it is started as a call of a tool with `idempotent=True`. Only such a call may start again."""

TOOL: Final = "tool"
"""In the body of a call that waits for a person: its tool's `digest`. An approval is valid for this tool alone."""

ASKED: Final = "asked"
"""In the body of a call that waits for a person: the reason that she reads, if there is one. An approval covers it."""

UNGUARDED: Final = "unguarded"
"""In the body of a call whose `arguments` were changed by guards: the arguments before that. Guards judge these again
if the call is run again."""

OWN: Final = "own"
"""In a user message's body: that a run wrote it, to ask its model again."""

CREATED: Final = "created"
"""In a copied message's body: the time of the original, in seconds since the epoch."""

SECONDS: Final = "seconds"
"""In the body of a call's answer: how long its tool ran. The times in the store also include writing."""

_UNIQUE: Final = IdRule(sys.maxsize, lambda id: True)

_CALL_KEYS: Final = ("before", "key", IDEMPOTENT, TOOL, ASKED, UNGUARDED)
"""The keys that are in a call's body and not in its response."""


def planned_call(call: ToolCall, *, idempotent: bool = False) -> dict[str, Any]:
    """A call that is to be run, as a JSON object, with a unique idempotency `key`, so that its effect happens once."""
    return mark_idempotent({**call_to_json(call), "key": secrets.token_hex(16)}, idempotent)


def mark_idempotent(body: Body, idempotent: bool) -> dict[str, Any]:
    """Return a stored call's body that says if its tool is `idempotent`."""
    rest = {name: value for name, value in body.items() if name != IDEMPOTENT}
    return {**rest, IDEMPOTENT: True} if idempotent else rest


def waits_for(body: Body, tool: BoundTool | None, reason: str = "") -> dict[str, Any]:
    """A stored call that waits for a person, with the tool to call, None for an unknown one, and why she is asked."""
    rest = {name: value for name, value in body.items() if name not in (TOOL, ASKED)}
    asked = {ASKED: reason} if reason else {}
    return {**rest, **asked} if tool is None else {**rest, **asked, TOOL: tool.digest}


def edited_call(body: Body, call: ToolCall) -> dict[str, Any]:
    """A stored call with a person's changes; the model's own text is kept while its response grows.

    Its key is another one: what was started with the arguments before is not repeated.
    """
    rest = {name: value for name, value in body.items() if name != UNGUARDED}
    edited = {**rest, **call_to_json(call), **({"key": secrets.token_hex(16)} if "key" in body else {})}
    return {"written": body, **edited} if "before" in body else edited


def guarded_call(body: Body, call: ToolCall) -> dict[str, Any]:
    """A stored call as it starts, or as a person is asked about it: with the arguments that the guards gave it."""
    before, now = before_guards(body), call_to_json(call)["arguments"]
    return before if now == before["arguments"] else {**before, "arguments": now, UNGUARDED: before["arguments"]}


def before_guards(body: Body) -> dict[str, Any]:
    """A stored call with its arguments before guards changed them: those of the model, or of a person."""
    rest = {name: value for name, value in body.items() if name != UNGUARDED}
    return {**rest, "arguments": body[UNGUARDED]} if UNGUARDED in body else rest


class PartialBody:
    """A response that grows, as the body of its entry and of its calls; none of it is written with each call again.

    A call has in its own body what was written before it (`before`); the entry's body has what followed the last one
    (`after`), and nothing else, because it is written again with each call. Should something change that was written,
    the entry's body has all of it, up to the last call (`calls` are in it).
    """

    def __init__(self) -> None:
        self.seq: int | None = None
        """Its entry, once it is in the store."""
        self._begin: dict[str, Any] | None = None
        self._parts: tuple[MessagePart, ...] = ()  # those that are in the store, the last one a call

    def build(self, said: AssistantMessage, read: int, written: int) -> tuple[Body, dict[str, list[dict[str, Any]]]]:
        """Return the entry's body, and the parts `before` each of the calls that are not in it, by their ids.

        Args:
            said: the response so far.
            read: the newest entry that it answers.
            written: the number of its calls.
        """
        last = max((n for n, part in enumerate(said.content, 1) if isinstance(part, ToolCall)), default=0)
        known, more = self._parts, said.content[len(self._parts) : last]
        before: dict[str, list[dict[str, Any]]] = {}
        if self._begin is None:
            self._begin = {"message": to_json(AssistantMessage(())), "read": read, "calls": 0}
        if said.content[: len(known)] == known:
            gap: list[dict[str, Any]] = []
            for part in more:
                if isinstance(part, ToolCall):
                    before[part.id], gap = gap, []
                else:
                    gap.append(part_to_json(part))
        else:
            self._begin = {"message": to_json(AssistantMessage(said.content[:last])), "read": read, "calls": written}
        self._parts = said.content[:last]
        return {**self._begin, "after": [part_to_json(part) for part in said.content[last:]]}, before


def whole_entry(entry: Entry, calls: Sequence[Call]) -> Entry:
    """Return a partial response's entry with its whole message; `calls` are all its calls."""
    if "calls" not in entry.body:
        return entry
    body = dict(entry.body)
    content, first = list(body["message"]["content"]), body.pop("calls")
    for call in calls:
        if call.ordinal >= first:
            content += [*call.body["before"], _as_written(call.body)]
    content += body.pop("after")
    return replace(entry, body={**body, "message": {**body["message"], "content": content}})


def _as_written(body: Body) -> dict[str, Any]:
    body = before_guards(body.get("written", body))
    return {name: value for name, value in body.items() if name not in _CALL_KEYS}


def one_message(message: Prompt, calls: Mapping[str, str]) -> Message:
    """One message, in any form that a prompt accepts; `calls` are the tools' names by call id, for a result.

    Raises:
        ConfigError: it is not exactly one message.
    """
    messages = messages_from(message, calls=calls)
    if len(messages) != 1:
        raise ConfigError(f"expected one message, found {len(messages)}: add the others first, with add_message")
    return messages[0]


def entries_of(messages: Sequence[Message]) -> list[Append]:
    """Messages as entries; results as the answers to their calls.

    No run of the thread's model made these calls: those at the end without a result wait for a person, as in a
    conversation in memory; earlier ones, and those whose arguments cannot be read, are answered (`settled`). An id that
    was used before gets a number, as in a request.

    Raises:
        ConfigError: a system message, or a result without its call.
    """
    entries: list[Append] = []
    taken: Taken = {}
    places: dict[str, list[tuple[int, int]]] = {}  # of the calls without a result, by the ids that they had
    for message in answer_open_calls(messages)[0]:
        match message:
            case SystemMessage():
                raise ConfigError("a thread has no system message: pass it to run_thread(…, system_prompt=…)")
            case ToolMessage():
                _answer(entries, places.get(message.call_id), message)
            case AssistantMessage():
                said = fit_ids(message, _UNIQUE, taken)
                for n, call in enumerate(message.calls):
                    places.setdefault(call.id, []).append((len(entries), n))
                calls = [NewCall(call.id, planned_call(call), "waiting") for call in said.calls]
                entries.append(Append({"message": to_json(said)}, calls=calls))
            case UserMessage():
                entries.append(Append({"message": to_json(message)}))
    return entries


def _answer(entries: list[Append], places: list[tuple[int, int]] | None, said: ToolMessage) -> None:
    if not places:
        raise ConfigError(
            f"a thread keeps a result with its call, and no earlier call without a result has the id {said.call_id!r}: "
            f"leave out the result {show_value(said.text)}"
        )
    at, n = places.pop(0)
    calls = list(entries[at].calls)
    calls[n] = replace(calls[n], status="answered", answer=to_json(replace(said, call_id=calls[n].id)))
    entries[at] = replace(entries[at], calls=calls)
