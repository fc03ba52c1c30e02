"""A model server for the gateway's tests, over real sockets: it sends what a test has chosen, and counts who left."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

Step = bytes | float | threading.Event
"""Bytes to send, seconds to wait, or an event to wait for; the connection is closed after the last step."""


class FakeUpstream:
    """Answers each request with the next of `answers`, and the last one again and again.

    Attributes:
        requests: the head, with lower-case names, and the body of each request.
        left: how many clients closed their connection before the end of an answer.
        sent: pieces that were sent.
    """

    def __init__(self) -> None:
        self.answers: list[Sequence[Step]] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.left = 0
        self.sent = 0
        self.url = ""

    def set(self, *answers: Sequence[Step]) -> None:
        self.answers = list(answers)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(body) for _, body in self.requests if body]

    def answer(self, headers: Mapping[str, str], body: bytes) -> Sequence[Step]:
        """The answer to a request, which was added to `requests`."""
        return self.answers[min(len(self.requests), len(self.answers)) - 1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:-2])}
            headers[":path"] = lines[0].split()[1]
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.requests.append((headers, body))
            gone = asyncio.ensure_future(reader.read(1))
            await self._send(self.answer(headers, body), writer, gone)
            gone.cancel()
        except ConnectionError:
            self.left += 1
        except asyncio.IncompleteReadError:
            pass  # a connection without a request
        finally:
            writer.close()

    async def _send(self, steps: Sequence[Step], writer: asyncio.StreamWriter, gone: asyncio.Future[bytes]) -> None:
        for step in steps:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
                self.sent += 1
            elif isinstance(step, threading.Event):
                while not (step.is_set() or gone.done()):
                    await asyncio.wait([gone], timeout=0.005)
            else:
                await asyncio.wait([gone], timeout=step)
            if gone.done():
                self.left += 1
                return

    async def run(self, started: Callable[[], None], over: asyncio.Event) -> None:
        listening = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        started()
        await over.wait()
        listening.close()
        answering = asyncio.all_tasks() - {asyncio.current_task()}
        for task in answering:
            task.cancel()
        await asyncio.gather(*answering, return_exceptions=True)
        await asyncio.sleep(0)  # in which the connections are closed


@contextmanager
def fake_upstream(*answers: Sequence[Step], upstream: FakeUpstream | None = None) -> Iterator[FakeUpstream]:
    """A server in a thread, for as long as the block lasts."""
    upstream = upstream or FakeUpstream()
    upstream.set(*answers)
    started = threading.Event()
    loop = asyncio.new_event_loop()
    over = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(upstream.run(started.set, over)), daemon=True)
    thread.start()
    started.wait(30)
    try:
        yield upstream
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(30)
        loop.close()


def head(status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def whole(body: Any, status: int = 200, **headers: str) -> list[Step]:
    """An answer in JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return [head(status, content_length=str(len(data)), **headers), data]


def chunked(*pieces: Step, cut: bool = False, **headers: str) -> list[Step]:
    """A stream of events, with an end that shows whether it is complete."""
    steps: list[Step] = [head(kind="text/event-stream", transfer_encoding="chunked", **headers)]
    steps += [b"%x\r\n%s\r\n" % (len(p), p) if isinstance(p, bytes) else p for p in pieces]
    return steps if cut else [*steps, b"0\r\n\r\n"]


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for something that happens in another thread."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
