"""Work sent to another process in few messages: orders of the same time go in one message, as do the answers.

`Host` runs in the other process, `Client` here; one message is one call of `Host.exchange`. A message costs up to a
millisecond on Ray, whatever it carries, so a message per call would cost more than most tools do. Nothing waits for a
message to fill up: it carries the orders since the last pass of the event loop. An answer never waits for a
slower one of the same message. Knows nothing of Ray.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from agentkit.checks.keys import words
from agentkit.processor.eager_tasks import start_now

POLL: Final = 5.0
"""Seconds after which a message without an answer returns empty; the client asks again, so a hanging host is found."""

PASSES: Final = 3
"""Passes of the event loop that a finished answer waits for others: those of tools that do not wait for anything."""


OrderAnswer = tuple[int, Any, str | None]
"""The outcome of an order: its number, its value or the words of the exception. Named tuples pickle slower."""


class Host:
    """Runs orders, and hands out their answers.

    Args:
        work: what one order is: an async function of the order's own value.
        linger: seconds that an answer waits for others while there are orders that still run.
    """

    def __init__(self, work: Callable[[Any], Awaitable[Any]], linger: float = 0.0) -> None:
        self._work, self._linger = work, linger
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._answers: list[OrderAnswer] = []
        self._news = asyncio.Event()
        self._latest = 0

    async def exchange(self, orders: Sequence[tuple[int, Any]], dropped: Sequence[int] = ()) -> list[OrderAnswer]:
        """Begin these orders, and return the finished answers; wait for one if there is none.

        Args:
            orders: number and value of each.
            dropped: orders that nobody waits for any more; they are cancelled and not answered.
        """
        self._latest += 1
        mine = self._latest
        self._news.set()  # an earlier message that still waits returns, so that one waits at most
        for number in dropped:
            if (task := self._tasks.get(number)) is not None:
                task.cancel()
        loop = asyncio.get_running_loop()
        for number, value in orders:
            task = start_now(self._run(number, value), loop)
            if not task.done():
                self._tasks[number] = task
        if orders:
            await self._settle()
        while not self._answers and mine == self._latest and self._tasks:
            self._news.clear()
            try:
                async with asyncio.timeout(POLL):
                    await self._news.wait()
            except TimeoutError:
                break
            await self._settle()
        if self._linger and self._answers and self._tasks and mine == self._latest:
            await asyncio.sleep(self._linger)
        answers, self._answers = self._answers, []
        return answers

    def refuse(self, number: int, why: str) -> None:
        """Answer an order with an error: it, or its answer, could not be sent."""
        self._answers.append((number, None, why))
        self._news.set()

    async def _settle(self) -> None:
        """Give fast orders time to end, so that their answers go together."""
        for _ in range(PASSES):
            await asyncio.sleep(0)

    async def _run(self, number: int, value: Any) -> None:
        try:
            answer: OrderAnswer = (number, await self._work(value), None)
        except BaseException as e:  # the boundary: the error belongs to who ordered it
            task = asyncio.current_task()
            if isinstance(e, asyncio.CancelledError) and task is not None and task.cancelling():
                self._tasks.pop(number, None)
                raise  # nobody waits for it any more; an order that cancels itself is answered
            answer = (number, None, words(e))
        self._tasks.pop(number, None)
        self._answers.append(answer)
        self._news.set()


class HostLost(Exception):
    """The other process is gone, or does not answer."""


class OrderFailed(Exception):
    """An order failed in the other process; in the words of its exception."""


class Client:
    """Sends orders to a host and awaits their answers.

    Args:
        send: one message: `Host.exchange` in the other process. An exception of it means that the host is gone.
    """

    def __init__(self, send: Callable[[list[tuple[int, Any]], list[int]], Awaitable[list[OrderAnswer]]]) -> None:
        self._send = send
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._orders: list[tuple[int, Any]] = []
        self._dropped: list[int] = []
        self._messages: set[asyncio.Task[None]] = set()
        self._due = False
        self.lost: str | None = None

    @property
    def in_flight(self) -> int:
        """Orders without an answer."""
        return len(self._waiting)

    async def order(self, value: Any) -> Any:
        """Have an order carried out.

        Raises:
            OrderFailed: it raised there.
            HostLost: the host is gone; whether the order was started is not known.
        """
        if self.lost is not None:
            raise HostLost(self.lost)
        number = next(self._numbers)
        future = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._orders.append((number, value))
        self._soon()
        try:
            return await future
        except asyncio.CancelledError:
            if self._waiting.pop(number, None) is not None and self.lost is None:
                self._dropped.append(number)
                self._soon()
            raise

    def _soon(self) -> None:
        """Send the new orders at the end of this pass of the event loop."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._message)

    def _message(self) -> None:
        self._due = False
        if self.lost is not None:
            return
        orders, self._orders = self._orders, []
        dropped, self._dropped = self._dropped, []
        task = asyncio.get_running_loop().create_task(self._exchange(orders, dropped))
        self._messages.add(task)
        task.add_done_callback(self._messages.discard)

    async def _exchange(self, orders: list[tuple[int, Any]], dropped: list[int]) -> None:
        try:
            answers = await self._send(orders, dropped)
        except Exception as e:  # noqa: BLE001 - whatever ended the message, its answers will not come
            self.close(f"{type(e).__name__}: {str(e).strip() or 'no words'}")
            return
        for number, value, error in answers:
            if error is not None:
                self.refuse(number, error)
                continue
            future = self._waiting.pop(number, None)
            if future is not None and not future.done():
                future.set_result(value)
        if self._waiting and len(self._messages) <= 1 and not self._orders:
            self._soon()  # somebody still waits, and this was the message that waited for them

    def refuse(self, number: int, why: str) -> None:
        """Fail an order: it raised, or could not be sent."""
        future = self._waiting.pop(number, None)
        if future is not None and not future.done():
            future.set_exception(OrderFailed(why))

    def close(self, why: str) -> None:
        """Fail the orders that wait: no answer will come any more."""
        self.lost = why
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(HostLost(why))
