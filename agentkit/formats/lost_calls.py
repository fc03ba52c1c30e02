"""Lost calls: an opening that only calls have, or a known tool's own tag, which cannot be read as a call.

It is markup if the same opening follows, or nothing does; an error if an offered tool's name follows in the paragraph,
or the text ends inside it; and else text, as prose may mention one. The 256 characters after it decide, up to the next
opening or the section's end. A parameter of an offered tool that opens outside of any call is also an error: the call's
opening is missing, or comes after it. Knows the calls before, the openers and the reader.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Final

from agentkit.events import Markup
from agentkit.formats.format import Envelope, NestedTags, Pairs, PythonCall, Shape, TagParameters, ToolElement, edge
from agentkit.formats.openers import Opener, Openers, opening_of
from agentkit.formats.other_json import BARE_LIST
from agentkit.formats.otherkeys import OTHER_ARGUMENTS
from agentkit.formats.reader import Damage, Delimiter, Reader, Search, Wait, any_beginning, beginnings, pattern
from agentkit.formats.sequence import Calls
from agentkit.formats.tags import opening_tag, tag, tag_of

_REACH: Final = 256  # characters after an opening in which a tool's name shows that a call is lost
_CUT: Final = re.compile(r"(?:\r?\n)?[\w{\[<|\"'](?:(?!</)\S){0,254}(?<![.!?)\]>}])\Z").match
_OBJECT: Final = Delimiter(
    r"(?:`{3,8}\w{0,16}\s{0,8})?[\[\s]{0,64}\{[\s{]{0,64}[\"'\u201c\u2018`n]",
    r"`{0,8}\w{0,16}\s{0,8}[\[\s]{0,64}(?:\{[\s{]{0,64})?",
)
"""The start of an object that may be a lost call without a token."""
_VALUE: Final = r"(?:(?!(?P=quote))[\s\S]){0,1024}?"
"""A part of an attribute's value, which quotes a call if one opens in it: its tag cannot be read."""
_LOST: Final = "a call starts here and cannot be read"
_OUTSIDE: Final = "a parameter is outside of any call: write what opens the call before it"


def answer_lost_call(calls: Calls, entries: Sequence[Opener]) -> Generator[None, None, bool]:
    """Answer an opening here that is not a readable call; False, with nothing consumed, if it is text."""
    r = calls.r
    if calls.prose.quoting.quoted:
        return False
    if (yield from _answer_parameter(calls, entries)):
        return True
    found: list[tuple[bool, int, Opener]] = []
    for entry in (entry for entry in entries if entry.kind in ("call", "section")):
        if (yield from calls.is_mention(entry)):
            return False
        match = (yield from r.sees(opening_of(entry))) or (yield from r.sees(_opening_with_attributes(entry)))
        found += [(not entry.weak, match.end() - r.at, entry)] if match else []
    if not found:
        return False
    strong, size, entry = max(found, key=lambda one: one[:2])
    python = isinstance(entry.shape.call[0], PythonCall)
    if not strong and (yield from r.sees(BARE_LIST if python else _OBJECT)) is None:
        return False
    while not r.ended and len(r.buf) - r.at - size < _REACH:
        yield
    rest = _rest(calls.openers, entry, r.buf[r.at + size : r.at + size + _REACH])
    again = (length for sure, length, opener in found if sure and _is_markup(r, opener, length))
    if markup := max(again, default=0):
        calls.emit_before()
        r.emit(Markup, r.at + markup + r.buf.startswith(">", r.at + markup))
        return True
    named = _names_a_tool(calls.openers, entry)(rest)
    cut = r.ended and r.at + size + len(rest) == len(r.buf) and (_is_cut(entry, rest, named) or r.cut > r.offset + size)
    if not cut and named is None:
        return False
    yield from _refuse(calls, entry, size, cut=cut)
    return True


def _opening_with_attributes(entry: Opener) -> Delimiter:
    """Return the delimiter of an opening that is a plain tag, up to the tag's name, as attributes may follow it."""
    opens = entry.shape.section.open if entry.kind == "section" and entry.shape.section else entry.shape.first
    name = tag_of(opens) if isinstance(opens, str) and opens.strip().endswith(">") else ""
    return tag(name, closing=False) if name else Delimiter("(?!)", "(?!)")


def _rest(openers: Openers, entry: Opener, text: str) -> str:
    """Return the text after an opening, up to the next one or the end of its section."""
    if another := openers.table.own.search(text):
        text = text[: another.start()]
    section = entry.shape.section
    close = edge(section.close).strip() if section is not None else ""
    return text.partition(close)[0] if close else text


