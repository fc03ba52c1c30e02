"""Grammars on the real engine: what a small model writes under them on llama.cpp's own server.

Runs where `AGENTKIT_LLAMA_SERVER` names the server's binary and `AGENTKIT_GGUF` a small model: six formats, as
`.ci/real_engine` does; with `-m "soak or not soak"` all of them. A reply may be cut off by its token limit.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import jsonschema
import pytest
from format_tools import spec
from grammar_texts import WITH, validate
from llama_server import BINARY, WEIGHTS, llama_server
from streams import answer, events_of

from agentkit import formats
from agentkit.events import CallEnd, CallError, Finish, Text
from agentkit.formats import Format
from agentkit.grammar import grammar_gaps
from agentkit.grammar.prose import invented_starts
from agentkit.messages import SystemMessage, user
from agentkit.models import check_constraint, model
from agentkit.schemas.llamacpp import convertible
from agentkit.toolspec import OutputSchema, ToolSpec

pytestmark = [
    pytest.mark.skipif(not (BINARY and WEIGHTS), reason="set AGENTKIT_LLAMA_SERVER and AGENTKIT_GGUF"),
    pytest.mark.timeout(300),
]
SIX: Final = ("hermes", "qwen3_coder", "pythonic", "xml", "glm45", "deepseek_v31")
"""Of different kinds: a JSON envelope, pairs of tags, Python, elements, pairs without quotes, a name before JSON."""
TOKENS: Final = 40  # of a reply; a call of `book` takes 15 to 40
BOOK = spec(
    "book", None, ("day", "seats"),
    day={"type": "string", "enum": ["Monday", "Friday"]}, seats={"type": "integer", "minimum": 1, "maximum": 9},
)  # fmt: skip
NOTE = spec("note", None, ("text",), text="string", tags={"type": "array", "items": {"type": "string"}})
MODES: Final[Mapping[str, Mapping[str, Any]]] = {
    "auto": {},
    "required": {"tool_choice": "required"},
    "one": {"tool_choice": "required", "parallel_tool_calls": False},
}
PLACE = OutputSchema(
    "Place",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "population": {"type": "integer", "minimum": 0}},
        "required": ["city", "population"],
        "additionalProperties": False,
    },
)
every_format = pytest.mark.parametrize(
    "format", [pytest.param(f, id=f.name, marks=() if f.name in SIX else pytest.mark.soak) for f in WITH]
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with llama_server() as found:
        yield found


def said(url: str, format: Format, words: str, **request: Any) -> tuple[str, str]:
    """Return the model's text, and the reason for its end."""
    made = model(
        "openai:small", base_url=url, server="llamacpp", format=format.name, constrained="no_thinking", api_key="none",
        temperature=1.0, max_tokens=TOKENS, extra={"seed": 7},
    )  # fmt: skip
    events = events_of(made, [user(words)], **request)
    text = "".join(event.text for event in events if isinstance(event, Text))
    return text, next(event.reason for event in events if isinstance(event, Finish))


@pytest.mark.share(1)  # six are chosen
@every_format
def test_every_reply_is_valid_calls_or_text_or_cut_off(url: str, format: Format) -> None:
    # a format that writes a tool's first argument only has no valid call of `book`
    tools = (BOOK, NOTE) if not grammar_gaps(format, [BOOK], target="gbnf") else (NOTE,)
    choices = {**MODES, "named": {"tool_choice": tools[0].name}}
    for mode, request in choices.items():
        check(format, mode, *said(url, format, "Book two seats for Friday.", tools=tools, **request), tools)


def check(format: Format, mode: str, text: str, reason: str, tools: Sequence[ToolSpec]) -> None:
    read = formats.parse(text, format, tools)
    calls = [event.call for event in read if isinstance(event, CallEnd)]
    for call in calls:
        validate(call, tuple(tools))
    free = "".join(event.text for event in read if isinstance(event, Text))
    assert not any(mark.text in free for mark in invented_starts(format)), text
    if reason == "length":
        return
    assert not any(isinstance(event, CallError) for event in read), text
    if mode != "auto":
        assert calls, text
        assert not free.strip(), text
    if mode in ("named", "one"):
        assert len(calls) == 1, text
    if mode == "named":
        assert calls[0].name == tools[0].name


@pytest.mark.parametrize("format", [f for f in WITH if f.name in ("hermes", "xml")], ids=lambda f: f.name)
def test_an_output_is_its_json_or_calls_or_cut_off(url: str, format: Format) -> None:
    for tools in ((), (NOTE,)):
        text, reason = said(url, format, "Which city is the capital of France?", tools=tools, output_schema=PLACE)
        if reason == "length":
            continue
        read = formats.parse(text, format, tools)
        if not (tools and any(isinstance(event, CallEnd) for event in read)):
            jsonschema.validate(json.loads(text), PLACE.schema)


def test_the_grammar_is_enforced(url: str) -> None:
    made = model("openai:small", base_url=url, server="llamacpp", format="hermes", constrained=True, api_key="none")
    asyncio.run(check_constraint(made))


# ---------------------------------------------------------------- schemas that the server converts itself

REFUSED: Final = [
    {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
    {"type": "string", "pattern": r"^\w+@[\w.]+$"},
    {"type": "string", "pattern": r"\S"},
    {"type": "string", "pattern": r"^(?=a)[a-z]+$"},
    {"type": "string", "pattern": r"^a|b$"},
    {"type": "string", "pattern": r"^(?P<x>\"[^\"]+\"|\\)\s*$"},
    {"type": "string", "pattern": r"^[\u4e00-\u9fffé]{2,}?$"},
    {"type": "string", "minLength": 3000},
    {"type": "string", "maxLength": 65536},
    {"type": "array", "items": {"type": "string"}, "minItems": 2500},
    {"type": "array", "items": True},
    {"type": "any"},
    {"type": []},
    {"$ref": "https://example.com/schema"},
    {"$ref": "#/$defs/Absent"},
    {"enum": []},
    {"anyOf": []},
    {"type": "integer", "minimum": 10**17},
    {"type": "integer", "exclusiveMinimum": True},
    {"type": "object", "properties": {"a]": {"type": "string"}, "b\\": {}}, "additionalProperties": {"type": "string"}},
]


def refusal(url: str, schema: Mapping[str, Any], server: str | None) -> str | None:
    """How a request with this schema in the type of the output fails.

    Not in a tool: this model's chat template has no tools, so the server makes no grammar for them.
    """
    made = model("openai:small", base_url=url, server=server, api_key="none", max_tokens=1, max_retries=0)
    whole = {"type": "object", "properties": {"date": schema}, "required": ["date"]}
    day = OutputSchema("Day", whole)
    _, error = answer(made, [SystemMessage("Be short."), user("Which day is it?")], output_schema=day)
    return None if error is None else str(error)


@pytest.mark.parametrize("schema", REFUSED, ids=lambda s: json.dumps(s)[:50])
def test_what_the_server_refuses_is_rewritten_or_left_out(url: str, schema: Mapping[str, Any]) -> None:
    assert convertible(schema)[1]
    assert refusal(url, schema, "llamacpp") is None


def test_an_unnamed_server_that_refuses_is_explained(url: str) -> None:
    found = refusal(url, {"type": "string", "pattern": "^(a$"}, None)
    assert found is not None
    assert "output type 'Day', schema.properties.date.pattern" in found
