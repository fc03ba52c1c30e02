"""The tool with which a model reads results again that a compaction shortened or removed."""

from __future__ import annotations

from typing import Any, Final

from agentkit.messages import ImagePart, ToolMessage
from agentkit.threads.conversation import answer_of, key_of
from agentkit.threads.log_reader import read_log
from agentkit.threads.store import Call, Log, Store
from agentkit.tool.declare import openapi_schema
from agentkit.tool.result import ToolContext, ToolResult

LONGEST: Final = 20_000
"""The maximum number of characters that one call reads."""


class StoredResults:
    """Reads stored tool results of the thread in which it is called, and of no other thread.

    Args:
        store: contains the threads.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @openapi_schema
    async def read_result(self, call_id: str, context: ToolContext, offset: int = 0, limit: int = 8_000) -> Any:
        """Read the full result of an earlier tool call that is only partly shown, one piece at a time.

        Args:
            context: determines the thread.
            call_id: the call, as named in the note that replaced its result, such as "12/0".
            offset: the first character to read.
            limit: how many characters to read, 20,000 at most.
        """
        thread_id = getattr(context.run, "thread_id", None)
        if thread_id is None:
            return ToolResult(error="there are no stored results here: this conversation is not stored")
        if offset < 0 or limit < 1:
            return ToolResult(error=f"offset must be 0 or more and limit 1 or more, got {offset} and {limit}")
        found = _found(await read_log(self._store, thread_id), call_id)
        if found is None:
            return ToolResult(error=f"there is no stored result {call_id!r}; use the id in the note that names it")
        return _page(found, offset, min(limit, LONGEST))


def _found(log: Log, call_id: str) -> ToolMessage | None:
    """A result by its call's position, otherwise by its call's id: the newest one."""
    answered: list[Call] = [call for call in log.calls if call.answer is not None]
    by_place = {key_of(call): call for call in answered}
    by_id = {call.id: call for call in answered}
    call = by_place.get(call_id) or by_id.get(call_id)
    return None if call is None else answer_of(call)


def _page(answer: ToolMessage, offset: int, limit: int) -> ToolResult:
    text = answer.text
    if offset > len(text):
        return ToolResult(error=f"offset {offset} is past the end: the result has {len(text):,} characters")
    end = min(offset + limit, len(text))
    rest = f"; continue with offset={end}" if end < len(text) else ""
    images = tuple(part for part in answer.content if isinstance(part, ImagePart)) if offset == 0 else ()
    return ToolResult(f"[characters {offset:,} to {end:,} of {len(text):,}{rest}]\n{text[offset:end]}", content=images)
