"""The words that a model reads about its calls: errors that it can act on, long outputs cut to what it may read.

Pure. Knows results and their parts; knows no tool, no registry and no event.
"""

from __future__ import annotations

from typing import Any

from agentkit.checks.keys import words
from agentkit.checks.spelling import did_you_mean
from agentkit.checks.tool_names import FIND_TOOLS, intended_tool
from agentkit.errors import ErrorCode
from agentkit.messages import ImagePart, ResultContent, TextPart
from agentkit.processor.author_errors import traceback_text
from agentkit.tool.policy import Keep
from agentkit.tool.result import ToolResult

_NAMES = 100  # how many tools are named to a model that called one that does not exist


def error_result(code: ErrorCode, error: str, **metadata: Any) -> ToolResult:
    """Return an answer that names an error."""
    return ToolResult(error=error, code=code, metadata=metadata)


def exception_result(error: BaseException, note: str = "") -> ToolResult:
    """Return an exception as an answer: `ValueError: no` and the note; `metadata["traceback"]` has its traceback."""
    return error_result("tool_error", words(error) + note, traceback=traceback_text(error, error.__traceback__))


def cap(parts: ResultContent, limit: int, keep: Keep = "both") -> ResultContent:
    """Cut text parts to `limit` characters in all; of a longer text the end or the ends to `keep` stay, and a mark."""
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
    room = limit - len(cut_out(text, 0, len(text)))  # the mark at its longest
    if room <= 0:
        return ""
    head = {"head": room, "tail": 0, "both": room - room // 2}[keep]
    return cut_out(text, head, len(text) - (room - head))


def cut_out(text: str, begin: int, end: int, *, also: str = "", read_by: str = "") -> str:
    r"""Return a text with a mark in place of a part: the only form in which a model reads of an omission.

    What is `also` omitted may be `1 image`, and `read_by` the call by which it can be read.

    >>> cut_out("one two three", 3, 8, read_by="read(3)")
    'one\n[… 5 of 13 characters left out; read(3) reads them …]\nthree'
    """
    characters = f"{end - begin:,} of {len(text):,} characters" if end > begin else ""
    left = " and ".join(filter(None, (characters, also)))
    how = f"; {read_by} reads them" if read_by else ""
    return f"{text[:begin]}\n[… {left} left out{how} …]\n{text[end:]}"


def unknown_tool(name: str, names: tuple[str, ...]) -> str:
    """Return the answer to a call of a tool that does not exist."""
    shown = name if len(name) <= 100 else name[:100] + "…"
    if not names:
        return f"there is no tool {shown!r}: there are no tools here; answer without calling one"
    hint = f"; did you mean {fits!r}?" if (fits := intended_tool(name, names)) else did_you_mean(name, names) or "."
    if FIND_TOOLS in names:
        return f"there is no tool {shown!r}{hint} Search for tools with {FIND_TOOLS}"
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return f"there is no tool {shown!r}{hint} The tools are: {', '.join(names[:_NAMES])}{more}"
