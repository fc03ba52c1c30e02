"""Calls that are read in one step: the same events as from their parts, and the step is taken where it can be."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from damaged_texts import CALLED
from damages import damaged, plan
from format_tools import ADD, ASK, CREATE_FILE, NOTE, TOOLS

from agentkit import formats
from agentkit.events import ArgumentDelta, CallEnd, CallError, CallStart, Event, Markup, SourceEvent, Text, merge
from agentkit.formats import CATALOG, Format, Limits, Parser, engine, plaincalls, sequence
from agentkit.messages import ToolCall

CALLS = [
    ToolCall("", "create_file", {"file_path": "a.c", "file_contents": "int x = 1;\nreturn x;"}),
    ToolCall("", "add", {"a": 1, "b": 2}),
    ToolCall("", "note", {"text": 'what he said: "é 🙂"'}),
]
BY_PARTS = {
    "json_fence", "llama3_json", "xlam", "glm4",  # opened by what is common in prose, as is a list in brackets alone
    "xml", "legacy", "cline", "dr_tulu",  # an element per tool, or a tool's text
    "pythonic", "llama4_pythonic", "olmo3", "lfm2", "tool_code", "python",
    "functiongemma", "gemma4", "minimax_m3",  # odd values
}  # fmt: skip
"""Formats whose calls are always read part by part."""


def read(text: str, declared: tuple[Format, ...], pieces: list[str] | None = None) -> list[Event]:
    parser = Parser(declared, CALLED)
    if pieces is None:
        return merge(parser.close(text))
    events: list[SourceEvent] = []
    for piece in pieces:
        events += parser.feed(piece)
    return merge([*events, *parser.close()])


@pytest.mark.share(4)
@pytest.mark.parametrize("share", range(4))
def test_one_step_finds_what_the_parts_find(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of reading give the same events: damaged texts of every format, whole and in large pieces."""
    for seed in range(40_000 + share * 120, 40_000 + (share + 1) * 120):
        of = plan(seed)
        if (written := damaged(of)) is None:
            continue
        rng = random.Random(seed)
        text = written.text * rng.choice((1, 1, 3))
        declared = formats.auto() if of.format in formats.auto() and rng.random() < 0.1 else (of.format,)
        edges = sorted({0, len(text), *(rng.randrange(len(text) + 1) for _ in range(3))})
        with monkeypatch.context() as off:
            off.setattr(sequence, "plain_call", lambda *_: None)
            off.setattr(engine, "next_at_once", lambda _: None)
            by_parts = read(text, declared, [text])
        for pieces in (None, [text], [text[a:b] for a, b in pairwise(edges)]):
            assert read(text, declared, pieces) == by_parts, (of.format.name, seed, text)


@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_calls_as_their_format_writes_them_are_read_in_one_step(
    format: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, taken = formats.render_calls(format, CALLS, TOOLS), []

    def counted(*given: object) -> object:
        found = plaincalls.plain_call(*given)  # type: ignore[arg-type]
        taken.append(found)
        return found

    monkeypatch.setattr(sequence, "plain_call", counted)
    events = formats.parse(text, format, TOOLS)
    assert [dict(c.arguments) for c in formats.calls(events)] == [dict(c.arguments) for c in CALLS]
    assert (sum(found is not None for found in taken) == len(CALLS)) is (format.name not in BY_PARTS)


def test_the_events_of_a_plain_call() -> None:
    text = 'Now.\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
    call = ToolCall("", "add", {"a": 1, "b": 2}, "hermes", text[5:])
    assert formats.parse(text, "hermes", [ADD]) == [
        Text("Now.\n"),
        CallStart(0, "add"),
        ArgumentDelta(0, '{"a": 1, "b": 2}'),
        CallEnd(0, call),
    ]


def test_a_section_around_plain_calls_is_markup() -> None:
    call = "<function=ask>\n<parameter=text>\nYes?\n</parameter>\n</function>"
    text = f"<tool_call>\n{call}\n</tool_call>\n<tool_call>\n{call}\n</tool_call>"
    events = formats.parse(text, "qwen3_coder", [ASK])
    assert [e.call.raw for e in events if isinstance(e, CallEnd)] == [call, call]
    assert [e.text for e in events if isinstance(e, Markup)] == [
        "<tool_call>\n",
        "\n</tool_call>\n<tool_call>\n",
        "\n</tool_call>",
    ]


def test_a_repair_is_left_to_the_parts() -> None:
    text = '<tool_call>\n{"name": "add", "arguments": {"a": "1", "b": 2}}\n</tool_call>'
    [end] = [e for e in formats.parse(text, "hermes", [ADD]) if isinstance(e, CallEnd)]
    assert (dict(end.call.arguments), end.repairs) == ({"a": 1, "b": 2}, ("quoted_value",))


def test_a_call_longer_than_the_limit_is_refused_also_if_it_is_plain() -> None:
    call = ToolCall("", "create_file", {"file_path": "a", "file_contents": "word " * 2000})
    text = formats.render_calls("hermes", [call], [CREATE_FILE])
    parser = Parser("hermes", [CREATE_FILE], limits=Limits(call=10_000))
    [error] = [e for e in parser.close(text) if isinstance(e, CallError)]
    assert error.code == "limit"


@pytest.mark.parametrize("text", ["", "Done.", "<tool_call>\n", formats.render_calls("hermes", CALLS, TOOLS)])
def test_a_text_may_be_passed_to_close(text: str) -> None:
    fed, closed = Parser("hermes", TOOLS), Parser("hermes", TOOLS)
    assert merge([*fed.feed(text), *fed.close()]) == merge(closed.close(text))
    assert closed.close() == []
    with pytest.raises(ValueError, match="after close"):
        closed.close("more")


def test_an_id_that_is_not_followed_by_what_it_should_be_is_damaged_however_much_has_arrived() -> None:
    text = "[TOOL_CALLS]ping[CALL_ID]call000001GS]{}"
    [error] = [e for e in formats.parse(text, "mistral_compact", [NOTE]) if isinstance(e, CallError)]
    assert (error.code, error.position) == ("invalid_json", 25)


def test_an_attribute_in_a_value_is_no_markup_of_kimi_k3() -> None:
    text = formats.render_calls("kimi_k3", [ToolCall("", "note", {"text": '<p class="x" type="y">'})], [NOTE])
    assert read(text, (formats.get("kimi_k3"),), [*text]) == read(text, (formats.get("kimi_k3"),))
    [call] = formats.calls(formats.parse(text, "kimi_k3", [NOTE]))
    assert call.arguments == {"text": '<p class="x" type="y">'}
