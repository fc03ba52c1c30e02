"""An opening that is written otherwise than declared: the call is made, or an error tells of it; it is never text."""

from __future__ import annotations

import re

import pytest
from corpora import source
from format_tools import ADD, ASK, PING, attribute, element, spec

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, Text, merge
from agentkit.formats import CATALOG, Element, Format, Node, Parser
from agentkit.formats.format import NameTag
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
@pytest.mark.parametrize("attributes", ["", " ", ' id="c1"', ' type="function" index="0"', " xmlns='x'"])
@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_an_opening_tag_is_read_in_any_case_and_with_attributes_that_say_nothing(
    format: Format, attributes: str, case: type[str]
) -> None:
    text, tag = formats.render_calls(format, [CALL], TOOLS), opening(format)
    if tag.endswith("="):
        return
    name = tag[1:-1]
    text = text.replace(tag, f"<{case(name)}{attributes}>", 1)
    if case is str.upper:
        text = text.replace(f"</{name}>", f"</{name.upper()}>")
    events = read(text, format)
    assert [e.call.arguments for e in events if isinstance(e, CallEnd)] == [{"text": "a"}]
    assert not [e for e in events if isinstance(e, CallError)]
    assert not source([e for e in events if isinstance(e, Text)]).strip()


@pytest.mark.parametrize("format", TAGGED, ids=lambda f: f.name)
@pytest.mark.parametrize("attributes", [' name="ask"', " name='ask' x='1'", ' tool="ask" text="a"'])
def test_what_would_be_lost_with_an_opening_tag_is_an_error(format: Format, attributes: str) -> None:
    text, tag = formats.render_calls(format, [CALL], TOOLS), opening(format)
    name = tag[1:-1]
    text = text.replace(f"{tag}ask>" if tag.endswith("=") else tag, f"<{name}{attributes}>", 1)
    events = read(text, format)
    if format.section is not None and isinstance(format.call[0], str | NameTag):  # the call in it tells itself
        assert [e for e in events if isinstance(e, CallEnd | CallError)]
    else:
        assert [e for e in events if isinstance(e, CallError)]
        assert not [e for e in events if isinstance(e, CallEnd)]


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


def test_the_id_in_an_opening_tag_is_the_calls() -> None:
    text = '<tool_call id="c1">{"name": "ping", "arguments": {}}</tool_call>'
    (event,) = [e for e in read(text, "hermes") if isinstance(e, CallEnd)]
    assert (event.call.id, event.call.raw) == ("c1", text)


@pytest.mark.parametrize(
    "format", [f for f in CATALOG if '"ask"' in formats.render_calls(f, [CALL], TOOLS)], ids=lambda f: f.name
)
@pytest.mark.parametrize("name", [r"\ask", r"a\bask", r"\fask", r"ask\n", r"\1ask", r"\u0000ask"])
def test_an_escape_makes_no_other_name_of_a_tools(format: Format, name: str) -> None:
    text = formats.render_calls(format, [CALL], TOOLS).replace('"ask"', f'"{name}"')
    assert not [e.call.name for e in read(text, format) if isinstance(e, CallEnd) and not e.call.name.isprintable()]


