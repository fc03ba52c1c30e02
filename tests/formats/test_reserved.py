"""A tool's tag that a format uses for itself is refused with words, wherever the two meet; else its calls are read."""

from __future__ import annotations

import pytest

from agentkit import Agent
from agentkit.errors import FormatError
from agentkit.events import CallEnd, Text
from agentkit.formats import CATALOG, Format, ToolSpec, parse, render_calls, render_prompt
from agentkit.messages import ToolCall
from agentkit.processor import ProcessorConfig, ResponseProcessor
from agentkit.testing import ScriptedModel
from agentkit.tool.declare import xml_schema
from agentkit.tool.registry import ToolRegistry

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NAMES = sorted(
    {"think", "thinking", "Think", "pre", "code", "reasoning", "tool_call", "invoke", "function_calls", "parameter"}
    | {tag.strip("<>[]|◁▷") for f in CATALOG for tag, _ in (*f.thinking, *f.answer) if tag[1:-1].isidentifier()}
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_a_tool_is_refused_for_its_tag_or_its_calls_are_read(format: Format, name: str) -> None:
    tools = [ToolSpec(name, "Write it down.", TEXT)]
    call = ToolCall("", name, {"text": "hello"})
    try:
        written = render_calls(format, [call], tools)
    except FormatError:
        assert format.tagged
        with pytest.raises(FormatError, match=f"tag <{name}>"):  # the name is said to be the reason
            render_calls(format, [call], tools)
        with pytest.raises(FormatError, match=f"tag <{name}>"):
            render_prompt(format, tools)
        return
    assert [(e.call.name, dict(e.call.arguments)) for e in parse(written, format, tools) if isinstance(e, CallEnd)] == [
        (name, {"text": "hello"})
    ]


@xml_schema(name="think", content="text")
def think(text: str) -> str:
    """Think."""
    return "noted"


@pytest.mark.parametrize("format", ["xml", "cline", "legacy"])
def test_a_run_and_a_loop_of_ones_own_refuse_it_before_the_model_is_asked(format: str) -> None:
    model = ScriptedModel(["<think>hello</think>"], format=format)
    with pytest.raises(FormatError, match="the tag <think>: it reads <think> as the start of thinking"):
        Agent(model, [think]).run_sync("Go")
    assert model.requests == []
    processor = ResponseProcessor(ToolRegistry(think), ProcessorConfig(formats=format))
    with pytest.raises(FormatError, match="the tag <think>"):
        processor.process([Text("<think>hello</think>")])


def test_a_native_model_and_a_format_that_is_only_read_among_others_have_such_a_tool() -> None:
    native = ScriptedModel([ToolCall("c", "think", {"text": "a"}), "Done."])
    assert Agent(native, [think]).run_sync("Go").text == "Done."
    hermes = ScriptedModel([[ToolCall("c", "think", {"text": "a"})], "Done."], format="hermes")
    assert Agent(hermes, [think], config=ProcessorConfig(formats="auto")).run_sync("Go").text == "Done."


PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
ALIKE = [("read_file", "read-file"), ("read_file", "Read_File"), ("Read", "read"), ("a-b_c", "a_b-c"), ("a_b", "a__b")]


@pytest.mark.parametrize("names", ALIKE, ids=" ".join)
@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_tools_with_nearly_the_same_name_are_refused_or_each_call_is_read_as_its_own(
    format: Format, names: tuple[str, str]
) -> None:
    tools = [ToolSpec(name, "Read.", PATH) for name in names]
    if format.name == "xml" and names in (("read_file", "read-file"), ("a-b_c", "a_b-c")):
        with pytest.raises(FormatError, match=f"cannot offer both '{names[0]}' and '{names[1]}'"):
            render_prompt(format, tools)
        return
    for name in names:
        written = render_calls(format, [ToolCall("", name, {"path": "a"})], tools)
        assert [e.call.name for e in parse(written, format, tools) if isinstance(e, CallEnd)] == [name]


def test_two_tools_with_one_tag_are_refused_before_the_model_is_asked_and_run_in_other_formats() -> None:
    ran = []

    def read_file(path: str) -> str:
        """Read."""
        ran.append("local")
        return "ok"

    def served(path: str) -> str:
        """Read."""
        ran.append("served")
        return "ok"

    registry = ToolRegistry(read_file)
    registry.register_function(served, name="read-file")
    model = ScriptedModel(["<read-file><path>x</path></read-file>"], format="xml")
    with pytest.raises(
        FormatError, match="cannot offer both 'read_file' and 'read-file': the tag of each is <read-file>"
    ):
        Agent(model, registry).run_sync("Go")
    assert model.requests == []
    call = render_calls("hermes", [ToolCall("", "read-file", {"path": "x"})], registry.specs())
    Agent(ScriptedModel([call, "Done."], format="hermes"), registry).run_sync("Go")
    assert ran == ["served"]
