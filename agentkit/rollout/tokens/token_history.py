"""One trajectory as token ids: the prompt, the model's turns, the answers to them. It only grows."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

from agentkit.errors import ConfigError
from agentkit.messages import Message, ToolMessage, UserMessage
from agentkit.rollout.policy.generation import Generation
from agentkit.rollout.records.record import TokenRecord
from agentkit.rollout.tokens.chat_template import ChatTemplate
from agentkit.toolspec import ToolSpec


def _whole_numbers(ids: Sequence[int]) -> list[int]:
    """Token ids as Python's integers, whatever kind of integer the engine tells."""
    try:
        return [index(id) for id in ids]
    except TypeError as e:
        raise ConfigError(f"the policy returned token ids that are not integers ({e}): {ids!r:.60}") from e


class TokenHistory:
    """The tokens of one trajectory, exactly as the policy saw and wrote them.

    The model's turns are kept as the ids that it wrote, even if their text would be tokenized to others.

    Args:
        template: the chat template, shared by all trajectories.
        messages: the conversation that it begins with.
        tools: the tools of this trajectory, if not all of the template's.
        limit: the most tokens after the prompt; None for no bound.
        context: the most tokens together with the prompt; None for no bound.

    Raises:
        ConfigError: the template refuses the messages.
    """

    def __init__(
        self,
        template: ChatTemplate,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] | None = None,
        limit: int | None = None,
        context: int | None = None,
    ) -> None:
        self.template = template
        self._ids = template.prompt(messages, tools)
        self._prompt = len(self._ids)
        bounds = (limit, None if context is None else context - self._prompt)
        self.limit = min((bound for bound in bounds if bound is not None), default=None)
        self._mask: list[int] = []
        self._logprobs: list[float] | None = []
        self._turns = 0
        self._exact = True
        self.thinking = False
        """True if the last turn began inside thinking, because the template opens it: `<think>` ends its prompt."""
        self.span = 0, 0
        """Where the last turn begins in the response, and where it ends."""

    @property
    def ids(self) -> tuple[int, ...]:
        """All tokens: the policy's input for its next turn."""
        return tuple(self._ids)

    @property
    def budget(self) -> int | None:
        """The number of tokens that may follow; None for no bound."""
        return None if self.limit is None else max(0, self.limit - len(self._mask))

    def wrote(self, generation: Generation) -> str:
        """Append a turn of the model's, and return its text without the token that ends it.

        The text is that of the token ids: engines leave special tokens out of theirs, and with them some formats'
        calls. A turn that is given as text only is tokenized here; the record then says that its ids are not exact.

        Args:
            generation: the turn, `checked`.

        Raises:
            ConfigError: it has neither text nor ids, or log-probabilities unlike the turns before.
        """
        ids, logprobs, text = generation.token_ids, generation.logprobs, generation.text
        encoder = self.template.encoder
        if ids is None:
            if text is None:
                raise ConfigError("the policy returned neither the text nor the token ids of what it wrote")
            ids, logprobs, self._exact = encoder.following(self._ids, text), None, False
        ids = _whole_numbers(ids)
        left = self.budget
        if left is not None and len(ids) > left:  # an engine that does not keep to max_tokens
            ids, logprobs = ids[:left], None if logprobs is None else logprobs[:left]
        self._told(logprobs, ids)
        self.thinking = self.template.opens_thinking(self._ids)
        self.span = len(self._mask), len(self._mask) + len(ids)
        self._ids += ids
        self._mask += [1] * len(ids)
        self._turns += 1
        return encoder.decode(self._unended(ids))

    def answered(self, messages: Sequence[ToolMessage | UserMessage]) -> bool:
        """Append answers, and the beginning of the next turn. False if they do not fit: then nothing is appended."""
        begin, end = self.span
        ids = self.template.answers(messages, self._ids[self._prompt + begin : self._prompt + end])
        left = self.budget
        if left is not None and len(ids) >= left:  # not one token would be left for the model
            return False
        self._ids += ids
        self._mask += [0] * len(ids)
        if self._logprobs is not None:
            self._logprobs += [0.0] * len(ids)
        return True

    def record(self) -> TokenRecord:
        """All of it as a value."""
        return TokenRecord(
            prompt_ids=tuple(self._ids[: self._prompt]),
            response_ids=tuple(self._ids[self._prompt :]),
            response_mask=tuple(self._mask),
            response_logprobs=tuple(self._logprobs) if self._logprobs is not None and self._turns else None,
            exact=self._exact,
        )

    def _told(self, logprobs: Sequence[float] | None, ids: Sequence[int]) -> None:
        if logprobs is None and ids:
            if self._turns and self._logprobs is not None and 1 in self._mask:
                self._lost_logprobs()
            self._logprobs = None
        elif logprobs is not None and self._logprobs is not None:
            self._logprobs += [float(one) for one in logprobs]
        elif logprobs is not None:
            self._lost_logprobs()

    def _lost_logprobs(self) -> None:
        raise ConfigError(f"the policy returned log-probabilities for some turns only: turn {self._turns} differs")

    def _unended(self, ids: list[int]) -> list[int]:
        """A turn without the token that ends it, nor the white space that a model may write after that."""
        ends = self.template.ends.values()
        at = next((at for at in range(len(ids) - 1, -1, -1) if ids[at] in ends), len(ids))
        return ids if self.template.encoder.decode(ids[at + 1 :]).strip() else ids[:at]
