"""Spending from budgets: reserved before a request, counted after its response. Runs no tool.

Every run has a `Spending`; a sub-agent's also spends from its caller's. All of them belong to one event loop, and there
is no `await` between checking whether something is left and taking it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from time import monotonic
from typing import Final, Literal

from agentkit.agent.limits import REPLY_TOKENS, UNBOUNDED, Budget
from agentkit.errors import AgentkitError
from agentkit.events import ArgumentDelta, CallEnd, Finish, ModelSelected, SourceEvent, Text, Thinking, Usage
from agentkit.messages import Message
from agentkit.models.base import Model, ModelRequest, close, names
from agentkit.models.tokens import PER_CALL, json_tokens, message_tokens, messages_tokens, text_tokens
from agentkit.processor import Source
from agentkit.toolspec import ToolSpec

Exhausted = Literal["token_budget", "cost_budget", "time_budget", "call_budget"]

_NOTHING: Final = Usage()
_PRICED: Final = frozenset((Usage, ModelSelected))


class BudgetSpent(AgentkitError):
    """A model was about to be asked at a run's expense, and nothing is left of the run's budget."""


class Spending:
    """The tokens, cost, calls and time that a run and its sub-agents spend.

    Args:
        budget: the limits.
        parent: the calling run's spending, from which this run also spends.
    """

    def __init__(self, budget: Budget, parent: Spending | None = None) -> None:
        self.budget = budget
        self.usage = Usage()
        """The tokens of all completed responses."""
        self.estimated = False
        """True if some of them are an estimate, because the model did not report them."""
        self.cost = 0.0
        self.tool_calls = 0
        self._aside = _NOTHING  # reserved for current responses
        self._aside_cost = 0.0
        self._since = monotonic()
        self._all: tuple[Spending, ...] = (self, *(() if parent is None else parent._all))
        """This one and all those from which it also spends."""
        self._bounded: bool = budget is not UNBOUNDED or (parent is not None and parent._bounded)
        self.counts: bool = any(one.budget.tokens is not None or one.budget.prices for one in self._all)
        """True if tokens are limited, or cost is counted."""
        self._waiting: deque[asyncio.Future[None]] = deque() if parent is None else parent._waiting

    def check(self, models: Sequence[str]) -> None:
        """Check that each response of these models has a price, if one is needed.

        Raises:
            ConfigError: the cost is limited, and a model has no price.
        """
        for one in self._all:
            for model in models:
                one.budget.price(model)

    def _most_expensive(self, models: Sequence[str], tokens: Usage) -> str:
        """Return the model of which these tokens cost the most, in the budgets together."""

        def cost(model: str) -> float:
            prices = (one.budget.price(model) for one in self._all)
            return sum(price.of(tokens) for price in prices if price is not None)

        return models[0] if len(models) == 1 else max(models, key=cost)

    # -------------------------------------------------------------- what is left

    @property
    def reached_limit(self) -> Exhausted | None:
        """The first limit that is reached; None while none is."""
        if not self._bounded:
            return None
        return next((reached for one in self._all if (reached := one._reached()) is not None), None)

    def _reached(self) -> Exhausted | None:
        budget = self.budget
        if budget is UNBOUNDED:
            return None
        spent: tuple[tuple[Exhausted, float | None, float], ...] = (
            ("token_budget", budget.tokens, _total(self.usage)),
            ("cost_budget", budget.cost, self.cost),
            ("call_budget", budget.tool_calls, self.tool_calls),
            ("time_budget", budget.seconds, monotonic() - self._since),
        )
        return next((name for name, bound, value in spent if bound is not None and value >= bound), None)

    def _has_room(self) -> bool:
        """Return True if another response may start, regardless of how the current ones end."""
        tokens, cost = self.budget.tokens, self.budget.cost
        if tokens is not None and _total(self.usage) + _total(self._aside) >= tokens:
            return False
        return cost is None or self.cost + self._aside_cost < cost

    @property
    def seconds_left(self) -> float | None:
        """How much time is left of this budget; None without a limit. The parent's clock ends its sub-agents."""
        return None if self.budget.seconds is None else self.budget.seconds - (monotonic() - self._since)

    # -------------------------------------------------------------- calls

    @property
    def calls_left(self) -> int | None:
        """How many calls may still be run; None without a limit."""
        if not self._bounded:
            return None
        left = [max(one.budget.tool_calls - one.tool_calls, 0) for one in self._all if one.budget.tool_calls]
        return min(left, default=None)

    def take_call(self) -> bool:
        """Count a call that is about to start; False if none is left."""
        if self._bounded and self.calls_left == 0:
            return False
        for one in self._all:
            one.tool_calls += 1
        return True

    # -------------------------------------------------------------- responses

    async def set_aside(self, models: Sequence[str], prompt: int, reply: int | None) -> Meter | None:
        """Reserve what a response may cost; waits while current responses may use up what is left.

        Args:
            models: the strings of the models of which one answers.
            prompt: the estimated tokens of the prompt.
            reply: the request's limit for the reply; None if it sets none.

        Returns:
            The meter that counts the response; None if nothing is left.
        """
        while self.reached_limit is None:
            if not self._bounded or all(one._has_room() for one in self._all):
                return Meter(self, models, prompt, REPLY_TOKENS if reply is None else reply)
            change = asyncio.get_running_loop().create_future()
            self._waiting.append(change)
            try:
                await change
            finally:
                if change in self._waiting:
                    self._waiting.remove(change)
        return None

    def set_aside_now(self, models: Sequence[str], request: ModelRequest) -> Meter:
        """Reserve without waiting: for the rest of a response, which must not remain incomplete."""
        prompt = messages_tokens(request.messages) if self.counts else 0
        return Meter(self, models, prompt, REPLY_TOKENS if request.max_tokens is None else request.max_tokens)

    def count(self, model: str, spent: Usage) -> None:
        """Add a response for which nothing was reserved, as without a limit for tokens and without prices."""
        if any(spent):
            self._change(model, _NOTHING, spent)

    def _change(self, model: str, aside: Usage, spent: Usage, *, estimated: bool = False) -> None:
        """Add to what is reserved and to what is spent, here and in every `Spending` from which this one spends."""
        for one in self._all:
            one._aside = one._aside.plus(aside) if aside is not _NOTHING else one._aside
            one.usage = one.usage.plus(spent) if spent is not _NOTHING else one.usage
            one.estimated = one.estimated or estimated
            if one.budget.prices and (price := one.budget.price(model)):
                one._aside_cost += price.of(aside)
                one.cost += price.of(spent)

    def _wake(self) -> None:
        """A reservation was released: wake the waiting requests, in their order."""
        while self._waiting:
            change = self._waiting.popleft()
            if not change.done():
                change.set_result(None)


