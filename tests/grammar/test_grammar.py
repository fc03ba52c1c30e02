"""Text that a grammar accepts parses and validates, in every format that has one.

Compiling a grammar is what costs: the plain run tries each format with half of the settings, and the next format with
the other half, so that each two of format, choice and setting meet; `make soak` tries all. `AGENTKIT_EXAMPLES=200` asks
for that many random generations per format.
"""

from __future__ import annotations

import json
import os
import random
import re
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any, get_args

import jsonschema
import pytest
from engines import Guidance, accepts, generate
from format_tools import ADD, CREATE_FILE, PING, spec
from grammar_texts import (
    CASES,
    OFFERED,
    RENDERED,
    TOOLS,
    WITH,
    WITH_SHAPES,
    calls_in,
    coder,
    ends_of,
    hermes,
    pieces_of,
    read,
    validate,
)  # fmt: skip

from agentkit.errors import FormatError
from agentkit.formats import CATALOG, Format, ToolSpec, render_calls
from agentkit.formats.bodies.kinds import KINDS
from agentkit.formats.engine import get
from agentkit.formats.format import Pairs
from agentkit.formats.kind import refuse_writing
from agentkit.grammar.part_rules import refuse_constraint
from agentkit.grammar.parts import PARTS
from agentkit.grammar.targets import TARGETS, ThinkingRule, grammar, grammar_gaps, grammar_targets
from agentkit.messages import ToolCall

EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "10"))

every_format = pytest.mark.parametrize("format", WITH, ids=lambda f: f.name)


def half(first: tuple[Any, ...], second: tuple[Any, ...]) -> list[object]:
    """Each format with each two of these; the soak has those of which another is tried with the format before."""
    return [
        pytest.param(f, one, two, id=f"{f.name}-{one}-{two}", marks=pytest.mark.soak if (i + j + k) % 2 else ())
        for (j, one), (k, two), (i, f) in product(enumerate(first), enumerate(second), enumerate(WITH))
    ]


# ---------------------------------------------------------------- the property


