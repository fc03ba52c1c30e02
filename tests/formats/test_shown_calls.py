"""A call in thinking or in code is not made, in any format; what is quoted does not depend on how the text is cut."""

from __future__ import annotations

import pytest
from format_tools import PING, TOOLS
from hypothesis import given
from hypothesis import strategies as st

from agentkit.events import CallEnd, CallError, Event, Text, Thinking, merge
from agentkit.formats import CATALOG, Format, Parser, auto, get, render_calls
from agentkit.formats.asides import SHOWN
from agentkit.formats.declaration_checks import THOUGHTS
from agentkit.messages import ToolCall

CALL = render_calls("hermes", [ToolCall("", "ping", {})], [PING])
MARKS = [
    "`",
    "``",
    "```",
    "~~~",
    "> ",
    ">",
    "- ",
    "1. ",
    "+ ",
    "2)",
    "*",
    "\n",
    "\r\n",
    " ",
    "\t",
    "a",
    "b c",
    "<",
    "\\",
    "  ",
]
MARKS += ["<pre>", "</pre>", "<code>", "</code>", "<!--", "-->", "<p>", "</p>"]
FENCED = {"json_fence", "tool_code"}  # calls in a fence: `auto` does not read them


def read(formats: Format | tuple[Format, ...], text: str, size: int | None = None) -> list[Event]:
    """The merged events of a text in pieces of this size; None: whole."""
    parser, events, size = Parser(formats, TOOLS), list[Event](), size or len(text) or 1
    for at in range(0, len(text), size):
        events += parser.feed(text[at : at + size])
    return merge(events + parser.close())


def made(events: list[Event]) -> int:
    return sum(isinstance(event, CallEnd) for event in events)


@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
@pytest.mark.parametrize("tag", [name for tag in THOUGHTS for name in (tag, tag.capitalize(), tag.upper())])
def test_a_call_in_thinking_is_not_made_and_one_after_it_is(format: Format, tag: str) -> None:
    call = render_calls(format, [ToolCall("", "ping", {})], [PING])
    for text in (f"<{tag}>\nperhaps {call}\n</{tag}>\n{call}", f"So.\n<{tag}>\n\n{call}\n\n</{tag}>\n{call}"):
        for size in (None, 1):
            assert made(read(format, text, size)) == 1
            assert made(read(auto(), text, size)) == (format.name not in FENCED)


SHOWN_BETWEEN = [
    *((f"<{tag}>", f"</{tag}>") for tag in SHOWN),
    ('<script type="text/plain">', "</script>"),
    ("<!--", "-->"),
    ("<![CDATA[", "]]>"),
    ("[code]", "[/code]"),
]


@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_a_call_that_is_shown_is_not_made_and_one_after_it_is(format: Format) -> None:
    call = render_calls(format, [ToolCall("", "ping", {})], [PING])
    for opens, closes in SHOWN_BETWEEN:
        for shown in (
            f"{opens}\n{call}\n{closes}",
            f"An example:\n{opens}{call}{closes}",
            f"So {opens}{call}{closes}.",
        ):
            text = f"{shown}\n\n{call}"
            assert made(read(format, text)) == made(read(format, text, 3)) == 1, text
            assert made(read(auto(), text)) == (format.name not in FENCED), text
        mentioned = f"Put it in {opens} first.\n\n{call}"
        assert made(read(format, mentioned)) == made(read(format, mentioned, 1)) == 1, mentioned


@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
@pytest.mark.parametrize("label", ["python", "xml", "text", "sh", "yaml"])
def test_a_fence_with_another_label_shows_an_example_and_hides_no_call_after_it(format: Format, label: str) -> None:
    call = render_calls(format, [ToolCall("", "ping", {})], [PING])
    if call.startswith("```"):  # it would end the fence
        return
    text = f"For example:\n```{label}\n{call}\n```\nNow really:\n{call}"
    for size in (None, 1):
        events = read(format, text, size)
        assert made(events) == 1
        assert not [event for event in events if isinstance(event, CallError)]
        assert isinstance(events[0], Text)
        assert events[0].text.startswith(text[: text.rindex("Now")])


def test_what_kimi_thinks_between_its_own_tokens_is_thinking() -> None:
    call = render_calls("kimi_k2", [ToolCall("", "ping", {})], [PING])
    for formats in (get("kimi_k2"), auto()):
        for size in (None, 1):
            events = read(formats, f"◁think▷perhaps {call}◁/think▷Yes.\n{call}", size)
            assert [e.text for e in events if isinstance(e, Thinking)] == [f"perhaps {call}"]
            assert made(events) == 1


@given(st.lists(st.sampled_from([*MARKS, "\n", CALL]), max_size=14).map("".join))
def test_what_is_quoted_does_not_depend_on_the_cuts(text: str) -> None:
    """Random fences, spans, and markers of lists and quotations."""
    whole = read(get("hermes"), text)
    for size in (1, 2, 5):
        assert read(get("hermes"), text, size) == whole


IN_SPANS = [  # what precedes a span in its line, and the length of the span's runs
    ("", (1, 2, 3)),
    ("In Markdown, escape a backtick as \\`. ", (1, 2, 3)),
    ("Two of them: \\`\\`, or \\\\\\`. ", (1, 2, 3)),
    ("A backslash \\\\ is none, ", (1, 2)),
    ("The key \\`` is odd. ", (2, 3)),
    ("\\``` ", (1, 3)),
    ("a ` b, ", (2, 3)),
    ("a ``` b `` c, ", (1,)),
    ("a ``` b ` c ``` d, ", (1, 2, 3)),
    ("a ` b ``c`` d, ", (2, 3)),
    ("`a\\` and ", (1, 2, 3)),
    ("``` ", (1, 2)),
    ("``` a `` b ", (1,)),
    ("- ``` ", (2,)),
]
BESIDE_SPANS = [
    "A \\` is odd.",
    "A \\`` is odd.",
    "a ` b ``c``",
    "``` ``a``",
    "a `` b ` c",
    "C:\\",
    "a ``` b `` c ` d",
    "`a\\`",
]


@pytest.mark.share(24)
@pytest.mark.parametrize("format", [f for f in CATALOG if f.name not in FENCED], ids=lambda f: f.name)
@pytest.mark.parametrize(("before", "lengths"), IN_SPANS)
def test_a_call_in_a_span_is_text_whatever_backticks_precede_it(
    format: Format, before: str, lengths: tuple[int, ...]
) -> None:
    call = render_calls(format, [ToolCall("", "ping", {})], [PING]).strip()
    for n in lengths:
        text = f"{before}Write {'`' * n}{call}{'`' * n}."
        for formats in (auto(), format)[: 1 if format.name == "xlam" and n > 2 else 2]:  # whose calls may be in fences
            whole = read(formats, text)
            assert not made(whole), text
            assert all(read(formats, text, size) == whole for size in (1, 3))


@pytest.mark.parametrize("before", BESIDE_SPANS)
def test_backticks_hide_no_call_after_their_paragraph(before: str) -> None:
    for text in (f"{before}\n\n{CALL}", f"{before}\n{CALL}", f"{before} {CALL}\n\n`a`"):
        for size in (None, 1, 3):
            assert made(read(get("hermes"), text, size)) == 1, text
