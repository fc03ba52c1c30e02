"""A value that is one lone quote, which was not escaped: three quotes in a row, and those of two values enclose markup.

Over every format whose strings are in JSON's or Python's quotes. A value that really is between three quotes is read.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from format_tools import spec

from agentkit import formats
from agentkit.events import CallEnd, CallError, merge
from agentkit.formats import CATALOG, Format, Parser
from agentkit.messages import ToolCall

EDIT = spec("edit", None, ("path", "old", "new"), path="string", old="string", new="string", more="string")
NOTE = spec("note", None, ("text",), text="string")
LIST = spec("list", None, ("items",), items={"type": "array", "items": {"type": "string"}})
TOOLS = (EDIT, NOTE, LIST)
PLACE = "910002"


def quoted(format: Format) -> str:
    """The format's own quote around a string; empty if it has none, or one that is no single quote."""
    text = formats.render_calls(format, [ToolCall("", "note", {"text": PLACE})], TOOLS)
    quote = text[text.index(PLACE) - 1]
    return quote if quote in "'\"" and text[text.index(PLACE) + len(PLACE)] == quote else ""


IN_QUOTES = [format for format in CATALOG if quoted(format)]
every_format = pytest.mark.parametrize("format", IN_QUOTES, ids=lambda format: format.name)


def written(format: Format, *given: tuple[str, dict[str, object]]) -> Iterator[str]:
    """Calls in which each place stands for a lone quote, in both kinds of quotes, in one section or one each."""
    calls = [ToolCall("", name, arguments) for name, arguments in given]
    together = formats.render_calls(format, calls, TOOLS)
    apart = "\n".join(formats.render_calls(format, [call], TOOLS) for call in calls)
    own = quoted(format)
    for text in dict.fromkeys((together, apart)):
        for quote in ("'", '"'):
            yield text.replace(own, quote).replace(PLACE, quote)


GIVEN: tuple[tuple[tuple[str, dict[str, object]], ...], ...] = (
    (("note", {"text": PLACE}),),
    (("note", {"text": PLACE}), ("note", {"text": PLACE})),
    (("note", {"text": PLACE}), ("note", {"text": "a"}), ("note", {"text": PLACE})),
    (("note", {"text": PLACE}), ("note", {"text": PLACE}), ("note", {"text": PLACE})),
    (("edit", {"path": "a", "old": PLACE, "new": PLACE}),),
    (("edit", {"path": "a", "old": PLACE, "new": PLACE, "more": "b"}),),
    (("edit", {"path": PLACE, "old": "a", "new": PLACE}),),
    (("edit", {"path": PLACE, "old": PLACE, "new": PLACE}),),
    (("edit", {"path": "a", "old": PLACE, "new": "b"}), ("note", {"text": PLACE})),
    (("list", {"items": [PLACE, PLACE]}),),
    (("list", {"items": [PLACE, "a", PLACE]}),),
    (("list", {"items": [PLACE]}), ("list", {"items": [PLACE]})),
    (("list", {"items": ["a", PLACE]}), ("note", {"text": PLACE})),
)


def test_most_formats_are_here() -> None:
    assert {"hermes", "mistral", "jamba", "llama3_json", "harmony", "pythonic", "lfm2"} <= {f.name for f in IN_QUOTES}


@pytest.mark.share(12)
@every_format
@pytest.mark.parametrize("given", GIVEN)
def test_no_call_runs_with_what_is_between_two_lone_quotes(
    format: Format, given: tuple[tuple[str, dict[str, object]], ...]
) -> None:
    wanted = [(name, str(arguments).replace(PLACE, "?")) for name, arguments in given]
    for text in written(format, *given):
        events = formats.parse(text, format, TOOLS)
        for event in events:
            if isinstance(event, CallEnd):
                shown = {k: "?" if v in ("'", '"') else v for k, v in event.call.arguments.items()}
                assert (event.call.name, str(shown)) in wanted, text
        assert any(isinstance(event, CallError) for event in events), text
        parser = Parser(format, TOOLS)
        cut = [event for c in text for event in parser.feed(c)] + parser.close()
        assert merge(cut) == merge(events), text


VALUES = (
    "a\nb",
    '{"a": 1}',
    '{"a": "b",\n "c": "d"}',
    '[{"a": 1}, {"b": ""}]',
    "d['a']:",
    "f(a, b=1)\ng(c=",
)


LISTS = ("granite", "phi4_mini_json", "mistral", "xlam")
"""Here a value with brackets of its own may have ended the list of calls: it is refused."""


@every_format
@pytest.mark.parametrize("value", VALUES)
def test_a_value_between_three_quotes_is_read(format: Format, value: str) -> None:
    for quote in ('"""', "'''"):
        text = formats.render_calls(format, [ToolCall("", "note", {"text": PLACE})], TOOLS)
        own = quoted(format)
        text = text.replace(f"{own}{PLACE}{own}", f"{quote}{value}{quote}")
        events = formats.parse(text, format, TOOLS)
        ends = [e.call.arguments for e in events if isinstance(e, CallEnd)]
        refused = format.name in LISTS and any(isinstance(e, CallError) for e in events)
        assert ends == [{"text": value}] or (refused and not ends), text
