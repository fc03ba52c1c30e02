"""The rules of a format's prompt: no result to copy, a call of each tool, within a budget. Reasons: docs/prompts.md."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit.formats import CATALOG, Format, ToolSpec, calls, parse, render_prompt
from agentkit.toolspec import Element, Node

TEXT = {"type": "string"}


def tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> ToolSpec:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name, f"Does {name}.", parameters)


READ = tool("read", ("path",), path=TEXT, lines={"type": "integer", "description": "how many"})
SAVE = tool("save", ("path", "text"), path=TEXT, text=TEXT)


def examples(prompt: str) -> str:
    return prompt[prompt.index("\n\nTo call ") :]


every_format = pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)


@every_format
def test_the_prompt_contains_no_result(format: Format) -> None:
    prompt = render_prompt(format, [READ, SAVE])
    assert format.result.open.format(name="read", id="call_1", status="success").strip() not in prompt


@every_format
def test_each_tool_has_an_example_and_nothing_follows_the_examples(format: Format) -> None:
    shown = examples(render_prompt(format, [READ, SAVE]))
    found = calls(parse(shown, format, [READ, SAVE]))
    assert [call.name for call in found] == ["read", "save"]


@pytest.mark.parametrize("format", ["xml", "hermes", "invoke", "qwen3_coder", "pythonic"])
def test_an_example_shows_optional_parameters_too(format: str) -> None:
    assert "lines" in examples(render_prompt(format, [READ]))


@every_format
def test_the_examples_of_many_tools_stay_in_the_budget(format: Format) -> None:
    many = [tool(f"tool_{n}", ("path",), path=TEXT, text=TEXT) for n in range(40)]
    shown = examples(render_prompt(format, many))
    assert len(shown) <= 3_600  # 2,400 characters of examples, and what joins them


def test_a_tool_that_needs_no_parameter_is_the_last_to_be_shown() -> None:
    shown = examples(render_prompt("hermes", [tool("now"), READ]))
    assert shown.index('"read"') < shown.index('"now"')


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder", "pythonic"])
def test_the_tools_are_listed_in_words(format: str) -> None:
    address = {"type": "object", "properties": {"city": TEXT, "zip": {"type": "integer"}}, "required": ["city"]}
    send = tool(
        "send",
        ("to",),
        to={"type": "array", "items": address, "description": "The recipients."},
        how={"enum": ["mail", "fax"], "default": "fax"},
    )
    assert (
        render_prompt(format, [send])
        .split("\n\n## How to call")[0]
        .endswith(
            """\
## send

Does send.
- `to` (list of object, required): The recipients.
  - `city` (string, required)
  - `zip` (integer, optional)
- `how` ("mail" or "fax", optional) Default "fax"."""
        )
    )


def test_a_recursive_schema_is_listed_once() -> None:
    node = {"type": "object", "properties": {name: {"$ref": "#/$defs/Node"} for name in ("left", "right", "up")}}
    row = {"type": "array", "items": {"$ref": "#/$defs/Row"}}
    parameters = {
        "type": "object",
        "properties": {"first": {"$ref": "#/$defs/Node"}, "rows": {"$ref": "#/$defs/Row"}},
        "$defs": {"Node": node, "Row": row},
    }
    assert render_prompt("hermes", [ToolSpec("walk", "", parameters)]).count("`left`") == 1


def test_attributes_are_explained_only_where_there_are_some() -> None:
    with_attribute = ToolSpec("read", "", READ.parameters, Element("read", (Node("path", "attribute", ("path",)),)))
    assert "&quot;" in render_prompt("xml", [with_attribute])
    assert "&quot;" not in render_prompt("xml", [READ])
