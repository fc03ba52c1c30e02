"""Child elements outside of their tool's: what comes after them says whether they were meant for a call.

Knows tags and the reader; knows nothing of calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Literal

from agentkit.formats.damage.listed import later
from agentkit.formats.reader import Damage, Delimiter, Reader, Wait
from agentkit.formats.tags import ANY_OPENING, closing_tag, either, folded, opening_tag

REACH: Final = 2048  # characters in which such elements are looked for
FEW: Final = 64
_SPACE: Final = re.compile(r"\s*").match
_ANY_CLOSING: Final = Delimiter(
    r"</(?P<name>[^\W\d][\w.-]{0,127})\s{0,64}>", r"<(?:/(?:[^\W\d][\w.-]{0,127}\s{0,64})?)?"
)


@dataclass(frozen=True, slots=True)
class Childless:
    """Elements with which a text begins, and what follows: the `call` or the `end` of a tag, or `more` of other text.

    `names` are those of the elements, and `tag` that of the tag, as `folded`; `at` is where the tag opens, or ends, or
    the elements end. `quotes` if a whole tool's element is in one.
    """

    names: AbstractSet[str]
    then: Literal["call", "end", "more"]
    tag: str = ""
    at: int = 0
    quotes: bool = False


def childless(text: str, is_tool: Callable[[str], bool]) -> Childless | None:
    """The elements with which this text begins; None while more must decide. `is_tool` knows the tools' tags."""
    names: set[str] = set()
    at, quotes = 0, False
    while tag := ANY_OPENING.match(text, at):
        name = folded(tag["name"])
        if is_tool(name):
            return Childless(names, "call" if names else "more", name, at, quotes)
        inside = text[tag.end() :].lstrip()
        if not inside.startswith(">"):
            return Childless(names, "more", at=at, quotes=quotes) if inside else None
        names.add(name)
        closing = _balanced(tag["name"], text, tag.end())
        if closing < 0:
            return None
        quotes |= any(is_tool(folded(f["name"])) for f in ANY_OPENING.whole.finditer(text, tag.end(), closing))
        at = _SPACE(text, closing).end()  # type: ignore[union-attr]  # it matches nothing too
    if names and (end := _ANY_CLOSING.match(text, at)):
        return Childless(names, "end", folded(end["name"]), end.end(), quotes)
    undecided = at == len(text) or ANY_OPENING.part.match(text, at) or (names and _ANY_CLOSING.part.match(text, at))
    return None if undecided else Childless(names, "more", at=at, quotes=quotes)


def _balanced(name: str, text: str, at: int) -> int:
    """The index after the tag that closes an element of this name, over others of its name inside; -1 without one."""
    depth = 1
    for found in re.finditer(either("close", [closing_tag(name)], opening_tag(name)), text[at:], re.IGNORECASE):
        depth += -1 if found["close"] else 1
        if not depth:
            return at + found.end()
    return -1


def refuse_behind(r: Reader, tag: str, missing: Collection[str]) -> Wait:
    """Look at what follows a tool's element: children of it that were not passed, and then its end again, are lost.

    Raises:
        Damage: `invalid_arguments`; the call is over here.
    """
    if not missing or (at := (yield from _first_child(r, missing))) < 0:
        return
    found: Childless | None = None
    enough = 0
    while found is None:
        size = len(r.buf) - at
        whole = r.ended or size >= REACH
        if whole or size >= enough:
            found = childless(r.buf[at : at + REACH], lambda name: name == folded(tag))
            if whole:
                break
            enough = later(size) if size > FEW else 0
        if found is None:
            ahead = at - r.at
            yield
            at = r.at + ahead
    if found is not None and found.then == "end" and found.tag == folded(tag):
        shown = ", ".join(f"<{name}>" for name in sorted(found.names))
        message = f"expected all parameters before </{tag}>, which comes again after {shown}: write it once"
        raise Damage("invalid_arguments", message, r.offset, end=r.offset)


def _first_child(r: Reader, missing: Collection[str]) -> Generator[None, None, int]:
    """Where one of these elements opens after white space, as an index of the buffer; -1 if none does."""
    while True:
        at = _SPACE(r.buf, r.at).end()  # type: ignore[union-attr]  # it matches nothing too
        if found := ANY_OPENING.match(r.buf, at):
            return at if folded(found["name"]) in missing else -1
        if r.ended or (at < len(r.buf) and ANY_OPENING.part.match(r.buf, at) is None):
            return -1
        yield
