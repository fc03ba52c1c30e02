"""A prompt, in any of its accepted forms, as messages; and messages as dicts. Knows no SDK, no registry and no I/O.

Strings, parts, messages, and OpenAI's chat messages as dicts. The content of a dict's field is kept or refused, never
dropped: only empty fields (None, an empty list) are ignored. Source of the dicts' format: OpenAI's API reference,
"Create chat completion", messages.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError, show_value
from agentkit.foreign import part_names
from agentkit.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    UserPart,
    user,
)

Prompt = Message | UserPart | Mapping[str, Any] | str
"""One element of a prompt: see `messages_from`."""

_NO_CALLS: Final[Mapping[str, str]] = {}


def messages_from(prompt: Prompt | Iterable[Prompt], *, calls: Mapping[str, str] = _NO_CALLS) -> list[Message]:
    """A prompt, in any of its accepted forms, as a list of messages.

    >>> messages_from({"role": "user", "content": "Hello"}) == messages_from("Hello") == [user("Hello")]
    True

    Args:
        prompt: a string, a `TextPart`, `ImagePart` or `FilePart`, a message, a dict in the format of OpenAI's chat API
            (any role, with tool calls and results), or a list of these, oldest first. Consecutive strings and parts are
            one user message.
        calls: the tool names of earlier calls, by id, for results among the dicts.

    Raises:
        ConfigError: it is something else, a dict contains what would be lost, or a user message is empty.
    """
    several = isinstance(prompt, Iterable) and not isinstance(prompt, (str, bytes, Mapping))
    items: list[Any] = [*prompt] if several else [prompt]  # type: ignore[misc]
    reader = ChatReader(calls)
    messages: list[Message] = []
    spoken: list[Any] = []  # consecutive strings and parts
    for at, one in enumerate(items):
        if isinstance(one, (str, TextPart, ImagePart, FilePart)):
            spoken.append(one)
            continue
        if spoken:
            messages.append(_not_empty(user(*spoken), prompt))
            spoken = []
        if isinstance(one, Mapping):
            messages.append(_not_empty(reader.read(one, f"message {at}"), one))
        elif isinstance(one, SystemMessage | UserMessage | AssistantMessage | ToolMessage):
            messages.append(_not_empty(one, one))
        else:
            from agentkit.foreign.imports import FOREIGN

            hint = FOREIGN.get(type(one).__name__, "write user('…'), or FilePart.from_path('…') for a file")
            if isinstance(one, tuple | list) or hasattr(one, "content"):
                hint = "write {'role': 'user', 'content': '…'}, or user('…')"
            elif hasattr(one, "messages"):
                hint = "write its messages: [*result.messages, 'and now?']"
            elif isinstance(one, type) or callable(one):
                hint = "write user('…'), with parentheses"
            raise ConfigError(
                f"a prompt consists of strings, parts, messages or OpenAI's message dicts; "
                f"found {show_value(one)}; {hint}"
            )
    return [*messages, _not_empty(user(*spoken), prompt)] if spoken else messages


def dicts_from(messages: Iterable[Message], *, provider: str = "openai") -> list[dict[str, Any]]:
    """A conversation as OpenAI's message dicts, which `messages_from` and every prompt accept again.

    The dicts are valid for a chat completions API, whatever the conversation is: each call is followed by its result (a
    note, if it has none), calls that were written as text are native ones, ids have at most 40 characters, consecutive
    user messages are one, and the images of a result follow it in a user message. What only another provider can read,
    such as its signed thinking, is left out; `agentkit threads export --as json` loses nothing.

    >>> dicts_from([user("Hello")])
    [{'role': 'user', 'content': 'Hello'}]

    Args:
        messages: such as `result.messages`, oldest first.
        provider: whose own fields, such as thinking, are included: `openai`, or a compatible server as `host:port`.

    Raises:
        ConfigError: it is something else than messages, or a file has no form in such dicts.
    """
    from agentkit.models.files_taken import check_files
    from agentkit.models.openai import FILES, chat_messages

    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        hint = "; write its messages: dicts_from(result.messages)" if hasattr(messages, "messages") else ""
        raise ConfigError(f"dicts_from(…) expects a list of messages, found {show_value(messages)}{hint}")
    conversation = list(messages)
    for at, one in enumerate(conversation):
        if not isinstance(one, SystemMessage | UserMessage | AssistantMessage | ToolMessage):
            raise ConfigError(
                f"dicts_from(…) expects messages, found {show_value(one)} as item {at}; for a prompt in any other form "
                "write dicts_from(messages_from(…))"
            )
    check_files("OpenAI's chat messages", conversation, FILES)
    return chat_messages(conversation, provider)


def _not_empty(message: Message, source: Any) -> Message:
    """The message, unless it is an empty user message: providers refuse those, or answer something arbitrary."""
    if isinstance(message, UserMessage) and not any(
        not isinstance(part, TextPart) or part.text.strip() for part in message.content
    ):
        raise ConfigError(f"a user message is empty: expected text, an image or a file, found {show_value(source)}")
    return message


_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)

_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"role", "content"}),
    "developer": frozenset({"role", "content"}),
    "user": frozenset({"role", "content"}),
    "assistant": frozenset(
        {"role", "content", "refusal", "tool_calls", "function_call", "reasoning_content", "reasoning"}
    ),
    "tool": frozenset({"role", "content", "tool_call_id", "name", "tool_name"}),
    "function": frozenset({"role", "content", "name"}),
}
"""The fields that are read from each role's message."""


