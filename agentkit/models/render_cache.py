"""The rendered beginning of a conversation, kept from one request for the next one. Pure.

The conversation of a run only grows at its end, and all of it is sent with every request. The request for
a message depends on its neighbours: results follow their calls, messages of one role are joined, ids are unique. So
a conversation is divided where that cannot matter: before a response that follows a user's message or the results of
all calls, while no call of a provider's own tool waits. The part before the last such place is rendered once.
"""

from __future__ import annotations

from collections import ChainMap, OrderedDict
from collections.abc import Callable, Hashable, MutableMapping, Sequence
from itertools import takewhile
from operator import is_
from typing import Any, Final, NamedTuple, TypeVar

from agentkit.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    ProviderPart,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)

T = TypeVar("T")

Taken = MutableMapping[str, int]
"""The ids of the calls so far, and how often each was used."""

Make = Callable[[Sequence[Message], Taken], list[T]]
"""Makes what is sent for messages; the ids of their calls are added to `Taken`."""

_PAIRED: Final = ("_call", "_output")  # of the Responses API

_FORMS: Final = 4  # a run asks one model, in text calling in two steps; another run on the thread may ask another


class _Beginning(NamedTuple):
    """The beginning of a conversation, as it was rendered, and what else that depended on."""

    messages: Sequence[Message] = ()
    made: Sequence[Any] = ()
    taken: Taken = {}  # noqa: RUF012 - never changed
    using: tuple[object, ...] = ()


class RenderCache:
    """The rendered parts of one conversation. They live as long as the conversation does."""

    def __init__(self) -> None:
        self._begun: OrderedDict[Hashable, _Beginning] = OrderedDict()
        self._changed: dict[tuple[Hashable, int], tuple[Message, Message]] = {}

    def once(self, form: Hashable, message: Message, make: Callable[[], Message]) -> Message:
        """Return the message that was made of this one the first time, so that it stays the same object."""
        if (key := (form, id(message))) not in self._changed:
            self._changed[key] = message, make()
        return self._changed[key][1]

    def of(self, form: Hashable, messages: Sequence[Message], make: Make[T], using: Sequence[object] = ()) -> list[T]:
        """Render a conversation: `make` is given the messages that it has not seen before.

        Args:
            form: the API, the provider and the step for which it is rendered.
            messages: the conversation now.
            make: renders messages.
            using: what else the rendering depends on; if one of these is another object, all is rendered again.
        """
        head = len(list(takewhile(_instructs, messages)))  # a new object in every run
        known = self._begun.pop(form, _Beginning())
        told, start = messages[head:], len(known.messages)
        if len(told) < start or not (_same(known.messages, told) and _same(known.using, using, whole=True)):
            known, start = _Beginning(), 0
        end = _divided(told, start)
        if end > start:
            taken = dict(known.taken)
            made = [*known.made, *make(told[start:end], taken)]
            known = _Beginning(told[:end], made, taken, tuple(using))
        if end:
            self._begun[form] = known
            if len(self._begun) > _FORMS:
                self._begun.popitem(last=False)
        rest = make(told[end:], ChainMap({}, known.taken))
        return [*make(messages[:head], {}), *known.made, *rest]


def _same(known: Sequence[object], now: Sequence[object], *, whole: bool = False) -> bool:
    """Return whether both begin with the same objects; with `whole`, whether they also have the same length."""
    return (not whole or len(known) == len(now)) and all(map(is_, known, now))


def _instructs(message: Message) -> bool:
    return isinstance(message, SystemMessage)


def _divided(messages: Sequence[Message], start: int) -> int:
    """The last place from `start` on where the conversation can be divided; `start` if there is none."""
    place, at, ends = start, start, False
    waiting: set[tuple[str, str]] = set()
    while at < len(messages):
        message = messages[at]
        if isinstance(message, AssistantMessage):
            if not says_something(message) or any(map(_depends, message.content)):
                return place
            if ends and not waiting:
                place = at
            _follow(message, waiting)
            count = _answers(messages, at, message)
            if count is None:
                return place
            at, ends = at + count, count > 0
        elif not isinstance(message, UserMessage):
            return place
        elif says_something(message):
            ends = True
            waiting.clear()  # no provider answers a call of its own after a user's message
        at += 1
    return place


def says_something(message: AssistantMessage | UserMessage) -> bool:
    """Return whether every API sends something for it."""
    calls = isinstance(message, AssistantMessage) and message.calls
    return bool(calls) or any(
        isinstance(part, ImagePart | FilePart) or (isinstance(part, TextPart) and part.text.strip())
        for part in message.content
    )


def _depends(part: object) -> bool:
    """Return whether a block of a provider is sent only together with another one, which may be in another message."""
    return isinstance(part, ProviderPart) and not part.call_id and str(part.data.get("type")).endswith(_PAIRED)


def asks(part: ProviderPart) -> str | None:
    """The id of a block that is a call of one of Anthropic's own tools; None for any other block."""
    asks = part.call_id is None and str(part.data.get("type")).endswith("_tool_use")
    return _id(part, "id") if asks and "tool_use_id" not in part.data else None


def answers(part: ProviderPart) -> str | None:
    """The id of the call that one of Anthropic's own tools answers in this block; None for any other block."""
    return _id(part, "tool_use_id") if part.call_id is None and "tool_use_id" in part.data else None


def _id(part: ProviderPart, key: str) -> str:
    id = part.data.get(key)
    return id if isinstance(id, str) else ""


def _follow(message: AssistantMessage, waiting: set[tuple[str, str]]) -> None:
    """Add the calls of the providers' own tools that wait for their answers, which may be in a later message."""
    for part in message.content:
        if not isinstance(part, ProviderPart):
            continue
        if (answered := answers(part)) is not None:
            waiting.discard((part.provider, answered))
        elif (id := asks(part)) is not None:
            waiting.add((part.provider, id))


def _answers(messages: Sequence[Message], at: int, message: AssistantMessage) -> int | None:
    """How many results follow a response, if they are those of its calls and no others; otherwise None."""
    ids = [call.id for call in message.calls]
    results = messages[at + 1 : at + 1 + len(ids)]
    found = {result.call_id for result in results if isinstance(result, ToolMessage)}
    return len(ids) if len(found) == len(ids) and found == set(ids) else None
