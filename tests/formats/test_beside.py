"""Envelopes that say more than a name and arguments: what would be lost is told, what describes calls nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentkit.events import CallEnd, CallError, Text
from agentkit.formats import CATALOG, Parser, ToolSpec, auto, parse
from agentkit.formats.format import Envelope, Format

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


@pytest.mark.parametrize(("wrapped", "format"), [MARKED, BARE])
@pytest.mark.parametrize(
    "beside",
    [{"dry_run": True}, {"path": "/y"}, {"parameters": {"dry_run": True}}, {"args": ["x"]}, {"input": "x", "id": "c1"}],
)
def test_an_argument_beside_the_arguments_is_never_dropped(wrapped: str, format: str, beside: dict[str, Any]) -> None:
    text = wrapped.format(json.dumps({"name": "delete", "arguments": {"path": "/x"}, **beside}))
    (event,) = [e for e in parse(text, format, [DELETE]) if isinstance(e, (CallEnd, CallError))]
    assert isinstance(event, CallError)
    assert (event.code, event.call.name) in [("invalid_arguments", "delete"), ("ambiguous_call", "delete")]


@pytest.mark.parametrize(("wrapped", "format"), [MARKED, BARE])
@pytest.mark.parametrize("beside", [{"id": "c1"}, {"type": "function"}, {"thought": "It is old."}, {"args": None}])
def test_what_is_no_argument_may_stand_beside_them(wrapped: str, format: str, beside: dict[str, Any]) -> None:
    text = wrapped.format(json.dumps({"name": "delete", "arguments": {"path": "/x"}, **beside}))
    assert [e.call.arguments for e in parse(text, format, [DELETE]) if isinstance(e, CallEnd)] == [{"path": "/x"}]


def test_a_bare_description_with_examples_of_arguments_calls_nothing() -> None:
    text = '{"name": "delete", "description": "Deletes.", "arguments": {"path": "the path to delete"}}'
    assert parse(text, "llama3_json", [DELETE]) == [Text(text)]


ENVELOPES = [f for f in CATALOG if any(isinstance(part, Envelope) for shape in f.shapes for part in shape.call)]


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
