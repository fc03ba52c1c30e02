"""Of two calls, one is damaged in one place: both are read, or there is an error. Neither is lost in silence.

Every character of their markup is missing, doubled or another one, and so is every word and tag. What is lost all the
same is counted: of a call whose own opening is damaged, nothing may be left that prose does not have, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest
from format_tools import spec

from agentkit import formats
from agentkit.events import CallEnd, CallError
from agentkit.formats import CATALOG, Format
from agentkit.messages import ToolCall

TOOLS = (
    spec("bash", None, ("command",), command="string"),
    spec("ls", None, ("path",), path="string"),
)
VALUES = ("one1", "two2")
CALLS = [ToolCall("", "bash", {"command": VALUES[0]}), ToolCall("", "ls", {"path": VALUES[1]})]
OTHERS = "x\"<>}]):;' \n\u201d"
"""What a character is written as instead."""
_WORDS: Final = re.compile(r"</?[^<>\s]+|\[[A-Z_/]+\]|```\w*|\w+|\s+")
_TAGS: Final = re.compile(r"</?[^<>]*>|\[[A-Z_/]+\]|```\w*\n")
LOST: Final[dict[str, int]] = {}
"""How many of them are lost, of about 2,000; of the formats that are not here, none."""


def damaged(text: str) -> Iterator[str]:
    """The text with every damage of its markup in one place."""
    inside = {n for value in VALUES for n in range(text.index(value), text.index(value) + len(value))}
    for at, c in enumerate(text):
        if at not in inside:
            yield from (f"{text[:at]}{other}{text[at + 1 :]}" for other in ("", c + c, *OTHERS) if other != c)
    for piece in (*_WORDS.finditer(text), *_TAGS.finditer(text)):
        if len(piece[0]) > 1 and inside.isdisjoint(range(*piece.span())):
            yield from (f"{text[: piece.start()]}{other}{text[piece.end() :]}" for other in ("", piece[0] * 2))


def lost(format: Format) -> list[str]:
    """The damaged texts of which fewer than two calls are read, without an error."""
    found = []
    for text in damaged(formats.render_calls(format, CALLS, TOOLS)):
        events = formats.parse(text, format, TOOLS)
        told = any(isinstance(e, CallError) for e in events)
        if not told and sum(isinstance(e, CallEnd) for e in events) < len(CALLS):
            found.append(text)
    return found


@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_a_call_that_is_damaged_in_one_place_beside_a_sound_one_is_read_or_answered_for(format: Format) -> None:
    found = lost(format)
    assert len(found) <= LOST.get(format.name, 0), found[:5]
