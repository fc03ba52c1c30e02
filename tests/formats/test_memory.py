"""The memory of one long call that is streamed: about its text, not its many small strings."""

from __future__ import annotations

import gc
import sys
import tracemalloc

import pytest

from agentkit.checks.unicode import has_surrogate
from agentkit.events import CallEnd
from agentkit.formats import CATALOG, Format, Parser, ToolSpec, render_calls
from agentkit.messages import ToolCall
from agentkit.toolspec import Element, Node

TIMES = 3  # a call's text at its end: what was kept of it, its argument, its `raw`
APART = 60_000  # bytes: what arrived last, in small strings
PROSE = "A line of plain prose, as most of what models say is, without any markup in it.\n"
CODE = "if a[0] < {b} ]  > \"c\" \\ 'd' & (e) | `f` </g> <h>\n"
HALF = "x </parameter> <parameter=a> </tool_call> ] }) </invoke> <x>\n" + PROSE
TOOL = ToolSpec(
    "create_file",
    "Create a file.",
    {
        "type": "object",
        "properties": {"contents": {"type": "string"}, "path": {"type": "string"}},
        "required": ["contents"],
    },
    Element("create-file", (Node("path", "attribute", ("path",)), Node("contents", "content"))),
)
KINDS = [next(f for f in CATALOG if f.body == body) for body in dict.fromkeys(f.body for f in CATALOG)]


def written(format: Format, line: str, size: int, **more: str) -> str:
    """A call whose argument is these lines."""
    contents = (line * (size // len(line) + 1))[:size]
    return render_calls(format, [ToolCall("", TOOL.name, {**more, "contents": contents})], [TOOL])


def fits(format: Format, text: str, delta: int) -> bool:
    """Return True if reading this text, with its events dropped, takes few enough bytes at most.

    What is made once is made before. Other threads of the process may add to what is measured, so it is measured again.
    """
    read(format, text, delta, start=len(text) - 4000)
    most = TIMES * sys.getsizeof(text) + APART
    return any(peak(format, text, delta) < most for _ in range(3))


def peak(format: Format, text: str, delta: int) -> int:
    """The most bytes that were taken."""
    gc.collect()
    tracemalloc.start()
    ends = read(format, text, delta)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ends) == 1
    assert ends[0].call.raw in text
    return most


def read(format: Format, text: str, delta: int, start: int = 0) -> list[CallEnd]:
    """The ends of the calls, in a text that comes in pieces of `delta` characters."""
    parser, ends = Parser(format, [TOOL]), list[CallEnd]()
    for i in range(start, len(text), delta):
        ends += [event for event in parser.feed(text[i : i + delta]) if isinstance(event, CallEnd)]
    return ends + [event for event in parser.close() if isinstance(event, CallEnd)]


@pytest.mark.share(14)
@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_a_long_call_takes_a_few_times_its_text(format: Format) -> None:
    """At any moment; an argument that came in pieces of four characters once took twenty times its text."""
    for text in (written(format, PROSE, 50_000), written(format, CODE, 30_000, path="a.c")):
        assert fits(format, text, 4)


@pytest.mark.share(6)
@pytest.mark.parametrize("format", KINDS, ids=lambda f: f.name)
def test_it_grows_with_the_text(format: Format) -> None:
    """Beside the text nothing grows, whatever is in it and however it is cut."""
    for line in (PROSE, CODE, HALF):
        text = written(format, line, 400_000)
        assert fits(format, text, 40)


@pytest.mark.parametrize("at", [0, 1, 16_383, 16_384, 40_000, 99_999])
def test_a_surrogate_is_found_in_a_long_text(at: int) -> None:
    """A text is encoded in parts."""
    text = "é" * 100_000
    assert not has_surrogate(text)
    assert has_surrogate(text[:at] + "\ud800" + text[at + 1 :])


@pytest.mark.share(12)
@pytest.mark.parametrize("format", KINDS, ids=lambda f: f.name)
@pytest.mark.parametrize("size", [None, 4], ids=["whole", "streamed"])
def test_a_closed_parser_leaves_nothing_to_the_collector(format: Format, size: int | None) -> None:
    """Its memory is free at once: a server makes one for every response."""
    text = f"{PROSE}{written(format, PROSE, 200)}\n{PROSE}"

    def read() -> None:
        parser = Parser(format, [TOOL])
        for at in range(0, len(text) if size else 0, size or 1):
            parser.feed(text[at : at + (size or 1)])
        parser.close("" if size else text)

    read()  # what is made on first use
    gc.collect()
    gc.disable()
    try:
        read()
        assert gc.collect() == 0
    finally:
        gc.enable()
