"""Every kind of damage inside every part of every format, in three cuttings; and what a fault of ours costs."""

from __future__ import annotations

import logging
import os
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from corpora import source
from damaged_texts import call_text, shapes, tokens, whole
from format_tools import ANYTHING, NOTE, PING, TOOLS

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.events import CallEnd, CallError, CallStart, Event, SourceEvent, Text, merge
from agentkit.formats import CATALOG, Format, Limits, Parser, between, engine, parse, render_calls, sequence, valueends
from agentkit.formats.bodies.kinds import KINDS
from agentkit.formats.format import (
    Braced,
    CallId,
    CountedName,
    Envelope,
    Json,
    KeyEnvelope,
    Name,
    NameTag,
    NestedTags,
    Pairs,
    PythonCall,
    Recipient,
    Section,
    Shape,
    Skip,
    Tag,
    TagParameters,
    TextArgument,
    ToolElement,
)
from agentkit.formats.prosereader import ProseReader
from agentkit.formats.reader import Reader, Wait
from agentkit.messages import ToolCall

EVERY = int(os.environ.get("AGENTKIT_DAMAGE", "101"))  # one of so many texts is read; 1 reads them all

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
"""What stands where a value should."""

BODIES = (
    "{}", "{}}", "[]", "[{}]", "null", '""', '"{}"', '{"text": V}', '{"text": V', '{"text": V,}', "{'text': V}",
    "{text: V}",
    '{"text": V} trailing', '{"number": V, "items": [V]}', '{"object": {"a": V}}', "V", '```json\n{"text": V}\n```',
)  # fmt: skip
"""What stands where the arguments should; V for a value."""


def part_texts(part: Any, body: str, value: str) -> Iterator[str]:  # noqa: C901 - a table of the parts
    """How one part may be written, damaged."""
    match part:
        case str(text):
            yield text
        case Tag(name, closing):
            yield f"</{name}>" if closing else f"<{name}>"
        case Name(prefix):
            yield f"{prefix}anything"
        case CountedName():
            yield "functions.anything:0"
        case CallId() | Recipient():
            yield "anything"
        case Skip(written):
            yield written
        case NameTag(name, attribute):
            yield f'<{name} {attribute}="anything">'
        case Json():
            yield body
        case Envelope(name, arguments):
            yield f'{{"{name}": "anything", "{arguments[0]}": {body}}}'
            yield f'{{"{arguments[0]}": {body}, "{name}": "anything"}}'
            yield f'{{"{name}": "anything", "args": {body}}}'
            yield f'{{"type": "function", "function": {{"{name}": {value}, "{arguments[0]}": {body}}}}}'
            yield f'{{"{name}": {value}, "description": {value}}}'
        case KeyEnvelope():
            yield f'{{"anything": {body}}}'
            yield f"{{{value}: {body}}}"
        case PythonCall():
            yield f"anything(text={value})"
            yield f"anything({value}, number={value})"
        case Pairs(key, middle, close):
            yield f"{key}object{middle}{value}{close}"
            yield f"{key}number{middle}{value}{close}{key}items{middle}{value}{close}"
            yield body
        case TagParameters(name, attribute):
            yield f'<{name} {attribute}="object">{value}</{name}>'
            yield f'<{name} {attribute}="number">{value}</{name}><{name} {attribute}="items">{value}</{name}>'
            yield body
        case Braced(quote):
            yield f"{{text:{quote}{value}{quote},object:{{a:{value}}},number:{value}}}"
            yield body
        case NestedTags(token):
            yield f"{token}<object>{token}<a>{value}{token}</a>{token}</object>{token}<number>{value}{token}</number>"
        case TextArgument():
            yield value
        case ToolElement():
            yield f"<any-thing><object>{value}</object><number>{value}</number></any-thing>"
            yield f'<any-thing number="{value}">{body}</any-thing>'
        case _:
            raise TypeError(f"no damage is known for {part!r}")


def edge(text: str | Tag) -> str:
    return text if isinstance(text, str) else next(part_texts(text, "", ""))


def shape_texts(shape: Shape, body: str, value: str) -> Iterator[str]:
    """A call in this shape, with the damage in each of its parts in turn; a sound call stands behind it."""
    variants = [list(part_texts(part, body, value)) for part in shape.call]
    section = shape.section or Section("")
    for n in range(max(map(len, variants))):
        inner = "".join(texts[min(n, len(texts) - 1)] for texts in variants)
        yield f"{edge(section.open)}{inner}{edge(section.close)}"


def damaged(format: Format) -> Iterator[str]:
    """Every damage inside every part of the format, one in `EVERY`."""
    count = 0
    for shape in format.shapes:
        for body in BODIES:
            for value in VALUES if "V" in body else VALUES[:1]:
                for text in shape_texts(shape, body.replace("V", value), value):
                    count += 1
                    if count % EVERY == 0:
                        yield text


