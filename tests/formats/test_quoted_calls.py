"""A whole call of another format that a value quotes is content: what is balanced inside a value ends nothing."""

from __future__ import annotations

from typing import Final

import pytest
from format_tools import spec

from agentkit import formats
from agentkit.formats import CATALOG, Format
from agentkit.messages import ToolCall

NOTE = spec("note", None, ("text",), text="string", number="integer")
BASH = spec("bash", None, ("command",), command="string")
ALIKE: Final = ({"glm45", "hy_v3"},)
"""Formats that write their values alike, and what is around them differently: of its own call, one quotes half."""


@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
@pytest.mark.parametrize("around", ["Use:\n{0}\nEnd.", "{0}"])
def test_a_whole_call_of_another_format_in_a_value_is_content(format: Format, around: str) -> None:
    """Also where its tool has a parameter that was not passed."""
    for other in CATALOG:
        if other is format or {format.name, other.name} in ALIKE:
            continue
        quoted = formats.render_calls(other, [ToolCall("", "bash", {"command": "ls"})], (BASH,))
        call = ToolCall("", "note", {"text": around.format(quoted)})
        text = formats.render_calls(format, [call], (NOTE, BASH)).replace("<![CDATA[", "").replace("]]>", "")
        assert [c.arguments for c in formats.calls(formats.parse(text, format, (NOTE, BASH)))] == [call.arguments], text