class Meter:
    """The cost of one response: reserved when the meter is created, counted once, when the response is over.

    Args:
        spending: the spending that pays.
        models: the strings of the models of which one answers; reserved is what the most expensive one costs.
        prompt: the estimated tokens of the prompt.
        reply: the tokens reserved for the reply.
    """

    def __init__(self, spending: Spending, models: Sequence[str], prompt: int, reply: int) -> None:
        self._spending = spending
        self._prompt = prompt
        self._counts = spending.counts
        self._aside = Usage(prompt, reply) if self._counts else _NOTHING
        self._model = spending._most_expensive(models, self._aside)
        self._reported = _NOTHING
        self._written: list[str] = []
        self._calls = 0
        self._started = False  # whether any event arrived: a refused request costs nothing
        self._whole = self._settled = False
        if self._counts:
            spending._change(self._model, self._aside, _NOTHING)

    async def read(self, model: Model, request: ModelRequest) -> AsyncGenerator[SourceEvent, None]:
        """Ask the model, and count its response."""
        events: Source = model.stream(request)
        counts = self._counts
        try:
            if isinstance(events, AsyncIterable):
                async for event in events:
                    if counts or type(event) in _PRICED:
                        self._see(event)
                    yield event
            else:
                for event in events:
                    self._see(event)
                    yield event
        finally:
            self.settle()
            await close(events)  # a generator; others end by themselves

    def _see(self, event: SourceEvent) -> None:
        kind = type(event)
        if kind is ModelSelected:
            self._select(event.model)  # type: ignore[union-attr]
            return
        self._started = True
        if kind is Usage:
            self._reported = event  # type: ignore[assignment]
        elif kind is Finish:
            self._whole = True
        elif kind is Text or kind is Thinking or kind is ArgumentDelta:
            self._written.append(event.text)  # type: ignore[union-attr]
        elif kind is CallEnd:
            self._calls += 1

    def _select(self, model: str) -> None:
        """Reserve for this model from now on; what another one reported before it failed is counted as that one's."""
        back = Usage(*(-tokens for tokens in self._aside))
        self._spending._change(self._model, back, self._reported)
        self._model, self._reported, self._started = model, _NOTHING, False
        self._spending._change(model, self._aside, _NOTHING)

    def settle(self) -> None:
        """The response is over, or will never arrive: count its cost, and release what was reserved for it."""
        if self._settled:
            return
        self._settled = True
        if not self._counts:
            if self._reported is not _NOTHING:
                self._spending._change(self._model, _NOTHING, self._reported)
            return
        spent = self._spent() if self._started else _NOTHING
        back = Usage(*(-tokens for tokens in self._aside))
        self._spending._change(self._model, back, spent, estimated=spent != self._reported)
        self._spending._wake()

    def _spent(self) -> Usage:
        """The usage that the model reported; an estimate for the counts that it did not."""
        reported = self._reported
        if reported.input_tokens and reported.output_tokens and self._whole:
            return reported
        written = text_tokens("".join(self._written)) + PER_CALL * self._calls
        known = reported.output_tokens
        output = known if known and self._whole else max(known, written)
        return reported._replace(input_tokens=reported.input_tokens or self._prompt, output_tokens=output)


