"""Work that is finished although its task is cancelled: the task ends as cancelled, with what became of the work."""

from __future__ import annotations

import asyncio

import pytest

from agentkit.agent.cancellation import shield
from agentkit.errors import StoreError


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("steps", range(1, 6))
def test_work_that_is_finished_in_spite_of_it_ends_as_cancelled_with_its_own_error_as_the_cause(
    fails: bool, steps: int
) -> None:
    ended: list[str] = []
    causes: list[BaseException | None] = []

    async def work() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        ended.append("ended")
        if fails:
            raise StoreError("the disk is full")

    async def finished() -> None:
        try:
            await shield(work())
        except asyncio.CancelledError as e:
            causes.append(e.__cause__)
            raise

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(finished())
        for _ in range(steps):
            await asyncio.sleep(0)
        assert task.cancel()
        await asyncio.wait([task])
        return task

    assert asyncio.run(main()).cancelled()
    assert ended == ["ended"]
    assert [str(cause) for cause in causes] == ["the disk is full" if fails else "None"]
