"""Jobs for another thread, and the path of their answers back to the waiting event loops. Knows no SQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.threads.sql.operations import Steps

Answer = tuple["asyncio.Future[Any]", Any, BaseException | None]


@dataclass(frozen=True, slots=True)
class Job:
    """One operation, and the recipient of its answer. Without steps: the end, after all earlier jobs."""

    steps: Callable[[], Steps[Any]] | None
    loop: asyncio.AbstractEventLoop | None
    future: asyncio.Future[Any] | None


def answer(group: Sequence[Job], answers: Sequence[tuple[Any, BaseException | None]]) -> None:
    """Send each loop all its answers together: waking a loop costs more than a statement."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Answer]] = {}
    for job, (result, error) in zip(group, answers, strict=True):
        if job.loop is not None and job.future is not None:
            by_loop.setdefault(job.loop, []).append((job.future, result, error))
    for loop, some in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, some)
        except RuntimeError:  # the loop was closed: nothing waits there any more
            continue


def _settle(answers: list[Answer]) -> None:
    for future, result, error in answers:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
