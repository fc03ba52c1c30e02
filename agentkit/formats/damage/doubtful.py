"""What makes it doubtful that the content of a tool's element is meant as it is, and is all of it.

Parameters written as tags inside it, a part of another opening tag, a call written as JSON. Knows texts and the tools;
reads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from agentkit.formats.worn import doubtful_end, lacks_some
from agentkit.toolspec import ToolSpec


def doubt_of(text: str, tool: ToolSpec | None, tag: str, attributes: Iterable[str]) -> str:
    """What makes it doubtful that content is meant as it is, in words; empty if nothing does."""
    if name := wrapped(text, tool):
        return f"is inside tags of {name!r}: omit them"
    if tag_goes_on(text, tag, attributes):
        return "begins with a part of another tag: write the call again"
    if worn_inside(text, tag, attributes):
        return "contains what is left of the opening tag of another call: write the call again"
    if doubtful_end(text, f"</{tag}>"):
        return "contains a part of its closing tag: write the call again"
    if text.endswith(f"<{tag}") or _ENDS_IN_TAG(text, text.rfind("<")):
        return "ends inside another tag: write the call again"
    if tool is not None and _envelope(text, tool.name):
        return f"begins with a call of {tool.name!r} in JSON: write its arguments as this format does"
    return ""


def _envelope(text: str, name: str) -> bool:
    """Whether a text begins with a call of this tool as JSON."""
    return text.lstrip()[:1] in ("{", "[") and re.match(rf"{_BEFORE_NAME}{re.escape(name)}\"", text) is not None


_ENDS_IN_TAG: Final = re.compile(r"<[\w.:-]+\s[^<>]*=\s*(?:\"[^\"<>]*|'[^'<>]*)\Z").match
_BEFORE_NAME: Final = r"\s*[\[{][\s\w\[{\",:]{0,128}?\"name\"\s*:\s*\""


def wrapped(text: str, tool: ToolSpec | None) -> str:
    """The first of the tool's parameters whose tags, one or more, enclose all of this text; empty if none do.

    One of two tags may be missing. The model may have meant parameters, or a value that is a document.
    """
    known = tool.parameters.get("properties", {}) if tool is not None else {}
    text, at, first = text.strip(), 0, ""
    while (opened := _OPENED(text, at)) is not None and opened[1] in known:
        first, at = first or opened[1], _closed_at(text, opened)
        if at >= len(text):
            return first
    closed = _CLOSED_LAST(text)
    stray = closed is not None and closed[1] in known and not re.search(rf"<{re.escape(closed[1])}[\s>]", text)
    return closed[1] if closed is not None and stray else ""


def tag_goes_on(text: str, tag: str, attributes: Iterable[str]) -> bool:
    """Whether a text begins with the rest of an opening tag, or with a part of one; or contains one without its space.

    Args:
        text: the content of an element.
        tag: the element's tag.
        attributes: the names of which one comes first in it.
    """
    own = tuple(attributes)
    if _behind_end(own).match(text) is not None:
        return True  # the tag's end came before it
    if ">" not in text:
        return False
    parts = _parts_of_tags(own)
    begun = parts.begun.match(text)
    if begun is not None and lacks_some(begun["piece"], tag):
        return True
    inside = parts.inside.match(text)
    if inside is not None and tag.endswith(inside["piece"] or ""):  # this tag opened inside the other one
        return True
    return parts.rest.match(text) is not None or any(parts.glued.match(text, at) for at in _after(f"<{tag}", text))


@dataclass(frozen=True, slots=True)
class _PartsOfTags:
    """What matches parts of an opening tag at the beginning of a text, given the attributes that may come first in it.

    Args:
        begun: the tag without some characters of its name.
        inside: the tag, which opened in another one.
        rest: the rest of a tag.
        glued: an attribute, directly after the tag's name.
    """

    begun: re.Pattern[str]
    inside: re.Pattern[str]
    rest: re.Pattern[str]
    glued: re.Pattern[str]


@lru_cache(256)
def _behind_end(attributes: tuple[str, ...]) -> re.Pattern[str]:
    """An attribute after the end of its tag, and the content joined to it."""
    return re.compile(rf"(?:{_either(attributes)})\s{{0,8}}=\s{{0,8}}(?:\"[^\"<>]*\"|'[^'<>]*')\w")


def _either(attributes: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, attributes)) or r"(?!)"


def _after(opening: str, text: str) -> Iterator[int]:
    """Every index after this string in a text."""
    at = text.find(opening)
    while at >= 0:
        yield at + len(opening)
        at = text.find(opening, at + 1)


@lru_cache(256)
def _parts_of_tags(attributes: tuple[str, ...]) -> _PartsOfTags:
    own = _either(attributes)
    begun = rf"\s*<(?P<piece>[\w.:-]*)\s+(?:{own})\s*=\s*[\"'][^<>\n]*>"
    value = r"(?:\"[^\"<>]*\"|'[^'<>]*')"
    more = rf"(?:\s+[\w.:-]+={value})*+\s*/?>"
    unclosed = rf"(?:{value}\s+[\w.:-]+=)*+[\"'][^\"'<>\n]*>"
    odd = "|".join(rf"[^{q}<>\n]*{q}(?:[^{q}<>\n]*{q}[^{q}<>\n]*{q})*+[^{q}<>\n]*>" for q in "\"'")
    inside = rf"\s*(?:(?P<piece>[\w.:-]+)\s+)?(?:{own})\s*=\s*(?:{value}{more}|{unclosed}|{odd})"
    alone = r"(?:\"[^\"'<>\n]*>(?![^\n]*\")|'[^\"'<>\n]*>(?![^\n]*'))"  # nor closed after the tag
    any_value = r"(?:\"[^\"\n]*\"|'[^'\n]*')"  # at the beginning, it may hold tags
    any_more = more.replace(value, any_value)
    rest = rf"\s*(?:[\w.:-]*=)?{alone}|\s*(?:(?:{own})\s*=\s*|[\w.:-]*=)?{any_value}{any_more}"
    joined = rf"(?:\s*[\w.:-]+={value})*+/?>"  # without the spaces, as damage that removed one may remove others
    for q in "\"'":  # which is not closed in its line: `print(">")` is code
        rest += rf"|(?:[^<>\"'=\n]{{0,64}}{q}{more}|[^<>{q}\n]{{0,256}}{q}{joined})(?![^\n]*{q})"
        rest += rf"|[^<>{q}\n]{{0,256}}{q}>[^<>{q}\n]{{0,256}}{q}{more}"  # the end of the other tag, and then of this
    return _PartsOfTags(*map(re.compile, (begun, inside, rest, rf"(?:{own})\s*=")))


def worn_inside(text: str, tag: str, attributes: Iterable[str]) -> bool:
    """Whether a text contains an opening tag like this one in which characters are missing, and does not close it.

    Such a tag has one of the attributes, or is the first thing in its line.
    """
    if ">" not in text:
        return False
    for found in _opened(tuple(name for name in attributes if name in text)).finditer(text):
        piece = found["alone"] or found["bare"] or found["piece"]
        worn = lacks_some(piece, tag) or piece == tag * 2 or piece == found["bare"] == tag
        if worn and f"</{piece}>" not in text:
            return True
    return False


@lru_cache(256)
def _opened(attributes: tuple[str, ...]) -> re.Pattern[str]:
    """Opening tags with one of these attributes, or alone in their line; the attributes are those that the text has."""
    alone = r"\n[ \t]*<(?P<alone>[\w.:-]{2,})>"
    if not attributes:  # as in most texts, which are then searched much faster
        return re.compile(rf"{alone}(?P<piece>(?!))?(?P<bare>(?!))?")
    with_own = rf"\s+(?:{_either(attributes)})\s*=\s*[\"'][^<>\n]*>"
    return re.compile(rf"<(?P<piece>[\w.:-]*){with_own}|{alone}|\n[ \t]*(?P<bare>[\w.:-]+){with_own}")


def _closed_at(text: str, opened: re.Match[str]) -> int:
    """Where the element that this tag opens ends: at the text's end if it is not closed."""
    depth = 1
    for tag in re.finditer(rf"<(/?){re.escape(opened[1])}\s*>", text[opened.end() :]):
        depth += -1 if tag[1] else 1
        if not depth:
            return opened.end() + tag.end()
    return len(text)


_OPENED: Final = re.compile(r"\s*<([^\W\d][\w.-]*)\s*>").match
_CLOSED_LAST: Final = re.compile(r"</([^\W\d][\w.-]*)\s*>\Z").search
