"""Reports what opens and cannot be read as a call, if the text plainly writes one; otherwise it is text.

Knows the calls before, and skips the damage up to the next one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, Literal

from agentkit.errors import ErrorCode
from agentkit.events import Markup
from agentkit.formats.call import CallReader
from agentkit.formats.damage.around import around_call
from agentkit.formats.damage.balance import edges_of
from agentkit.formats.damage.behind_lists import MAY_GO_ON, next_behind
from agentkit.formats.damage.listed import REACH, Listed, Next, later, only_punctuation
from agentkit.formats.damage.unread import Named, Unread
from agentkit.formats.damage.worn_tokens import end_of, token_of
from agentkit.formats.edges import edge_of, fenced
from agentkit.formats.format import Braced, CountedName, Envelope, Name, PythonCall, Shape, Tag
from agentkit.formats.openers import Opener
from agentkit.formats.reader import Damage, Decline, Delimiter, Search, Wait, beginnings, pattern
from agentkit.formats.sequence import Calls

_FEW: Final = 64  # characters of what may be a list of calls that are searched again with each new one
_NO_CALL: Final = "expected one of the calls, or their end"


@cache
def _spaced(text: str) -> Delimiter:
    """A literal after white space."""
    return Delimiter(rf"\s{{0,64}}{pattern(text)}", rf"\s{{0,64}}{beginnings(text)}")


def answer(calls: Calls, entries: Sequence[Opener]) -> Generator[None, None, bool]:
    """Report what opens here and is not a readable call; False if it is text."""
    if (yield from _over_damage(calls, entries)) or (yield from _in_section(calls, entries)):
        return True
    if (yield from _unread(calls, entries)) or (yield from _in_section(calls, entries, nameless=True)):
        return True
    if (yield from _around(calls, entries)):
        return True
    return (yield from _in_fence(calls, entries)) or (yield from _unread_object(calls, entries))


def _over_damage(calls: Calls, entries: Sequence[Opener]) -> Generator[None, None, bool]:
    """Report what is in a section and is not a call, if the section writes a call after it.

    False, with nothing consumed, if it does not: then this is text.
    """
    opened = calls.section
    for entry in entries if opened is None else (opened,):
        listed = calls.openers.meant(entry).listed if opened is not None or entry.kind == "section" else None
        if listed is not None and (yield from _over(calls, entry, listed, opened=opened is not None)):
            return True
    return False


def _over(calls: Calls, entry: Opener, listed: Listed, *, opened: bool) -> Generator[None, None, bool]:
    """The same in one section, which is open if `opened`; otherwise it may open here."""
    r = calls.r
    skip, formed = 0, False
    if not opened:
        assert entry.shape.section is not None
        if calls.prose.quoting.quoted:
            return False
        formed = (yield from r.sees(calls.openers.meant(entry).formed)) is not None
        if listed.told and not formed:
            return False
        if (found := (yield from r.sees(edge_of(entry.shape.section.open)))) is None:
            return False
        skip = found.end() - r.at
    if not r.may_rewind(r.offset):
        return False
    coming = yield from _coming(calls, listed, skip, opened=opened)
    r.rewound += coming.end
    if formed and coming.kind == "call" and (yield from calls.read(calls.openers.meant(entry).strong)):
        calls.section = calls.last = entry  # a list of calls whose first one has an unknown name
        return True
    if not opened and listed.told:
        return False
    text = r.buf[r.at + skip : r.at + skip + coming.end]
    if coming.kind == "none" and opened and coming.told and text:  # only the end of the calls follows
        yield from _over_rest(calls, entry, listed, coming, text)
        return True
    if coming.kind == "none" or not (opened or _opens(calls, entry, skip)):
        return False
    yield from _answer_for(calls, entry, coming, text, skip, opened=opened)
    return True


def _coming(calls: Calls, listed: Listed, skip: int, *, opened: bool) -> Generator[None, None, Next]:
    """What comes next in a section, `skip` characters ahead."""
    r = calls.r
    enough = 0
    while True:
        start = r.at + skip
        reach = listed.reach(r.buf, start, opened=opened)
        text, whole = r.buf[start : start + reach], r.ended or len(r.buf) - start >= reach
        if whole or len(text) >= enough:
            if (coming := listed.next(text, whole=whole, opened=opened)) is not None:
                return coming
            enough = later(len(text)) if len(text) > _FEW else 0
        yield


def _answer_for(calls: Calls, entry: Opener, coming: Next, text: str, skip: int, *, opened: bool) -> Wait:
    """What is in a section up to the next call is markup if it is only punctuation, otherwise an error."""
    r = calls.r
    r.open()
    call = calls.fresh(entry)
    if not opened:
        yield from calls.section_start(entry, call)
        text = text.lstrip().removeprefix(">")
    position, r.at = r.offset, r.mark - r.base + skip + coming.end
    calls.section = calls.last = entry
    if coming.kind == "call" and only_punctuation(text):
        calls.say_before()
        r.out.append(Markup(r.raw()))
        r.shut()
        return
    if r.ended and not coming.told and r.at >= len(r.buf):
        damage = Damage("truncated_call", f"the text ended: {_NO_CALL}", position, ended=True, got=True)
    else:
        damage = Damage("invalid_json", _NO_CALL, position, got=True)
    calls.refuse(call, damage, r.raw())
    calls.over()


def _over_rest(calls: Calls, entry: Opener, listed: Listed, coming: Next, text: str) -> Wait:
    """Consume what is in an open list before its end: an object is one of its calls, as nothing else belongs there."""
    if not listed.python and _AN_OBJECT(text) is not None:
        yield from _answer_for(calls, entry, replace(coming, kind="lost"), text, 0, opened=True)
    else:
        _over_junk(calls, text)


def _over_junk(calls: Calls, junk: str) -> None:
    """Emit what is in a section and is not a call."""
    r = calls.r
    if only_punctuation(junk):
        calls.say_before()
        r.say(Markup, r.at + len(junk))
    else:
        calls.prose.show(calls.before)
        calls.before = ""
        calls.prose.plain(r.at + len(junk))


def _unread(calls: Calls, entries: Sequence[Opener]) -> Generator[None, None, bool]:
    """Report a call that cannot be read from its beginning, if what is here plainly writes one.

    False, with nothing consumed, if it does not: then this is text.
    """
    lookers = [(entry, calls.openers.meant(entry).unread) for entry in entries]
    inside = calls.section is not None and not lookers and not calls.prose.refused
    if inside and calls.section is not None:
        meant = calls.openers.meant(calls.section)
        lookers = [(meant.inside, meant.unread_inside)]
    for entry, looker in lookers:
        if looker is None or calls.prose.quoting.quoted:
            continue
        if named := (yield from _names_a_tool(calls, looker)):
            # without an opening, the first character of what is refused is what opens it
            yield from _refuse(calls, entry, replace(named, opening=max(named.opening, 1)) if inside else named)
            return True
    return False


def _unread_object(calls: Calls, entries: Sequence[Opener]) -> Generator[None, None, bool]:
    """The same for an object that no token marks as a call, and that has the name of a tool and the keys of a call."""
    for entry in entries if not calls.prose.quoting.quoted else ():
        looker = calls.openers.meant(entry).unread_object
        if looker is not None and (named := (yield from _names_a_tool(calls, looker))):
            yield from _refuse(calls, entry, named)
            return True
    return False


def _around(calls: Calls, entries: Sequence[Opener]) -> Generator[None, None, bool]:
    """Report what opens like a tool's element and cannot be read, if a call is between that and its own end."""
    for entry in entries if not calls.prose.quoting.quoted else ():
        if entry.kind != "call" or entry.tool is None or entry.tool.element is None:
            continue
        call = calls.fresh(entry)
        call.arguments.tool = entry.tool
        if size := (yield from around_call(calls.r, entry.tool.element.tag, edges_of(call))):
            yield from _refuse(calls, entry, Named(size, entry.tool.name))
            return True
    return False


