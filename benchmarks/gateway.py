"""Load on loopback: the gateway next to no gateway, to a floor that only forwards bytes, and to LiteLLM.

    python benchmarks/gateway.py                       # direct, floor, and agentkit in three settings
    python benchmarks/gateway.py --litellm PYTHON      # and LiteLLM, installed in another environment
    python benchmarks/gateway.py --only raw --large    # one of them, and 500 streams of 2,000 deltas

The upstream is a process that answers at once; client, gateway and upstream share this machine, so only the ratios of
one run mean anything; on a busy machine, the CPU that a gateway's process needs. Each delta has its number, so that a
lost or reordered one is found. Gateways run with one worker.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__)
NUMBER = re.compile(rb'(?<=[" ])w(\d+)(?=[ \\"])')


class Rate(NamedTuple):
    """How many a second, and how many microseconds of CPU the gateway's process needed for each."""

    rate: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.rate:,.0f} ({self.cpu:.0f} µs)"


class Figures(NamedTuple):
    """The figures of one gateway; None where it did not answer. Times are in milliseconds, memory is in MB."""

    start: float
    whole: tuple[float, float]
    first: tuple[float, float]
    requests: Rate | None
    clean: Rate | None
    calls: Rate | None
    large: Rate | None
    rss: float


# ---------------------------------------------------------------- the upstream


