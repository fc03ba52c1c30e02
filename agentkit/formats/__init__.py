"""Text formats: declared as data, read by one engine, written from the same declarations.

>>> from agentkit.formats import ToolSpec, parse
>>> add = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}})
>>> [call] = calls(parse('<invoke name="add"><parameter name="a">1</parameter></invoke>', "invoke", [add]))
>>> call.name, call.arguments
('add', {'a': 1})
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentkit.events import CallEnd, Event, SourceEvent, merge
from agentkit.formats.catalog import CATALOG
from agentkit.formats.engine import InCode, Parser, get
from agentkit.formats.render import quarantine, render_calls, render_result
from agentkit.formats.spec import Element, Format, Limits, Node, ToolSpec
from agentkit.formats.teach import render_prompt
from agentkit.messages import ToolCall

__all__ = [
    "CATALOG",
    "Element",
    "Format",
    "InCode",
    "Limits",
    "Node",
    "Parser",
    "ToolSpec",
    "calls",
    "get",
    "names",
    "parse",
    "quarantine",
    "render_calls",
    "render_prompt",
    "render_result",
]


def names() -> tuple[str, ...]:
    """The names of all declared formats."""
    return tuple(f.name for f in CATALOG)


def parse(
    text: str,
    formats: str | Format | Iterable[str | Format],
    tools: Sequence[ToolSpec] = (),
    *,
    in_code: InCode = "ignore",
    thinking: bool = False,
) -> list[Event]:
    """Read a whole text: feed it, close, and join what belongs together. Arguments as for `Parser`."""
    parser = Parser(formats, tools, in_code=in_code, thinking=thinking)
    events: list[SourceEvent] = parser.feed(text)
    return merge([*events, *parser.close()])


def calls(events: Iterable[Event]) -> list[ToolCall]:
    """The calls that were read without damage."""
    return [e.call for e in events if isinstance(e, CallEnd)]
