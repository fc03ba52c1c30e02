"""A call in a section is made or an error if its own opening is worn or in another case; its neighbours are made.

Over every format whose calls stand in a section that is not common in prose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from corpora import source
from format_tools import ADD, NOTE, PING

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, merge
from agentkit.formats import CATALOG, Format, Parser
from agentkit.formats.edges import weak
from agentkit.formats.format import Envelope, KeyEnvelope, PythonCall
from agentkit.messages import ToolCall

TOOLS = (PING, NOTE, ADD)
CALLS = [ToolCall("", "note", {"text": "a b"}), ToolCall("", "ping", {}), ToolCall("", "add", {"a": 1, "b": 2})]
SECTIONED = [
    f
    for f in CATALOG
    if f.section is not None and not weak(f.section.open) and not any(isinstance(p, PythonCall) for p in f.call)
]
every_section = pytest.mark.parametrize("format", SECTIONED, ids=lambda f: f.name)


def read(format: Format | Sequence[Format], text: str) -> list[Event]:
    whole = formats.parse(text, format, TOOLS)
    for size in (1, 9):
        parser = Parser(format, TOOLS)
        events = [e for i in range(0, len(text), size) for e in parser.feed(text[i : i + size])]
        assert merge([*events, *parser.close()]) == whole, text
    assert source(whole) == text
    return whole


def listed(format: Format) -> bool:
    """Whether its calls are only recognizable together."""
    return isinstance(format.call[0], Envelope | KeyEnvelope)


def made(events: list[Event]) -> list[tuple[str, object]]:
    return [(e.call.name, e.call.arguments) for e in events if isinstance(e, CallEnd)]


def worn(opening: str) -> Iterator[str]:
    yield from {opening.upper(), opening.lower(), opening.title(), opening.swapcase()} - {opening}
    for at, c in enumerate(opening):
        before, after = opening[:at], opening[at + 1 :]
        yield from (less for less in (before + after, f"{before}{c}{c}{after}", f"{before}~{after}") if less != opening)


def places(format: Format, text: str) -> Iterator[tuple[int, int]]:
    """Where the opening of each call begins, and where the tool's name behind it does."""
    at = 0
    for event in formats.parse(text, format, TOOLS):
        if isinstance(event, CallEnd):
            at = text.index(event.call.raw, at)
            yield at, text.index(event.call.name, at)


def test_most_formats_with_sections_are_tried() -> None:
    assert len(SECTIONED) > 20


@pytest.mark.share(14)
@every_section
def test_a_call_whose_opening_in_its_section_is_worn_is_answered_for_and_its_neighbours_are_made(
    format: Format,
) -> None:
    text = formats.render_calls(format, CALLS, TOOLS)
    for number, (start, name) in enumerate(places(format, text)):
        for opening in worn(text[start:name]):
            events = read(format, text[:start] + opening + text[name:])
            ends = [e for e in events if isinstance(e, CallEnd | CallError)]
            assert any(CALLS[number].name in e.call.raw for e in ends), opening
            rest = [(c.name, c.arguments) for c in CALLS if c is not CALLS[number]]
            told = [e.call.raw for e in ends if isinstance(e, CallError)]
            got = made(events)
            if listed(format):  # a quote or bracket too many or too few may leave open where the call ends
                assert all(one in got or any(one[0] in raw for raw in told) for one in rest), opening
            else:
                assert [one for one in got if one in rest] == rest, opening


@every_section
def test_a_call_that_opens_and_ends_and_names_no_tool_does_not_take_its_neighbours(format: Format) -> None:
    text = formats.render_calls(format, CALLS, TOOLS)
    for number, (_, name) in enumerate(places(format, text)):
        events = read(format, text[:name] + text[name + len(CALLS[number].name) :])
        rest = [(c.name, c.arguments) for c in CALLS if c is not CALLS[number]]
        assert [one for one in made(events) if one in rest] == rest
        assert len([e for e in events if isinstance(e, CallEnd | CallError)]) == len(CALLS)


@pytest.mark.share(28)
@every_section
@pytest.mark.parametrize("quoting", ["hermes", "llama4_pythonic", "invoke"])
def test_what_is_quoted_behind_damage_at_the_beginning_of_a_section_is_not_made(format: Format, quoting: str) -> None:
    """Also if another format that is read has a section that opens alike."""
    quoted = formats.render_calls(quoting, [ToolCall("", "ping", {})], TOOLS)
    text = formats.render_calls(format, [ToolCall("", "note", {"text": f"a {quoted} b"}), CALLS[2]], TOOLS)
    ((start, _), *_) = places(format, text)
    for junk in ("x", "x</parameter>\n", "~ ", "<nope>\n</nope>\n", '<invok[ name="add">\n</invoke>\n'):
        for read_as in (format, formats.auto()):
            assert ("ping", {}) not in made(read(read_as, text[:start] + junk + text[start:])), junk


@pytest.mark.parametrize("format", [f for f in SECTIONED if not listed(f)], ids=lambda f: f.name)
def test_prose_in_a_section_is_text(format: Format) -> None:
    text = formats.render_calls(format, CALLS, TOOLS)
    (*_, (last, _)) = places(format, text)
    for said in ("Now I ping it: twice.\n", "The tool ping, or note?\n", "call note\n"):
        events = read(format, text[:last] + said + text[last:])
        assert not any(isinstance(e, CallError) for e in events), said
