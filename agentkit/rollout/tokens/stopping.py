"""Stop strings: where an engine must end a turn, and what becomes of those that it leaves out. Pure text.

Only formats whose calls are bare text between tags need them (`legacy`, `dr_tulu`): a model that was trained so goes on
to write the result itself. In all others a model ends its turn, and a string would only cut it earlier.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentkit import formats
from agentkit.events import CallEnd
from agentkit.formats.format import Format, Tag, TextArgument, ToolElement, edge
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
    and the model stopped, it is the one that ends a call which the text leaves open.
    """
    text, by = generation.text, generation.stopped_by
    if text is None or not stop or generation.finish != "stop" or by == "":
        return text
    if by is not None:
        return text if text.endswith(by) else text + by
    calls = _good(text, format, tools)
    closing = (end for end in stop_strings(format, tools) if _good(text + end, format, tools) > calls)
    return text + next(closing, "")


def _good(text: str, format: Format, tools: Sequence[ToolSpec]) -> int:
    return sum(isinstance(event, CallEnd) for event in formats.parse(text, format, tools))