class ChatReader:
    """Reads the messages of one conversation, oldest first: a result gets its tool's name from the earlier call.

    A result answers the call with its id. Without an id, or if the calls have none, it answers the first call that has
    no result yet. A result whose call is not there, as at the beginning of a window of a history, is kept as it is: it
    is not sent. While a call has no result, such a result is an error, since that call would run again.

    Args:
        calls: the tool names of earlier calls, by id.
    """

    def __init__(self, calls: Mapping[str, str]) -> None:
        self._names = dict(calls)
        self._open: dict[str, bool] = {}  # the ids of calls without a result, and whether each has its own result
        self._given = 0

    def read(self, message: Mapping[str, Any], at: str) -> Message:
        """One message.

        Args:
            message: a message with a `role`, in the format of the chat completions API.
            at: its position, for errors.

        Raises:
            ConfigError: part of it cannot be kept: an unknown role, field or content part.
        """
        role = message.get("role")
        if role is None and "role" not in message:
            hint = next((f"; pass the value of {key!r} itself" for key in ("messages", "input") if key in message), "")
            raise ConfigError(
                f"{at} has no 'role': expected {{'role': 'user', 'content': '…'}}, found {show_value(message)}{hint}"
            )
        if not isinstance(role, str) or role not in _FIELDS:
            hint = did_you_mean(str(role), _FIELDS, part_names.ROLES)
            raise ConfigError(f"{at}: the role of a message is one of {', '.join(_FIELDS)}; found {role!r}{hint}")
        self._refuse_fields(message, role, at)
        content = message.get("content")
        match role:
            case "system" | "developer":
                return SystemMessage("".join(_text(part, at) for part in _parts(content, at)))
            case "user":
                return UserMessage(tuple(_parts(content, at)))
            case "assistant":
                return self._assistant(message, at)
            case _:
                return self._result(message, at)

    def _refuse_fields(self, message: Mapping[str, Any], role: str, at: str) -> None:
        other = sorted(
            key for key, value in message.items() if key not in _FIELDS[role] and value not in (None, [], {})
        )
        if other:
            raise ConfigError(
                f"{at}: {role} messages have the fields {', '.join(sorted(_FIELDS[role]))}; found {', '.join(other)}, "
                "which would be lost: write it in the content, or remove it"
            )

    def _assistant(self, message: Mapping[str, Any], at: str) -> AssistantMessage:
        thought = message.get("reasoning_content") or message.get("reasoning")
        content: list[Any] = [ThinkingPart(thought)] if isinstance(thought, str) and thought else []
        content += [TextPart(_text(part, at)) for part in _parts(message.get("content"), at)]
        if refusal := message.get("refusal"):
            content.append(TextPart(_string(refusal, f"{at}.refusal")))
        content += [self._call(call, f"{at}.tool_calls[{n}]") for n, call in enumerate(message.get("tool_calls") or ())]
        if function := message.get("function_call"):
            content.append(self._call({"function": function}, f"{at}.function_call"))
        return AssistantMessage(tuple(content))

    def _call(self, call: Any, at: str) -> ToolCall:
        from agentkit.models.native_arguments import readable

        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or call.get("type", "function") != "function":
            raise ConfigError(
                f'{at}: expected {{"id", "type": "function", "function": {{"name", "arguments"}}}}, found {call!r}'
            )
        id = _string(call.get("id") or self._new_id(), f"{at}.id")
        self._open[id] = bool(call.get("id"))
        name = _string(function.get("name"), f"{at}.function.name")
        arguments = function.get("arguments")
        raw = json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, Mapping) else arguments
        self._names[id] = name
        raw = _string(raw, f"{at}.function.arguments")
        return ToolCall(id, name, readable(raw) or {}, None, raw)  # the raw text is kept if it cannot be read

    def _result(self, message: Mapping[str, Any], at: str) -> ToolMessage:
        id = _string(message.get("tool_call_id") or "", f"{at}.tool_call_id")
        if id not in self._names:
            fitting = [one for one, own in self._open.items() if not (id and own)]
            if self._open and not fitting:
                waiting = ", ".join(map(repr, self._open))
                raise ConfigError(f"{at}: no call has the tool_call_id {id!r}; without a result are {waiting}")
            id = fitting[0] if fitting else id
        self._open.pop(id, None)
        said = message.get("name") or message.get("tool_name") or ""
        name = self._names.get(id) or _string(said, f"{at}.name")
        return ToolMessage(id, name, tuple(_parts(message.get("content"), at)))

    def _new_id(self) -> str:
        """An id for a call without one: of the old `function_call` field, or of a server that gives none."""
        while (id := f"function_call_{self._given + 1}") in self._names:
            self._given += 1
        return id


