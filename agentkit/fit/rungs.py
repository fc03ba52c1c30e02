"""The course of it: all modes try the first tasks, and only those within reach of the best try the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from agentkit.checks.bounds import TEXT, each, lacking, or_none, refuse, whole
from agentkit.checks.spelling import takes
from agentkit.errors import AgentkitError, ConfigError, ProviderError
from agentkit.fit.calling_modes import CallingMode, modes_for
from agentkit.fit.fit_report import FitReport, FitRow, rank
from agentkit.fit.own_tasks import own_tasks
from agentkit.fit.plain_tasks import TASKS, FitTask
from agentkit.fit.trial import Trial, failure_outcome
from agentkit.models import Model, TextCalling, check_constraint, model
from agentkit.models.servers import SERVERS
from agentkit.tool import ToolRegistry

FIRST: Final = 4
"""Tasks of the first rung, and half as many of the user's tools."""
LESS: Final = 1
"""A mode that has no more than this right less than the best is still within reach."""
KEPT: Final = 4
"""The most modes that try all tasks."""


class FitProgress(NamedTuple):
    """How far it is.

    Attributes:
        mode: the mode that is tried.
        task: the task that is tried.
        done: how many tasks were tried, in all modes.
        total: how many there are, as far as is known.
        rows: what was found so far.
    """

    mode: CallingMode
    task: str
    done: int
    total: int
    rows: tuple[FitRow, ...] = ()


class _Asked(NamedTuple):
    """The model as it is to be tried.

    Attributes:
        model: a model string, or an object that calls natively.
        settings: what `model(…)` gets of it: server, URL, key.
        own: the user's tools.
        temperature: None for the model's own.
        max_tokens: of one reply.
    """

    model: str | Model
    settings: dict[str, Any]
    own: ToolRegistry
    temperature: float | None
    max_tokens: int

    def trial(self, mode: CallingMode) -> Trial:
        """The model in one mode.

        Raises:
            ConfigError: the format has no grammar, or the server takes none.
        """
        made: Model
        if isinstance(self.model, str):
            made = model(self.model, format=mode.format, constrained=mode.constrained, **self.settings)
        elif mode.format is None:
            made = self.model
        else:
            made = TextCalling(self.model, mode.format, constrained=mode.constrained)
        return Trial(made, self.own, temperature=self.temperature, max_tokens=self.max_tokens)


_BOUNDS: Final = {"modes": or_none(each(TEXT, "a list of modes")), "tasks": whole(1), "max_tokens": whole(1)}


@takes()
async def fit(
    model: str | Model,
    tools: Any = (),
    *,
    base_url: str | None = None,
    server: str | None = None,
    api_key_env: str | None = None,
    modes: Sequence[str] | None = None,
    tasks: int = len(TASKS),
    temperature: float | None = None,
    max_tokens: int = 512,
    watch: Callable[[FitProgress], None] = lambda progress: None,
) -> FitReport:
    """Try the ways of calling tools on a model, and recommend one.

    All modes try the first four tasks. Those that have at most one right less than the best, and at most four of them,
    try the others. A mode stops as soon as it can no longer be among these, or the best. One request at a time.

    Args:
        model: a model string, such as `openai:qwen3`; or a model object that calls natively.
        tools: the user's own tools, as `Agent` takes them. For each, up to twelve, there is one more task. They are
            never run: only their calls are judged.
        base_url: of the server.
        server: its kind, see `model(…)`. If it accepts grammars, constrained modes are also tried.
        api_key_env: the environment variable with the key; None for the provider's own.
        modes: `native`, formats, and formats with `+c`, constrained by a grammar; None for those that suit the model.
        tasks: how many of the twelve tasks to try, from 1.
        temperature: None is 0 on a server with a `base_url`, and otherwise the model's own, since some providers refuse
            any other.
        max_tokens: of one reply. No task needs 200; a model that thinks long needs more.
        watch: called before each task.

    Raises:
        ConfigError: an argument is wrong, or the key is missing.
        ProviderError: the server cannot be reached, or does not have the model.

    >>> import asyncio
    >>> from agentkit.testing import ScriptedModel
    >>> report = asyncio.run(fit(ScriptedModel(lambda request: "Paris"), modes=["native", "xml"]))
    >>> [(str(row.mode), row.right, row.tasks_tried) for row in report.rows]
    [('native', 1, 12), ('xml', 1, 12)]
    """
    refuse("fit", {"modes": modes, "tasks": tasks, "max_tokens": max_tokens}, _BOUNDS)
    settings = {"base_url": base_url, "server": server, "api_key": _key(api_key_env)}
    is_object = not isinstance(model, str)
    if is_object:
        _refuse_object(model, {"base_url": base_url, "server": server, "api_key_env": api_key_env})
    name = model if isinstance(model, str) else model.name
    named = server if not is_object else getattr(model, "server", None)
    own = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
    if temperature is None and base_url is not None:
        temperature = 0.0
    asked = _Asked(model, settings, own, temperature, max_tokens)
    chosen = _modes(modes, name, named)
    ladder = Ladder(asked, TASKS[:tasks], own_tasks(own), watch)
    try:
        rows = await ladder.climb(chosen)
    finally:
        await ladder.aclose()
    return FitReport(name, rank(rows), ladder.tasks, base_url, server, api_key_env, is_object, temperature)


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    if not (key := os.environ.get(variable)):
        raise ConfigError(f"fit(api_key_env={variable!r}): this environment variable is not set")
    return key