def _parameter(openers: Openers, shape: Shape) -> Delimiter:
    """Return the delimiter of the opening of an offered tool's parameter outside of any call."""
    names, space = openers.table.parameters, r"\s{0,64}"
    for part in shape.call:
        match part:
            case TagParameters(name, attribute):
                whole = rf"{opening_tag(name)}{space}{re.escape(attribute)}{space}={space}[\"']?(?:{names})[\"'\s>]"
                return Delimiter(whole, r"<[^<>]{0,512}", re.IGNORECASE)
            case Pairs(key=key, middle=middle, kind=kind):
                ends = "|".join(pattern(text.split()[0]) for text in (middle, *kind[:1]))
                begun = rf"{pattern(key.strip())}\s{{0,64}}+[^<\n]{{0,256}}{any_beginning((middle, *kind[:1]))}"
                begun = rf"{beginnings(key.strip())}|{begun}"
                return Delimiter(rf"{pattern(key.strip())}{space}(?:{names}){space}(?:{ends})", begun)
            case NestedTags(token):
                return Delimiter(
                    rf"{pattern(token)}<(?:{names})>", rf"{beginnings(f'{token}<')}|{pattern(token)}<[^<>\s]{{0,128}}"
                )
            case ToolElement():  # prose also has tags: it is a parameter if another one follows it, or a tool's
                follow = rf"<(?:{names}|{openers.table.tool_tags})[\s/>]"
                element = rf"<(?P<own>{names})>[^<>]{{0,256}}</(?P=own)>"
                begun = r"<[^<>]{0,160}(?:>[^<>]{0,256}(?:</?[^<>]{0,160}(?:>\s{0,64}(?:<[^<>]{0,160})?)?)?)?"
                quotes = rf"=(?P<quote>[\"'])(?={_VALUE}<(?:{openers.table.tool_tags})[\s/>]){_VALUE}(?P=quote)"
                return Delimiter(rf"{element}(?={space}{follow})|{quotes}", rf"{begun}|=(?:(?P<quote>[\"']){_VALUE})?")
    return Delimiter("(?!)", "(?!)")


def _is_markup(r: Reader, entry: Opener, size: int) -> bool:
    """Return True if the same opening follows this one, or nothing does, unless it names a tool: that call is cut."""
    bare = r.buf[r.at + size : r.at + size + _REACH].lstrip(" \t\r\n>")
    return (not bare and r.ended and entry.tool is None) or opening_of(entry).match(bare) is not None


def _answer_parameter(calls: Calls, entries: Sequence[Opener]) -> Generator[None, None, bool]:
    """Answer a parameter of an offered tool that opens here, outside of any call."""
    for entry in entries:
        if entry.kind == "parameter":
            found = yield from calls.r.sees(calls.openers.derive(_parameter, entry.shape))
            if found is not None:
                yield from _refuse(calls, replace(entry, kind="call"), found.end() - calls.r.at, _OUTSIDE)
                return True
    return False


def _is_cut(entry: Opener, rest: str, named: re.Match[str] | None) -> bool:
    """Return True if the text's end cuts off a call after its opening."""
    if entry.weak:
        return named is not None and named.end() == len(rest)
    return (entry.tool is not None and _IN_TAG_CUT(rest) is not None) or _CUT(rest) is not None


def _names_a_tool(openers: Openers, entry: Opener) -> Search:
    """Return a match function for text after an opening that has an offered tool's name where a call has it."""
    if entry.tool is not None:
        return _IN_TAG
    return openers.derive(_unmarked_call if entry.weak else _marked_call, entry.shape)


def _marked_call(openers: Openers, shape: Shape) -> Search:
    """Match an offered tool's name after an opening that only calls have: in its paragraph, without code before."""
    names = openers.table.tool_names
    apart = r"(?:(?!\n\s*\n)[^`]){0,200}?(?<![\w(-])"
    after = r"(?=\s*[\"'({}\[\]<:=|]|[ \t]+\w+=|>(?![ \t]+[\w`])|\n|\Z)"
    quoted = rf"[^`]{{0,200}}?[\"'](?:tool_)?name[\"']\s*:\s*[\"'](?:{names})[\"']"
    return re.compile(rf">?\s*[\"'{{]?(?:{names})(?![ \t]+\w)|{apart}(?:{names}){after}|{quoted}").match


def _unmarked_call(openers: Openers, shape: Shape) -> Search:
    """Match a call that no token marks: an object with a tool's name and arguments, or a list of Python calls."""
    names = openers.table.tool_names
    match next((part for part in shape.call if isinstance(part, Envelope | PythonCall)), None):
        case Envelope(name, arguments):
            keys, left, right = "|".join((*arguments, *OTHER_ARGUMENTS)), "[\"'\u201c\u2018`]?", "[\"'\u201d\u2019`]?"
            named = rf"[\s{{\[]*{left}{name}{right}\s*[:=]\s*{left}(?:{names})(?![\w.]){right}"
            return re.compile(rf"{named}\s*,\s*{left}(?:{keys})\b(?!{_SCHEMA}){right}").match
        case PythonCall():
            return re.compile(rf"\s*[\w.]+\((?=.*?[^\w.](?:{names})\()", re.DOTALL).match
    return _NEVER


_NEVER: Final = re.compile("(?!)").match
_SCHEMA: Final = r"[\"'\u201d\u2019`]?\s*:\s*\{\s*[\"'](?:type|properties|required|\$)"  # which describes the tool
_IN_TAG_CUT: Final = re.compile(r"[\s,;/][^<>`\n]{0,254}\Z").match
_IN_TAG: Final = re.compile(r"[^<>`\n]{0,256}[=\"'>]|[ \t,;]{0,64}\n\s{0,64}<|[\s,;]{0,64}\Z").match


def _refuse(calls: Calls, entry: Opener, size: int, message: str = _LOST, *, cut: bool = False) -> Wait:
    r = calls.r
    r.begin_call()
    call = calls.new_call(entry)
    call.arguments.tool = entry.tool
    r.at += size
    damage = Damage("truncated_call" if cut else "invalid_json", message, r.offset, got=True, ended=cut)
    yield from calls.handle_damage(call, damage)
    calls.close_call(entry)
