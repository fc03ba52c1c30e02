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
    "straight marks": 'He said "write %s" to me.',
    "straight marks, before only": 'Say "please %s".',
    "straight marks, after only": 'Say "%s please".',
    "straight marks with spaces": 'Say " %s " now.',
    "single marks": "He said 'write %s' to me.",
    "an apostrophe in single marks": "He said 'don't write %s' to me.",
    "curly marks": "He said “write %s” to me.",
    "single curly marks": "He said ‘don’t write %s’ to me.",
    "German marks": "Er sagte: „Schreib %s“, und ging.",
    "French marks with spaces": "On écrit « %s » ici.",
    "French marks": "On écrit «ceci : %s».",
    "Danish marks": "Skriv »nu %s« her.",
    "single angles": "On écrit ‹ %s › ici.",
    "corner brackets": "你写「%s」。",
    "corner brackets with words": "你写「请 %s 吧」。",
    "white corner brackets": "『 %s 』と書く。",
    "a quotation in a quotation": "He said “I wrote ‘so: %s’ there” and left.",
    "inches in a quotation": 'Of a 6" pipe, he said "write %s for a 7" one".',
    "after a closed quotation": 'I "quote", and he said "write %s" to me.',
    "marks in a list": '- He said "write %s" to me.',
    "a quote in an item": "Like this:\n\n- > %s",
    "a quote in a numbered item": "Like this:\n\n1. - > Write %s",
    "code below an item": "Like this:\n\n- an item\n\n      %s",
    "code below a numbered item": "Like this:\n\n10. an item\n\n        %s\n\n11. so",
    "code at the start": "    %s",
    "code below a heading": "# Example\n    %s",
    "code below a comment": "So:\n<!-- an example -->\n    %s",
    "code below a comment in an item": "- <!-- an example -->\n      %s",
    "code below a heading in an item": "- ### Example ###\n      %s",
    "code below an underlined heading": "Example\nof this\n===\n    %s",
    "code below a heading underlined by one dash": "Example\n-\n      %s",
    "code below a rule": "So:\n***\n    %s",
    "code below a rule with spaces": "So:\n - - -\n\t%s",
    "code below a fence": "```\nx = 1\n```\n    %s",
    "code below a fence of tildes": "So:\n~~~ xml\nx\n~~~\n    %s",
    "code below a table": "| a |\n|---|\n    %s",
    "code below rows of a table": "a | b\n:-: | ---\n1 | 2\n3 | 4\n    %s",
    "code below a link": "[a]: https://example.org/a\n    %s",
    "code below a link with a title": "So\n\n[a b]: <x> 'A title'\n    %s",
    "code below code": "# So\n    a\n    %s",
    "code below an empty item": "-\n      %s",
    "code in an item's line": "-     %s",
    "code in a numbered item's line": "So:\n1.     %s",
    "code in the line of an item's item": "- 2)\t     %s",
    "code in an item's line below code": "-     a\n      %s",
    "a lazy line of a quote": "> He said\n%s",
    "a lazy line with words": "> He said\nwrite %s",
    "a second lazy line": ">He said\nwrite\n  %s",
    "a lazy line of a quote in an item": "- > He said\n  %s",
    "a lazy line indented by four": "> He said\n    %s",
    "a lazy line of a quote of a quote": "> > He said\n> so:\n%s",
    "code below an item's item": "Like this:\n\n- an item\n  - another\n\n        %s",
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
BEHIND = {
    "nothing": "",
    "words": " It's done, don't worry.",
    "inches": ' The pipe is 6" long.',
    "a quotation": " He said \"good\", “fine” and 'well'.",
    "a quotation that opens": ' He said "good.',
}
TO_HERE = {
    "no mark": "So",
    "an apostrophe": "I don't know, it's the dogs' or Tom’s, so",
    "inches": 'For the 6" pipe, so',
    "a closed quotation": "He said \"good\", “fine”, « bon », 「好」 and 'well', so",
    "an item": "- Step 1: so",
}


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


@pytest.mark.share(12)
@pytest.mark.parametrize("way", TO_HERE)
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("call", [HERMES, INVOKE, KIMI, ONE_LINE])
def test_a_call_in_plain_prose_is_made(way: str, behind: str, call: str) -> None:
    assert told(f"{TO_HERE[way]} {call}{BEHIND[behind]}").made == [("add", 1, 2)]
    assert told(f"{TO_HERE[way]}\n{call}{BEHIND[behind]}").made == [("add", 1, 2)]


def test_a_quotation_ends_in_the_line_in_which_the_call_ends() -> None:
    assert told(f'He said "write {ONE_LINE}\n" to me.').made == [("add", 1, 2)]
    assert told(f'He said "write\n{ONE_LINE}" to me.').made == [("add", 1, 2)]
    stays(f'He said "write {ONE_LINE} {ONE_LINE}" to me.')
    stays(f'He said "write {HERMES}" to me.')


def test_a_quoted_call_costs_its_neighbours_nothing() -> None:
    quoted = f'He said "write {ONE_LINE}" to me.'
    for text in (
        f"{ONE_LINE}\n{quoted}",
        f"{quoted} {ONE_LINE}",
        f"{ONE_LINE}\n{quoted}\n{ONE_LINE}",
        f"{quoted}\n{HERMES}",
    ):
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
    for below in (f"1. So:\n\n   {ONE_LINE}", f"- So:\n\n    {ONE_LINE}", f"1. a\n    - So:\n\n        {ONE_LINE}"):
        assert told(below).made == [("add", 1, 2)]
