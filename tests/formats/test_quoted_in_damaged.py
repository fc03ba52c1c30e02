"""A call that another call's value quotes never runs, whatever one damage the call around it has."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator

import pytest
from growth import assert_linear

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.events import CallEnd, CallError, Event, merge
from agentkit.formats import Format, Parser, ToolSpec
from agentkit.formats.format import Envelope, Json, KeyEnvelope, PythonCall
from agentkit.messages import ToolCall

TEXT = {"type": "string"}
BASH = ToolSpec("bash", "Run.", {"type": "object", "properties": {"command": TEXT}, "required": ["command"]})
WRITE = ToolSpec(
    "write_file",
    "Write.",
    {
        "type": "object",
        "properties": {"path": TEXT, "content": TEXT, "mode": {"type": "integer"}},
        "required": ["path", "content"],
    },
)
TOOLS = (BASH, WRITE)
QUOTED = ToolCall("", "bash", {"command": "rm -rf x"})
SAMPLE = 250  # damaged texts of each format
_TOKEN = re.compile(r"<[^<>\n]{1,60}>|\[/?\w+\]|\n")


def quotations(format: Format) -> tuple[str, ...]:
    """One or two calls as a value may quote them: with their section, in one section, and without."""
    one = formats.render_calls(format, [QUOTED], TOOLS)
    both = formats.render_calls(format, [QUOTED, QUOTED], TOOLS)
    bare = next(e.call.raw for e in formats.parse(both, format, TOOLS) if isinstance(e, CallEnd)).strip()
    return one, f"{one}\n{one}", both, bare, f"{bare}\n{bare}"


def quoting(format: Format) -> Iterator[tuple[str, int, int]]:
    """Calls that quote others and are read soundly, and where in each the value is; with CDATA and without."""
    for quoted in quotations(format):
        value = f"Never:\n{quoted}\n!"
        for names in (("path", "content"), ("content", "path")):
            for written in (value, "VALUE"):
                given = {"path": "a.md", "content": written}
                try:
                    text = formats.render_calls(
                        format, [ToolCall("", "write_file", {name: given[name] for name in names})], TOOLS
                    )
                except FormatError:
                    continue
                text = text.replace("VALUE", value)
                at = text.find(value)
                if at >= 0 and [c.name for c in formats.calls(formats.parse(text, format, TOOLS))] == ["write_file"]:
                    yield text, at, at + len(value)


def damages(text: str, start: int, end: int) -> Iterator[str]:
    """The text with one damage outside of the value, or cut off anywhere."""
    for at, c in enumerate(text):
        if not start <= at < end:
            yield text[:at] + text[at + 1 :]
            yield text[:at] + ("x" if c != "x" else "y") + text[at + 1 :]
            yield text[:at] + c + text[at:]
            yield text[:at] + c.swapcase() + text[at + 1 :]
        yield text[:at]
    for found in _TOKEN.finditer(text):
        if found.end() > start and found.start() < end:
            continue
        token = found[0]
        for other in (
            "",
            token * 2,
            token.upper(),
            token.replace("<", "&lt;").replace(">", "&gt;"),
            token.replace("<", "[").replace(">", "]"),
            token.replace('"', "\u201d"),
            f"<explanation>why</explanation>{token}",
        ):
            yield text[: found.start()] + other + text[found.end() :]


def read(format: Format, text: str, size: int) -> list[Event]:
    parser = Parser(format, TOOLS)
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    return merge([*events, *parser.close()])


def ran(events: list[Event]) -> list[str]:
    return [event.call.name for event in events if isinstance(event, CallEnd)]


RAW = [format for format in formats.CATALOG if next(quoting(format), None) is not None]


def test_most_formats_with_values_as_text_can_quote_calls() -> None:
    assert {"xml", "invoke", "qwen3_coder", "glm45", "minicpm5", "step3", "kimi_k3"} <= {f.name for f in RAW}


@pytest.mark.share(12)
@pytest.mark.parametrize("format", [f for f in RAW if not f.tagged], ids=lambda format: format.name)
def test_no_quoted_call_of_a_damaged_one_runs(format: Format) -> None:
    rng = random.Random(format.name)
    texts = [damaged for whole in quoting(format) for damaged in damages(*whole)]
    for text in rng.sample(texts, min(SAMPLE, len(texts))):
        events = formats.parse(text, format, TOOLS)
        assert "bash" not in ran(events), text
        assert read(format, text, rng.choice([1, 3, 7])) == merge(events), text


@pytest.mark.soak
@pytest.mark.parametrize("format", [f for f in RAW if not f.tagged], ids=lambda format: format.name)
def test_no_quoted_call_of_a_damaged_one_runs_at_any_place(format: Format) -> None:
    for whole in quoting(format):
        for text in damages(*whole):
            assert "bash" not in ran(formats.parse(text, format, TOOLS)), text


@pytest.mark.share(6)
@pytest.mark.parametrize("format", ["xml", "cline"])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_no_call_runs_that_an_attribute_of_a_damaged_tag_quotes(format: str, quote: str) -> None:
    quoted = formats.render_calls(format, [QUOTED], TOOLS)
    for head, tail in (("<write_file path=Qa.mdQ content=", "/>"), ("<write_file content=", " path=Qa.mdQ/>")):
        for value in (f"Q{quoted}Q", f"QNever:\n{quoted}\n{quoted}\n!Q"):
            text = f"Write:\n{head}{value}{tail}".replace("Q", quote)
            assert ran(formats.parse(text, format, TOOLS)) == ["write_file"]
            start = text.index(quoted)
            for damaged in damages(text, start - 1, text.rindex(quoted) + len(quoted) + 1):
                events = formats.parse(damaged, format, TOOLS)
                if not re.search(r"(?:content|path)\w?'", damaged):  # in a tag without "=" that is an apostrophe
                    assert "bash" not in ran(events), damaged
                assert read(formats.get(format), damaged, 1) == merge(events), damaged
    said = f"In <a title={quote}x{quote}>, x={quote}y{quote} and {quoted}"
    assert ran(formats.parse(said, format, TOOLS)) == ["bash"]


ESCAPED = [f for f in formats.CATALOG if any(isinstance(p, Json | Envelope | KeyEnvelope | PythonCall) for p in f.call)]


@pytest.mark.parametrize("format", ESCAPED, ids=lambda format: format.name)
def test_no_call_runs_whose_quotes_are_not_escaped_in_a_string(format: Format) -> None:
    one = formats.render_calls(format, [QUOTED], TOOLS)
    for between in ("", "\n", r"\n"):
        for count in (1, 2, 3):
            for given in ({"path": "p", "content": "VALUE"}, {"content": "VALUE", "path": "p"}):
                text = formats.render_calls(format, [ToolCall("", "write_file", given)], TOOLS)
                text = text.replace("VALUE", f"Never: {between.join([one] * count)} end")
                events = formats.parse(text, format, TOOLS)
                assert "bash" not in ran(events), text
                assert any(isinstance(e, CallError) for e in events) or ran(events), text
                for size in (1, 5):
                    assert read(format, text, size) == merge(events), text


PARAMETERS = ["<path>a <bash x ", "<path>a <bash> ", "<path>a <bash><command>b"]
ATTRIBUTES = ["<a b=\"<bash x ' ", "<bash x\" y=' ", "<bash x\"<bash> y='", "b=\"<bash/>\" c='<bash/>' "]


@pytest.mark.parametrize("unit", [*PARAMETERS, *ATTRIBUTES])
def test_parameters_outside_of_calls_that_open_others_are_read_in_linear_time(unit: str) -> None:
    assert_linear(lambda count: seconds(unit * count), 500)


def seconds(text: str) -> float:
    start = time.process_time()
    formats.parse(text, "xml", TOOLS)
    return time.process_time() - start
