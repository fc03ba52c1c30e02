"""Figures of a rollout by tool, in little memory: no record is kept, and no list that grows with the records.

Counts and sums are exact; times and rewards are kept as a `Distribution`. Two `Measures`, such as those of two workers,
can be merged. The same figures are given under three kinds of names:

| names | source |
|---|---|
| `val/tool_{name}_call_rate`, `…_total_calls`, `…_calls_per_sample` | open-instruct's document on its tools |
| `tools/{name}/avg_calls_per_rollout`, `…/failure_rate`, `…/avg_runtime`; `tools/aggregate/…` | open-instruct today |
| `num_turns/…`, `tool_call_counts/…`, `agent_loop/{generate_sequences,tool_calls,slowest}/…` | verl |
| `rollout/…`, `rollout/{name}/…` | agentkit: all the rest |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from agentkit.checks.unicode import escape_controls
from agentkit.rollout.records.distribution import Distribution
from agentkit.rollout.records.record import CallRecord, TrajectoryRecord

UNKNOWN: Final = "(unknown tool)"
"""Calls of tools that do not exist are counted together: a model can invent any number of names."""

MAX_TOOLS: Final = 1_000
"""Further tools are counted together, as `OTHERS`: a file of records may have been written by anyone."""

UNREAD: Final = ("invalid_json", "truncated_call", "ambiguous_call")
"""The errors of calls that could not be read."""

OTHERS: Final = "(other tools)"
MAX_METRICS: Final = 50
"""Of a tool's own metrics, the first that many are kept."""


@dataclass(slots=True)
class ToolMeasures:
    """One tool in all trajectories so far.

    Args:
        calls: how often it was called, failures included.
        trajectories: how many trajectories called it.
        failures: failed calls by the error's code.
        queued: seconds from the end of the generation to the start of the tool, of the calls that ran.
        ran: seconds that the tool ran, of the calls that ran.
        rewards: its rewards for single calls.
        final_rewards: what its `calc_reward` gave.
        metrics: its own metrics that are numbers.
    """

    calls: int = 0
    trajectories: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    queued: Distribution = field(default_factory=Distribution)
    ran: Distribution = field(default_factory=Distribution)
    rewards: Distribution = field(default_factory=Distribution)
    final_rewards: Distribution = field(default_factory=Distribution)
    metrics: dict[str, Distribution] = field(default_factory=dict)

    @property
    def failed_calls(self) -> int:
        """The number of calls that failed."""
        return self.failures.total()

    @property
    def timeouts(self) -> int:
        """The number of calls that took too long."""
        return self.failures["timeout"]

    def add(self, call: CallRecord) -> None:
        """Count one call."""
        self.calls += 1
        if call.error is not None:
            self.failures[call.error] += 1
        if call.ran > 0:  # it was started
            self.queued.add(call.queued)
            self.ran.add(call.ran)
        if call.reward is not None:
            self.rewards.add(call.reward)
        for name, value in call.metrics.items():
            if isinstance(value, (int, float)) and (name in self.metrics or len(self.metrics) < MAX_METRICS):
                self.metrics.setdefault(name, Distribution()).add(value)

    def merge(self, other: ToolMeasures) -> None:
        """Count all that another one counted."""
        self.calls += other.calls
        self.trajectories += other.trajectories
        self.failures.update(other.failures)
        for name in ("queued", "ran", "rewards", "final_rewards"):
            getattr(self, name).merge(getattr(other, name))
        for name, values in other.metrics.items():
            if name in self.metrics or len(self.metrics) < MAX_METRICS:
                self.metrics.setdefault(name, Distribution()).merge(values)


@dataclass(frozen=True, slots=True)
class Slowest:
    """The trajectory that spent the most time generating and waiting for tools."""

    generating: float = -1.0
    waiting: float = 0.0
    prompt_length: int = 0
    response_length: int = 0


