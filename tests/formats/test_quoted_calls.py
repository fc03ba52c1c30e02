"""A whole call of another format that a value quotes is content: what is balanced inside a value ends nothing."""

from __future__ import annotations

from contextlib import suppress

import pytest
from format_tools import spec

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.formats import CATALOG, Format
from agentkit.messages import ToolCall

NOTE = spec("note", None, ("text",), text="string", number="integer")
BASH = spec("bash", None, ("command",), command="string")
CONTENT = 22
"""Of the other formats, as many at least: those that write elements share their tags with most."""


@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
@pytest.mark.parametrize("around", ["Use:\n{0}\nEnd.", "{0}"])
def test_a_whole_call_of_another_format_in_a_value_is_content(format: Format, around: str) -> None:
    """Also where its tool has a parameter that was not passed. A call that shares markup is content or is refused."""
    content = 0
    for other in CATALOG:
        quoted = formats.render_calls(other, [ToolCall("", "bash", {"command": "ls"})], (BASH,))
        call = ToolCall("", "note", {"text": around.format(quoted)})
        with suppress(FormatError):
            text = formats.render_calls(format, [call], (NOTE, BASH)).replace("<![CDATA[", "").replace("]]>", "")
            read = [c.arguments for c in formats.calls(formats.parse(text, format, (NOTE, BASH)))]
            assert read in ([call.arguments], []), text
            content += read == [call.arguments]
    assert content >= CONTENT
