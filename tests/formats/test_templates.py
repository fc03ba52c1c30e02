"""What models must emit for their calls by their own chat templates: we read the conversation's calls in it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from agentkit import formats
from agentkit.events import CallError, Text
from corpora import TEMPLATES, Emission, begun, calls_of, declared, emissions, equal
from recordings import ABSENT

BROKEN: Mapping[str, str] = {
    "tool_chat_template_toolace": "prints strings without quotes: `city=Paris`",
}
"""Templates whose history is in no syntax at all; no model that writes the format writes this."""

UNCLAIMED: Mapping[str, str] = {
    "functionary": "`>>>name\\n{json}`: no family of issue 3, and neither vLLM nor SGLang reads it"
}


@pytest.mark.skipif(not emissions(), reason=ABSENT)
def test_every_template_that_renders_calls_is_of_a_claimed_family() -> None:
    assert [e.template for e in emissions() if e.template not in TEMPLATES] == []
    missing = {e.format for e in emissions() if declared(e.format) is None}
    assert missing == set(UNCLAIMED)


@pytest.mark.parametrize("emission", emissions() or [pytest.param(None, marks=pytest.mark.skip(ABSENT))], ids=str)
def test_emission_gives_the_calls_of_the_conversation(emission: Emission) -> None:
    format = declared(emission.format)
    if format is None:
        pytest.skip(UNCLAIMED[emission.format])
    events = formats.parse(emission.text, format, emission.tools, thinking=begun(emission.text, format))
    if emission.template in BROKEN:
        assert not equal(calls_of(events), emission.expected), "listed as broken, but it can be read"
        return
    assert equal(calls_of(events), emission.expected)
    assert [e for e in events if isinstance(e, CallError)] == []
    shown = "".join(e.text for e in events if isinstance(e, Text))
    assert not any(name in shown for name, _ in emission.expected), "markup leaks into the visible text"
