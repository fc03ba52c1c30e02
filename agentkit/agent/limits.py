"""What a run may spend, what it has spent, and whether it goes round in circles. Pure, but for the clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final, Literal, NamedTuple

from agentkit.bounds import SECONDS, Bound, Bounds, number, or_none, refuse, whole
from agentkit.errors import ConfigError
from agentkit.events import Usage
from agentkit.messages import ToolCall, ToolMessage

Exhausted = Literal["token_budget", "cost_budget", "time_budget", "call_budget"]
_MILLION = 1_000_000


class Price(NamedTuple):
    """What a model costs, per million tokens, in whatever currency the budget is in.

    Attributes:
        input: prompt tokens.
        output: generated tokens, reasoning included.
        cached: prompt tokens read from a cache; as `input` unless given.
        cache_write: prompt tokens written to a cache; as `input` unless given.
    """

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None

    def of(self, usage: Usage) -> float:
        """What this usage cost.

        >>> Price(3.0, 15.0, cached=0.3).of(Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=500_000))
        3.15
        """
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        fresh = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
        parts = (
            (fresh, self.input),
            (usage.cached_tokens, cached),
            (usage.cache_write_tokens, written),
            (usage.output_tokens, self.output),
        )
        return sum(tokens * price for tokens, price in parts) / _MILLION


_PRICE: Final = or_none(number("0 or more", above=-1e-9))


def _is_price(price: Any) -> bool:
    return isinstance(price, Price) and None not in price[:2] and all(map(_PRICE.holds, price))


def _are_prices(prices: Any) -> bool:
    return isinstance(prices, Mapping) and all(map(_is_price, prices.values()))


_BUDGET: Final[Bounds] = {
    "tokens": or_none(whole(1), "for no bound"),
    "cost": or_none(number("more than 0", above=0), "for no bound"),
    "seconds": or_none(SECONDS, "for no bound"),
    "tool_calls": or_none(whole(1), "for no bound"),
    "prices": Bound(_are_prices, "prices by model: {'openai:gpt-5': Price(1.25, 10)}"),
}


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run, its sub-agents included, may spend at most. None sets no bound.

    Tokens and cost are known when a response is over: the one that crosses the bound is the last one, and its calls are
    still answered. Time ends a run at once: tools at work are cancelled. Calls beyond their bound are not run.

    Args:
        tokens: input and output tokens of all responses together; 1 or more.
        cost: in the currency of `prices`; more than 0.
        seconds: wall clock; more than 0.
        tool_calls: calls that are run; 1 or more.
        prices: by model string, such as `openai:gpt-5`, or by what follows its colon. Needed with `cost`.

    Raises:
        ConfigError: a bound out of its range, `cost` without `prices`, or something else than a `Price` among them.
    """

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    tool_calls: int | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse("Budget", {name: getattr(self, name) for name in _BUDGET}, _BUDGET)
        if self.cost is not None and not self.prices:
            raise ConfigError("Budget(cost=…) needs the prices: Budget(cost=1.0, prices={'openai:gpt-5': Price(…)})")

    def price(self, model: str) -> Price | None:
        """The price of a model; None where no cost is bounded.

        Raises:
            ConfigError: the cost is bounded, and the model has no price.
        """
        price = self.prices.get(model) or self.prices.get(model.partition(":")[2])
        if price is None and self.cost is not None:
            raise ConfigError(f"Budget(cost=…) has no price for {model!r}; it has {', '.join(self.prices)}")
        return price


UNBOUNDED: Final = Budget()
"""The budget of a run that was given none."""


class Spending:
    """What was spent of a budget. A sub-agent's run spends from its parent's as well as from its own.

    Args:
        budget: the bounds.
        parent: what the calling run spends.
    """

    def __init__(self, budget: Budget, parent: Spending | None = None) -> None:
        self.budget = budget
        self.parent = parent
        self.tokens = 0
        self.cost = 0.0
        self.tool_calls = 0
        self._since = monotonic()

    def response(self, model: str, usage: Usage) -> None:
        """A response is over."""
        self.tokens += usage.input_tokens + usage.output_tokens
        if price := self.budget.price(model):
            self.cost += price.of(usage)
        if self.parent is not None:
            self.parent.response(model, usage)

    def calls(self, number: int) -> None:
        """Calls were run."""
        self.tool_calls += number
        if self.parent is not None:
            self.parent.calls(number)

    @property
    def exhausted(self) -> Exhausted | None:
        """The first bound that is reached; None while all hold."""
        budget = self.budget
        if budget is UNBOUNDED:
            return self.parent.exhausted if self.parent is not None else None
        spent: tuple[tuple[Exhausted, float | None, float], ...] = (
            ("token_budget", budget.tokens, self.tokens),
            ("cost_budget", budget.cost, self.cost),
            ("call_budget", budget.tool_calls, self.tool_calls),
            ("time_budget", budget.seconds, monotonic() - self._since),
        )
        own = next((name for name, bound, value in spent if bound is not None and value >= bound), None)
        return own or (self.parent.exhausted if self.parent is not None else None)

    @property
    def calls_left(self) -> int | None:
        """How many calls may still be run; None without a bound."""
        bound = self.budget.tool_calls
        own = None if bound is None else max(bound - self.tool_calls, 0)
        above = self.parent.calls_left if self.parent is not None else None
        return min((left for left in (own, above) if left is not None), default=None)

    @property
    def seconds_left(self) -> float | None:
        """How much time is left of this budget; None without a bound. A parent's own clock ends its sub-agents."""
        return None if self.budget.seconds is None else self.budget.seconds - (monotonic() - self._since)


class Repeats:
    """Finds a run that goes round in circles: the same call with the same answer, over and over, with none between.

    Args:
        limit: how often in a row; 2 or more. None finds nothing.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._last: tuple[str, object, object] | None = None
        self._count = 0

    def see_all(self, answered: Iterable[tuple[ToolCall, ToolMessage]]) -> bool:
        """Count the calls of a response. Returns whether the limit is reached."""
        if self.limit is None:
            return False
        most = 0
        for call, answer in answered:
            this = (call.name, call.arguments, answer.content)
            self._count = self._count + 1 if this == self._last else 1
            self._last = this
            most = max(most, self._count)
        return most >= self.limit
