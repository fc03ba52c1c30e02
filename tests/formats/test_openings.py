"""An opening that is written otherwise than declared: the call is made, or an error tells of it; it is never text."""

from __future__ import annotations

import re

import pytest
from corpora import source
from format_tools import ADD, ASK, PING, attribute, element, spec

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, Text, merge
from agentkit.formats import CATALOG, Element, Format, Node, Parser
from agentkit.messages import ToolCall
from agentkit.toolspec import ToolSpec

TOOLS = (ASK, PING)
CALL = ToolCall("", "ask", {"text": "a"})
_PLAIN_TAG = re.compile(r"<(?P<close>/?)(?P<name>[a-zA-Z][\w.:|-]*)(?P<end>[>=])")


def read(text: str, format: str | Format, tools: tuple[ToolSpec, ...] = TOOLS) -> list[Event]:
    """The events of a text, which are the same by the character."""
    whole = formats.parse(text, format, tools)
    parser = Parser(format, tools)
    events = [e for c in text for e in parser.feed(c)]
    assert merge([*events, *parser.close()]) == whole
    assert source(whole) == text
    return whole


def opening(format: Format) -> str:
    """The plain tag with which the text of a call begins; empty where it begins with none."""
    text = formats.render_calls(format, [CALL], TOOLS)
    found = _PLAIN_TAG.match(text.lstrip())
    fixed = found is not None and found["name"] != "ask"
    return found[0] if found is not None and fixed else ""


TAGGED = [f for f in CATALOG if opening(f)]


@pytest.mark.parametrize("format", TAGGED, ids=lambda f: f.name)
@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_an_opening_tag_is_read_in_any_case(format: Format, case: type[str]) -> None:
    text, tag = formats.render_calls(format, [CALL], TOOLS), opening(format)
    if tag.endswith("=") or "|" in tag:  # a token is read as it is
        return
    name = tag[1:-1]
    text = text.replace(tag, f"<{case(name)}>", 1).replace(f"</{name}>", f"</{case(name)}>")
    events = read(text, format)
    assert [e.call.arguments for e in events if isinstance(e, CallEnd)] == [{"text": "a"}]
    assert not [e for e in events if isinstance(e, CallError)]
    assert not source([e for e in events if isinstance(e, Text)]).strip()


@pytest.mark.parametrize("format", ["hermes", "glm45", "invoke", "jamba"])
def test_an_opening_tag_with_attributes_that_nothing_reads_runs_nothing(format: str) -> None:
    text = formats.render_calls(format, [CALL], TOOLS)
    text = text.replace("<invoke ", '<invoke id="c1" ') if format == "invoke" else text.replace(">", ' id="c1">', 1)
    assert not [e for e in read(text, format) if isinstance(e, CallEnd)]


@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_an_opening_in_another_opening_tag_runs_nothing_with_the_rest_of_that(format: Format) -> None:
    tools = (ASK, ADD)
    inner = formats.render_calls(format, [ToolCall("", "ask", {"text": "zz"})], tools).strip().partition("zz")[0]
    text = formats.render_calls(format, [ToolCall("", "add", {"a": 1, "b": 2})], tools)
    for tag in _OPENING.finditer(text):
        for at in range(tag.start("rest") + 1, tag.end("rest") + 1):
            damaged = text[:at] + inner + text[at:]
            made = [e.call for e in read(damaged, format, tools) if isinstance(e, CallEnd)]
            assert not [call for call in made if call.name == "ask"], damaged


_OPENING = re.compile(r"<[^\W\d][^\s<>=]*(?P<rest>[^<>]*)>")


@pytest.mark.parametrize(
    "format", [f for f in CATALOG if '"ask"' in formats.render_calls(f, [CALL], TOOLS)], ids=lambda f: f.name
)
@pytest.mark.parametrize("name", [r"\ask", r"a\bask", r"\fask", r"ask\n", r"\1ask", r"\u0000ask"])
def test_an_escape_makes_no_other_name_of_a_tools(format: Format, name: str) -> None:
    text = formats.render_calls(format, [CALL], TOOLS).replace('"ask"', f'"{name}"')
    assert not [e.call.name for e in read(text, format) if isinstance(e, CallEnd) and not e.call.name.isprintable()]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("gemma4", '<|tool_call>ask{text:<|"|>a<|"|>}<tool_call|>'),
        ("functiongemma", "<start_function_call>ask{text:<escape>a<escape>}<end_function_call>"),
        ("kimi_k2", '<|tool_call_begin|>functions.ask:0{"text": "a"}<|tool_call_end|>'),
    ],
)
def test_an_opening_without_the_word_or_token_behind_it_is_read(format: str, text: str) -> None:
    assert [e.call.arguments for e in read(text, format) if isinstance(e, CallEnd)] == [{"text": "a"}]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("pythonic", "[tools.ask(text='a')]"),
        ("pythonic", "[functions.ask(text='a'), ping()]"),
        ("llama3_json", '{"name": "functions.ask", "parameters": {"text": "a"}}'),
        ("xlam", '[{"name": "functions.ask", "arguments": {"text": "a"}}]'),
    ],
)
def test_a_tools_name_after_a_modules_is_that_of_the_tool(format: str, text: str) -> None:
    first, *_ = [e for e in read(text, format) if isinstance(e, CallEnd)]
    assert first.call.name == "ask"
    assert not [e for e in read(text, format) if isinstance(e, Text)]


def test_a_list_with_what_only_python_could_unpack_is_an_error() -> None:
    (event,) = [e for e in read("[ask(**{'text': 'a'})]", "pythonic") if isinstance(e, CallEnd | CallError)]
    assert isinstance(event, CallError)
    assert event.code == "invalid_arguments"


# ---------------------------------------------------------------- a tool's own tag


def _tool(name: str, tag: str) -> ToolSpec:
    return spec(
        name, Element(tag, (attribute("path"), element("text"))), ("path", "text"), path="string", text="string"
    )


@pytest.mark.parametrize("format", ["xml", "cline", "legacy"])
@pytest.mark.parametrize(("name", "written"), [("write_file", "write-file"), ("write-file", "write_file")])
def test_a_hyphen_in_a_tools_tag_is_an_underscore_too(format: str, name: str, written: str) -> None:
    tool = _tool(name, name)
    text = formats.render_calls(format, [ToolCall("", name, {"path": "a", "text": "b"})], [tool])
    events = read(text.replace(name, written), format, (tool,))
    assert [(e.call.name, e.call.arguments) for e in events if isinstance(e, CallEnd)] == [
        (name, {"path": "a", "text": "b"})
    ]


def test_of_two_tools_that_differ_in_a_hyphen_each_tag_calls_its_own() -> None:
    tools = (_tool("write_file", "write_file"), _tool("other", "write-file"))
    text = '<write-file path="a"><text>b</text></write-file><write_file path="c"><text>d</text></write_file>'
    events = read(text, "xml", tools)
    assert [e.call.name for e in events if isinstance(e, CallEnd)] == ["other", "write_file"]


# ---------------------------------------------------------------- content in tags of its own

BASH = spec("bash", Element("bash", (Node("command", "content"),)), ("command",), command="string", timeout="integer")


@pytest.mark.parametrize("inside", ["echo <command>ls</command>", "<b>ls</b>", "<command>a</command> b", "a < b"])
def test_other_tags_in_content_are_content(inside: str) -> None:
    (event,) = [e for e in read(f"<bash>{inside}</bash>", "xml", (BASH,)) if isinstance(e, CallEnd | CallError)]
    assert isinstance(event, CallEnd)
    assert event.call.arguments == {"command": inside}
