"""Openings of parameters that are misspelt, in the text of a value. Pure; knows the declarations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from agentkit.formats.format import Pairs, TagParameters
from agentkit.formats.worn import beside, but_for_one

NO_SPACE: Final = dict.fromkeys(
    (*range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
)
"""Removes all white space: a list of the words of a long text would take many times its memory."""


def near_opening(value: str, part: Pairs | TagParameters, missing: Sequence[str]) -> str:
    """The first of these parameters whose misspelt opening is in a value; empty if there is none."""
    text = value.translate(NO_SPACE)
    return next((name for name in missing if _nearly(text, part, name)), "")


def _nearly(text: str, part: Pairs | TagParameters, name: str) -> bool:
    """Whether a text contains the opening of a parameter up to its name, or except for one character.

    Neither has white space.
    """
    begun = part.key if isinstance(part, Pairs) else f'<{part.name}{part.attribute}="'
    if re.search(rf"{re.escape(''.join(begun.split()) + name)}(?!\w)", text):
        return True
    behind = (part.middle, *part.kind[:1]) if isinstance(part, Pairs) else (f'{part.attribute}="{name}"',)
    before = name if isinstance(part, Pairs) else ""
    if any(len(rest.strip()) > 2 and f"{before}{''.join(rest.split())}" in text for rest in behind):
        return True
    if any(_is_worn(found[0], part, name) for found in _A_TAG.finditer(text)):
        return True
    for first, last in _halves(part, name):
        if first in text and any(but_for_one(rest, last) for rest in beside(text, first)):
            return True
        back = first[::-1]
        if last in text and any(but_for_one(rest, back) for rest in beside(text[::-1], last[::-1])):
            return True
    return False


def _is_worn(tag: str, part: Pairs | TagParameters, name: str) -> bool:
    """Whether a tag is what is left of a parameter's opening in which characters are missing at one place.

    At least three are left before and after that place.
    """
    for opening in ("".join(written.split()) for written in written_openings(part, name)):
        cuts = range(3, len(tag) - 2)
        if len(tag) < len(opening) and any(opening.startswith(tag[:n]) and opening.endswith(tag[n:]) for n in cuts):
            return True
    return False


_A_TAG = re.compile(r"<[^<>]{4,256}>")


@lru_cache(256)
def _halves(part: Pairs | TagParameters, name: str) -> tuple[tuple[str, str], ...]:
    """The first and the last half of what may be written before the value of a parameter, without white space."""
    written = ("".join(opening.split()) for opening in written_openings(part, name))
    return tuple((opening[: len(opening) // 2], opening[len(opening) // 2 :]) for opening in written)


def written_openings(part: Pairs | TagParameters, name: str) -> Iterator[str]:
    """What may be written before the value of a parameter, without line ends."""
    if isinstance(part, TagParameters):
        kinds = (f' {part.kind}="{word}"' for word in ("true", "false"))
        yield from (f'<{part.name} {part.attribute}="{name}"{kind}>' for kind in (kinds if part.kind else ("",)))
        return
    middles = (part.middle, *(f"{part.kind[0]}{word}{part.kind[1]}" for word in _TYPES if part.kind))
    yield from (f"{part.key}{name}{middle}".replace("\n", "") for middle in middles)


_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
