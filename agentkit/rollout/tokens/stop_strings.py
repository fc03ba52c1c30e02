"""Stop strings: where an engine must end a turn, and what becomes of those that it leaves out. Pure text.

Only formats whose calls are bare text between tags need them (`legacy`, `dr_tulu`): a model that was trained like this
continues with the result itself. In all others a model ends its turn, and a string would only cut it earlier.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agentkit import formats
from agentkit.formats.format import Format, Tag, TextArgument, ToolElement, edge
from agentkit.messages import ToolCall
from agentkit.rollout.policy.generation import Generation
from agentkit.toolspec import ToolSpec


def stop_strings(format: Format, tools: Sequence[ToolSpec]) -> tuple[str, ...]:
    """The ends of the format's calls, where a call is one text between tags; empty for all other formats."""
    *_, last = format.call
    if isinstance(last, ToolElement) and last.layout == "text":
        return tuple(f"</{tool.name}>" for tool in tools)
    if isinstance(last, Tag) and any(isinstance(part, TextArgument) for part in format.call):
        return (edge(last),)
    return ()


def whole(generation: Generation, stop: Sequence[str], format: Format, tools: Sequence[ToolSpec]) -> str | None:
    """The text of a generation, with the stop string at which it ended.

    OpenAI's interface leaves that string out, and does not say which one it was. The policy may know. If it does not,
    and the model stopped, it is the one that ends a call which the text leaves open: unless another of the strings may
    have been it as well, or the text only speaks of the tag. Then none is appended, and the call is truncated.
    """
    text, by = generation.text, generation.stopped_by
    if text is None or not stop or generation.finish != "stop" or by == "":
        return text
    if by is not None:
        return text if text.endswith(by) else text + by
    calls = len(_good(text, format, tools))
    ends = stop_strings(format, tools)
    for end in ends:
        made = _good(text + end, format, tools)
        if len(made) > calls:
            meant = not _spoken_of(text, made[-1].raw.removesuffix(end)) and not _inside(made[-1].raw, end, ends)
            return text + end if meant else text
    return text


def _good(text: str, format: Format, tools: Sequence[ToolSpec]) -> list[ToolCall]:
    return formats.calls(formats.parse(text, format, tools))


def _inside(raw: str, own: str, ends: Sequence[str]) -> bool:
    """Return True if another stop string may have ended the text: the call has an open tag that it closes."""
    return any(raw.count(f"<{end[2:-1]}>") > raw.count(end) for end in ends if end != own)


def _spoken_of(text: str, opened: str) -> bool:
    """Return True if the open call at the text's end is a tag's name in a sentence."""
    before, value = text.removesuffix(opened), opened.partition(">")[2]
    if not value.strip():
        return True
    goes_on = _GOES_ON(value) is not None
    return goes_on and (_IN_SENTENCE(before) is not None or value.rstrip().endswith((".", "?", "!")))


_IN_SENTENCE: Final = re.compile(r"[\w,;:][ \t]+\Z").search
_GOES_ON: Final = re.compile(r"[ \t]+\w|[,.;:?!)](?:\s|\Z)").match