def _names_a_tool(calls: Calls, looker: Unread) -> Generator[None, None, Named | Literal[False]]:
    """Whether a tool is named after the opening here."""
    r = calls.r
    alone = calls.alone
    enough = 0
    while True:
        size = len(r.buf) - r.at
        if r.ended or size >= enough:
            if (named := looker.named(r.buf, r.at, ended=r.ended, alone=alone)) is not None:
                return named
            enough = later(size) if size > _FEW else 0
        yield


def _in_section(calls: Calls, entries: Sequence[Opener], *, nameless: bool = False) -> Generator[None, None, bool]:
    """Report a call in a section whose opening is worn, or a `nameless` one.

    False, with nothing consumed, if there is none: then this is text.
    """
    r, opened = calls.r, calls.section
    for entry in entries if opened is None else (calls.openers.meant(opened).inside,):
        section, looker = entry.shape.section, calls.openers.meant(entry).worn
        if (
            section is None
            or looker is None
            or calls.prose.quoting.quoted
            or (opened is None and entry.kind != "section")
        ):
            continue
        skip = 0
        if opened is None:
            if (found := (yield from r.sees(edge_of(section.open)))) is None:
                continue
            skip = found.end() - r.at
        if named := (yield from _named_ahead(calls, looker.nameless if nameless else looker.named, skip)):
            yield from _refuse(calls, entry, replace(named, opening=skip + named.opening))
            return True
    return False


