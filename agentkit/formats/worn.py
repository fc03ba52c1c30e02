"""Tags and tokens of which a part is missing, misspelt or in another place. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache
from itertools import permutations
from typing import Final

_ALIKE: Final = 0.8  # of two strings, if one is the other misspelt
_STRAY: Final = 64  # extra characters that may be inside a closing tag
_LEFT: Final = 5  # characters by which a part of a closing tag is told from other text
_LONGEST_TAG: Final = 512
_LAST_TAG: Final = re.compile(r"<([/!?]?)([^<>]*)>\Z")
_LONGEST_SIGN: Final = 16  # characters of a bracket that is written as an entity
_OTHERWISE: Final = re.compile(
    r"(?P<opens>&(?:amp;)*(?:lt|#0*60|#x0*3c);?|\\u003c|\\x3c|%3c|[\[({\uff1c\u2039\u00ab\u3008\u300a\u27e8\u276e\ufe64])"
    r"|(?P<ends>&(?:amp;)*(?:gt|#0*62|#x0*3e);?|\\u003e|\\x3e|%3e|[\])}\uff1e\u203a\u00bb\u3009\u300b\u27e9\u276f\ufe65])"
    r"|&(?:amp;)*(?:sol|#0*47|#x0*2f);?|\\+u002f|\\+/|%2f|[\uff0f\u2215\u2044]",
    re.IGNORECASE,
)
"""Angle brackets and the slash of a tag as they are written in its place: escaped, or as other brackets."""


def alike(text: str, closing: str) -> bool:
    """Whether a string is a misspelt closing tag."""
    return SequenceMatcher(None, text, closing, autojunk=False).ratio() > _ALIKE


def halved(text: str, closing: str) -> bool:
    """Whether a string ends with the beginning or the end of a closing tag, or with one like it.

    Its inside is one, too. A closing tag with something extra inside it is like one. If only one or two characters are
    left of it, the string ends with an angle bracket that is not part of a whole tag, or with an opening tag where the
    closing one belongs. So is a word between its tags, if it is joined to the string, and a closing tag in disguise.
    """
    size, text = len(closing), text.rstrip()
    if _disguised(text, closing):
        return True
    last = text[-size - _STRAY :]
    if any(last.endswith(closing[n:]) and closing[:n] in last[: n - size] for n in range(3, size)):
        return True
    if last.endswith(_scrambled(closing)) or any(_joined(last, word) for word in _words(closing)):
        return True
    begun = last.rfind(closing[: max(size // 2, 5)])
    if begun >= 0 and "\n" not in last[begun:] and not last.startswith(closing, begun):
        return True  # the rest of it is something else
    inner = (closing[n:-1] for n in range(1, size // 2) if not closing[n:-1].isalnum())
    pieces = (*(closing[:n] for n in range(2, size)), *(closing[n:] for n in range(1, size - 2)), *inner)
    tail = text[-size - 1 :]
    tail = tail[max(tail.find(closing[:2]), 0) :]
    return text.endswith((*pieces, "<", "</")) or alike(tail, closing) or _ends_in_a_bracket(text, closing)


def begins_closing(text: str, closing: str) -> bool:
    """Whether a string ends with the beginning of a closing tag: at least three characters of it, and not all."""
    text = text.rstrip()
    return closing[:3] in text[-len(closing) :] and text.endswith(tuple(closing[:n] for n in range(3, len(closing))))


def is_rest(text: str, closing: str) -> bool:
    """Whether a string ends with a part of a closing tag: at least one character of its beginning or of its end."""
    size = len(closing)
    return text.endswith((*(closing[:n] for n in range(1, size)), *(closing[n:] for n in range(1, size))))


def torn_closing(text: str, closing: str) -> bool:
    """Whether a string contains the beginning of a closing tag, cut off where a line ends or another tag begins.

    At least five characters of it, or more than half.
    """
    text, closing = text.casefold(), closing.casefold()
    begun = closing[: min((len(closing) + 3) // 2, _LEFT)]
    at = text.find(begun)
    while at >= 0:
        end = at + alike_up_to(text[at : at + len(closing)], closing)
        if end - at < len(closing) and _OVER(text, end) is not None:
            return True
        at = text.find(begun, end)
    return False


def alike_up_to(text: str, wanted: str) -> int:
    """How many characters two strings have in common at their start."""
    size = min(len(text), len(wanted))
    return next((n for n in range(size) if text[n] != wanted[n]), size)


def beside(text: str, piece: str) -> Iterator[str]:
    """What follows each occurrence of a piece of a text."""
    at = text.find(piece)
    while at >= 0:
        yield text[at + len(piece) : at + 2 * len(piece) + 4]
        at = text.find(piece, at + 1)


def but_for_one(text: str, wanted: str) -> bool:
    """Whether a text begins like this, with one character that is wrong, too many or missing."""
    n = alike_up_to(text, wanted)
    ways = ((text[n + 1 :], wanted[n + 1 :]), (text[n:], wanted[n + 1 :]), (text[n + 1 :], wanted[n:]))
    return n < len(wanted) and any(have.startswith(rest) for have, rest in ways)


def worn_by_one(text: str, closing: str) -> bool:
    """Whether a string contains a closing tag or token in which one character is another one, too many or missing.

    As tags are read: in any case. An opening tag that is closed does not lack its slash.
    """
    text, closing = text.casefold(), closing.casefold()
    opening = f"<{closing[2:]}"
    if closing.startswith("</") and text.count(opening) <= text.count(closing):
        text = text.replace(opening, "\0").replace(closing, "\0")
    half = len(closing) // 2
    first, last = closing[:half], closing[half:]
    if any(but_for_one(rest, last) for rest in beside(text, first)):
        return True
    text, first, last = text[::-1], first[::-1], last[::-1]
    return any(but_for_one(rest, first) for rest in beside(text, last))


_OVER: Final = re.compile(r"(?!\s*>)(?=<|[ \t]*\r?\n)").match


def is_left(text: str, closing: str) -> bool:
    """Whether a string is nothing but a part of a closing tag, or a closing tag misspelt; or empty."""
    text = text.strip()
    return closing.startswith(text) or closing.endswith(text) or alike(text, closing)


def lacks_some(piece: str, whole: str) -> bool:
    """Whether a string is what is left of a tag's name or of a token in which characters are missing at one place."""
    cuts = range(len(piece) + 1)
    return len(piece) < len(whole) and any(whole.startswith(piece[:n]) and whole.endswith(piece[n:]) for n in cuts)


