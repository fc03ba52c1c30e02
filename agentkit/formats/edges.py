"""The edges of a format's calls and sections: the literals and tags at which they begin and end, common or not.

Knows the declarations, but neither the tools nor the text.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final

from agentkit.formats.format import (
    Envelope,
    Format,
    KeyEnvelope,
    PythonCall,
    Section,
    Shape,
    Tag,
)
from agentkit.formats.reader import Delimiter, any_beginning, any_of, beginnings, literal, pattern
from agentkit.formats.tags import closing, tag


def edge_delimiter(edge: str | Tag) -> Delimiter:
    """Return the delimiter of an edge; a closing tag at its end is read as any tag is."""
    return tag(edge.name, closing=edge.closing) if isinstance(edge, Tag) else _edge_delimiter(edge.strip())


@cache
def _edge_delimiter(edge: str) -> Delimiter:
    bracket, after_bracket = ("]", edge[1:].strip()) if _BRACKET_FIRST(edge) else ("", edge)
    before, slash, name = after_bracket.rpartition("</")
    if slash and name.endswith(">"):
        own = closing(name[:-1])
        whole = pattern(before) + own.regex.pattern
        part = rf"{beginnings(before)}|{pattern(before)}\s{{0,1024}}(?:{own.beginning})"
    elif bracket:
        whole, part = pattern(after_bracket), beginnings(after_bracket)
    else:
        return literal(edge)
    if bracket:  # the token after it says that the list ends, with the bracket or without it
        whole, part = rf"(?:\]\s{{0,1024}})?{whole}", rf"(?:\]\s{{0,1024}})?(?:{part})"
    return Delimiter(whole, part, re.IGNORECASE)


_BRACKET_FIRST: Final = re.compile(r"\]\s*(?=<[|/]|```)").match


def begins(own: str | Tag, edge: str | Tag) -> bool:
    """Return True for the section's own end, or the beginning of it."""
    return own == edge or (isinstance(own, str) and isinstance(edge, str) and own.startswith(edge))


@cache
def lists_of(format: Format) -> tuple[Shape, ...]:
    """Return shapes for JSON lists of envelopes between the literals of one call: models put all their calls there."""
    found = []
    for shape in format.shapes:
        match shape.call:
            case (str(start), Envelope() as envelope, *rest) if shape.section is None and start.strip():
                end = "".join(part for part in rest if isinstance(part, str))
                found.append(Shape((envelope,), Section(f"{start}[", f"]{end}")))
    return tuple(found)


@cache
def closers(format: Format) -> tuple[str | Tag, ...]:
    """Return the edges that end calls of this format, and the turn after them."""
    found: dict[str | Tag, None] = dict.fromkeys(format.ends)
    for shape in format.shapes:
        found |= dict.fromkeys(closers_of(shape))
    return tuple(sorted(found, key=lambda edge: -len(edge if isinstance(edge, str) else edge.name)))


def closers_of(shape: Shape) -> list[str | Tag]:
    """Return the edges that end calls of one shape."""
    edges = [shape.call[-1], shape.section.close if shape.section is not None else ""] if len(shape.call) > 1 else []
    return [edge for edge in edges if isinstance(edge, str | Tag) and _closes(edge)]


def _closes(edge: str | Tag) -> bool:
    """Return True if only a call's end is written like this; a fence is one if a token follows it."""
    return not weak(edge) or (is_fence(edge) and isinstance(edge, str) and "<" in edge)


def is_list(shape: Shape) -> bool:
    """Return True if calls of this shape are recognizable only in their section: JSON objects and Python calls."""
    return shape.section is not None and isinstance(shape.call[0], Envelope | KeyEnvelope | PythonCall)


@lru_cache(64)
def one_of(texts: tuple[str, ...]) -> Delimiter:
    """Return the delimiter of one of several literals: those of a set of formats, for any tools."""
    return Delimiter(any_of(texts), any_beginning(texts) or r"(?!)")


def opener(edge: str) -> str:
    """Return the beginning of a literal at which prose stops: up to its first white space or JSON bracket."""
    word = edge.split()[0]
    found = re.match(r"(.[^\[{]{2,})[\[{]", word)
    return found[1] if found and not found[1].isalnum() else word


_LABELLED: Final = re.compile(r"```\w*tool").match  # a fence whose label says that it contains calls
_COMMON: Final = ("", "[", "{", "]", "}", "<tool>")


def weak(edge: str | Tag) -> bool:
    """Return True if this is common in prose, so that only an offered tool's name makes it the start of a call."""
    return not isinstance(edge, Tag) and (edge.strip() in _COMMON or (is_fence(edge) and not _LABELLED(edge.strip())))


@cache
def marked(shape: Shape) -> bool:
    """Return True if a call of this shape has an edge that is not common in prose."""
    edges = [part for part in shape.call if isinstance(part, str | Tag)]
    if shape.section is not None:
        edges += [shape.section.open, shape.section.close]
    return not all(weak(edge if isinstance(edge, Tag) else edge.strip("[]{} \n")) for edge in edges)


def is_fence(edge: object) -> bool:
    """Return True for the beginning of a code fence."""
    return isinstance(edge, str) and edge.lstrip().startswith("```")
