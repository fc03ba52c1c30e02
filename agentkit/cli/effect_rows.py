"""The effect of a call as rows of a terminal: its title, its body and the other arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentkit.checks.visible_text import visible
from agentkit.cli.terminal import GOES_ON, arguments, fold
from agentkit.messages import ToolCall
from agentkit.tool.call_effect import Effect

SHOWN: Final = 20  # rows of a call, unless all are requested
COLOURS: Final = {"+": "green", "-": "red"}
"""The colours of an edit's lines, by their first character."""


def title(call: ToolCall, about: Effect, count: str) -> str:
    """The title of a block: the tool, its target, and which of several calls this is."""
    arrow = f" → {about.target}" if about.target else ""
    note = f" ({about.note})" if about.note else ""
    return f"{visible(call.name)}{arrow}{note}{f' · {count}' if count else ''}"


def rows(about: Effect, width: int) -> Iterator[tuple[str, str]]:
    """The body and the other arguments, as pairs of a mark and a piece; the mark of the latter is empty.

    Args:
        about: the effect.
        width: the maximum number of columns of a row.
    """
    for line in about.body:
        for n, piece in enumerate(fold(line, max(width - 4, 1))):
            yield f"  {GOES_ON if n else '│ '}", piece
    for line in arguments(about.rest, width, "  "):
        yield "", line
