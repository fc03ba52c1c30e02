"""The limits of a run, and whether it repeats itself. Pure; its expenses are in `run_budget`."""

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
"""Reserved for a reply whose request sets no `max_tokens`: the most that the majority of models write."""


class Price(NamedTuple):
    """The price of a model per million tokens, in the budget's currency.

    Attributes:
        input: prompt tokens.
        output: generated tokens, reasoning included.
        cached: prompt tokens read from a cache; by default the same as `input`.
        cache_write: prompt tokens written to a cache; by default the same as `input`.
    """

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None

    def of(self, usage: Usage) -> float:
        """Return the cost of this usage.

        >>> Price(3.0, 15.0, cached=0.3).of(Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=500_000))
        3.15
        """
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        fresh = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
        if usage.input_tokens >= 0:  # it is less in what a reservation gives back
            fresh = max(fresh, 0)
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
    "tokens": or_none(whole(1), "for no limit"),
    "cost": or_none(number("more than 0", above=0), "for no limit"),
    "seconds": or_none(SECONDS, "for no limit"),
    "tool_calls": or_none(whole(1), "for no limit"),
    "prices": Bound(_are_prices, "prices by model: {'openai:gpt-5': Price(1.25, 10)}"),
}


@takes(others=at("Budget"))
@dataclass(frozen=True, slots=True)
class Budget:
    """The most a run may spend, including its sub-agents and the summaries of its thread. None sets no limit.

    Calls never exceed their limit: each is counted before it starts, and any beyond it are answered with an error.

    What a response costs is known only when it is over. An estimate is therefore reserved before the request: the size
    of its prompt, and `max_tokens` of reply, or `REPLY_TOKENS` if it sets none. A request is made only while the amount
    spent and the amounts reserved for other requests stay below the limit; otherwise it waits for those. So the limit
    is exceeded by less than the cost of one response, regardless of how many sub-agents work concurrently (as long as
    no other response costs more than was reserved for it). The response that crosses the limit is the last one; its
    calls are still answered. Usage that a model does not report is estimated.

    The time limit ends a run immediately: running tools are cancelled.

    Args:
        tokens: input and output tokens of all responses together; 1 or more.
        cost: in the currency of `prices`; more than 0.
        seconds: wall clock time; more than 0.
        tool_calls: calls that are run; 1 or more.
        prices: prices by model string, such as `openai:gpt-5`, or by the part after its colon. Required with `cost`.

    Raises:
        ConfigError: a limit is out of range, `cost` is set without `prices`, or one of these is not a `Price`.
    """

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    tool_calls: int | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse("Budget", {name: getattr(self, name) for name in _BUDGET}, _BUDGET)
        if self.cost is not None and not self.prices:
            raise ConfigError("Budget(cost=…) requires prices: Budget(cost=1.0, prices={'openai:gpt-5': Price(…)})")

    def price(self, model: str) -> Price | None:
        """The price of a model; None if it has none and the cost is not limited.

        Raises:
            ConfigError: the cost is limited, and the model has no price.
        """
        price = self.prices.get(model) or self.prices.get(model.partition(":")[2])
        if price is None and self.cost is not None:
            raise ConfigError(f"Budget(cost=…) has no price for {model!r}; it has {', '.join(self.prices)}")
        return price


UNBOUNDED: Final = Budget()
"""The budget of a run without one."""


class Repeats:
    """Detects a run that repeats itself: the same call with the same answer again and again, with no other in between.

    Args:
        limit: how often in a row; 2 or more. None detects nothing.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._last: tuple[str, object, object] | None = None
        self._count = 0

    def see_all(self, answered: Iterable[tuple[ToolCall, ToolMessage]]) -> bool:
        """Count the calls of a response. Returns whether the limit is reached."""
        if self.limit is None:
            return False
        circles = False
        for call, answer in answered:
            this = (call.name, call.arguments, answer.content)
            self._count = self._count + 1 if this == self._last else 1
            self._last = this
            circles = circles or self._count >= self.limit
        return circles
