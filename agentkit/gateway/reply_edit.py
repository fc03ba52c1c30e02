"""The interface of what differs between the wires when calls in a reply's text become native. Pure values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from agentkit.events import Usage
from agentkit.models.wire import WireEvent

ContentKind = Literal["", "opens", "thinking", "block", "call", "other", "end"]
"""`opens`: a text begins, which nobody needs to see before its first visible character. `thinking`: more of it.
`block`: the provider's own block. `call`: a native call. `other`: content that cannot be read, or an error. `end`: the
reply is complete, or was cut at a limit."""


class EventContent(NamedTuple):
    """The content of one event.

    Attributes:
        text: visible text.
        kind: what else it is; only `end` comes after the text.
        finish: the upstream's word for the end; empty if it gave none.
        block: the provider's own block, which the text after it may quote.
    """

    text: str = ""
    kind: ContentKind = ""
    finish: str = ""
    block: Mapping[str, Any] | None = None


NOTHING = EventContent()


class RecoveredCall(NamedTuple):
    """A call that was found in the text.

    Attributes:
        id: unique in the conversation.
        name: the tool's.
        arguments: JSON text of an object.
    """

    id: str
    name: str
    arguments: str


TextPiece = str | RecoveredCall
"""A piece of a text: visible text, or a call in its place."""


def divide(pieces: Sequence[TextPiece]) -> tuple[str, list[RecoveredCall]]:
    """Return the text of pieces, joined, and their calls."""
    return "".join(p for p in pieces if isinstance(p, str)), [p for p in pieces if not isinstance(p, str)]


class EditedEvent(NamedTuple):
    """An event that was held back, and what is left of its text.

    Attributes:
        raw: its bytes.
        event: what it says; None if that cannot be read.
        text: its text.
        pieces: what replaces its text, in order.
    """

    raw: bytes
    event: WireEvent | None
    text: str
    pieces: Sequence[TextPiece]


class ReplyEdit(Protocol):
    """Reads and edits one reply in one wire."""

    def read(self, event: WireEvent) -> EventContent:
        """Read one event of a stream; usage and finish are kept."""
        ...

    def replace(self, events: Sequence[EditedEvent]) -> bytes:
        """Return what replaces the events that were held back; the last one ends the reply, which now ends in calls."""
        ...

    def after(self, raw: bytes, event: WireEvent) -> bytes:
        """Return what replaces an event after the end."""
        ...

    def parts(self, body: Mapping[str, Any]) -> Iterable[EventContent]:
        """Read a whole reply: its parts in order, and its end."""
        ...

    def edit(self, body: MutableMapping[str, Any], pieces: Sequence[Sequence[TextPiece]]) -> None:
        """Replace the texts of a whole reply, in place: there are pieces for each of `parts`."""
        ...

    @property
    def usage(self) -> Usage | None:
        """Return the tokens that were reported; None if none were."""
        ...

    @property
    def finish(self) -> str:
        """Return the upstream's word for the end; empty before it."""
        ...
