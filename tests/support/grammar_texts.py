"""What the tests of grammars write and read: tools, pieces of text, and strings that are good calls or bad ones.

Knows no engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, get_args

import jsonschema
from format_tools import ADD, ANYTHING, CREATE_FILE, NOTE, PING, STR_REPLACE, WEB_SEARCH, spec

from agentkit.events import CallEnd, CallError
from agentkit.formats import CATALOG, Format, Parser, ToolSpec, render_calls
from agentkit.formats.format import Braced, NestedTags, Pairs, Tag, TagParameters, ToolElement
from agentkit.messages import ToolCall
from agentkit.toolspec import Layout

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
WITH_SHAPES = (*TOOLS, SHAPES)

WITH = list(CATALOG)
PIECES = [
    '"', "'", "}", "]", ")", ",", " ", "\n", "\n\n", "a", "Zürich", "null", "true", "7", "-1.5", "😀", "<", "</", "&",
    "<![CDATA[", "]]>", "<think>", "</think>", "{", "[", "\\n", "\\u00e9", "&quot;", "</Parameter>", "<x:note>", ": ",
    "`", "```", "\u2028",
]  # fmt: skip


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


ELEMENT_NAMES = {n for t in WITH_SHAPES for n in t.parameters["properties"]} | {
    e.tag for t in WITH_SHAPES for layout in get_args(Layout) if (e := t.with_element(layout).element)
}
NESTED_NAMES = {n for t in WITH_SHAPES for n in t.parameters["properties"]} | {"item", "x", "y", "label", "value"}


class Ambiguous(Exception):
    """The parser refuses a text that may mean two things, and no grammar can tell.

    It names a free key twice with different values; what its format writes around values is in a value; or the closing
    tag of another tool is in an element's text, which a grammar of acceptable size does not forbid. What follows in
    that reply is skipped.
    """


def calls_in(text: str, format: Format, tools: tuple[ToolSpec, ...], *, thinking: bool = False) -> list[ToolCall]:
    """The calls of a constrained text; a damaged one fails the test.

    Raises:
        Ambiguous: nothing is wrong but that.
    """
    parser = Parser(format, tools, in_code="execute", thinking=thinking)
    events = parser.feed(text) + parser.close()
    errors = [e for e in events if isinstance(e, CallError)]
    if errors and errors[0].code == "ambiguous_call" and {e.code for e in errors} <= {"ambiguous_call", "skipped"}:
        raise Ambiguous(text)
    assert not errors, (text, events)
    return [e.call for e in events if isinstance(e, CallEnd)]


def read(
    write: Callable[[], str], format: Format, tools: tuple[ToolSpec, ...], *, thinking: bool = False
) -> tuple[str, list[ToolCall]]:
    """A generated text and its calls; written again, thirty times at most, where it is ambiguous."""
    for _ in range(30):
        written = write()
        with suppress(Ambiguous):
            return written, calls_in(written, format, tools, thinking=thinking)
    written = write()
    return written, calls_in(written, format, tools, thinking=thinking)


def validate(call: ToolCall, tools: tuple[ToolSpec, ...]) -> None:
    tool = next(t for t in tools if t.name == call.name)
    jsonschema.Draft202012Validator(tool.parameters).validate(dict(call.arguments))


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

# ---------------------------------------------------------------- calls to render

_NOTE = ToolCall("", "note", {"text": "some text,\nin two lines"})
_ADD = ToolCall("", "add", {"a": 1, "b": -20})
_EDIT = ToolCall("", "str_replace", {"file_path": "a.py", "old_str": "if a < b:\n    x", "new_str": "é"})
RENDERED = {False: [[_NOTE], [_EDIT], [_NOTE, _ADD, _ADD]], True: [[_NOTE], [_NOTE, _NOTE, _NOTE]]}
"""Replies of calls, arguments in declared order; True for a format that carries a tool's first argument only."""
