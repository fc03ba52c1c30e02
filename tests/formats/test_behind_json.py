"""A few characters behind a complete JSON body: no cutting changes what they are, and no end is told where more comes.

Over every format whose arguments are JSON: inside the call, before the next one, and where the text ends.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from corpora import source
from format_tools import NOTE

from agentkit import formats
from agentkit.events import CallError, Event, SourceEvent, merge
from agentkit.formats import CATALOG, Format, Parser
from agentkit.formats.format import Envelope, Json, KeyEnvelope
from agentkit.messages import ToolCall

JSON = [f for f in CATALOG if any(isinstance(p, Json | Envelope | KeyEnvelope) for p in f.call)]
SIGNS = "\"}])'<"
SHORT = [a + b for a in SIGNS for b in ("", *SIGNS)]
LONG = ["".join(three) for three in product(SIGNS, repeat=3)]
A, B = (ToolCall("", "note", {"text": text}) for text in "ab")


def behind_bodies(format: Format) -> Iterator[tuple[str, str]]:
    """What stands before such a place, and behind it."""
    one = formats.render_calls(format, [A], (NOTE,))
    two = formats.render_calls(format, [A, B], (NOTE,))
    for at in range(one.index("}"), len(one)):
        if one[at] == "}":
            yield one[: at + 1], one[at + 1 :]
            yield one[: at + 1], ""
    yield one, ""
    yield one, " ok"
    first = two.index("}") + 1
    yield two[:first], two[first:]


def read(reads: Format | Sequence[Format], chunks: Sequence[str]) -> list[Event]:
    parser = Parser(reads, (NOTE,))
    events: list[SourceEvent] = [e for chunk in chunks for e in parser.feed(chunk)]
    return merge([*events, *parser.close()])


def check(reads: Format | Sequence[Format], before: str, signs: str, behind: str) -> None:
    text, at = f"{before}{signs}{behind}", len(before)
    whole = formats.parse(text, reads, (NOTE,))
    for cut in ([text], [*text], [before, text[at:]], [text[: at + 1], text[at + 1 :]]):
        assert read(reads, cut) == whole, (text, cut)
    for n, event in enumerate(whole):
        if isinstance(event, CallError) and event.code == "truncated_call":
            # a bracket at the very end may be all of another opening that has arrived
            assert source(whole[n + 1 :]).strip() in ("", "<"), (text, event)


@pytest.mark.share(12)
@pytest.mark.parametrize("format", JSON, ids=lambda f: f.name)
def test_no_cutting_changes_what_stands_behind_a_body(format: Format) -> None:
    chance = random.Random(format.name)
    for before, behind in dict.fromkeys(behind_bodies(format)):
        for signs in (*SHORT, *chance.sample(LONG, 12)):
            check(format, before, signs, behind)
        for signs in chance.sample((*SHORT, *LONG), 6):
            check(formats.auto(), before, signs, behind)
