"""Calls in Markdown's code do not run: fences in items and quotations, as another reader of Markdown has them."""

from __future__ import annotations

import pytest
from format_tools import PING, TOOLS
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from agentkit.agent import Agent
from agentkit.events import CallEnd
from agentkit.formats import Format, Parser, auto, get, render_calls
from agentkit.messages import MarkupPart, TextPart, ToolCall
from agentkit.testing.scripted_model import ScriptedModel

CALL = render_calls("hermes", [ToolCall("", "ping", {})], [PING]).replace("\n", "")
MARKDOWN = MarkdownIt("commonmark")
MADE: list[str] = []


def ping() -> str:
    """Answer."""
    MADE.append("ping")
    return "pong"


def made(formats: Format | tuple[Format, ...], text: str, size: int) -> int:
    parser = Parser(formats, TOOLS)
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    return sum(isinstance(event, CallEnd) for event in (*events, *parser.close()))


def native(text: str) -> int:
    MADE.clear()
    Agent(ScriptedModel([text, "Done."]), [ping]).run_sync("Hi.")
    return len(MADE)


def shown(text: str) -> int:
    """How many of the calls Markdown shows as code."""
    return sum(token.content.count("ping") for token in MARKDOWN.parse(text) if token.type in ("fence", "code_block"))


ITEMS = ("- ", "* ", "1. ", "1) ", "-   ")


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0) -> list[str]:
    """The lines of some blocks: paragraphs, calls, fences, and items and quotations with such blocks.

    A fence in an item may be left open; then text follows that is not the end of it without indentation, since models
    that do not indent write that.
    """
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4 if depth == 0 else 2))):
        kind = draw(st.sampled_from(["text", "fence", "item", "item", "quote"][: 2 if depth == 2 else 5]))
        if kind == "text":
            lines += [draw(st.sampled_from(["Some text.", "Then:", CALL, f"So {CALL}"]))]
        elif kind == "fence":
            lines += draw(fences(open=depth > 0))
        else:
            inner = draw(blocks(depth + 1))
            mark = "> " if kind == "quote" else draw(st.sampled_from(ITEMS))
            below = "> " if kind == "quote" else " " * len(mark)
            lines += [mark + inner[0], *(below + line if line or kind == "quote" else "" for line in inner[1:])]
            if kind == "quote" or draw(st.booleans()):
                lines += ["", "Some text."]
            else:
                lines += [mark + "next"]
        lines += [""] * draw(st.integers(0, 1) if kind == "text" else st.just(1))
    return lines


@st.composite
def fences(draw: st.DrawFn, *, open: bool) -> list[str]:
    mark = draw(st.sampled_from(["```", "~~~", "````"]))
    inner = draw(st.lists(st.sampled_from(["x = 1", "", CALL, "- a"]), max_size=2))
    closed = not open or draw(st.booleans())
    indent = "" if open else " " * draw(st.integers(0, 3))  # of the fence, not of what is in it
    before = ["Some text.", ""] if indent else []  # directly after a list, it would be in its last item
    first = draw(st.sampled_from(["ls", "  ls"]))
    opening = indent + mark + draw(st.sampled_from(["", "sh"]))
    return [*before, opening, first, *inner, indent + mark if closed else "end"]


@given(blocks().map("\n".join), st.sampled_from([1, 3, 1000]))
def test_what_markdown_shows_as_code_is_not_called(text: str, size: int) -> None:
    hidden = text.count("ping") - shown(text)
    for formats in (get("hermes"), auto()):
        assert made(formats, text, size) <= hidden, text
    if shown(text):
        assert native(text) <= hidden, text


@pytest.mark.parametrize(
    "text",
    [
        "1. ```\n   x\n```\n%s",  # its end is not indented
        "1. ```sh\nls\n```\n%s",  # nor is anything in it
        "- ```sh\n  ls\n- b\n\n%s",
        "> ```sh\n> ls\n\n%s",
        "> - ```sh\n>   ls\n\n%s",
        "- > ```sh\n  > ls\n- %s",
    ],
)
def test_a_call_after_a_container_whose_fence_was_left_open_is_made(text: str) -> None:
    for formats in (get("hermes"), auto()):
        for size in (1, 3, 1000):
            assert made(formats, text % CALL, size) == 1
    assert native(text % CALL) == 1


SHOWN = [
    # a fence that is indented more than what is in it
    "So:\n\n  ```xml\n\n%s\n\n  ```\n\nShall I?",
    "  ```xml\n  x\n\n%s\n  ```",
    "  ```xml\n  x\n%s\n  ```",
    "  ```yaml\n- %s\n- b\n  ```",
    "   ```markdown\n1. %s\n   ```",
    "   ```\n> %s\n   ```",
    "- a\n\nText\n\n  ```\n\n%s\n  ```",
    # what is indented like code ends no fence
    '```python\ndef f():\n    """Write it like this:\n\n    ```\n    %s\n    ```\n    """\n```',
    '```python\ndef f():\n\t"""Write it like this:\n\n\t```\n\t%s\n\t```\n\t"""\n```',
    '- ```python\n  def f():\n      """Write:\n\n      ```\n      %s\n      ```\n      """\n  ```',
    # a quotation of which only the first line is marked
    "> ```xml\n%s\n```\n",
    "> ```xml\nSo:\n```\n%s\n```",
    "> ```\nSo:\n~~~\n%s\n~~~",
]


@pytest.mark.parametrize("text", SHOWN)
def test_a_call_in_such_a_fence_is_shown(text: str) -> None:
    for formats in (get("hermes"), auto()):
        for size in (1, 3, 1000):
            assert made(formats, text % CALL, size) == 0
    assert native(text % CALL) == 0


FIRST = ["", "<pre>", "<pre>\n\n", "```", "```json\n", "~~~\n", "    ", "\t", "> ", "- ```\n  ", "`", "<!-- ", "So "]


@given(st.sampled_from(FIRST), blocks().map("\n".join), st.sampled_from([1, 2, 1000]))
def test_a_byte_order_mark_changes_no_call(first: str, text: str, size: int) -> None:
    for said in (first + text, first + CALL):
        for formats in (get("hermes"), auto()):
            assert made(formats, f"\ufeff{said}", size) == made(formats, said, size), said
    assert native(f"\ufeff{first}{CALL}") == native(first + CALL)


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("chunk", [None, 1])
def test_a_byte_order_mark_stays_in_the_text(first: str, chunk: int | None) -> None:
    counts = []
    for mark in ("", "\ufeff"):
        MADE.clear()
        run = Agent(ScriptedModel([f"{mark}{first}{CALL}", "Done."], chunk=chunk), [ping]).run_sync("Hi.")
        counts.append(len(MADE))
        said = "".join(part.text for part in run.messages[1].content if isinstance(part, TextPart | MarkupPart))
        assert said.startswith(mark + first.rstrip())
    assert counts[0] == counts[1]
