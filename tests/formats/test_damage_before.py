"""Damage that hides the calls after it: none of them becomes text without an error.

A fence with text before it in its line, a section's opening that is worn to what begins someone else's text, a section
that ends inside a call, a list inside a list.
"""

from __future__ import annotations

import pytest
from format_tools import ASK, PING
from raw_values import SAVE, outcomes, read, saved

from agentkit import formats
from agentkit.events import CallEnd, Text
from agentkit.formats import CATALOG, Format
from agentkit.formats.asides import LITERALS
from agentkit.formats.edges import fenced, weak
from agentkit.formats.format import Envelope, KeyEnvelope, Tag, edge
from agentkit.formats.worn import lacks_some
from agentkit.messages import ToolCall

TOOLS = (ASK, PING)
CALLS = [ToolCall("", "ask", {"text": f"no {n}"}) for n in range(3)]
every_format = pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
BEFORE = ('"', "Two words ", "So: ", "`a` ")
UNREADABLE = ('"{}"', "{}", "x = 1", '{"nme": 1}', '{\n "a": "b"\n}')


@every_format
def test_a_fence_with_text_before_it_in_its_line_hides_no_call_after_its_end(format: Format) -> None:
    call = formats.render_calls(format, CALLS[:1], TOOLS)
    for before in BEFORE:
        for body in UNREADABLE:
            text = f"{before}```json\n{body}\n```\n{call}"
            assert outcomes(read(format, text, TOOLS))[-1:] == [("ask", {"text": "no 0"}, ())], text


OPEN = [f for f in CATALOG if not any(s.section is not None and fenced(s.section.open) for s in f.shapes)]


@pytest.mark.parametrize("format", OPEN, ids=lambda f: f.name)
def test_a_fence_that_opens_a_line_quotes_a_call_whatever_ended_a_line_before_it(format: Format) -> None:
    call = formats.render_calls(format, CALLS[:1], TOOLS)
    for before in ("See ```json\n\n", "See ```\n", "See ```json\n \r\n", "A ```b``` c\n", "See ```json\na\n\n"):
        for fence in ("```", "````", "~~~", "```text"):
            text = f"{before}{fence}\n{call}\n{fence[:4].rstrip('t')}\n"
            assert [o for o in outcomes(read(format, text, TOOLS)) if not isinstance(o, str)] == [], text


@every_format
def test_a_sections_opening_that_is_worn_to_anothers_token_hides_no_call(format: Format) -> None:
    text = formats.render_calls(format, CALLS[:1], TOOLS)
    opening = edge(format.section.open).strip() if format.section is not None else ""
    for token in (token for token in LITERALS if lacks_some(token, opening)):
        assert outcomes(read(format, text.replace(opening, token, 1), TOOLS)) != [], token


ENDED = [f for f in CATALOG if f.section is not None and not f.section.each and edge(f.section.close).strip("]} \n")]


@pytest.mark.parametrize("format", [f for f in ENDED if len(f.call) > 1], ids=lambda f: f.name)
def test_a_section_that_ends_before_the_end_of_a_call_hides_no_call(format: Format) -> None:
    text = formats.render_calls(format, CALLS, TOOLS)
    last = format.call[-1]
    end = f"</{last.name}>" if isinstance(last, Tag) else str(last)
    assert format.section is not None
    at = text.index(end)
    events = read(format, f"{text[:at]}{edge(format.section.close).strip()}{text[at:]}", TOOLS)
    for call in CALLS[1:]:
        made = [e.call.arguments for e in events if isinstance(e, CallEnd)]
        assert call.arguments in made or any(isinstance(o, str) for o in outcomes(events)), events
    shown = "".join(e.text for e in events if isinstance(e, Text))
    assert not [call for call in CALLS if call.arguments["text"] in shown], events


LISTS = [f for f in CATALOG if f.section is not None and isinstance(f.call[0], Envelope | KeyEnvelope)]
LISTS = [f for f in LISTS if not weak(f.section.open)]  # type: ignore[union-attr]


@pytest.mark.parametrize("format", LISTS, ids=lambda f: f.name)
@pytest.mark.parametrize(
    "between", ['"{}"', "{'name': 'ping', 'arguments': {}}", '"a", {"b": {"c": 1}}', "'x'", "{\"a\": '}'}"]
)
def test_a_list_goes_on_behind_a_list_and_something_else_in_it(format: Format, between: str) -> None:
    text = formats.render_calls(format, CALLS, TOOLS)
    first, second, third = (e.call.raw for e in formats.parse(text, format, TOOLS) if isinstance(e, CallEnd))
    start, end = text.index(first), text.index(third) + len(third)
    for inner in (f"[{first}, {second}]", f"[{first}]"):
        events = read(format, f"{text[:start]}{inner}, {between}, {third}{text[end:]}", TOOLS)
        assert outcomes(events)[-1:] == [("ask", {"text": "no 2"}, ())], events
        assert any(isinstance(o, str) for o in outcomes(events)), events


@pytest.mark.parametrize("name", ["dr_tulu", "legacy", "xml"])
def test_of_a_call_whose_opening_tag_is_broken_no_content_runs(name: str) -> None:
    """A call with quotes is in one of its attributes, and another call or half of one in its content."""
    opening, closing = saved(name, text="TEXT")
    bare, _ = saved(name)
    last = f"{bare}last{closing}"
    for attribute in (f"{opening}q1{closing}", '<b c="d">', '<b c="d"/>', f"{bare}q1{closing}", opening):
        for quoted in (last.replace("last", "q2"), opening, f"{opening}q2{closing}"):
            text = f"{opening.replace('TEXT', f'x{attribute}y')}a{quoted}b{closing}\n{last}"
            whole = ("save", {"text": f"x{attribute}y", "more": f"a{quoted}b"}, ())
            got = [o for o in outcomes(read(name, text, (SAVE, PING))) if not isinstance(o, str)]
            assert [o for o in got if o not in (whole, ("save", {"more": "last"}, ()))] == [], text
