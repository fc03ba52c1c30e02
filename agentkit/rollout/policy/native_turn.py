"""A response with native calls, as a policy reports it in events. Reads no text: a call in it is text."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.errors import ConfigError
from agentkit.events import Finish, SourceEvent, Text, Usage
from agentkit.processor.response import ResponseReader
from agentkit.processor.response_record import ResponseRecord
from agentkit.rollout.policy.generation import Generation

_ABOUT = (Usage, Finish)
"""Events about the whole response: `Generation.finish` says why it ended."""


def native(generation: Generation, record: ResponseRecord) -> Iterator[SourceEvent]:
    """The response, event by event, as the record keeps it. A call that did not end is an error.

    Raises:
        ConfigError: the policy returned no events, but values that this rollout cannot read.
    """
    reader = ResponseReader(record)
    for event in _told(generation):
        if not isinstance(event, _ABOUT):
            yield from reader.feed(event)
    yield from reader.close()


def _told(generation: Generation) -> Iterator[SourceEvent]:
    if generation.events is not None:
        yield from generation.events
    elif isinstance(generation.text, str):
        yield Text(generation.text)
    else:
        found = "token ids only" if generation.token_ids is not None else f"its text as {generation.text!r:.60}"
        raise ConfigError(f"the policy returned {found}; Rollout(format=None) reads a response's events, or its text")
