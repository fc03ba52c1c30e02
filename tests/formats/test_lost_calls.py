"""No call is lost without an error where the text plainly writes one; and what only speaks of calls stays text.

A text writes a call plainly where the call's own opening stands, which nothing but calls has, and its tool's name
behind it. The fuzz (`judging.py`) counts those that become text in damaged texts.
"""

from __future__ import annotations

import pytest
from format_tools import ADD, ASK, NOTE, PING

from agentkit import formats
from agentkit.events import CallEnd, CallError, CallStart, Event, Markup, Text, merge
from agentkit.formats import CATALOG, Format, Parser
from agentkit.formats.edges import weak
from agentkit.formats.format import Envelope, KeyEnvelope, NameTag, Tag, edge
from agentkit.messages import ToolCall

TOOLS = (PING, NOTE, ADD, ASK)


def read(format: str | Format, text: str, size: int) -> list[Event]:
    parser = Parser(format, TOOLS)
    events = [event for i in range(0, len(text), size) for event in parser.feed(text[i : i + size])]
    return merge([*events, *parser.close()])


UNREADABLE: list[tuple[str, str, str]] = [
    ("mistral_compact", "[TOOL_CALLS]ping<cwd>/tmp</cwd>{}", "invalid_json"),
    ("mistral_compact", '[TOOL_CALLS]"ping"[ARGS]{}', "invalid_json"),
    ("mistral_compact", "[TOOL_CALLS]ping[CALL_ID]call2S]{} x", "invalid_json"),
    ("mistral_compact", "[TOOL_CALLS]ping[CALL_ID]call2", "truncated_call"),
    ("functiongemma", "<start_function_call>call:ping<cwd>/tmp</cwd>{}<end_function_call>", "invalid_json"),
    ("k2_horizon", "<ifm|tool_call>ping,</ifm|tool_call>", "invalid_json"),
    ("kimi_k2", "<|tool_call_begin|>functions.ping ping:0<|tool_call_argument_begin|>{}", "invalid_json"),
    ("hermes", '<tool_call>\n"{"name": "ping", "arguments": {}}\n</tool_call>', "invalid_json"),
    ("mistral", '[TOOL_CALLS]<cwd>x</cwd>{"name": "add add", "arguments": {"a": 1}}', "invalid_json"),
    ("hermes", '<tool_call><x/>{"name": "ping, "arguments": {}}</tool_call>', "invalid_json"),
    ("deepseek_v31", "<｜tool▁call▁begin｜>ping<｜tool▁s", "truncated_call"),
    ("glm45", "Sure.\n<tool_call>ping", "truncated_call"),
    ("olmo3", '<function_calls>\n"ping"()\n</function_calls>', "invalid_json"),
    ("llama4_pythonic", '<|python_start|>[{"name": "ping", "input": {}}]<|python_end|>', "invalid_json"),
    ("invoke", '<invoke naAe="ping"></invoke>', "invalid_json"),
    ("olmo3", "<function_calls>\nping)\n</function_calls>", "invalid_json"),
    ("llama4_pythonic", "<|python_start|>[ask\"text='x')]<|python_end|>", "invalid_json"),
    ("solar_open", "<|tool_call:begin|>c1<|tool_call:name|>ping ping<|tool_call:args|>{}", "invalid_json"),
    ("dr_tulu", '<call_tool<call_tool name="note"> name="ask" a="1">x</call_tool>', "ambiguous_call"),
    ("xml", '<add a, b="2"/>', "invalid_json"),
    ("xml", '<add <tool_input>a="1" b="2"/>', "invalid_json"),
    ("xml", '<add <umber="2"/>', "invalid_json"),
    ("legacy", '<note <｜tool▁call▁end｜>text="2">x</note>', "invalid_json"),
    ("legacy", "Sure.\n<note tex", "truncated_call"),
]


@pytest.mark.parametrize(("format", "text", "code"), UNREADABLE)
def test_what_names_a_tool_behind_its_opening_and_cannot_be_read_is_an_error(format: str, text: str, code: str) -> None:
    for size in (len(text), 1):
        events = read(format, text, size)
        assert [e.code for e in events if isinstance(e, CallError)] == [code]
        assert not any(isinstance(e, CallEnd) for e in events)


