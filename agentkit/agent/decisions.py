"""A person's decision on a call that waits for one. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentkit.checks.bounds import TEXT, Bound, instance, or_none, refuse
from agentkit.checks.spelling import takes
from agentkit.foreign import argument_names
from agentkit.messages import TextPart, ToolCall, ToolMessage

_ARGUMENTS: Final[Bound] = or_none(
    instance(Mapping, "the arguments for the call, by name, such as {'amount': 5}"), "for those that the model wrote"
)


@takes(others=argument_names.APPROVED)
@dataclass(frozen=True, slots=True)
class Approved:
    """The call may run; with these `arguments` in place of the model's, if any are passed."""

    arguments: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        refuse("Approved", {"arguments": self.arguments}, {"arguments": _ARGUMENTS})


@dataclass(frozen=True, slots=True)
class Objection:
    """A decision for a `reason`."""

    reason: str

    def __post_init__(self) -> None:
        refuse(type(self).__name__, {"reason": self.reason}, {"reason": TEXT})


@takes(others=argument_names.DENIED)
@dataclass(frozen=True, slots=True)
class Denied(Objection):
    """The call may not run. The model reads the reason."""

    reason: str = ""


Decision = Approved | Denied


def call_hash(call: ToolCall) -> str:
    """Return the hash of the tool's name and arguments, which an approval is bound to: 64 hexadecimal digits (SHA-256).

    >>> call_hash(ToolCall("1", "add", {"a": 1, "b": 2})) == call_hash(ToolCall("2", "add", {"b": 2, "a": 1}))
    True
    """
    import json
    from hashlib import sha256

    canonical = json.dumps([call.name, call.arguments], sort_keys=True, default=str)
    return sha256(canonical.encode()).hexdigest()


def denial(call: ToolCall, reason: str) -> ToolMessage:
    """The answer to a call that a person denied."""
    from agentkit.processor import not_run

    text = not_run.DENIED.text() + (reason and f": {reason}")
    return ToolMessage(call.id, call.name, (TextPart(text),), not_run.DENIED.code)


EDITED: Final = "The user changed the arguments before the call was run: "
"""Begins the note in the answer to a call that was run with a person's arguments."""


def add_edit_note(answer: ToolMessage, arguments: Mapping[str, Any]) -> ToolMessage:
    """Add a note to an answer: the arguments that the call was run with in place of the model's."""
    import json

    note = TextPart(f"{EDITED}{json.dumps(arguments, default=str)}\n")
    return ToolMessage(answer.call_id, answer.name, (note, *answer.content), answer.error)
