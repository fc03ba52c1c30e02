"""Python code over HTTP: `POST /execute {code, timeout}` gives `{output, error, success}`, `GET /` the state.

Speaks as the code server of open-instruct does, so that its `PythonCodeTool` and others can use it. Each request runs
in its own process. These are forked from warm interpreters in sandboxes; each serves one request at a time. An
interpreter is used again only if the code left no process, and files, folders and limits are as they were before.

Needs the extra `gateway`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agentkit.errors import ConfigError, install_command
from agentkit.sandbox import SandboxError, SandboxLimits, sandbox
from agentkit_tools.code.worker import CodeOutcome, Worker, Workers

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

MAX_BODY: Final = 4 << 20  # bytes: code, not data
BACKLOG: Final = 2048  # connections that the kernel accepts before the server does
USES: Final = 1000  # of one interpreter: its own processor time is also limited


_LOCAL: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings of the code server.

    Args:
        workers: how many pieces of code run at the same time; by default twice the number of processors.
        queue: how many requests may wait; more are refused with status 503.
        most_seconds: the longest `timeout` of a request.
        kind: of sandbox; see `agentkit.sandbox.sandbox`.
        preload: modules that are imported in advance, such as `numpy`.
        memory: bytes of address space for each process.
        processes: how many a piece of code may have at the same time.
        output: bytes kept of each output stream, half from its start and half from its end.
    """

    workers: int = field(default_factory=lambda: 2 * (os.cpu_count() or 1))
    queue: int = 1000
    most_seconds: float = 60.0
    kind: str = "auto"
    preload: tuple[str, ...] = ()
    memory: int = 1 << 30
    processes: int = 64
    output: int = 256 << 10

    def __post_init__(self) -> None:
        for name in ("workers", "queue", "most_seconds", "memory", "processes", "output"):
            if not (value := getattr(self, name)) > 0:
                raise ConfigError(f"{name}={value!r}: expected a number above 0")


class Busy(Exception):
    """Too many requests are waiting."""


class CodeServer:
    """Runs code for requests."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.workers = Workers(self._make, settings.workers, USES)
        self.sandbox = ""
        self.accepted = 0
        self.running = 0

    async def open(self) -> None:
        """Start the interpreters."""
        await self.workers.warm(self.settings.workers)

    async def close(self) -> None:
        """Kill all of them."""
        await self.workers.close()

    async def _make(self) -> Worker:
        s = self.settings
        limits = SandboxLimits(cpu=4 * s.most_seconds, memory=s.memory, processes=s.processes)
        box = sandbox(s.kind)
        self.sandbox = box.name
        try:
            return await Worker.start(box, limits, s.preload, owned=True)
        except BaseException:
            await box.close()
            raise

    async def run(self, code: str, timeout: float) -> CodeOutcome:
        """Run code, when its turn comes.

        Raises:
            Busy: too many are waiting.
            SandboxError: no interpreter can be started.
        """
        if self.accepted >= self.settings.workers + self.settings.queue:
            raise Busy
        self.accepted += 1
        try:
            ran = await self._once(code, timeout)
            if ran.lost and not ran.timed_out:  # perhaps killed from outside; the first attempt changed nothing
                ran = await self._once(code, timeout, fresh=True)
            return ran
        finally:
            self.accepted -= 1

    async def _once(self, code: str, timeout: float, *, fresh: bool = False) -> CodeOutcome:
        async with self.workers.one(fresh=fresh) as worker:
            self.running += 1
            try:
                return await worker.run(code, timeout=timeout, clean=True, output=self.settings.output)
            finally:
                self.running -= 1

    def state(self) -> dict[str, Any]:
        """Return the answer to `GET /`."""
        return {
            "message": "Python code server: POST /execute {code, timeout}",
            "sandbox": self.sandbox,
            "workers": self.settings.workers,
            "running": self.running,
            "waiting": self.accepted - self.running,
        }


def answer(ran: CodeOutcome, timeout: float) -> dict[str, Any]:
    """Return the answer to `POST /execute`. The printed text is in `output`, whatever happened then."""
    output = ran.stdout
    if ran.value is not None:
        output += f"{'' if not output or output.endswith(chr(10)) else chr(10)}{ran.value}\n"
    ending = f"Execution timed out after {timeout:g} seconds" if ran.timed_out else ran.ending
    errors = [ran.stderr.rstrip("\n"), ran.error, ending]
    return {"output": output, "error": "\n".join(filter(None, errors)) or None, "success": ran.ok}


def parse_request(body: bytes, most_seconds: float) -> tuple[str, float]:
    """Return the code and the timeout of a request. Raises `ValueError` that says what is wrong."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise ValueError(f"the body is not JSON: {e}") from e
    if not isinstance(request, dict) or not isinstance(request.get("code"), str):
        raise ValueError('expected {"code": "…", "timeout": seconds}')
    timeout = request.get("timeout", 5)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= most_seconds:
        found = json.dumps(timeout)[:50]
        raise ValueError(f"timeout: expected a number of seconds above 0, at most {most_seconds:g}, got {found}")
    return request["code"], float(timeout)


