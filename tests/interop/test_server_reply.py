"""One reply read inside a model server: text and calls in pieces, whatever the format, the cuts and the damage."""

from __future__ import annotations

import json
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from server_replies import CALLS, PROSE, SPECS, Calls, is_json, pieces, written

from agentkit import formats
from agentkit.interop.server_reply import (
    CallPiece,
    ReadFormats,
    ServerReply,
    call_grammar,
    parser_choices,
    tool_specs,
    whole_reply,
)

HERMES, AUTO = parser_choices(["hermes", "auto"])
SEARCH = '<tool_call>\n{"name": "search", "arguments": {"query": "é"}}\n</tool_call>'


def streamed(read: ReadFormats, chunks: Iterable[str], tools: Any = SPECS) -> list[str | CallPiece]:
    reply = ServerReply(read, tools)
    return [piece for chunk in chunks for piece in reply.feed(chunk)] + reply.finish()


def text_of(got: list[str | CallPiece]) -> str:
    return "".join(piece for piece in got if isinstance(piece, str))


def arguments_of(got: list[str | CallPiece]) -> list[tuple[str, str]]:
    """Each call's name and the joined text of its arguments; a name comes once, with the first piece."""
    found: list[tuple[str, str]] = []
    for piece in got:
        if isinstance(piece, CallPiece) and piece.name is not None:
            assert piece.index == len(found)
            found.append((piece.name, piece.arguments))
        elif isinstance(piece, CallPiece):
            name, so_far = found[piece.index]
            found[piece.index] = name, so_far + piece.arguments
    return found


def calls_of(got: list[str | CallPiece]) -> Calls:
    return [(name, json.loads(text)) for name, text in arguments_of(got)]


def test_text_comes_at_once_and_a_call_in_pieces() -> None:
    reply = ServerReply(HERMES, SPECS)
    assert reply.feed("Wait. <tool_") == ["Wait. "]
    assert reply.feed('call>{"name": "search", "argum') == [CallPiece(0, "search", "")]
    assert reply.feed('ents": {"query": "a') == [CallPiece(0, None, '{"query": "a')]
    assert reply.feed('b"}}</tool_call>') == [CallPiece(0, None, 'b"}')]
    assert reply.finish() == []


def test_values_that_are_no_json_come_as_json() -> None:
    (read,) = parser_choices(["qwen3_coder"])
    text = '<tool_call>\n<function=search>\n<parameter=query>\nsay "é"\n</parameter>\n</function>\n</tool_call>'
    assert arguments_of(streamed(read, pieces(text, 1))) == [("search", '{"query": "say \\"é\\""}')]


@pytest.mark.share(1)
@pytest.mark.parametrize("name", formats.names())
def test_every_format_whole_and_streamed(name: str) -> None:
    (read,), (text, expected) = parser_choices([name]), written(name)
    content, calls = whole_reply(read, SPECS, text)
    assert [(call.name, dict(call.arguments)) for call in calls] == expected
    assert content.strip() == PROSE.strip()
    for seed in range(5):
        got = streamed(read, pieces(text, seed))
        assert (calls_of(got), text_of(got)) == (expected, content)


def test_every_registered_name_has_the_prefix() -> None:
    assert [read.name for read in parser_choices(None)] == [f"agentkit_{name}" for name in (*formats.names(), "auto")]


def test_auto_reads_the_format_that_the_model_chose() -> None:
    for name in ("invoke", "hermes", "qwen3_coder", "kimi_k2", "glm45"):
        text, expected = written(name)
        assert calls_of(streamed(AUTO, pieces(text, 3))) == expected


@pytest.mark.share(1)
@pytest.mark.parametrize("name", [format.name for format in formats.CATALOG if format.thinking])
def test_thinking_stays_in_the_text_with_its_tags(name: str) -> None:
    (read,) = parser_choices([name])
    for start, end in formats.get(name).thinking:
        text = f"{start}First I search.{end}\n\nNo."
        content, calls = whole_reply(read, SPECS, text)
        assert (content.split(), calls) == (text.split(), [])
        assert text_of(streamed(read, pieces(text, 2))) == content