def worn_closing(text: str, closing: str) -> int:
    """The index after the first misspelt closing tag in a string that nothing there opens; -1 if there is none."""
    if not closing.startswith("</"):
        return -1
    seen = {closing}
    for found in _CLOSING_TAG.finditer(text):
        if found[0] not in seen and alike(found[0], closing) and f"<{found[1]}" not in text:
            return found.end()
        seen.add(found[0])
    return -1


def doubtful_end(text: str, closing: str) -> bool:
    """Whether a string contains a part of a closing tag that may be taken for what ends it."""
    return begins_closing(text, closing) or worn_closing(text, closing) >= 0 or torn_closing(text, closing)


_CLOSING_TAG: Final = re.compile(r"</([^<>\n]{1,64})>")


def _ends_in_a_bracket(text: str, closing: str) -> bool:
    """Whether a string ends with a bracket of a closing tag that closes nothing there.

    `>` does at the end of a comment, of another closing tag and of a tag that closes itself.
    """
    if text.endswith("]") and closing.startswith("]"):
        return text.count("]") > text.count("[")
    if not text.endswith(">"):
        return False
    found = _LAST_TAG.search(text[-_LONGEST_TAG:])
    if found is None or found[1] == "":
        return found is None or not found[2].endswith(("/", "-"))
    return found[1] == "/" and re.search(rf"<{re.escape(found[2].strip())}[\s>]", text) is None


def _disguised(text: str, closing: str) -> bool:
    """Whether a string ends with a closing tag, or most of one, whose brackets are escaped or other brackets."""
    last = text[-_LONGEST_SIGN * len(closing) :]
    plain, closing = _undisguised(last), _undisguised(closing)
    if plain == last:
        return False
    tail = plain[-len(closing) - 1 :]
    return begins_closing(plain, closing) or alike(tail[max(tail.find(closing[:2]), 0) :], closing)


def _undisguised(text: str) -> str:
    """A string in which every bracket is an angle bracket, and every slash is plain."""
    return _OTHERWISE.sub(lambda sign: {"opens": "<", "ends": ">"}.get(sign.lastgroup or "", "/"), text)


def _joined(text: str, word: str) -> bool:
    """Whether a string ends with a word that is joined to what precedes it."""
    return text.endswith(word) and not text[-len(word) - 1 : -len(word)].isspace()


@cache
def _words(closing: str) -> tuple[str, ...]:
    """The words of a closing literal that are between its tags."""
    return tuple(re.sub(r"<[^<>]*>", " ", closing).split()) if closing.count("<") > 1 else ()


@cache
def _scrambled(closing: str) -> tuple[str, ...]:
    """The tokens and words of a closing literal in any other order."""
    pieces = re.findall(r"<[^<>]*>|[^<>]+", closing)
    return tuple({"".join(order) for order in permutations(pieces)} - {closing}) if len(pieces) < 5 else ()
