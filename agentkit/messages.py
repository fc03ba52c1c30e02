"""The conversation as frozen values. Knows no provider, no format and no store; the only ids are those of calls.

A message's content is a tuple of parts in their original order, so that any provider's wire form and any
text format can be rendered from it without loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Final, Literal, Unpack

from agentkit.checks.message_values import EncodedContent, check_file, check_image, read_file, refuse_call, type_of
from agentkit.checks.spelling import ByAttribute, Nothing, refuse_unknown, takes
from agentkit.errors import ConfigError, ErrorCode, show_value
from agentkit.foreign import part_names
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
            refuse_unknown(type(self).__name__, unknown, ("text",), part_names.TEXT_PART)
        if not isinstance(text, str):
            raise ConfigError(f"{type(self).__name__}(…) expects a string, found {show_value(text)}")
        _set(self, "text", text)


@suggest_attributes
@dataclass(frozen=True, slots=True, init=False)
class MaterialPart(TextPart):
    """Text to describe, not to obey, such as a summary: in text mode it is quarantined like a result."""


@suggest_attributes
@takes(others=part_names.IMAGE_PART)
@dataclass(frozen=True, slots=True, repr=False)
class ImagePart(EncodedContent):
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
        check_image(self.data, self.media_type, self.url)

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


@suggest_attributes
@takes(others=part_names.FILE_PART)
@dataclass(frozen=True, slots=True, repr=False)
class FilePart(EncodedContent):
    """A document, an audio or a video of the user's, as bytes or as a URL. Each model takes some of them.

    >>> FilePart(b"%PDF-1.7 …", name="report.pdf").kind
    'document'

    Args:
        data: the file; None when `url` is given.
        media_type: MIME type of the file: `text/…`, `application/…`, `audio/…` or `video/…`; by default the one that
            belongs to the name or the URL, or `application/pdf` if none does.
        url: a URL that the provider can fetch; None when `data` is given.
        name: the file's name, which the model sees; may be empty.

    Raises:
        ValueError: neither or both of `data` and `url`, an image, or bytes that are not of their type.
    """

    data: bytes | None = None
    media_type: str = ""
    url: str | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.media_type == "":
            _set(self, "media_type", type_of(self.name) or type_of(self.url) or "application/pdf")
        check_file(self.data, self.media_type, self.url, self.name)

    @classmethod
    def from_path(cls, path: str | PathLike[str]) -> FilePart:
        """A file with its name, and the type that belongs to its name.

        Args:
            path: the file; it is read now.

        Raises:
            OSError: it cannot be read.
            ValueError: the name belongs to no type, or to an image.
        """
        return cls(*read_file(path))

    @property
    def kind(self) -> Literal["document", "audio", "video"]:
        """The kind of file, by its type."""
        first = self.media_type.partition("/")[0]
        return "audio" if first == "audio" else "video" if first == "video" else "document"


@suggest_attributes
@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """A model's thinking. `data` is the provider's own block (signature, encrypted item), sent back unchanged.

    Args:
        text: the readable thinking; empty when the provider sent only an encrypted block.
        provider: who wrote `data` and can read it again (`anthropic`, `responses`, `openai`, `gemini`, `bedrock`); None
            without `data`.
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
@takes(others=part_names.TOOL_CALL, such="ToolCall('', 'add', {'a': 1})")
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
            refuse_call(self.id, self.name, self.arguments)

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


UserPart = TextPart | ImagePart | FilePart
ResultContent = tuple[TextPart | ImagePart, ...]
UserContent = tuple[UserPart, ...]
AssistantPart = TextPart | ThinkingPart | ToolCall | MarkupPart | ProviderPart
AssistantContent = tuple[AssistantPart, ...]
MessagePart = AssistantPart | ImagePart | FilePart

_SAID: Final = (TextPart, ImagePart, FilePart)
_RETURNED: Final = (TextPart, ImagePart)
_WRITTEN: Final = (TextPart, ThinkingPart, ToolCall, MarkupPart, ProviderPart)
_ALL_SAID: Final = frozenset(_SAID).issuperset
_ALL_RETURNED: Final = frozenset(_RETURNED).issuperset
_ALL_WRITTEN: Final = frozenset(_WRITTEN).issuperset
_CHAT: Final = "agent.run({'role': 'user', 'content': […]})"


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
@takes(others=part_names.MESSAGE)
@dataclass(frozen=True, slots=True, init=False)
class UserMessage(ByAttribute):
    """A message of the user: text, images and files.

    >>> UserMessage("Hello").text
    'Hello'

    Args:
        content: a string, a part, or several of them in order.

    Raises:
        ConfigError: the content is of another type.
    """

    content: UserContent

    def __init__(self, content: str | UserPart | Iterable[str | UserPart]) -> None:
        fits = type(content) is tuple and _ALL_SAID(map(type, content))
        _set(self, "content", content if fits else _parts_of(content, _SAID, "UserMessage"))

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(p.text for p in self.content if isinstance(p, TextPart))


@suggest_attributes
@takes(others=part_names.MESSAGE)
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
@takes(others=part_names.MESSAGE, such="ToolMessage('call_1', 'add', '3')")
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
        if type(self.content) is not tuple or not _ALL_RETURNED(map(type, self.content)):
            _set(self, "content", _parts_of(self.content, _RETURNED, "ToolMessage"))

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(p.text for p in self.content if isinstance(p, TextPart))


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


@takes(others=part_names.USER)
def user(*content: str | UserPart) -> UserMessage:
    """A user message from text, images and files: `user("What is this?", ImagePart(data=png))`.

    Raises:
        ConfigError: an argument is none of these.
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
