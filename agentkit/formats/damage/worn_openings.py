"""The opening of a call in a section, worn: in another case, or with characters missing, added or changed.

Without the section such a text says nothing of a call. In one it stands where a call belongs, is like what opens calls
there, and an offered tool's name is after it. Knows the declarations; reads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from agentkit.formats.damage.unread import Named
from agentkit.formats.edges import edge_of, weak
from agentkit.formats.format import CallId, CountedName, Format, Name, NameTag, Section, Shape, Tag
from agentkit.formats.reader import pattern
from agentkit.formats.tags import closing_tag, opening_tag
from agentkit.formats.worn import alike

_MORE: Final = 16  # characters by which a worn opening may be longer than a whole one, with an id that is part of it
_REACH: Final = 2048  # characters in which a call without a name may end


class WornOpening:
    """Finds a call in a section, of which the opening is worn, or the tool's name is missing."""

    __slots__ = ("_ends", "_enough", "_names", "_openings", "_reach", "_starts", "_stops")

    def __init__(self, shapes: Iterable[Shape], around: Section, names: Iterable[str]) -> None:
        shapes = [shape for shape in shapes if _before_name(shape)]
        longest_first = sorted(names, key=len, reverse=True)
        known = "|".join(map(re.escape, longest_first)) or "(?!)"
        self._openings: Final = tuple(dict.fromkeys(_before_name(shape).casefold() for shape in shapes))
        self._reach: Final = max(map(len, self._openings), default=0) + _MORE
        self._enough: Final = self._reach + len("".join(longest_first[:1])) + 1
        self._names: Final = re.compile(rf"(?:{known})(?![\w-])")
        self._starts: Final = re.compile(rf"\s{{0,64}}(?:{'|'.join(_starts(shapes)) or '(?!)'})")
        edges = [f"(?i:{edge_of(part).whole.pattern})" for part in (around.open, around.close) if part]
        self._stops: Final = re.compile("|".join([self._starts.pattern, *edges]))
        self._ends: Final = re.compile("|".join([*_starts(shapes), *_ends(shapes)]) or "(?!)", re.IGNORECASE)

    def named(self, text: str, *, whole: bool) -> Named | Literal[False] | None:
        """The tool that is named after a worn opening, with which this text begins; False if there is none.

        Args:
            text: what stands where a call may.
            whole: whether no more of it will come.

        Returns:
            None while more text must decide.
        """
        next_one = self._stops.search(text)
        limit = self._enough if next_one is None else min(self._enough, next_one.start())
        for found in self._names.finditer(text, 0, limit):
            if found.end() == len(text) and not whole:
                return None
            if self._worn(text[: found.start()]):
                return Named(found.start(), found[0])
        return None if len(text) < self._enough and not whole else False

    def nameless(self, text: str, *, whole: bool) -> Named | Literal[False] | None:
        """The same for a call that opens and ends as calls do, and names no tool."""
        if not (opening := self._starts.match(text)):
            return False
        found = self._ends.search(text, opening.end(), _REACH)
        if found is not None and (whole or found.end() < len(text)):
            return False if self._starts.match(text, found.start()) else Named(opening.end(), "")
        return None if not whole and len(text) < _REACH else False

    def _worn(self, text: str) -> bool:
        text = text.strip().casefold()
        return bool(text) and any(alike(text, opening) for opening in self._openings)


def worn_opening(format: Format, shape: Shape, names: Iterable[str]) -> WornOpening | None:
    """What finds such calls; None if they have no opening of their own, or prose has such sections."""
    section = shape.section
    if section is None or weak(section.open) or not isinstance(shape.call[0], str | NameTag):
        return None
    return WornOpening([s for s in format.shapes if s.section == section], section, names)


def _before_name(shape: Shape) -> str:
    """What is written of a call before its tool's name; empty if that is not its opening."""
    text = ""
    for part in shape.call:
        match part:
            case str():
                text += part
            case CallId():
                pass
            case Name(prefix) | CountedName(prefix):
                return text.strip() + prefix if text.strip() else ""
            case NameTag(name, attribute):
                return f'{text.strip()}<{name} {attribute}="'
            case _:
                return ""
    return ""


def _starts(shapes: Iterable[Shape]) -> Iterator[str]:
    """Regular expressions for the openings that calls of these shapes have."""
    for first in dict.fromkeys(shape.first for shape in shapes):
        if isinstance(first, str | NameTag):
            yield f"(?i:{opening_tag(first.name)})" if isinstance(first, NameTag) else pattern(first.strip())


def _ends(shapes: Iterable[Shape]) -> Iterator[str]:
    """Regular expressions for what closes them."""
    for shape in shapes:
        last = shape.call[-1]
        yield closing_tag(last.name) if isinstance(last, Tag) else pattern(str(last).strip())
