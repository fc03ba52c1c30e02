"""White space before a tool's name: the same call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from format_tools import ASK, NOTE, PING

from agentkit import formats
from agentkit.events import CallEnd, Event, SourceEvent, merge
from agentkit.formats import Format, Parser

TOOLS = (NOTE, PING, ASK)


def made(events: Sequence[Event]) -> list[tuple[str, dict[str, Any]]]:
    return [(e.call.name, dict(e.call.arguments)) for e in events if isinstance(e, CallEnd)]


def streamed(reads: Format | Sequence[Format], text: str) -> list[Event]:
    parser = Parser(reads, TOOLS)
    events: list[SourceEvent] = [e for c in text for e in parser.feed(c)]
    return merge([*events, *parser.close()])


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
