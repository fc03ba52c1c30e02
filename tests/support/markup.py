"""Arguments made of markup: code, documents, every format's own delimiters, what looks like a value, odd characters.

A fixed sample, so that the share of it which a format refuses is a figure of that format. Its table is in
docs/reference/catalogue.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from format_tools import ANYTHING, CREATE_FILE, NOTE, STR_REPLACE, TOOLS

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.formats import Format
from agentkit.formats.format import Braced, NestedTags, Pairs
from agentkit.messages import ToolCall

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


def sample(format: Format) -> Iterator[ToolCall]:
    """Every call of the sample for one format."""
    for value in (*CODE, *MARKUP, *PLAIN, *ODD, *own(format)):
        yield from placed(value)


def share_refused(format: Format) -> float:
    """The share of the sample that a format refuses to write, between 0 and 1."""
    verdicts = [_refused(format, call) for call in sample(format)]
    return sum(verdicts) / len(verdicts)


def _refused(format: Format, call: ToolCall) -> bool:
    try:
        formats.render_calls(format, [call], TOOLS)
    except FormatError:
        return True
    return False
