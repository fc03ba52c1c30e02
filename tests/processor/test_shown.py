"""Calls that a model only shows to the reader stay text, in any format; those beside quotations and lists are made."""

# ruff: noqa: RUF001 - the quotation marks of many languages

from __future__ import annotations

import textwrap

import pytest
from recovering import Tools, stays, told

from agentkit import formats
from agentkit.messages import ToolCall
from agentkit.tool.registry import ToolRegistry

ADD = ToolRegistry(Tools()).specs(["add"])
CALL = [ToolCall("c1", "add", {"a": 1, "b": 2})]
FORMATS = [f.name for f in formats.auto()]
OWN_FENCE = {"json_fence", "tool_code"}  # a fence may open a call in them
ONE_LINE = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'

FENCES = {
    "fence in an item": "Like this:\n\n- ```\n  %s\n  ```",
    "named fence in a numbered item": "Like this:\n\n1. ```xml\n   %s\n   ```",
    "fence in a quote": "The manual says:\n> ```\n> %s\n> ```\nI will not.",
    "named fence in a quote": "> ```xml\n> %s\n> ```",
    "span around lines": "Write `\n%s\n` to call.",
}
WAYS = {
    **FENCES,
    "straight marks": 'You write "%s" there.',
    "curly marks": "He said “%s” to me.",
    "French marks": "On écrit «%s» ici.",
    "a quote": "He said:\n> %s",
    "a quote with words": "> Write %s",
    "code at the start": "    %s",
    "code below an empty line": "So:\n\n    %s",
}
PLAIN = {
    "apostrophes": "I don't think that's Tom's, or the dogs'; let's see.",
    "curly apostrophes": "I don’t think that’s Tom’s, or the dogs’.",
    "a closed quotation": 'He said "write it" and “now”, « ici », 「这」.',
    "a quotation in another line": 'He said "write\nit down" to me.',
    "a list": "- one\n- two\n  1. three",
    "a quote with a fence": "> ```\n> code\n> ```\n> so",
    "a backtick": "A ` here",
    "a quote": "> quoted\n",
    "a table": "| a |\n|---|\n| b |",
    "code": "    x = 1",
}  # fmt: skip


def share(ways: dict[str, str], name: str) -> dict[str, str]:
    """A third of the ways for each format, another one for its neighbours; all of them for `hermes`."""
    place = FORMATS.index(name)
    return {way: text for n, (way, text) in enumerate(ways.items()) if name == "hermes" or (n + place) % 3 == 0}


def shown(name: str) -> str:
    """A call of the format, as one writes it in a list's item."""
    return formats.render_calls(name, CALL, ADD).strip()


def put(way: str, call: str) -> str:
    """The text that shows a call in this way; its further lines are indented like the first."""
    start = way.partition("%s")[0].rpartition("\n")[2]
    return way % textwrap.indent(call, " " * len(start) if start.isspace() else "").lstrip()


@pytest.mark.share(12)
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_shown_stays_text(name: str) -> None:
    for way, text in share(WAYS, name).items():
        if name not in OWN_FENCE or way not in FENCES:
            try:
                stays(put(text, shown(name)))
            except AssertionError as error:
                raise AssertionError(f"{way}: {put(text, shown(name))!r}") from error


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in OWN_FENCE])
def test_a_call_below_plain_prose_is_made(name: str) -> None:
    for way, text in share(PLAIN, name).items():
        ran = told(f"{text}\n\n{shown(name)}")
        assert ran.made == [("add", 1, 2)], way


def test_a_quoted_call_costs_its_neighbours_nothing() -> None:
    quoted = f'He said "{ONE_LINE}" to me.'
    for text in (f"{ONE_LINE}\n{quoted}", f"{quoted} {ONE_LINE}", f"{ONE_LINE}\n{quoted}\n{ONE_LINE}"):
        ran = told(text)
        assert len(ran.made) == text.count("<tool_call>") - 1
        assert quoted in ran.text
