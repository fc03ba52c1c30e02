"""Calls in free text: the strings that mere text must not contain, and the triggers that make it a call.

Also the openings of tools' results and other roles' turns, which a model must never write itself. Mirrors
the parser's recognition of calls in prose; knows declarations, tools and rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from os.path import commonprefix
from typing import Final

from agentkit.formats import asides
from agentkit.formats.edges import is_fence, opener, weak
from agentkit.formats.format import (
    Format,
    NameTag,
    Pairs,
    Shape,
    Tag,
    TagParameters,
    ToolElement,
)
from agentkit.grammar.parts import PARTS
from agentkit.grammar.rules import Exclusion
from agentkit.schemas.typed import values
from agentkit.toolspec import ToolSpec

_TURNS: Final = [text for text, aside in asides.LITERALS.items() if not aside.paragraph]
_RESULTS: Final = (
    "<tool_response", "<tool_result", "<tool_output", "<function_response", "<function_result", "<observation",
)  # fmt: skip
"""The beginnings of tags around a result; see `asides`."""


def call_starts(shape: Shape, tools: Sequence[ToolSpec]) -> Iterator[Exclusion]:
    """Yield the strings that the parser reads as the start of a call of this shape, or of a run of them.

    A string that is common in prose (a bracket, a code fence) opens a call only with an offered name: there the name is
    blocked as it would be written in a call. A code block that starts with a list is blocked as a whole: the parser
    searches all of it for damaged calls.
    """
    if shape.section is not None:
        start = shape.section.open
        if isinstance(start, Tag):
            yield Exclusion(f"<{start.name}", tag=True)
        elif not weak(start):
            yield Exclusion(opener(start))
        elif is_fence(start) and start.endswith("["):
            yield Exclusion(start)
        else:
            yield from _name_starts(shape, tools)
    yield from _parameters(shape)
    match shape.first:
        case ToolElement(layout):
            elements = [t.with_element(layout).element for t in tools]
            yield from (Exclusion(f"<{e.tag}", tag=True) for e in elements if e is not None)
        case NameTag(name):
            yield Exclusion(f"<{name}", tag=" " not in name)
        case str(text) if not weak(text):
            yield Exclusion(opener(text))
        case _ if shape.section is None:
            yield from _name_starts(shape, tools)


def _parameters(shape: Shape) -> Iterator[Exclusion]:
    """Yield the openings of parameters: the parser takes one for a parameter of a call without its opening."""
    for part in shape.call:
        if isinstance(part, TagParameters):
            yield Exclusion(f"<{part.name}", tag=" " not in part.name)
        elif isinstance(part, Pairs):
            yield Exclusion(opener(part.key))


def invented_starts(format: Format) -> Iterator[Exclusion]:
    """Yield the openings of tools' results and other roles' turns, in this format and in the known families.

    A mark before each role is blocked without the role, unless the format writes it itself.
    """
    own = {text for shape in format.shapes for text in (shape.opening, *shape.call) if isinstance(text, str)}
    own |= {start for start, _ in (*format.thinking, *format.answer)}
    own |= {str(shape.section.open) for shape in format.shapes if shape.section is not None}
    for text in dict.fromkeys((*_RESULTS, format.result.mark, *map(_mark, _TURNS, repeat(own)))):
        if text and not any(written.startswith(text) for written in own):
            yield Exclusion(text, token=True)


def _mark(text: str, own: Collection[str]) -> str:
    """Return the common start of all roles' turns, from the start of one."""
    mark = commonprefix([text, *asides.LITERALS[text].closes[-1:]])  # noqa: RUF071  # characters, not paths
    return mark if mark.endswith(">") and not any(mark in written for written in own) else text


def without_section(shape: Shape) -> Shape | None:
    """Return a shape without its section, if its call's own opening is read as one; otherwise None."""
    first = shape.first
    own = isinstance(first, ToolElement | NameTag) or (isinstance(first, str) and not weak(first))
    return replace(shape, section=None) if own and shape.section is not None else None


def cut_trigger(found: str, blocked: Iterable[Exclusion]) -> str:
    """Return a trigger, cut where it has become a string that free text must not contain."""
    lead = len(found) - len(found.lstrip())
    fits = [len(b.text) for b in blocked if not b.quotes and found.startswith(b.text, lead)]
    return found[: lead + min(fits)] if fits else found


def _name_starts(shape: Shape, tools: Sequence[ToolSpec]) -> Iterator[Exclusion]:
    """Yield the strings that distinguish a call of an offered tool from ordinary prose."""
    edge = shape.opening.strip() if isinstance(shape.opening, str) else ""
    for tool in tools:
        for part in shape.call:
            yield from PARTS[type(part)].announces(part, edge, tool)


def trigger(shape: Shape, name: str, head: str) -> str:
    """Return the part of a block's leading literal `head` that makes free text the call of tool `name`."""
    match shape.opening:
        case Tag(tag) | NameTag(tag):
            return f"<{tag}"
        case ToolElement():
            return head[: min(i for i, c in enumerate(head + " ") if c in " />\n")]
        case str(text) if not weak(text):
            return head[: len(head) - len(head.lstrip())] + opener(text)
    written = values.dump(name)
    end = head.find(written) + len(written) if written in head else head.find(name) + len(name) + 1
    return head[:end]