@pytest.mark.parametrize(("format", "text"), [(format, text) for format, text, _ in UNREADABLE])
def test_where_such_a_text_is_cut_in_two_makes_no_difference(format: str, text: str) -> None:
    whole = read(format, text, len(text))
    for at in range(1, len(text)):
        parser = Parser(format, TOOLS)
        assert merge([*parser.feed(text[:at]), *parser.feed(text[at:]), *parser.close()]) == whole, text[:at]


def test_a_call_behind_one_that_cannot_be_read_is_made() -> None:
    text = '[TOOL_CALLS]"add"[ARGS]{"a": 1}[TOOL_CALLS]ping[ARGS]{}'
    first, second = [e for e in read("mistral_compact", text, 3) if isinstance(e, CallEnd | CallError)]
    assert isinstance(first, CallError)
    assert first.call.raw == '[TOOL_CALLS]"add"[ARGS]{"a": 1}'
    assert first.message == "a call of 'add' starts here and cannot be read at position 12"
    assert isinstance(second, CallEnd)


def test_a_call_whose_id_cannot_be_read_is_told_once_and_what_is_before_it_stays_as_it_is() -> None:
    text = "[TOOL_CALLS]ping[CALL_ID]call1[ARGS]{}\n[TOOL_CALLS]ping[CALL_ID]call2S]{}"
    for size in (len(text), 1):
        begun, _, first, between, again, error = read("mistral_compact", text, size)
        assert isinstance(first, CallEnd)
        assert isinstance(error, CallError)
        assert (between, first.call.raw + "\n" + error.call.raw) == (Markup("\n"), text)
        assert [begun, again] == [CallStart(0, "ping"), CallStart(1, "ping")]


MENTIONS = (
    "Behind {0}, note that ping ends it.", "The {0} delimiter", "{0}. Then (ask) note.", "I would say {0}; note: this.",
    '{0}, "ping" and "add" are words.', "Some write {0} (ping) or so.",
    "{0} or {0} or {0}: ask me.", "Use {0} `ping(`.",
)  # fmt: skip
TAGS = ("The tag <add <b>two</b> numbers", "A <note <i>x</i> y> tag.", "<ask <b>me</b>", "(<add</b>) ping).")
"""What only speaks of a tool's tag: other tags in it come before no attribute."""
NAMES = ("deepseek_v3", "kimi_k3", "harmony")
"""Here any word behind the opening is read as a tool's name, for what follows a name may stand far behind it."""


@pytest.mark.parametrize("format", [f for f in CATALOG if f.name not in NAMES], ids=lambda format: format.name)
def test_an_opening_of_which_prose_speaks_is_text(format: Format) -> None:
    for shape in format.shapes:
        first = shape.call[0]
        own = f"<{first.name}" if isinstance(first, NameTag) else first if isinstance(first, str) else ""
        around = shape.section.open if shape.section is not None and not isinstance(shape.section.open, Tag) else ""
        for opening in {text.strip() for text in (own, edge(around)) if text.strip() and not weak(text)}:
            for said in MENTIONS:
                text = said.format(opening)
                if "ping(" in text and "[" in opening:
                    continue  # a list of calls may hold code
                for size in (len(text), 1):
                    assert not any(isinstance(e, CallEnd | CallError) for e in read(format, text, size)), text


@pytest.mark.parametrize("text", TAGS)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_tag_of_which_prose_speaks_is_text(text: str, size: int) -> None:
    assert not any(isinstance(e, CallEnd | CallError) for e in read("xml", text, size))


def test_a_value_that_begins_like_the_rest_of_a_tag_is_content_where_it_is_marked_as_such_or_does_not_end() -> None:
    texts = (
        '<call_tool name="note">name="a" b > 2</call_tool>',
        '<call_tool name="note"><![CDATA[ name="a">]]></call_tool>',
    )
    read_ = [e.call.arguments for text in texts for e in read("dr_tulu", text, 3) if isinstance(e, CallEnd)]
    assert read_ == [{"text": 'name="a" b > 2'}, {"text": ' name="a">'}]


