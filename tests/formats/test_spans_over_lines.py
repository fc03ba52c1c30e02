"""Markdown's code is code, also in a span or fence that opens in a line after text."""

from __future__ import annotations

import re

import pytest
from format_tools import PING, TOOLS
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from agentkit.events import CallEnd, merge
from agentkit.formats import CATALOG, Format, Parser, get, parse, render_calls
from agentkit.messages import ToolCall

MARKDOWN = MarkdownIt()
FENCED = {"json_fence", "tool_code", "xlam"}  # calls in a fence
BEFORE = ["Example: ", "**Call:** ", "1. Example: ", "- So: ", "<s>", "<b>So</b> ", "Use ", "a\nb ", "# No\nSo: ", "x:"]
OPEN = ["```xml\n", "````xml\n", "```c++ \n", "```\n", "``\n", "`\n", "`the call\n", "``so it\nis ", "```xml so\n", "`"]
CLOSE = [
    "\n```\nI will not.",
    "\n````",
    "``` is it.",
    "\n``` ok",
    "`` is it.",
    "\n``\nok",
    "` like it.",
    "\n`\n\nSo.",
    "``\n\n",
]


def made(format: Format, text: str) -> int:
    """The calls in a text, however it is cut."""
    found = set[int]()
    for size in (len(text), 1, 3):
        parser = Parser(format, TOOLS)
        events = [e for at in range(0, len(text), size) for e in parser.feed(text[at : at + size])] + parser.close()
        found.add(sum(isinstance(event, CallEnd) for event in events))
    (count,) = found
    return count


def is_code(text: str, call: str) -> bool:
    """Return True if Markdown renders the call as code."""
    tokens = [child for token in MARKDOWN.parse(text) for child in (token, *(token.children or ()))]
    code = [" ".join(t.content.split()) for t in tokens if t.type in ("code_inline", "fence", "code_block")]
    return any(" ".join(call.split()) in one for one in code)


@pytest.mark.parametrize("format", [f for f in CATALOG if f.name not in FENCED], ids=lambda f: f.name)
def test_what_markdown_renders_as_code_is_code(format: Format) -> None:
    call = render_calls(format, [ToolCall("", "ping", {})], [PING]).strip()
    place = CATALOG.index(format)
    for n, opening in enumerate(OPEN):
        before = BEFORE[(n + place) % len(BEFORE)]
        for closing in CLOSE:
            text = f"{before}{opening}{call}{closing}"
            if "\n\n" not in call and is_code(text, call):
                assert not made(format, text), text


PIECES = ["`", "``", "```", "```xml\n", "\n", "\n\n", "a ", "b", ". ", "- ", "> ", "# ", "\\"]
CALL = render_calls("hermes", [ToolCall("", "ping", {})], [PING]).strip().replace("\n", "")


@given(
    st.lists(st.sampled_from(PIECES), max_size=6).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=6).map("".join),
)
def test_what_markdown_renders_as_a_span_is_code(before: str, after: str) -> None:
    text = f"So {before}{CALL}{after}"
    ends_block = re.search(r"\n[> ]*```+\s*\Z", before)  # models join a block's end to a call
    if is_code(text, CALL) and not ends_block:
        assert not made(get("hermes"), text), text


@pytest.mark.parametrize("before", ["a ` b", "a `", "a ```xml", "So: ```xml", "``a` b", "a `b`` c ` d", "a \\` b ` c"])
@pytest.mark.parametrize("gap", ["\nb\n", "\n\n", "\n\nSo ", "\nb\n\n"])
@pytest.mark.parametrize("after", ["", "\nso", "\n\nIt is `so`, ``so``.\n\n```xml\na\n```\n"])
def test_backticks_that_none_close_hide_no_later_call(before: str, gap: str, after: str) -> None:
    if "\n\n" in gap or not after.startswith("\n\nIt"):
        assert made(get("hermes"), f"{before}{gap}{CALL}{after}") == 1


@pytest.mark.parametrize("name", ["hermes", "xml", "llama3_json"])
def test_backticks_that_begin_a_line_are_what_is_left_of_a_fence(name: str) -> None:
    """As models write it: one backtick and a bracket before each call, and one after it."""
    call = render_calls(name, [ToolCall("", "ping", {})], [PING]).strip()
    assert made(get(name), f"The calls:\n\n`}}\n{call}\n`\n`}}\n{call}\n`") == 2


@pytest.mark.parametrize("fence", ["```xml", "````json", "~~~xml", "~~~~c++ "])
@pytest.mark.parametrize("format", [f for f in CATALOG if f.name not in FENCED], ids=lambda f: f.name)
def test_a_fence_after_text_is_one_if_a_fence_closes_it(format: Format, fence: str) -> None:
    """Markdown has no such fence of tildes, or with an empty line in it, but models write them."""
    call = render_calls(format, [ToolCall("", "ping", {})], [PING]).strip()
    before = BEFORE[(CATALOG.index(format) + len(fence)) % len(BEFORE)]
    if "`" in call:
        return
    mark = fence[0] * 3 if fence[3].isalpha() else fence[0] * 4
    for gap in ("\n", "\n\n", "\nIt is\n\n"):
        assert not made(format, f"{before}{fence}{gap}{call}\n{mark}\n")
        assert not made(format, f"{before}{fence}{gap}{call}\n\nor\n\n{call}\n\n{mark}{mark[0]}")
        assert made(format, f"{before}{fence}{gap}{call}\n\n{mark}\n\n{call}") == 1
        shown = fence[0] == "`" and "\n\n" not in gap + call
        for after in (
            "\n",
            f"\n\n{fence}\n{mark}\n",
            f"\n\nSo: {mark} x",
            f"\n\n{'~~~~' if fence[0] == '`' else '````'}\n",
        ):
            assert shown or made(format, f"{before}{fence}{gap}{call}{after}") == 1


def test_a_span_that_long_text_leaves_open_is_one_in_any_cut() -> None:
    assert made(get("hermes"), f"So `{CALL}{'x' * 3000}\n\n{CALL}") == 1


@pytest.mark.parametrize("size", range(1, 8))
def test_an_empty_line_ends_a_paragraph_in_which_backticks_wait_in_any_cut(size: int) -> None:
    text = ")```n\n]]\n\n]><e>```<note>"
    parser = Parser("xml", TOOLS)
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    assert merge([*events, *parser.close()]) == merge(parse(text, "xml", TOOLS))
