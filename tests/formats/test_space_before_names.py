"""White space before a tool's name, at any place from the start of its call: the same call, or none of another name.

Over every shape of every format, with tools whose names could be a part of what was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from corpora import source
from format_tools import ASK, NOTE, PING

from agentkit import FormatError, formats
from agentkit.events import CallEnd, Event, SourceEvent, merge
from agentkit.formats import CATALOG, Format, Parser
from agentkit.messages import ToolCall

TOOLS = (NOTE, PING, ASK)
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (("note", {"text": "a"}), ("ping", {}))
every_format = pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)


def in_every_shape(format: Format, name: str, arguments: dict[str, Any]) -> list[str]:
    """The call as the format may be written, and as it is also read."""
    found = []
    for shape in format.shapes:
        one = replace(format, call=shape.call, section=shape.section, also=())
        try:
            found.append(formats.render_calls(one, [ToolCall("", name, arguments)], TOOLS))
        except FormatError:  # is only read
            continue
    return found


def made(events: Sequence[Event]) -> list[tuple[str, dict[str, Any]]]:
    return [(e.call.name, dict(e.call.arguments)) for e in events if isinstance(e, CallEnd)]


def streamed(reads: Format | Sequence[Format], text: str) -> list[Event]:
    parser = Parser(reads, TOOLS)
    events: list[SourceEvent] = [e for c in text for e in parser.feed(c)]
    return merge([*events, *parser.close()])


def spaced(text: str, name: str, space: str) -> Iterator[str]:
    """The text with white space at each place up to the name."""
    for at in range(text.index(name) + 1):
        yield text[:at] + space + text[at:]


def check(events: Sequence[Event], text: str, name: str, arguments: dict[str, Any]) -> None:
    others = [other for other, given in made(events) if (other, given) != (name, arguments)]
    assert [other for other in others if not other or name in other] == [], text
    assert source(events) == text


@pytest.mark.share(12)
@every_format
@pytest.mark.parametrize("space", [" ", "\n"], ids=["a space", "a line"])
def test_white_space_before_a_name_makes_no_other_tool_of_it(format: Format, space: str) -> None:
    for name, arguments in CALLS:
        for written in in_every_shape(format, name, arguments):
            for text in spaced(written, name, space):
                events = formats.parse(text, format, TOOLS)
                check(events, text, name, arguments)
                assert streamed(format, text) == events


@every_format
def test_nor_where_any_format_may_come(format: Format) -> None:
    for written in in_every_shape(format, "ping", {}):
        for text in spaced(written, "ping", " "):
            check(formats.parse(text, formats.auto(), TOOLS), text, "ping", {})


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("gemma4", "<|tool_call>~call:ping{}<tool_call|>"),
        ("gemma4", "<|tool_call>~call~:~ping{}<tool_call|>"),
        ("gemma4", "<|tool_call>~:~ping{}<tool_call|>"),
        ("gemma4", "<|tool_call>~ping{}<tool_call|>"),
        ("functiongemma", "<start_function_call>~call:ping{}<end_function_call>"),
        ("functiongemma", "<start_function_call>~call~:~ping{}<end_function_call>"),
        ("functiongemma", "<start_function_call>~ping{}<end_function_call>"),
        ("invoke", '<invoke name="~ping~"></invoke>'),
        ("hermes", '<tool_call>{"name": "~ping~", "arguments": {}}</tool_call>'),
        ("apertus", '<|tools_prefix|>[{"~ping~": {}}]<|tools_suffix|>'),
    ],
)
@pytest.mark.parametrize("space", ["", " ", "\n", "  "], ids=["nothing", "a space", "a line", "more"])
def test_a_call_with_white_space_before_its_name_is_that_call(format: str, text: str, space: str) -> None:
    text = text.replace("~", space)
    events = formats.parse(text, format, TOOLS)
    assert made(events) == [("ping", {})]
    assert streamed(format, text) == events


def test_a_tool_that_is_called_like_the_word_before_names_is_still_called() -> None:
    call = replace(PING, name="call")
    assert made(formats.parse("<|tool_call>call{}<tool_call|>", "gemma4", (call,))) == [("call", {})]