@pytest.mark.parametrize("format", ["mistral", "mistral_compact"])
@pytest.mark.parametrize("between", ["", "\n", ", "])
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_call_behind_another_needs_no_opening_where_its_name_and_what_follows_names_show_it(
    format: str, between: str, size: int
) -> None:
    text = f'[TOOL_CALLS]ping[ARGS]{{}}{between}add[ARGS]{{"a": 1, "b": 2}}{between}ping[ARGS]{{}}'
    assert [e.call.name for e in read(format, text, size) if isinstance(e, CallEnd)] == ["ping", "add", "ping"]
    for said in ("add it", ", add [ARG", " Pings[ARGS]{}", "x ping[ARGS]{}"):
        *_, end, after = read(format, f"[TOOL_CALLS]ping[ARGS]{{}}{said}", size)
        assert isinstance(end, CallEnd)
        assert after == Text(said)


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_internlm_calls_without_the_word_for_a_plugin_are_read(size: int) -> None:
    text = '<|action_start|>{"name": "ping", "parameters": {}}<|action_end|>'
    assert [e.call.name for e in read("internlm", text, size) if isinstance(e, CallEnd)] == ["ping"]


@pytest.mark.parametrize(
    "text",
    [
        "[nte(text='x', more=[note(text='y')])]",
        "[nte(text='[note(text=1)]')]",
        """["see [note(text='x')]", "b"]""",
    ],
)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_list_of_calls_in_a_value_of_a_damaged_one_is_not_made(text: str, size: int) -> None:
    assert not [e for e in read("pythonic", text, size) if isinstance(e, CallEnd)]


PROSE_WITH_A_BRACKET = (
    "From a[0 on: ", "x[i ", "The interval [0, 1): ", "[[1, 2 and ", "[see ", "[</b>", '["a ', "See [this\n",
)  # fmt: skip


@pytest.mark.parametrize(
    ("format", "calls"),
    [
        ("pythonic", "[note(text='x'), ping()]"),
        ("llama4_pythonic", "<|python_start|>[note(text='x'), ping()]<|python_end|>"),
        ("llama4_pythonic", "[note(text='x'), ping()]"),
    ],
)
@pytest.mark.parametrize("prose", PROSE_WITH_A_BRACKET)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_bracket_in_prose_is_no_list_of_calls_that_begins_with_damage(
    format: str, calls: str, prose: str, size: int
) -> None:
    """The list behind it has a bracket of its own."""
    events = read(format, prose + calls, size)
    assert "".join(e.text for e in events if isinstance(e, Text)) == prose
    assert [e.call.name for e in events if isinstance(e, CallEnd | CallError)] == ["note", "ping"]
    assert not any(isinstance(e, CallError) for e in events)


@pytest.mark.parametrize("format", ["pythonic", "llama4_pythonic"])
@pytest.mark.parametrize("instead", ["9", "<", "{", " ", "=", "_", "-", ":", ";", ".", ",", "!", "]"])
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_bare_list_whose_first_call_has_another_character_for_its_bracket_is_one_of_calls(
    format: str, instead: str, size: int
) -> None:
    for first in ("a=1, b=2", "a='{x: [1]}', b={'k': [None]}"):
        events = read(format, f"[add{instead}{first}), ping()]", size)
        assert [e.code for e in events if isinstance(e, CallError)] == ["invalid_json"]
        assert [e.call.name for e in events if isinstance(e, CallEnd)] == ["ping"]
    for prose in ("[adding, a=1), note", "[add it (now), ping", "[add, b=2), or ping()]", "[pinging), note]"):
        assert not any(isinstance(e, CallEnd | CallError) for e in read(format, prose, size)), prose


@pytest.mark.parametrize("format", ["pythonic", "llama4_pythonic"])
@pytest.mark.parametrize("instead", ["]", "[", "{", "<", "9"])
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_call_without_arguments_that_begins_a_bare_list_and_has_a_wrong_bracket_is_an_error(
    format: str, instead: str, size: int
) -> None:
    events = read(format, f"[ping{instead}), note(text='{'x' * 200}')]", size)
    assert [e.code for e in events if isinstance(e, CallError)] == ["invalid_json"]
    assert [e.call.name for e in events if isinstance(e, CallEnd)] == ["note"]
    for prose in ("[ping], note(1)", "(see [ping]), then note(text)", "[ping]), and note('x')", "[1]), note(text='x')"):
        assert not any(isinstance(e, CallEnd | CallError) for e in read(format, prose, size)), prose


LISTS = [f for f in CATALOG if f.section is not None and isinstance(f.call[0], Envelope | KeyEnvelope)]
LISTS = [f for f in LISTS if not weak(f.section.open)]  # type: ignore[union-attr]


