"""Every kind of damage inside every part of every format, in three cuttings; and what a fault of ours costs."""

from __future__ import annotations

import logging
import os
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from corpora import source
from damaged_texts import CALLED, FIND, shapes, tokens, whole
from format_tools import NOTE, TOOLS

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.events import CallEnd, CallError, CallStart, Event, SourceEvent, Text, merge
from agentkit.formats import CATALOG, Format, Limits, Parser, between, engine, parse, render_calls, sequence, valueends
from agentkit.formats.bodies.kinds import KINDS
from agentkit.formats.format import (
    Envelope,
    Json,
    Pairs,
    Shape,
    TagParameters,
)
from agentkit.formats.prosereader import ProseReader
from agentkit.formats.reader import Reader, Wait
from agentkit.messages import ToolCall

EVERY = int(os.environ.get("AGENTKIT_DAMAGE", "11"))  # one of so many texts is read; 1 reads them all

LONG = "1" * 400
VALUES = (
    '"x"', "'x'", '"x" "y"', '"x" + "y"', '"%s" % "x"', 'f"{x}"', 'r"\\d"', 'b"x"', '"\\d"', '"it\\\'s"', '"\\x4"',
    '"\\ud800"',
    "'\\ud800'", '"\ud800"', '["\ud800"]', '"a\nb"', '"', "'", '"""', "2*3", "10/4", "6*12+2", "10-5", "9**9**9",
    "1/0",
    LONG, LONG * 12, "0x" + "f" * 300, "0x" + "f" * 9000, "1e999", "-1e-999", f"{LONG}*{LONG}", f"1.5*{LONG}",
    "0644", "1_0",
    "2024-12-25", "true", "True", "null", "None", "NaN", "[" * 200, "{" * 200, "(" * 200, "[" * 200 + "]" * 200,
    "[1,]",
    '{"a": 1,}', '{"a" 1}', "{'a': 1}", '{"a": 1, "a": 2}', "{1: 2}", "{", "}", "]", ")", "(", ",", ":", "=", "\\",
    "", " ",
    "\x00", "é\u2028", "<", "</", "<![CDATA[", "&#xD800;", "`", "```", "x" * 300,
)  # fmt: skip
"""Text in the place of a value."""


BODIES = (
    "{}", "{}}", "[]", "[{}]", "null", '""', '"{}"', '{"text": "x"', '{"text": "x",}', "{'text': 'x'}", "{text: 1}",
    '{"text": "x"} trailing', '{"object": {"a": 1}}', '```json\n{"text": "x"}\n```',
)  # fmt: skip
"""Text in the place of arguments in JSON."""


def damaged(format: Format) -> Iterator[str]:
    """A call with each of these in place of a string, its quotes included or not, a number, and all arguments."""
    call = ToolCall("", FIND.name, {"text": "PLACE", "number": 97531})
    for text in (whole(format, shape, call) for shape in shapes(format)):
        for value in VALUES:
            yield text.replace("PLACE", value)
            yield re.sub("[\"']?PLACE[\"']?", lambda _, value=value: value, text)
            yield text.replace("97531", value)
        yield from (re.sub(r'\{"text":[^{}]*\}', lambda _, body=body: body, text) for body in BODIES)


def read(text: str, cuts: list[int], given: Any) -> list[Event]:
    parser = Parser(given, CALLED)
    events: list[SourceEvent] = []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        events += parser.feed(text[start:end])
    return merge([*events, *parser.close()])


@pytest.mark.share(60)
@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_damage_in_any_part_raises_nothing_loses_nothing_and_is_read_the_same_in_any_cutting(format: Format) -> None:
    chance = random.Random(format.name)
    for text in islice(damaged(format), 0, None, EVERY):
        events = read(text, [], format)
        assert source(events) == text
        assert [e for e in events if isinstance(e, CallError) and e.code == "internal_error"] == []
        assert read(text, list(range(1, len(text))), format) == events
        assert read(text, sorted(chance.sample(range(len(text)), min(4, len(text)))), format) == events


RAW = [(f, s, p) for f in CATALOG for s in shapes(f) for p in s.call if isinstance(p, Pairs | TagParameters)]


@pytest.mark.parametrize(("format", "shape", "part"), RAW, ids=lambda x: getattr(x, "name", ""))
def test_reading_stops_wherever_something_may_end_or_open_a_value(format: Format, shape: Shape, part: Any) -> None:
    """In capitals as in small letters: else what one chunk tells would be lost where it comes in another."""
    own = tokens(whole(format, shape, ToolCall("", NOTE.name, {"text": "a"})))
    end = valueends.end_of_value(shape, part)
    met = 0
    for text in ("".join(own[n:]) for n in range(len(own))):
        for written in (text, text.upper(), text.swapcase()):
            if end.boundary.match(written):
                found, met = end.stops(written), met + 1
                assert found is not None
                assert found.start() == 0
    assert met


