"""The report of a measurement: a row for each mode, the best of them, and the lines that use it. Values only."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any, Final

from agentkit.checks.keys import shown_url
from agentkit.fit.calling_modes import CallingMode
from agentkit.fit.trial import TaskOutcome

_Z: Final = 1.96  # 95 % of a normal distribution


@dataclass(frozen=True, slots=True)
class FitRow:
    """One mode.

    Args:
        mode: how the model called.
        outcomes: of the tasks that were tried, in their order.
        error: why the mode cannot be used; empty if it can.
        left_out: how many tasks were left out, because the mode could no longer be the best.
    """

    mode: CallingMode
    outcomes: tuple[TaskOutcome, ...] = ()
    error: str = ""
    left_out: int = 0

    @property
    def tasks_tried(self) -> int:
        """How many tasks were tried."""
        return len(self.outcomes)

    @property
    def right(self) -> int:
        """How many of them were done right."""
        return sum(one.right for one in self.outcomes)

    @property
    def likely(self) -> tuple[float, float]:
        """The 95 % confidence interval of the fraction of right tasks, by Wilson."""
        if not self.outcomes:
            return 0.0, 1.0
        n = self.tasks_tried
        share = self.right / n
        middle = share + _Z * _Z / (2 * n)
        around = _Z * sqrt(share * (1 - share) / n + _Z * _Z / (4 * n * n))
        scale = 1 + _Z * _Z / n
        return max(0.0, (middle - around) / scale), min(1.0, (middle + around) / scale)

    @property
    def invented_results(self) -> int:
        """Results that the model wrote itself."""
        return sum(one.invented for one in self.outcomes)

    @property
    def unread(self) -> int:
        """Calls that could not be read."""
        return sum(one.unread for one in self.outcomes)

    @property
    def empty(self) -> int:
        """Tasks that ended with an empty reply."""
        return sum(one.empty for one in self.outcomes)

    @property
    def tokens(self) -> float:
        """Tokens in and out per task."""
        return sum(one.input_tokens + one.output_tokens for one in self.outcomes) / max(self.tasks_tried, 1)

    @property
    def seconds(self) -> float:
        """Seconds per task."""
        return sum(one.seconds for one in self.outcomes) / max(self.tasks_tried, 1)


@dataclass(frozen=True, slots=True)
class FitReport:
    """The result of `fit`.

    Args:
        model: the model string, or an object's name.
        rows: the modes, the best first.
        tasks: how many tasks there were.
        base_url: of the server; None for the provider's own.
        server: its kind, if it was named.
        api_key_env: the environment variable with the key; None for the provider's own.
        is_object: whether a model object was passed, and not a string.
        temperature: of the requests; None for the model's own.
    """

    model: str
    rows: tuple[FitRow, ...]
    tasks: int
    base_url: str | None = None
    server: str | None = None
    api_key_env: str | None = None
    is_object: bool = False
    temperature: float | None = None

    @property
    def best(self) -> FitRow | None:
        """The mode to use: most tasks right, and of equal ones fewest tokens; None if none was right."""
        first = self.rows[0] if self.rows else None
        return first if first is not None and first.right else None

    @property
    def python(self) -> str:
        """The line of Python that creates the model with the best mode; empty if there is no best mode."""
        if self.best is None:
            return ""
        mode = self.best.mode
        constrained = ["constrained=True"] if mode.constrained else []
        if self.is_object and mode.format is None:
            return "model  # as it is"
        if self.is_object:
            return f"TextCalling({', '.join(['model', _quoted(str(mode.format)), *constrained])})"
        given = {"base_url": self._url, "format": mode.format, "server": self.server}
        words = [f"{name}={_quoted(value)}" for name, value in given.items() if value is not None]
        words += [f"api_key=os.environ[{_quoted(self.api_key_env)}]"] if self.api_key_env is not None else []
        words += [f"temperature={self.temperature}"] if self.temperature is not None else []
        words += constrained
        return f"model({', '.join([_quoted(self.model), *words])})"

    @property
    def command(self) -> str:
        """The command line that uses it; empty if there is none: an object has its own format."""
        if self.best is None or self.is_object:
            return ""
        mode = self.best.mode
        given = {
            "--model": self.model,
            "--base-url": self._url,
            "--server": self.server,
            "--format": mode.format,
            "--api-key-env": self.api_key_env,
            "--temperature": None if self.temperature is None else str(self.temperature),
        }
        words = [word for option, value in given.items() if value is not None for word in (option, value)]
        return shlex.join(["agentkit", "chat", *words, *(["--constrained"] if mode.constrained else [])])

    def as_dict(self) -> Mapping[str, Any]:
        """All of it as plain data, for JSON."""
        return {
            "model": self.model,
            "base_url": self._url,
            "server": self.server,
            "tasks": self.tasks,
            "best": None if self.best is None else str(self.best.mode),
            "python": self.python,
            "command": self.command,
            "modes": [_row(row) for row in self.rows],
        }

    @property
    def _url(self) -> str | None:
        return None if self.base_url is None else shown_url(self.base_url)


def rank(rows: tuple[FitRow, ...]) -> tuple[FitRow, ...]:
    """Sort rows, the best first: those that had all tasks by how many were right, then the others."""
    return tuple(sorted(rows, key=lambda r: (bool(r.error), r.left_out > 0, -r.right, r.tokens)))


def _row(row: FitRow) -> Mapping[str, Any]:
    low, high = row.likely
    return {
        "mode": str(row.mode),
        "format": row.mode.format,
        "constrained": row.mode.constrained,
        "right": row.right,
        "tried": row.tasks_tried,
        "left_out": row.left_out,
        "likely": [round(low, 3), round(high, 3)],
        "invented": row.invented_results,
        "unread": row.unread,
        "empty": row.empty,
        "tokens": round(row.tokens),
        "seconds": round(row.seconds, 2),
        "error": row.error,
        "outcomes": [asdict(one) for one in row.outcomes],
    }


def _quoted(text: str) -> str:
    """As Python's formatters write it."""
    return f'"{text}"' if text.isprintable() and '"' not in text and "\\" not in text else repr(text)
