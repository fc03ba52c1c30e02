"""What a response's output does to the calls beside it. A value; decides nothing on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentkit.tool.bound_tool import BoundTool


@dataclass(frozen=True, slots=True)
class OutputRule:
    """How a run's output is recognized, and what happens to the calls beside it.

    Args:
        tool: the tool whose call is the output; None if the text is.
        skips: whether the calls beside an output are not run. Otherwise they run, and it is no output.
        fits: whether a text is a value of the output's type.
    """

    tool: BoundTool | None
    skips: bool
    fits: Callable[[str], bool]
