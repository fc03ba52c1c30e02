"""Where one text ends and the next begins, a call may stand: a file that is read page by page shows it in no page.

Pure. Knows texts only, and what tells a call (see `agentkit.processor.telling`). Texts that follow one another are
compared as one, in which the call has to stand whole and in order. At a seam, a tool may have added lines to its pages,
or a page may be one of the strings of a JSON object.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from agentkit.processor.comparing import examined
from agentkit.processor.telling import Telling

_LINES: Final = 3  # that a tool adds to the end of a page, at most, and as many to its beginning
_ADDED: Final = 600  # bare characters that it adds at a seam, at most
_LOST: Final = 4  # bare characters, at most, of which a seam inside an escape shows nothing
_WIDER: Final = 16  # times as long as the call itself is what it was quoted from, at most: escapes, white space


class Page(NamedTuple):
    """A text that others follow.

    Attributes:
        text: as it is.
        bare: the same as it is compared, also without the marks of its lines (see `comparing.examined`).
        result: whether a tool returned it, which may have added something.
    """

    text: str
    bare: Sequence[str]
    result: bool


class Seams:
    """The seams of pages, in the order of the conversation.

    Linear in the pages: what is at a seam is looked at closely only if all of a call may be there.
    """

    def __init__(self, pages: Sequence[Page]) -> None:
        self._pages = pages
        ways = range(min(max((len(page.bare) for page in pages), default=0), 2))
        self._ways = [_joined([page.bare[min(way, len(page.bare) - 1)] for page in pages]) for way in ways]

    def began(self, raw: str, text: str) -> int | None:
        """The page in which a call begins that ends in a later one; None if there is none. No single page contains it.

        Args:
            raw: the call as it is written.
            text: the same, bare.
        """
        size = _WIDER * len(raw) + 2 * _ADDED
        for whole, ends in self._ways:
            if (at := whole.find(text)) >= 0:
                return bisect_right(ends, at)
            for seam in _halved(text, whole, ends[:-1]):
                forms = (examined(around, decoded=False)[0] for around in self._around(seam, size))
                if any(text in form for known in forms for form in known):
                    return seam
        return None

    def possible(self, telling: Telling) -> Iterator[int]:
        """The pages at whose ends a call may stand in another format."""
        found = set[int]()
        for whole, ends in self._ways:
            for place in telling.places(whole):
                near = range(bisect_left(ends, place - telling.extent), bisect_right(ends, place + telling.extent))
                found |= {seam for seam in near if seam < len(ends) - 1}
        yield from sorted(found)

    def sides(self, seam: int, size: int) -> tuple[str, str]:
        """This many characters before a seam and after it."""
        before = _taken((self._pages[at].text for at in range(seam, -1, -1)), size)
        after = _taken((self._pages[at].text for at in range(seam + 1, len(self._pages))), size)
        return "".join(reversed(before))[-size:], "".join(after)[:size]

    def _around(self, seam: int, size: int) -> Iterator[str]:
        """What is around a seam: as it is, without what a tool adds to pages, and what has one place in two objects."""
        sides, before, after = self.sides(seam, size), self._pages[seam], self._pages[seam + 1]
        if not (before.result and after.result):
            yield from _both(*sides)
            return
        yield from _edged(*sides)
        one, other = _strings(before.text), _strings(after.text)
        for place in one.keys() & other.keys():
            yield from _edged(one[place][-size:], other[place][:size])


def _joined(parts: Sequence[str]) -> tuple[str, list[int]]:
    """The parts as one text, and where each ends in it."""
    return "".join(parts), list(accumulate(map(len, parts)))


def _halved(text: str, whole: str, ends: Sequence[int]) -> Iterator[int]:
    """The seams around which a call may be written: one of its halves is whole, wherever the seam is."""
    half, reach = len(text) // 2, len(text) + _ADDED
    halves = [part in whole for part in (text[:half], text[half:])]
    for seam, end in enumerate(ends) if any(halves) else ():
        before, after = whole[max(end - reach, 0) : end], whole[end : end + reach]
        if (halves[0] and text[:half] in before) or (halves[1] and text[half:] in after):
            first = bisect_left(range(1, len(text) + 1), True, key=lambda size: text[:size] not in before)
            last = bisect_left(range(1, len(text) + 1), True, key=lambda size: text[-size:] not in after)
            if first + last >= len(text) - min(_LOST, len(text) // 4):
                yield seam


def _taken(texts: Iterator[str], size: int) -> list[str]:
    """The first of the texts, until they have this many characters."""
    found: list[str] = []
    while size > 0 and (text := next(texts, None)) is not None:
        found.append(text)
        size -= len(text)
    return found


def _edged(before: str, after: str) -> Iterator[str]:
    """Two texts as one, also without some of the lines at the seam."""
    ends, begins = before.rstrip("\n").split("\n"), after.split("\n")
    befores = [before, *("\n".join(ends[:-count]) for count in range(1, min(_LINES + 1, len(ends))))]
    afters = [after, *("\n".join(begins[count:]) for count in range(1, min(_LINES + 1, len(begins))))]
    for one in befores:
        for other in afters:
            yield from _both(one, other)


def _both(before: str, after: str) -> Iterator[str]:
    yield before + after
    yield f"{before}\n{after}"


def _strings(text: str) -> Mapping[tuple[str, ...], str]:
    """The strings of a JSON object by their keys; those of a list are one text."""
    if not text.lstrip().startswith(("{", "[")):
        return {}
    try:
        left: list[tuple[tuple[str, ...], Any]] = [((), json.loads(text))]
    except (ValueError, RecursionError):
        return {}
    found: dict[tuple[str, ...], list[str]] = {}
    while left:
        match left.pop():
            case place, str() as value:
                found.setdefault(place, []).append(value)
            case place, dict() as values:
                left += [((*place, key), value) for key, value in values.items()]
            case place, list() as values:
                left += [(place, value) for value in reversed(values)]
    return {place: "\n".join(values) for place, values in found.items()}