def app(settings: ServerSettings | None = None, *, local: bool = False) -> Starlette:
    """The server as an ASGI application.

    Args:
        settings: of the server.
        local: whether only this machine can reach it, so that no other name than its own can be meant.
    """
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    server = CodeServer(settings or ServerSettings())
    gone = JSONResponse(None, 499)  # nobody reads it

    async def execute(request: Request) -> Response:
        if (why := foreign(request, local)) is not None:
            return refuse(*why)
        try:
            body = await read_body(request)
        except ClientDisconnect:
            return gone
        if body is None:
            return refuse(413, f"the request is larger than {MAX_BODY} bytes")
        try:
            code, timeout = parse_request(body, server.settings.most_seconds)
        except ValueError as e:
            return refuse(422, str(e))
        try:
            ran = await unless_left(request, server.run(code, timeout))
            return gone if ran is None else JSONResponse(answer(ran, timeout))
        except Busy:
            return refuse(
                503, f"{server.settings.queue} requests are waiting, no more are accepted", **{"Retry-After": "1"}
            )
        except SandboxError as e:
            return refuse(503, f"no sandbox can be started: {e}", **{"Retry-After": "5"})

    async def state(request: Request) -> Response:
        return JSONResponse(server.state())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await server.open()
        try:
            yield
        finally:
            await server.close()

    routes = [Route("/execute", execute, methods=["POST"]), Route("/", state, methods=["GET"])]
    return Starlette(routes=routes, lifespan=lifespan)


def foreign(request: Request, local: bool) -> tuple[int, str] | None:
    """Return why a request is not a client's: it comes from a page in a browser, or calls another server."""
    if "origin" in request.headers:
        return 403, "requests from web pages are refused"
    hosts = request.headers.getlist("host")
    if local and not (len(hosts) == 1 and _LOCAL.fullmatch(hosts[0])):  # a page may use its own name for this server
        return 421, f"Host {', '.join(hosts)[:100]!r} is not a name of this server"
    return None


def refuse(status: int, why: str, **headers: str) -> Response:
    """Return an answer without a result, with the reason."""
    from starlette.responses import JSONResponse

    return JSONResponse({"detail": why}, status, headers)


async def read_body(request: Request) -> bytes | None:
    """Read the body; None if it is too large."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY:
            return None
    return bytes(body)


async def unless_left(request: Request, work: Coroutine[Any, Any, CodeOutcome]) -> CodeOutcome | None:
    """Return the result of the work; None if the client has left, which cancels the work."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(left())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
    await asyncio.wait({working})  # not `await working`: a cancellation of this task is none of the work's
    return None if working.cancelled() else working.result()


def serve(settings: ServerSettings, host: str = "127.0.0.1", port: int = 1212) -> None:
    """Serve until interrupted.

    Raises:
        ConfigError: the extra `gateway` is not installed.
        SandboxUnavailable: no such sandbox works on this machine.
        OSError: the address cannot be listened on.
    """
    try:
        import uvicorn
    except ImportError as e:
        raise ConfigError(f"the code server needs the extra `gateway`: {install_command('gateway')}") from e
    box = sandbox(settings.kind)
    asyncio.run(box.close())
    listening = socket.create_server(
        (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
    )
    address = f"[{host}]" if ":" in host else host
    config = uvicorn.Config(
        app(settings, local=_LOCAL.fullmatch(address) is not None),
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=5,
        lifespan="on",
    )
    sys.stdout.write(f"http://{address}:{listening.getsockname()[1]}, sandbox: {box.name}\n")
    sys.stdout.flush()
    with listening:
        uvicorn.Server(config).run(sockets=[listening])
