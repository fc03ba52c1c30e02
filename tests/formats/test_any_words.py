"""Any words of a format, in any order, are read the same whole and in pieces, and nothing of the text is lost."""

from __future__ import annotations

import os
import re

import pytest
from format_tools import ADD, NOTE, PING, TOOLS
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.events import CallEnd, CallError, Event, InventedResult, Markup, Text, Thinking, merge
from agentkit.formats import CATALOG, Format, Limits, Parser, get, render_calls
from agentkit.formats.asides import LITERALS
from agentkit.messages import ToolCall

EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "20")) * 2
CALLS = [
    ToolCall("", "ping", {}),
    ToolCall("", "add", {"a": 1, "b": 2}),
    ToolCall("", "note", {"text": "x y"}),
]
COMMON = re.findall(r"\S+|\s", "[ ] ( ) { } \" ' , : = ping add note text a 1 \n < /> > </ x ``` ` \\ |")
ROLES = [word for text in LITERALS for word in (text, text.upper())]


def words(format: Format) -> list[str]:
    """What calls of the format consist of."""
    written = render_calls(format, CALLS, [PING, ADD, NOTE])
    return re.findall(r"\w+|\s+|<[^<>\s]{0,12}|[^\w\s]{1,3}", written)


def said(event: Event) -> str:
    """The characters of the text that an event stands for."""
    match event:
        case Text(text) | Thinking(text) | Markup(text) | InventedResult(text):
            return text
        case CallEnd(_, call) | CallError(call=call):
            return call.raw
    return ""


def read(format: Format, text: str, size: int, limits: Limits | None = None) -> list[Event]:
    parser, events = Parser(format, TOOLS, limits=limits), list[Event]()
    for at in range(0, len(text), size):
        events += parser.feed(text[at : at + size])
    return merge(events + parser.close())


def is_read_the_same(
    format: Format, text: str, sizes: tuple[int, ...] = (1, 2, 7), limits: Limits | None = None
) -> None:
    whole = merge(Parser(format, TOOLS, limits=limits).close(text))
    assert "".join(map(said, whole)) == text
    assert not [event for event in whole if isinstance(event, CallError) and event.code == "internal_error"]
    for size in (*sizes, len(text)):
        assert read(format, text, size, limits) == whole


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pythonic", "x=[]), ping()]"),
        ("pythonic", "ping()d=="),
        ("deepseek_v41", "<｜DSML｜ invoke\n<｜DSML｜ invoke name="),
        ("seed_oss", '<function=note"'),
        ("llama4_pythonic", "<|python_start|>ping'"),
        ("hermes", "<|TOOL|>ping"),
        ("harmony", '<||>commentary to=functions.ping"<|message|>'),
        ("harmony", "<|c|>commentary to=functions.ping a b c d<|message|>{}"),
    ],
)
def test_what_once_was_not(name: str, text: str) -> None:
    is_read_the_same(get(name), text)


@pytest.mark.share(14)
@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_any_words_of_a_format_are_read_the_same_however_they_come(format: Format, data: st.DataObject) -> None:
    own = words(format)
    runs = st.tuples(st.integers(0, len(own) - 1), st.integers(1, 8)).map(lambda run: "".join(own[run[0] :][: run[1]]))
    odd = st.sampled_from([*COMMON, *ROLES]) | st.sampled_from(own).map(str.upper)
    text = data.draw(st.lists(runs | runs | odd, min_size=2, max_size=8).map("".join))
    is_read_the_same(format, text)


@pytest.mark.share(30)
@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
@settings(max_examples=EXAMPLES // 8)
@given(data=st.data(), limit=st.integers(10_000, 10_100))
def test_also_where_a_call_is_longer_than_its_limit(format: Format, data: st.DataObject, limit: int) -> None:
    own = words(format)
    runs = st.tuples(st.integers(0, len(own) - 1), st.integers(1, 20)).map(lambda run: "".join(own[run[0] :][: run[1]]))
    pieces = data.draw(st.lists(runs | st.sampled_from(COMMON), min_size=4, max_size=8))
    pieces.insert(data.draw(st.integers(0, 4)), "one two " * 1250)
    is_read_the_same(format, "".join(pieces), (3, 1009), Limits(call=limit))
