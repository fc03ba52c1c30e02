"""Calls of real tools and arguments made of markup, written in every format and read back.

What comes back is equal, or the writer has refused with a `FormatError`: nothing is ever altered in silence. The normal
run takes a part of the cases of the Berkeley leaderboard, `make soak` all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.formats import CATALOG, Format, ToolSpec
from agentkit.formats.spec import Braced, NestedTags, Pairs
from agentkit.messages import ToolCall
from corpora import calls_of, equal, specs
from format_tools import ANYTHING, CREATE_FILE, NOTE, STR_REPLACE, TOOLS
from recordings import ABSENT, rows

every_format = pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
CASES = [r for r in rows("bfcl_cases.jsonl") if r["ground_truth_calls"]]
needs_cases = pytest.mark.skipif(not CASES, reason=ABSENT)


def carried(format: Format, calls: Sequence[ToolCall], tools: Sequence[ToolSpec]) -> bool:
    """Whether the format carries these calls exactly; False where it refuses them, an error where it alters them."""
    try:
        text = formats.render_calls(format, calls, tools)
    except FormatError:
        return False
    got = calls_of(formats.parse(text, format, tools))
    assert equal(got, [(c.name, dict(c.arguments)) for c in calls]), f"altered: {text}"
    return True


# ---------------------------------------------------------------- real tools


WITH_TYPES = ("JSON envelope", "name, then JSON", "Python call")  # bodies that say a value's type themselves


def refused(format: Format, cases: Sequence[dict[str, Any]]) -> list[str]:
    """The cases that the format refuses to carry."""
    return [c["id"] for c in cases if not carried(format, wanted(c), specs(c["tools"]))]


def wanted(case: dict[str, Any]) -> list[ToolCall]:
    return [ToolCall("", c["name"], c["arguments"]) for c in case["ground_truth_calls"]]


def breaks_schema(case: dict[str, Any]) -> bool:
    """Whether the leaderboard's own answer breaks the tool's schema: false for a string, null for a number."""
    tools = {t.name: t for t in specs(case["tools"])}
    return not all(Draft202012Validator(tools[c.name].parameters).is_valid(c.arguments) for c in wanted(case))


def check(format: Format, cases: Sequence[dict[str, Any]]) -> None:
    """Every case is carried, but for a body of plain text: its types come from the schema, and it can say no other."""
    missed = refused(format, cases)
    print(f"{format.name}: {len(cases) - len(missed)} of {len(cases)} cases carried")
    if format.body in WITH_TYPES:
        assert missed == []
    rest = [c for c in cases if c["id"] in missed and not breaks_schema(c)]
    assert [c["id"] for c in rest if not (format.name == "dr_tulu" and holds_name(c))] == []


def holds_name(case: dict[str, Any]) -> bool:
    """Whether an argument is called `name`: in dr_tulu it would stand in the attribute that holds the tool's name."""
    return any("name" in c.arguments for c in wanted(case))


@needs_cases
@every_format
def test_every_case_is_carried(format: Format) -> None:
    check(format, CASES[::60])


@needs_cases
@pytest.mark.soak
@every_format
def test_every_single_case_is_carried(format: Format) -> None:
    check(format, CASES)


# ---------------------------------------------------------------- arguments made of markup

