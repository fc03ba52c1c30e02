"""Five hundred tools as plain functions, for the programs named `many_tools_TOOLKIT`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final


def _report(number: int) -> Callable[..., str]:
    def run(year: int) -> str:
        return f"report {number} of {year}"

    run.__name__ = f"report_{number}"
    run.__doc__ = f"Create report {number}."
    return run


def weather(city: str) -> str:
    """Look up the weather in a city."""
    return f"sunny in {city}"


TOOLS: Final[list[Any]] = [*map(_report, range(499)), weather]
