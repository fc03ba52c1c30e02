"""A call whose opening token is worn, or another one that no format knows, is an error: it is never only text.

What shows a call, describes a tool or speaks of a token stays text.
"""

from __future__ import annotations

import json
import re

import pytest
from corpora import source
from format_tools import ADD, NOTE, PING

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, Text, Thinking, merge
from agentkit.formats import CATALOG, Format, Parser
from agentkit.formats.format import CallBody, Envelope, Json, KeyEnvelope, PythonCall, Shape, edge
from agentkit.messages import ToolCall

TOOLS = (PING, NOTE, ADD)
CALLS = [ToolCall("", "add", {"a": 1, "b": 2}), ToolCall("", "note", {"text": 'x]}"</tool_call>'})]
OPENING = re.compile(r"\s*(<[^<>\s]+>|\[[A-Z_]+\])")


def opened_by_a_token(format: Format) -> bool:
    """Whether its calls are JSON or Python after a token, and are not read without one."""
    body = next(part for part in format.call if isinstance(part, CallBody | Envelope | KeyEnvelope | PythonCall))
    tokens = all(opening(shape) for shape in format.shapes)
    written = "".join(part for part in format.call[:1] if isinstance(part, str)).strip()
    firsts = [part.strip() for shape in format.shapes for part in shape.call[:1] if isinstance(part, str)]
    needed = not any(first in written[1:] for first in firsts if first)
    return isinstance(body, Json | Envelope | KeyEnvelope | PythonCall) and tokens and needed


def opening(shape: Shape) -> str:
    """The token that opens a call, or a section whose calls have none; empty without one."""
    first = shape.call[0]
    text = first if isinstance(first, str) else edge(shape.section.open) if shape.section is not None else ""
    found = OPENING.match(text)
    return found[1] if found else ""


def with_another(format: Format, text: str, token: str = "<|token_of_tomorrow|>") -> str:
    return text.replace(opening(format.shapes[0]), token, 1)


FORMATS = [f for f in CATALOG if opened_by_a_token(f)]


def read(format: Format, text: str) -> list[Event]:
    whole = formats.parse(text, format, TOOLS)
    for size in (1, 7):
        parser = Parser(format, TOOLS)
        events = [e for i in range(0, len(text), size) for e in parser.feed(text[i : i + size])]
        assert merge([*events, *parser.close()]) == whole, text
    assert source(whole) == text
    return whole


def ends(events: list[Event]) -> tuple[list[str], list[str]]:
    """The names of the calls that are made, and the codes of those that are not."""
    return (
        [e.call.name for e in events if isinstance(e, CallEnd)],
        [e.code for e in events if isinstance(e, CallError)],
    )


def test_most_formats_of_json_and_python_are_tried() -> None:
    assert len(FORMATS) >= 20


@pytest.mark.parametrize("format", FORMATS, ids=lambda f: f.name)
def test_a_call_after_a_token_that_nothing_knows_is_an_error(format: Format) -> None:
    one, good = (formats.render_calls(format, calls, TOOLS) for calls in (CALLS[1:], CALLS[:1]))
    text = with_another(format, one)
    for before in ("", "So:\n", "I write "):
        made, told = ends(read(format, before + text))
        assert made == []
        assert told
        made, told = ends(read(format, f"{before}{text}\n\n{good}"))
        assert made == ["add"]
        assert told


@pytest.mark.parametrize("format", FORMATS, ids=lambda f: f.name)
def test_a_call_whose_opening_token_is_worn_is_made_or_an_error(format: Format) -> None:
    text = formats.render_calls(format, CALLS[:1], TOOLS)
    token = opening(format.shapes[0])
    for size in (1, 3, 5):
        for at in range(2, len(token) - 1 - size):
            worn = with_another(format, text, token[:at] + token[at + size :])
            assert ends(read(format, worn)) != ([], []), worn


@pytest.mark.parametrize("format", FORMATS, ids=lambda f: f.name)
def test_a_call_after_such_a_token_that_is_cut_is_truncated(format: Format) -> None:
    text = with_another(format, formats.render_calls(format, CALLS[1:], TOOLS))
    cut = text[: text.index("x]}")]
    made, told = ends(read(format, cut))
    assert made == []
    if format.section is None or not isinstance(format.call[0], str):  # otherwise its section may tell of it
        assert told == ["truncated_call"]
    else:
        assert told


SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}})
SHOWN = (
    "The token <|foo|> ends it.",
    "<|foo|>",
    "<|foo|> ping me",
    "<|foo|> ping: it pings",
    "<|foo|> [1, 2]",
    '<|foo|>{"name": "Paris", "arguments": {}}',
    f'<|tool|>[{{"name": "ping", "description": "Ping.", "parameters": {SCHEMA}}}]<|/tool|>',
    f'<|tools|>{{"name": "ping", "description": "Ping.", "parameters": {SCHEMA}}}',
    '```\n<|foo|>{"name": "ping", "arguments": {}}\n```',
    'Write `<|foo|>{"name": "ping", "arguments": {}}` there.',
    '<json>{"name": "ping", "arguments": {}}</json>',
    'So: {"name": "ping", "arguments": {}} is a call.',
    '[NOTE] {"name": "ping", "arguments": {}}',
    '<|user|>{"name": "ping", "arguments": {}}<|end|>',
    "<|foo|>ping",
)


@pytest.mark.parametrize("format", FORMATS, ids=lambda f: f.name)
@pytest.mark.parametrize("text", SHOWN)
def test_what_shows_a_call_or_speaks_of_a_token_is_text(format: Format, text: str) -> None:
    assert ends(read(format, text)) == ([], [])


@pytest.mark.parametrize("role", ["tool", "user", "system"])
def test_a_token_before_a_word_that_begins_like_a_role_begins_no_aside(role: str) -> None:
    text = f"<|im_start|>{role}_calls\n" + formats.render_calls("hermes", CALLS[:1], TOOLS)
    assert ends(read(formats.get("hermes"), text)) == (["add"], [])


@pytest.mark.parametrize("format", FORMATS, ids=lambda f: f.name)
def test_such_a_call_in_thinking_is_none(format: Format) -> None:
    if not format.thinking:
        return
    first, last = format.thinking[-1]
    text = with_another(format, formats.render_calls(format, CALLS[:1], TOOLS))
    events = read(format, f"{first}{text}{last}Well.")
    assert ends(events) == ([], [])
    assert any(isinstance(e, Thinking) for e in events)
    assert isinstance(events[-1], Text)
