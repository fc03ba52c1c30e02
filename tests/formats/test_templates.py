"""The text of calls by models' own chat templates: we read the conversation's calls in it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from corpora import TEMPLATES, Emission, begun, calls_of, declared, emissions, equal
from recordings import ABSENT

from agentkit import formats
from agentkit.events import CallError, Text

BROKEN: Mapping[str, str] = {
    "tool_chat_template_toolace": "prints strings without quotes: `city=Paris`",
    "tool_chat_template_gemma3_pythonic": "prints no commas between arguments",
    "tool_chat_template_llama4_pythonic": "prints strings with unescaped quotes of their own kind",
}
"""Templates whose history is in no syntax at all; no model that writes the format writes this."""

UNCLAIMED: Mapping[str, str] = {
    "functionary": "`>>>name\\n{json}`: no family of issue 3, and neither vLLM nor SGLang reads it"
}

OTHERWISE: Mapping[str, str] = {
    "Apriel-1.6-15b-Thinker-fixed": "its list on one line; ours on several, as for Jamba",
    "ByteDance-Seed-OSS": "prints an object as Python does; ours as JSON, which has one form for every value",
    "GLM-4.7-Flash": "nothing between its tags; ours with the line breaks of GLM-4.5, and both are read",
    "GigaChat3-10B-A1.8B": "a role of its own; ours behind `<|function_call|>`, and both are read",
    "gptoss": "the recipient before the channel; ours behind it, and both are read",
    "lfm2_2_5": "an object as JSON within Python; ours all Python",
    "tool_chat_template_functiongemma": "prints an object as Python does; ours as JSON",
    "tool_chat_template_llama4_json": "nothing between its calls; ours `; `, and both are read",
    "tool_chat_template_mistral_parallel": "prints the calls' ids too, which the server gives",
}
"""Templates whose history is not written as ours is, and how it differs."""


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
        assert not equal(calls_of(events), emission.expected), "listed as broken, but it bytes can be read"
        return
    assert equal(calls_of(events), emission.expected)
    assert [e for e in events if isinstance(e, CallError)] == []
    shown = "".join(e.text for e in events if isinstance(e, Text))
    assert not any(name in shown for name, _ in emission.expected), "markup leaks into the visible text"


@pytest.mark.parametrize("emission", emissions() or [pytest.param(None, marks=pytest.mark.skip(ABSENT))], ids=str)
def test_our_history_is_written_as_the_template_writes_it(emission: Emission) -> None:
    format = declared(emission.format)
    if format is None or emission.template in BROKEN:
        pytest.skip("no format of ours, or no syntax")
    events = formats.parse(emission.text, format, emission.tools, thinking=begun(emission.text, format))
    ours = formats.render_calls(format, formats.calls(events), emission.tools)
    assert (ours.strip() in emission.text) != (emission.template in OTHERWISE)
