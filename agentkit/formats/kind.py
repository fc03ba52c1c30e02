"""One kind of part: its reader, its writer, and the rules for a model.

The files in `bodies/` define one `PartKind` for each part that they know; `bodies/kinds.py` lists them. How a part is
constrained is defined in `grammar/parts/`, on which formats do not depend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.formats.call import CallReader
from agentkit.formats.format import Format
from agentkit.formats.reader import Reader, Wait
from agentkit.messages import ToolCall
from agentkit.schemas import walk
from agentkit.toolspec import ToolSpec


@dataclass(frozen=True, slots=True)
class Writing:
    """The input of a part's writer: format, called tool, call, and the call's number among the calls.

    `others` are the tags of the other tools, if each has its own.
    """

    format: Format
    tool: ToolSpec
    call: ToolCall
    number: int
    others: tuple[str, ...] = ()

    def schema(self, parameter: str) -> tuple[walk.Schema, walk.Schema]:
        """Return the schema of a parameter, and the one in which its references are resolved."""
        return self.tool.schema_of(parameter), self.tool.parameters


@dataclass(frozen=True, slots=True)
class PartKind:
    """One kind of part.

    Args:
        part: its class in `format.py`; `str` for literals.
        read: consumes it, from the call's current position, and stores its content in the call.
        write: its text for a call. `refuse_writing` if no format writes it.
        taught: the rules about it in a prompt, one sentence each; empty if the example alone is enough.
        listing: how a prompt lists the tools, if the part needs them in another form than JSON Schema.
    """

    part: type
    read: Callable[[Reader, CallReader, Any], Wait]
    write: Callable[[Writing, Any], str]
    taught: tuple[str, ...]
    listing: Callable[[Any, Sequence[ToolSpec]], str] | None = None


def refuse_writing(w: Writing, part: object) -> str:
    """Refuse to write a part that occurs only in shapes that are read.

    Raises:
        FormatError: always: the written shape of the format contains such a part.
    """
    raise FormatError(f"format {w.format.name!r} cannot be written: {type(part).__name__} is only read")


IN_JSON_STRINGS: Final = "Inside JSON strings, escape quotes, backslashes and line breaks."
STRINGS_AS_MEANT: Final = (
    "Write a string exactly as it is meant: no quotes around it, no escaping. Line breaks and indentation count."
)
OTHERS_AS_JSON: Final = "Write numbers, true, false, null, lists and objects as JSON."
