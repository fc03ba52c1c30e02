"""Envelopes that say more than a name and arguments: what would be lost is told, what describes calls nothing."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from agentkit.events import CallEnd, CallError, Text
from agentkit.formats import CATALOG, Parser, ToolSpec, auto, parse, render_calls
from agentkit.formats.format import Envelope, Format, NameTag, TagParameters, ToolElement
from agentkit.messages import ToolCall

DELETE = ToolSpec(
    "delete",
    "Delete a file.",
    {
        "type": "object",
        "properties": {"path": {"type": "string"}, "dry_run": {"type": "boolean"}},
        "required": ["path"],
    },
)
MARKED = ("<tool_call>\n{}\n</tool_call>", "hermes")
BARE = ("{}", "llama3_json")
ENVELOPES = [f for f in CATALOG if any(isinstance(part, Envelope) for shape in f.shapes for part in shape.call)]


@pytest.mark.parametrize(("wrapped", "format"), [MARKED, BARE])
@pytest.mark.parametrize(
    "beside",
    [
        {"dry_run": True}, {"path": "/y"}, {"parameters": {"dry_run": True}}, {"args": ["x"]},
        {"input": "x", "id": "c1"}, {"dryrun": True}, {"dry-run": True}, {"dry_rnu": True},
    ],
)  # fmt: skip
def test_an_argument_beside_the_arguments_is_never_dropped(wrapped: str, format: str, beside: dict[str, Any]) -> None:
    text = wrapped.format(json.dumps({"name": "delete", "arguments": {"path": "/x"}, **beside}))
    (event,) = [e for e in parse(text, format, [DELETE]) if isinstance(e, (CallEnd, CallError))]
    assert isinstance(event, CallError)
    assert (event.code, event.call.name) in [("invalid_arguments", "delete"), ("ambiguous_call", "delete")]


@pytest.mark.parametrize("envelope", ENVELOPES, ids=lambda f: f.name)
@pytest.mark.parametrize("beside", [{"dry_run": True}, {"dry_rum": True}, {"path": "/y"}, {"args": ["x"]}])
def test_nor_is_it_dropped_where_the_body_is_repaired(envelope: Format, beside: dict[str, Any]) -> None:
    text = render_calls(envelope, [ToolCall("", "delete", {"path": "/x"})], [DELETE])
    whole = re.search(r"\{.*\}", text)
    if whole is None:
        return  # its arguments are written otherwise
    given = json.loads(whole[0])
    if {"path": "/x"} not in given.values():
        return  # the envelope is inside another one
    for damaged in (
        repr({**given, **beside}),
        json.dumps({**given, **beside}) + "}",
        f"{{{json.dumps(beside)[1:-1]},}}",
    ):
        made = [e for e in parse(text.replace(whole[0], damaged), envelope, [DELETE]) if isinstance(e, CallEnd)]
        assert [e for e in made if e.call.arguments == {"path": "/x"}] == []


@pytest.mark.parametrize(("wrapped", "format"), [MARKED, BARE])
@pytest.mark.parametrize(
    "beside", [{"id": "c1"}, {"type": "function"}, {"thought": "It is old."}, {"args": None}, {"why": "x"}]
)
def test_what_is_no_argument_may_stand_beside_them(wrapped: str, format: str, beside: dict[str, Any]) -> None:
    text = wrapped.format(json.dumps({"name": "delete", "arguments": {"path": "/x"}, **beside}))
    assert [e.call.arguments for e in parse(text, format, [DELETE]) if isinstance(e, CallEnd)] == [{"path": "/x"}]


GET = ToolSpec(
    "get",
    "Get one or all.",
    {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "type": {"type": "string"}, "all": {"type": "boolean"}},
    },
)
REQUIRED = ToolSpec("get", "Get one.", {**GET.parameters, "required": ["id"]})


@pytest.mark.parametrize("envelope", ENVELOPES, ids=lambda f: f.name)
@pytest.mark.parametrize(
    "flat", [{"id": 7}, {"id": 7, "all": True}, {"type": "invoice"}, {"id": 7, "type": "function"}]
)
def test_an_argument_that_is_called_as_a_key_of_calls_is_never_dropped(envelope: Format, flat: dict[str, Any]) -> None:
    """Where no arguments stand, `id` may be the call's or an argument: the call is an error, or has it."""
    text = render_calls(envelope, [ToolCall("", "get", {"all": False})], [GET])
    found = re.search(r'"(?:arguments|parameters|args)": \{"all": false\}', text)
    if found is None:
        return  # the name is the key: nothing stands beside it
    text = text.replace(found[0], json.dumps(flat)[1:-1])
    calls = [e.call.arguments for e in parse(text, envelope, [GET]) if isinstance(e, CallEnd)]
    assert calls == []
    wanted = {key: value for key, value in flat.items() if value != "function"}
    calls = [e.call.arguments for e in parse(text, envelope, [REQUIRED]) if isinstance(e, CallEnd)]
    assert calls in ([], [wanted])


