"""One request by a client of boto3, which is synchronous: it runs in a thread, and its events cross to the event loop.

Knows boto3 and asyncio; knows no model. A request that is left closes its connection, which ends its thread.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, TypeVar

from agentkit.models.response_body import Unreadable

T = TypeVar("T")

WAITING: Final = 64  # events that wait for the event loop, before the thread waits for it

THREAD: Final = "agentkit-bedrock"

HEAD: Final = 1024  # bytes of a response that are kept for an error

_CURRENT: ContextVar[BotoCall | None] = ContextVar("agentkit boto call", default=None)


class BotoCall:
    """One request and the connection that it uses.

    Args:
        limit: the maximum size of the response in bytes.
        begun: called in the thread when the response begins.

    Attributes:
        size: the bytes of the response so far.
        head: the first of them.
    """

    def __init__(self, limit: int, begun: Callable[[BotoCall], None]) -> None:
        self.size, self.head = 0, b""
        self._limit = limit
        self._begun = begun
        self._left = False
        self._connection: Any = None
        self._socket: socket.socket | None = None

    async def events(self, read: Callable[[], Iterable[T]]) -> AsyncGenerator[T, None]:
        """Read events in a thread; if this is left, the connection is closed.

        Args:
            read: sends the request, and yields the events of its response.

        Raises:
            Exception: the one that `read` raised.
        """
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[tuple[T, ...] | Exception | None] = asyncio.Queue()
        room = threading.Semaphore(WAITING)
        given = (read, loop, arrived, room)
        thread = threading.Thread(target=self._run, args=given, name=THREAD, daemon=True)
        thread.start()
        try:
            while isinstance(found := await arrived.get(), tuple):
                yield found[0]
                room.release()
        except BaseException:
            self._leave()
            room.release()
            raise
        thread.join()  # it has nothing more to do
        if found is not None:
            raise found

    def _run(
        self,
        read: Callable[[], Iterable[T]],
        loop: asyncio.AbstractEventLoop,
        arrived: asyncio.Queue[tuple[T, ...] | Exception | None],
        room: threading.Semaphore,
    ) -> None:
        _CURRENT.set(self)
        end: Exception | None = None
        try:
            for event in read():
                room.acquire()
                if self._left:
                    return
                loop.call_soon_threadsafe(arrived.put_nowait, (event,))
        except Exception as error:  # noqa: BLE001 - raised again in the event loop
            end = error
        with suppress(RuntimeError):  # the event loop has ended
            loop.call_soon_threadsafe(arrived.put_nowait, end)

    def _leave(self) -> None:
        """Close the connection, unless another request uses it by now; its thread then ends."""
        self._left = True
        if self._socket is not None and self._connection.user is self:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def uses(self, connection: Any) -> None:
        """Note the connection that the request uses."""
        connection.user, self._connection, self._socket = self, connection, connection.sock
        if self._left:
            self._leave()

    def count(self, response: Any) -> Any:
        """Count the bytes of a raw response as they are read; return it."""
        response.stream = partial(self._counted, response, response.stream)
        self._begun(self)
        return response

    def _counted(self, response: Any, stream: Callable[..., Iterable[bytes]], *args: Any) -> Iterator[bytes]:
        try:
            for piece in stream(*args):
                self.size += len(piece)
                if self.size > self._limit:
                    raise Unreadable(f"the response is larger than the {self._limit:,} bytes of max_response")
                self.head += piece[: HEAD - len(self.head)]
                yield piece
        finally:
            del response.stream  # else the response, which refers to itself, keeps its connections open


def watch_connections(client: Any) -> None:
    """Let the connections of a client of boto3 tell the running `BotoCall` that they are used.

    botocore has no public way to reach a connection while it waits for an answer.
    """
    pools = client._endpoint.http_session._pool_classes_by_scheme
    for scheme, pool in pools.items():
        pools[scheme] = type(pool.__name__, (pool,), {"ConnectionCls": _watched(pool.ConnectionCls)})


def _watched(connection: Any) -> type:
    class Watched(connection):  # type: ignore[misc]
        user: BotoCall | None = None

        def connect(self) -> None:
            super().connect()
            if (call := _CURRENT.get()) is not None:
                call.uses(self)

        def request(self, *args: Any, **options: Any) -> None:
            if (call := _CURRENT.get()) is not None and self.sock is not None:
                call.uses(self)
            super().request(*args, **options)

        def getresponse(self) -> Any:
            response, call = super().getresponse(), _CURRENT.get()
            return response if call is None else call.count(response)

    return Watched
