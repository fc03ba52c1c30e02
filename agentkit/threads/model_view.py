"""A thread as a run's model reads it, in memory. Knows no store, and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentkit.events import Usage
from agentkit.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from agentkit.models.render_cache import RenderCache
from agentkit.models.tokens import json_tokens, message_tokens, messages_tokens, text_tokens
from agentkit.threads.conversation import messages_of, put_in
from agentkit.threads.sizes import thread_tokens
from agentkit.threads.stable_prefix import ThreadContent
from agentkit.threads.store import Entry, Log
from agentkit.tool.registry import ToolRegistry


class ModelView:
    """The conversation of a run.

    Args:
        temporary: a message put before the last user message; not stored in the thread.
        counts: whether its size is counted, for a compaction.
    """

    def __init__(self, temporary: Message | None, *, counts: bool) -> None:
        self.messages: list[Message] = []
        """The conversation as the model reads it."""
        self.taken: set[str] = set()
        """The ids of all calls of the thread, the compacted ones included."""
        self.rendered = RenderCache()
        """The cache of these messages as rendered for requests."""
        self.tokens = 0
        """The size, as far as it is known."""
        self._temporary = temporary
        self._counts = counts
        self._system: str | None = None  # the instructions; not stored in the thread
        self._extra = 0  # tokens of the system prompt and the tools
        self._whole: list[Message] = []  # `messages` without the compactions of this run
        self._put: list[Message] = []  # what the compactions put into `messages`
        self._earlier: list[Message] = []  # the conversation without the compactions of earlier runs

    def instruct(self, system: str) -> None:
        """Put the instructions before the conversation."""
        self._system = system

    def weigh(self, registry: ToolRegistry) -> None:
        """Count the parts of a request that are not in an entry."""
        if not self._counts:
            return
        texts = text_tokens(self._system or "") + (0 if self._temporary is None else message_tokens(self._temporary))
        self._extra = texts + sum(json_tokens([s.name, s.description, s.parameters]) for s in registry.specs())

    @property
    def answerable(self) -> bool:
        """True if the conversation has a user message."""
        return any(isinstance(message, UserMessage) for message in self.messages)

    # -------------------------------------------------------------- its content

    def read(self, content: ThreadContent) -> None:
        """Rebuild it from the thread."""
        if self._counts:
            self.tokens = content.size().tokens(self._extra)
        self.messages = self._framed(content.messages(sending=True))
        self.rendered = content.prefix.rendered
        self._whole = list(self.messages)
        self._earlier = content.full_history() if content.compacted else []
        self.taken = content.ids()

    def shorten(self, log: Log, late: tuple[Entry, ...]) -> None:
        """Read a log that was compacted; `late` are the entries added in the meantime."""
        if self._counts:
            self.tokens = thread_tokens(log, self._extra)
        self.messages = self._framed(messages_of(log, sending=True))
        self._whole += messages_of(replace(log, entries=late))
        self._put += put_in(log)[len(self._put) :]  # the same objects stay: they are examined once

    def say(self, messages: Sequence[Message]) -> None:
        """Add messages at the end."""
        self.messages += messages
        self._whole += messages
        if self._counts:
            self.tokens += messages_tokens(messages)

    def measure(self, usage: Usage, answers: Sequence[ToolMessage]) -> None:
        """Take over the size that a provider reported with its response; only the answers are added to it."""
        if self._counts and usage.input_tokens:
            self.tokens = usage.input_tokens + usage.output_tokens + messages_tokens(answers)

    def all(self) -> tuple[Message, ...]:
        """The conversation, as it was before the compactions of this run."""
        return tuple(self._whole)

    def full_history(self) -> Sequence[Message]:
        """Return the conversation before all compactions, and the messages that these put into it."""
        return (*self._earlier, *self._whole, *self._put)

    def _framed(self, messages: list[Message]) -> list[Message]:
        """A conversation with the temporary message and the instructions."""
        if self._temporary is not None:
            messages.insert(_before_the_users(messages), self._temporary)
        if self._system is not None:
            messages.insert(0, SystemMessage(self._system))
        return messages


def _before_the_users(messages: Sequence[Message]) -> int:
    """The position before the last user message; the end if that message already has a reply."""
    if messages and isinstance(messages[-1], AssistantMessage):
        return len(messages)
    return next((i for i in reversed(range(len(messages))) if isinstance(messages[i], UserMessage)), 0)