# ---------------------------------------------------------------- a fault of ours


def broken(r: Reader, call: Any, part: Any) -> Wait:
    """A part's reader with a fault, in the middle of a call."""
    yield from r.space()
    r.at += 1
    raise KeyError("a fault")


SOUND = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_fault_of_ours_costs_the_call_in_which_it_shows(
    size: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sequence, "KINDS", {**KINDS, Json: replace(KINDS[Json], read=broken)})
    odd = "<function=note>{'text': 1}</function>"  # a plain call is not read part by part
    text = f"One {SOUND} two {odd} three {SOUND} four"
    parser = Parser(["hermes", "function_json"], TOOLS)
    events = [e for at in range(0, len(text), size) for e in parser.feed(text[at : at + size])]
    events = merge([*events, *parser.close()])
    assert source(events) == text
    (error,) = (e for e in events if isinstance(e, CallError))
    assert (error.code, error.call.name, error.call.raw) == ("internal_error", "note", odd)
    assert error.message == "agentkit failed to read this call (KeyError: 'a fault') at position 81"
    assert [e.call.name for e in events if isinstance(e, CallEnd)] == ["ping", "ping"]
    assert [e.index for e in events if isinstance(e, CallStart | CallEnd | CallError)] == [0, 0, 1, 1, 2, 2]
    assert [(r.name, r.levelno) for r in caplog.records] == [("agentkit.formats", logging.ERROR)]


@pytest.mark.parametrize(
    ("owner", "where"),
    [
        (sequence, "repaired_call"),
        (sequence, "skip_damage"),
        (sequence, "plain_call"),
        (engine, "next_at_once"),
        (engine, "get"),
        (between, "after_call"),
        (ProseReader, "to_opener"),
        (ProseReader, "ticks"),
        (ProseReader, "entries"),
    ],
)
def test_whatever_part_of_reading_is_broken_the_parser_raises_nothing_and_loses_nothing(
    owner: object, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsers = {size: Parser("hermes", TOOLS) for size in (1, 1000)}

    def fault(*_: Any) -> Any:
        raise RecursionError("a fault")

    monkeypatch.setattr(owner, where, fault)
    text = f"One `x` <tool_call>{{'name': 1}}</tool_call>\n{SOUND} two"
    for size, parser in parsers.items():
        events = [e for at in range(0, len(text), size) for e in parser.feed(text[at : at + size])]
        events += parser.close()
        assert source(merge(events)) == text
        assert where == "get" or any(isinstance(e, CallError) for e in events)
        if where == "get":
            return


def test_what_is_damaged_and_never_ends_is_given_up_at_the_limit() -> None:
    text = '<tool_call>{"name": "note", x' + "y" * 20_000
    parser = Parser("hermes", TOOLS, limits=Limits(call=10_000))
    events = [e for c in text for e in parser.feed(c)]
    events = merge([*events, *parser.close()])
    assert source(events) == text
    (error,) = (e for e in events if isinstance(e, CallError))
    assert error.code == "limit"


def test_a_fault_in_the_public_door_is_an_error_event_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence, "KINDS", {**KINDS, Envelope: replace(KINDS[Envelope], read=broken)})
    events = formats.parse(f"{SOUND.replace('{}', '[]')} and more", "hermes", TOOLS)
    assert [e.code for e in events if isinstance(e, CallError)] == ["internal_error"]
    assert events[-1] == Text(" and more")


def quoting(format: Format) -> Iterator[str]:
    """A call whose value quotes what closes such a call and then a whole other call, marked as meant to the letter."""
    call = render_calls(format, [ToolCall("", "ping", {})], TOOLS)
    one = render_calls(format, [ToolCall("", "note", {"text": "x1x"})], TOOLS)
    for inner in ("", "\n"):
        value = one.partition("x1x")[2] + inner + call
        with suppress(FormatError):  # no text at all carries it
            text = render_calls(format, [ToolCall("", "note", {"text": value})], TOOLS)
            if "<![CDATA[" in text:
                yield text


QUOTING = [(format, text) for format in CATALOG for text in quoting(format)]


@pytest.mark.share(8)
@pytest.mark.parametrize(("format", "text"), QUOTING, ids=[f"{f.name}-{n}" for n, (f, _) in enumerate(QUOTING)])
def test_what_is_quoted_to_the_letter_is_no_call_wherever_the_text_is_cut(format: Format, text: str) -> None:
    for at in range(len(text)):
        made = [e.call.name for e in parse(text[:at], format, TOOLS) if isinstance(e, CallEnd)]
        assert "ping" not in made, text[:at]
