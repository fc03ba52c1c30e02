"""Calls that a model only shows to the reader stay text, in any format; those beside quotations and lists are made."""

# ruff: noqa: RUF001 - the quotation marks of many languages

from __future__ import annotations

import textwrap

import pytest
from recovering import HERMES, INVOKE, KIMI, Tools, cut, stays, told

from agentkit import formats
from agentkit.events import CallEnd
from agentkit.messages import ToolCall
from agentkit.tool.registry import ToolRegistry

ADD = ToolRegistry(Tools()).specs(["add"])
CALL = [ToolCall("c1", "add", {"a": 1, "b": 2})]
FORMATS = [f.name for f in formats.auto()]
OWN_FENCE = {"json_fence", "tool_code"}  # a fence may open a call in them
ONE_LINE = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'

FENCES = {
    "fence in an item": "Like this:\n\n- ```\n  %s\n  ```",
    "fence in an item with words after it": "Like this:\n\n* ```\n  %s\n  ```\n\nThat is all.",
    "named fence in a numbered item": "Like this:\n\n1. ```xml\n   %s\n   ```",
    "fence of tildes in an item": "Like this:\n+ ~~~\n  %s\n  ~~~\n",
    "fence in an item of an item": "Like this:\n- 2) ```\n     %s\n     ```",
    "fence in a later item": "Like this:\n\n- First.\n- ```text\n  %s\n  ```\n- Last.",
    "fence at the start": "- ```\n  %s\n  ```",
    "fence in a quote": "The manual says:\n> ```\n> %s\n> ```\nI will not.",
    "named fence in a quote": "> ```xml\n> %s\n> ```",
    "fence in a quote without spaces": ">```\n>%s\n>```\n",
    "fence of tildes in a quote of a quote": "> > ~~~\n> > %s\n> > ~~~\n",
    "fence in a quote in an item": "- > ```\n  > %s\n  > ```",
    "fence in an item in a quote": "> - ```\n>   %s\n>   ```\n",
    "span around lines": "Write `\n%s\n` to call.",
    "span of two backticks around a line": "``\n%s``\n",
}
WAYS = {
    **FENCES,
    "straight marks": 'You write "%s" there.',
    "single marks": "He said '%s' to me.",
    "curly marks": "He said “%s” to me.",
    "German marks": "Er sagte: „%s“, und ging.",
    "French marks": "On écrit «%s» ici.",
    "corner brackets": "你写「%s」。",
    "a quote": "He said:\n> %s",
    "a quote with words": "> Write %s",
    "a quote of a quote": "> > %s\n\nSo he said.",
    "code at the start": "    %s",
    "code below an empty line": "So:\n\n    %s",
    "code below code": "So:\n \n\tx = 1\n\t%s",
}
PLAIN = {
    "apostrophes": "I don't think that's Tom's, or the dogs'; let's see.",
    "an apostrophe for what is left out": "It was the '90s, rock 'n' roll.",
    "curly apostrophes": "I don’t think that’s Tom’s, or the dogs’.",
    "inches": 'A 6" pipe, 5\' long.',
    "a closed quotation": 'He said "write it" and “now”, « ici », 「这」.',
    "a quotation in another line": 'He said "write\nit down" to me.',
    "a list": "- one\n- two\n  1. three",
    "a list with a fence": "- ```\n  code\n  ```\n- two",
    "a quote with a fence": "> ```\n> code\n> ```\n> so",
    "a quote of a quote with a fence": ">> ~~~\n>> > ```\n>> ~~~",
    "a backtick": "A ` here",
    "a backtick at the end of a line": "A `\nhere",
    "marks like those of a list": "-```\n1.``` * - 3",
    "a quote": "> quoted\n",
    "a heading": "# Example",
    "a table": "| a |\n|---|\n| b |",
    "a link": "[a]: https://example.org",
    "code": "    x = 1",
    "code in an item": "-     x = 1",
}  # fmt: skip
IN_PROSE = [
    "So %s It's done, don't worry.",
    "I don't know, it's the dogs' or Tom’s, so\n%s",
    'For the 6" pipe, so %s The pipe is 6" long.',
    "He said \"good\", “fine”, « bon », 「好」 and 'well', so %s He said \"good\", “fine” and 'well'.",
    '- Step 1: so %s He said "good.',
]


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


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in {*OWN_FENCE, "xlam"}])
def test_a_fence_in_an_item_is_code_in_text_mode(name: str) -> None:
    for way, text in FENCES.items():
        for size in (None, 1, 4):
            parser = formats.Parser(name, ADD)
            events = [e for piece in cut(put(text, shown(name)), size) for e in parser.feed(piece)] + parser.close()
            assert not [e for e in events if isinstance(e, CallEnd)], (way, size)


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in OWN_FENCE])
def test_a_call_below_plain_prose_is_made(name: str) -> None:
    for way, text in share(PLAIN, name).items():
        ran = told(f"{text}\n\n{shown(name)}")
        assert ran.made == [("add", 1, 2)], way


@pytest.mark.parametrize("text", IN_PROSE)
@pytest.mark.parametrize("call", [HERMES, INVOKE, KIMI, ONE_LINE])
def test_a_call_in_plain_prose_is_made(text: str, call: str) -> None:
    assert told(text % call).made == [("add", 1, 2)]


def test_a_quoted_call_costs_its_neighbours_nothing() -> None:
    quoted = f'He said "{ONE_LINE}" to me.'
    for text in (f"{ONE_LINE}\n{quoted}", f"{quoted} {ONE_LINE}", f"{ONE_LINE}\n{quoted}\n{ONE_LINE}"):
        ran = told(text)
        assert len(ran.made) == text.count("<tool_call>") - 1
        assert quoted in ran.text


DIRECTLY_BELOW = [
    "So:\n    %s",
    "So:\n      and\n    %s",
    "So <!-- so -->\n    %s",
    "<!-- so -->\n\nSo:\n    %s",
    "- So:\n      %s",
    "1. So:\n    %s",
    "So\n\t%s",
    "# So\n%s",
    "# So\n   %s",
    "#so\n    %s",
    "So\n- - a\n      %s",
    "***so\n    %s",
    "[a]: b c\n    %s",
    "So\n[a]: b\n    %s",
    "```a``` so\n    %s",
    "a - b\n    %s",
    "-    %s",
    "1.  %s",
    "> quoted\n\n%s",
    "> quoted\n# So\n%s",
    "> quoted\n---\n%s",
    "> quoted\n- %s",
    "> quoted\n1. so %s",
    "> # quoted\n%s",
    "> quoted\n>\n%s",
    "> ```\n> quoted\n> ```\n%s",
    "> quoted\n```\nx\n```\n%s",
]


@pytest.mark.parametrize("text", DIRECTLY_BELOW)
def test_a_call_directly_below_prose_is_made(text: str) -> None:
    for call in (INVOKE, ONE_LINE, KIMI):
        assert told(text % call).made == [("add", 1, 2)]


def test_an_item_that_is_a_call_is_made() -> None:
    assert told(f"- {ONE_LINE}\n- {ONE_LINE}").made == [("add", 1, 2)] * 2
