"""Text written so that it is read back exactly: attributes, raw values, CDATA.

Knows values and the tools; depends on no format and no part.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.formats.tags import CDATA_CLOSE, CDATA_OPEN
from agentkit.schemas.typed import values
from agentkit.toolspec import ToolSpec

_ATTRIBUTE_ESCAPES: Final = {
    "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"
}  # fmt: skip
_ATTRIBUTE_UNSAFE = re.compile('[&<>"\n\r\t]')
CDATA_AT_START = re.compile(r"\s*<!\[CDATA\[")


def attribute(text: str) -> str:
    """Return text as an attribute's value, for double quotes."""
    return _ATTRIBUTE_UNSAFE.sub(lambda m: _ATTRIBUTE_ESCAPES[m[0]], text)


def raw_value(text: str) -> str:
    """Return text as a raw value: unchanged, or in CDATA if it begins like CDATA."""
    if CDATA_AT_START.match(text):
        return cdata(text)
    return f"\n{text}" if text.startswith(("\n", "\r\n")) else text  # the first newline is not part of a value


def cdata(text: str) -> str:
    """Return text that is read back exactly, regardless of what it contains."""
    return f"{CDATA_OPEN}{text.replace(CDATA_CLOSE, ']]' + CDATA_CLOSE + CDATA_OPEN + '>')}{CDATA_CLOSE}"


def reads_as_null(value: Any) -> bool:
    """Return True for a string that would be read as null unless it is marked as literal text."""
    return isinstance(value, str) and value in ("null", "None", "NULL")


def text_of(value: Any, parameter: str, tool: ToolSpec, *, nulls: bool = False) -> str | None:
    """Return the value as text; None for a null that text cannot distinguish from a string."""
    schema, root = tool.schema_of(parameter), tool.parameters
    try:
        return values.write(value, schema, root, nulls=nulls)
    except FormatError as e:
        if value is None and values.accepts_null(schema, root):
            return None
        raise FormatError(f"{tool.name}: parameter {parameter!r}: {e}") from e
