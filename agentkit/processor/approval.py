"""Whether a call must wait for a person's approval. What cannot be decided must: it fails closed.

Pure but for calling what the author or the application wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, NamedTuple

from agentkit.messages import ToolCall
from agentkit.processor.replies import words
from agentkit.tool.policy import Predicate
from agentkit.tool.result import ToolContext


class Approval(NamedTuple):
    """Whether approval is needed; `reason` says what kept the question from being answered."""

    needed: bool
    reason: str = ""


def decide(predicate: Predicate, call: ToolCall, context: ToolContext) -> Approval | asyncio.Future[Any]:
    """Ask about one call; the answer, or what it will be read from (`decision_of`) when it is done."""
    try:
        answer = predicate(call, context)
        return asyncio.ensure_future(answer) if isinstance(answer, Awaitable) else _read(answer)
    except Exception as e:  # noqa: BLE001 - the boundary: a fault in the question leaves the decision to a person
        return _undecided(e)


def decision_of(answer: asyncio.Future[Any]) -> Approval:
    """What an async predicate said."""
    try:
        return _read(answer.result())
    except (Exception, asyncio.CancelledError) as e:  # noqa: BLE001 - the boundary, as above
        return _undecided(e)


def _read(answer: object) -> Approval:
    if isinstance(answer, bool):
        return Approval(answer)
    return Approval(True, f"the function that decides returned {answer!r:.100}, not True or False")


def _undecided(error: BaseException) -> Approval:
    return Approval(True, f"the function that decides raised {words(error)}")
