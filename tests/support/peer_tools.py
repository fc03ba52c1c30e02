"""The tools that are handed to other systems, and what became of their instances."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from agentkit import ToolResult, openapi_schema


class Adder:
    """Adds up; one for each trajectory."""

    created: ClassVar[list[int]] = []
    released: ClassVar[list[int]] = []

    def __init__(self, start: int = 0) -> None:
        self.total = start
        Adder.created.append(id(self))

    @openapi_schema
    async def add(self, n: int, unit: str = "apples") -> ToolResult:
        """Add to the total.

        Args:
            n: how many.
            unit: of what.
        """
        self.total += n
        return ToolResult(self.total, reward=0.5)

    @openapi_schema
    def total_of(self) -> int:
        """The total so far."""
        return self.total

    async def calc_reward(self) -> float:
        """The total."""
        return float(self.total)

    async def release(self) -> None:
        """Note it."""
        Adder.released.append(self.total)

    @classmethod
    def forget(cls) -> None:
        """Begin a new test."""
        cls.created, cls.released = [], []


@openapi_schema
def search(
    queries: list[str],
    limit: int = 3,
    kind: Literal["web", "news"] | None = None,
    where: dict[str, Any] | None = None,
) -> str:
    """Search.

    Args:
        queries: what to look for.
        limit: how many hits.
        kind: of what kind.
        where: filters.
    """
    return f"{queries} {limit} {kind} {where}"


@openapi_schema
async def fail(path: str) -> str:
    """Read a file."""
    raise FileNotFoundError(f"no such file: {path}")
