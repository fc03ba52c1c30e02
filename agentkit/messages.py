"""The conversation as frozen values. Knows no provider, no format and no store: no ids but a call's own.

A message's content is a tuple of parts in the order in which they were said, so that any provider's wire form and any
text format can be rendered from it without loss.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.errors import ConfigError, ErrorCode


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text that a person, a model or a tool wrote."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image, by its bytes or by its address.

    Args:
        data: the encoded image (PNG, JPEG, …); None when `url` is given.
        media_type: MIME type of `data`.
        url: an address that the provider itself can fetch; None when `data` is given.
    """

    data: bytes | None = None
    media_type: str = "image/png"
    url: str | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.url is None):
            raise ValueError("ImagePart takes data=<bytes> or url=<address>, exactly one of them")

    @property
    def base64(self) -> str:
        """`data` in base64."""
        return base64.b64encode(self.data or b"").decode("ascii")

    @property
    def data_url(self) -> str:
        """The image as one address: `url`, or `data` as a data URL."""
        return self.url if self.url is not None else f"data:{self.media_type};base64,{self.base64}"


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """What a model thought. `data` is the provider's own block (signature, encrypted item), sent back to it unchanged.

    Args:
        text: the readable thinking; empty when the provider only gave an encrypted block.
        provider: who wrote `data` and may read it again (`anthropic`, `responses`, `openai`); None without `data`.
        data: the provider's block as JSON.
    """

    text: str
    provider: str | None = None
    data: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ProviderPart:
    """A block that only its provider understands, such as a server-side tool's call; kept and sent back unchanged.

    Args:
        provider: who wrote it and may read it again.
        data: the block as JSON.
        call_id: the id of the call that it says more about, as it stands in this conversation; None for a block of its
            own.
    """

    provider: str
    data: Mapping[str, Any]
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class MarkupPart:
    """Characters that belong to a text format and show nothing: wrappers and white space around calls, thinking tags.

    Sent back only in the same format, so that a model reads its own turn exactly as it wrote it.
    """

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One request to run a tool.

    Args:
        id: unique in its conversation; its result carries the same id.
        name: the function name, whatever tag the model used. Empty when the text was too damaged to tell.
        arguments: typed values by parameter name. Empty for a call that could not be read.
        format: the text format it was written in; None for a provider's native call.
        raw: the exact source: the characters of a text call, or the JSON text of a native call's arguments.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    format: str | None = None
    raw: str = ""


ResultContent = tuple[TextPart | ImagePart, ...]
UserContent = tuple[TextPart | ImagePart, ...]
AssistantContent = tuple[TextPart | ThinkingPart | ToolCall | MarkupPart | ProviderPart, ...]


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """Instructions from the application."""

    content: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the user said: text and images."""

    content: UserContent


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One response of a model, in the order in which it was written."""

    content: AssistantContent

    @property
    def text(self) -> str:
        """The visible text, without thinking, calls and markup."""
        return "".join(p.text for p in self.content if isinstance(p, TextPart))

    @property
    def thinking(self) -> str:
        """The readable thinking."""
        return "".join(p.text for p in self.content if isinstance(p, ThinkingPart))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order; each is answered by exactly one `ToolMessage`."""
        return tuple(p for p in self.content if isinstance(p, ToolCall))


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The answer to one call.

    Args:
        call_id: the id of the call it answers.
        name: the called tool's name.
        content: what the model reads: text and images.
        error: the code when the call failed; None when it succeeded.
    """

    call_id: str
    name: str
    content: ResultContent
    error: ErrorCode | None = None

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(p.text for p in self.content if isinstance(p, TextPart))


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def user(*content: str | TextPart | ImagePart) -> UserMessage:
    """A user message from text and images: `user("What is this?", ImagePart(data=png))`."""
    return UserMessage(tuple(TextPart(c) if isinstance(c, str) else c for c in content))


def messages_from(prompt: str | Message | Iterable[Message]) -> list[Message]:
    """A prompt in any of its accepted shapes, as a list of messages.

    Raises:
        ConfigError: it is something else.
    """
    if isinstance(prompt, str):
        return [user(prompt)]
    several = isinstance(prompt, Iterable) and not isinstance(prompt, (bytes, Mapping))
    messages: list[Any] = [*prompt] if several else [prompt]  # type: ignore[misc]
    for message in messages:
        if not isinstance(message, SystemMessage | UserMessage | AssistantMessage | ToolMessage):
            raise ConfigError(
                f"a prompt is text, a message or messages; found a {type(message).__name__}: {str(message)[:100]!r}; "
                "write user('…')"
            )
    return messages
