"""Thinking, or a visible answer: text up to its closing token, in which nothing is a call.

Knows the reader of prose and the declared openings of thinking; reads no call.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from agentkit.events import Markup, Text, Thinking
from agentkit.formats.atoms import exact
from agentkit.formats.prosereader import ProseReader
from agentkit.formats.reader import Delimiter, Search, Wait, beginnings, may_begin, token

_QUOTE: Final = "[`\"'“«]"


def region(prose: ProseReader, kind: type[Text] | type[Thinking], close: str, depth: int = 0) -> Wait:
    """Emit the region up to its closing token or the text's end.

    Thinking that opens again in it closes as often, but for an opening directly after a quotation mark or a backtick;
    `depth` is how often it is open in it. Source: inspect_ai#4385.
    """
    r = prose.r
    close = close.rstrip()  # white space after it would be markup or text, depending on the chunks
    pairs = [pair for format in prose.openers.formats for pair in format.thinking]
    opens = next((opening.rstrip() for opening, end in pairs if end.rstrip() == close), "")
    again, quoted, stop = _edges(opens if kind is Thinking and close == f"</{opens[1:]}" else "", close)
    closes = token(close)
    prose.within = lambda reader: region(reader, kind, close, depth)
    while True:
        found = stop(r.buf, r.at)
        r.say(kind, found.start() if found else len(r.buf))
        if found is None:
            if r.ended:
                return
            r.heat(stop, kind)
            yield
        elif end := (yield from r.sees(quoted)):
            r.say(kind, end.end())
        elif end := (yield from r.sees(again)):
            depth += 1
            r.say(kind, end.end())
        elif end := (yield from r.sees(closes)):
            r.say(kind if depth else Markup, end.end())
            if not depth:
                prose.within = None
                return
            depth -= 1
        else:
            prose.look_back()
            r.say(kind, r.at + 1)


@cache
def _edges(opens: str, close: str) -> tuple[Delimiter, Delimiter, Search]:
    """The region's opening, the same as a quotation, and where one of these or its end may begin."""
    if not opens:
        never = Delimiter("(?!)", "(?!)")
        return never, never, re.compile(may_begin(close)).search
    either = f"{may_begin(opens)}|{may_begin(close)}"
    quoted = Delimiter(_QUOTE + exact(opens), rf"{_QUOTE}(?:{beginnings(opens)})?")
    return token(opens), quoted, re.compile(rf"{either}|{_QUOTE}(?={may_begin(opens)}|\Z)").search
