"""The calls of a provider's own tools, in a conversation for the Messages API: which of their blocks are sent. Pure.

The provider answers such a call itself: after it, or in a later message if results of your tools come first, as when
its code calls them. A call without an answer is refused, unless the provider may still send it.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentkit.messages import AssistantMessage, Message, ProviderPart, ToolCall, ToolMessage, UserMessage
from agentkit.models.render_cache import Taken, answers, asks, says_something
from agentkit.models.valid_history import IdRule, fit_id
from agentkit.models.wire import mapping_of, text_of

BlockPlace = tuple[int, int]
"""Where a block is: the place of its message, and its own there."""


class _Ties(NamedTuple):
    """The relations between the blocks of a conversation."""

    answered: dict[BlockPlace, BlockPlace]
    """The call of each answer."""
    callers: dict[BlockPlace, BlockPlace]
    """The call whose code made another one, or the answer to that."""
    open: set[BlockPlace]
    """The calls without an answer."""


def sent_blocks(messages: Sequence[Message], provider: str, ids: IdRule) -> dict[BlockPlace, Mapping[str, Any]]:
    """The blocks of the provider that are sent: those that are answered, waited for, or independent.

    The id of a call is unique in its message. A caller that is not sent is not named either.

    Args:
        messages: the conversation, with the results of our own tools directly after their calls.
        provider: whose blocks.
        ids: what the provider accepts as an id.
    """
    blocks = {
        (at, n): part
        for at, message in enumerate(messages)
        if isinstance(message, AssistantMessage)
        for n, part in enumerate(message.content)
        if isinstance(part, ProviderPart) and part.provider == provider
    }
    ties = _ties(messages, blocks)
    calls = {*ties.answered.values(), *_awaited(messages, ties)}
    taken: defaultdict[int, Taken] = defaultdict(dict)  # messages that were joined may contain one id twice
    names = {at: fit_id(asks(blocks[at]) or "", ids, taken[at[0]]) for at in sorted(calls)}
    sent: dict[BlockPlace, Mapping[str, Any]] = {}
    for at, part in blocks.items():
        block = _called_by(part.data, names.get(ties.callers[at]) if at in ties.callers else None)
        if answers(part) is not None:
            if at in ties.answered:
                sent[at] = {**block, "tool_use_id": names[ties.answered[at]]}
        elif asks(part) is None:
            sent[at] = block
        elif at in names:
            sent[at] = {**block, "id": names[at]}
    return sent


def _ties(messages: Sequence[Message], blocks: Mapping[BlockPlace, ProviderPart]) -> _Ties:
    ties = _Ties({}, {}, set())
    said = [at for at, message in enumerate(messages) if isinstance(message, UserMessage) and says_something(message)]
    waiting: dict[str, BlockPlace] = {}  # an id that is used again belongs to the newer call
    begun: dict[str, BlockPlace] = {}
    for at, part in blocks.items():
        while said and said[0] < at[0]:  # what waits is not answered after a user's message
            waiting.clear()
            said = said[bisect(said, at[0]) :]
        maker = text_of(mapping_of(part.data.get("caller")).get("tool_id"))
        if maker in begun and (maker in waiting or begun[maker][0] == at[0]):
            ties.callers[at] = begun[maker]
        if (answered := answers(part)) is not None:
            if answered in waiting:
                call = ties.answered[at] = waiting.pop(answered)
                if call in ties.callers:  # which may have been answered since
                    ties.callers[at] = ties.callers[call]
        elif (id := asks(part)) is not None:
            waiting[id] = begun[id] = at
    ties.open.update(waiting.values())
    return ties


def _awaited(messages: Sequence[Message], ties: _Ties) -> set[BlockPlace]:
    """The calls that the provider will answer next: those of the last response, and those whose code called in it.

    It does not after a user's message. A reply of words alone, which was cut, changes nothing.
    """
    last = len(messages) - 1
    while last >= 0 and (isinstance(messages[last], ToolMessage) or _only_says(messages[last])):
        last -= 1
    makers = {maker for at, maker in ties.callers.items() if at[0] == last}
    return {at for at in ties.open if at[0] == last or at in makers}


def _only_says(message: Message) -> bool:
    return isinstance(message, AssistantMessage) and not any(
        isinstance(part, ToolCall | ProviderPart) for part in message.content
    )


def _called_by(block: Mapping[str, Any], caller: str | None) -> dict[str, Any]:
    """A block under the caller's id as it is sent; without it, if that call is not sent."""
    named = mapping_of(block.get("caller"))
    if "tool_id" not in named:
        return dict(block)
    if caller is not None:
        return {**block, "caller": {**named, "tool_id": caller}}
    return {key: value for key, value in block.items() if key != "caller"}
