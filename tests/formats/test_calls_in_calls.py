"""A call directly inside another call never runs if that one ends, nor does one in what has a damaged opening tag.

Where the outer call does not end, the one inside it is the next call: models forget an end.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator

import pytest
from growth import assert_linear

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, merge
from agentkit.formats import Format, Parser, ToolSpec
from agentkit.formats.format import Braced, NestedTags, Pairs, TagParameters, TextArgument, ToolElement
from agentkit.messages import ToolCall

TEXT = {"type": "string"}
RESET = ToolSpec("reset", "Reset.", {"type": "object", "properties": {}})
BASH = ToolSpec("bash", "Run.", {"type": "object", "properties": {"command": TEXT}, "required": ["command"]})
WRITE = ToolSpec(
    "write_file",
    "Write.",
    {"type": "object", "properties": {"path": TEXT, "content": TEXT}, "required": ["path", "content"]},
)
TOOLS = (BASH, WRITE, RESET)
PWD = ToolCall("", "bash", {"command": "pwd"})
INNER = (ToolCall("", "bash", {"command": "ls"}), ToolCall("", "reset", {}))
RAW = TagParameters, Pairs, TextArgument, NestedTags, Braced, ToolElement
FORMATS = [f for f in formats.CATALOG if any(isinstance(part, RAW) for part in f.call)]
ELEMENTS = [f for f in FORMATS if f.tagged]


def read(format: Format, text: str, size: int) -> list[Event]:
    parser = Parser(format, TOOLS)
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    return merge([*events, *parser.close()])


def made(events: list[Event]) -> list[tuple[str, object]]:
    return [(event.call.name, event.call.arguments) for event in events if isinstance(event, CallEnd)]


def bare(format: Format, call: ToolCall) -> str:
    """A call without its section."""
    text = formats.render_calls(format, [call, call], TOOLS)
    return next(e.call.raw for e in formats.parse(text, format, TOOLS) if isinstance(e, CallEnd)).strip()


def written(format: Format) -> tuple[str, list[int]]:
    """A call, and every place in it between two of its tags, after its name."""
    text = formats.render_calls(format, [ToolCall("", "write_file", {"path": "a.md", "content": "words"})], TOOLS)
    (call,) = (e.call for e in formats.parse(text, format, TOOLS) if isinstance(e, CallEnd))
    start = text.index(call.raw)
    end = start + len(call.raw)
    places = (found.end() for found in re.finditer(r"[>\]|]\s*(?=[<\[\]])", text[start:end]))
    named = re.search("write[_-]file", text)
    assert named
    return text, [at for at in (start + place for place in places) if named.end() < at < end]


def inside(inner: str) -> Iterator[str]:
    yield from (inner, f"\n{inner}\n", f"\n{inner} is it.\n", f"{inner}{inner}", f"\n{inner}\n{inner}\n")


NOT_YET = {
    "minimax_m3",  # two calls: its damage is found after the token that opens the first one
    "step3",  # after all of a call but its last token: two of them may be the next one's, written twice
}


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_no_call_runs_that_is_directly_inside_one_that_ends(format: Format) -> None:
    rng = random.Random(format.name)
    text, places = written(format)
    after = formats.render_calls(format, [PWD], TOOLS)
    for at in places:
        for call in INNER:
            for within in inside(bare(format, call)):
                nested = f"{text[:at]}{within}{text[at:]}\n{after}"
                events = merge(formats.parse(nested, format, TOOLS))
                assert read(format, nested, rng.choice([1, 3, 7])) == events, nested
                assert made(events) in ([("bash", {"command": "pwd"})], []) or format.name in NOT_YET, nested
                assert any(isinstance(e, CallError) for e in events), nested


OPENINGS = (
    '{} path="The "best" way">', '{} path="a.md"">', '{} path:"a.md">', '{}, path="a.md">', '{}; path="a.md">',
    '{} "a.md">', '{} (path="a.md")>', '{} path="a.md", >', '{} path=="a.md">', '{} path="a.md" path="b.md">',
    '{} path="a.md"]>', "{}\n", '{} path="a.md"\n', '{} path="a.md" / >',
)  # fmt: skip


@pytest.mark.parametrize("format", ELEMENTS, ids=lambda format: format.name)
def test_no_call_runs_that_is_inside_an_element_whose_opening_tag_is_damaged(format: Format) -> None:
    rng = random.Random(format.name)
    tag = "write-file" if format.name == "xml" else "write_file"
    after = formats.render_calls(format, [PWD], TOOLS)
    for call in INNER:
        inner = bare(format, call)
        for value in (inner, f"\n{inner}\n", f"{inner}\n{inner}", f"<b>{inner}</b>"):
            for body in (value, f"<content>{value}</content>", f"\n<content>\n{value}\n</content>\n"):
                for opening in OPENINGS:
                    damaged = f"<{opening.format(tag)}{body}</{tag}>\n{after}"
                    events = merge(formats.parse(damaged, format, TOOLS))
                    assert made(events) == [], damaged
                    assert any(isinstance(e, CallError) for e in events), damaged
                    assert read(format, damaged, rng.choice([1, 3, 7])) == events, damaged


@pytest.mark.parametrize("unit", ["<write-file><bash><command>a</command></bash>", "<write-file, <bash>", "<bash\n"])
def test_elements_that_do_not_end_are_read_in_linear_time(unit: str) -> None:
    assert_linear(lambda count: seconds(unit * count), 500)


def seconds(text: str) -> float:
    start = time.process_time()
    formats.parse(text, "xml", TOOLS)
    return time.process_time() - start
