"""The plain next opener after a call and white space: a call of its kind, the next section, or its section's end.

The declaration says which of these there may be, and the reader is asked once what each opens: a decision that it
makes without more text is valid for any further text. Everything else is left to `between`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.formats.between import after_call
from agentkit.formats.edges import opener
from agentkit.formats.format import NameTag, Shape, Tag, edge
from agentkit.formats.openers import Opener
from agentkit.formats.prosereader import ProseReader
from agentkit.formats.quoting import Quoting
from agentkit.formats.reader import Reader
from agentkit.formats.sequence import Calls

Following = tuple[re.Pattern[str], list[list[Opener]]]
"""White space and the texts that may follow, as one group each; and the openers at each of these."""


def next_at_once(calls: Calls) -> list[Opener] | None:
    """Return the openers after the last call, as `between.after_call` finds them; None if that must find them.

    It must after a call whose opening is common in prose.
    """
    r, last = calls.r, calls.last
    if last is None or last.weak or r.at >= len(r.buf) or calls.fence_end or calls.prose.quoting.quoted:
        return None
    key = (id(last), id(calls.section), id(calls.last_section), calls.prose.quoting.off)
    if (known := calls.openers.following.get(key)) is None:  # it keeps the objects with these identities
        known = calls.openers.following[key] = (_following(calls, last.shape), last, calls.section, calls.last_section)
    pattern, opened = known[0]
    if (found := pattern.match(r.buf, r.at)) is None:
        return None
    r.at, calls.before = found.end(1), found[1]
    entries: list[Opener] = opened[(found.lastindex or 2) - 2]
    return entries


def _following(calls: Calls, shape: Shape) -> Following:
    """Return the texts that may follow the last call, and the openers of each, where these are certain."""
    texts = {text: entries for text in _texts(shape) if (entries := _openers_at(calls, text))}
    either = "|".join(f"({re.escape(text)})" for text in texts) or "(?!)"
    return re.compile(rf"(\s{{0,512}}+)(?:{either})"), [*texts.values()]  # less white space than the reader waits for


def _texts(shape: Shape) -> Iterator[str]:
    """Yield the beginnings of the texts that may follow a call of this shape."""
    section = shape.section
    if section is not None:
        yield edge(section.close).strip()
    for part in (section.open if section is not None else "", shape.call[0]):
        match part:
            case Tag():
                yield edge(part)
            case NameTag(name):
                yield f"<{name} "
            case str(text) if text.strip():
                yield opener(text).strip()


def _openers_at(calls: Calls, text: str) -> list[Opener]:
    """Return the openers that the reader finds at this text after the last call; none if it would wait or emit."""
    r = Reader(calls.r.limits, calls.r.repairs)
    probe = Calls(r, calls.openers, ProseReader(r, calls.openers, Quoting(off=calls.prose.quoting.off), None))
    probe.last, probe.section, probe.last_section = calls.last, calls.section, calls.last_section
    r.buf = f"\n{text}"
    try:
        next(after_call(probe))
    except StopIteration as found:
        return found.value or [] if (r.at, r.out, probe.before) == (1, [], "\n") else []
    return []
