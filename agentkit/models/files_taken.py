"""The images and files that an API takes, and what becomes of all others. Knows no API.

What a user has just said with such a file is refused before anything is sent. Before that, in what another model has
answered, and in tools' results, the file is named in words: a conversation can be moved to any model.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from mimetypes import guess_type
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentkit.checks.keys import shown_url
from agentkit.checks.unicode import clean
from agentkit.errors import ConfigError
from agentkit.messages import AssistantMessage, FilePart, ImagePart, Message, TextPart, ToolMessage, UserMessage

if TYPE_CHECKING:
    from agentkit.models.base import Model, ModelRequest

_LOG: Final = logging.getLogger("agentkit.models")

TEXTS: Final = ("text/*", "application/json")
"""The types of documents that are text (`text_in`): an API without documents is sent the text."""


class FileRefused(ConfigError):
    """A model does not take an image or a file; another model may."""


class FilesTaken(NamedTuple):
    """The images and files that an API takes.

    Args:
        inline: the types of files that it takes as bytes; `audio/*` stands for any audio.
        urls: the types of files that it fetches itself.
        images: the types of images.
        scheme: how all URLs begin that it fetches.
    """

    inline: Sequence[str]
    urls: Sequence[str] = ()
    images: Sequence[str] = ("image/*",)
    scheme: str = ""

    def __str__(self) -> str:
        kinds = [f"{kind} ({', '.join(types)})" for kind, types in _by_kind(self.inline).items()]
        by_url = f"; by URL {', '.join(self.urls)}" if self.urls and self.urls != self.inline else ""
        return " and ".join(filter(None, (", ".join(kinds), "images"))) + by_url

    def refusal(self, part: ImagePart | FilePart) -> str:
        """Say why the API does not take a part; empty if it does."""
        url = None if part.url is None or part.url.startswith("data:") else part.url
        if url is not None and not url.startswith(self.scheme):
            return f"takes no URL but {self.scheme}…, found {shown_url(url)!r}; pass the bytes as data="
        if isinstance(part, ImagePart):
            kind, wanted = image_type(part), ", ".join(self.images)
            return "" if _is_of(kind, self.images) else f"takes no image ({kind}); it takes {wanted}"
        if _is_of(part.media_type, self.inline if url is None else self.urls):
            return ""
        return f"takes no {part.kind}{'' if url is None else ' by URL'} ({part.media_type}); it takes {self}"


def check_files(model: str, messages: Iterable[Message], taken: FilesTaken) -> None:
    """Refuse a conversation with a file of a user's that the API does not take.

    Args:
        model: the model string.
        messages: the conversation.
        taken: what its API takes.

    Raises:
        ConfigError: it names the kind and the type, or the URL, and what the API takes.
    """
    for message in messages:
        for part in message.content if isinstance(message, UserMessage) else ():
            if not isinstance(part, TextPart):
                check_file(model, part, taken)


def check_file(model: str, part: ImagePart | FilePart, taken: FilesTaken) -> None:
    """Refuse a file that the API does not take; see `check_files`."""
    if reason := taken.refusal(part):
        raise FileRefused(f"{model}: {reason}")


def fit_files(model: str, request: ModelRequest, taken: FilesTaken) -> Sequence[Message]:
    """A conversation with what the API takes: any other file is named in words, unless the user has just sent it.

    Raises:
        ConfigError: the user's newest message, which no model has answered, has such a file; see `check_files`.
    """
    check_files(model, _new(request.messages), taken)

    def fitted(message: Message) -> Message:
        files = message.content if isinstance(message, UserMessage | ToolMessage) else ()
        if not any(taken.refusal(part) for part in files if not isinstance(part, TextPart)):
            return message
        return request.rendered.once(model, message, lambda: _named(model, message, taken))

    return list(map(fitted, request.messages))


def _new(messages: Sequence[Message]) -> Sequence[Message]:
    """The user's newest message, if no model has answered it."""
    answered = max((at for at, one in enumerate(messages) if isinstance(one, AssistantMessage)), default=0)
    return [one for one in messages[answered:] if isinstance(one, UserMessage)][-1:]


def _named(model: str, message: Any, taken: FilesTaken) -> Any:
    """A message in which the files are named that the API does not take."""
    content = [
        _name(part) if not isinstance(part, TextPart) and taken.refusal(part) else part for part in message.content
    ]
    names = ", ".join(new.text for new, old in zip(content, message.content, strict=True) if new is not old)
    _LOG.warning("%s does not take a file, which is named in words: %s", model, names)
    return replace(message, content=tuple(content))


def _name(part: ImagePart | FilePart) -> TextPart:
    """A file that is not sent, in words."""
    kind, name = ("image", "") if isinstance(part, ImagePart) else (part.kind, part.name)
    what = name or (shown_url(part.url) if part.url and not part.url.startswith("data:") else part.media_type)
    return TextPart(f"[{kind}, not shown to you: {what}]")


def check_model_files(model: Model, messages: Sequence[Message]) -> None:
    """Refuse what `fit_files` refuses before it is stored, if the model says what it takes (`model.files`).

    A chain refuses what all its members refuse.
    """
    inner = getattr(model, "inner", model)  # of text calling
    members: Sequence[Model] = getattr(inner, "models", ())
    for member in members:
        try:
            return check_model_files(member, messages)
        except FileRefused:
            if member is members[-1]:
                raise
    if (taken := getattr(inner, "files", None)) is not None:
        check_files(model.name, _new(messages), taken)


def image_type(image: ImagePart) -> str:
    """The type of an image; that of its URL if that shows one."""
    return image.media_type if image.url is None else guess_type(image.url)[0] or image.media_type


def name_of(part: FilePart) -> str:
    """The name of a file, or one that fits its type: APIs require one."""
    from mimetypes import guess_extension

    return clean(part.name) or f"{part.kind}{guess_extension(part.media_type) or ''}"


def _is_of(kind: str, types: Iterable[str]) -> bool:
    return kind in types or f"{kind.partition('/')[0]}/*" in types


def _by_kind(types: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in types:
        found.setdefault({"audio": "audio", "video": "video"}.get(one.partition("/")[0], "documents"), []).append(one)
    return found
