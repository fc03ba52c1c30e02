"""Calls that are written otherwise than their format wants: each is read, or answered with an error; none is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from corpora import source
from format_tools import spec

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, Markup, SourceEvent, Text, merge
from agentkit.formats import CATALOG, Format, Parser
from agentkit.formats.edges import lists_of
from agentkit.formats.format import Envelope, Json, Tag
from agentkit.formats.otherkeys import OTHER_ARGUMENTS
from agentkit.messages import ToolCall

BASH = spec("bash", None, ("command",), command="string", timeout="integer")
PING = spec("ping", None, ())
WRAP = spec("wrap", None, (), input={"type": "object"}, command="string")
TOOLS = (BASH, PING, WRAP)
ENVELOPED = [f for f in CATALOG if any(isinstance(part, Envelope) for part in f.call)]
every_envelope = pytest.mark.parametrize("format", ENVELOPED, ids=lambda f: f.name)


def read(text: str, given: Any, **how: Any) -> list[Event]:
    """The events of a text, the same whole, by the character and in threes; nothing of it is lost."""
    found = []
    for size in (max(len(text), 1), 1, 3):
        parser = Parser(given, TOOLS, **how)
        events: list[SourceEvent] = []
        for at in range(0, len(text), size):
            events += parser.feed(text[at : at + size])
        found.append(merge([*events, *parser.close()]))
    assert found[0] == found[1] == found[2]
    assert source(found[0]) == text
    return found[0]


def made(events: list[Event]) -> list[Any]:
    """Return the outcome of each call: its name, arguments and repairs, or the code of its error."""
    return [
        (e.call.name, dict(e.call.arguments), e.repairs) if isinstance(e, CallEnd) else e.code
        for e in events
        if isinstance(e, CallEnd | CallError)
    ]


def shown(events: list[Event]) -> str:
    return "".join(e.text for e in events if isinstance(e, Text))


def enveloped(format: Format, body: str) -> str:
    """An envelope, as it is written, inside the markup of the format."""
    call = formats.render_calls(format, [ToolCall("", "ping", {})], TOOLS)
    start = call.index("{", call.rfind("tool_calls") if '{"tool_calls"' in call else 0)
    return call[:start] + body + call[call.index("}}", start) + 2 :]


def name_key(format: Format) -> str:
    return next(part.name for part in format.call if isinstance(part, Envelope))


# ---------------------------------------------------------------- arguments under another key


@every_envelope
@pytest.mark.parametrize("key", OTHER_ARGUMENTS)
def test_arguments_under_any_key_are_read_where_only_one_reading_fits(format: Format, key: str) -> None:
    own = next(part.arguments for part in format.call if isinstance(part, Envelope))
    body = json.dumps({name_key(format): "bash", key: {"command": "ls"}})
    repairs = () if key in own else ("arguments_key",)
    assert made(read(enveloped(format, body), format)) == [("bash", {"command": "ls"}, repairs)]


@every_envelope
def test_flat_arguments_are_read_where_only_they_fit(format: Format) -> None:
    body = json.dumps({name_key(format): "bash", "command": "ls", "timeout": 5})
    arguments = {"command": "ls", "timeout": 5}
    assert made(read(enveloped(format, body), format)) == [("bash", arguments, ("arguments_key",))]


@every_envelope
@pytest.mark.parametrize(
    "given",
    [
        {"name": "bash", "args": {"cmd": "ls"}},  # not what the tool takes
        {"name": "bash", "args": {}},  # not all that it requires
        {"name": "bash", "input": "ls"},
        {"name": "bash", "cmd": "ls"},
        {"name": "ping", "force": True},
        {"name": "wrap", "input": {"command": "ls"}},  # its parameter, or its arguments
        {"name": "ping", "description": "Ping the server"},
        {"name": "bash", "description": "Run it", "parameters": {"type": "object", "properties": {"command": {}}}},
        {"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}},
    ],
    ids=lambda given: json.dumps(given)[:50],
)
def test_what_fits_in_no_way_or_in_two_or_describes_a_tool_is_never_a_call(format: Format, given: Any) -> None:
    body = json.dumps({name_key(format) if k == "name" else k: v for k, v in given.items()})
    if "args" in given and format.name == "inkling":
        return  # its own key: what stands there is for validation to judge
    events = read(enveloped(format, body), format)
    assert [m for m in made(events) if not isinstance(m, str)] == []
    assert made(events) or shown(events) == enveloped(format, body), "it is answered, or it is text"


@every_envelope
def test_the_envelope_of_openais_api_is_read_in_every_other_one(format: Format) -> None:
    """Without a token, what is around the call is text; in a fence, only the format's own object is a call."""
    if format.name == "json_fence":
        return
    inner = {name_key(format): "bash", "arguments": '{"command": "ls"}'}
    repairs = (
        ("doubly_encoded",)
        if "arguments" in next(p.arguments for p in format.call if isinstance(p, Envelope))
        else ("arguments_key", "doubly_encoded")
    )
    for around in ({"type": "function", "function": inner}, {"id": "call_1", "type": "function", "function": inner}):
        events = read(enveloped(format, json.dumps(around)), format)
        assert made(events) == [("bash", {"command": "ls"}, repairs)]
        assert ("function" if format.name in ("llama3_json", "xlam") else "") in shown(events).strip()


