"""Literals as they are read: their characters, and white space where any or none may be. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

SOFT: Final = r"\s{0,1024}"
"""White space skipped inside a literal."""
CACHE_SIZE: Final = 4096
"""Literals in a cache: those of the declarations, used again and again, and the tools' names."""
PROSE: Final = r"(?-i:[^\W\d_a-z])(?:(?!</)[^\n\"'()]){0,512}"
"""Text directly after a call's end: a new sentence, without a closed quote, bracket or tag in its line."""
_TAG_OR_ATOM: Final = re.compile(r"</?(?:｜\w{1,16}｜ ?)?[a-zA-Z][\w.:-]*(?=[>=\s]|\Z)|\s+|\S")


def atoms(text: str) -> list[str]:
    """Return a literal as it is read: its characters, and white space where any or none may be.

    White space may be where the literal has a run of it, and around JSON's brackets.
    """
    return re.findall(r"\s+|\S", _apart(text))


def _apart(text: str) -> str:
    """Return the literal with white space wherever any may be."""
    return re.sub(r"(?<=\S)(?=[\[{])|(?<=[\[{}\]])(?=\S)", " ", text)


def _in_any_case(c: str) -> str:
    return f"[{c.lower()}{c.upper()}]" if c.isascii() and c.isalpha() else re.escape(c)


@lru_cache(CACHE_SIZE)
def expressions(text: str) -> tuple[str, ...]:
    """Return a literal as regular expressions, one for each of its atoms. A tag's name in it is read in any case."""
    out: list[str] = []
    for found in _TAG_OR_ATOM.findall(_apart(text)):
        if found.isspace():
            out.append(SOFT)
        elif found[1:]:
            out += [SOFT if c == " " else _in_any_case(c) for c in found]
        else:
            out.append(re.escape(found))
    return tuple(out)


@lru_cache(CACHE_SIZE)
def exact(text: str) -> str:
    """Return a literal as one regular expression: the names of tags must be spelt as they are in it."""
    return "".join(SOFT if atom.isspace() else re.escape(atom) for atom in atoms(text))
