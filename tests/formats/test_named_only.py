"""JSON that names tools without arguments: a call only where something marks it as one, never by the name alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.events import CallEnd, CallError
from agentkit.formats import Parser, ToolSpec, parse, render_calls
from agentkit.messages import ToolCall

NOTHING: dict[str, Any] = {"type": "object", "properties": {"hard": {"type": "boolean"}}}
KIND: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}, "type": {"type": "string"}}}
TOOLS = (
    ToolSpec("reset", "Reset.", NOTHING),
    ToolSpec("ls", "List.", KIND),
    ToolSpec("ping", "Ping.", {"type": "object", "properties": {}}),
)
BARE = ("json_fence", "llama3_json", "xlam", "xlam1")

beside = st.dictionaries(st.sampled_from(("id", "index", "call_id")), st.sampled_from(("command", "c1", 1)), max_size=2)
nulls = st.dictionaries(st.sampled_from(("parameters", "arguments", "args", "input")), st.none(), max_size=1)
named = st.builds(
    lambda name, more, none, kind: {"name": name, **more, **none, **kind},
    st.sampled_from(("reset", "ls", "ping", "unknown")),
    beside,
    nulls,
    st.sampled_from(({}, {"type": "command"}, {"type": "function"}, {"thought": "why"})),
)
envelopes = st.one_of(named, named.map(lambda it: {"type": "function", "function": it}))


@st.composite
def replies(draw: st.DrawFn) -> str:
    """A list of tools' names as JSON, written in one of the ways in which models write lists."""
    several = draw(st.lists(envelopes, min_size=1, max_size=3))
    indent = draw(st.sampled_from((None, 2)))
    lines = [json.dumps(one, indent=indent) for one in several]
    text = draw(st.sampled_from([lines[0], "\n".join(lines), "; ".join(lines), json.dumps(several, indent=indent)]))
    around = ("{}", "My tools:\n\n{}", "```json\n{}\n```", "```\n{}\n```", "1.\n{}\n")
    return draw(st.sampled_from(around)).format(text)


def read(text: str, format: Any, size: int | None = None, tools: Sequence[ToolSpec] = TOOLS) -> list[CallEnd]:
    """The calls that would run, read whole or in pieces."""
    parser = Parser(format, tools, in_code="reply")
    pieces = [text] if size is None else [text[at : at + size] for at in range(0, len(text), size)]
    events = [event for piece in pieces for event in parser.feed(piece)] + parser.close()
    return [event for event in events if isinstance(event, CallEnd)]


@given(replies(), st.sampled_from([*BARE, "recoverable", "auto"]), st.sampled_from((None, 1, 7)))
def test_names_alone_call_nothing(text: str, name: str, size: int | None) -> None:
    several = {"recoverable": formats.recoverable(), "auto": formats.auto()}
    assert read(text, several.get(name, name), size) == []


@pytest.mark.parametrize("name", ["json_fence", "llama3_json", "xlam"])
def test_a_call_by_name_alone_is_told_to_write_its_arguments(name: str) -> None:
    text = render_calls(name, [ToolCall("", "reset", {})], TOOLS)
    assert [call.arguments for call in formats.calls(parse(text, name, TOOLS))] == [{}]
    key = '"parameters"' if '"parameters"' in text else '"arguments"'
    events = parse(text.replace(f", {key}: {{}}", ""), name, TOOLS)
    (error,) = (event for event in events if isinstance(event, CallError))
    assert error.code == "invalid_arguments"
    assert f"under {key}, {{}} for none".replace('"', "'") in error.message


@pytest.mark.parametrize("keys", [{}, {"type": "command"}, {"parameters": None}, {"args": None}, {"id": "c1"}])
@pytest.mark.parametrize(
    "around",
    [
        ("hermes", "<tool_call>\n{}\n</tool_call>"),
        ("mistral", "[TOOL_CALLS] [{}]"),
        ("llama3_json", "<|python_tag|>{}"),
        ("xlam", '{{"tool_calls": [{}]}}'),
        ("xlam", "<tool_call>[{}]</tool_call>"),
    ],
)
def test_a_marked_call_needs_no_arguments(around: tuple[str, str], keys: dict[str, Any]) -> None:
    name, written = around
    text = written.format(json.dumps({"name": "reset", **keys}))
    assert [(call.name, call.arguments) for call in formats.calls(parse(text, name, TOOLS))] == [("reset", {})]


@pytest.mark.parametrize(
    "given",
    [
        {"name": "ls", "arguments": {}},
        {"name": "ls", "args": {}},
        {"name": "ls", "parameters": {"path": "/"}},
        {"name": "ls", "path": "/"},
        {"function": {"name": "ls", "arguments": "{}"}},
    ],
)
@pytest.mark.parametrize("name", [*BARE, "recoverable"])
def test_arguments_that_are_written_make_a_call(name: str, given: dict[str, Any]) -> None:
    text = json.dumps(given)
    if name == "json_fence":
        if "function" in given:  # JSON in a fence is a call only if it is one as it is
            return
        text = f"```json\n{text}\n```"
    several = formats.recoverable() if name == "recoverable" else name
    arguments = {"path": "/"} if "/" in text else {}
    assert [(end.call.name, end.call.arguments) for end in read(text, several)] == [("ls", arguments)]


# ---------------------------------------------------------------- a tool's own schema