PYTHON = "ask(text='a')"


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("hermes", f"<tool_call>{PYTHON}</tool_call>"),
        ("hermes", '<tool_call>\nask\n{"text": "a"}\n</tool_call>'),
        ("glm45", f"<tool_call>{PYTHON}</tool_call>"),
        ("qwen3_coder", f"<tool_call>\n{PYTHON}\n</tool_call>"),
        ("gemma4", f"<|tool_call>call:{PYTHON}<tool_call|>"),
        ("gemma4", f"<|tool_call>{PYTHON}<tool_call|>"),
        ("functiongemma", f"<start_function_call>{PYTHON}<end_function_call>"),
        ("mistral", f"[TOOL_CALLS] [{PYTHON}]"),
        ("mistral_compact", f"[TOOL_CALLS]{PYTHON}"),
        ("kimi_k2", f"<|tool_call_begin|>functions.ask:0{PYTHON[3:]}<|tool_call_end|>"),
        ("qwen3_coder", '<function name="ask"><parameter name="text">a</parameter></function>'),
        ("function_json", '<function name="ask">{"text": "a"}</function>'),
        ("seed_oss", '<seed:tool_call><function name="ask"></function></seed:tool_call>'),
        ("hy_v3", "<tool_call>\n<tool_calls>ask<tool_sep>\n</tool_call>\n</tool_calls>"),
        ("deepseek_v31", "<｜tool▁call▁begin｜><｜tool▁calls▁begin｜>ask<｜tool▁sep｜>{}<｜tool▁call▁end｜>"),
        ("jamba", '<tool_calls name="ask">{"text": "a"}</tool_calls>'),
        ("jamba", '<tool_calls>{"name": "ask", "arguments": {"text": "a"}}</tool_calls>'),
        ("granite", '<|tool_call|>{"name": "ask", "arguments": {"text": "a"}}'),
        ("cohere_command", '<|START_ACTION|>{"tool_name": "ask", "parameters": {}}<|END_ACTION|>'),
        ("apertus", '<|tools_prefix|>{"ask": {"text": "a"}}<|tools_suffix|>'),
        ("kimi_k2", "<|tool_calls_section_begin|>functions.ask:0<|tool_call_argument_begin|>{}<|tool_call_end|>"),
        ("deepseek_v3", "<｜tool▁calls▁begin｜>function<｜tool▁sep｜>ask\n```json\n{}\n```<｜tool▁call▁end｜>"),
    ],
)
def test_a_call_written_as_another_family_writes_it_is_an_error(format: str, text: str) -> None:
    events = read(text, format)
    assert [(e.code, e.call.name) for e in events if isinstance(e, CallError)] == [("invalid_json", "")]
    assert not [e for e in events if isinstance(e, CallEnd)]


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


LISTS = re.compile(r"\s*\]\s*(?=<[|/]|```)")


@pytest.mark.parametrize("format", [f for f in CATALOG if f.section and LISTS.match(str(f.section.close))])
def test_a_list_is_over_with_the_token_behind_its_bracket_if_that_is_missing(format: Format) -> None:
    assert format.section is not None
    close = str(format.section.close)
    text = formats.render_calls(format, [CALL], TOOLS).replace(close, LISTS.sub("", close))
    events = read(f"{text} Done.", format)
    assert [e.call.arguments for e in events if isinstance(e, CallEnd)] == [{"text": "a"}]
    assert [e for e in events if isinstance(e, Text) and e.text.strip()] == [Text(" Done.")]
    assert not [e for e in events if isinstance(e, CallError)]


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


@pytest.mark.parametrize(
    "inside",
    [
        "<command>ls</command>", "\n<command>\nls\n</command>\n", "<timeout>5</timeout><command>ls</command>",
        "<command>ls", "ls</command>", "<command><command>ls</command></command>",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("format", "around"),
    [("xml", "<bash>{}</bash>"), ("legacy", "<bash>{}</bash>"), ("dr_tulu", '<call_tool name="bash">{}</call_tool>')],
)
def test_content_that_stands_in_tags_of_a_parameter_is_ambiguous(format: str, around: str, inside: str) -> None:
    (event,) = [e for e in read(around.format(inside), format, (BASH,)) if isinstance(e, CallEnd | CallError)]
    assert isinstance(event, CallError)
    assert event.code == "ambiguous_call"
    assert "CDATA" in event.message


@pytest.mark.parametrize("inside", ["echo <command>ls</command>", "<b>ls</b>", "<command>a</command> b", "a < b"])
def test_other_tags_in_content_are_content(inside: str) -> None:
    (event,) = [e for e in read(f"<bash>{inside}</bash>", "xml", (BASH,)) if isinstance(e, CallEnd | CallError)]
    assert isinstance(event, CallEnd)
    assert event.call.arguments == {"command": inside}


@pytest.mark.parametrize("format", ["xml", "legacy", "dr_tulu"])
@pytest.mark.parametrize("value", ["<command>ls</command>", "<command>ls", "ls</command>"])
def test_a_value_in_such_tags_is_written_to_the_letter(format: str, value: str) -> None:
    text = formats.render_calls(format, [ToolCall("", "bash", {"command": value})], (BASH,))
    assert "<![CDATA[" in text
    assert [e.call.arguments for e in read(text, format, (BASH,)) if isinstance(e, CallEnd)] == [{"command": value}]