CODE = (
    "if (a && b < c) { return x->y[\"k\"]; }  // \\n stays, 'quotes' too\n\tint i = 0;\r\n",
    'def f(x):\n    return f\'{x!r}\' if x else """doc"""\n',
    "SELECT * FROM t WHERE a <> 'b' AND c >= 1; -- \"x\"",
    "#!/bin/sh\necho \"$HOME\" | sed 's/<[^>]*>//g' && cat <<'EOF'\n`date`\nEOF\n",
    'printf("%s\\n", "</parameter>");',
)
MARKUP = (
    "<!DOCTYPE html>\n<html><body class='a'>&lt;b&gt; &amp;amp; <br/> <p>x</p></body></html>\n",
    '<?xml version="1.0"?><!-- c --><r a="1" b=\'2\'><![CDATA[x < y]]></r>',
    "]]>", "<![CDATA[", "<![CDATA[ ]]>", "]]>]]>", "<![CDATA[a]]>b]]>", "]]", "<!--", "&lt;", "&#10;", "&amp;lt;",
    "</parameter>", "</parameter>\n<parameter=x>\n", "</arg_value>", "</function>", "</invoke>", "</tool_call>",
    '<parameter name="x">', "```", "```\n", "```json\n[", "<think>", "</think>", "<|im_end|>",
)  # fmt: skip
PLAIN = (
    "", " ", "\n", "\n\n", " \n x \n ", "\ttab", "\r\n", "\r", "'", '"', "''", '""', "\\", "\\\\", '\\"', "\\n", "`",
    "'\"'", "\"'\"", '"""', "null", "None", "true", "007", "1e5", "-0", "[1]", '{"a": 1}', '"quoted"', "NaN", "{", "}",
    "{}", "[", "]", ",", ":", ";", "=", "a=b", "x)", "(", ")", "f(x=1)", "[f(x=1)]",
    '{"name": "note", "arguments": {}}',
)  # fmt: skip
ODD = (
    "".join(map(chr, range(32))), "\x00", "\x1b[31m", "\x7f", "\x85", "\u2028\u2029", "\ufeff", "\u200b", "\u202e",
    "🙂", "👩‍👩‍👧‍👦", "é", "e\u0301", "日本語", "\U0001d4b3", "｜tool▁sep｜", "Ġ", "\ufffe", "\U0010ffff",
)  # fmt: skip
SURROGATES = ("\ud800", "a\udfffb", "\udc00\ud800")


def delimiters(format: Format) -> Iterator[str]:
    """Every literal of a format: what it writes around calls, names and values, and around thinking."""
    for shape in format.shapes:
        if shape.section is not None:
            yield from (e for e in (shape.section.open, shape.section.close) if isinstance(e, str))
        for part in shape.call:
            match part:
                case str():
                    yield part
                case Pairs(key, middle, close):
                    yield from (key, middle, close)
                case Braced(quote):
                    yield quote
                case NestedTags(token):
                    yield token
                case _:
                    pass
    yield from (tag for pair in format.thinking for tag in pair)
    yield from format.markup


def own(format: Format) -> list[str]:
    """The format's own delimiters, alone, stripped and in a sentence, and whole calls as it writes them."""
    found = dict.fromkeys(t for d in delimiters(format) if d.strip() for t in (d, d.strip(), f"a {d.strip()} b"))
    inner = [
        ToolCall("", NOTE.name, {"text": "x"}),
        ToolCall("", CREATE_FILE.name, {"file_path": "a", "file_contents": ""}),
    ]
    written = [formats.render_calls(format, [call], TOOLS) for call in inner]
    return [*found, *written, written[0] + written[1], written[0][: len(written[0]) // 2]]


def placed(value: str) -> Iterator[ToolCall]:
    """The value as a call's only string, beside another, and inside an object and a list."""
    yield ToolCall("", NOTE.name, {"text": value})
    yield ToolCall("", CREATE_FILE.name, {"file_path": value, "file_contents": value})
    yield ToolCall("", STR_REPLACE.name, {"file_path": "a", "old_str": value, "new_str": value + "x"})
    yield ToolCall("", ANYTHING.name, {"items": [value, {"k": value}], "object": {"k": [value], "n": None}})


@every_format
def test_arguments_made_of_markup_are_carried_or_refused(format: Format) -> None:
    count: Counter[bool] = Counter()
    lost: Counter[str] = Counter()
    for value in (*CODE, *MARKUP, *PLAIN, *ODD, *own(format)):
        for call in placed(value):
            count[fits := carried(format, [call], TOOLS)] += 1
            lost[value] += not fits
    print(
        f"{format.name}: {count[True]} of {count.total()} carried, {count[False] / count.total():.1%} refused;", end=" "
    )
    print("most refused:", [v[:30] for v, n in lost.most_common(6) if n])
    assert count[False] <= REFUSED.get(format.name, 0) * count.total()


REFUSED = {"gemma4": 0.05, "functiongemma": 0.05, "minimax_m3": 0.14}  # they have no escape for their own token
"""The share of these arguments that a format may refuse; what is not listed carries them all."""


@every_format
@pytest.mark.parametrize("value", SURROGATES, ids=ascii)
def test_lone_surrogates_are_refused(format: Format, value: str) -> None:
    for call in placed(value):
        with pytest.raises(FormatError):
            formats.render_calls(format, [call], TOOLS)


@every_format
def test_calls_that_are_no_json_are_refused(format: Format) -> None:
    for value in (float("nan"), float("inf"), {1, 2}, b"x", object()):
        with pytest.raises(FormatError):
            formats.render_calls(format, [ToolCall("", ANYTHING.name, {"free": value})], TOOLS)
