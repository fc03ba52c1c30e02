"""The end of a call in the middle of its JSON: what stands before it is half a value, and never runs.

`missing_brace` adds the brackets that a model forgot; it is only right if nothing of the value follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from damaged_texts import CALLED, call_text, shapes

from agentkit.events import CallEnd, CallError, Event, SourceEvent, merge
from agentkit.formats import CATALOG, Format, Parser, get
from agentkit.formats.format import Braced, Envelope, Json, KeyEnvelope, Shape, edge
from agentkit.messages import ToolCall

GIVEN: Final[dict[str, Any]] = {
    "text": "one, two", "number": 2, "items": ["a", 3, {"p": [1, "q"]}, {"p": True}], "object": {"k": "v", "n": None},
    "flag": True,
}  # fmt: skip
TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|\w+')


def read(format: str | Format, text: str, size: int) -> list[Event]:
    parser = Parser(format, CALLED)
    events: list[SourceEvent] = []
    for i in range(0, len(text), size):
        events += parser.feed(text[i : i + size])
    return merge([*events, *parser.close()])


def of_json() -> Iterator[tuple[Format, Shape]]:
    """The shapes whose arguments are JSON and which show where a call is over."""
    for format in CATALOG:
        for shape in shapes(format):
            if any(isinstance(part, Json | Envelope | KeyEnvelope) for part in shape.call) and ends(shape):
                yield format, shape


def ends(shape: Shape) -> set[str]:
    last, section = shape.call[-1], shape.section
    found = {last.strip() if isinstance(last, str) else "", edge(section.close).strip() if section else ""}
    return found - {"", "]"}  # a bracket is one of the value's own


@pytest.mark.share(12)
@pytest.mark.parametrize(("format", "shape"), [*of_json()], ids=lambda given: getattr(given, "name", ""))
def test_a_call_whose_end_stands_inside_its_json_never_runs_with_a_part_of_it(format: Format, shape: Shape) -> None:
    before, body, after = call_text(format, shape, ToolCall("", "mixed", GIVEN), 0)
    head = shape.section.start + before if shape.section else before
    foot = after + shape.section.end if shape.section else after
    for end in ends(shape):
        for found in [*TOKEN.finditer(body)][:-1]:
            text = f"{head}{body[: found.end()]}{end}{body[found.end() :]}{foot}"
            events = read(format, text, len(text))
            assert events == read(format, text, 7)
            answers = [e for e in events if isinstance(e, CallEnd | CallError)]
            plain = '"mixed"' in head + body[: found.end()] and "```" not in head  # any code may stand in a fence
            assert answers or not plain, text
            assert [e.call.arguments for e in answers if isinstance(e, CallEnd) and e.call.arguments != GIVEN] == []


@pytest.mark.parametrize("name", ["gemma4", "functiongemma"])
def test_nor_does_one_whose_arguments_are_in_braces_outside_of_its_strings(name: str) -> None:
    format = get(name)
    (part,) = (part for part in format.call if isinstance(part, Braced))
    before, body, after = call_text(format, format.shapes[0], ToolCall("", "mixed", GIVEN), 0)
    quote = re.escape(part.quote)
    for found in [*re.finditer(rf"{quote}.*?{quote}|\w+|[{{}}\[\]:,]", body)][:-1]:
        text = f"{before}{body[: found.end()]}{after}{body[found.end() :]}{after}"
        events = read(format, text, len(text))
        assert events == read(format, text, 7)
        assert any(isinstance(e, CallError) for e in events), text
        assert not any(isinstance(e, CallEnd) and e.call.name == "mixed" for e in events), text


@pytest.mark.parametrize("half", ['{"text": "x", ', '{"text": "x", "items": [', '{"text": "x", "object": {'])
def test_behind_a_comma_or_an_opening_bracket_more_was_to_follow(half: str) -> None:
    (error,) = [
        e for e in read("function_json", f"<function=mixed>{half}</function> Done", 4) if isinstance(e, CallError)
    ]
    assert error.code == "invalid_json"
