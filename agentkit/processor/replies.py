"""What a model is told of its calls: errors in words it can act on, long outputs cut to what it may read.

Pure. Knows results and their parts; knows no tool, no registry and no event.
"""

from __future__ import annotations

import traceback
from typing import Any

from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ErrorCode
from agentkit.messages import ImagePart, ResultContent, TextPart
from agentkit.tool.policy import Keep
from agentkit.tool.result import ToolResult

_NAMES = 100  # tools named to a model that asked for one that is not there
_TRACEBACK = 10_000  # characters kept in `metadata["traceback"]`: the end, where the cause is
_MEMBERS = 5  # exceptions of a group that the model is told


def failed(code: ErrorCode, error: str, **metadata: Any) -> ToolResult:
    """An answer that says what went wrong."""
    return ToolResult(error=error, code=code, metadata=metadata)


def crashed(error: BaseException) -> ToolResult:
    """An exception as an answer: `ValueError: no`; where it was raised is in `metadata["traceback"]`."""
    trace = "".join(traceback.format_exception(error))
    return failed("tool_error", words(error), traceback=trace[-_TRACEBACK:])


def words(error: BaseException) -> str:
    """An exception's type and text; of a group those of its members too, since its own text says nothing."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an exception whose text cannot be made still has a name
        said = ""
    told = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if isinstance(error, BaseExceptionGroup):
        told += ": " + "; ".join(words(member) for member in error.exceptions[:_MEMBERS])
    return told


def capped(parts: ResultContent, limit: int, keep: Keep = "both") -> ResultContent:
    """Text parts of at most `limit` characters in all; of a longer one the end or the ends to `keep`, and a mark."""
    size = 0
    for part in parts:
        if isinstance(part, TextPart):
            size += len(part.text)
    if size <= limit:
        return parts
    kept: list[TextPart | ImagePart] = []
    for part in reversed(parts) if keep == "tail" else parts:
        if isinstance(part, TextPart):
            part = TextPart(_cut(part.text, limit, keep))
            limit -= len(part.text)
            if not part.text:
                continue
        kept.append(part)
    return tuple(reversed(kept) if keep == "tail" else kept)


def _cut(text: str, limit: int, keep: Keep) -> str:
    if len(text) <= limit:
        return text
    mark = f"\n[... {len(text) - limit:,} of {len(text):,} characters are cut here ...]\n"
    room = limit - len(mark)
    if room <= 0:
        return ""
    head = {"head": room, "tail": 0, "both": room - room // 2}[keep]
    return text[:head] + mark + text[len(text) - (room - head) :]


def unknown_tool(name: str, names: tuple[str, ...]) -> str:
    """What a model is told that called a tool which is not there."""
    shown = name if len(name) <= 100 else name[:100] + "…"
    if not names:
        return f"there is no tool {shown!r}: there are no tools here; answer without calling one"
    hint = did_you_mean(name, names) or "."
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return f"there is no tool {shown!r}{hint} The tools are: {', '.join(names[:_NAMES])}{more}"