class Prompts:
    """The estimated size of a run's requests; what was in the previous request is not counted again."""

    def __init__(self) -> None:
        self._offered: Sequence[ToolSpec] = ()
        self._tools = 0
        self._counted = 0
        self._last: Message | None = None
        self._tokens = 0

    def size(self, request: ModelRequest) -> int:
        """The estimated tokens of a request's messages and tools."""
        if request.tools is not self._offered:
            self._offered = request.tools
            self._tools = sum(json_tokens([one.name, one.description, one.parameters]) for one in request.tools)
        n, messages = self._counted, request.messages
        if not (0 < n <= len(messages) and messages[n - 1] is self._last):
            n, self._tokens = 0, 0  # another conversation, or one that was shortened
        self._tokens += sum(map(message_tokens, messages[n:]))
        self._counted, self._last = len(messages), messages[-1] if messages else None
        return self._tokens + self._tools


async def ask_model(spending: Spending, model: Model, request: ModelRequest) -> AsyncGenerator[SourceEvent, None]:
    """Ask a model at a run's expense, as soon as the budget allows it.

    Raises:
        BudgetSpent: the budget is exhausted; the model was not asked.
        ConfigError: the cost is limited, and the model has no price.
    """
    prompt = messages_tokens(request.messages) if spending.counts else 0
    meter = await spending.set_aside(names(model), prompt, request.max_tokens)
    if meter is None:
        raise BudgetSpent(f"nothing is left of the run's budget ({spending.reached_limit})")
    events = meter.read(model, request)
    try:
        async for event in events:
            yield event
    finally:
        meter.settle()
        await events.aclose()


def _total(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens
