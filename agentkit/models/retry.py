"""When a failed request is tried again. A pure policy: the caller supplies the waiting and the random numbers."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.errors import ProviderError


@dataclass(frozen=True, slots=True)
class Retry:
    """Exponential back-off with jitter, unless the provider says how long to wait.

    Args:
        times: further attempts after the first.
        first: seconds before the first of them, at most; doubled for each next one.
        longest: limit on that, in seconds.
        patience: the longest wait that a provider may request, in seconds. If it requests more, there is no retry:
            its error is raised immediately and has `retry_after`.
    """

    times: int = 2
    first: float = 1.0
    longest: float = 30.0
    patience: float = 60.0

    def wait(self, failures: int, error: ProviderError, dice: float) -> float | None:
        """Return the seconds to wait before the next attempt, after this many failed; None for no further attempt.

        The wait is between half of the back-off and all of it, as `dice` says, a random number from 0 to 1.
        """
        worth = error.retryable if error.advice is None else error.advice
        if failures > self.times or not worth:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.patience else None
        return min(self.longest, self.first * 2.0 ** (failures - 1)) * (1 + dice) / 2

    def gave_up(self, error: ProviderError, *, begun: bool) -> str:
        """Say why a temporary failure was not retried although `times` allows it; empty if there is nothing to say.

        A response of which a part has been passed on is not requested again: that part would come twice.
        """
        if not (error.retryable and self.times):
            return ""
        if begun:
            return "not retried, because a part of the response had already been passed on"
        long = error.retry_after is not None and error.retry_after > self.patience
        return f"not retried, because it asks to wait {error.retry_after:g} s" if long else ""
