"""The conversation as frozen values. Knows no provider, no format and no store; the only ids are those of calls.

A message's content is a tuple of parts in their original order, so that any provider's wire form and any
text format can be rendered from it without loss.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Final, Unpack

from agentkit.checks.spelling import ByAttribute, Nothing, refuse_unknown, takes
from agentkit.errors import ConfigError, ErrorCode
from agentkit.foreign import argument_names
from agentkit.foreign.absent import suggest_attributes
from agentkit.foreign.absent_imports import explained_module

_set = object.__setattr__


@suggest_attributes
@dataclass(frozen=True, slots=True, init=False)
class TextPart:
    """Text that a person, a model or a tool wrote.

    Raises:
        ConfigError: the content is of another type.
    """

    text: str

    def __init__(
        self, text: str, **unknown: Unpack[Nothing]
    ) -> None:  # `takes` would double the cost of constructing one
        if len(unknown):
            refuse_unknown(type(self).__name__, unknown, ("text",), argument_names.TEXT_PART)
        if not isinstance(text, str):
            raise ConfigError(f"{type(self).__name__}(…) expects a string, found {show_value(text)}")
        _set(self, "text", text)


@suggest_attributes
@dataclass(frozen=True, slots=True, init=False)
class MaterialPart(TextPart):
    """Text to describe, not to obey, such as a summary: in text mode it is quarantined like a result."""


@suggest_attributes
@takes(others=argument_names.IMAGE_PART)
@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image, as bytes or as a URL.

    Args:
        data: the encoded image (PNG, JPEG, …); None when `url` is given.
        media_type: MIME type of `data`.
        url: a URL that the provider can fetch; None when `data` is given.
    """

    data: bytes | None = None
    media_type: str = "image/png"
    url: str | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.url is None):
            raise ValueError("ImagePart takes either data=<bytes> or url=<URL>")
        wrong = _wrong_address(self.url) if self.data is None else _wrong_image(self.data, self.media_type)
        if wrong is not None:
            raise ValueError(wrong)

    @property
    def fault(self) -> str | None:
        """Why a provider cannot read `data`, in words for a model; None for a URL, and if no fault was found.

        A provider refuses the whole conversation because of an image that is damaged or too large, so a tool that
        gets images from elsewhere should return a note instead. Headers and structure are read, no pixels.
        """
        from agentkit.checks.image_files import fault

        return None if self.data is None else fault(self.data, self.media_type)

    @property
    def repaired_image(self) -> ImagePart:
        """The image without additional parts of its file that are damaged and that no picture needs; else itself.

        A browser shows a PNG whose colour profile has a wrong checksum; `fault` names it, because some readers refuse
        the file.
        """
        from agentkit.checks.image_files import without_damaged_extras

        if self.data is None or (data := without_damaged_extras(self.data)) == self.data:
            return self
        return ImagePart(data, self.media_type)

    @property
    def base64(self) -> str:
        """`data` in base64."""
        return base64.b64encode(self.data or b"").decode("ascii")

    @property
    def data_url(self) -> str:
        """The image as a URL: `url` itself, or `data` as a data URL."""
        return self.url if self.url is not None else f"data:{self.media_type};base64,{self.base64}"


_MEDIA_TYPE: Final = r"image/[\w.+-]+"  # compiled on first use: most programs that import this use no images
_ADDRESS: Final = r"(?i)(?!data:)[a-z][\w.+-]*:\S|data:image/[\w.+-]+;base64,[A-Za-z0-9+/]"
_BASE64: Final = r"[A-Za-z0-9+/\s]{24,}={0,2}\s*"
_OPENED: Final = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
"""The first bytes of each kind of image file. Source: PNG 3rd edition, 5.2; JPEG, B.1.1.3; GIF 89a, 17."""
_FILE: Final = "for a file write ImagePart(Path('chart.png').read_bytes())"


