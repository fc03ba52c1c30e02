"""Calls of real tools and arguments made of markup, written in every format and read back.

What comes back is equal, or the writer has refused with a `FormatError`: nothing is ever altered in silence. The normal
run takes a part of the cases of the Berkeley leaderboard, `make soak` all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from corpora import calls_of, equal, specs
from format_tools import ANYTHING, TOOLS
from jsonschema import Draft202012Validator
from markup import placed, sample
from recordings import ABSENT, rows

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.formats import CATALOG, Format, ToolSpec
from agentkit.messages import ToolCall

every_format = pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
CASES = [r for r in rows("bfcl_cases.jsonl") if r["ground_truth_calls"]]
needs_cases = pytest.mark.skipif(not CASES, reason=ABSENT)


def carried(format: Format, calls: Sequence[ToolCall], tools: Sequence[ToolSpec]) -> bool:
    """Return True if the format carries these calls exactly, False if it refuses them; an error if it alters them."""
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
    """Return True if the leaderboard's own answer is none to its own tool.

    It breaks the schema (false for a string, null for a number), or gives an argument that the tool does not declare.
    """
    tools = {t.name: t for t in specs(case["tools"])}
    return not all(
        Draft202012Validator(tools[c.name].parameters).is_valid(c.arguments)
        and all(map(tools[c.name].declares, c.arguments))
        for c in wanted(case)
    )


def check(format: Format, cases: Sequence[dict[str, Any]]) -> None:
    """Every case is carried, but for a body of plain text: its types come from the schema, and it can say no other."""
    missed = refused(format, cases)
    print(f"{format.name}: {len(cases) - len(missed)} of {len(cases)} cases carried")
    if format.body in WITH_TYPES:
        assert missed == []
    rest = [c for c in cases if c["id"] in missed and not breaks_schema(c)]
    assert [c["id"] for c in rest] == []
    assert len(missed) <= 3


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

SURROGATES = ("\ud800", "a\udfffb", "\udc00\ud800")


@pytest.mark.share(12)
@every_format
def test_arguments_made_of_markup_are_carried_or_refused(format: Format) -> None:
    calls = list(sample(format))
    count = sum(not carried(format, [call], TOOLS) for call in calls)
    print(f"{format.name}: {count} of {len(calls)} refused")
    assert count <= REFUSED.get(format.name, 0) * len(calls)


REFUSED = {"gemma4": 0.14, "functiongemma": 0.14, "minimax_m3": 0.14}  # they have no escape for their own token
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


# ---------------------------------------------------------------- values that break the schema


def test_an_argument_may_be_called_as_the_attribute_that_holds_the_tools_name() -> None:
    tool = ToolSpec("add_server", "", {"properties": {"name": {}, "host": {}}, "required": ["host"]})
    call = ToolCall("", "add_server", {"name": "local", "host": "h"})
    text = formats.render_calls("dr_tulu", [call], [tool])
    assert text == '<call_tool name="add_server" name="local">h</call_tool>'
    assert calls_of(formats.parse(text, "dr_tulu", [tool])) == [("add_server", {"name": "local", "host": "h"})]
