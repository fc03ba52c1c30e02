"""The Python code server: executions per second with 200 requests in flight, next to another server in the same run.

    python benchmarks/python_server.py
    python benchmarks/python_server.py --peer 'uvicorn tool_server:app --port {port}'

The peer is any command that serves `POST /execute {code, timeout}` on `{port}`; it is started in the current folder.
The two are measured in turns, and the best of three is printed, because the client shares the processors with them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

CODE = "total = sum(i * i for i in range(100))\nprint(total)"
EXPECTED = "328350\n"
ROUNDS = 3


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, code: str) -> dict[str, object]:
    """One request over a connection that stays open."""
    body = json.dumps({"code": code, "timeout": 20}).encode()
    head = f"POST /execute HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(": ", 1) for line in answer.decode("latin-1").split("\r\n")[1:] if line)
    content = await reader.readexactly(int(fields["content-length"]))
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{answer!r} {content!r}")
    found: dict[str, object] = json.loads(content)
    return found


async def measured(port: int, concurrent: int, count: int) -> tuple[float, float]:
    """Executions per second, and the median of the seconds that one took."""
    left = iter(range(count))
    times: list[float] = []

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in left:
            started = time.perf_counter()
            answer = await ask(reader, writer, CODE)
            assert (answer["output"], answer["success"]) == (EXPECTED, True), answer
            times.append(time.perf_counter() - started)
        writer.close()
        await writer.wait_closed()

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(concurrent)))
    return count / (time.perf_counter() - started), sorted(times)[len(times) // 2]


@contextmanager
def served(command: list[str], port: int) -> Iterator[None]:
    """A server while it runs."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None:
                    raise SystemExit(f"{shlex.join(command)} ended with status {process.returncode}") from None
                time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    """Print one line for each server."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--concurrent", type=int, default=200)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--peer", help="a command with {port} in it")
    arguments = parser.parse_args()
    own = [sys.executable, "-m", "agentkit", "python-server", "--port", "{port}"]
    if arguments.workers:
        own += ["--workers", str(arguments.workers)]
    servers = {"agentkit": own} | ({"peer": shlex.split(arguments.peer)} if arguments.peer else {})
    best: dict[str, tuple[float, float]] = {}
    for _ in range(ROUNDS):
        for name, command in servers.items():
            port = free_port()
            with served([word.replace("{port}", str(port)) for word in command], port):
                asyncio.run(measured(port, 8, 50))
                best[name] = max(
                    best.get(name, (0.0, 0.0)), asyncio.run(measured(port, arguments.concurrent, arguments.count))
                )
    for name, (rate, median) in best.items():
        print(f"{name:10} {rate:7.0f} executions/s, median {median * 1000:6.0f} ms, {arguments.concurrent} in flight")


if __name__ == "__main__":
    main()
