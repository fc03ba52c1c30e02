"""Content in which a part of another call is: a tag opens in it and is closed after it, or the other way round.

Knows the reader and the tags of the offered tools, but not how a call is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Generator
from functools import lru_cache
from typing import Final

from agentkit.formats.format import Pairs, TagParameters
from agentkit.formats.rawvalue import Value
from agentkit.formats.reader import Damage, Delimiter, Reader, Wait
from agentkit.formats.tags import PREFIX, folded, spelt
from agentkit.formats.valueends import ValueEnd
from agentkit.formats.worn import is_rest


def refuse_crossing(r: Reader, value: Value, others: tuple[str, ...]) -> Wait:
    """Refuse content in which a call of another tool opens and ends outside of it, or the other way round.

    Half a call in it is content, unless that is closed after it, or content before it was closed. A closing tag that
    nothing there opens is content, unless that tag opens after it, or the content begins within another tag.
    """
    text, first_close = value.text(), value.seen.first_close
    if not value.verbatim and text.endswith("<") and (yield from r.sees(_rest_of_tag(others))):
        message = f"the value of {value.key!r} ends with the beginning of another call's opening tag"
        raise Damage("ambiguous_call", message, r.offset, end=r.offset)
    if (value.verbatim and first_close < 0) or not _any_of(others).search(text):
        return
    tag = ""
    if halves := _halves_in(text, others):
        tag = halves[0] if first_close >= 0 else (yield from _closed_behind(r, halves))
    if tag:
        message = f"<{tag}> opens inside the value of {value.key!r} and is not closed there"
        raise Damage("ambiguous_call", message, first_close if first_close >= 0 else r.offset, end=r.offset)
    if not value.verbatim and (tag := crossing(text, others) or _between(text, others)):
        message = f"a part of {tag!r} is inside the value of {value.key!r}, and another part is not"
        raise Damage("ambiguous_call", message, r.offset, end=r.offset)


def _between(text: str, names: tuple[str, ...]) -> str:
    """The tag that is closed in this text and opens again after it, if a call of one of these names ends there too.

    Not if a call of one opens there that does not end, unless another one ends there that does not open.
    """
    found = Counter((f[1] or "", folded(f[2])) for f in _any_of(names).finditer(text))
    ends = {folded(name) for name in names if found["/", folded(name)]}
    if not ends or (_halves_in(text, names) and not any(found["/", name] > found["", name] for name in ends)):
        return ""
    return crossing(text)


def _closed_behind(r: Reader, names: tuple[str, ...]) -> Generator[None, None, str]:
    """The first of these tags that comes after this place, if it is a closing one; otherwise empty."""
    start, name = r.offset, ""
    search = _any_of(names).search
    while True:
        limit = start + _BEHIND - r.base
        if (found := search(r.buf, r.at, limit)) is not None:
            name, r.at = found[2] if found[1] else "", found.end()
            break
        if r.ended or len(r.buf) >= limit:
            r.at = min(len(r.buf), limit)
            break
        r.at = max(r.at, len(r.buf) - _OVERLAP)
        yield
    r.back_to(start)  # by an amount that does not depend on how the text is cut
    return name


_BEHIND: Final = 8192  # characters searched after content in which a call of another tool opens
_OVERLAP: Final = 512  # more than the beginning of a tag


def _halves_in(text: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of these tags that open in the text more often than they close."""
    found = Counter((f[1] or "", folded(f[2])) for f in _A_TAG.finditer(text))
    return tuple(t for t in names if found["", folded(t)] > found["/", folded(t)])


def crossing(text: str, names: Collection[str] | None = None) -> str:
    """The first of these tags, or of any, of which a part is in this text and another part is outside; empty if none.

    A closing tag that nothing in the text opens is one if the same tag opens after it, or if the text begins with that
    tag or with the end of one. So is the beginning of an opening tag at the text's end.
    """
    if "<" not in text:
        return ""
    wanted = None if names is None else {folded(name) for name in names}
    opened: Counter[str] = Counter()
    closed: dict[str, None] = {}
    for found in _A_TAG.finditer(text):
        name = folded(found[2])
        if wanted is not None and name not in wanted:
            continue
        if not found[1] and name in closed:
            return found[2]
        opened[name] += -1 if found[1] else 1
        if opened[name] < 0:
            closed[name] = None
    if closed and text.startswith((">", "/>")):
        return next(iter(closed))
    first = _A_TAG.match(text, len(text) - len(text.lstrip()))
    if first is not None and folded(first[2]) in closed:
        return first[2]
    begun = _BEGUN_LAST(text, text.rfind("<"))
    return begun[1] if begun is not None and (wanted is None or folded(begun[1]) in wanted) else ""


def opened_after_rest(value: str, edge: ValueEnd) -> str:
    """The first parameter that opens in a value directly after what is left of a closing, and is not closed there.

    Also one that no tool declares, but none of half a quoted call. So is one that is closed there, if the end of a
    call comes after it that nothing there opens.
    """
    opened = [f for f in edge.own.finditer(value) if f["close"] is None] if edge.own is not None else []
    if not opened or edge.half(value):
        return ""
    last = edge.ends_first(value)
    for found in opened if last or edge.opened(value) > 0 else ():
        before = value[max(found.start() - 2 * len(edge.what), 0) : found.start()].rstrip()
        if last or is_rest(before, edge.what):
            return (found.groupdict().get("name") or "").strip()
    return ""


def headless(value: str, edge: ValueEnd, part: Pairs | TagParameters) -> str:
    """What is between a parameter's name and its value, if it is in a value without what opens a parameter.

    Empty if it is not, or if it has no closing tag by which it is told from other text.
    """
    for middle in (part.middle, *part.kind[:1]) if isinstance(part, Pairs) and "</" in part.middle else ():
        words = middle.split()
        if words[0] in value and edge.own is not None:
            count = len(re.findall(r"\s*".join(map(re.escape, words)), value))
            if count > sum(f["close"] is None for f in edge.own.finditer(value)):
                return middle
    return ""


def closed_in_data(value: object, edge: ValueEnd) -> bool:
    """Whether a value is closed, in a string of an object or an array, that nothing in this string opens."""
    if isinstance(value, dict):
        return any(_closed(inner, edge) for item in value.items() for inner in item)
    return isinstance(value, list) and any(_closed(inner, edge) for inner in value)


def _closed(value: object, edge: ValueEnd) -> bool:
    return edge.unopened(value) >= 0 if isinstance(value, str) else closed_in_data(value, edge)


@lru_cache(1024)
def _any_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """Any tag of these names, opening or closing, up to its name's end: groups are the slash and the name."""
    return re.compile(rf"<(/?){PREFIX}({'|'.join(map(spelt, names)) or '(?!)'})(?=[\s/>])", re.IGNORECASE)


@lru_cache(1024)
def _rest_of_tag(names: tuple[str, ...]) -> Delimiter:
    """An opening tag of one of these names without its first character, up to an attribute or its end."""
    return Delimiter(
        rf"(?:{'|'.join(map(spelt, names)) or '(?!)'})\s{{0,64}}(?:/?>|[\w.-]{{1,64}}=)",
        r"[\w.-]{0,128}\s{0,64}(?:/|[\w.-]{1,64})?",
        re.IGNORECASE,
    )


_A_TAG: Final = re.compile(r"<(/?)([^\W\d][\w.-]{0,255}+)(?=[\s/>])(?![^<>]{0,512}/>)")
_BEGUN_LAST: Final = re.compile(r"<([^\W\d][\w.:-]{0,255}+)\s[^<>]*\Z").match
