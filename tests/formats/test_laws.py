"""The laws of DESIGN §5 that hold for every declared format, over random calls, prose, damage and cuts.

A new format inherits them all by standing in the catalogue.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pytest
from format_tools import ADD, ANYTHING, ASK, CREATE_FILE, NOTE, PING, STR_REPLACE, TOOLS, WEB_SEARCH
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Event,
    Markup,
    SourceEvent,
    Text,
    Thinking,
    merge,
)
from agentkit.formats import CATALOG, Format, Parser, ToolSpec
from agentkit.formats.values import same
from agentkit.messages import ToolCall

EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "500"))
every_format = pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
thorough = settings(max_examples=EXAMPLES, deadline=None)

# ---------------------------------------------------------------- what the laws are tried on

MARKERS = [
    "<", ">", "/>", "</", "\n", " ", '"', "'", "`", "```", "\n```\n", "{", "}", "[", "]", ",", ":", "\\", "&", "&lt;", "=",
    "<think>", "</think>", "<thinking>", "<![CDATA[", "]]>", "<function_calls>", "</function_calls>", "<invoke", "<INVOKE ",
    '<invoke name="note">', '<invoke name="', "</invoke>", "<parameter", '<parameter name="text">', "</parameter>",
    "<tool_call>", "<tool_call>\n{", "</tool_call>", '{"name": "note", "arguments": {', '"name"', '"arguments"', "null", "1e9",
    "<create-file", '<create-file file_path="a">', "</create-file>", "<ask>", "</ask>", "<ask", "<ping/>", "<str-replace ",
    "<old_str>", "</old_str>", "</str-replace>", "<tool_result>", "</tool_result>", "<tool_response>", "ns:", "é", "🙂", "\x00",
]  # fmt: skip

plain = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
markup = st.lists(st.sampled_from(MARKERS) | plain, max_size=8).map("".join)
numbers = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | markup,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(markup, inner, max_size=3),
    max_leaves=6,
)


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


ARGUMENTS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    CREATE_FILE.name: st.fixed_dictionaries({"file_path": markup, "file_contents": markup}),
    STR_REPLACE.name: st.fixed_dictionaries({"file_path": markup, "old_str": markup, "new_str": markup}),
    WEB_SEARCH.name: optional(query=markup, summary=st.booleans(), num_results=st.integers()),
    ASK.name: st.fixed_dictionaries({"text": markup}),
    ADD.name: st.fixed_dictionaries({"a": st.integers(), "b": st.integers()}),
    NOTE.name: st.fixed_dictionaries({"text": markup}),
    PING.name: st.just({}),
    ANYTHING.name: optional(
        text=markup, number=numbers, items=st.lists(json_values, max_size=3), flag=st.booleans(), free=json_values,
        object=st.dictionaries(markup, json_values, max_size=3), maybe=st.none() | markup,
    ),
}  # fmt: skip

one_call = st.sampled_from(TOOLS).flatmap(
    lambda tool: ARGUMENTS[tool.name].map(lambda arguments: ToolCall("", tool.name, arguments))
)


@st.composite
def texts(draw: st.DrawFn, format: Format) -> str:
    """Calls as written in the format, prose, stray markers, and a slip or two."""
    pieces = draw(st.lists(one_call.map(lambda c: written(format, c)) | markup | plain, max_size=6))
    text = "".join(pieces)
    for _ in range(draw(st.integers(0, 2))):
        text = slip(draw, text)
    return text


def slip(draw: st.DrawFn, text: str) -> str:
    at = draw(st.integers(0, len(text)))
    return text[:at] + draw(st.sampled_from(MARKERS) | st.just("")) + text[at + draw(st.integers(0, 6)) :]


def written(format: Format, *calls: ToolCall) -> str:
    try:
        return formats.render_calls(format, calls, TOOLS)
    except FormatError:
        return ""


def cut(format: Format, text: str, cuts: list[int]) -> list[Event]:
    parser = Parser(format, TOOLS)
    events: list[SourceEvent] = []
    edges = [0, *sorted(c % (len(text) + 1) for c in cuts), len(text)]
    for start, end in zip(edges, edges[1:], strict=False):
        events += parser.feed(text[start:end])
    return merge([*events, *parser.close()])


def source(events: list[Event]) -> str:
    """What the events say the input was."""
    out = ""
    for event in events:
        match event:
            case Text(text) | Thinking(text) | Markup(text):
                out += text
            case CallEnd(_, call) | CallError(_, _, _, call):
                out += call.raw
            case _:
                pass
    return out


def calls_of(events: list[Event]) -> list[tuple[str, dict[str, Any]]]:
    return [(c.name, dict(c.arguments)) for c in formats.calls(events)]


# ---------------------------------------------------------------- the laws


@every_format
@thorough
@given(data=st.data())
def test_law_1_any_cutting_gives_the_same_events(format: Format, data: st.DataObject) -> None:
    text = data.draw(texts(format))
    whole = formats.parse(text, format, TOOLS)
    assert cut(format, text, list(range(len(text)))) == whole
    assert cut(format, text, list(range(0, len(text), 4))) == whole
    assert cut(format, text, data.draw(st.lists(st.integers(0, 500), max_size=9))) == whole


@every_format
@thorough
@given(calls=st.lists(one_call, min_size=1, max_size=4), before=plain, after=plain)
def test_law_2_what_is_rendered_is_read_back(format: Format, calls: list[ToolCall], before: str, after: str) -> None:
    try:
        text = formats.render_calls(format, calls, TOOLS)
    except FormatError:
        return  # refused, not altered; `test_what_a_format_cannot_carry` counts how often
    before, after = before.replace("`", ""), after.replace("`", "")
    got = calls_of(formats.parse(before + text + after, format, TOOLS))
    assert [name for name, _ in got] == [c.name for c in calls]
    assert all(a.keys() == c.arguments.keys() for (_, a), c in zip(got, calls, strict=True))
    assert all(same(a[k], c.arguments[k]) for (_, a), c in zip(got, calls, strict=True) for k in a)


@every_format
@thorough
@given(data=st.data())
def test_law_3_nothing_is_lost_doubled_or_moved(format: Format, data: st.DataObject) -> None:
    text = data.draw(texts(format))
    assert source(formats.parse(text, format, TOOLS)) == text


@every_format
@pytest.mark.parametrize("piece", ["prose ", "a < b && c > d\n", "<tag> </tag> ", '\\" {[ ', "`x` ", "]]> ", "\n\n"])
def test_law_4_twice_the_text_takes_about_twice_the_time(format: Format, piece: str) -> None:
    def seconds(size: int) -> float:
        body = (piece * (size // len(piece) + 1))[:size]
        call = ToolCall("", "create_file", {"file_path": "a", "file_contents": body})
        text = body + formats.render_calls(format, [call], TOOLS)
        chunks = [text[i : i + 4] for i in range(0, len(text), 4)]
        parser = Parser(format, TOOLS)
        start = time.process_time()
        for chunk in chunks:
            parser.feed(chunk)
        parser.close()
        return time.process_time() - start

    # the smallest of several: whatever else the machine does only adds
    growth = min(seconds(64_000) / max(seconds(32_000), 1e-9) for _ in range(6))
    assert growth <= 2.2


@every_format
@thorough
@given(data=st.data())
def test_law_5_a_call_that_is_cut_off_never_becomes_another_call(format: Format, data: st.DataObject) -> None:
    call = data.draw(one_call)
    text = written(format, call)
    shorter = text[: data.draw(st.integers(0, max(len(text) - 1, 0)))]
    assert calls_of(formats.parse(shorter, format, TOOLS)) in ([], [(call.name, dict(call.arguments))])


@every_format
@thorough
@given(data=st.data())
def test_law_5_strings_are_the_characters_written(format: Format, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(["007", "true", '{"a": 1}', "null", "1e5", " x ", "[1]"]) | markup)
    rendered = written(format, ToolCall("", "note", {"text": text}))
    assert calls_of(formats.parse(rendered, format, TOOLS)) == ([("note", {"text": text})] if rendered else [])


@every_format
@thorough
@given(data=st.data())
def test_law_6_every_call_that_starts_ends_once_and_in_order(format: Format, data: st.DataObject) -> None:
    events = formats.parse(data.draw(texts(format)), format, TOOLS)
    ends = [e.index for e in events if isinstance(e, CallEnd | CallError)]
    assert ends == list(range(len(ends)))
    open_calls: list[int] = []
    for event in events:
        match event:
            case CallStart(index):
                open_calls.append(index)
                assert len(open_calls) == 1
            case ArgumentDelta(index):
                assert open_calls == [index]
            case CallEnd(index) | CallError(index):
                assert open_calls in ([index], []) and (open_calls or isinstance(event, CallError))
                open_calls.clear()
            case _:
                assert not open_calls


@every_format
@thorough
@given(data=st.data())
def test_law_7_a_result_is_never_a_call_and_cannot_close_its_wrapper(format: Format, data: st.DataObject) -> None:
    text = data.draw(texts(format)) + data.draw(st.sampled_from(["", format.result.close, format.result.open]))
    shown = formats.render_result(format, "note", "call_1", text, None, TOOLS)
    events = formats.parse(shown, format, TOOLS, in_code="execute")
    assert [e for e in events if isinstance(e, CallStart | CallEnd | CallError | Thinking)] == []
    assert not format.result.close.strip() or shown.count(format.result.close.strip()) == 1
    assert formats.quarantine(formats.quarantine(text, format, TOOLS), format, TOOLS) == formats.quarantine(
        text, format, TOOLS
    )


@every_format
@thorough
@given(text=st.lists(st.sampled_from(MARKERS) | plain, max_size=30).map("".join))
def test_law_8_no_text_makes_the_parser_raise(format: Format, text: str) -> None:
    assert source(formats.parse(text, format, TOOLS, in_code="execute")) == text


@every_format
@thorough
@given(data=st.data())
def test_law_8_calls_before_the_damage_survive(format: Format, data: st.DataObject) -> None:
    good, damaged = data.draw(one_call), data.draw(one_call)
    first, second = written(format, good), written(format, damaged)
    got = calls_of(formats.parse(f"{first}\n{slip(data.draw, second)}", format, TOOLS))  # type: ignore[arg-type]
    assert got[:1] == ([(good.name, dict(good.arguments))] if first else got[:1])


@thorough
@given(data=st.data())
def test_law_8_behind_damaged_json_the_next_call_survives(data: st.DataObject) -> None:
    """Raw bodies have no such law: an unclosed raw value cannot be told from one that contains calls."""
    hermes = formats.get("hermes")
    body = json.dumps({"name": "note", "arguments": {"text": data.draw(plain.filter(lambda t: "<" not in t))}})
    at = data.draw(st.integers(1, len(body) - 1))
    damaged = body[:at] + data.draw(st.sampled_from(["", '"', "}", ",", "x"])) + body[at + 1 :]
    text = f'<tool_call>{damaged}</tool_call>\n<tool_call>{{"name": "ping"}}</tool_call>'
    assert calls_of(formats.parse(text, hermes, TOOLS))[-1] == ("ping", {})


def test_a_parser_over_all_formats_obeys_the_cut_law() -> None:
    texts_ = [written(f, ToolCall("", "note", {"text": "x"})) for f in CATALOG]
    text = " and ".join(texts_)
    whole = formats.parse(text, CATALOG, TOOLS)
    assert [name for name, _ in calls_of(whole)] == ["note"] * len(CATALOG)
    for size in (1, 4, 7):
        parser = Parser(CATALOG, TOOLS)
        events: list[SourceEvent] = []
        for i in range(0, len(text), size):
            events += parser.feed(text[i : i + size])
        assert merge([*events, *parser.close()]) == whole


SPECS: tuple[ToolSpec, ...] = TOOLS