def _named_ahead(
    calls: Calls, look: Callable[..., Named | Literal[False] | None], skip: int
) -> Generator[None, None, Named | Literal[False]]:
    """The tool that is named this many characters ahead."""
    r = calls.r
    enough = 0
    while True:
        text = r.buf[r.at + skip : r.at + skip + REACH]
        if r.ended or len(text) >= enough:
            if (named := look(text, whole=r.ended)) is not None:
                return named
            enough = later(len(text)) if len(text) > _FEW else 0
        yield


def _refuse(calls: Calls, entry: Opener, named: Named) -> Wait:
    """The error for a call that names this tool; no more of it can be read."""
    r = calls.r
    cut = r.ended and (named.ended or r.cut >= r.offset)
    r.open()
    call = calls.fresh(entry)
    call.arguments.tool = entry.tool
    begins = r.offset
    section = entry.kind == "section"
    if section:
        try:
            yield from calls.section_start(entry, call)
        except Decline:  # it is too malformed to be one
            section = False
            r.back_to(begins)
    r.at += max(begins + named.opening - r.offset, 0)  # the call's own opening is part of what is refused
    message = f"a call {f'of {named.name!r} ' if named.name else ''}starts here and cannot be read"
    if cut:
        message = f"the text ended in a call of {named.name!r}"
    position = r.offset
    end = (yield from _over_object(calls, entry)) if entry.weak else -1
    code: ErrorCode = "truncated_call" if cut else "invalid_json"
    yield from calls.damaged(call, Damage(code, message, position, ended=cut, end=end))
    calls.over()
    calls.last, calls.reopen = entry, None
    if section:
        calls.section = entry


@cache
def _next_object(key: str) -> Search:
    """What begins an object of which this key has a name; what is between two objects precedes it."""
    return re.compile(rf'[\s,;]{{0,64}}\{{\s{{0,64}}"{re.escape(key)}"\s{{0,64}}:\s{{0,64}}"[\w.-]{{1,256}}"').search


def _over_object(calls: Calls, entry: Opener) -> Generator[None, None, int]:
    """Consume the rest of an object, up to its end, a blank line or the next call; in a fence, up to the fence's end.

    Returns the offset after it.
    """
    r, enough, end = calls.r, 0, -1
    if not r.may_rewind(r.offset):
        return r.offset
    r.at -= 1  # the bracket, which has been read: it may be all that is left in the buffer
    in_fence = any(map(fenced, (entry.shape.call[0], entry.shape.section.open if entry.shape.section else "")))
    stops = _FENCE_END if in_fence else _BLANK_LINE
    while True:
        text = r.buf[r.at : r.at + REACH]
        stop = stops(text)
        whole = r.ended or stop is not None or len(text) == REACH
        if whole or (len(text) >= enough and not in_fence):
            text = text[: stop.start()] if stop is not None else text
            end = end_of(text, 0, python=_IN_QUOTES(text) is not None) if not in_fence else -1
            if end >= 0 or whole:
                break
            enough = later(len(text)) if len(text) > _FEW else 0
        yield
    r.rewound += end if end >= 0 else len(text)  # what is searched is read again
    if end < 0:
        again = _next_object(next(p.name for p in entry.shape.call if isinstance(p, Envelope)))(text, 1)
        end = again.start() if again is not None else len(text)
    r.at += end
    yield from _over_end(calls, entry.shape)
    return r.offset


