"""What stands behind an opening that nothing but calls has, and cannot be read as one: whether it plainly names a tool.

Where it does, a call was written and is lost, and the model must hear of it. Where it does not, the opening is text:
prose may speak of one ("the token <tool_call> begins a call"), and a tool's name in a sentence makes it no call. Knows
the declarations; reads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from agentkit.formats.format import NameTag, Shape, Tag
from agentkit.formats.reader import beginnings, pattern
from agentkit.formats.tags import opening_tag

_REACH: Final = 1024  # pieces of what is no sentence that are looked over for the name
_SPACE: Final = r"\s{0,64}"


@dataclass(frozen=True, slots=True)
class Named:
    """A tool is named: how long the opening is, and whether the text ended before more could be told."""

    opening: int
    name: str
    ended: bool = False


class Unread:
    """Looks for a tool's name behind one opening.

    Between the two there may be brackets, quotes, tags, keys, and words to which such a character is joined, but no
    words of a sentence, no code and no other opening. Behind the name, no sentence goes on, unless the name is joined to
    the opening.

    Args:
        opening: a regular expression for what nothing but calls begins with.
        begun: one for its beginnings.
        names: of the offered tools.
        stop: a regular expression for all openings of calls, and for what ends this one.
    """

    __slots__ = ("_cut", "_part", "_whole")

    def __init__(self, opening: str, begun: str, names: Iterable[str], stop: str) -> None:
        known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or "(?!)"
        word = rf"(?!(?:{known})(?![\w-]))\w{{1,512}}+(?=[^\s\w.,;!?])"
        between = rf"(?>(?!\n[ \t\r]{{0,64}}\n)\s|(?!{stop})[^\w\s`]|{word}){{0,{_REACH}}}+"
        name = rf"(?P<name>{known})"
        joined = rf"{name}(?=[^\w-])"
        behind = rf"[\"']{{1,8}}{_SPACE}[^\w\s.!?]|{_SPACE}[^\w\s.,;!?:\"'`]"
        apart = rf"{between}{name.replace('name', 'apart')}(?={behind})"
        if opening.endswith("\\["):  # it may be the first character of another opening
            opening = rf"{opening[:-2]}(?!{stop})\["
        opened = rf"(?P<open>{opening}){_SPACE}"
        self._whole = re.compile(rf"{opened}(?:{joined}|{apart})").match
        self._cut = re.compile(rf"{opened}(?:{name}|{between}(?<=[\"'=:{{\[(>])(?P<apart>{known})[\"']{{0,8}})\s*\Z").match
        tail = rf"(?:\w{{0,512}}[\"']{{0,8}}{_SPACE})"
        self._part = re.compile(rf"(?:{begun}|(?:{opening}){_SPACE}{between}{tail})\Z").match

    def named(self, text: str, at: int, *, ended: bool) -> Named | Literal[False] | None:
        """What tool is named behind the opening that stands here; False for none, None while more must tell."""
        if found := self._whole(text, at):
            return Named(len(found["open"]), found["name"] or found["apart"])
        if ended:
            cut = self._cut(text, at)
            return Named(len(cut["open"]), cut["name"] or cut["apart"], ended=True) if cut else False
        return None if self._part(text, at) else False


def opening_of(shape: Shape, *, section: bool) -> tuple[str, str] | None:
    """Regular expressions for what a call of this shape begins with, and for the beginnings of that.

    With `section`, in front of it stands what opens its section. None where a name tells that it is a call.
    """
    first = next(part for part in shape.call if not isinstance(part, str) or part.strip())
    own = ""
    if isinstance(first, str):
        own = first.strip()
    elif isinstance(first, NameTag):
        return None if section else (f"(?i:{opening_tag(first.name)})", beginnings(f"<{first.name} "))
    edge = shape.section.open if section and shape.section is not None else ""
    if isinstance(edge, Tag):
        return rf"(?i:{opening_tag(edge.name)})\s{{0,64}}>", beginnings(f"<{edge.name} >")
    text = f"{edge.strip()} {own}".strip()
    return (pattern(text), beginnings(text)) if text else None
