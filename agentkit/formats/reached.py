"""Where the reader of prose was at the end of a text that something interrupts. A value only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from agentkit.formats.other_json import OtherJson
from agentkit.formats.quoting import Quoting

if TYPE_CHECKING:
    from agentkit.formats.prosereader import ProseReader
    from agentkit.formats.reader import Wait


class Reached(NamedTuple):
    """Where the reader of a text was at its end, for the one of the text after an interruption: see `ProseReader`.

    `tail` is the end of the text, if that might have been read otherwise with what follows: it is read once more.
    """

    quoting: Quoting
    within: Callable[[ProseReader], Wait] | None
    silent: bool
    block: int | None
    blocked: bool
    other: OtherJson | None
    broken: bool
    tail: str