_FENCE_END: Final = re.compile(r"\n[ \t]*```").search
_AN_OBJECT: Final = re.compile(r"[\s,;]*\{\s*[\"'\u201c\u2018\w]").match
_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*(?:\n|```)").search
_IN_QUOTES: Final = re.compile(r"\{\s*'").match


def _opens(calls: Calls, entry: Opener, skip: int) -> bool:
    """Whether a section's opening is whole after this number of characters, or at the end of its tag."""
    tag = isinstance(entry.shape.section and entry.shape.section.open, Tag)
    return not tag or calls.r.buf[calls.r.at + skip :].lstrip().startswith(">")


def _in_fence(calls: Calls, entries: Sequence[Opener]) -> Generator[None, None, bool]:
    """Report a fence of calls whose first one cannot be read, if a later one in it can; False if it is text."""
    r = calls.r
    entry = next((e for e in entries if e.kind == "call" and fenced(e.shape.call[0])), None)
    if entry is None or calls.prose.quoting.quoted or not r.may_rewind(r.offset):
        return False
    calls_in = calls.openers.meant(entry).fenced
    end: int | None = None
    enough = 0
    while end is None:
        size = len(r.buf) - r.at
        whole = r.ended or size >= REACH
        if whole or size >= enough:
            end, enough = calls_in.end(r.buf[r.at : r.at + REACH], whole=whole), later(size) if size > _FEW else 0
        if end is None:
            yield
    r.rewound += end or 1024  # an amount that does not depend on how the text is cut
    if not end:
        return False
    r.open()
    call = calls.fresh(entry)
    position = r.offset + calls_in.opening(r.buf, r.at)
    r.at += end
    calls.refuse(call, Damage("invalid_json", _NO_CALL, position, got=True), r.raw())
    calls.over(entry)
    return True


def goes_on_behind(calls: Calls, closed: Opener, held: str) -> Generator[None, None, bool]:
    """Report what is written after the end of a list before its next call; the list then continues.

    False, with nothing consumed, if no call follows; `held` is the white space before.
    """
    r = calls.r
    listed = calls.openers.meant(closed).listed
    if listed is None or not listed.strong or not MAY_GO_ON(r.buf, r.at):
        return False
    if calls.prose.quoting.quoted or not r.may_rewind(r.offset):
        return False
    enough, end = 0, None
    while end is None:
        text = r.buf[r.at : r.at + REACH]
        whole = r.ended or len(text) == REACH
        if whole or len(text) >= enough:
            end, enough = next_behind(listed, text, whole=whole), later(len(text)) if len(text) > _FEW else 0
        if end is None:
            yield
    begun = MAY_GO_ON(r.buf, r.at)
    r.rewound += end or (1024 if begun is not None and begun[0].endswith(",") else 0)  # in any cutting the same
    if not end:
        return False
    calls.before = held
    calls.say_before()
    r.open()
    call = calls.fresh(closed)
    position = r.offset
    r.at += end
    calls.refuse(call, Damage("invalid_json", _NO_CALL, position, got=True), r.raw())
    calls.over()
    calls.section = calls.last = closed
    return True


def worn(calls: Calls, entry: Opener) -> Generator[None, None, bool]:
    """Report a call after a token that is not its opening, with all that is in its brackets."""
    r = calls.r
    found = yield from r.sees(calls.openers.worn()[0].opens)
    if found is None:
        return False
    r.open()
    call = calls.fresh(calls.openers.meant(entry).inside)
    position, token = r.offset, token_of(found)
    named = any(isinstance(part, Name | CountedName) for part in entry.shape.call)
    r.at += len(found[0]) - found[0].endswith("{") if named else len(token)
    try:
        damage = yield from _behind_worn(calls, call, position, token)
    except Damage as e:
        damage = e
    yield from calls.damaged(call, damage)
    calls.over()
    calls.last, calls.reopen = call.opener, None
    return True


def _over_end(calls: Calls, shape: Shape) -> Wait:
    """Consume what closes a call of this shape, if that is here: it may be a code fence."""
    last = shape.call[-1]
    if isinstance(last, str) and last.strip() and (found := (yield from calls.r.sees(_spaced(last.strip())))):
        calls.r.at = found.end()


def _behind_worn(calls: Calls, call: CallReader, position: int, token: str) -> Generator[None, None, Damage]:
    """The error for a call after another token than its own; the call ends with its brackets."""
    r, shape = calls.r, call.shape
    message = f"a call begins here after {token!r}, which opens none"
    if any(isinstance(part, Braced) for part in shape.call):
        return Damage("invalid_json", message, r.offset)
    python = any(isinstance(part, PythonCall) for part in shape.call)
    enough = 0
    while True:
        size = len(r.buf) - r.at
        if r.all_here or size >= enough:
            if (end := end_of(r.buf, r.at, python=python)) >= 0:
                r.at = end
                yield from _over_end(calls, shape)
                return Damage("invalid_json", message, position, end=r.offset)
            enough = later(size) if size > _FEW else 0
        if r.ended:
            r.at = len(r.buf)
            return Damage("truncated_call", f"the text ended: {message}", position, ended=True)
        yield
