"""What plainly follows a call: after white space, the next call of its kind, the next section, or its section's end.

Which of these there may be is known from the declaration, and what each opens is asked once, of the reader itself: what
it decides when no more of the text has arrived, it decides whatever comes then. Everything else is left to `between`.
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
"""White space and, as one group each, what may follow; and what each of these opens."""


def next_at_once(calls: Calls) -> list[Opener] | None:
    """What opens after the last call, as `between.after_call` finds it; None if that is to find it.

    It is after what is common in prose.
    """
    r, last = calls.r, calls.last
    if last is None or last.weak or r.at >= len(r.buf) or calls.fenced or calls.prose.quoting.quoted:
        return None
    key = (id(last), id(calls.section), id(calls.reopen), calls.prose.quoting.off)
    if (known := calls.openers.following.get(key)) is None:  # it keeps what has these identities
        known = calls.openers.following[key] = (_following(calls, last.shape), last, calls.section, calls.reopen)
    pattern, opened = known[0]
    if (found := pattern.match(r.buf, r.at)) is None:
        return None
    r.at, calls.before = found.end(1), found[1]
    entries: list[Opener] = opened[(found.lastindex or 2) - 2]
    return entries


def _following(calls: Calls, shape: Shape) -> Following:
    """What may follow the last call, if it is certain what it opens."""
    texts = {text: entries for text in _texts(shape) if (entries := _opened(calls, text))}
    either = "|".join(f"({re.escape(text)})" for text in texts) or "(?!)"
    return re.compile(rf"(\s{{0,512}}+)(?:{either})"), [*texts.values()]  # less white space than is held back


def _texts(shape: Shape) -> Iterator[str]:
    """How what may follow a call of this shape begins."""
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


def _opened(calls: Calls, text: str) -> list[Opener]:
    """What the reader takes to open with this text after the last call; nothing if it would wait, or say something."""
    r = Reader(calls.r.limits, calls.r.repairs)
    probe = Calls(r, calls.openers, ProseReader(r, calls.openers, Quoting(off=calls.prose.quoting.off), None))
    probe.last, probe.section, probe.reopen = calls.last, calls.section, calls.reopen
    r.buf = f"\n{text}"
    try:
        next(after_call(probe))
    except StopIteration as found:
        return found.value or [] if (r.at, r.out, probe.before) == (1, [], "\n") else []
    return []