@pytest.mark.share(12)
@pytest.mark.parametrize(
    ("format", "choice", "parallel"),
    [
        *half(("auto", "required"), (True, False)),
        *(pytest.param(f, "shapes", True, id=f"{f.name}-shapes") for f in WITH),
    ],
)
def test_what_the_grammar_accepts_parses_and_validates(format: Format, choice: str, parallel: bool) -> None:
    tools = WITH_SHAPES
    found = Guidance(grammar(format, tools, target="gbnf", tool_choice=choice, parallel=parallel))
    rng = random.Random(f"{format.name} {choice} {parallel}")
    for _ in range(max(-(-EXAMPLES // 3), 2)):  # three settings of a format in each run
        written, got = read(partial(generate, found, pieces_of(format), ends_of(format), rng), format, tools)
        for call in got:
            validate(call, tools)
        assert choice == "auto" or got, written
        assert parallel or len(got) <= 1, written
        assert choice != "shapes" or [c.name for c in got] == ["shapes"], written


@pytest.mark.parametrize("name", CASES)
def test_good_calls_are_accepted_and_bad_ones_refused(name: str) -> None:
    found = Guidance(grammar(name, OFFERED, target="gbnf", tool_choice="required"))
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


@pytest.mark.share(12)
@every_format
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_what_is_rendered_is_accepted(format: Format, choice: str) -> None:
    """Arguments in declared order, as a model would write them."""
    found = Guidance(grammar(format, TOOLS, target="gbnf", tool_choice=choice))
    for calls in RENDERED[format.name == "legacy"]:
        assert accepts(found, render_calls(format, calls, TOOLS))


PAIRED = [f for f in WITH for p in f.call if isinstance(p, Pairs) and p.close.lower() != p.close.upper()]


@pytest.mark.parametrize("format", PAIRED, ids=lambda f: f.name)
def test_a_value_holds_its_close_in_no_letters(format: Format) -> None:
    """The parser takes one for an end that was meant, where a parameter may be missing behind it."""
    found = Guidance(grammar(format, TOOLS, target="gbnf", tool_choice="note"))
    (close,) = (p.close.strip() for p in format.call if isinstance(p, Pairs))
    written = render_calls(format, [ToolCall("", "note", {"text": "a, here, b"})], TOOLS)
    assert accepts(found, written)
    for other in (close, close.upper(), close.title()):
        assert not accepts(found, written.replace("here", other)), other


def test_tool_choice_and_parallel() -> None:
    one, two = hermes("ping", "{}"), hermes("ping", "{}") + "\n" + hermes("search", '{"query": "a", "tags": []}')
    prose, broken = "Just text, with {braces} and [1].", "I call <tool_call> now."

    def verdicts(choice: str, parallel: bool) -> list[bool]:
        text = grammar("hermes", OFFERED, target="gbnf", tool_choice=choice, parallel=parallel)
        found = Guidance(text)
        texts = (prose, broken, one, f"{prose} {one}", f"{one}{prose}", two, f"<think>{broken}</think>{one}")
        return [accepts(found, t) for t in texts]

    assert verdicts("auto", True) == [True, False, True, True, True, True, True]
    assert verdicts("auto", False) == [True, False, True, True, False, False, True]
    assert verdicts("required", True) == [False, False, True, False, False, True, True]
    assert verdicts("required", False) == [False, False, True, False, False, False, True]
    assert verdicts("ping", True) == [False, False, True, False, False, False, True]
    assert verdicts("search", True) == [False] * 7
    assert verdicts("none", True) == [True] + [False] * 6


@pytest.mark.parametrize(
    ("thinking", "accepted"),
    [
        ("may_think", ["call", "thought, call", "thought, empty line, call", "empty line, call"]),
        ("no_thinking", ["call", "empty line, call"]),
        ("begun_thinking", ["thought, call", "thought, empty line, call", "thought without its opening, call"]),
    ],
)
def test_where_a_model_may_think(thinking: ThinkingRule, accepted: list[str]) -> None:
    call = hermes("ping", "{}")
    texts = {
        "call": call,
        "thought, call": f"<think>Hm: {call}</think>{call}",
        "thought, empty line, call": f"<think>Hm</think>\n\n{call}",
        "empty line, call": f"\n\n{call}",
        "thought without its opening, call": f"Hm: {call}</think>\n{call}",
        "three lines, call": f"\n\n\n{call}",
        "thought, words, call": f"<think>Hm</think>Now {call}",
        "thought alone": "<think>Hm</think>",
    }
    text = grammar("hermes", OFFERED, target="gbnf", tool_choice="required", thinking=thinking)
    found = Guidance(text)
    assert [name for name, text in texts.items() if accepts(found, text)] == accepted


@pytest.mark.parametrize(("text", "allowed"), [("a", True), ("</create-file>", False), ("</create_file>", False)])
def test_an_elements_text_has_no_closing_of_it_with_a_hyphen_or_an_underscore(text: str, allowed: bool) -> None:
    found = Guidance(grammar("legacy", [CREATE_FILE], target="gbnf", tool_choice="required"))
    written = render_calls(
        "legacy", [ToolCall("", "create_file", {"file_path": "TEXT", "file_contents": "a"})], [CREATE_FILE]
    )
    assert accepts(found, written.replace("TEXT", text)) == allowed


def test_thinking_cannot_have_begun_in_a_format_without_tags_for_it() -> None:
    own = replace(get("hermes"), name="own", thinking=())
    with pytest.raises(FormatError, match="format 'own' has no tags for thinking, so none can be open"):
        grammar(own, OFFERED, thinking="begun_thinking")


@pytest.mark.share(12)
@pytest.mark.parametrize(("format", "thinking", "choice"), half(get_args(ThinkingRule), ("required", "none")))
def test_what_is_written_in_each_way_of_thinking_is_read(format: Format, thinking: ThinkingRule, choice: str) -> None:
    if thinking == "begun_thinking" and not format.thinking:
        return
    found = Guidance(grammar(format, TOOLS, target="gbnf", tool_choice=choice, thinking=thinking))
    rng = random.Random(f"{format.name} {thinking} {choice}")
    for _ in range(max(EXAMPLES // 10, 1)):
        write = partial(generate, found, pieces_of(format), ends_of(format), rng)
        _, got = read(write, format, TOOLS, thinking=thinking == "begun_thinking")
        for call in got:
            validate(call, TOOLS)
        assert bool(got) >= (choice == "required")
        assert choice != "none" or not got


# ---------------------------------------------------------------- structural tags

FIELDS = {
    "const_string": {"value"}, "json_schema": {"json_schema"}, "grammar": {"grammar"}, "any_text": {"excludes"},
    "sequence": {"elements"}, "or": {"elements"}, "optional": {"content"}, "plus": {"content"}, "star": {"content"},
    "repeat": {"min", "max", "content"}, "tag": {"begin", "content", "end"},
    "triggered_tags": {"triggers", "tags", "excludes", "at_least_one", "stop_after_first"},
    "tags_with_separator": {"tags", "separator", "at_least_one", "stop_after_first"},
}  # fmt: skip
"""xgrammar's format objects as we use them. Source: xgrammar 0.2.6, docs/structural_tag/structural_tag.md."""


@cache  # a third of those in all tags are different
def compiles(text: str) -> None:
    Guidance(text)


def check_tag(node: dict[str, Any]) -> None:
    """A format object has the fields of its type, valid schemas, grammars that compile, and unambiguous triggers."""
    assert FIELDS[node["type"]] <= node.keys() <= FIELDS[node["type"]] | {"type", "max_chars"}
    match node["type"]:
        case "json_schema":
            jsonschema.Draft202012Validator.check_schema(node["json_schema"])
            assert "nullable" not in json.dumps(node["json_schema"])
        case "grammar":
            compiles(node["grammar"])
        case "tag":
            assert node["content"]["type"] != "any_text" or node["end"] in node["content"]["excludes"]
        case "triggered_tags":
            for tag in node["tags"]:
                assert len([t for t in node["triggers"] if tag["begin"].startswith(t)]) == 1, (tag, node["triggers"])
    for below in [*node.get("elements", ()), *node.get("tags", ()), *([node["content"]] if "content" in node else [])]:
        check_tag(below)


@pytest.mark.share(12)
@pytest.mark.parametrize(("format", "choice", "parallel"), half(("auto", "required", "note", "shapes"), (True, False)))
def test_structural_tags_are_well_formed(format: Format, choice: str, parallel: bool) -> None:
    tag = grammar(format, WITH_SHAPES, tool_choice=choice, parallel=parallel)
    assert json.loads(json.dumps(tag)) == tag
    assert tag["type"] == "structural_tag"
    check_tag(tag["format"])


def test_a_structural_tag_as_servers_take_it() -> None:
    assert grammar(replace(get("hermes"), thinking=()), [ADD], tool_choice="add") == {
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


def test_every_format_has_a_grammar() -> None:
    assert [format.name for format in CATALOG if grammar_targets(format) != TARGETS] == []


def test_every_part_is_constrained() -> None:
    assert PARTS.keys() == KINDS.keys()
    never = {part for part, kind in PARTS.items() if kind.rule is refuse_constraint}
    assert never == {part for part, kind in KINDS.items() if kind.write is refuse_writing}


def test_a_keyword_that_cannot_be_enforced_is_reported() -> None:
    tool = spec("f", None, (), x={"type": "string", "pattern": "^a"}, y={"type": "array", "uniqueItems": True})
    with pytest.raises(FormatError, match="f: x: pattern"):
        grammar("hermes", [tool], target="gbnf")
    assert [str(g) for g in grammar_gaps("hermes", [tool], target="gbnf")] == ["f: x: pattern", "f: y: uniqueItems"]
    assert [str(g) for g in grammar_gaps("hermes", [tool])] == ["f: y: uniqueItems"]
    assert grammar("hermes", [tool], target="gbnf", strict=False)


@pytest.mark.parametrize(
    ("pattern", "enforced"),
    [
        ("^[a-z]+$", True), (r"^\d{2,4}$", True), ("^(foo|bar)x?$", True), ("^(?:a|b)$", True), ("^[^<]*$", True),
        (r'^[^"\\]*$', True), (r"^\w+@\w+\.com$", True), (r"^[\]\[]+$", True), ("^[ !#-Z]$", True), ("^é$", True),
        ('^a"b$', False), (r"^\\$", False), (r"^a\nb$", False), (r"^\x22$", False), (r"^\u0022$", False),
        ("^a\nb$", False), (r"^[\x00-\x1f]$", False), ('^["]$', False), (r"^[\\]$", False), ("^(?!a)b$", False),
        (r"^\p{L}$", False), (r"\ba", False),
    ],
)  # fmt: skip
def test_a_pattern_of_what_json_escapes_is_a_gap(pattern: str, enforced: bool) -> None:
    """It would be compared with the string as it is spelled."""
    for schema in ({"type": "string", "pattern": pattern}, {"$ref": "#/$defs/P"}):
        parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
        tool = ToolSpec("f", "", {**parameters, "$defs": {"P": {"type": "string", "pattern": pattern}}})
        assert [str(g) for g in grammar_gaps("hermes", [tool])] == ([] if enforced else ["f: x: pattern"])
        if not enforced:
            with pytest.raises(FormatError, match="f: x: pattern"):
                grammar("hermes", [tool])
        written = json.dumps(grammar("hermes", [tool], strict=False))
        assert (json.dumps(pattern) in written) is enforced


NODES: list[dict[str, Any]] = [
    {"type": "object", "properties": {"v": {"type": "string"}, "next": inner}, "required": ["v"]}
    for inner in (
        {"$ref": "#/$defs/Node"},
        {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
        {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Alias"}, {"type": "integer"}]}},
    )
]
NODES += [
    {"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"$ref": "#/$defs/Alias"}}]},
    {"type": "object", "properties": {"o": {"const": []}, "next": {"$ref": "#/$defs/Alias"}}},
    {
        "type": "object",
        "properties": {"v": {"type": "string"}},
        "anyOf": [{"$ref": "#/$defs/Alias"}, {"required": ["v"]}],
    },
]


@pytest.mark.share(12)
@every_format
@pytest.mark.parametrize("target", TARGETS)
def test_a_schema_that_contains_itself_has_a_grammar(format: Format, target: Any) -> None:
    for node in NODES:
        defs = {"Node": node, "Alias": {"anyOf": [{"$ref": "#/$defs/Node"}]}}
        for place in ({"$ref": "#/$defs/Node"}, {"anyOf": [{"$ref": "#/$defs/Alias"}, {"type": "null"}]}):
            properties = {"n": place, "text": {"type": "string"}}
            tool = ToolSpec("f", "", {"type": "object", "properties": properties, "$defs": defs})
            found = grammar(format, [tool], target=target, tool_choice="f", strict=False)  # type: ignore[call-overload]
            assert found if isinstance(found, dict) else Guidance(found)


@every_format
def test_a_chain_of_references_leads_to_its_type(format: Format) -> None:
    """However many choices and names are between a parameter and its type, text is not one of its values."""
    defs = {"A": {"anyOf": [{"$ref": "#/$defs/B"}]}, "B": {"anyOf": [{"$ref": "#/$defs/C"}]}, "C": {"type": "integer"}}
    place = {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "boolean"}]}
    tool = ToolSpec("f", "", {"type": "object", "properties": {"n": place}, "required": ["n"], "$defs": defs})
    plain = spec("f", None, ("n",), n={"anyOf": [{"type": "integer"}, {"type": "boolean"}]})
    found = Guidance(grammar(format, [tool], target="gbnf", tool_choice="f"))
    rng = random.Random(format.name)
    for _ in range(3):
        written = generate(found, pieces_of(format), ends_of(format), rng)
        (call,) = calls_in(written, format, (tool,))
        validate(call, (tool, plain))


@every_format
@pytest.mark.parametrize("value", [" a", "a "])
def test_a_listed_value_that_cannot_be_written_leaves_its_parameter_out(format: Format, value: str) -> None:
    """An empty choice would be written as nothing at all, which is no listed value."""
    tool = spec("move", None, ("n",), n="string", opt={"const": value})
    text = grammar(format, [tool], target="gbnf", tool_choice="move")
    assert Guidance(text)
    assert " () " not in text
    assert "opt" not in text or value in text or repr(value) in text


@pytest.mark.parametrize("name", ["glm45", "hy_v3", "k2_horizon"])
def test_a_value_holds_no_opening_of_a_value(name: str) -> None:
    found = Guidance(grammar(name, TOOLS, target="gbnf", tool_choice="note"))
    written = render_calls(name, [ToolCall("", "note", {"text": "a, here, b"})], TOOLS)
    (opening,) = (p.close.replace("</", "<", 1) for p in get(name).call if isinstance(p, Pairs))
    assert accepts(found, written)
    assert not accepts(found, written.replace("here", opening))


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder", "pythonic", "dr_tulu", "minimax_m3", "gemma4"])
def test_gbnf_counts_no_further_than_llama_cpp(format: str) -> None:
    """It refuses a grammar that counts to 2,000: such a bound is a gap, and left to the reading."""
    few = spec("f", None, ("x", "y"), x={"type": "string", "maxLength": 99}, y={"type": "array", "maxItems": 7})
    far = spec("f", None, ("x", "y"), x={"type": "string", "maxLength": 5000}, y={"type": "array", "minItems": 2000})
    for tool in (few, far):
        text = grammar(format, [tool], target="gbnf", tool_choice="f", strict=False)
        assert all(int(n) < 2000 for n in re.findall(r"\{\d*,?(\d+)\}", text))
    found = [str(g) for g in grammar_gaps(format, [far], target="gbnf")]
    assert "f: x: maxLength" in found
    assert "f: y: minItems" in found
    assert "f: x: maxLength" not in [str(g) for g in grammar_gaps(format, [far])]
    assert "f: x: maxLength" not in [str(g) for g in grammar_gaps(format, [few], target="gbnf")]


def test_a_format_of_a_string_is_no_error() -> None:
    tool = spec("f", None, (), x={"type": "string", "format": "color"})
    assert grammar("hermes", [tool], target="gbnf")
    assert [str(g) for g in grammar_gaps("hermes", [tool])] == ["f: x: format"]


@pytest.mark.parametrize(("choice", "tools"), [("nope", [PING]), ("auto", []), ("none", [])])
def test_a_choice_without_a_tool_is_refused(choice: str, tools: list[ToolSpec]) -> None:
    with pytest.raises(FormatError, match="is not an offered tool"):
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
    found = Guidance(grammar("qwen3_coder", [spec("f", None, ("x",), x=schema)], target="gbnf", tool_choice="f"))
    texts = good.split() + bad.split()
    assert [t for t in texts if accepts(found, coder("f", ("x", t)))] == good.split()
