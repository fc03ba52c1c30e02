"""Openings of calls, written twice or after one: they are hidden, unless text mentions them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from corpora import source
from format_tools import NOTE

from agentkit.events import CallEnd, CallError, Text, merge
from agentkit.formats import CATALOG, Format, Parser, get, parse, render_calls
from agentkit.formats.edges import weak
from agentkit.formats.format import FormatPart, Section, Tag, edge
from agentkit.messages import ToolCall

every_format = pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)


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
    """Return the visible part of a text, and its calls: equal for the whole text and by the character."""
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
def test_an_opening_of_which_text_after_a_call_speaks_shows(format: Format) -> None:
    for text, opens, _ in twice(format):
        assert shown(f"{text}\n\n{opens} is what opens it.", format)[0].strip() == f"{opens} is what opens it."


def test_a_token_without_its_first_letter_is_markup_in_a_value() -> None:
    text = render_calls("minimax_m3", [ToolCall("", "note", {"text": "AAA"})], [NOTE])
    (error,) = (
        e for e in parse(text.replace("AAA", "<]minimax[>[<text>a"), "minimax_m3", [NOTE]) if isinstance(e, CallError)
    )
    assert error.code == "ambiguous_call"
