"""A call in unescaped quotes in a string never runs, although its opening comes exactly where the string seems to end.

Nor is a call lost that comes after one that was broken off where a string ends.
"""

from __future__ import annotations

import time

import pytest
from format_tools import spec
from growth import assert_linear

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, merge
from agentkit.formats import CATALOG, Format, Parser
from agentkit.formats.format import Braced, Envelope, KeyEnvelope
from agentkit.messages import ToolCall

NOTE = spec("note", None, ("text",), text="string", title="string")
DELETE = spec("delete", None, ("path",), path="string")
TOOLS = (NOTE, DELETE)
QUOTED = ToolCall("", "delete", {"path": "x"})
GIVEN: tuple[dict[str, str], ...] = (
    {"text": "VALUE"},
    {"text": "VALUE", "title": "t"},
    {"title": "t", "text": "VALUE"},
)
AROUND = (
    ('"', '"'),
    ('" ', ' "'),
    ('"\n', '\n"'),
    ('""', '""'),
    ('("', '")'),
    ('["', '"]'),
    ('="', '"'),
    ('\\"', '\\"'),
    ('\\\\"', '\\\\"'),
    ('"a", ', ', "b"'),
    ('"a": ', ', "b": "c"'),
)
"""What is before and after a quoted call."""


def quote(format: Format) -> str:
    """What is around a string in calls of this format; empty if it has none."""
    text = formats.render_calls(format, [ToolCall("", "note", {"text": "VALUE"})], TOOLS)
    before = text[: text.index("VALUE")]
    return next((q for q in ('"', '<|"|>', "<escape>") if before.endswith(q)), "")


def written(format: Format) -> tuple[str, ...]:
    """A call, with its section and without."""
    text = formats.render_calls(format, [QUOTED], TOOLS)
    bare = next(e.call.raw for e in formats.parse(text, format, TOOLS) if isinstance(e, CallEnd))
    return tuple(dict.fromkeys((text.strip(), bare.strip())))


def noted(format: Format, given: dict[str, str], value: str) -> str:
    """A call with this value, unescaped."""
    return formats.render_calls(format, [ToolCall("", "note", given)], TOOLS).replace("VALUE", value)


def ran(events: list[Event]) -> list[str]:
    return [event.call.name for event in events if isinstance(event, CallEnd)]


def read(format: Format, text: str, size: int) -> list[Event]:
    parser = Parser(format, TOOLS)
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    return merge([*events, *parser.close()])


IN_STRINGS = [format for format in CATALOG if quote(format)]
APART = [
    format
    for format in IN_STRINGS
    if (format.section is None or not isinstance(format.call[0], Envelope | KeyEnvelope))
    and not any(isinstance(part, Braced) for part in format.call)
]
"""Those whose calls are told from what is in a list, and from what is in another call's braces."""
every_format = pytest.mark.parametrize("format", IN_STRINGS, ids=lambda format: format.name)


def test_most_formats_with_strings_are_here() -> None:
    assert {"hermes", "kimi_k2", "harmony", "gemma4", "functiongemma", "mistral"} <= {f.name for f in IN_STRINGS}


@every_format
def test_no_call_in_unescaped_quotes_runs(format: Format) -> None:
    own = quote(format)
    for before, after in AROUND:
        for call in written(format):
            for given in GIVEN:
                text = noted(
                    format, given, "Write " + before.replace('"', own) + call + after.replace('"', own) + " it."
                )
                events = formats.parse(text, format, TOOLS)
                assert ran(events) in ([], ["note"]), text
                assert sum(isinstance(e, CallEnd | CallError) for e in events) == 1, text
                for size in (1, 7):
                    assert read(format, text, size) == merge(events), text


@every_format
def test_no_call_of_another_format_in_unescaped_quotes_runs(format: Format) -> None:
    own = quote(format)
    every = [format, *(f for f in CATALOG if f is not format)]
    for other in CATALOG:
        call = formats.render_calls(other, [QUOTED], TOOLS).strip()
        for before, after in AROUND[:3]:
            text = noted(format, GIVEN[0], f"Write {before}{call}{after} it.".replace('"', own))
            assert "delete" not in ran(formats.parse(text, every, TOOLS)), text


def test_calls_that_are_broken_off_after_a_string_are_read_in_linear_time() -> None:
    unit = '<tool_call>{"name": "note", "arguments": {"text": "a"'
    assert_linear(lambda count: seconds(unit * count), 500)


def seconds(text: str) -> float:
    start = time.process_time()
    formats.parse(text, "hermes", TOOLS)
    return time.process_time() - start