def test_a_list_of_calls_as_openais_api_has_it() -> None:
    call = '{"id": "a", "type": "function", "function": {"name": "ping", "arguments": "{}"}}'
    for given in ("llama3_json", formats.auto()):
        events = read(f'{{"tool_calls": [{call}, {call}]}}', given)
        assert (made(events), shown(events)) == ([("ping", {}, ("doubly_encoded",))] * 2, "")


# ---------------------------------------------------------------- several calls, and one in more markup than its own

ONE = '{"name": "ping", "arguments": {}}'
MADE = ("ping", {}, ())
CALLS, CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
HARMONY = "<|channel|>commentary to=functions.ping <|constrain|>json<|message|>{}<|call|>"


@pytest.mark.parametrize("format", [f for f in ENVELOPED if lists_of(f) and f.section is None], ids=lambda f: f.name)
def test_a_list_where_one_envelope_belongs_is_all_its_calls(format: Format) -> None:
    one = ONE if name_key(format) == "name" else ONE.replace("name", name_key(format))
    repairs = (
        () if "arguments" in next(p.arguments for p in format.call if isinstance(p, Envelope)) else ("arguments_key",)
    )
    for separator in (", ", ",\n  "):
        events = read(enveloped(format, f"[{one}{separator}{one}]") + " Done.", format)
        if format.name != "json_fence":
            assert (made(events), shown(events).strip()) == ([("ping", {}, repairs)] * 2, "Done.")


@pytest.mark.parametrize(
    "format", [f for f in CATALOG if any(isinstance(p, Json) for p in f.call)], ids=lambda f: f.name
)
def test_a_fence_around_json_in_markup_is_none_of_the_text(format: Format) -> None:
    call = formats.render_calls(format, [ToolCall("", "ping", {})], TOOLS)
    fenced = call.replace("{}", "```json\n{}\n```") if "```" not in call else call
    weak = format.name == "glm4"  # a bare name: what stands behind it must tell
    assert weak or made(read(fenced, format)) == [MADE]


@pytest.mark.parametrize("format", [f for f in CATALOG if len(f.call) > 1], ids=lambda f: f.name)
def test_what_closes_a_call_once_more_is_markup_and_hides_no_other_call(format: Format) -> None:
    last = format.call[-1]
    close = f"</{last.name}>" if isinstance(last, Tag) else last.strip() if isinstance(last, str) else ""
    call = formats.render_calls(format, [ToolCall("", "ping", {})], TOOLS)
    if not close or call.count(close) != 1 or close.startswith("```"):
        return
    events = read(f"{call}\n{close}\n{call}", format)
    assert (made(events), shown(events).strip()) == ([MADE] * 2, "")