def _wrong_image(data: Any, media_type: Any) -> str | None:
    """Return the fault of an image's bytes, and what to write instead; None if they are valid."""
    if not isinstance(data, bytes):
        hint = f"{_FILE}, for a URL ImagePart(url='https://…')"
        if isinstance(data, str) and (data.startswith("data:") or "://" in data[:20]):
            hint = "pass a URL as url: ImagePart(url='…')"
        elif isinstance(data, str) and re.fullmatch(_BASE64, data):
            hint = "decode base64 first: ImagePart(base64.b64decode(…))"
        elif isinstance(data, bytearray | memoryview):
            hint = "write ImagePart(bytes(…))"
        return f"ImagePart(data=…) expects the image's bytes, found {show_value(data)}: {hint}"
    if not data:
        return f"ImagePart(data=b'') is empty: {_FILE}"
    if not isinstance(media_type, str) or not re.fullmatch(_MEDIA_TYPE, media_type):
        return f"ImagePart(media_type=…) expects a type such as 'image/png', found {show_value(media_type)}"
    kind = next((kind for head, kind in _OPENED if data.startswith(head)), media_type)
    if kind != media_type:
        return f"ImagePart(media_type={media_type!r}): the bytes are of a different type; write media_type={kind!r}"
    return None


def _wrong_address(url: Any) -> str | None:
    if isinstance(url, str) and re.match(_ADDRESS, url):
        return None
    return (
        f"ImagePart(url=…) expects a URL that the provider can fetch ('https://…'), or 'data:image/png;base64,…', "
        f"found {show_value(url)}: {_FILE}"
    )


@suggest_attributes
@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """A model's thinking. `data` is the provider's own block (signature, encrypted item), sent back unchanged.

    Args:
        text: the readable thinking; empty when the provider sent only an encrypted block.
        provider: who wrote `data` and can read it again (`anthropic`, `responses`, `openai`); None without `data`.
        data: the provider's block as JSON.
    """

    text: str
    provider: str | None = None
    data: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ProviderPart:
    """A block that only its provider understands, such as a server-side tool's call; kept and sent back unchanged.

    Args:
        provider: who wrote it and can read it again.
        data: the block as JSON.
        call_id: the id, in this conversation, of the call that the block belongs to; None for an independent block.
    """

    provider: str
    data: Mapping[str, Any]
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class MarkupPart:
    """Characters of a text format that are not displayed: wrappers and white space around calls, thinking tags.

    They are sent back with the text that they were read from: a model reads its own turn exactly as it wrote it.
    """

    text: str


