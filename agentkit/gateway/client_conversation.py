"""A conversation as it is read from a client's request: each result has its tool's name and follows its call. Pure.

What the wires have in common; each adds how its messages are read.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from agentkit.errors import ErrorCode, show_value
from agentkit.gateway.request_fields import (
    Fields,
    ForeignParts,
    Part,
    content_at,
    image_at,
    invalid,
    only_text,
    text_at,
)
from agentkit.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.models.native_arguments import readable


class ClientConversation(ABC):
    """The messages of one request, in order.

    Some clients send results before their calls. A result without an id answers the first call that has no result; so
    does a result with an id that no call has, if only one call before it has no result. Without such a call it is
    kept, since clients shorten histories.
    """

    def __init__(self) -> None:
        self.foreign = ForeignParts()
        """The content parts that only the client's wire has."""
        self._messages: list[Message | None] = []
        self._names: dict[str, str] = {}
        self._open: OrderedDict[str, int] = OrderedDict()  # the calls without a result, and how many precede each
        self._early: dict[str, list[int]] = {}  # the places of results whose call has not come
        self._before: dict[int, int] = {}  # the number of calls before such a result
        self._calls = 0
        self._made = 0

    @abstractmethod
    def read(self, body: Fields) -> list[Message]:
        """Read the conversation of a request.

        Raises:
            RequestRefused: status 400; it is invalid.
        """

    def close(self) -> list[Message]:
        """Return the messages.

        Raises:
            RequestRefused: it is ambiguous which call a result answers.
        """
        for place in (place for places in self._early.values() for place in places):
            first = islice(self._open.items(), 4)  # two are ambiguous already
            waiting = [id for id, number in first if number < self._before[place]]
            early = self._messages[place]
            if not waiting or not isinstance(early, ToolMessage):
                continue
            if len(waiting) > 1:
                listed = ", ".join(map(repr, waiting))
                raise invalid("messages", f"no call has the id {early.call_id!r} of a result; without one are {listed}")
            self._open.pop(waiting[0])
            self._messages[place] = replace(early, call_id=waiting[0], name=self._names[waiting[0]])
        return [message for message in self._messages if message is not None]

    def content(self, content: Any, at: str) -> list[Part]:
        """Read the content of a message: a string, a part, or a list of them."""
        return content_at(content, at, self._part)

    def _part(self, part: Fields, at: str) -> Part:
        """Read a content part of any wire: clients mix them. One that only its own wire has is kept for that."""
        image, source = part.get("image_url"), part.get("source")
        match part.get("type", "text" if "text" in part else "image_url" if image else None):
            case "text" | "input_text" | "output_text" | "summary_text":
                return TextPart(text_at(part.get("text"), f"{at}.text"))
            case "refusal":
                return TextPart(text_at(part.get("refusal"), f"{at}.refusal"))
            case "image_url" | "input_image" if image:
                url = image.get("url") if isinstance(image, Mapping) else image
                return image_at(url, f"{at}.image_url", part, self.foreign)
            case "image" if isinstance(source, Mapping) and source.get("type") in ("base64", "url"):
                data = f"data:{source.get('media_type')};base64,{source.get('data')}"
                url = source.get("url") if source["type"] == "url" else data
                return image_at(url, f"{at}.source", part, self.foreign)
            case str():  # such as a file, or the server's id of an image
                return self.foreign.keep(part)
            case kind:
                expected = "expected the type of a content part, such as text or image_url"
                raise invalid(f"{at}.type", f"{expected}, found {show_value(kind)}")

    def system(self, content: Any, at: str) -> None:
        """Add instructions."""
        if text := only_text(self.content(content, at), at):
            self._messages.append(SystemMessage(text))

    def user(self, content: Iterable[Part]) -> None:
        """Add a message of the user, if it has content."""
        if parts := tuple(content):
            self._messages.append(UserMessage(parts))

    def assistant(self, content: Iterable[AssistantPart]) -> None:
        """Add a reply, if it has content, and after it the results that came before its calls."""
        message = AssistantMessage(tuple(content))
        if message.content:
            self._messages.append(message)
        for call in message.calls:
            self._open[call.id] = self._calls
            self._calls += 1
            for place in self._early.pop(call.id, []):
                early = self._messages[place]
                self._messages[place] = None
                if isinstance(early, ToolMessage):
                    self._messages.append(replace(early, name=call.name))
                    self._open.pop(call.id, None)

    def call(self, id: Any, name: Any, arguments: Any, at: str) -> ToolCall:
        """Return a call of a reply.

        Args:
            id: its id; one is made if it is missing.
            name: the tool's name.
            arguments: JSON text, an object, or None.
            at: where it is in the request.
        """
        if not isinstance(name, str) or not name:
            raise invalid(f"{at}.name", f"expected the tool's name, found {show_value(name)}")
        if id is not None and not isinstance(id, str):
            raise invalid(f"{at}.id", f"expected a string, found {show_value(id)}")
        if arguments is not None and not isinstance(arguments, str | Mapping):
            raise invalid(f"{at}.arguments", f"expected JSON text or an object, found {show_value(arguments)}")
        id = id or self._new_id()
        self._names[id] = name
        text = json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, Mapping) else arguments or ""
        return ToolCall(id, name, readable(text) or {}, None, text)

    def result(self, id: Any, content: Iterable[Part], *, name: Any = None, error: ErrorCode | None = None) -> None:
        """Add the result of a call; without an id, of the first call that has none."""
        known = id if isinstance(id, str) and id else next(iter(self._open), "")
        self._open.pop(known, None)
        if known not in self._names:
            self._early.setdefault(known, []).append(len(self._messages))
            self._before[len(self._messages)] = self._calls
        own = name if isinstance(name, str) else ""
        self._messages.append(ToolMessage(known, self._names.get(known, own), tuple(content), error))

    def _new_id(self) -> str:
        while (id := f"call_{self._made}") in self._names:
            self._made += 1
        return id
