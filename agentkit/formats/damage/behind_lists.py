"""What is written after the end of a list of calls before its next call: a few words, or other items.

A list in the list ends like the outer one, and only what follows shows which of the two is over. Reads nothing.
"""

from __future__ import annotations

import re
from typing import Final

from agentkit.formats.damage.listed import Listed

_CALL: Final = 512  # characters in which a call shows that it starts
_JUNK: Final = re.compile(r"[^\[\]{}\n]{0,64}").match
_SPACE: Final = re.compile(r"\s{0,64}").match
_STRING: Final = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'").match
_IN_OBJECT: Final = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|[\"'{}]", re.DOTALL)

MAY_GO_ON: Final = re.compile(r"[^\[\]{}\n,]{0,64}+(?:,|\Z)|\s{0,64}+(?:,|\Z)").match
"""What precedes every call that `next_behind` finds, or may be the beginning of that."""


def next_behind(listed: Listed, text: str, *, whole: bool) -> int | None:
    """Where the next call is after the end of a list and something else; 0 if there is none.

    Args:
        listed: what finds the list's calls; its opening is uncommon in prose.
        text: what follows the end of the list.
        whole: whether that is all that can be searched.

    Returns:
        None while more text must decide.
    """
    junk = len(_JUNK(text)[0])  # type: ignore[index]  # it matches nothing too
    at = text.find(",", 1, junk + 1)
    while at >= 0:
        found = _call_at(listed, text, at + 1, whole=whole)
        if found != 0:
            return found
        at = text.find(",", at + 1, junk + 1)
    if junk == len(text) and not whole:
        return None
    return _behind_items(listed, text, whole=whole)


def _behind_items(listed: Listed, text: str, *, whole: bool) -> int | None:
    """The same after items of the list that are strings or objects."""
    undecided = None if not whole else 0
    at = _over_space(text, 0)
    while text.startswith(",", at):
        if (found := _call_at(listed, text, at + 1, whole=whole)) != 0:
            return found
        end = _item_end(text, _over_space(text, at + 1))
        if end <= 0:
            return undecided if end < 0 else 0
        at = _over_space(text, end)
    return undecided if at == len(text) else 0


def _call_at(listed: Listed, text: str, at: int, *, whole: bool) -> int | None:
    """Where a call starts here, after white space; 0 if none does, None while more text must decide."""
    at = _over_space(text, at)
    if at == len(text):
        return None if not whole else 0
    starts = listed.starts(text[at : at + _CALL], whole=whole or len(text) - at >= _CALL)
    return at if starts else None if starts is None else 0


def _over_space(text: str, at: int) -> int:
    return _SPACE(text, at).end()  # type: ignore[union-attr]  # it matches nothing too


def _item_end(text: str, at: int) -> int:
    """Where a string on one line or an object ends that starts there; 0 if none starts, -1 if it is not over."""
    if text[at : at + 1] in ("'", '"'):
        string = _STRING(text, at)
        return string.end() if string is not None else 0 if "\n" in text[at:] else -1
    depth = 0
    for token in _IN_OBJECT.finditer(text, at) if text.startswith("{", at) else ():
        if token[0] in ("'", '"'):
            return -1
        depth += (token[0] == "{") - (token[0] == "}")
        if not depth:
            return token.end()
    return -1 if depth else 0
