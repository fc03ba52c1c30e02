"""The state of a run in one line: how long it has taken, what it is doing, and its tokens. Pure but for the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agentkit.events import Usage
from agentkit.models.tokens import text_tokens

FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PER_SECOND: Final = 10  # frames


class RunStatus:
    """The state of one run of the model `who`."""

    def __init__(self, clock: Callable[[], float], who: str) -> None:
        self._clock, self._who = clock, who
        self._began = clock()
        self._spent = Usage()
        self._streamed = 0.0  # tokens of the response, as estimated
        self.waiting()

    def waiting(self) -> None:
        """Set the activity to waiting for the model."""
        self.doing("waiting for", self._who)

    def doing(self, what: str, name: str) -> None:
        """Set the activity: such as `running`, and a tool's name."""
        self._doing = f"{what} {name}".strip()

    def add_text(self, what: str, text: str) -> None:
        """Count some more of a response; `what` is such as `writing`, or empty to keep it."""
        self._doing = what or self._doing
        self._streamed += text_tokens(text)

    def add_usage(self, usage: Usage) -> None:
        """Take over the provider's count."""
        self._spent = self._spent.plus(usage)
        self._streamed = 0.0

    def line(self) -> str:
        """Write the state, now."""
        seconds = self._clock() - self._began
        parts = [f"{FRAMES[int(seconds * PER_SECOND) % len(FRAMES)]} {seconds:.0f} s", self._doing]
        out = self._spent.output_tokens + round(self._streamed)
        if self._spent.input_tokens:
            parts.append(f"{self._spent.input_tokens:,} tokens in")
        if out:
            unit = "out" if self._spent.input_tokens else f"token{'s' * (out != 1)} out"
            parts.append(f"{'~' if self._streamed else ''}{out:,} {unit}")
        return " · ".join(filter(None, parts))
