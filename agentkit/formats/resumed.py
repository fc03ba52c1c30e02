"""What a parser must remember to go on where a reply was cut off: the reader's state that `Parser.resume` sets.

Knows the reader and events; the engine stands on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.events import CallEnd, CallError, Markup, SourceEvent
from agentkit.formats.format import Limits, Section, Tag
from agentkit.formats.reader import Reader


class Resuming(Reader):
    """A reader that may go on where another one's text ended.

    `given` holds the calls that were complete when the text seemed to have ended, and how many characters each took;
    `beginnings`, how the cut call would begin if it were written again; `held`, what arrived while that is not told.
    """

    __slots__ = ("beginnings", "given", "held")

    def __init__(self, limits: Limits, repairs: frozenset[str]) -> None:
        super().__init__(limits, repairs)
        self.given: dict[int, int] = {}
        self.beginnings: tuple[str, ...] = ()
        self.held = ""

    def not_given(self, events: Iterable[SourceEvent]) -> list[SourceEvent]:
        """The events, but of a call that was given before only the text that belongs to it as well."""
        out: list[SourceEvent] = []
        for event in events:
            if not isinstance(event, CallEnd | CallError) or event.index not in self.given:
                out.append(event)
            elif rest := event.call.raw[self.given[event.index] :]:
                out.append(Markup(rest))
        return out

    def expect_again(self, section: Section | None) -> None:
        """The open call may begin again: as it did, up to its name's end, or by the section that it stands in.

        White space does not count, which a model need not repeat.
        """
        whole = self.raw() + self.buf[self.at :]
        begun = whole if self.named < self.mark else whole[: self.named - self.mark]
        edge = section.open if section is not None else ""
        texts = (begun, f"<{edge.name}>" if isinstance(edge, Tag) else edge)
        self.beginnings = tuple(squeezed for text in texts if (squeezed := "".join(text.split())))

    def begins_again(self, text: str) -> bool | None:
        """Whether what has arrived begins the call again; None, with the text held, while more must tell."""
        self.held += text
        squeezed = "".join(self.held.split())
        if squeezed.startswith(self.beginnings):
            return True
        return None if any(begun.startswith(squeezed) for begun in self.beginnings) else False

    def release(self) -> str:
        """What was held; from here on nothing is."""
        text, self.held, self.beginnings = self.held, "", ()
        return text
