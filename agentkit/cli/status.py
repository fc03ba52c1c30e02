"""What a run is doing, as one line: a spinner, seconds, tokens. Knows time and counts; draws nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agentkit.events import Finish, Usage
from agentkit.models.tokens import text_tokens

FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PER_SECOND: Final = 10  # frames


class Status:
    """The state of one run.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.begin("")

    def begin(self, who: str) -> None:
        """A run begins.

        Args:
            who: the model's name.
        """
        self._who = who
        self._began = self._clock()
        self._spent = Usage()
        self._streamed = 0.0  # tokens of the response, as estimated
        self.waiting()

    def waiting(self) -> None:
        """The model is asked."""
        self._doing = f"waiting for {self._who}"

    def doing(self, what: str, name: str) -> None:
        """Something else is done.

        Args:
            what: such as `running`.
            name: such as a tool's.
        """
        self._doing = f"{what} {name}".strip()

    def streamed(self, what: str, text: str) -> None:
        """Some more of a response has come.

        Args:
            what: such as `writing`; empty to keep what is shown.
            text: what has come.
        """
        self._doing = what or self._doing
        self._streamed += text_tokens(text)

    def counted(self, event: Usage | Finish) -> None:
        """The provider has counted, or a response is over."""
        if isinstance(event, Usage):
            self._spent = self._spent.plus(event)
            self._streamed = 0.0

    def line(self) -> str:
        """The state, now."""
        seconds = self._clock() - self._began
        frame = FRAMES[int(seconds * PER_SECOND) % len(FRAMES)]
        parts = [f"{frame} {seconds:.0f} s", self._doing]
        out = self._spent.output_tokens + round(self._streamed)
        if self._spent.input_tokens:
            parts.append(f"{self._spent.input_tokens:,} tokens in")
        if out:
            unit = "out" if self._spent.input_tokens else f"token{'s' * (out != 1)} out"
            parts.append(f"{'~' if self._streamed else ''}{out:,} {unit}")
        return " · ".join(filter(None, parts))
