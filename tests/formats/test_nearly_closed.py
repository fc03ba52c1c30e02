"""A value whose closing has one wrong character: what follows it is not taken into the value."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from format_tools import TOOLS

from agentkit.events import CallEnd, CallError
from agentkit.formats import CATALOG, Format, parse, render_calls
from agentkit.formats.format import Pairs, TagParameters
from agentkit.messages import ToolCall

VALUE = "Tea with Zo\u00eb"
FORMATS = [f for f in CATALOG if any(isinstance(part, Pairs | TagParameters) for part in f.call)]


def closing_of(format: Format) -> str:
    part = next(part for part in format.call if isinstance(part, Pairs | TagParameters))
    return part.close.strip() if isinstance(part, Pairs) else f"</{part.name}>"


def with_one_wrong_character(closing: str) -> Iterator[str]:
    for at in range(len(closing) + 1):
        yield closing[:at] + "=" + closing[at:]
        yield closing[:at] + closing[at + 1 :]
        yield closing[:at] + "x" + closing[at + 1 :]


@pytest.mark.parametrize("behind", ["null", " and more"])
@pytest.mark.parametrize("format", FORMATS, ids=lambda f: f.name)
def test_what_follows_a_damaged_closing_is_not_part_of_the_value(format: Format, behind: str) -> None:
    sound = render_calls(format, [ToolCall("c0", "note", {"text": VALUE})], TOOLS)
    closing = closing_of(format)
    for damaged in with_one_wrong_character(closing):
        if closing in damaged:
            continue
        at = sound.index(closing, sound.index(VALUE))
        text = sound[:at] + damaged + behind + sound[at + len(closing) :]
        found = [e for e in parse(text, format, TOOLS) if isinstance(e, CallEnd | CallError)]
        assert found, f"{damaged}: lost"
        assert not any(isinstance(e, CallEnd) and e.call.arguments != {"text": VALUE} for e in found), damaged


@pytest.mark.parametrize("format", FORMATS, ids=lambda f: f.name)
def test_a_sound_value_may_hold_a_damaged_closing(format: Format) -> None:
    for damaged in with_one_wrong_character(closing_of(format)):
        call = ToolCall("c0", "note", {"text": f"{VALUE}, never {damaged} please"})
        (end,) = (e for e in parse(render_calls(format, [call], TOOLS), format, TOOLS) if isinstance(e, CallEnd))
        assert end.call.arguments == call.arguments