@pytest.mark.parametrize("separator", [", ", "; ", ",\n", "\n", "\n\n"])
@pytest.mark.parametrize("given", ["pythonic", "python", "llama3_json", None], ids=str)
def test_calls_that_stand_bare_are_all_made(given: str | None, separator: str) -> None:
    one = ONE if given == "llama3_json" else "ping()"
    events = read(f"{one}{separator}{one}{separator}{one}", given or formats.auto())
    assert (made(events), shown(events).strip()) == ([MADE] * 3, "")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            "muse",
            (
                " to=self<|message|>Hm.<|eom|><|start|>assistant to=ping.ping<|message|><atem:function_calls>\n"
                '<atem:invoke name="ping.ping">\n</atem:invoke>\n</atem:function_calls>'
            ),
        ),
        (
            "muse",
            (
                ' to=ping.ping<|message|><atem:function_calls>\n<atem:invoke name="ping.ping">\n</atem:invoke>\n'
                "</atem:function_calls><|eom|>"
            ),
        ),
        ("mistral_compact", "[TOOL_CALLS]ping[CALL_ID]abcdefgh1[ARGS]{}</s>"),
        ("mistral", "[TOOL_CALLS]ping[CALL_ID]abcdefgh1[ARGS]{}</s>"),
        ("mistral", f"[TOOL_CALLS] [{ONE}]</s>"),
        ("hermes", f"<tool_call>\n```json\n{ONE}\n```\n</tool_call>"),
        ("deepseek_v3", f"{CALLS}<｜tool▁call▁begin｜>function<｜tool▁sep｜>ping\n{{}}\n{CALLS_END}"),
        ("deepseek_v3", f"{CALLS}<｜tool▁call▁begin｜>ping<｜tool▁sep｜>{{}}{CALLS_END}"),
        ("xml", "<tool>ping</tool><tool_input>{}</tool_input>"),
        ("pythonic", "<|python_start|>[ping()]<|python_end|>"),
        ("harmony", f"<|channel|>commentary{HARMONY}"),
        ("llama3_json", f"[{ONE}]"),
    ],
)
def test_forms_of_the_families_own_are_read_and_show_nothing(given: str, text: str) -> None:
    for formats_ in (given, formats.auto()):
        events = read(text, formats_)
        assert (made(events), shown(events).strip()) == ([MADE], "")


def test_the_id_that_mistral_writes_is_the_calls() -> None:
    events = read(
        '[TOOL_CALLS]bash[CALL_ID]abcdefgh1[ARGS]{"command": "ls"}[TOOL_CALLS]ping[ARGS]{}', "mistral_compact"
    )
    assert [(e.call.id, e.call.name) for e in events if isinstance(e, CallEnd)] == [("abcdefgh1", "bash"), ("", "ping")]


@pytest.mark.parametrize(
    "text", ["```[ping()]```", "```json [" + ONE + "]```", "```json\n" + ONE + "\n```", "``` " + ONE + "```"]
)
def test_a_fence_in_one_line_that_opens_the_reply_holds_its_calls(text: str) -> None:
    events = read(text, formats.auto(), in_code="reply")
    assert (made(events), shown(events)) == ([MADE], "")


@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_fences_hold_calls_until_something_is_said(gap: str) -> None:
    fenced = f"```json\n{ONE}\n```"
    events = read(fenced + gap + fenced, formats.auto(), in_code="reply")
    assert (made(events), shown(events).strip()) == ([MADE, MADE], "")
    events = read(f"{fenced}{gap}That is how:{gap}{fenced}", formats.auto(), in_code="reply")
    assert (made(events), shown(events).strip()) == ([MADE], f"That is how:{gap}{fenced}")
    said = f"```json\n{ONE}\nThis is how:\n```"
    assert made(read(said + gap + fenced, formats.auto(), in_code="reply")) == [MADE]


@pytest.mark.parametrize(
    "text",
    [
        "The token [TOOL_CALLS] stands before a call.",
        "See [ping(server)] for it.",
        "ping(server) is a function, and so is [ping(a.b)].",
        "<tool>ping</tool> is one of my tools, <tool>hammer</tool> another.",
        "He said <s>no</s> yes.",
        "to=self is a word.",
    ],
)
def test_what_only_mentions_a_call_is_text(text: str) -> None:
    for given in (formats.auto(), "mistral", "pythonic", "xml"):
        assert read(text, given) == [Text(text)]


def test_a_bare_call_that_is_none_opens_no_thinking() -> None:
    assert read("ping(server) is slow", [formats.get("pythonic"), formats.get("muse")]) == [
        Text("ping(server) is slow")
    ]


def test_a_separator_is_markup_only_before_a_call() -> None:
    assert [e for e in read(f"{ONE}, {ONE}, x", "llama3_json") if isinstance(e, Text | Markup)] == [
        Markup(", "),
        Text(", x"),
    ]
