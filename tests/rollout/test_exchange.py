"""Orders to another process, gathered in messages; here the other process is this one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentkit.rollout.distributed.exchange import Client, Host, HostLost, OrderAnswer, OrderFailed


class Wire:
    """Counts the messages between a client and a host."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.messages: list[int] = []
        self.down = False

    async def send(self, orders: list[tuple[int, Any]], dropped: list[int]) -> list[OrderAnswer]:
        self.messages.append(len(orders))
        await asyncio.sleep(0)
        if self.down:
            raise ConnectionError("the process is gone")
        return await self.host.exchange(orders, dropped)


async def double(value: Any) -> Any:
    if value == "never":
        await asyncio.Event().wait()
    if value == "bad":
        raise ValueError("not a number")
    if value == "cancels itself":
        raise asyncio.CancelledError
    return value * 2


def run(main: Any) -> Any:
    return asyncio.run(asyncio.wait_for(main, 60))


def joined() -> tuple[Wire, Client]:
    wire = Wire(Host(double))
    return wire, Client(wire.send)


def test_what_is_ordered_at_once_goes_in_one_message() -> None:
    async def main() -> tuple[list[int], list[int]]:
        wire, client = joined()
        return list(await asyncio.gather(*(client.order(n) for n in range(100)))), wire.messages

    assert run(main()) == ([n * 2 for n in range(100)], [100])


def test_an_answer_does_not_wait_for_a_slower_one() -> None:
    async def main() -> list[Any]:
        _, client = joined()
        slow = asyncio.create_task(client.order("never"))
        quick = [await client.order(n) for n in range(5)]
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        return quick

    assert run(main()) == [0, 2, 4, 6, 8]


def test_an_order_that_raises_fails_alone_and_in_its_own_words() -> None:
    async def main() -> list[Any]:
        _, client = joined()
        return await asyncio.gather(client.order(1), client.order("bad"), client.order(2), return_exceptions=True)

    one, bad, two = run(main())
    assert (one, two) == (2, 4)
    assert isinstance(bad, OrderFailed)
    assert str(bad) == "ValueError: not a number"


def test_an_order_that_cancels_itself_is_answered() -> None:
    async def main() -> list[Any]:
        _, client = joined()
        return await asyncio.gather(client.order("cancels itself"), client.order(2), return_exceptions=True)

    failed, two = run(main())
    assert (type(failed), str(failed), two) == (OrderFailed, "CancelledError", 4)


def test_an_order_that_does_not_get_through_is_refused_alone_and_at_once() -> None:
    async def main() -> list[Any]:
        wire, client = joined()

        async def send(orders: list[tuple[int, Any]], dropped: list[int]) -> list[OrderAnswer]:
            for number, value in orders:
                if value == "lost on the way":
                    client.refuse(number, "it cannot be sent")
                if value == "lost there":
                    wire.host.refuse(number, "it cannot be read")
            return await wire.send([order for order in orders if "lost" not in str(order[1])], dropped)

        client._send = send
        slow = asyncio.create_task(client.order("never"))
        told = await asyncio.gather(*map(client.order, ("lost on the way", "lost there", 2)), return_exceptions=True)
        slow.cancel()
        return told

    assert [str(one) for one in run(main())] == ["it cannot be sent", "it cannot be read", "4"]


def test_answers_that_may_linger_share_a_message() -> None:
    async def main() -> tuple[list[int], int]:
        async def late(value: int) -> int:
            await asyncio.sleep(value / 1000)
            return value

        wire = Wire(Host(late, linger=0.1))
        client = Client(wire.send)
        return list(await asyncio.gather(*(client.order(n) for n in range(20)))), len(wire.messages)

    answers, messages = run(main())
    assert answers == list(range(20))
    assert messages <= 3


def test_what_nobody_waits_for_any_more_is_cancelled_there() -> None:
    async def main() -> int:
        wire, client = joined()
        slow = asyncio.create_task(client.order("never"))
        assert await client.order(1) == 2
        slow.cancel()
        await asyncio.sleep(0)
        assert await client.order(2) == 4
        await asyncio.sleep(0.01)
        return len(wire.host._tasks)

    assert run(main()) == 0


def test_whoever_waits_is_told_that_the_process_is_gone() -> None:
    async def main() -> list[Any]:
        wire, client = joined()
        slow = asyncio.create_task(client.order("never"))
        assert await client.order(1) == 2
        wire.down = True
        return await asyncio.gather(slow, client.order(1), return_exceptions=True)

    assert [(type(e), str(e)) for e in run(main())] == [(HostLost, "ConnectionError: the process is gone")] * 2


def test_every_order_of_a_random_crowd_is_answered_once() -> None:
    import random

    async def main() -> int:
        rng = random.Random(3)

        async def late(value: int) -> int:
            await asyncio.sleep(rng.random() / 100)
            return value

        wire = Wire(Host(late))
        client = Client(wire.send)

        async def one(n: int) -> int:
            await asyncio.sleep(rng.random() / 50)
            return await client.order(n)

        answers = await asyncio.gather(*(one(n) for n in range(500)))
        assert list(answers) == list(range(500))
        return client.in_flight

    assert run(main()) == 0
