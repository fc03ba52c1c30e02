"""A call whose tags are in upper case, or begin with a capital, is the same call, or an error: it is never lost.

Over every format whose calls have tags. Tokens (`<|…|>`), names and values are as the format writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from corpora import source
from format_tools import spec

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, Text, merge
from agentkit.formats import CATALOG, Format, Parser
from agentkit.formats.format import Braced, NestedTags
from agentkit.messages import ToolCall

MOVE = spec("move", None, ("src",), src="string", dst="string", n="integer")
TOOLS = (MOVE, spec("ping", None, ()))
CALLS = [ToolCall("", "move", {"src": "AAA\nBBB", "dst": "c d", "n": 7}), ToolCall("", "ping", {})]
CASES: dict[str, Callable[[str], str]] = {
    "upper": lambda name: name.upper(),
    "capital": lambda name: name.capitalize(),
    "mixed": lambda name: "".join(c.upper() if n % 2 else c for n, c in enumerate(name)),
}


def respelt(text: str, case: str) -> str:
    """The text with its tags in this case, apart from those that are names."""
    return re.sub(
        r"(?<=<)(/?)(?!(?:move|ping|src|dst|n)>)([A-Za-z][\w:.-]*)(?=[\s>=])",
        lambda tag: tag[1] + CASES[case](tag[2]),
        text,
    )


def read(given: Any, text: str, sizes: tuple[int, ...]) -> list[Event]:
    whole = formats.parse(text, given, TOOLS)
    for size in sizes:
        parser = Parser(given, TOOLS)
        events = [e for i in range(0, len(text), size) for e in parser.feed(text[i : i + size])]
        assert merge([*events, *parser.close()]) == whole, text
    assert source(whole) == text
    return whole


TAGGED = [f for f in CATALOG if not f.tagged and (t := formats.render_calls(f, CALLS, TOOLS)) != respelt(t, "upper")]
every_tagged = pytest.mark.parametrize("format", TAGGED, ids=lambda f: f.name)


def answers(given: Any, text: str, sizes: tuple[int, ...] = (1, 5)) -> list[object]:
    """Return the outcome of each call: its name and arguments, or the code of its error."""
    found = (e for e in read(given, text, sizes) if isinstance(e, CallEnd | CallError))
    return [(e.call.name, e.call.arguments) if isinstance(e, CallEnd) else e.code for e in found]


@every_tagged
@pytest.mark.parametrize("case", CASES)
def test_calls_whose_tags_are_in_another_case_are_the_same(format: Format, case: str) -> None:
    rendered = formats.render_calls(format, CALLS, TOOLS)
    known = {f.name for f in formats.auto()}
    for given in (format, formats.auto()) if format.name in known else (format,):
        made = answers(given, f"I will move it.\n\n{respelt(rendered, case)}")
        if format.name == "functiongemma":  # its strings are between tokens that look like tags
            assert made[0] == "invalid_json"
        else:
            assert made == answers(given, f"I will move it.\n\n{rendered}")
            assert given is not format or made == [(call.name, call.arguments) for call in CALLS]


@every_tagged
@pytest.mark.parametrize("case", CASES)
def test_a_value_that_contains_such_a_tag_comes_back(format: Format, case: str) -> None:
    if any(isinstance(part, NestedTags | Braced) for part in format.call):
        return  # no value can contain its token
    rendered = formats.render_calls(format, CALLS[:1], TOOLS)
    for tag in dict.fromkeys(re.findall(r"</?[A-Za-z][^<>]*>?", respelt(rendered, case))):
        for value in (f"x {tag} y", f"{tag}y", f"x\n{tag}", f"{tag}\n{tag}"):
            call = ToolCall("", "move", {"src": value, "dst": "c"})
            (made,) = formats.calls(formats.parse(formats.render_calls(format, [call], TOOLS), format, TOOLS))
            assert made.arguments == call.arguments, value


@every_tagged
def test_what_prose_mentions_is_text_in_any_case(format: Format) -> None:
    rendered = formats.render_calls(format, CALLS[:1], TOOLS)
    for tag in dict.fromkeys(re.findall(r"</?[A-Za-z][^<>]*>", rendered)):
        said, shown = f"The tag {tag} is old.", f"`{tag}` moves it."
        assert answers(format, respelt(said, "upper")) == answers(format, said)
        assert answers(format, respelt(shown, "upper")) == []


def test_only_parts_of_calls_are_read_in_any_case() -> None:
    for text in ("A <Think> is a tag.", "He said <ANSWER>no</ANSWER>.", "<Turn|>"):
        for format in CATALOG:
            assert merge(formats.parse(text, format, TOOLS)) == [Text(text)], format.name