def _parts(content: Any, at: str) -> list[Any]:
    if content is None:
        return []
    if isinstance(content, str):
        return [TextPart(content)] if content else []
    if isinstance(content, Sequence):
        return [_part(part, f"{at}.content[{n}]") for n, part in enumerate(content)]
    raise ConfigError(f"{at}.content: expected a string, a list of content parts, or None, found {content!r:.100}")


def _part(part: Any, at: str) -> UserPart:
    match part:
        case {"type": "text" | "refusal" as kind}:
            return TextPart(_string(part.get(kind), f"{at}.{kind}"))
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return ImagePart(*_source(url, at)) if url.startswith("data:") else ImagePart(url=url)
        case {"type": "file", "file": {"file_data": str(url)} as file}:
            return FilePart(*_source(url, at), name=_string(file.get("filename") or "", f"{at}.filename"))
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": "wav" | "mp3" as kind}}:
            return FilePart(*_source(f"data:audio/{'mpeg' if kind == 'mp3' else kind};base64,{data}", at))
        case Mapping():
            kinds = "text, refusal, image_url ({'url': '…'}), file ({'file_data': 'data:…'}) or input_audio"
            raise ConfigError(f"{at}: expected a content part of type {kinds}, found {show_value(part)}")
        case _:
            raise ConfigError(
                f'{at}: expected a content part, such as {{"type": "text", "text": "…"}}, found {part!r:.100}'
            )


def _source(url: str, at: str) -> tuple[bytes, str]:
    """The bytes and the type in a data URL."""
    if (found := _DATA_URL.fullmatch(url)) is None:
        raise ConfigError(f"{at}: expected a base64 data URL, found {url[:60]!r}")
    try:
        return base64.b64decode(found[2], validate=True), found[1]
    except binascii.Error as e:
        raise ConfigError(f"{at}: the data URL is not base64: {e}") from e


def _text(part: UserPart, at: str) -> str:
    if isinstance(part, TextPart):
        return part.text
    raise ConfigError(f"{at}: an image or a file is allowed only in a user message, an image also in a result")


def _string(value: Any, at: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{at}: expected a string, found {value!r:.100}")
    return value
