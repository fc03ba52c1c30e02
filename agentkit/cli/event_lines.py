"""The events of a run as lines of JSON, for programs. Knows events and results; runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from agentkit.agent.lifecycle import RunEnded
from agentkit.checks.unicode import clean_json
from agentkit.cli.screen import Screen
from agentkit.cli.terminal import as_json
from agentkit.events import Event, to_json

if TYPE_CHECKING:
    from agentkit.agent import RunResult


class EventLines(Screen):
    """Writes each event as one line of JSON to `lines`, all other text to `out`."""

    def __init__(self, lines: TextIO, out: TextIO) -> None:
        super().__init__(out)
        self._lines = lines

    def show(self, event: Event) -> None:
        """Write one event."""
        self._print_tool_output()
        self._json(to_json(event))

    def show_end(self, result: RunResult) -> None:
        """Write how the run ended: its finish, its text, its messages and its tokens."""
        self._json(to_json(RunEnded(result, None)))

    show_break = show_end

    def show_error(self, error: Exception) -> None:
        """Write an error, here and as a complaint."""
        self._json({"event": "error", "message": str(error)})
        super().show_error(error)

    def show_retry(self, why: str, seconds: float) -> None:
        """Write that a request is made again."""
        self._json({"event": "retry", "message": why, "seconds": seconds})

    def _json(self, line: Mapping[str, Any]) -> None:
        self._lines.write(as_json(clean_json(line)) + "\n")
        self._lines.flush()
