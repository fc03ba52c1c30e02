"""The text between calls: separators, repeated ends, the next call of a section, the fence around calls.

Knows the calls before it; text without the form of a call is prose.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from agentkit.events import Markup, Text, Thinking
from agentkit.formats.call import item_of
from agentkit.formats.edges import begins, edge_delimiter, is_list
from agentkit.formats.format import Envelope, KeyEnvelope
from agentkit.formats.openers import Opener
from agentkit.formats.reader import Delimiter, literal
from agentkit.formats.regions import read_region
from agentkit.formats.sequence import Calls

_FENCE: Final = Delimiter(r"`{3,}[\w+-]{0,24}[ \t]{0,8}(?:\r?\n|(?=[\[{<]))", r"`{0,16}[\w+-]{0,24}[ \t]{0,8}\r?")
_SEPARATOR: Final = Delimiter("[,;]", "")
_AGAIN: Final = Delimiter(r"[\])}\s]{0,16}[,;][\[\s]{0,64}(?=[^\[\s])", r"[\])}\s]{0,16}(?:[,;][\[\s]{0,64})?")
"""More items after a list's end."""


def read_fence(calls: Calls) -> Generator[None, None, bool]:
    """Read a code fence around calls as markup if only calls precede it."""
    r = calls.r
    r.begin_call()
    start = r.offset
    if (found := (yield from r.sees(_FENCE))) is not None:
        r.at = found.end()
        ticks = len(found[0]) - len(found[0].lstrip("`"))
        yield from calls.prose.take_space()
        inside = r.offset
        entries = yield from calls.prose.entries()
        if (line := calls.openers.line) is not None and (yield from r.sees(line.opens)):
            entries = [*entries, *line.entries]
        for entry in entries:
            if entry.kind in ("call", "section") and (yield from calls.read(entry, inside)):
                calls.fence_end = "`" * ticks
                return True
    r.back_to(start)
    r.end_call()
    return False


def after_call(calls: Calls) -> Generator[None, None, list[Opener] | None]:
    """Return the openers after a call; None at the text's end.

    Emits as markup: a repeated end, the space and separator before the next call or the section's end, and the fence's
    end.
    """
    r, prose = calls.r, calls.prose
    space = yield from prose.take_space()
    if r.at < len(r.buf) or not r.ended:
        space = yield from _take_closers(calls, space)
    if calls.last_section is not None and calls.section is None and (again := (yield from r.sees(_AGAIN))):
        between = prose.consume(again.end())
        if entries := (yield from _next_in_closed(calls, calls.last_section)):
            return (yield from _after_space(calls, entries, space + between))
        r.unread(between)
    if separated := (yield from r.sees(_SEPARATOR)) is not None:
        space += prose.consume(r.at + 1)
        space += yield from prose.take_space()
    elif calls.fence_end and (end := (yield from r.sees(literal(calls.fence_end)))):
        calls.fence_end, calls.before = "", space
        _markup(calls, end.end())
        return (yield from after_call(calls))
    entries = yield from _next_in_section(calls)
    if separated and calls.section is None:  # so also a call of an unknown tool is one
        entries = [calls.openers.successors(entry).inside if entry is calls.last else entry for entry in entries]
    line = calls.openers.line
    if not entries and separated and line is not None and any(entry is calls.last for entry in line.entries):
        entries = line.entries if (yield from r.sees(line.opens)) else []
    return (yield from _after_space(calls, entries, space))


def _after_space(calls: Calls, entries: list[Opener], space: str) -> Generator[None, None, list[Opener] | None]:
    """Return the openers after a call and white space; outside a section, without any, those after prose."""
    r = calls.r
    if r.at < len(r.buf) and (entries[0].kind == "aside" if entries else calls.section is None):
        r.unread(space)
        return (yield from calls.prose.to_opener())
    calls.before = space
    if entries or r.at < len(r.buf):
        return entries
    calls.end_list(cut=space.strip() != "")  # a separator promises one more call
    calls.emit_before()
    return None


def _next_in_closed(calls: Calls, closed: Opener) -> Generator[None, None, list[Opener]]:
    """Return the next call of the section that was just closed, if one is here: then the section continues."""
    r = calls.r
    if not is_list(closed.shape) or not (yield from r.sees(calls.openers.derive(item_of, closed.shape))):
        return []
    calls.section = closed
    return [calls.openers.successors(closed).inside]


def _take_closers(calls: Calls, space: str) -> Generator[None, None, str]:
    """Consume repeated ends of the last call after white space; returns the white space after them."""
    r, last = calls.r, calls.last
    section = calls.section.shape.section if calls.section is not None else None
    own = section.close if section is not None else ""
    if last is None or calls.prose.quoting.quoted:
        return space
    if r.at < len(r.buf) and not calls.openers.closes_again(last.format, own)(r.buf, r.at):
        return space
    for edge in calls.openers.table.closers[last.format.name]:
        while not begins(own, edge) and (found := (yield from r.sees(edge_delimiter(edge)))):
            r.out.append(Markup(space + calls.prose.consume(found.end())))
            space = yield from calls.prose.take_space()
    return space


def _next_in_section(calls: Calls) -> Generator[None, None, list[Opener]]:
    """Return the openers here: in a section whose calls are not recognizable alone, a call or the section's end."""
    r = calls.r
    yield from r.more()
    if r.at >= len(r.buf):
        return []
    if (entry := calls.section) is None or entry.shape.section is None:
        return [*(yield from calls.prose.entries()), *_without_opening(calls)]
    if (yield from r.sees(edge_delimiter(entry.shape.section.close))):
        return [calls.openers.successors(entry).end]
    begins_call = (
        r.buf[r.at] == "{" if isinstance(entry.shape.call[0], Envelope | KeyEnvelope) else r.buf[r.at].isidentifier()
    )
    if is_list(entry.shape) and begins_call:
        return [calls.openers.successors(entry).inside]
    return (yield from calls.prose.entries())


def _without_opening(calls: Calls) -> list[Opener]:
    """Return a call like the last one, without its opening literal, if one may be here."""
    if calls.last is None or calls.prose.quoting.quoted:
        return []
    unopened = calls.openers.successors(calls.last).unopened
    return [unopened] if unopened is not None and calls.r.buf.startswith("{", calls.r.at) else []


def _markup(calls: Calls, end: int) -> None:
    """Emit the text up to an index of the buffer as markup, after the text that was skipped before it."""
    calls.emit_before()
    calls.r.emit(Markup, end)


def read_marker(calls: Calls, entry: Opener) -> Generator[None, None, bool]:
    """Read thinking or an answer from its start to its end; or a marker that is only markup."""
    r = calls.r
    found = yield from r.sees(literal(entry.word) if entry.word else calls.openers.literal)
    if found is None and entry.word:
        return False
    _markup(calls, found.end() if found else r.at)
    if entry.close:
        yield from read_region(calls.prose, Thinking if entry.kind == "thinking" else Text, entry.close)
    return True


def read_section_end(calls: Calls, entry: Opener) -> Generator[None, None, bool]:
    """Read the end of a section; False if none of this format is open."""
    if calls.section is None or calls.section.format is not entry.format or entry.shape.section is None:
        return False
    found = yield from calls.r.sees(edge_delimiter(entry.shape.section.close))
    if found is None:
        return False
    calls.section, calls.last_section = None, calls.section
    calls.end_list()
    _markup(calls, found.end())
    return True
