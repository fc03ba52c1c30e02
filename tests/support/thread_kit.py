"""Stores that fail, wait or are watched, and short words for what a thread holds."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from agentkit.errors import StoreError
from agentkit.messages import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, UserMessage, user
from agentkit.threads import SQLiteStore
from agentkit.threads.entries import planned_call
from agentkit.threads.store import Append, NewCall
from agentkit.tool.codec import to_json

Operation = Callable[..., Awaitable[Any]]


def integrity(file: str | Path) -> str:
    """What SQLite says of a file: `ok`."""
    with closing(sqlite3.connect(file)) as connection:
        ((said,),) = connection.execute("PRAGMA integrity_check").fetchall()
    return str(said)


class Failing:
    """A store that fails once: at its `at`-th use of one operation, before or after it is done.

    Args:
        store: the store behind.
        at: from 1; 0 never fails.
        done: whether what failed was done all the same, as when a connection is lost before the answer.
        operation: which operation counts.
        error: what it raises; a store may raise a `StoreError` alone.
    """

    def __init__(
        self,
        store: SQLiteStore,
        at: int,
        *,
        done: bool = False,
        operation: str = "commit",
        error: type[Exception] = StoreError,
    ) -> None:
        self.store, self.error = store, error
        self.at, self.done, self.operation = at, done, operation
        self.uses = 0

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self.store, name)
        return self._counted(operation) if name == self.operation else operation

    def _counted(self, operation: Operation) -> Operation:
        async def counted(*args: Any, **named: Any) -> Any:
            self.uses += 1
            fails = self.uses == self.at
            if fails and not self.done:
                raise self.error("the disk is full")
            result = await operation(*args, **named)
            if fails:
                raise self.error("the connection was lost")
            return result

        return counted


class Gated:
    """A store that waits at its `at`-th use of one operation until the gate is opened; `reached` says that it waits."""

    def __init__(self, store: SQLiteStore, at: int, operation: str, *, done: bool = True) -> None:
        self.store, self.at, self.operation, self.done = store, at, operation, done
        self.reached, self.gate = asyncio.Event(), asyncio.Event()
        self.uses = 0

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self.store, name)
        if name != self.operation:
            return operation

        async def gated(*args: Any, **named: Any) -> Any:
            self.uses += 1
            if self.uses != self.at:
                return await operation(*args, **named)
            result = await operation(*args, **named) if self.done else None
            self.reached.set()
            await self.gate.wait()
            return result if self.done else await operation(*args, **named)

        return gated


def said(messages: list[Message]) -> list[str]:
    """The conversation in short: `user: …`, `assistant: …`, `note() …`, `= result`."""
    lines: list[str] = []
    for message in messages:
        match message:
            case UserMessage(content):
                lines.append(f"user: {''.join(p.text for p in content if isinstance(p, TextPart))}")
            case AssistantMessage():
                lines += [f"assistant: {message.text}"] if message.text else []
                lines += [f"{c.name} {dict(c.arguments)}" for c in message.calls]
            case ToolMessage():
                lines.append(f"= {message.error or 'ok'}: {message.text}")
    return lines


def planned(*calls: ToolCall) -> list[Append]:
    """What a run leaves in its thread that died after it stored its response, and before it started these calls."""
    said = Append({"message": to_json(AssistantMessage(calls))}, calls=[NewCall(c.id, planned_call(c)) for c in calls])
    return [Append({"message": to_json(user("Go"))}), said]
