"""A model's answer to one request, for tests without an event loop of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agentkit.errors import ProviderError
from agentkit.events import Event, merge
from agentkit.messages import Message, user
from agentkit.models import Model, ModelRequest


def answer(
    model: Model, messages: Sequence[Message] = (user("Hi"),), **request: Any
) -> tuple[list[Event], ProviderError | None]:
    """The merged events, and the error in which they end, if they do."""

    async def stream() -> tuple[list[Event], ProviderError | None]:
        events: list[Event] = []
        try:
            async for event in model.stream(ModelRequest(messages, **request)):
                events.append(event)  # noqa: PERF401 - the events before an error count
        except ProviderError as e:
            return merge(events), e
        return merge(events), None

    return asyncio.run(stream())


def events_of(model: Model, messages: Sequence[Message] = (user("Hi"),), **request: Any) -> list[Event]:
    """The merged events of an answer that must not fail."""
    events, error = answer(model, messages, **request)
    assert error is None, error
    return events
