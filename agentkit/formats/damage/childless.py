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
from agentkit.formats.tags import ANY_OPENING, closing_tag, folded

REACH: Final = 2048  # characters in which such elements are looked for
FEW: Final = 64
_SPACE: Final = re.compile(r"\s*").match
_ANY_CLOSING: Final = Delimiter(
    r"</(?P<name>[^\W\d][\w.-]{0,127})\s{0,64}>", r"<(?:/(?:[^\W\d][\w.-]{0,127}\s{0,64})?)?"
)


@dataclass(frozen=True, slots=True)
class Childless:
    """Elements with which a text begins, and what follows: the `call` or the `end` of a tag, or `more` of other text.

    `names` are those of the elements, and `tag` that of the tag, as `folded`; `at` is where the tag opens, or ends.
    """

    names: AbstractSet[str]
    then: Literal["call", "end", "more"]
    tag: str = ""
    at: int = 0


def childless(text: str, is_tool: Callable[[str], bool]) -> Childless | None:
    """The elements with which this text begins; None while more must decide. `is_tool` knows the tools' tags."""
    names: set[str] = set()
    at = 0
    while tag := ANY_OPENING.match(text, at):
        name = folded(tag["name"])
        if is_tool(name):
            return Childless(names, "call" if names else "more", name, at)
        inside = text[tag.end() :].lstrip()
        if not inside.startswith(">"):
            return Childless(names, "more") if inside else None
        names.add(name)
        closing = re.compile(closing_tag(tag["name"]), re.IGNORECASE).search(text, tag.end())
        if closing is None:
            return None
        if any(is_tool(folded(f["name"])) for f in ANY_OPENING.whole.finditer(text, tag.end(), closing.start())):
            return Childless(names, "more")  # what is closed there is inside that call
        at = _SPACE(text, closing.end()).end()  # type: ignore[union-attr]  # it matches nothing too
    if names and (end := _ANY_CLOSING.match(text, at)):
        return Childless(names, "end", folded(end["name"]), end.end())
    undecided = at == len(text) or ANY_OPENING.part.match(text, at) or (names and _ANY_CLOSING.part.match(text, at))
    return None if undecided else Childless(names, "more")


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
