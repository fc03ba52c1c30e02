"""Arguments of a parser: unknown names, and tools of another type, are refused."""

from __future__ import annotations

from typing import Any

import pytest
from format_tools import PING

from agentkit.errors import FormatError
from agentkit.formats import Parser, ToolSpec


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"repairs": ("trailing_coma",)}, "there is no repair 'trailing_coma'; did you mean 'trailing_comma'"),
        ({"repairs": "trailing_comma"}, "there is no repair '"),
        ({"in_code": "Execute"}, "in_code='Execute': expected one of ignore, reply, execute"),
        ({"tools": [{"type": "function", "function": {"name": "w"}}]}, "ToolSpec, .* found dict {'type': 'function'"),
        ({"tools": "w"}, "tools are a sequence of ToolSpec, such as .* found str 'w'"),
        ({"tools": [PING, None]}, "found NoneType None"),
        ({"tools": [PING, ToolSpec("", "", {"type": "object", "properties": {}})]}, "a tool has no name: ToolSpec"),
    ],
)
@pytest.mark.parametrize("format", ["hermes", "xml", "legacy", "python"])
def test_what_can_never_be_right_is_refused(format: str, wrong: dict[str, Any], said: str) -> None:
    given = {"tools": [PING], **wrong}
    with pytest.raises(FormatError, match=said):
        Parser(format, given.pop("tools"), **given)