class Measures:
    """The figures of a rollout, record by record.

    Args:
        tools: the names of the tools, so that those that are never called are also listed.

    Example:
        ```python
        measures = Measures(rollout.tools)
        async for record in rollout.stream(samples):
            measures.add(record)
        print(measures)
        wandb.log(measures.metrics())
        ```
    """

    def __init__(self, tools: Iterable[str] = ()) -> None:
        self.tools: dict[str, ToolMeasures] = {name: ToolMeasures() for name in tools}
        """By function name, in the order in which they were first seen."""
        self.trajectories = 0
        self.ends: Counter[str] = Counter()
        """Why they ended."""
        self.failed_rewards = 0
        """The number of rewards that could not be computed."""
        self.failed_releases = 0
        """The number of tool instances that could not be released."""
        self.rewards = Distribution()
        """The rewards of the trajectories that have not failed."""
        self.calls = Distribution()
        """Calls per trajectory."""
        self.turns = Distribution()
        """Turns per trajectory, as verl counts them: the prompt, each response, each turn of results."""
        self.seconds = Distribution()
        """Seconds per trajectory."""
        self.generating = Distribution()
        """Seconds per trajectory in the policy."""
        self.waiting = Distribution()
        """Seconds per trajectory that its turns waited for tools: those of each turn's longest call."""
        self.response_tokens = Distribution()
        """Tokens after the prompt, per trajectory; empty without a tokenizer."""
        self.own_tokens = Distribution()
        """Tokens after the prompt that the policy wrote itself."""
        self.slowest = Slowest()

    def add(self, record: TrajectoryRecord) -> None:
        """Count one trajectory."""
        self.trajectories += 1
        self.ends[record.end] += 1
        self.failed_rewards += len(record.unscored)
        self.failed_releases += len(record.unreleased)
        if not record.failed:
            self.rewards.add(record.reward)
        self.calls.add(len(record.calls))
        self.turns.add(turns_of(record))
        self.seconds.add(record.seconds)
        self.generating.add(record.generating)
        waiting = waiting_of(record)
        self.waiting.add(waiting)
        if record.tokens is not None:
            self.response_tokens.add(len(record.tokens.response_ids))
            self.own_tokens.add(sum(record.tokens.response_mask))
        if record.generating + waiting > self.slowest.generating + self.slowest.waiting:
            lengths = (0, 0) if (of := record.tokens) is None else (len(of.prompt_ids), len(of.response_ids))
            self.slowest = Slowest(record.generating, waiting, *lengths)
        self._add_tools(record)

    def _add_tools(self, record: TrajectoryRecord) -> None:
        called = set()
        for call in record.calls:
            name = UNKNOWN if call.error == "unknown_tool" else call.name
            tool = self._tool(name)
            tool.add(call)
            if id(tool) not in called:
                called.add(id(tool))
                tool.trajectories += 1
        for name, reward in record.final_rewards.items():
            self._tool(name).final_rewards.add(reward)

    def _tool(self, name: str) -> ToolMeasures:
        if name not in self.tools and len(self.tools) >= MAX_TOOLS:
            name = OTHERS
        return self.tools.setdefault(name, ToolMeasures())

    @property
    def failures(self) -> Counter[str]:
        """The failed calls of all tools by the error's code."""
        return sum((tool.failures for tool in self.tools.values()), Counter[str]())

    @property
    def unread_calls(self) -> int:
        """The number of calls that could not be read."""
        return sum(self.failures[code] for code in UNREAD)

    def merge(self, other: Measures) -> None:
        """Count all trajectories that another one counted."""
        self.trajectories += other.trajectories
        self.ends.update(other.ends)
        self.failed_rewards += other.failed_rewards
        self.failed_releases += other.failed_releases
        for name in ("rewards", "calls", "turns", "seconds", "generating", "waiting", "response_tokens", "own_tokens"):
            getattr(self, name).merge(getattr(other, name))
        self.slowest = max(self.slowest, other.slowest, key=lambda s: s.generating + s.waiting)
        for name, tool in other.tools.items():
            self._tool(name).merge(tool)

    # ---------------------------------------------------------------- names

    def metrics(self) -> dict[str, float]:
        """All figures by name, for a logger; empty before the first trajectory."""
        if not self.trajectories:
            return {}
        return dict([*self._open_instruct(), *self._verl(), *self._own()])

    def _known(self) -> Iterator[tuple[str, ToolMeasures]]:
        return ((name, tool) for name, tool in self.tools.items() if name != UNKNOWN)

    def _open_instruct(self) -> Iterator[tuple[str, float]]:
        n = self.trajectories
        calls = failed = runtime = 0.0
        for name, tool in self._known():
            yield f"val/tool_{name}_call_rate", tool.trajectories / n
            yield f"val/tool_{name}_total_calls", tool.calls
            yield f"val/tool_{name}_calls_per_sample", tool.calls / n
            yield from _of_calls(f"tools/{name}", n, tool.calls, tool.failed_calls, tool.ran.total)
            calls, failed, runtime = calls + tool.calls, failed + tool.failed_calls, runtime + tool.ran.total
        yield from _of_calls("tools/aggregate", n, calls, failed, runtime)

    def _verl(self) -> Iterator[tuple[str, float]]:
        yield from _spread("num_turns", self.turns)
        yield from _spread("tool_call_counts", self.calls)
        yield from _spread("agent_loop/generate_sequences", self.generating)
        yield from _spread("agent_loop/tool_calls", self.waiting)
        yield "agent_loop/slowest/generate_sequences", self.slowest.generating
        yield "agent_loop/slowest/tool_calls", self.slowest.waiting
        if self.response_tokens.count:
            yield "agent_loop/slowest/prompt_length", self.slowest.prompt_length
            yield "agent_loop/slowest/response_length", self.slowest.response_length

    def _own(self) -> Iterator[tuple[str, float]]:
        yield "rollout/trajectories", self.trajectories
        yield "rollout/unread_calls", self.unread_calls
        yield "rollout/unscored", self.failed_rewards
        yield "rollout/unreleased", self.failed_releases
        yield from _spread("rollout/reward", self.rewards)
        yield from _spread("rollout/seconds", self.seconds)
        yield from _spread("rollout/own_tokens", self.own_tokens)
        for end, count in self.ends.items():
            yield f"rollout/end/{end}", count
        if UNKNOWN in self.tools:
            yield "rollout/unknown_tool_calls", self.tools[UNKNOWN].calls
        for name, tool in self._known():
            yield from _of_tool(f"rollout/{name}", tool)

    # ---------------------------------------------------------------- text

    def __str__(self) -> str:
        """The figures as lines for a person."""
        return "\n".join([*self.summary(), *(["", *_aligned(self.figures())] if self.tools else [])])

    def summary(self) -> list[str]:
        """The figures of all trajectories as lines for a person; what needs attention is in capitals."""
        ends = ", ".join(f"{end} {count}" for end, count in self.ends.most_common())
        lines = [f"{_counted(self.trajectories, 'trajectory', 'trajectories')}{': ' if ends else ''}{ends}"]
        if self.rewards.count:
            r = self.rewards
            lines.append(
                f"reward: mean {r.mean:.4g}, min {r.lowest:.4g}, p50 {r.quantile(0.5):.4g}, max {r.highest:.4g}"
            )
        if unread := self.unread_calls:
            lines.append(
                f"NO CALL WAS READ: {_counted(unread, 'call', 'calls')} cannot be; are they in another format?"
                if unread == self.calls.total
                else f"unread calls: {unread:,}"
            )
        if self.failed_rewards:
            lines.append(f"NOT SCORED: {_counted(self.failed_rewards, 'reward', 'rewards')}")
        if self.failed_releases:
            lines.append(f"NOT RELEASED: {_counted(self.failed_releases, 'tool instance', 'tool instances')}")
        return lines

    def figures(self) -> list[tuple[str, ...]]:
        """The figures of each tool, one column for each, under their names; one row for each figure that any has."""
        whole: list[tuple[str, ...]] = [*zip(TABLE_HEAD[:-1], *(row[:-1] for row in self.rows()), strict=True)]
        by_figure = [row for row in whole if set(row[1:]) != {"-"}]
        for code, _ in self.failures.most_common():
            by_figure.append((f"failed: {code}", *(f"{tool.failures[code]:,}" for tool in self.tools.values())))
        return by_figure

    def rows(self) -> list[tuple[str, ...]]:
        """The figures of each tool: one row for each, under `TABLE_HEAD`."""
        return [_row(name, tool, self.trajectories) for name, tool in self.tools.items()]


