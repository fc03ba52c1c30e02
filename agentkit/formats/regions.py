"""Text with its own end: thinking, a visible answer, an aside, an invented result. Nothing in it is a call.

Knows the reader of prose; reads no call.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import cache
from typing import Final

from agentkit.events import InventedResult, Markup, Text, Thinking
from agentkit.formats.asides import Aside, end_of, mention
from agentkit.formats.atoms import exact
from agentkit.formats.prosereader import ProseReader
from agentkit.formats.reader import Delimiter, Search, Wait, beginnings, may_begin

_NOT_QUOTED: Final = "(?=[^`\"'”»])"


def read_region(prose: ProseReader, kind: type[Text] | type[Thinking], close: str) -> Wait:
    """Emit thinking, or an answer, up to its closing literal or the text's end.

    Nested thinking must close once per opening; an opening directly before a quotation mark, backtick or » is not
    counted. Source: inspect_ai#4385.
    """
    r, depth = prose.r, 0
    edge, stop = _region_ends(close.rstrip())  # white space after it would be markup or text, depending on the chunks
    prose.continuation = lambda reader: read_region(reader, kind, close)
    while True:
        found = stop(r.buf, r.at)
        r.emit(kind, found.start() if found else len(r.buf))
        if found is None and r.ended:
            return
        if found is None:
            r.set_fast_path(stop, kind)
            yield
        elif at := (yield from r.sees(edge)):
            depth += (at["opens"] is not None) - (at["closes"] is not None)
            r.emit(kind if depth >= 0 else Markup, at.end())
            if depth < 0:
                prose.continuation = None
                return
        else:
            prose.note_cut()
            r.emit(kind, r.at + 1)


def read_opened_thinking(prose: ProseReader, close: str) -> Wait:
    """Read thinking that the prompt has opened, even if the model opens it once more at the start."""
    again = _reopening(close)
    if found := (yield from prose.r.sees(Delimiter(rf"\s{{0,64}}{exact(again)}", rf"\s{{0,64}}{beginnings(again)}"))):
        prose.r.emit(Thinking, found.end())
    yield from read_region(prose, Thinking, close)


def _reopening(close: str) -> str:
    """Return the opening tag for a closing tag; empty for any other text."""
    return f"<{close.strip()[2:]}" if close.startswith("</") else ""


@cache
def _region_ends(close: str) -> tuple[Delimiter, Search]:
    """Return the delimiter of a region's end and its opening tag, and a search for places where one may begin."""
    ends, opens = f"(?P<closes>{exact(close)})", _reopening(close)
    if not opens:
        return Delimiter(f"(?P<opens>(?!))|{ends}", beginnings(close)), re.compile(may_begin(close)).search
    whole, part = (
        rf"(?P<opens>{exact(opens)}{_NOT_QUOTED})|{ends}",
        rf"{exact(opens)}|{beginnings(opens)}|{beginnings(close)}",
    )
    return Delimiter(whole, part), re.compile(rf"<(?=/|{opens[1]}|\Z)").search


def read_aside(prose: ProseReader, opened: Aside | None) -> Generator[None, None, bool]:
    """Read an aside, with its edges, as visible text. An invented result ends the reply."""
    found = yield from prose.r.sees(prose.openers.asides.opens)
    if opened is None or found is None:
        return False
    margin = prose.quoting.margin
    if opened.paragraph:
        prose.emit_text(found.end())
        yield from _read_code_aside(prose, opened, margin)
        return True
    quoted = prose.quoting.start.lstrip().startswith(">")
    if quoted or (margin is not None and (yield from prose.r.sees(mention(found[0])))):
        prose.emit_text(found.end())
        yield from _read_aside_rest(prose, *end_of(opened.closes, margin, prose.openers.asides.opens))
    else:
        yield from _read_invented(prose, len(found[0]))
    return True


def _read_invented(prose: ProseReader, mark: int = 0) -> Wait:
    """Read an invented result, or another role's turn, and all text after it, as no part of the reply.

    Its mark, which is `mark` characters long, is only markup if nothing follows: some models end their turns so.
    """
    r = prose.r
    prose.continuation = _read_invented
    while not r.buf[r.at + mark :].strip() and not r.ended:
        yield
    text = r.buf[r.at + mark :].strip()
    while True:
        r.emit(InventedResult if text else Markup, len(r.buf))
        if r.ended:
            return
        yield


def _read_code_aside(prose: ProseReader, aside: Aside, margin: int | None) -> Wait:
    """Read an aside that shows code, from after its opening to its end or the text's."""
    prose.continuation = lambda reader: _read_code_aside(reader, aside, margin)
    prose.note_cut()
    yield from _read_aside_rest(prose, *end_of(aside.closes, margin))


def _read_aside_rest(prose: ProseReader, end: Delimiter, stop: Search) -> Wait:
    r = prose.r
    prose.continuation = lambda reader: _read_aside_rest(reader, end, stop)
    while True:
        found = stop(r.buf, r.at)
        prose.emit_text(found.start() if found else len(r.buf))
        if found is None and r.ended:
            return
        if found is None:
            if prose.other is None:  # it follows all text
                r.set_fast_path(stop, Text)
            yield
        elif closed := (yield from r.sees(end)):
            prose.continuation = None
            size = len(closed[0])
            opens = yield from prose.entries()
            if not any(entry.kind in ("call", "section") for entry in opens):  # its end may begin a call
                prose.emit_text(r.at + size)
            return
        else:
            prose.note_cut()
            prose.emit_text(r.at + 1)
