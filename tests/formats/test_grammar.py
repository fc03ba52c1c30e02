"""What a grammar accepts parses and validates, in every format that has one.

`AGENTKIT_EXAMPLES=200` is the soak: that many random generations per format.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from typing import Any, get_args

import jsonschema
import pytest
from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from llguidance.gbnf_to_lark import gbnf_to_lark

from agentkit.errors import FormatError
from agentkit.events import CallEnd, CallError
from agentkit.formats import CATALOG, Format, Parser, ToolSpec, render_calls
from agentkit.formats.engine import get
from agentkit.formats.grammar import TARGETS, grammar, grammar_gaps, grammar_targets, why_no_grammar
from agentkit.formats.spec import Braced, Layout, NestedTags, Pairs, Tag, TagParameters, ToolElement
from agentkit.formats.valuerules import Target
from agentkit.messages import ToolCall
from format_tools import ADD, ANYTHING, CREATE_FILE, NOTE, PING, STR_REPLACE, WEB_SEARCH, spec

EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "10"))
TOKENIZER = LLTokenizer("byte")
# a state of an automaton is one item of llguidance for each character read; llama.cpp has no such bound
LIMITS = LLParserLimits(max_items_in_row=100_000, step_max_items=1_000_000)

SHAPES = spec(
    "shapes",
    None,
    ("point", "kind"),
    kind={"enum": ["circle", "square", "null", "7"]},
    point={"$ref": "#/$defs/Point"},
    tree={"$ref": "#/$defs/Tree"},
    age={"type": "integer", "minimum": 18, "maximum": 120},
    share={"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    depth={"type": "number", "minimum": -11034.5, "maximum": 8848.86},
    tags={"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 1, "maxItems": 3},
    level={"enum": [1, 2, None, True]},
    either={"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": "null"}]},
    code={"type": "string", "maxLength": 8},
)
SHAPES = ToolSpec(
    "shapes",
    "",
    {
        **SHAPES.parameters,
        "$defs": {
            "Point": {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "number"}, "label": {"type": "string"}},
                "required": ["x", "y"],
                "additionalProperties": False,
            },
            "Tree": {
                "type": "object",
                "properties": {
                    "value": {"type": ["string", "integer"]},
                    "below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "maxItems": 2},
                },
                "required": ["value"],
            },
        },
    },
)
TOOLS = (CREATE_FILE, STR_REPLACE, WEB_SEARCH, ADD, NOTE, PING, ANYTHING)
TOOLS_OF: Mapping[Target, tuple[ToolSpec, ...]] = {
    "lark": (*TOOLS, SHAPES),
    "structural_tag": (*TOOLS, SHAPES),
    "gbnf": (*TOOLS, ToolSpec("shapes", "", {  # an automaton cannot count
        **SHAPES.parameters, "properties": {**SHAPES.parameters["properties"], "code": {"type": "string"}},
    })),
}  # fmt: skip

WITH = [f for f in CATALOG if why_no_grammar(f) is None]
every_format = pytest.mark.parametrize("format", WITH, ids=lambda f: f.name)
SEEDS = ["auto", "required", "shapes"]
PIECES = [
    '"', "'", "}", "]", ")", ",", " ", "\n", "\n\n", "a", "Zürich", "null", "true", "7", "-1.5", "😀", "<", "</", "&",
    "<![CDATA[", "]]>", "<think>", "</think>", "{", "[", "\\n", "\\u00e9", "&quot;", "</Parameter>", "<x:note>", ": ",
    "`", "```", "\u2028",
]  # fmt: skip


# ---------------------------------------------------------------- engine


def matcher(text: dict[str, Any] | str, target: Target) -> LLMatcher:
    assert isinstance(text, str)
    lark = gbnf_to_lark(text) if target == "gbnf" else text
    found = LLMatcher(TOKENIZER, LLMatcher.grammar_from_lark(lark), limits=LIMITS)
    assert not found.is_error(), found.get_error()
    return found


def accepts(found: LLMatcher, text: str) -> bool:
    found.reset()
    raw = text.encode()
    return bool(found.try_consume_tokens(list(raw)) == len(raw) and found.is_accepting())


def allowed(found: LLMatcher) -> list[int]:
    bits = found.compute_bitmask()
    return [t for t in range(256) if bits[t >> 3] >> (t & 7) & 1]


def generate(found: LLMatcher, pieces: list[str], ends: list[str], rng: random.Random) -> str:
    """A random text under the mask: markers as far as they are allowed, else single bytes; ended by what closes."""
    found.reset()
    out = bytearray()
    budget = rng.choice([20, 60, 150])
    closers = [p.encode() for p in ('"', "'", "]", "}", ")", "&quot;", *ends)]
    for _ in range(4000):
        if found.is_stopped():
            break
        done = found.is_accepting()
        if done and (budget <= 0 or rng.random() < 0.1):
            break
        forced = list(found.compute_ff_bytes()) if budget > 0 else []
        if not forced:
            choices = closers if budget <= 0 else [p.encode() for p in rng.sample(pieces, 4)]
            for choice in rng.sample(choices, len(choices)):
                fits = found.try_consume_tokens(list(choice))
                if fits == len(choice) or (fits and budget > 0):
                    out += choice[:fits]
                    break
                assert found.rollback(fits)
            else:
                forced = [rng.choice(allowed(found))]
        if forced:
            assert found.consume_tokens(forced), (found.get_error()[:300], bytes(out), bytes(forced))
            out += bytes(forced)
        budget -= 1
    assert found.is_accepting() or found.is_stopped(), bytes(out)
    return out.decode()


def pieces_of(format: Format) -> list[str]:
    """What the format's own texts are made of."""
    text = render_calls(format, [ToolCall("", "note", {"text": "x"}), ToolCall("", "add", {"a": 1, "b": 2})], TOOLS)
    own = [text, text[: len(text) // 2]]
    for part in (*format.call, *(s.section.open for s in format.shapes if s.section), format.separator):
        if isinstance(part, str) and part:
            own.append(part)
        for name in ("key", "middle", "close", "name"):
            own += [v for v in [getattr(part, name, None)] if isinstance(v, str) and v]
    tags = [p.name for p in format.call if hasattr(p, "name") and isinstance(p.name, str)]
    return [*PIECES, *own, *(f"</{t}>" for t in tags), *(f"<{t}" for t in tags)]


def ends_of(format: Format) -> list[str]:
    """What ends values, regions and sections."""
    out = [close for _, close in (*format.thinking, *format.answer)]
    for part in format.call:
        out += (
            [part.close]
            if isinstance(part, Pairs)
            else [f"</{part.name}>"]
            if isinstance(part, TagParameters | Tag)
            else []
        )
        out += [f"</{name}>" for name in sorted(ELEMENT_NAMES)] if isinstance(part, ToolElement) else []
        out += [part.quote] if isinstance(part, Braced) else []
        out += [part.token, *(f"</{name}>" for name in sorted(NESTED_NAMES))] if isinstance(part, NestedTags) else []
    return out


ELEMENT_NAMES = {n for t in TOOLS_OF["lark"] for n in t.parameters["properties"]} | {
    e.tag for t in TOOLS_OF["lark"] for layout in get_args(Layout) if (e := t.with_element(layout).element)
}
NESTED_NAMES = {n for t in TOOLS_OF["lark"] for n in t.parameters["properties"]} | {"item", "x", "y", "label", "value"}


def calls_in(text: str, format: Format, tools: tuple[ToolSpec, ...]) -> list[ToolCall]:
    """The calls of a constrained text; a damaged one fails the test."""
    parser = Parser(format, tools, in_code="execute")
    events = parser.feed(text) + parser.close()
    assert not [e for e in events if isinstance(e, CallError)], (text, events)
    return [e.call for e in events if isinstance(e, CallEnd)]


def validate(call: ToolCall, tools: tuple[ToolSpec, ...]) -> None:
    tool = next(t for t in tools if t.name == call.name)
    jsonschema.Draft202012Validator(tool.parameters).validate(dict(call.arguments))


# ---------------------------------------------------------------- the law


@every_format
@pytest.mark.parametrize("target", ["lark", "gbnf"])
@pytest.mark.parametrize("choice", SEEDS)
def test_what_the_grammar_accepts_parses_and_validates(format: Format, target: Target, choice: str) -> None:
    tools = TOOLS_OF[target]
    n = max(-(-EXAMPLES // 5), 2)  # five settings: two choices with and without parallel calls, one named tool
    for parallel in (True, False) if choice != "shapes" else (True,):
        text = grammar(format, tools, target=target, tool_choice=choice, parallel=parallel)
        found = matcher(text, target)
        rng = random.Random(f"{format.name} {choice} {parallel}")
        for _ in range(n):
            written = generate(found, pieces_of(format), ends_of(format), rng)
            got = calls_in(written, format, tools)
            for call in got:
                validate(call, tools)
            assert choice == "auto" or got, written
            assert parallel or len(got) <= 1, written
            assert choice != "shapes" or [c.name for c in got] == ["shapes"], written


# ---------------------------------------------------------------- strings it accepts and refuses

WEATHER = spec(
    "get_weather", None, ("city",), city="string", days={"type": "integer", "minimum": 1, "maximum": 7},
    units={"enum": ["metric", "imperial"]},
)  # fmt: skip
SEARCH = spec("search", None, ("query", "tags"), query="string", tags={"type": "array", "items": {"type": "string"}})
OFFERED = (WEATHER, SEARCH, PING)


def hermes(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def named(name: str, arguments: str) -> str:
    return f"<function={name}>{arguments}</function>"


def coder(name: str, *pairs: tuple[str, str]) -> str:
    inner = "".join(f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in pairs)
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


def element(name: str, *pairs: tuple[str, str]) -> str:
    inner = "".join(f"<{k}>{v}</{k}>\n" for k, v in pairs)
    return f"<{name}>\n{inner}</{name}>"


def json_cases(write: Any) -> dict[str, bool]:
    return {
        write("get_weather", '{"city": "Paris"}'): True,
        write("get_weather", '{"city": "Paris", "days": 7}'): True,
        write("get_weather", '{"city": "Paris", "days": 1, "units": "metric"}'): True,
        write("get_weather", '{"city": "Paris", "units": "imperial"}'): True,
        write("get_weather", '{"city": "<b> \\" \\n </function> 東京"}'): True,
        write("search", '{"query": "", "tags": []}'): True,
        write("search", '{"query": "a", "tags": ["b", "c"]}'): True,
        write("ping", "{}"): True,
        write("get_weather", "{}"): False,
        write("get_weather", '{"days": 2}'): False,
        write("get_weather", '{"city": 5}'): False,
        write("get_weather", '{"city": "Paris", "days": "2"}'): False,
        write("get_weather", '{"city": "Paris", "days": 8}'): False,
        write("get_weather", '{"city": "Paris", "units": "kelvin"}'): False,
        write("get_weather", '{"city": "Paris", "zip": "1"}'): False,
        write("get_weather", '{"days": 2, "city": "Paris"}'): False,
        write("get_wether", '{"city": "Paris"}'): False,
        write("search", '{"query": "a", "tags": "b"}'): False,
        write("get_weather", '{"city": "Paris"}')[:-1]: False,
        write("get_weather", '{"city": "Paris"}')[:40]: False,
        "I would call " + write("ping", "{}"): False,
        "No call at all.": False,
    }


def text_cases(write: Any) -> dict[str, bool]:
    return {
        write("get_weather", ("city", "Paris")): True,
        write("get_weather", ("city", "Paris"), ("days", "7")): True,
        write("get_weather", ("city", "a < b && c\n  indented"), ("units", "metric")): True,
        write("get_weather", ("city", ""), ("days", "1"), ("units", "imperial")): True,
        write("search", ("query", '{"a": 1}'), ("tags", "[]")): True,
        write("search", ("query", "null"), ("tags", '["b", "c"]')): True,
        write("get_weather"): False,
        write("get_weather", ("days", "2")): False,
        write("get_weather", ("city", "Paris"), ("days", "two")): False,
        write("get_weather", ("city", "Paris"), ("days", "0")): False,
        write("get_weather", ("city", "Paris"), ("days", "12")): False,
        write("get_weather", ("city", "Paris"), ("days", "2.5")): False,
        write("get_weather", ("city", "Paris"), ("units", "kelvin")): False,
        write("get_weather", ("city", "Paris"), ("zip", "1")): False,
        write("get_weather", ("days", "2"), ("city", "Paris")): False,
        write("get_weather", ("city", "a"), ("city", "b")): False,
        write("get_weather", ("city", "<![CDATA[x")): False,
        write("get_wether", ("city", "Paris")): False,
        write("search", ("query", "a"), ("tags", "b, c")): False,
        write("get_weather", ("city", "Paris"))[:-1]: False,
        write("get_weather", ("city", "Paris"))[:30]: False,
        "No call at all.": False,
    }


PYTHON_CASES = {
    '[get_weather(city="Paris")]': True,
    "[get_weather(city='Paris')]": True,
    '[get_weather(city="Paris", days=7)]': True,
    '[get_weather(city="Paris", days=1, units="metric")]': True,
    '[get_weather(city="a, b) ] \'")]': True,
    '[search(query="", tags=[])]': True,
    '[search(query="a", tags=[\'b\', "c"])]': True,
    "[ping()]": True,
    '[ping(), get_weather(city="Paris")]': True,
    "[get_weather()]": False,
    "[get_weather(days=2)]": False,
    "[get_weather(city=Paris)]": False,
    "[get_weather(city=5)]": False,
    '[get_weather(city="Paris", days=8)]': False,
    '[get_weather(city="Paris", days="2")]': False,
    '[get_weather(city="Paris", units="kelvin")]': False,
    '[get_weather(city="Paris", zip="1")]': False,
    '[get_weather(days=2, city="Paris")]': False,
    '[get_wether(city="Paris")]': False,
    '[get_weather(city="Paris")': False,
    '[get_weather(city="Par': False,
    "[]": False,
    "No call at all.": False,
}


def gemma(name: str, inner: str) -> str:
    return f"<|tool_call>call:{name}{{{inner}}}<tool_call|>".replace('"', '<|"|>')


def escaped(name: str, *pairs: tuple[str, str]) -> str:
    inner = ",".join(f"{k}:<escape>{v}<escape>" for k, v in pairs)
    return f"<start_function_call>call:{name}{{{inner}}}<end_function_call>"


def minimax(name: str, *pairs: tuple[str, str]) -> str:
    inner = "".join(f"]<]minimax[>[<{k}>{v}]<]minimax[>[</{k}>" for k, v in pairs)
    call = f']<]minimax[>[<invoke name="{name}">{inner}]<]minimax[>[</invoke>'
    return f"]<]minimax[>[<tool_call>\n{call}\n]<]minimax[>[</tool_call>"


GEMMA_CASES = {
    gemma("get_weather", 'city:"Paris"'): True,
    gemma("get_weather", 'city:"Paris",days:7'): True,
    gemma("get_weather", 'city:"Paris",days:1,units:"metric"'): True,
    gemma("get_weather", 'city:"a, b}] : \n 東京",units:"imperial"'): True,
    gemma("get_weather", 'city:""'): True,
    gemma("search", 'query:"",tags:[]'): True,
    gemma("search", 'query:"a",tags:["b","c"]'): True,
    gemma("ping", ""): True,
    gemma("ping", "") + gemma("get_weather", 'city:"Paris"'): True,
    gemma("get_weather", ""): False,
    gemma("get_weather", "days:2"): False,
    gemma("get_weather", "city:Paris"): False,
    gemma("get_weather", "city:5"): False,
    gemma("get_weather", 'city:"Paris",days:"2"'): False,
    gemma("get_weather", 'city:"Paris",days:8'): False,
    gemma("get_weather", 'city:"Paris",units:"kelvin"'): False,
    gemma("get_weather", 'city:"Paris",zip:"1"'): False,
    gemma("get_weather", 'days:2,city:"Paris"'): False,
    gemma("get_wether", 'city:"Paris"'): False,
    gemma("search", 'query:"a",tags:"b"'): False,
    gemma("get_weather", 'city:"Paris"')[:-1]: False,
    gemma("get_weather", 'city:"Paris"')[:40]: False,
    "No call at all.": False,
}
NESTED_CASES = {
    minimax("get_weather", ("city", "Paris")): True,
    minimax("get_weather", ("city", "Paris"), ("days", "7")): True,
    minimax("get_weather", ("city", "a < b && c\n  indented"), ("units", "metric")): True,
    minimax("get_weather", ("city", "</city> ]<] [>["), ("days", "1")): True,
    minimax("get_weather", ("city", "")): True,
    minimax("search", ("query", "null"), ("tags", "[]")): True,
    minimax("search", ("query", "a"), ("tags", "]<]minimax[>[<item>b]<]minimax[>[</item>")): True,
    minimax("search", ("query", "a"), ("tags", "]<]minimax[>[<item>b]<]minimax[>[</item>" * 3)): True,
    minimax("ping"): True,
    minimax("get_weather"): False,
    minimax("get_weather", ("days", "2")): False,
    minimax("get_weather", ("city", "Paris"), ("days", "two")): False,
    minimax("get_weather", ("city", "Paris"), ("days", "12")): False,
    minimax("get_weather", ("city", "Paris"), ("units", "kelvin")): False,
    minimax("get_weather", ("city", "Paris"), ("zip", "1")): False,
    minimax("get_weather", ("days", "2"), ("city", "Paris")): False,
    minimax("get_weather", ("city", "a"), ("city", "b")): False,
    minimax("get_weather", ("city", "]<]minimax[>[<b>")): False,
    minimax("get_wether", ("city", "Paris")): False,
    minimax("search", ("query", "a"), ("tags", "b, c")): False,
    minimax("search", ("query", "a"), ("tags", "]<]minimax[>[<item>b]<]minimax[>[</tags>")): False,
    minimax("get_weather", ("city", "Paris"))[:-1]: False,
    "No call at all.": False,
}
CASES: Mapping[str, dict[str, bool]] = {
    "hermes": json_cases(hermes),
    "function_json": json_cases(named),
    "qwen3_coder": text_cases(coder),
    "cline": text_cases(element),
    "pythonic": PYTHON_CASES,
    "gemma4": GEMMA_CASES,
    "functiongemma": text_cases(escaped),
    "minimax_m3": NESTED_CASES,
}
"""One format at least for each kind of body."""


@pytest.mark.parametrize("target", ["lark", "gbnf"])
@pytest.mark.parametrize("name", CASES)
def test_good_calls_are_accepted_and_bad_ones_refused(name: str, target: Target) -> None:
    found = matcher(grammar(name, OFFERED, target=target, tool_choice="required"), target)
    assert len(CASES[name]) >= 20
    assert {text: accepts(found, text) for text in CASES[name]} == CASES[name]


@pytest.mark.parametrize("name", CASES)
def test_what_is_accepted_is_what_the_parser_reads(name: str) -> None:
    for text, good in CASES[name].items():
        if good:
            calls = calls_in(text, get(name), OFFERED)
            assert calls
            for call in calls:
                validate(call, OFFERED)


@every_format
@pytest.mark.parametrize("target", ["lark", "gbnf"])
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_what_is_rendered_is_accepted(format: Format, target: Target, choice: str) -> None:
    """Arguments in declared order, as a model would write them."""
    note = ToolCall("", "note", {"text": "some text,\nin two lines"})
    add = ToolCall("", "add", {"a": 1, "b": -20})
    edit = ToolCall("", "str_replace", {"file_path": "a.py", "old_str": "if a < b:\n    x", "new_str": "é"})
    found = matcher(grammar(format, TOOLS, target=target, tool_choice=choice), target)
    runs = [[note], [note, note, note]] if format.name in ONE_ARGUMENT else [[note], [edit], [note, add, add]]
    for calls in runs:
        assert accepts(found, render_calls(format, calls, TOOLS))


ONE_ARGUMENT = ("legacy",)
"""Formats that carry a tool's first argument only."""


@pytest.mark.parametrize("target", ["lark", "gbnf"])
def test_tool_choice_and_parallel(target: Target) -> None:
    one, two = hermes("ping", "{}"), hermes("ping", "{}") + "\n" + hermes("search", '{"query": "a", "tags": []}')
    prose, broken = "Just text, with {braces} and [1].", "I call <tool_call> now."

    def verdicts(choice: str, parallel: bool) -> list[bool]:
        text = grammar("hermes", OFFERED, target=target, tool_choice=choice, parallel=parallel)
        found = matcher(text, target)
        texts = (prose, broken, one, f"{prose} {one}", f"{one}{prose}", two, f"<think>{broken}</think>{one}")
        return [accepts(found, t) for t in texts]

    assert verdicts("auto", True) == [True, False, True, True, True, True, True]
    assert verdicts("auto", False) == [True, False, True, True, False, False, True]
    assert verdicts("required", True) == [False, False, True, False, False, True, False]
    assert verdicts("required", False) == [False, False, True, False, False, False, False]
    assert verdicts("ping", True) == [False, False, True, False, False, False, False]
    assert verdicts("search", True) == [False] * 7


# ---------------------------------------------------------------- structural tags

FIELDS = {
    "const_string": {"value"}, "json_schema": {"json_schema"}, "grammar": {"grammar"}, "any_text": {"excludes"},
    "sequence": {"elements"}, "or": {"elements"}, "optional": {"content"}, "plus": {"content"}, "star": {"content"},
    "repeat": {"min", "max", "content"}, "tag": {"begin", "content", "end"},
    "triggered_tags": {"triggers", "tags", "excludes", "at_least_one", "stop_after_first"},
    "tags_with_separator": {"tags", "separator", "at_least_one", "stop_after_first"},
}  # fmt: skip
"""xgrammar's format objects as we use them. Source: xgrammar 0.2.6, docs/structural_tag/structural_tag.md."""


def check_tag(node: dict[str, Any]) -> None:
    """A format object has the fields of its type, valid schemas, grammars that compile, and unambiguous triggers."""
    assert FIELDS[node["type"]] <= node.keys() <= FIELDS[node["type"]] | {"type", "max_chars"}
    match node["type"]:
        case "json_schema":
            jsonschema.Draft202012Validator.check_schema(node["json_schema"])
            assert "nullable" not in json.dumps(node["json_schema"])
        case "grammar":
            matcher(node["grammar"], "gbnf")
        case "tag":
            assert node["content"]["type"] != "any_text" or node["end"] in node["content"]["excludes"]
        case "triggered_tags":
            for tag in node["tags"]:
                assert len([t for t in node["triggers"] if tag["begin"].startswith(t)]) == 1, (tag, node["triggers"])
    for below in [*node.get("elements", ()), *node.get("tags", ()), *([node["content"]] if "content" in node else [])]:
        check_tag(below)


@every_format
@pytest.mark.parametrize("choice", ["auto", "required", "note", "shapes"])
@pytest.mark.parametrize("parallel", [True, False])
def test_structural_tags_are_well_formed(format: Format, choice: str, parallel: bool) -> None:
    tag = grammar(format, TOOLS_OF["structural_tag"], tool_choice=choice, parallel=parallel)
    assert json.loads(json.dumps(tag)) == tag
    assert tag["type"] == "structural_tag"
    check_tag(tag["format"])


def test_a_structural_tag_as_servers_take_it() -> None:
    assert grammar("hermes", [ADD], tool_choice="add") == {
        "type": "structural_tag",
        "format": {
            "type": "tag",
            "begin": '<tool_call>\n{"name": "add", "arguments": ',
            "content": {
                "type": "json_schema",
                "json_schema": {
                    "type": "object",
                    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                    "required": ["a", "b"],
                    "additionalProperties": False,
                },
            },
            "end": "}\n</tool_call>",
        },
    }


# ---------------------------------------------------------------- what has no grammar, and what cannot be said


def test_every_format_has_a_grammar_or_a_reason() -> None:
    for format in CATALOG:
        reason = why_no_grammar(format)
        assert grammar_targets(format) == (() if reason else TARGETS)
        if reason:
            with pytest.raises(FormatError, match="has no grammar"):
                grammar(format, [NOTE])
    assert {f.name for f in CATALOG} - {f.name for f in WITH} == set()


def test_a_keyword_that_cannot_be_enforced_is_reported() -> None:
    tool = spec("f", None, (), x={"type": "string", "pattern": "^a"}, y={"type": "array", "uniqueItems": True})
    with pytest.raises(FormatError, match="f: x: pattern"):
        grammar("hermes", [tool], target="gbnf")
    assert [str(g) for g in grammar_gaps("hermes", [tool], target="gbnf")] == ["f: x: pattern", "f: y: uniqueItems"]
    assert [str(g) for g in grammar_gaps("hermes", [tool], target="lark")] == ["f: y: uniqueItems"]
    assert grammar("hermes", [tool], target="gbnf", strict=False)


def test_a_format_of_a_string_is_no_error() -> None:
    tool = spec("f", None, (), x={"type": "string", "format": "color"})
    assert grammar("hermes", [tool], target="gbnf")
    assert [str(g) for g in grammar_gaps("hermes", [tool])] == ["f: x: format"]


@pytest.mark.parametrize(("choice", "tools"), [("nope", [PING]), ("auto", []), ("none", [PING])])
def test_a_choice_without_a_tool_is_refused(choice: str, tools: list[ToolSpec]) -> None:
    with pytest.raises(FormatError, match="no offered tool"):
        grammar("hermes", tools, tool_choice=choice)


def test_references_are_hoisted_and_nullable_is_written_out() -> None:
    tool = ToolSpec("f", "", {
        "type": "object", "properties": {"p": {"$ref": "#/$defs/P"}, "n": {"type": "string", "nullable": True}},
        "$defs": {"P": {"type": "object", "properties": {"next": {"$ref": "#/$defs/P"}}}},
    })  # fmt: skip
    found = json.dumps(grammar("hermes", [tool], tool_choice="f"))
    assert '"$defs": {"d0": {"type": "object", "properties": {"next": {"$ref": "#/$defs/d0"}}' in found
    assert '"n": {"anyOf": [{"type": "string"}, {"type": "null"}]}' in found


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer", "minimum": -5, "maximum": 12}, "-5 0 12 9", "-6 13 05 1.0"),
        ({"type": "integer", "exclusiveMinimum": 99}, "100 12345", "99 0 -1"),
        ({"type": "integer", "maximum": -10}, "-10 -11 -999", "-9 0 10"),
        ({"type": "number", "minimum": 0, "maximum": 1}, "0 1 0.5 0.123456 1.00", "1.01 -0.1 2 .5"),
        ({"type": "number", "exclusiveMinimum": 0.2, "maximum": 0.7}, "0.21 0.70", "0.2 0.20 0.71 1"),
        ({"type": "number", "minimum": -90, "maximum": 90}, "-90 90 -89.999 48.8566", "90.1 -90.01 180"),
        ({"type": "number"}, "1e5 -2.5E-3 0 17", "1e999 01 NaN Infinity"),
    ],
)
def test_numbers_between_bounds(schema: dict[str, Any], good: str, bad: str) -> None:
    found = matcher(grammar("qwen3_coder", [spec("f", None, ("x",), x=schema)], target="gbnf", tool_choice="f"), "gbnf")
    texts = good.split() + bad.split()
    assert [t for t in texts if accepts(found, coder("f", ("x", t)))] == good.split()