TABLE_HEAD: Final = (
    "tool", "calls", "call rate", "per sample", "failed", "timeouts",
    "queue p50", "queue p99", "run p50", "run p99", "reward sum", "reward mean", "final mean", "failures by kind",
)  # fmt: skip


def turns_of(record: TrajectoryRecord) -> int:
    """The turns of a trajectory as verl counts them: the prompt, each response, and each turn of results."""
    return 1 + record.assistant_turns + len({call.turn for call in record.calls})


def waiting_of(record: TrajectoryRecord) -> float:
    """The seconds that a trajectory waited for its tools: in each turn, until the last of them ended."""
    by_turn = groupby(record.calls, key=lambda call: call.turn)
    return sum(max(call.queued + call.ran for call in calls) for _, calls in by_turn)


def verl_fields(record: TrajectoryRecord) -> dict[str, Any]:
    """Return the fields that verl's agent loop reports of one trajectory, under verl's names."""
    return {
        "num_turns": turns_of(record),
        "metrics": {"generate_sequences": record.generating, "tool_calls": waiting_of(record)},
        "extra_fields": {
            "turn_scores": [],  # those of verl's interactions
            "tool_rewards": [call.reward for call in record.calls if call.reward is not None],
        },
    }


def _of_calls(prefix: str, rollouts: int, calls: float, failed: float, runtime: float) -> Iterator[tuple[str, float]]:
    yield f"{prefix}/avg_calls_per_rollout", calls / rollouts
    yield f"{prefix}/failure_rate", failed / calls if calls else 0.0
    yield f"{prefix}/avg_runtime", runtime / calls if calls else 0.0


