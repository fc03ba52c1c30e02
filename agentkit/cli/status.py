"""What a run is doing, as one line: a spinner, seconds, tokens. Knows time and counts; draws nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agentkit.events import Usage
from agentkit.models.tokens import text_tokens

FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PER_SECOND: Final = 10  # frames


class Status:
    """The state of one run.

    Args:
        clock: seconds.
        who: the model's name.
    """

    def __init__(self, clock: Callable[[], float], who: str) -> None:
        self._clock, self._who = clock, who
        self._began = clock()
        self._spent = Usage()
        self._streamed = 0.0  # tokens of the response, as estimated
        self.waiting()

    def waiting(self) -> None:
        """Say that the model is asked."""
        self.doing("waiting for", self._who)

    def doing(self, what: str, name: str) -> None:
        """Say that something else is done: such as `running`, and a tool's name."""
        self._doing = f"{what} {name}".strip()

    def streamed(self, what: str, text: str) -> None:
        """Count some more of a response; `what` is such as `writing`, or empty to keep what is shown."""
        self._doing = what or self._doing
        self._streamed += text_tokens(text)

    def counted(self, usage: Usage) -> None:
        """Take over what the provider has counted."""
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