def events(count: int, calls: bool) -> list[bytes]:
    """The events of a chat completion with numbered words, as text or inside a call that is written as text."""
    words = [f"w{n} " for n in range(count)]
    if calls:
        start = '<tool_call>\n{"name": "write", "arguments": {"text": " '
        words = [start, *words, '"}}\n</tool_call>']
    choice: dict[str, Any] = {"index": 0, "finish_reason": None}
    frame = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas = [{"role": "assistant", "content": ""}, *({"content": word} for word in words)]
    found = [{**frame, "choices": [{**choice, "delta": delta}]} for delta in deltas]
    found.append({**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return [b"data: " + json.dumps(one).encode() + b"\n\n" for one in found] + [b"data: [DONE]\n\n"]


WHOLE = json.dumps(
    {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
    }
).encode()


async def upstream(port: int) -> None:
    """A server that answers at once; the model's name says with what: `whole`, `text-200`, `call-200`."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n%s\r\n\r\n"
    whole = head % (b"application/json", b"content-length: %d" % len(WHOLE)) + WHOLE
    streams: dict[bytes, list[bytes]] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", request)
                body = await reader.readexactly(int(length[1])) if length else b""
                found = re.search(rb'"model": ?"(?:openai/)?(text|call)-(\d+)"', body)
                if found is None or b'"stream": true' not in body.replace(b'"stream":true', b'"stream": true'):
                    writer.write(whole)
                    continue
                if found[0] not in streams:
                    made = events(int(found[2]), found[1] == b"call")
                    frames = [b"%x\r\n%s\r\n" % (len(one), one) for one in made] + [b"0\r\n\r\n"]
                    streams[found[0]] = [b"".join(frames[at : at + 4]) for at in range(0, len(frames), 4)]
                writer.write(head % (b"text/event-stream", b"transfer-encoding: chunked"))
                for batch in streams[found[0]]:
                    writer.write(batch)
                    await writer.drain()
                    await asyncio.sleep(0)
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", port, backlog=2048) as server:
        await server.serve_forever()


# ---------------------------------------------------------------- the floor


def floor(port: int, target: str) -> None:
    """The least that a gateway in Python does: starlette and uvicorn, aiohttp, and bytes."""
    import aiohttp
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    sessions: list[aiohttp.ClientSession] = []

    async def reply(request: Request) -> StreamingResponse:
        if not sessions:
            sessions.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        headers = {"content-type": "application/json"}
        response = await sessions[0].post(f"{target}/v1/chat/completions", data=await request.body(), headers=headers)
        return StreamingResponse(response.content.iter_any(), media_type=response.headers["content-type"])

    app = Starlette(routes=[Route("/v1/chat/completions", reply, methods=["POST"])])
    uvicorn.run(app, port=port, log_level="error", access_log=False)


# ---------------------------------------------------------------- the client


class Client:
    """One connection, without the cost of a library."""

    def __init__(self, port: int, path: str) -> None:
        self.port, self.path = port, path

    async def __aenter__(self) -> Client:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    def ask(self, model: str, stream: bool) -> None:
        """Send a request."""
        tool = {"name": "write", "description": "Write.", "parameters": {"type": "object", "properties": {}}}
        tool["parameters"]["properties"] = {"text": {"type": "string"}}  # type: ignore[index]
        body: dict[str, Any] = {"model": model, "stream": stream, "max_tokens": 9_000}
        body["messages"] = [{"role": "user", "content": "Hi"}]
        if "messages" in self.path:
            body["tools"] = [{"name": "write", "input_schema": tool["parameters"]}]
        else:
            body["tools"] = [{"type": "function", "function": tool}]
        data = json.dumps(body).encode()
        head = f"POST {self.path} HTTP/1.1\r\nhost: localhost:{self.port}\r\ncontent-type: application/json\r\n"
        head += f"authorization: Bearer sk-1234\r\nanthropic-version: 2023-06-01\r\ncontent-length: {len(data)}\r\n\r\n"
        self.writer.write(head.encode() + data)

    async def head(self) -> bytes:
        """Read the head of a reply."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError((head[:30] + await self.reader.read(300)).decode())
        return head

    async def whole(self) -> None:
        """One reply that is not streamed."""
        self.ask("whole", False)
        head = await self.head()
        if length := re.search(rb"(?i)content-length: (\d+)", head):
            await self.reader.readexactly(int(length[1]))
        else:
            await self.reader.readuntil(b"0\r\n\r\n")

    async def stream(self, model: str) -> tuple[float, int]:
        """Seconds to the first event, and how many deltas were there and in order."""
        since = time.perf_counter()
        self.ask(model, True)
        await self.head()
        await self.reader.readuntil(b"data: {")
        first = time.perf_counter() - since
        pieces = []
        while piece := await self.reader.read(1 << 18):
            pieces.append(piece)
            if piece.endswith(b"0\r\n\r\n"):
                break
        text = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", b"".join(pieces))
        numbers = [int(number) for number in NUMBER.findall(text)]
        return first, len(numbers) if numbers == list(range(len(numbers))) else -1


def spread(times: list[float]) -> tuple[float, float]:
    """The median and the 99th of 100, in milliseconds."""
    return statistics.median(times) * 1000, statistics.quantiles(times, n=100)[98] * 1000


async def one_by_one(port: int, path: str, times: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the spread of the times of whole replies, and of the first events of streams."""
    async with Client(port, path) as client:
        for _ in range(20):
            await client.whole()
        whole = []
        for _ in range(times):
            since = time.perf_counter()
            await client.whole()
            whole.append(time.perf_counter() - since)
        first = [(await client.stream("text-3"))[0] for _ in range(times)]
    return spread(whole), spread(first)


async def together(port: int, path: str, clients: int, each: int) -> None:
    """Let clients send their requests one after the other, all clients at once."""

    async def work() -> None:
        async with Client(port, path) as client:
            for _ in range(each):
                await client.whole()

    await asyncio.gather(*(work() for _ in range(clients)))


async def streams(port: int, path: str, model: str, count: int) -> None:
    """Read streams at once; raises an error if a delta is lost or in the wrong place."""
    deltas = int(model.split("-")[1])

    async def work() -> None:
        async with Client(port, path) as client:
            found = (await client.stream(model))[1]
        if found != deltas:
            raise RuntimeError(f"{deltas} deltas were sent, {found} arrived in order")

    await asyncio.gather(*(work() for _ in range(count)))


# ---------------------------------------------------------------- the gateways


def free_port() -> int:
    """Return a port that nobody listens at."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def process(command: list[str], port: int, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """A server, and the seconds until it listens."""
    import socket

    since = time.perf_counter()
    with log.open("wb") as out:
        running = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if running.poll() is not None or time.perf_counter() - since > 120:
                    raise RuntimeError(f"{command[:4]} did not start: {log.read_text()[-600:]}") from None
                time.sleep(0.01)
        yield running, time.perf_counter() - since
    finally:
        running.kill()
        running.wait()


def peak(pid: int) -> float:
    """Return the largest resident memory of a process, in MB."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def cpu(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate(pid: int, count: int, work: Callable[[], Any]) -> Rate | None:
    """Return how fast a gateway does some work, or None if it does not serve it."""
    used, since = cpu(pid), time.perf_counter()
    try:
        asyncio.run(work())
    except (RuntimeError, OSError, asyncio.IncompleteReadError) as e:
        print(f"    not served: {str(e)[:200]!r}", file=sys.stderr)
        return None
    return Rate(count / (time.perf_counter() - since), (cpu(pid) - used) / count * 1e6)


def measured(port: int, path: str, pid: int, start: float, *, calls: bool, large: bool, slow: bool) -> Figures:
    """Return all figures of one gateway."""
    each = 4 if slow else 40
    whole, first = asyncio.run(one_by_one(port, path, 100 if slow else 300))
    return Figures(
        start,
        whole,
        first,
        rate(pid, 50 * each, lambda: together(port, path, 50, each)),
        rate(pid, 20_000, lambda: streams(port, path, "text-200", 100)),
        rate(pid, 20_000, lambda: streams(port, path, "call-200", 100)) if calls else None,
        rate(pid, 1_000_000, lambda: streams(port, path, "text-2000", 500)) if large else None,
        peak(pid),
    )


def litellm_command(python: str, port: int, target: str, folder: Path) -> list[str]:
    """Return the command that starts LiteLLM's proxy."""
    models = [
        {"model_name": name, "litellm_params": {"model": f"openai/{name}", "api_base": f"{target}/v1", "api_key": "x"}}
        for name in ("whole", "text-3", "text-200", "call-200")
    ]
    (folder / "litellm.yaml").write_text(json.dumps({"model_list": models}))
    program = str(Path(python).parent / "litellm")
    return [program, "--config", str(folder / "litellm.yaml"), "--port", str(port), "--num_workers", "1"]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="+", help="some of: direct floor raw auto messages litellm")
    parser.add_argument("--large", action="store_true", help="and 500 streams of 2,000 deltas")
    parser.add_argument("--litellm", metavar="PYTHON", help="the interpreter of an environment with LiteLLM")
    parser.add_argument("--role", choices=("upstream", "floor"), help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--target", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "upstream":
        asyncio.run(upstream(options.port))
    elif options.role == "floor":
        floor(options.port, options.target)
    else:
        compare(options)


def compare(options: argparse.Namespace) -> None:
    """Start the upstream, and each gateway in front of it."""
    here, served, chat = [sys.executable, str(HERE)], free_port(), "/v1/chat/completions"
    target = f"http://127.0.0.1:{served}"
    found: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        ours = [sys.executable, "-m", "agentkit", "serve", "--upstream", target, "--log", str(folder / "access.jsonl")]
        commands: dict[str, Callable[[int], tuple[list[str], str]]] = {
            "floor": lambda port: ([*here, "--role", "floor", "--port", str(port), "--target", target], chat),
            "raw": lambda port: ([*ours, "--port", str(port), "--format", "raw"], chat),
            "auto": lambda port: ([*ours, "--port", str(port)], chat),
            "messages": lambda port: ([*ours, "--port", str(port)], "/v1/messages"),
        }
        if options.litellm:
            commands["litellm"] = lambda port: (litellm_command(options.litellm, port, target, folder), chat)
        with process([*here, "--role", "upstream", "--port", str(served)], served, folder / "upstream") as (running, _):
            wanted = options.only or ["direct", *commands]
            if "direct" in wanted:
                found["direct"] = measured(served, chat, running.pid, 0, calls=False, large=False, slow=False)
            for name in (name for name in commands if name in wanted):
                port = free_port()
                command, path = commands[name](port)
                settings = {"large": options.large and name != "litellm", "slow": name == "litellm"}
                try:
                    with process(command, port, folder / name) as (gateway, start):
                        calls = name != "floor"
                        found[name] = measured(port, path, gateway.pid, start, calls=calls, **settings)
                except (RuntimeError, OSError) as e:
                    print(f"{name}: not served: {e}", file=sys.stderr)
    table(found)


def table(found: dict[str, Figures]) -> None:
    """Print the figures; times of a gateway are what it adds to those of no gateway."""
    base = found.get("direct")
    print(
        "| | added whole p50/p99 ms | added first p50/p99 ms | requests/s at 50 (CPU each) | deltas/s 100 x 200 "
        "| in calls | 500 x 2,000 | peak MB | start s |\n|---|---|---|---|---|---|---|---|---|"
    )
    for name, one in found.items():
        less = base if base is not None and name != "direct" else None
        times = [
            "/".join(f"{mine - (theirs[i] if theirs else 0):.2f}" for i, mine in enumerate(pair))
            for pair, theirs in ((one.whole, less and less.whole), (one.first, less and less.first))
        ]
        rates = [str(rate or "-") for rate in (one.requests, one.clean, one.calls, one.large)]
        print(f"| {' | '.join([name, *times, *rates, f'{one.rss:.0f}', f'{one.start:.2f}'])} |")
    floor_of = found.get("floor")
    if floor_of is not None and floor_of.requests and floor_of.clean:
        for name, one in found.items():
            if one.requests and one.clean and name not in ("direct", "floor"):
                requests, deltas = one.requests.cpu / floor_of.requests.cpu, one.clean.cpu / floor_of.clean.cpu
                print(f"{name}: {requests:.2f} times the floor's CPU for a request, {deltas:.2f} for a delta")


if __name__ == "__main__":
    main()
