"""Calls that stand in one section, behind one that is none: each is made, or an error says that it was not read.

And in Python: what would have to be computed is an error, never a call that runs.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from corpora import source
from format_tools import ASK, PING

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, Text, merge
from agentkit.formats import CATALOG, Format, Parser
from agentkit.messages import ToolCall

TOOLS = (ASK, PING)


def read(text: str, given: str | Format) -> list[Event]:
    """The events of a text, which are the same by the character."""
    whole = formats.parse(text, given, TOOLS)
    parser = Parser(given, TOOLS)
    events = [e for c in text for e in parser.feed(c)]
    assert merge([*events, *parser.close()]) == whole
    assert source(whole) == text
    return whole


def made(events: list[Event]) -> list[tuple[str, dict[str, object]]]:
    return [(e.call.name, dict(e.call.arguments)) for e in events if isinstance(e, CallEnd)]


@pytest.mark.parametrize(
    "text",
    [
        "See [the docs](http://a.b/c), and [1], [2].",
        "Call [the tool] and then wait.\n\nOr not.",
        "An interval [0, 1) and a list [a, b].",
        "It is [not ping, but another one].",
    ],
)
def test_brackets_in_prose_are_prose(text: str) -> None:
    for given in ("pythonic", "llama4_pythonic", "xlam"):
        assert read(text, given) == [Text(text)]


@pytest.mark.parametrize("language", ["c++", "c#", "asp.net", "objective-c", "json"])
def test_a_fence_with_a_languages_name_inside_another_closes_none(language: str) -> None:
    text = f'```markdown\n```{language}\nx\n```\n```json\n{{"name": "ping", "arguments": {{}}}}\n```\n```'
    assert made(read(text, "json_fence")) == []


PONG = ToolCall("", "pong", {})
ALONE = ("python", "glm4", "json_fence")
"""Here each call stands alone, and only its name tells it from prose: an unknown one is text."""
SHOWN = {("llama3_json", 0), ("llama3_json", 2), ("xlam", 0)}
"""Here the name of an offered tool tells JSON from data, or the calls on both sides: without them it is shown."""


@pytest.mark.parametrize("format", [f for f in CATALOG if not f.tagged and f.name not in ALONE], ids=lambda f: f.name)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_call_of_an_unknown_tool_among_others_is_one_wherever_it_stands(format: Format, place: int) -> None:
    """Its answer is `unknown_tool`; it is never text beside calls that run."""
    calls = [ToolCall("", "ping", {}), ToolCall("", "ask", {"text": "a"})]
    calls.insert(place, PONG)
    text = formats.render_calls(format, calls, (*TOOLS, replace(PING, name="pong", element=None)))
    events = read(text, format)
    if format.name == "pythonic" and not place:
        assert made(events) == []  # no name tells that this list is one of calls: it is one expression
        return
    if (format.name, place) in SHOWN:
        calls.remove(PONG)
        assert "pong" in source([e for e in events if isinstance(e, Text)])
    assert made(events) == [(c.name, c.arguments) for c in calls]
    if PONG not in calls:
        return
    assert not [e for e in events if isinstance(e, CallError)]
    assert not source([e for e in events if isinstance(e, Text)]).strip()


# ---------------------------------------------------------------- Python

EXPRESSIONS = (
    "ping() if False else None", "ping() for p in x", "ping() and x", "ping() or x", "ping() in x", "ping() is None",
    "ping().stdout", "ping()[0]", "ping()()", "ping() + 1", "ping() - 1", "ping() * 2", "ping() == 1", "ping() != 1",
    "ping() < 1", "ping() | x", "not ping()", "x = ping()", "x and ping()", "[ping() for p in x][0]", "{'a': ping()}",
    "f(ping())", "lambda: ping()", "await ping()", "return ping()", "ping(): x", "print(ping(), 1)", "print(1, ping())",
    "if x: ping()", "for p in x: ping()",
)  # fmt: skip
"""Of all these, only Python could tell whether `ping` runs, or what is made of what it returns."""
AROUND = {
    "pythonic": ("[", "]"),
    "llama4_pythonic": ("<|python_start|>[", "]<|python_end|>"),
    "lfm2": ("<|tool_call_start|>[", "]<|tool_call_end|>"),
    "olmo3": ("<function_calls>\n", "\n</function_calls>"),
    "tool_code": ("```tool_code\n", "\n```"),
    "python": ("", ""),
}


@pytest.mark.parametrize("given", AROUND)
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_what_python_would_have_to_compute_is_never_run(given: str, text: str) -> None:
    start, end = AROUND[given]
    events = read(f"{start}{text}{end}", given)
    assert ("ping", {}) not in made(events)
    if given in ("olmo3", "tool_code") or text.startswith("ping()"):
        assert [e for e in events if isinstance(e, CallError)]


@pytest.mark.parametrize("given", AROUND)
@pytest.mark.parametrize(
    "text", ["print(ask(text='a'))", "print( default_api.ask(text='a') )", "default_api.ask(text='a')"]
)
def test_a_call_that_is_printed_is_the_call(given: str, text: str) -> None:
    start, end = AROUND[given]
    events = read(f"{start}{text}{end}", given)
    assert made(events) == ([("ask", {"text": "a"})] if given != "python" else [])


@pytest.mark.parametrize(
    "text", ["ping()", "ping()\n", "ping()\nDone.", "ping()  # now", "ping().", "Now:\n    ping()"]
)
def test_a_call_that_stands_alone_in_its_line_runs(text: str) -> None:
    for given in ("python", "pythonic"):
        assert made(read(text, given)) == [("ping", {})]


@pytest.mark.parametrize("space", ["\n", "\n\n", ""])
def test_a_fence_that_opens_where_one_should_close_is_the_next_call(space: str) -> None:
    """A fence with a language's name closes none: the first call lacks its end, and neither is lost."""
    calls = [f'```json\n{{"name": "ask", "arguments": {{"q": "{n}"}}}}' for n in "ab"]
    asked = [("ask", {"q": "a"}), ("ask", {"q": "b"})]
    assert made(read(f"{calls[0]}{space}{calls[1]}\n```", "json_fence")) == asked
    assert made(read(f"{calls[0]}\n```\n{calls[1]}\n```", "json_fence")) == asked