@suggest_attributes
@takes(others=argument_names.TOOL_CALL, such="ToolCall('', 'add', {'a': 1})")
@dataclass(frozen=True, slots=True)
class ToolCall(ByAttribute):
    """One request to run a tool.

    Args:
        id: unique in its conversation; its result carries the same id.
        name: the function name, even if the model used a tag. Empty when the text was too damaged to identify it.
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

    def copy(self) -> ToolCall:
        """Return a copy of the call with its own arguments: a change in them changes no other call.

        Returns the call itself if they are nested too deeply to be copied: no tool accepts such arguments.
        """
        try:
            return replace(self, arguments=deepcopy(self.arguments))
        except RecursionError:
            return self


_put_id, _put_name, _put_arguments, _put_format, _put_raw = (
    ToolCall.__dict__[name].__set__ for name in ("id", "name", "arguments", "format", "raw")
)


def call_as_read(id: str, name: str, arguments: Mapping[str, Any], format: str | None, raw: str) -> ToolCall:
    """`ToolCall(id, name, arguments, format, raw)` for a call that was just read from a text, in a third of the time.

    Most of the time to create a frozen value goes into checking arguments, which come from no person here.
    """
    call = object.__new__(ToolCall)
    _put_id(call, id)
    _put_name(call, name)
    _put_arguments(call, arguments)
    _put_format(call, format)
    _put_raw(call, raw)
    return call


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


def show_value(value: Any) -> str:
    """A wrong value for an error message, with its type."""
    return f"{type(value).__name__} {value!r:.100}"


def _refuse_call(id: Any, name: Any, arguments: Any) -> None:
    """Refuse arguments passed in the wrong order."""
    if isinstance(arguments, str):
        raise ConfigError(
            f"ToolCall(id, name, arguments): arguments is a mapping of names to values, found {show_value(arguments)}; "
            "for JSON text, pass json.loads(arguments)"
        )
    if not isinstance(id, str) or not isinstance(name, str):
        raise ConfigError(
            f"ToolCall(id, name, arguments): id and name are strings, found {id!r:.60} and {show_value(name)}; the id "
            "may be empty: ToolCall('', 'add', {'a': 1})"
        )


def _parts_of(content: Any, kinds: tuple[type, ...], owner: str) -> tuple[Any, ...]:
    """The content of a message as parts; a string becomes a `TextPart`.

    Raises:
        ConfigError: the message cannot contain one of them.
    """
    several = isinstance(content, Iterable) and not isinstance(content, (str, bytes, Mapping))
    parts = tuple(TextPart(part) if isinstance(part, str) else part for part in (content if several else (content,)))
    for part in parts:
        if not isinstance(part, kinds):
            names = ", ".join(kind.__name__ for kind in kinds)
            hint = (
                f": a message in OpenAI's form is passed to the run directly, {_CHAT}"
                if isinstance(part, Mapping)
                else ""
            )
            raise ConfigError(f"{owner}(…) expects strings and parts ({names}), found {show_value(part)}{hint}")
    return parts


@suggest_attributes
@dataclass(frozen=True, slots=True)
class SystemMessage(ByAttribute):
    """Instructions from the application."""

    content: str

    def __post_init__(self) -> None:
        if not isinstance(self.content, str):
            raise ConfigError(f"SystemMessage(…) expects a string, found {show_value(self.content)}")


@suggest_attributes
@takes(others=argument_names.MESSAGE)
@dataclass(frozen=True, slots=True, init=False)
class UserMessage(ByAttribute):
    """A message of the user: text and images.

    >>> UserMessage("Hello").text
    'Hello'

    Args:
        content: a string, a part, or several of them in order.

    Raises:
        ConfigError: the content is of another type.
    """

    content: UserContent

    def __init__(self, content: str | TextPart | ImagePart | Iterable[str | TextPart | ImagePart]) -> None:
        fits = type(content) is tuple and _ALL_SAID(map(type, content))
        _set(self, "content", content if fits else _parts_of(content, _SAID, "UserMessage"))

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(p.text for p in self.content if isinstance(p, TextPart))


@suggest_attributes
@takes(others=argument_names.MESSAGE)
@dataclass(frozen=True, slots=True, init=False)
class AssistantMessage(ByAttribute):
    """One response of a model, in the order in which it was written.

    Args:
        content: a string, a part, or several of them.

    Raises:
        ConfigError: the content is of another type.
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


@suggest_attributes
@takes(others=argument_names.MESSAGE, such="ToolMessage('call_1', 'add', '3')")
@dataclass(frozen=True, slots=True)
class ToolMessage(ByAttribute):
    """The answer to one call.

    Args:
        call_id: the id of the call it answers.
        name: the called tool's name.
        content: text and images for the model; a string becomes one part.
        error: the error code if the call failed; None when it succeeded.
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


@takes(others=argument_names.USER)
def user(*content: str | TextPart | ImagePart) -> UserMessage:
    """A user message from text and images: `user("What is this?", ImagePart(data=png))`.

    Raises:
        ConfigError: an argument is neither.
    """
    given: tuple[Any, ...] = content
    for one in given:
        if isinstance(one, list | tuple):
            raise ConfigError(
                f"user(…) expects strings and parts as separate arguments, found {show_value(one)}: write "
                "user(*parts), or UserMessage(parts)"
            )
    return UserMessage(content)


_put_text, _put_parts = TextPart.__dict__["text"].__set__, AssistantMessage.__dict__["content"].__set__
_put_call_id, _put_tool, _put_content, _put_error = (
    ToolMessage.__dict__[name].__set__ for name in ("call_id", "name", "content", "error")
)


def text_as_made(text: str) -> TextPart:
    """`TextPart(text)` for a string that is certainly one; see `call_as_read`."""
    part = object.__new__(TextPart)
    _put_text(part, text)
    return part


def response_as_read(content: AssistantContent) -> AssistantMessage:
    """`AssistantMessage(content)` for parts that were just read."""
    message = object.__new__(AssistantMessage)
    _put_parts(message, content)
    return message


def answer_as_made(call_id: str, name: str, content: ResultContent, error: ErrorCode | None) -> ToolMessage:
    """`ToolMessage(call_id, name, content, error)` for the answer to a call that was just run."""
    message = object.__new__(ToolMessage)
    _put_call_id(message, call_id)
    _put_tool(message, name)
    _put_content(message, content)
    _put_error(message, error)
    return message


explained_module(__name__)