def _refuse_object(model: Any, given: dict[str, str | None]) -> None:
    if lacks := lacking(model, Model):
        raise ConfigError(f"fit(model): expected a model string or a model, found one without {', '.join(lacks)}")
    if model.format is not None:
        raise ConfigError(f"fit(model): {model.name} already calls in {model.format}: pass the model without a format")
    if extra := [name for name, value in given.items() if value is not None]:
        raise ConfigError(f"fit(model, {extra[0]}=…): a model object has its own; pass a model string with it")


def _modes(names: Sequence[str] | None, model: str, server: str | None) -> tuple[CallingMode, ...]:
    takers = [name for name, one in SERVERS.items() if not isinstance(one.grammar, str)]
    if names is None:
        return modes_for(model.partition(":")[2] or model, grammars=server in takers)
    modes = tuple(dict.fromkeys(map(CallingMode.from_name, names)))
    held = next((mode for mode in modes if mode.constrained), None)
    if held is not None and server not in takers:
        raise ConfigError(f"mode {held}: name a server that accepts grammars: {', '.join(takers)}")
    return modes


class Ladder:
    """Modes on their way through the tasks.

    Args:
        asked: the model.
        plain: the tasks with harmless tools.
        own: the tasks with the user's.
        watch: called for each task.
    """

    def __init__(
        self, asked: _Asked, plain: Sequence[FitTask], own: Sequence[FitTask], watch: Callable[[FitProgress], None]
    ) -> None:
        self._asked = asked
        self._first = [*plain[:FIRST], *own[: FIRST // 2]]
        self._rest = [*plain[FIRST:], *own[FIRST // 2 :]]
        self.tasks = len(plain) + len(own)
        self._watch = watch
        self._done = self._total = 0
        self._trials: dict[CallingMode, Trial] = {}
        self._rows: dict[CallingMode, FitRow] = {}
        self._answered = False  # whether the server ever did

    async def climb(self, modes: Sequence[CallingMode]) -> tuple[FitRow, ...]:
        """Try all modes; returns a row for each.

        Raises:
            ProviderError: no reply ever came.
        """
        self._total = len(modes) * len(self._first) + min(KEPT, len(modes)) * len(self._rest)
        for mode in modes:
            most = max((row.right for row in self._rows.values()), default=0)
            await self._try(FitRow(mode), self._first, most - LESS)
        near = _within_reach(tuple(self._rows.values()))
        for row in self._rows.values():
            if row not in near and not row.error:
                self._rows[row.mode] = replace(row, left_out=row.left_out + len(self._rest))
        self._total = self._done + len(near) * len(self._rest)
        most = 0
        for row in near:
            most = max(most, await self._try(row, self._rest, most))
        return tuple(self._rows.values())

    async def aclose(self) -> None:
        """Close the connections of the models that were made for it."""
        for trial in self._trials.values():
            if isinstance(self._asked.model, str) and hasattr(trial.model, "aclose"):
                await trial.model.aclose()

    async def _try(self, row: FitRow, tasks: Sequence[FitTask], least: int) -> int:
        """Try these tasks in one mode, until it could no longer get `least` right; returns how many it got right."""
        for number, task in enumerate(tasks):
            left = len(tasks) - number
            if row.error or row.right + left < least:
                self._total -= left
                row = row if row.error else replace(row, left_out=left)
                break
            self._watch(FitProgress(row.mode, task.name, self._done, self._total, tuple(self._rows.values())))
            row = self._rows[row.mode] = await self._after(row, task)
            self._done += 1
        self._rows[row.mode] = row
        return row.right

    async def _after(self, row: FitRow, task: FitTask) -> FitRow:
        """The row after one task."""
        try:
            trial = await self._trial(row.mode)
            outcome = await trial.outcome(task)
        except ProviderError as e:
            if not self._answered and e.kind != "bad_request":
                raise
            if not row.outcomes and e.kind in ("bad_request", "stream"):
                return replace(row, error=str(e))
            outcome = failure_outcome(task, e)
        except AgentkitError as e:
            return replace(row, error=str(e))
        self._answered = True
        return replace(row, outcomes=(*row.outcomes, outcome))

    async def _trial(self, mode: CallingMode) -> Trial:
        if mode not in self._trials:
            trial = self._asked.trial(mode)
            if mode.constrained:
                await check_constraint(trial.model)
            self._trials[mode] = trial
        return self._trials[mode]


def _within_reach(rows: Sequence[FitRow]) -> list[FitRow]:
    """The modes that may still be the best, the best of them first."""
    usable = [row for row in rows if not row.error]
    most = max((row.right for row in usable), default=0)
    near = [row for row in usable if row.right >= most - LESS and not row.left_out]
    return sorted(near, key=lambda row: (-row.right, row.tokens))[:KEPT]
