"""The files that an API takes, and the refusal of all others before anything is sent. Knows no API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from agentkit.checks.unicode import clean
from agentkit.errors import ConfigError
from agentkit.messages import FilePart, Message, TextPart, UserMessage

TEXTS: Final = ("text/*", "application/json")
"""The types of documents that are text in UTF-8: an API without documents is sent the text."""


class FilesTaken(NamedTuple):
    """The files that an API takes, apart from images.

    Args:
        inline: the types that it takes as bytes; `audio/*` stands for any audio.
        urls: the types that it fetches itself.
    """

    inline: Sequence[str]
    urls: Sequence[str] = ()

    def __str__(self) -> str:
        kinds = [f"{kind} ({', '.join(types)})" for kind, types in _by_kind(self.inline).items()]
        by_url = f"; by URL {', '.join(self.urls)}" if self.urls else ""
        return " and ".join(filter(None, (", ".join(kinds), "images"))) + by_url


def check_files(model: str, messages: Iterable[Message], taken: FilesTaken) -> None:
    """Refuse a conversation with a file that the API does not take.

    Args:
        model: the model string.
        messages: the conversation.
        taken: what its API takes.

    Raises:
        ConfigError: it names the kind and the type, and what the API takes.
    """
    for message in messages:
        for part in message.content if isinstance(message, UserMessage) else ():
            if isinstance(part, FilePart) and not _fits(part, taken.inline if part.url is None else taken.urls):
                how = "" if part.url is None else " by URL"
                raise ConfigError(f"{model}: takes no {part.kind}{how} ({part.media_type}); it takes {taken}")


def is_text(part: FilePart) -> bool:
    """Return whether a file is a text whose bytes are known."""
    return part.data is not None and _fits(part, TEXTS)


def text_of_file(part: FilePart) -> str:
    """The text of a text document; bytes that are not UTF-8 are replaced."""
    return (part.data or b"").decode("utf-8-sig", "replace")


def as_text(part: FilePart) -> TextPart:
    """A text document as text for an API that has no documents."""
    return TextPart(f"{name_of(part)}:\n\n{text_of_file(part)}")


def name_of(part: FilePart) -> str:
    """The name of a file, or one that fits its type: APIs require one."""
    from mimetypes import guess_extension

    return clean(part.name) or f"{part.kind}{guess_extension(part.media_type) or ''}"


def _fits(part: FilePart, types: Iterable[str]) -> bool:
    return part.media_type in types or f"{part.media_type.partition('/')[0]}/*" in types


def _by_kind(types: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in types:
        found.setdefault({"audio": "audio", "video": "video"}.get(one.partition("/")[0], "documents"), []).append(one)
    return found
