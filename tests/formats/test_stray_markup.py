"""One piece too many, at every place of a call: no value takes it in together with what was written for another part.

Exhaustive where `fuzz` draws: every piece of a format's own markup at every place of its calls, and every other piece
beside every key, judged as there. A piece that was put into a value by itself is part of it, if the call says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import fuzz
import pytest
from corpora import source
from damaged_texts import FIND, MIXED, Plan, Planned, Token, Written, shapes, thinking, write
from damages import PAYLOADS, _markup_of
from format_tools import NOTE
from judging import Judge

from agentkit.events import CallEnd, CallError, Text, merge
from agentkit.formats import CATALOG, Format, Parser, ToolSpec, get, parse, render_calls
from agentkit.formats.edges import weak
from agentkit.formats.format import FormatPart, Section, Tag, edge
from agentkit.messages import ToolCall

every_format = pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
BESIDE_KEYS = [piece for piece in PAYLOADS if len(piece) < 16 and piece != "\\"]  # that makes a key's letter an escape


def texts(format: Format, tools: Sequence[ToolSpec]) -> Iterator[Written]:
    """A call of each tool without damage: in every shape, in one section and in one of its own."""
    calls = tuple(Planned(tool, ("",) * 4) for tool in tools)
    for shape in shapes(format):
        for together in (True, False)[: len(tools)]:
            plan = Plan(format, shape, calls, ("",) * (len(tools) + 1), "", together, (), 1)
            if (out := write(plan)) is not None:
                yield out


def with_stray(sound: Written, at: int, piece: str) -> Written:
    """The text with a piece before its token number `at`; the value there, if any, stays as it was."""
    out = replace(
        sound, tokens=[replace(t) for t in sound.tokens], hurt=set(), touched=set(), inserted=[piece], rekeyed=set()
    )
    token = out.tokens[at]
    out.hurts(token)
    out.touched = set()
    for i in (at - 1, at):  # the digits of both are one number, and an escape is one with what follows
        own = out.tokens[i] if i >= 0 else token
        if own.text.isdigit() or "\\" in piece:
            out.touched.add(own.value)
    out.tokens.insert(at, Token(piece, token.call))
    out.quotes = "`" in piece or piece in thinking(out.plan.format)
    out.done = ["stray"]
    return out


def faults(out: Written) -> list[tuple[str, str]]:
    """What is wrong with what is read of a text, in its own format."""
    return [*Judge(out, fuzz.read(out.text, (out.plan.format,), [out.text])).faults()]


def hold(format: Format, tools: Sequence[ToolSpec]) -> None:
    """No piece of the format's own markup does harm at any place of calls of these tools."""
    for sound in texts(format, tools):
        for at, token in enumerate(sound.tokens):
            for piece in _markup_of(format) if token.call != -1 and token.text else ():
                out = with_stray(sound, at, piece)
                assert faults(out) == [], out.text


@pytest.mark.share(12)
@every_format
def test_a_stray_piece_of_a_formats_own_markup_is_in_no_value_with_another_part(format: Format) -> None:
    hold(format, (NOTE,))


MARKDOWN = ("pythonic", "llama4_pythonic")
"""In these, `[find](…)` is a link: what stands in the line behind it is prose."""


@pytest.mark.soak
@pytest.mark.parametrize("format", [f for f in CATALOG if f.name not in MARKDOWN], ids=lambda f: f.name)
def test_a_stray_piece_of_a_formats_own_markup_costs_no_neighbour(format: Format) -> None:
    hold(format, (FIND, FIND))


@pytest.mark.share(60)
@every_format
def test_what_strays_in_beside_a_key_is_no_part_of_it_by_half(format: Format) -> None:
    """Not the backslash of an escaped quote, of which the quote is left out."""
    for sound in texts(format, (MIXED,)):
        keys = [i for i, t in enumerate(sound.tokens) if t.call == 0 and t.text in ("k", "n", "text", "number")]
        for at in dict.fromkeys(place for i in keys for place in (i, i + 1)):
            for piece in BESIDE_KEYS:
                out = with_stray(sound, at, piece)
                assert faults(out) == [], out.text


def literal(part: FormatPart) -> str:
    """How a literal or a tag is written; empty for any other part."""
    return edge(part).strip() if isinstance(part, str | Tag) else ""


def twice(format: Format) -> Iterator[tuple[str, str, str]]:
    """A call, what opens calls or their section, and the same call with that where it ends; of which prose has none."""
    text = render_calls(format, [ToolCall("", "note", {"text": "AAA"})], [NOTE])
    shape = format.shapes[0]
    section = shape.section or Section(literal(shape.call[0]), literal(shape.call[-1]))
    opens, closes = literal(section.open), literal(section.close)
    told = not weak(opens) and not opens[0].isalnum() and opens[0] != "{" and not opens.startswith(format.markup)
    if told and opens in text and not opens.endswith("="):
        yield text, opens, opens.join(text.rsplit(closes, 1)) if closes and closes in text else ""


def shown(text: str, format: Format) -> tuple[str, list[str]]:
    """What is visible of a text, and its calls; the same whole and by the character."""
    whole = parse(text, format, [NOTE])
    parser = Parser(format, [NOTE])
    assert merge([*(e for c in text for e in parser.feed(c)), *parser.close()]) == whole
    assert source(whole) == text
    said = "".join(e.text for e in whole if isinstance(e, Text))
    return said, [
        e.call.name if isinstance(e, CallEnd) else e.code for e in whole if isinstance(e, CallEnd | CallError)
    ]


@every_format
def test_an_opening_that_is_written_twice_does_not_show(format: Format) -> None:
    for text, opens, _ in twice(format):
        for again in (opens, f"{opens}\n"):
            assert shown(f"Yes.\n{text.replace(opens, again + opens, 1)}\n\nDone.", format)[0].split() == [
                "Yes.",
                "Done.",
            ]


@pytest.mark.parametrize("name", ["gemma4", "functiongemma"])
def test_a_part_of_an_opening_before_it_is_not_that_opening_twice(name: str) -> None:
    text = render_calls(name, [ToolCall("", "note", {"text": "AAA"})], [NOTE])
    assert shown(text[: text.index(">") + 1] + text, get(name))[1] == ["note"]


@every_format
def test_an_opening_instead_of_an_end_does_not_show(format: Format) -> None:
    for text, opens, instead in twice(format):
        for end in (
            f"{text}\n{opens}",
            f"{text}{opens}\n\nDone.",
            *([instead, f"{instead}\n\nDone."] if instead else ()),
        ):
            said, made = shown(end, format)
            assert said.split() == ["Done."] * (end.endswith("Done.") and made == ["note"]), end
            assert len(made) == 1


@every_format
def test_an_opening_of_which_text_after_a_call_speaks_shows(format: Format) -> None:
    for text, opens, _ in twice(format):
        assert shown(f"{text}\n\n{opens} is what opens it.", format)[0].strip() == f"{opens} is what opens it."
