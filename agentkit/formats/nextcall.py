"""What plainly follows a call: after white space, the next call of its kind, the next section, or its section's end.

Which of these there may be is known from the declaration, and what each opens is asked once, of the reader itself: what
it decides when no more of the text has arrived, it decides whatever comes then. Everything else is left to `between`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentkit.formats.between import after_call
from agentkit.formats.edges import opener
from agentkit.formats.format import NameTag, Tag, edge
from agentkit.formats.openers import Opener
from agentkit.formats.prosereader import ProseReader
from agentkit.formats.quoting import Quoting
from agentkit.formats.reader import Reader
from agentkit.formats.sequence import Calls

_SPACE: Final = r"(\s{0,512}+)"  # less than is held back after a call

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
    if (known := calls.openers.following.get(key)) is None:
        known = calls.openers.following[key] = (_following(calls), last, calls.section, calls.reopen)
    following: Following = known[0]
    if (found := following[0].match(r.buf, r.at)) is None:
        return None
    r.at = found.end(1)
    calls.before = found[1]
    return following[1][(found.lastindex or 2) - 2]


def _following(calls: Calls) -> Following:
    """What may follow the last call, if it is certain what it opens."""
    texts = {text: entries for text in _texts(calls) if (entries := _opened(calls, text))}
    either = "|".join(f"({re.escape(text)})" for text in texts)
    return re.compile(f"{_SPACE}(?:{either or '(?!)'})"), list(texts.values())


def _texts(calls: Calls) -> Iterator[str]:
    """How what may follow begins."""
    shape = calls.last.shape if calls.last is not None else None
    if shape is None:
        return
    edges = (shape.section.close, shape.section.open) if shape.section is not None else ()
    for written in (*edges, shape.call[0]):
        match written:
            case Tag():
                yield edge(written)
            case NameTag(name):
                yield f"<{name} "
            case str(text) if text.strip():
                yield text.strip() if text in edges[:1] else opener(text).strip()


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