def read(text: str, cuts: list[int], given: Any) -> list[Event]:
    parser = Parser(given, (ANYTHING, NOTE, PING))
    events: list[SourceEvent] = []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        events += parser.feed(text[start:end])
    return merge([*events, *parser.close()])


@pytest.mark.share(60)
@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_damage_in_any_part_raises_nothing_loses_nothing_and_is_read_the_same_in_any_cutting(format: Format) -> None:
    chance = random.Random(format.name)
    for text in damaged(format):
        whole = read(text, [], format)
        assert source(whole) == text
        assert [e for e in whole if isinstance(e, CallError) and e.code == "internal_error"] == []
        assert read(text, list(range(1, len(text))), format) == whole
        assert read(text, sorted(chance.sample(range(len(text)), min(4, len(text)))), format) == whole


def halves(format: Format) -> Iterator[str]:
    """A call cut off at every delimiter, and then the beginning of every other one."""
    for shape in shapes(format):
        own = tokens(whole(format, shape, ToolCall("", NOTE.name, {"text": "a"})))
        marks = dict.fromkeys(t for t in own if len(t) > 2 and not t.isalnum())
        for n in range(len(own)):
            yield from ("".join(own[:n]) + mark[:-1] for mark in marks)


@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_what_ends_with_half_a_delimiter_is_read_the_same_in_any_cutting(format: Format) -> None:
    for text in list(halves(format))[::5]:
        assert read(text, list(range(1, len(text))), format) == read(text, [], format)


RAW = [(f, s, p) for f in CATALOG for s in shapes(f) for p in s.call if isinstance(p, Pairs | TagParameters)]


@pytest.mark.parametrize(("format", "shape", "part"), RAW, ids=lambda x: getattr(x, "name", ""))
def test_reading_stops_wherever_something_may_end_or_open_a_value(format: Format, shape: Shape, part: Any) -> None:
    """In capitals as in small letters: else what one chunk tells would be lost where it comes in another."""
    own = tokens(whole(format, shape, ToolCall("", NOTE.name, {"text": "a"})))
    end = valueends.end_of_value(shape, part)
    met = 0
    for text in ("".join(own[n:]) for n in range(len(own))):
        for written in (text, text.upper(), text.swapcase()):
            if end.token.match(written):
                found, met = end.stops(written), met + 1
                assert found is not None
                assert found.start() == 0
    assert met


@pytest.mark.parametrize("format", [f for f, _, p in RAW if isinstance(p, TagParameters)], ids=lambda f: f.name)
def test_a_tag_that_is_not_closed_takes_no_value_for_its_attributes(format: Format) -> None:
    text = whole(format, format.shapes[0], ToolCall("", NOTE.name, {"text": "a [f(x=1)]"}))
    events = read(re.sub(r'[^"]*>(?=a )', " ", text), [], format)
    assert [e.code for e in events if isinstance(e, CallError)] == ["invalid_arguments"]
    assert not [e for e in events if isinstance(e, CallEnd)]


@pytest.mark.parametrize(("format", "shape", "part"), RAW, ids=lambda x: getattr(x, "name", ""))
def test_half_a_quoted_call_and_a_damaged_one_behind_it_are_not_one_value(
    format: Format, shape: Shape, part: Any
) -> None:
    """The damaged one ends twice: with the first end, what the value quotes seems to be whole."""
    one = "".join(call_text(format, shape, ToolCall("", NOTE.name, {"text": "zzz"}), 0))
    half, (_, end) = one[: one.index("zzz") + 3], one.split("zzz")
    closing = tokens(end.strip())[-1]
    text = whole(format, shape, ToolCall("", NOTE.name, {"text": "zzz"})).replace(
        one, f"{one.replace('zzz', half)}\n{one}", 1
    )
    text = text[: text.rindex("zzz")] + f"yyy{closing}" + text[text.rindex("zzz") :]
    events = read(text, [], format)
    assert not [
        e
        for e in events
        if isinstance(e, CallEnd) and "yyy" in str(e.call.arguments) and "zzz" in str(e.call.arguments)
    ]


@pytest.mark.parametrize(("format", "shape", "part"), RAW, ids=lambda x: getattr(x, "name", ""))
def test_two_damaged_calls_with_a_sentence_between_them_are_not_one_value(
    format: Format, shape: Shape, part: Any
) -> None:
    """The first lacks its value's end, the second its value's beginning."""
    before, body, after = call_text(format, shape, ToolCall("", NOTE.name, {"text": "zzz"}), 0)
    text = (
        f"{before}{body.split('zzz')[0]}zzz{after} Sure.\n{before}{body.replace('zzz', 'yyy').split('yyy')[0][-4:]}yyy"
    )
    events = read(text + body.split("zzz")[1] + after, [], format)
    made = [str(e.call.arguments) for e in events if isinstance(e, CallEnd)]
    assert not [arguments for arguments in made if "zzz" in arguments and "yyy" in arguments]


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
        (sequence, "over_damage"),
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