@pytest.mark.parametrize("format", LISTS, ids=lambda f: f.name)
@pytest.mark.parametrize("inner", ['[{"name": "note", "args": {"text": "x"}}]', '[{"name": "ping", "arguments": {}}]'])
def test_a_list_goes_on_behind_another_list_in_it(format: Format, inner: str) -> None:
    calls = [ToolCall("", "add", {"a": 1, "b": 2}), ToolCall("", "ping", {}), ToolCall("", "ask", {"text": "y"})]
    text = formats.render_calls(format, calls, TOOLS)
    one = formats.render_calls(format, calls[1:2], TOOLS)
    edge_at = one.index("{")
    ping = one[edge_at : one.rindex("}") + 1]
    for declared in ((format,), formats.auto()):
        parser = Parser(declared, TOOLS)
        events = merge([*parser.feed(text.replace(ping, inner)), *parser.close()])
        assert [e.call.name for e in events if isinstance(e, CallEnd)][-1] == "ask", declared
        assert not any(isinstance(e, Text) and e.text.strip() for e in events), events


@pytest.mark.parametrize("format", LISTS, ids=lambda f: f.name)
@pytest.mark.parametrize("junk", ["}", "}]", ")", ")]"])
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_list_that_goes_on_after_its_end_and_more_brackets_is_one_list(format: Format, junk: str, size: int) -> None:
    calls = [ToolCall("", "add", {"a": 1, "b": 2}), ToolCall("", "ping", {}), ToolCall("", "ask", {"text": "y"})]
    text = formats.render_calls(format, calls, TOOLS)
    at = text.index("}}") + 2
    events = read(format, f"{text[:at]}]{junk}{text[at:]}", size)
    assert [e.call.name for e in events if isinstance(e, CallEnd)] == ["add", "ping", "ask"]


DAMAGED_FIRST = (
    '{"nme": "ping", "arguments": {}}', '{"name": "pong", "arguments": {}}', '{"name" "ping", "arguments": {}},',
    '{"name": "ping", "argments": {}, "b": 1}', '{"name": "ping" "arguments": {}}',
)  # fmt: skip


@pytest.mark.parametrize("first", DAMAGED_FIRST)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_damaged_call_in_a_fence_is_an_error_if_another_call_is_in_it(first: str, size: int) -> None:
    good = '{"name": "ping", "arguments": {}}'
    text = f"So:\n```json\n{first}\n{good}\n```\nDone.\n```json\n{good}\n```"
    events = read("json_fence", text, size)
    assert [e.code for e in events if isinstance(e, CallError)] == ["invalid_json"]
    assert [e.call.name for e in events if isinstance(e, CallEnd)] == ["ping"]
    assert Text("\nDone.\n") in events
    shown = (
        f"```json\n{first}\n```",
        '```json\n{"city": "Paris"}\n{"name": "Bob", "arguments": {}}\n```',
        '```json\n{"name": "Bob", "age": 3}\n{"name": "ping", "description": "Ping."}\n```',
    )
    for text in shown if "pong" in first or "nme" in first else shown[1:]:
        assert not any(isinstance(e, CallEnd | CallError) for e in read("json_fence", text, size)), text


@pytest.mark.parametrize("format", ["phi4_mini_json", "granite", "nemotron_nano", "llama4_pythonic"])
@pytest.mark.parametrize("junk", ["<cwd>/tmp</cwd>", "x", " and so"])
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_list_that_goes_on_after_its_end_and_something_else_is_one_list(format: str, junk: str, size: int) -> None:
    whole = formats.render_calls(format, [ToolCall("", "ping", {})] * 2, TOOLS)
    call = "ping()" if "ping()" in whole else '{"name": "ping", "arguments": {}}'
    text = whole.replace(f"{call}, ", f"{call}]{junk}, ", 1)
    events = read(format, text, size)
    assert [e.code for e in events if isinstance(e, CallError)] == ["invalid_json"]
    assert [e.call.name for e in events if isinstance(e, CallEnd)] == ["ping", "ping"]
    for prose in (" That is all, ping me.", ", so {it} is", " x, [y"):
        *_, last = read(format, formats.render_calls(format, [ToolCall("", "ping", {})], TOOLS) + prose, size)
        assert last == Text(prose)
