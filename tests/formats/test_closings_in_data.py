"""A value's end is content in a string of JSON, if the parameter allows no text: JSON ends at its bracket.

Over every format that writes values as text.
"""

from __future__ import annotations

import json
import time

import pytest
from format_tools import spec
from growth import assert_linear
from raw_values import BASH, PARAMETERS, RAW, child, outcomes, pieces, read

from agentkit import formats
from agentkit.formats import Element, Format
from agentkit.formats.format import NestedTags
from agentkit.messages import ToolCall

KEEP = spec(
    "keep", Element("keep", (child("tags"), child("deep"), child("text"))), tags="array", deep="object", text="string"
)
TOOLS = (KEEP, BASH)
IN_JSON = [f for f in RAW if not any(isinstance(p, NestedTags) for p in f.call)]
every_format = pytest.mark.parametrize("format", IN_JSON, ids=lambda f: f.name)


def quoted(format: Format) -> list[str]:
    """Return closings of a value, its call and its section, alone or with calls, whole and in parts."""
    one = pieces(format, "bash", command="VALUE")
    close, tail, head = one.close.strip(), one.tail.strip(), one.head.strip()
    ends = f"{close}{tail}"
    elements = [f"</{name}>\n</keep>" for name in ("tags", "deep")]
    parts = [close, ends, f"a {close} b", f"{head}x{ends}", f"{ends}{head}x", f"a{close}{head}x", *elements]
    return [*parts, *(f"{end}\n{head}x{ends}" for end in (ends, *elements))]


def written(format: Format, given: dict[str, object], inner: str) -> str:
    """A call with this text in a string of its data, escaped as in JSON."""
    text = formats.render_calls(format, [ToolCall("", "keep", given)], TOOLS)
    return text.replace("VALUE", json.dumps(inner, ensure_ascii=False)[1:-1])


def filled(given: dict[str, object], inner: str) -> dict[str, object]:
    return json.loads(json.dumps(given).replace("VALUE", json.dumps(inner)[1:-1]))


GIVEN: tuple[dict[str, object], ...] = (
    {"tags": ["VALUE"]},
    {"text": "a", "tags": ["a", {"b": "VALUE"}, 1]},
    {"deep": {"VALUE": ["c"], "d": "VALUE"}, "text": "a"},
    {"text": "a" * 300, "deep": {"b": "VALUE", "c": None}, "tags": [1]},
)


@every_format
def test_data_that_holds_what_ends_it_is_whole(format: Format) -> None:
    for given in GIVEN:
        for inner in quoted(format):
            text = written(format, given, inner)
            assert outcomes(read(format, text, TOOLS)) == [("keep", filled(given, inner), ())], text


@pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
@pytest.mark.parametrize("quote", ['"', '\\"', "'"])
def test_a_whole_call_with_its_quotes_escaped_is_content_of_a_text(format: Format, quote: str) -> None:
    call = formats.render_calls(format, [ToolCall("", "bash", {"command": "ls"})], TOOLS).strip().replace('"', quote)
    one = pieces(format, "bash", command="VALUE")
    for value in (call, f"Write {call} to list.", f"{call}\n{call}"):
        assert outcomes(read(format, one.call(value), TOOLS)) == [("bash", {"command": value}, ())], value


@pytest.mark.share(2)
@pytest.mark.parametrize("unit", ['["</parameter>', '["</parameter>\n<parameter=deep>\n{"'])
def test_data_that_does_not_end_is_read_in_linear_time(unit: str) -> None:
    start = "<tool_call>\n<function=keep>\n<parameter=tags>\n"
    assert_linear(lambda count: seconds(start + unit * count), 2000)
    assert_linear(lambda count: seconds(f"{start}{unit}\n</function>\n</tool_call>\n" * count), 500)


def seconds(text: str) -> float:
    begun = time.process_time()
    formats.parse(text, "qwen3_coder", TOOLS)
    return time.process_time() - begun
