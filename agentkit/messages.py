"""The conversation as frozen values. Knows no provider, no format and no store: no ids but a call's own.

A message's content is a tuple of parts in the order in which they were said, so that any provider's wire form and any
text format can be rendered from it without loss.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Unpack

from agentkit.checks.spelling import ByAttribute, Nothing, refuse_unknown, takes
from agentkit.errors import ConfigError, ErrorCode
from agentkit.foreign import renamed
from agentkit.foreign.absent import explained
from agentkit.foreign.absent_imports import explained_module

_set = object.__setattr__


@explained
@dataclass(frozen=True, slots=True, init=False)
class TextPart:
    """Text that a person, a model or a tool wrote.

    Raises:
        ConfigError: it is something else.
    """

    text: str

    def __init__(self, text: str, **unknown: Unpack[Nothing]) -> None:  # `takes` would be half of what one costs
        if len(unknown):
            refuse_unknown("TextPart", unknown, ("text",), renamed.TEXT_PART)
        if not isinstance(text, str):
            raise ConfigError(f"TextPart(…) takes text, found {shown(text)}")
        _set(self, "text", text)


@explained
@takes(others=renamed.IMAGE_PART)
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
        wrong = _wrong_address(self.url) if self.data is None else _wrong_image(self.data, self.media_type)
        if wrong is not None:
            raise ValueError(wrong)

    @property
    def base64(self) -> str:
        """`data` in base64."""
        return base64.b64encode(self.data or b"").decode("ascii")

    @property
    def data_url(self) -> str:
        """The image as one address: `url`, or `data` as a data URL."""
        return self.url if self.url is not None else f"data:{self.media_type};base64,{self.base64}"


_MEDIA_TYPE: Final = r"image/[\w.+-]+"  # compiled when used: most programs that import this hold no image
_ADDRESS: Final = r"(?i)(?!data:)[a-z][\w.+-]*:\S|data:image/[\w.+-]+;base64,[A-Za-z0-9+/]"
_BASE64: Final = r"[A-Za-z0-9+/\s]{24,}={0,2}\s*"
_OPENED: Final = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
"""How files of a kind of image begin. Source: PNG 3rd edition, 5.2; JPEG, B.1.1.3; GIF 89a, 17."""
_FILE: Final = "for a file write ImagePart(Path('chart.png').read_bytes())"


def _wrong_image(data: Any, media_type: Any) -> str | None:
    """What is wrong with the bytes of an image, and what to write; None where nothing is."""
    if not isinstance(data, bytes):
        hint = f"{_FILE}, for an address ImagePart(url='https://…')"
        if isinstance(data, str) and (data.startswith("data:") or "://" in data[:20]):
            hint = "an address is given as url: ImagePart(url='…')"
        elif isinstance(data, str) and re.fullmatch(_BASE64, data):
            hint = "base64 is decoded first: ImagePart(base64.b64decode(…))"
        elif isinstance(data, bytearray | memoryview):
            hint = "write ImagePart(bytes(…))"
        return f"ImagePart(data=…) takes the image's bytes, found {shown(data)}: {hint}"
    if not data:
        return f"ImagePart(data=b'') holds no image: {_FILE}"
    if not isinstance(media_type, str) or not re.fullmatch(_MEDIA_TYPE, media_type):
        return f"ImagePart(media_type=…) takes a type such as 'image/png', found {shown(media_type)}"
    kind = next((kind for head, kind in _OPENED if data.startswith(head)), media_type)
    if kind != media_type:
        return f"ImagePart(media_type={media_type!r}): the bytes are of another kind; write media_type={kind!r}"
    return None


def _wrong_address(url: Any) -> str | None:
    """The same of an image's address."""
    if isinstance(url, str) and re.match(_ADDRESS, url):
        return None
    return (
        f"ImagePart(url=…) takes an address that the provider can fetch ('https://…'), or 'data:image/png;base64,…', "
        f"found {shown(url)}: {_FILE}"
    )


@explained
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


@explained
@takes(others=renamed.TOOL_CALL, such="ToolCall('', 'add', {'a': 1})")
@dataclass(frozen=True, slots=True)
class ToolCall(ByAttribute):
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

    def __post_init__(self) -> None:
        if not (type(self.id) is type(self.name) is str and type(self.arguments) is dict):
            _refuse_call(self.id, self.name, self.arguments)


ResultContent = tuple[TextPart | ImagePart, ...]
UserContent = tuple[TextPart | ImagePart, ...]
AssistantPart = TextPart | ThinkingPart | ToolCall | MarkupPart | ProviderPart
AssistantContent = tuple[AssistantPart, ...]
MessagePart = AssistantPart | ImagePart

