"""The reader of calls in text, as the processor sees it. `formats.Parser` is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from agentkit.events import SourceEvent


class TextReader(Protocol):
    """Text in, events out; see `formats.Parser`."""

    def feed(self, text: str) -> Sequence[SourceEvent]:
        """The events that this text completes."""
        ...

    def close(self) -> Sequence[SourceEvent]:
        """The events that the end of the text completes."""
        ...


NewReader = Callable[[bool, TextReader | None], TextReader]
"""Creates one; called with whether it reads the very beginning of a response, and with the closed one that read the
text before, if something other than text came in between."""
