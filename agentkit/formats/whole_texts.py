"""Whole texts and the formats to read them in, without a parser object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache

from agentkit.events import CallEnd, Event, merge
from agentkit.formats.catalog import CATALOG
from agentkit.formats.declaration_checks import REASONING
from agentkit.formats.edges import is_fence, marked
from agentkit.formats.engine import Parser
from agentkit.formats.format import Format, Shape, ToolElement
from agentkit.messages import ToolCall
from agentkit.toolspec import InCode, ToolSpec


@cache
def auto() -> tuple[Format, ...]:
    """Return every format recognisable by its text alone, for reading text in whichever format a model chose.

    Formats that must be expected are omitted: `legacy`, whose tags are the tools' names, as in `cline`; and calls in a
    code fence, which may be quoted. With `in_code="reply"`, a fence that opens the reply is examined regardless.
    """
    found = (_only(f, lambda shape: not is_fence(shape.opening)) for f in CATALOG if f.name != "legacy")
    return tuple(format for format in found if format is not None)


def _only(format: Format, keep: Callable[[Shape], bool]) -> Format | None:
    """Return a format with some of its shapes; None if none is left."""
    shapes = [shape for shape in format.shapes if keep(shape)]
    if not shapes:
        return None
    return replace(format, call=shapes[0].call, section=shapes[0].section, also=tuple(shapes[1:]))


@cache
def recoverable(*, bare: bool = True) -> tuple[Format, ...]:
    """`auto`, for a native model's text: the tags that many prompts request around reasoning also count.

    Without `bare`, calls that have no markup are omitted: JSON, `name(…)`. Text that begins like one is not held back.
    """
    first, *rest = auto()
    if not bare:
        kept = (_only(f, lambda shape: marked(shape) or isinstance(shape.first, ToolElement)) for f in rest)
        rest = [format for format in kept if format is not None]
    reasoning = tuple((f"<{tag}>", f"</{tag}>") for tag in REASONING)
    return (replace(first, thinking=(*first.thinking, *reasoning)), *rest)


def names() -> tuple[str, ...]:
    """Return the names of all declared formats."""
    return tuple(f.name for f in CATALOG)


def parse(
    text: str,
    formats: str | Format | Iterable[str | Format],
    tools: Sequence[ToolSpec] = (),
    *,
    in_code: InCode = "ignore",
    thinking: bool = False,
) -> list[Event]:
    """Read a whole text, and merge adjacent events. Arguments as for `Parser`."""
    return merge(Parser(formats, tools, in_code=in_code, thinking=thinking).close(text))


def calls(events: Iterable[Event]) -> list[ToolCall]:
    """Return the calls that were read without damage."""
    return [e.call for e in events if isinstance(e, CallEnd)]
