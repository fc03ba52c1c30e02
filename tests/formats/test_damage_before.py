"""Damage that hides the calls after it: none of them becomes text without an error.

A fence with text before it in its line, a section's opening that is worn to what begins someone else's text, a section
that ends inside a call, a list inside a list.
"""

from __future__ import annotations

import pytest
from format_tools import ASK, PING
from raw_values import SAVE, outcomes, read, saved

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, Text, merge
from agentkit.formats import CATALOG, Format, Parser
from agentkit.formats.asides import LITERALS
from agentkit.formats.edges import fenced, weak
from agentkit.formats.format import Envelope, Json, KeyEnvelope, Tag, edge
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
def test_a_sections_opening_or_end_that_is_worn_to_anothers_token_hides_no_call(format: Format) -> None:
    text = formats.render_calls(format, CALLS[:1], TOOLS)
    opening, end = (edge(format.section.open), edge(format.section.close)) if format.section is not None else ("", "")
    for token in (token for token in LITERALS if lacks_some(token, opening.strip())):
        assert outcomes(read(format, text.replace(opening.strip(), token, 1), TOOLS)) != [], token
    for token in (token for token in LITERALS if lacks_some(token, end.strip())):
        for between in ("", "\n", "\n\n"):
            worn = text.replace(end.strip(), token, 1) + between + text
            assert outcomes(read(format, worn, TOOLS)) == [("ask", {"text": "no 0"}, ())] * 2, worn


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


@pytest.mark.share(12)
@pytest.mark.parametrize("format", LISTS, ids=lambda f: f.name)
@pytest.mark.parametrize(
    "between",
    [
        '"{}"', "{'name': 'ping', 'arguments': {}}", '"a", {"b": {"c": 1}}', "'x'", "{\"a\": '}'}",
        r'{"a": "b \" c"}', r'"\"}\""', r"{'a': 'it\'s'}", '{"a": "' + "b" * 300 + '"}', f'{{"a": {["b" * 60] * 20}}}',
        '{\n "a": {\n  "b": 1\n }\n}', ", ".join(['{"a": 1}'] * 9), '{"a": [{"b": {"c": {"d": 1}}}]}',
    ],
)  # fmt: skip
def test_a_list_goes_on_behind_a_list_and_something_else_in_it(format: Format, between: str) -> None:
    text = formats.render_calls(format, CALLS, TOOLS)
    first, second, third = (e.call.raw for e in formats.parse(text, format, TOOLS) if isinstance(e, CallEnd))
    start, end = text.index(first), text.index(third) + len(third)
    for inner in (f"[{first}, {second}]", f"[{first}]"):
        events = read(format, f"{text[:start]}{inner}, {between}, {third}{text[end:]}", TOOLS)
        told = outcomes(events)[-1:]
        if told != [("ask", {"text": "no 2"}, ())]:  # where only a brace would end the list, more is in question
            errors = [e.call.raw for e in events if isinstance(e, CallError)]
            assert (format.name, len(between) > 30) == ("xlam1", True)
            assert "no 2" in errors[-1], events
        assert any(isinstance(o, str) for o in outcomes(events)), events


@pytest.mark.parametrize("format", LISTS, ids=lambda f: f.name)
@pytest.mark.parametrize(
    "behind", [" x,\n", "x, y, ", "; ", ', "x', ', {"a": "b', ", 'x\n", ", , , ", '"x", ', ", [1], "]
)
def test_what_is_behind_a_list_is_read_the_same_in_any_cutting(format: Format, behind: str) -> None:
    text = formats.render_calls(format, CALLS, TOOLS)
    first, *_, last = (e.call.raw for e in formats.parse(text, format, TOOLS) if isinstance(e, CallEnd))
    start, end = text.index(first), text.index(last)
    for filler in ("", "y" * 70, "y" * 600):
        read(format, f"{text[:start]}[{first}]{behind}{filler}{last}{text[end + len(last) :]}", TOOLS)


