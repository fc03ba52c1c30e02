"""Tests that hold a clock against a promise, on machines that others use too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")


def best_of_three(test: Callable[P, None]) -> Callable[P, None]:
    """A shared machine may be late once, or twice; what is late three times is slow."""

    @functools.wraps(test)
    def tried(*args: P.args, **kwargs: P.kwargs) -> None:
        for _ in range(2):
            try:
                return test(*args, **kwargs)
            except AssertionError:
                continue
        return test(*args, **kwargs)

    return tried
