"""Calls of raw values in pieces, read in three cuttings: for tests of where a value ends."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from corpora import source
from format_tools import PING, spec

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, SourceEvent, merge
from agentkit.formats import CATALOG, Element, Format, Node, Parser, ToolSpec
from agentkit.formats.format import NestedTags, Pairs, TagParameters, ToolElement
from agentkit.messages import ToolCall


def child(name: str) -> Node:
    return Node(name, "element", (name,))


WRITE = spec(
    "write", Element("write", (child("path"), child("content"))), ("content",), path="string", content="string"
)
BASH = spec("bash", Element("bash", (child("command"),)), ("command",), command="string")
TOOLS = (WRITE, BASH, PING)
RAW = [
    f
    for f in CATALOG
    if any(isinstance(p, Pairs | TagParameters | NestedTags) for p in f.call)
    or any(isinstance(p, ToolElement) and p.layout != "text" for p in f.call)
]


class Pieces(NamedTuple):
    """A call as its format writes it: up to its last value, that value's closing, and the rest."""

    head: str
    close: str
    tail: str

    def call(self, value: str, *, closed: bool = True) -> str:
        return self.head + value + (self.close + self.tail if closed else "\n" + self.tail.lstrip("\n"))


def pieces(format: Format, name: str, **arguments: str) -> Pieces:
    """The pieces of a call whose last argument is `VALUE`."""
    text = formats.render_calls(format, [ToolCall("", name, arguments)], TOOLS)
    head, rest = text.split("VALUE")
    last = list(arguments)[-1]
    closings = [p.close for p in format.call if isinstance(p, Pairs)]
    closings += [f"</{p.name}>" for p in format.call if isinstance(p, TagParameters)]
    closings += [f"{p.token}</{last}>" for p in format.call if isinstance(p, NestedTags)]
    close = (closings or [f"</{last}>"])[0]
    assert rest.startswith(close)
    return Pieces(head, close, rest.removeprefix(close))


def cuttings(text: str) -> list[list[str]]:
    chance = random.Random(text)
    edges = sorted(chance.sample(range(len(text) + 1), min(12, len(text))))
    return [[text], list(text), [text[a:b] for a, b in pairwise([0, *edges, len(text)])]]


def read(format: str | Format | Sequence[Format], text: str, tools: tuple[ToolSpec, ...] = TOOLS) -> list[Event]:
    """The events, the same for three cuttings."""
    found = []
    for chunks in cuttings(text):
        parser = Parser(format, tools)
        events: list[SourceEvent] = [e for chunk in chunks for e in parser.feed(chunk)]
        found.append(merge([*events, *parser.close()]))
    assert found[0] == found[1] == found[2]
    assert source(found[0]) == text
    return found[0]


def outcomes(events: list[Event]) -> list[object]:
    """What became of each call: name, arguments and repairs, or the code of its error."""
    return [
        (e.call.name, dict(e.call.arguments), e.repairs) if isinstance(e, CallEnd) else e.code
        for e in events
        if isinstance(e, CallEnd | CallError)
    ]


def made(got: list[object]) -> list[object]:
    """What was made, without the errors."""
    return [g for g in got if not isinstance(g, str)]


LOOK = spec("look", None, (), text="string", number="integer")
"""A tool that runs without arguments: no validation tells of one that was lost on the way."""
PARAMETERS = [f for f in RAW if any(isinstance(p, Pairs | TagParameters) for p in f.call)]


def between(format: Format) -> tuple[str, str, str, str]:
    """A call of two arguments: up to the first one's end, that end, what stands before the second one, and the rest."""
    text = formats.render_calls(format, [ToolCall("", "look", {"text": "ls -a", "number": 912})], (LOOK,))
    head, rest = text.split("ls -a")
    middle, tail = rest.split("912")
    part = next(p for p in format.call if isinstance(p, Pairs | TagParameters))
    close = part.close.rstrip() if isinstance(part, Pairs) else f"</{part.name}>"
    assert middle.startswith(close)
    return f"{head}ls -a", close, middle.removeprefix(close), f"912{tail}"
