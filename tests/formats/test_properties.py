"""The properties of every declared format (DESIGN §5), over random calls, prose, damage and cuts.

A new format inherits them all by its entry in the catalogue.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from corpora import source
from format_tools import ADD, ANYTHING, ASK, CREATE_FILE, NOTE, PING, STR_REPLACE, TOOLS, WEB_SEARCH, spec
from growth import assert_linear, reading_seconds
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Event,
    SourceEvent,
    Text,
    merge,
)
from agentkit.formats import CATALOG, Format, Parser
from agentkit.messages import ToolCall
from agentkit.schemas.typed.values import same

FOUNDING = ("xml", "invoke", "hermes")  # one of each kind of body; what holds for them holds for most
EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "0"))
every_format = pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)


def holds(format: Format, rule: Callable[..., None], **strategies: st.SearchStrategy[Any]) -> None:
    """Try a property on examples: 24 for the founding formats, 6 for the rest; `make soak` asks for 300 of each."""
    examples = EXAMPLES or (24 if format.name in FOUNDING else 6)
    settings(max_examples=examples, deadline=None)(given(**strategies)(rule))()


# ---------------------------------------------------------------- what the properties are tried on

MARKERS = [
    "<", ">", "/>", "</", "\n", " ", '"', "'", "`", "```", "\n```\n", "{", "}", "[", "]", ",", ":", "\\", "&", "&lt;",
    "=", "<think>", "</think>", "<thinking>", "<![CDATA[", "]]>", "<function_calls>", "</function_calls>", "<invoke",
    '<INVOKE ', '<invoke name="note">', '<invoke name="', "</invoke>", "<parameter", '<parameter name="text">',
    "</parameter>", "<tool_call>", "<tool_call>\n{", "</tool_call>", '{"name": "note", "arguments": {', '"name"',
    '"arguments"', "null", "1e9", "<create-file", '<create-file file_path="a">', "</create-file>", "<ask>", "</ask>",
    "<ask", "<ping/>", "<str-replace ", "<old_str>", "</old_str>", "</str-replace>", "<tool_result>", "</tool_result>",
    "<tool_response>", "ns:", "é", "🙂", "\x00",
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
    for start, end in pairwise(edges):
        events += parser.feed(text[start:end])
    return merge([*events, *parser.close()])


def calls_of(events: list[Event]) -> list[tuple[str, dict[str, Any]]]:
    return [(c.name, dict(c.arguments)) for c in formats.calls(events)]


# ---------------------------------------------------------------- the properties


@pytest.mark.share(1)
@every_format
def test_any_cutting_gives_the_same_events(format: Format) -> None:
    def rule(text: str, cuts: list[int]) -> None:
        whole = formats.parse(text, format, TOOLS)
        assert cut(format, text, list(range(len(text)))) == whole
        assert cut(format, text, list(range(0, len(text), 4))) == whole
        assert cut(format, text, cuts) == whole

    holds(format, rule, text=texts(format), cuts=st.lists(st.integers(0, 500), max_size=9))


@pytest.mark.share(4)
@every_format
def test_a_call_that_is_cut_anywhere_is_truncated_or_whole(format: Format) -> None:
    """DeepSeek V3's call of a cut name is one of V3.1's, of `function`, whose arguments are no JSON."""

    def rule(calls: list[ToolCall]) -> None:
        text = written(format, *calls)
        whole = calls_of(formats.parse(text, format, TOOLS))
        for at in range(0, len(text) + 1, len(text) // 200 + 1):
            events = formats.parse(text[:at], format, TOOLS)
            errors = {e.code for e in events if isinstance(e, CallError)}
            assert errors <= {"truncated_call"} or (format.name == "deepseek_v3" and errors == {"invalid_json"})
            assert (ended := calls_of(events)) == whole[: len(ended)]  # with its last literal or without

    calls = st.lists(one_call, min_size=1, max_size=2)
    settings(max_examples=EXAMPLES // 10 or 5, deadline=None)(given(calls=calls)(rule))()


@every_format
@pytest.mark.parametrize("depth", [129, 900])
def test_no_value_is_nested_deeper_than_the_limit(format: Format, depth: int) -> None:
    text = formats.render_calls(format, [ToolCall("", "note", {"text": "DEEP"})], [NOTE])
    lists = [spec("note", None, ("text",), text="array")]
    for event in formats.parse(text.replace("DEEP", "[" * depth + "]" * depth), format, lists):
        assert not isinstance(event, CallEnd) or event.call.arguments["text"] == "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [128, 900])
def test_arguments_that_were_encoded_twice_are_nested_no_deeper_than_others(depth: int) -> None:
    arguments = json.dumps('{"text": ' + "[" * depth + "]" * depth + "}")
    (event,) = formats.parse(f"[TOOL_CALLS]note[ARGS]{arguments}", "mistral_compact", [NOTE])[-1:]
    assert isinstance(event, CallError)


@pytest.mark.share(1)
@every_format
def test_what_is_rendered_is_read_back(format: Format) -> None:
    def rule(calls: list[ToolCall], before: str, after: str) -> None:
        try:
            text = formats.render_calls(format, calls, TOOLS)
        except FormatError:
            return  # refused, not altered
        before, after = (re.sub(r"[^\w ]", "", text) for text in (before, after))  # nothing that opens or quotes
        got = calls_of(formats.parse(f"{before}{text}\n{after}", format, TOOLS))
        assert [name for name, _ in got] == [c.name for c in calls]
        assert all(a.keys() == c.arguments.keys() for (_, a), c in zip(got, calls, strict=True))
        assert all(same(a[k], c.arguments[k]) for (_, a), c in zip(got, calls, strict=True) for k in a)

    holds(format, rule, calls=st.lists(one_call, min_size=1, max_size=4), before=plain, after=plain)


@pytest.mark.share(1)
@every_format
def test_nothing_is_lost_doubled_or_moved(format: Format) -> None:
    def rule(text: str) -> None:
        assert source(formats.parse(text, format, TOOLS)) == text

    holds(format, rule, text=texts(format))


@pytest.mark.share(36)
@every_format
@pytest.mark.parametrize("piece", ["prose ", "a < b && c > d\n", "<tag> </tag> ", '\\" {[ ', "`x` ", "]]> ", "\n\n"])
def test_twice_the_text_takes_about_twice_the_time(format: Format, piece: str) -> None:
    def seconds(size: int) -> float:
        body = (piece * (size // len(piece) + 1))[:size]
        call = ToolCall("", "create_file", {"file_path": "a", "file_contents": body})
        text = body + formats.render_calls(format, [call], TOOLS)
        return reading_seconds(format, text, 4)

    assert_linear(seconds, 16_000)


@pytest.mark.share(4)
@every_format
def test_a_call_that_is_cut_off_never_becomes_another_call(format: Format) -> None:
    def rule(call: ToolCall, end: float) -> None:
        text = written(format, call)
        got = calls_of(formats.parse(text[: int(end * len(text))], format, TOOLS))
        assert got in ([], [(call.name, dict(call.arguments))])

    holds(format, rule, call=one_call, end=st.floats(0, 1, exclude_max=True))


@pytest.mark.share(4)
@every_format
def test_strings_are_the_characters_written(format: Format) -> None:
    def rule(text: str) -> None:
        rendered = written(format, ToolCall("", "note", {"text": text}))
        assert calls_of(formats.parse(rendered, format, TOOLS)) == ([("note", {"text": text})] if rendered else [])

    holds(format, rule, text=st.sampled_from(["007", "true", '{"a": 1}', "null", "1e5", " x ", "[1]"]) | markup)


@pytest.mark.share(4)
@every_format
def test_every_call_that_starts_ends_once_and_in_order(format: Format) -> None:
    def rule(text: str) -> None:
        events = formats.parse(text, format, TOOLS)
        ends = [e.index for e in events if isinstance(e, CallEnd | CallError)]
        assert ends == list(range(len(ends)))
        begun: list[int] = []
        for event in events:
            match event:
                case CallStart(index):
                    begun.append(index)
                    assert len(begun) == 1
                case ArgumentDelta(index):
                    assert begun == [index]
                case CallEnd(index) | CallError(index):
                    assert begun == [index] or (not begun and isinstance(event, CallError))
                    begun.clear()
                case _:
                    assert not begun

    holds(format, rule, text=texts(format))


@pytest.mark.share(1)
@every_format
def test_a_result_is_never_a_call_and_cannot_close_its_wrapper(format: Format) -> None:
    def rule(text: str, edge: str) -> None:
        shown = formats.render_result(format, "note", "call_1", text + edge, None, TOOLS)
        events = formats.parse(shown, format, TOOLS, in_code="execute")
        assert [e for e in events if isinstance(e, CallStart | CallEnd | CallError)] == []
        assert not format.result.close.strip() or shown.count(format.result.close.strip()) == 1
        assert formats.restore(formats.quarantine(text, format, TOOLS)) == text

    edges = st.sampled_from(["", format.result.close, format.result.open])
    holds(format, rule, text=texts(format), edge=edges)


@pytest.mark.share(1)
@every_format
def test_no_text_makes_the_parser_raise(format: Format) -> None:
    def rule(text: str) -> None:
        assert source(formats.parse(text, format, TOOLS, in_code="execute")) == text

    holds(format, rule, text=st.lists(st.sampled_from(MARKERS) | plain, max_size=30).map("".join))


@pytest.mark.share(1)
@every_format
def test_calls_before_the_damage_survive(format: Format) -> None:
    def rule(good: ToolCall, data: st.DataObject) -> None:
        first, second = written(format, good), written(format, data.draw(one_call))
        damaged = slip(data.draw, second)  # type: ignore[arg-type]
        tags = [tool.element.tag for tool in TOOLS if tool.element is not None]
        crossed = any(f"<{tag}" in str(good.arguments) and f"</{tag}" in damaged.lower() for tag in tags)
        assume(not crossed)  # what opens in the first call is closed after it: either may be the damaged one
        assume(not re.match(r'\s*"[^"]*"\s*:', damaged))  # the first call's object may have been closed too early
        got = calls_of(formats.parse(f"{first}\n{damaged}", format, TOOLS))
        assert got[:1] == ([(good.name, dict(good.arguments))] if first else got[:1])

    holds(format, rule, good=one_call, data=st.data())


@given(text=plain.filter(lambda t: "<" not in t), where=st.floats(0, 1), slip=st.sampled_from(["", '"', "}", ",", "x"]))
def test_after_damaged_json_the_next_call_is_answered_and_does_not_run(text: str, where: float, slip: str) -> None:
    """It runs if the first one is read after all, or is text."""
    body = json.dumps({"name": "note", "arguments": {"text": text}})
    at = 1 + int(where * (len(body) - 2))
    damaged = f'<tool_call>{body[:at]}{slip}{body[at + 1 :]}</tool_call>\n<tool_call>{{"name": "ping"}}</tool_call>'
    events = formats.parse(damaged, "hermes", TOOLS)
    if any(isinstance(e, CallError) for e in events):
        assert [e.call.name for e in events if isinstance(e, CallEnd)] == []
    else:
        assert calls_of(events)[-1] == ("ping", {})


def test_a_parser_over_all_formats_reads_each_and_gives_the_same_events_for_any_cut() -> None:
    known = [f for f in CATALOG if f.name != "legacy"]  # its tags are read as those of `xml`
    # a call on a line ends with its line
    text = "\nThen:\n".join(written(f, ToolCall("", "note", {"text": "x"})) for f in known)
    whole = formats.parse(text, known, TOOLS)
    assert calls_of(whole) == [("note", {"text": "x"})] * len(known)
    for size in (1, 4, 7):
        parser = Parser(known, TOOLS)
        events: list[SourceEvent] = []
        for i in range(0, len(text), size):
            events += parser.feed(text[i : i + size])
        assert merge([*events, *parser.close()]) == whole


@pytest.mark.parametrize("size", [1, 4, 97])
def test_a_parameter_name_that_never_ends_is_given_up_at_the_same_place_however_it_is_cut(size: int) -> None:
    good = written(formats.get("k2_horizon"), ToolCall("", "note", {"text": "x"}))
    text = f"<ifm|tool_calls><ifm|tool_call>note<ifm|arg_key>{'k' * 700}{good}"
    parser = Parser("k2_horizon", TOOLS)
    events = [e for i in range(0, len(text), size) for e in parser.feed(text[i : i + size])]
    assert merge([*events, *parser.close()]) == formats.parse(text, "k2_horizon", TOOLS)


@pytest.mark.parametrize("size", [1, 4, 97, 10_000])
@pytest.mark.parametrize("space", ["\n" * 3000, "x\n" + " " * 1030, "\n\n" + "\t" * 5000])
def test_a_bare_call_opens_behind_any_white_space_at_the_start_of_a_line(space: str, size: int) -> None:
    text = f"{space}ping\n{{}}"
    parser = Parser("glm4", TOOLS)
    events = merge([e for i in range(0, len(text), size) for e in parser.feed(text[i : i + size])] + parser.close())
    assert events[0] == Text(space)
    assert calls_of(events) == [("ping", {})]


@pytest.mark.parametrize("text", ["if (a < b) { return [1]; }\n", "one\n\n  two { three\n", "a [ b ] c <d> {e}\n"])
def test_characters_that_open_calls_elsewhere_are_one_text_in_prose(text: str) -> None:
    assert formats.parse("x " + text * 3, formats.auto(), TOOLS) == [Text("x " + text * 3)]


def test_merging_many_deltas_takes_linear_time() -> None:
    start = time.process_time()
    assert merge(Text("abcd") for _ in range(200_000)) == [Text("abcd" * 200_000)]
    assert time.process_time() - start < 5  # seconds: 0.1 is usual, joining two at a time takes over a minute
