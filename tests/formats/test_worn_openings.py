"""A call whose opening is worn, but names the tool plainly, is read or is an error: it is never only text."""

from __future__ import annotations

import pytest
from corpora import source
from format_tools import spec

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, Text, merge
from agentkit.formats import CATALOG, Parser
from agentkit.formats.format import Braced
from agentkit.messages import ToolCall

SEARCH = spec("search", None, ("query",), query="string", limit="integer")
CALLS = [ToolCall("", "search", {"query": "a"}), ToolCall("", "search", {"query": "b", "limit": 5})]
BRACED = [f.name for f in CATALOG if any(isinstance(part, Braced) for part in f.call)]


def read(text: str, format: str) -> list[Event]:
    """The events of a text, which are the same by the character."""
    whole = formats.parse(text, format, [SEARCH])
    parser = Parser(format, [SEARCH])
    events = [e for c in text for e in parser.feed(c)]
    assert merge([*events, *parser.close()]) == whole
    assert source(whole) == text
    return whole


def made(events: list[Event]) -> list[ToolCall]:
    return [ToolCall("", e.call.name, e.call.arguments) for e in events if isinstance(e, CallEnd)]


@pytest.mark.parametrize("format", ["cline", "xml"])
@pytest.mark.parametrize("space", ["\n", " \n", "\n  "])
@pytest.mark.parametrize("after", ["", "\n<search><query>b</query></search>"])
def test_a_tool_s_tag_that_does_not_end_before_a_parameter_s_is_an_error(format: str, space: str, after: str) -> None:
    events = read(f"Well:\n<search{space}<query>07 am</query>\n<limit>5</limit>\n</search>{after}", format)
    assert [e.code for e in events if isinstance(e, CallError)] == ["invalid_json"]
    assert made(events) == ([ToolCall("", "search", {"query": "b"})] if after else [])


@pytest.mark.parametrize("format", ["cline", "xml"])
@pytest.mark.parametrize(
    "text",
    [
        "Say <search <thing> or",
        "<search\n\n<query>",
        "a <search and <query> b",
        "<search <query",
        "The <search <query>b</query>",
    ],
)
def test_what_only_mentions_a_tool_s_tag_is_text(format: str, text: str) -> None:
    assert all(isinstance(e, Text) for e in read(text, format))


@pytest.mark.parametrize("format", BRACED)
def test_a_call_after_another_one_needs_no_token_before_its_word(format: str) -> None:
    opening = str(formats.get(format).call[0])
    first, second = (formats.render_calls(format, [call], [SEARCH]) for call in CALLS)
    for between in ("", "\n", "\n\n"):
        text = first + between + second.replace(opening, "call:")
        assert made(read(text, format)) == CALLS
        cut = read(text[:-30], format)
        assert (made(cut), [e.code for e in cut if isinstance(e, CallError)]) == (CALLS[:1], ["truncated_call"])
    for prose in ("call:search", "call: search{", " call:other{}", "call:searching{}", "Then call:search{}"):
        events = read(first + prose, format)
        assert (made(events), any(isinstance(e, CallError) for e in events)) == (CALLS[:1], False)


@pytest.mark.parametrize("format", BRACED)
@pytest.mark.parametrize("space", [" ", "\t", "\n"])
def test_white_space_may_be_before_the_colon(format: str, space: str) -> None:
    text = "".join(formats.render_calls(format, [call], [SEARCH]) for call in CALLS)
    assert made(read(text.replace("call:", f"call{space}:"), format)) == CALLS