TYPED: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "type": {"type": "string"}, "properties": {"type": "object"}},
    "required": [],
}
CREATE = ToolSpec("create", "Create a type.", TYPED)


@pytest.mark.parametrize("key", ["parameters", "arguments", "input_schema"])
@pytest.mark.parametrize("written", ["{}", "[{}]", "Tools:\n{}", "```json\n{}\n```"])
def test_a_tools_own_schema_does_not_call_it(key: str, written: str) -> None:
    text = written.format(json.dumps({"name": "create", key: TYPED}))
    for several in (formats.recoverable(), "llama3_json", "xlam", "json_fence"):
        assert formats.calls(parse(text, several, [CREATE], in_code="reply")) == []


def test_a_tool_with_these_parameters_can_be_called() -> None:
    other = {"type": "object", "properties": {"path": {"type": "string"}}}
    for name in ("llama3_json", "xlam", "hermes"):
        text = render_calls(name, [ToolCall("", "create", other)], [CREATE])
        assert [call.arguments for call in formats.calls(parse(text, name, [CREATE]))] == [other]
    assert render_calls("hermes", [ToolCall("", "create", TYPED)], [CREATE])
    with pytest.raises(FormatError, match="would be read back as"):
        render_calls("llama3_json", [ToolCall("", "create", TYPED)], [CREATE])


# ---------------------------------------------------------------- a tool that has a parameter `description`

TEXT: dict[str, Any] = {"type": "string"}
ISSUE = ToolSpec(
    "create_issue", "Create.", {"type": "object", "properties": {"label": TEXT, "title": TEXT, "description": TEXT}}
)
EVENT = ToolSpec(
    "add_event",
    "Add.",
    {
        "type": "object",
        "properties": {"day": TEXT, "description": TEXT, "type": TEXT, "parameters": {"type": "object"}},
    },
)
TASK = ToolSpec(
    "add_task",
    "Add.",
    {"type": "object", "properties": {"day": TEXT, "description": TEXT}, "required": ["day", "description"]},
)
DESCRIBED = (ISSUE, EVENT, TASK, TOOLS[1])
said = st.sampled_from(("Opens a new issue.", "Adds an event.", "", "x"))
declared = st.builds(
    lambda name, more: {"name": name, **dict(more)},
    st.sampled_from([tool.name for tool in DESCRIBED]),
    st.fixed_dictionaries(
        {"description": said},
        optional={
            "type": st.sampled_from(("function", "tool", "custom")),
            "title": said,
            "strict": st.booleans(),
            "index": st.integers(1, 3),
            "input_schema": st.just(ISSUE.parameters),
            "inputSchema": st.just(EVENT.parameters),
        },
    ).flatmap(lambda more: st.permutations(list(more.items()))),
)


@st.composite
def descriptions(draw: st.DrawFn) -> str:
    """Tools as JSON, each with a description, as models answer what tools they have."""
    nested = draw(st.booleans())
    several = draw(st.lists(declared, min_size=1, max_size=3))
    several = [{"type": "function", "function": one} for one in several] if nested else several
    indent = draw(st.sampled_from((None, 2)))
    lines = [json.dumps(one, indent=indent) for one in several]
    text = draw(st.sampled_from([lines[0], "\n".join(lines), json.dumps(several, indent=indent)]))
    return draw(st.sampled_from(("{}", "My tools:\n\n{}", "```json\n{}\n```", "Tools:\n{}\n"))).replace("{}", text)


@given(descriptions(), st.sampled_from([*BARE, "recoverable", "auto"]), st.sampled_from((None, 1, 7)))
def test_a_description_calls_no_tool(text: str, name: str, size: int | None) -> None:
    several = {"recoverable": formats.recoverable(), "auto": formats.auto()}
    assert read(text, several.get(name, name), size, DESCRIBED) == []


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        (
            {"name": "create_issue", "description": "It fails.", "label": "bug"},
            {"description": "It fails.", "label": "bug"},
        ),
        (
            {"name": "add_task", "day": "today", "description": "Buy milk."},
            {"day": "today", "description": "Buy milk."},
        ),
        ({"name": "create_issue", "title": "Crash"}, {"title": "Crash"}),
        ({"name": "create_issue", "arguments": {"description": "It fails."}}, {"description": "It fails."}),
        ({"name": "create_issue", "parameters": {"description": "It fails."}}, {"description": "It fails."}),
    ],
)
@pytest.mark.parametrize("name", ["llama3_json", "xlam", "recoverable"])
def test_a_tool_with_a_parameter_of_this_name_can_be_called(
    given: dict[str, Any], arguments: dict[str, Any], name: str
) -> None:
    several = formats.recoverable() if name == "recoverable" else name
    (end,) = read(json.dumps(given), several, tools=DESCRIBED)
    assert end.call.arguments == arguments


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("hermes", "<tool_call>\n{}\n</tool_call>"),
        ("llama3_json", "<|python_tag|>{}"),
        ("xlam", '{{"tool_calls": [{}]}}'),
    ],
)
def test_a_description_that_is_marked_as_a_call_is_an_argument(name: str, written: str) -> None:
    text = written.format(json.dumps({"name": "create_issue", "description": "It fails."}))
    (end,) = read(text, name, tools=DESCRIBED)
    assert end.call.arguments == {"description": "It fails."}