def test_the_id_and_type_that_apis_write_are_no_arguments() -> None:
    for text in ('{"id": "c1", "type": "function", "name": "get", "arguments": {"all": true}}',
                 '{"type": "function", "name": "get", "parameters": {"all": true}}'):  # fmt: skip
        (end,) = [e for e in parse(f"<tool_call>{text}</tool_call>", "hermes", [GET]) if isinstance(e, CallEnd)]
        assert end.call.arguments == {"all": True}


@pytest.mark.parametrize(
    ("beside", "id"), [({"id": 7}, "7"), ({"id": "c1"}, "c1"), ({"call_id": "c2"}, "c2"), ({"id": None}, "")]
)
@pytest.mark.parametrize(("wrapped", "format"), [MARKED, BARE])
def test_an_id_beside_the_arguments_is_the_calls(wrapped: str, format: str, beside: dict[str, Any], id: str) -> None:
    text = wrapped.format(json.dumps({"name": "get", "arguments": {"all": True}, **beside}))
    (end,) = [e for e in parse(text, format, [GET]) if isinstance(e, CallEnd)]
    assert (end.call.id, end.call.arguments) == (id, {"all": True})


@pytest.mark.parametrize(("wrapped", "format"), [MARKED, BARE])
@pytest.mark.parametrize("beside", [{"id": 7}, {"id": "c1"}, {"type": "invoice"}])
def test_beside_empty_arguments_what_may_be_the_only_one_is_ambiguous(
    wrapped: str, format: str, beside: dict[str, Any]
) -> None:
    text = wrapped.format(json.dumps({"name": "get", "arguments": {}, **beside}))
    (event,) = [e for e in parse(text, format, [GET]) if isinstance(e, CallEnd | CallError)]
    assert isinstance(event, CallError)
    assert event.code == "ambiguous_call"


def test_a_bare_description_with_examples_of_arguments_calls_nothing() -> None:
    text = '{"name": "delete", "description": "Deletes.", "arguments": {"path": "the path to delete"}}'
    assert parse(text, "llama3_json", [DELETE]) == [Text(text)]


@pytest.mark.parametrize("format", [*ENVELOPES, None], ids=lambda f: f.name if f else "auto")
def test_braces_within_braces_are_read_but_once(format: Format | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: how many characters the scanner of JSON is asked to look at."""
    from agentkit.formats import jsontext

    looked = 0
    scan = jsontext.scan

    def counted(r: Any, *rest: Any) -> Any:
        nonlocal looked
        start = r.offset
        span = yield from scan(r, *rest)
        looked += span.end - start
        return span

    monkeypatch.setattr(jsontext, "scan", counted)
    text = '{"name": "delete", "arguments": ' + '{"a": ' * 300 + "1" + "}" * 300
    parser = Parser(auto() if format is None else format, [DELETE])
    parser.feed(text)
    parser.close()
    assert looked <= 10 * len(text)


LIST = ToolSpec(
    "list_files",
    "List the files of a folder.",
    {
        "type": "object",
        "properties": {"path": {"type": "string"}, "filter": {"type": "object"}, "limit": {"type": "integer"}},
    },
)
TAGGED = [f for f in CATALOG if any(isinstance(p, NameTag | TagParameters | ToolElement) for p in f.call)]


def ends_of_tags(text: str) -> list[int]:
    """Where the opening tags of a text end, before their `/` if they have one."""
    return [tag.end() for tag in re.finditer(r"<(?!/)[^<>]+?(?=/?>)", text)]


@pytest.mark.parametrize("format", TAGGED, ids=lambda f: f.name)
@pytest.mark.parametrize("written", [' path="/tmp"', " value='/tmp'", ' dir="/tmp"', " sorted"])
def test_nothing_that_an_opening_tag_says_is_dropped(format: Format, written: str) -> None:
    """A word in any tag of a call is an argument of it, or the call is an error; it never runs without the word."""
    word = re.findall(r"\w+", written)[-1]
    for arguments in ({}, {"limit": 3}, {"limit": 3, "filter": {"a": "b"}}):
        text = render_calls(format, [ToolCall("", "list_files", arguments)], [LIST])
        for at in ends_of_tags(text):
            for event in parse(text[:at] + written + text[at:], format, [LIST]):
                if isinstance(event, CallEnd):
                    assert word not in event.call.raw or word in repr(event.call.arguments), event.call.raw


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('<invoke name="list_files" path="/tmp"/>', "'path'"),
        ('<invoke name="list_files"><parameter name="path" value="/tmp"/></invoke>', "'value'"),
        ('<invoke name="list_files"><parameter name="path" value="/tmp"></parameter></invoke>', "'value'"),
    ],
)
def test_the_error_names_what_a_tag_says_too_much(text: str, told: str) -> None:
    (event,) = [e for e in parse(text, "invoke", [LIST]) if isinstance(e, (CallEnd, CallError))]
    assert isinstance(event, CallError)
    assert event.code == "invalid_arguments"
    assert told in event.message