def _spread(prefix: str, of: Distribution) -> Iterator[tuple[str, float]]:
    if of.count:
        yield f"{prefix}/min", of.lowest
        yield f"{prefix}/max", of.highest
        yield f"{prefix}/mean", of.mean


def _of_tool(prefix: str, tool: ToolMeasures) -> Iterator[tuple[str, float]]:
    yield f"{prefix}/calls", tool.calls
    yield f"{prefix}/timeouts", tool.timeouts
    for code, count in tool.failures.items():
        yield f"{prefix}/failures/{code}", count
    for name, times in (("queued", tool.queued), ("ran", tool.ran)):
        if times.count:
            yield f"{prefix}/{name}_p50", times.quantile(0.5)
            yield f"{prefix}/{name}_p99", times.quantile(0.99)
    for name, rewards in (("reward", tool.rewards), ("final_reward", tool.final_rewards)):
        if rewards.count:
            yield f"{prefix}/{name}_sum", rewards.total
            yield f"{prefix}/{name}_mean", rewards.mean
    for name, values in tool.metrics.items():
        yield f"{prefix}/metrics/{name}", values.mean


def _row(name: str, tool: ToolMeasures, trajectories: int) -> tuple[str, ...]:
    failures = ", ".join(f"{code} {count}" for code, count in tool.failures.most_common())
    return (
        escape_controls(" ".join(name.split()))[:60],
        f"{tool.calls:,}",
        f"{100 * tool.trajectories / max(trajectories, 1):.1f} %",
        f"{tool.calls / max(trajectories, 1):.2f}",
        f"{tool.failed_calls:,}" + (f" ({100 * tool.failed_calls / tool.calls:.0f} %)" if tool.failed_calls else ""),
        f"{tool.timeouts:,}",
        *(
            duration(times.quantile(q)) if times.count else "-"
            for times in (tool.queued, tool.ran)
            for q in (0.5, 0.99)
        ),
        f"{tool.rewards.total:.4g}" if tool.rewards.count else "-",
        f"{tool.rewards.mean:.4g}" if tool.rewards.count else "-",
        f"{tool.final_rewards.mean:.4g}" if tool.final_rewards.count else "-",
        failures,
    )


def duration(seconds: float) -> str:
    """A time for a person.

    >>> [duration(s) for s in (0.0000042, 0.0123, 4.56, 123, 7300)]
    ['4.2 µs', '12 ms', '4.6 s', '123 s', '2.0 h']
    """
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            value = seconds / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return "0 s" if seconds < 5e-8 else f"{seconds * 1e6:.1f} µs"


def _counted(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows as text: the first column to the left, the others to the right."""
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [
        "  ".join([row[0].ljust(first), *(cell.rjust(width) for cell, width in zip(row[1:], others, strict=True))])
        for row in rows
    ]
