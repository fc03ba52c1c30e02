"""What a run may spend, and whether it goes round in circles. Pure; what was spent is in `spending`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from agentkit.checks.bounds import SECONDS, Bound, Bounds, number, or_none, refuse, whole
from agentkit.checks.spelling import takes
from agentkit.errors import ConfigError
from agentkit.events import Usage
from agentkit.foreign.elsewhere import at
from agentkit.messages import ToolCall, ToolMessage

_MILLION = 1_000_000


REPLY_TOKENS: Final = 32_000
"""Set aside for a reply whose request names no `max_tokens`: what most models write at most."""


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


@takes(others=at("Budget"))
@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may spend at most, its sub-agents and the summaries of its thread included. None sets no bound.

    Calls never exceed their bound: each is counted before it starts, and those beyond are answered with an error.

    What a response costs is known when it is over. So much is therefore set aside before it is asked for: its prompt,
    by estimate, and `max_tokens` of reply, or `REPLY_TOKENS` where none are named. A request is made only while what
    was spent and what is set aside for others under way stay below the bound; else it waits for those. So the bound is
    exceeded by less than what one response costs, however many sub-agents work at once (as long as no other response
    costs more than was set aside for it). The response that crosses the bound is the last one; its calls are still
    answered. What a model does not tell of its usage is estimated.

    Time ends a run at once: tools at work are cancelled.

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