def test_a_call_in_thinking_is_text() -> None:
    text = f"<think>\nFirst {SEARCH}?\n</think>\n\nNo."
    assert whole_reply(HERMES, SPECS, text) == (text, [])
    assert text_of(streamed(HERMES, pieces(text, 2))) == text


def test_an_invented_result_is_left_out() -> None:
    text = f"{SEARCH}\n<tool_response>\nfound\n</tool_response>\nIt is found."
    content, (call,) = whole_reply(HERMES, SPECS, text)
    assert (content.strip(), call.name) == ("", "search")


def test_without_tools_all_is_text() -> None:
    assert streamed(HERMES, ["a ", SEARCH], ()) == ["a ", SEARCH]
    assert whole_reply(HERMES, (), SEARCH) == (SEARCH, [])


def test_an_unreadable_call_is_text_if_nothing_of_it_was_sent() -> None:
    text = 'I look. <tool_call>{"name": "search", "arguments": {"query": "a" b}}</tool_call>'
    assert whole_reply(HERMES, SPECS, text) == (text, [])
    assert text_of(streamed(HERMES, ["<tool_call>\n", '{"name": '])) == '<tool_call>\n{"name": '


@pytest.mark.share(1)
@pytest.mark.parametrize("name", formats.names())
def test_a_reply_cut_anywhere_has_whole_calls_and_none_that_a_client_could_run_by_mistake(name: str) -> None:
    (read,), (text, expected) = parser_choices([name]), written(name)
    wanted = [(call, arguments) for call, arguments in expected]
    for end in range(0, len(text), 5):
        content, calls = whole_reply(read, SPECS, text[:end])
        assert [(call.name, dict(call.arguments)) for call in calls] == wanted[: len(calls)]
        found = arguments_of(streamed(read, pieces(text[:end], end)))
        assert [(call, json.loads(a)) for call, a in found if is_json(a)] == wanted[: len(calls)]
        assert content or calls or not text[:end].strip()


def test_a_fault_of_ours_passes_the_rest_on_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = ServerReply(HERMES, SPECS)
    assert reply.feed("Hi. ") == ["Hi. "]
    monkeypatch.setattr(reply, "_pieces", lambda event: 1 / 0)
    assert [reply.feed("And "), reply.feed(SEARCH), reply.finish()] == [["And "], [SEARCH], []]


def test_tools_that_cannot_be_read_leave_all_as_text() -> None:
    broken = SimpleNamespace(name="f", parameters={"type": {1, 2}})
    assert tool_specs([broken]) == ()


def test_tools_nested_and_flat_and_others_left_out() -> None:
    flat = SimpleNamespace(name="f", description=None, parameters={"type": "object", "properties": {}})
    nested = SimpleNamespace(function=SimpleNamespace(name="g", description="G.", parameters=None))
    found = tool_specs([flat, nested, SimpleNamespace(type="web_search")])
    assert [(tool.name, tool.description) for tool in found] == [("f", ""), ("g", "G.")]
    assert tool_specs([flat, nested])[0] is found[0]


def test_a_forced_call_has_a_grammar_of_its_format_and_auto_has_none() -> None:
    tag = call_grammar(HERMES, SPECS, "required", parallel=True, may_think=False)
    assert tag is not None
    assert "<tool_call>" in json.dumps(tag)
    assert call_grammar(AUTO, SPECS, "required", parallel=True, may_think=False) is None
    assert call_grammar(HERMES, (), "required", parallel=True, may_think=False) is None
    one = call_grammar(HERMES, SPECS[1:], None, parallel=True, may_think=False)
    assert one is not None
    assert CALLS[1].name not in json.dumps(one)