OPENED = [f for f in CATALOG if isinstance(f.call[0], str) and f.call[0].strip() and not weak(f.call[0].strip())]
OPENED = [f for f in OPENED if f.section is None and len(f.call) > 1 and isinstance(f.call[1], Envelope)]


@pytest.mark.parametrize("format", LISTS, ids=lambda f: f.name)
def test_an_error_does_not_take_in_what_opens_the_next_call(format: Format) -> None:
    """Of its own format in another section, or of another format; what is damaged names a tool."""
    assert format.section is not None
    opening = edge(format.section.open).strip().rstrip("[")
    for damaged in (f"{opening}\n<x>ping<y>\n</x>\n", f'{opening}{{"nme": "ping"}}', f'{opening}"ping": x{{}}'):
        for other in (format, *OPENED):
            text = f"{damaged}\n\n{formats.render_calls(other, CALLS[:2], TOOLS)}"
            declared = (format,) if other is format else (format, other)
            events = read_all(declared, text)
            made = [e.call for e in events if isinstance(e, CallEnd)]
            assert {call.format for call in made} <= {other.name}, text
            assert not any("no " in e.text for e in events if isinstance(e, Text)), text
            errors = "".join(e.call.raw for e in events if isinstance(e, CallError))
            assert all(c.arguments["text"] in errors or c.arguments in [m.arguments for m in made] for c in CALLS[:2])
            assert made or "x>ping" not in damaged or _name(format) != _name(other), text


def _name(format: Format) -> str:
    """Under which key calls have their name."""
    return next((part.name for part in format.call if isinstance(part, Envelope)), "")


def read_all(declared: tuple[Format, ...], text: str) -> list[Event]:
    """The events in these formats, the same whole and by the character."""
    whole = formats.parse(text, declared, TOOLS)
    parser = Parser(declared, TOOLS)
    events = [e for c in text for e in parser.feed(c)]
    assert merge([*events, *parser.close()]) == whole, text
    return whole


BODIES = [f for f in CATALOG if any(isinstance(p, Json | Envelope) for p in f.call)]
BODIES = [f for f in BODIES if isinstance(f.call[0], str) and not weak(f.call[0])]


@pytest.mark.parametrize("format", BODIES, ids=lambda f: f.name)
def test_a_fence_around_the_json_of_a_call_ends_with_its_own_backticks(format: Format) -> None:
    """Those behind them may be the format's own, whatever the cutting."""
    text = formats.render_calls(format, CALLS[:2], TOOLS)
    first, _ = (e.call.raw for e in formats.parse(text, format, TOOLS) if isinstance(e, CallEnd))
    start, end = first.index("{"), first.rindex("}") + 1
    for ticks in ("```", "````"):
        fenced = f"{first[:start]}{ticks}json\n{first[start:end]}\n{ticks}{first[end:].lstrip()}"
        got = outcomes(read(format, text.replace(first, fenced, 1), TOOLS))
        assert got == [("ask", {"text": "no 0"}, ()), ("ask", {"text": "no 1"}, ())], fenced


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


@every_format
@pytest.mark.parametrize("comment", ["<!-->", "<!--->", "<!-- x -->", "<!---->"])
def test_a_comment_that_is_over_hides_no_call_after_it(format: Format, comment: str) -> None:
    call = formats.render_calls(format, CALLS[:1], TOOLS)
    for between in ("\n", "\n\n", " so:\n"):
        assert outcomes(read(format, f"a {comment}{between}{call}", TOOLS)) == [("ask", {"text": "no 0"}, ())]


@every_format
def test_a_comment_that_is_not_over_hides_a_call_in_its_paragraph(format: Format) -> None:
    call = formats.render_calls(format, CALLS[:1], TOOLS)
    for opening in ("<!--", "<!-- x", "<!--x->"):
        made = [o for o in outcomes(read(format, f"{opening}\n{call.strip()}\n-->", TOOLS)) if not isinstance(o, str)]
        assert made == [], opening