_SAID: Final = (TextPart, ImagePart)
_WRITTEN: Final = (TextPart, ThinkingPart, ToolCall, MarkupPart, ProviderPart)
_ALL_SAID: Final = frozenset(_SAID).issuperset
_ALL_WRITTEN: Final = frozenset(_WRITTEN).issuperset
_CHAT: Final = "agent.run({'role': 'user', 'content': […]})"


def shown(value: Any) -> str:
    """A wrong value in an error, with its type."""
    return f"{type(value).__name__} {value!r:.100}"


def _refuse_call(id: Any, name: Any, arguments: Any) -> None:
    """Refuse arguments that stand in each other's places."""
    if isinstance(arguments, str):
        raise ConfigError(
            f"ToolCall(id, name, arguments): arguments are values by name, found {shown(arguments)}; of JSON text, "
            "give json.loads(arguments)"
        )
    if not isinstance(id, str) or not isinstance(name, str):
        raise ConfigError(
            f"ToolCall(id, name, arguments): id and name are text, found {id!r:.60} and {shown(name)}; an id that does "
            "not matter is empty: ToolCall('', 'add', {'a': 1})"
        )


def _parts_of(content: Any, kinds: tuple[type, ...], owner: str) -> tuple[Any, ...]:
    """What a message is made of, as parts; text becomes a `TextPart`.

    Raises:
        ConfigError: one of them is no part of such a message.
    """
    several = isinstance(content, Iterable) and not isinstance(content, (str, bytes, Mapping))
    parts = tuple(TextPart(part) if isinstance(part, str) else part for part in (content if several else (content,)))
    for part in parts:
        if not isinstance(part, kinds):
            names = ", ".join(kind.__name__ for kind in kinds)
            hint = f": a message as OpenAI has it is a prompt by itself, {_CHAT}" if isinstance(part, Mapping) else ""
            raise ConfigError(f"{owner}(…) takes text and parts ({names}), found {shown(part)}{hint}")
    return parts


@explained
@dataclass(frozen=True, slots=True)
class SystemMessage(ByAttribute):
    """Instructions from the application."""

    content: str

    def __post_init__(self) -> None:
        if not isinstance(self.content, str):
            raise ConfigError(f"SystemMessage(…) takes text, found {shown(self.content)}")


@explained
@takes(others=renamed.MESSAGE)
@dataclass(frozen=True, slots=True, init=False)
class UserMessage(ByAttribute):
    """What the user said: text and images.

    >>> UserMessage("Hello").text
    'Hello'

    Args:
        content: text, a part, or several of them in the order in which they are said.

    Raises:
        ConfigError: it is something else.
    """

    content: UserContent

    def __init__(self, content: str | TextPart | ImagePart | Iterable[str | TextPart | ImagePart]) -> None:
        fits = type(content) is tuple and _ALL_SAID(map(type, content))
        _set(self, "content", content if fits else _parts_of(content, _SAID, "UserMessage"))

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(p.text for p in self.content if isinstance(p, TextPart))


@explained
@takes(others=renamed.MESSAGE)
@dataclass(frozen=True, slots=True, init=False)
class AssistantMessage(ByAttribute):
    """One response of a model, in the order in which it was written.

    Args:
        content: text, a part, or several of them.

    Raises:
        ConfigError: it is something else.
    """

    content: AssistantContent

    def __init__(self, content: str | AssistantPart | Iterable[str | AssistantPart]) -> None:
        fits = type(content) is tuple and _ALL_WRITTEN(map(type, content))
        _set(self, "content", content if fits else _parts_of(content, _WRITTEN, "AssistantMessage"))

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


@explained
@takes(others=renamed.MESSAGE, such="ToolMessage('call_1', 'add', '3')")
@dataclass(frozen=True, slots=True)
class ToolMessage(ByAttribute):
    """The answer to one call.

    Args:
        call_id: the id of the call it answers.
        name: the called tool's name.
        content: what the model reads: text and images; text alone is taken as one part.
        error: the code when the call failed; None when it succeeded.
    """

    call_id: str
    name: str
    content: ResultContent
    error: ErrorCode | None = None

    def __post_init__(self) -> None:
        if type(self.content) is not tuple or not _ALL_SAID(map(type, self.content)):
            _set(self, "content", _parts_of(self.content, _SAID, "ToolMessage"))

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(p.text for p in self.content if isinstance(p, TextPart))


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


@takes(others=renamed.USER)
def user(*content: str | TextPart | ImagePart) -> UserMessage:
    """A user message from text and images: `user("What is this?", ImagePart(data=png))`.

    Raises:
        ConfigError: one of them is something else.
    """
    given: tuple[Any, ...] = content
    for one in given:
        if isinstance(one, list | tuple):
            raise ConfigError(
                f"user(…) takes text and parts one after the other, found {shown(one)}: write user(*parts), or "
                "UserMessage(parts)"
            )
    return UserMessage(content)


explained_module(__name__)
