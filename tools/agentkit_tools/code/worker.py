"""A warm interpreter in a sandbox: starts the driver there, sends it code, reads the outcome.

Nothing that arrives from inside is trusted: it is bounded, and anything that is not as expected ends the worker.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import math
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, Final

from agentkit.messages import ImagePart
from agentkit.sandbox import RunningCommand, Sandbox, SandboxError, SandboxLimits, StreamOutput
from agentkit_tools.code.terminal_text import decode, readable

INSIDE: Final = [Path(__file__).with_name(name) for name in ("driver.py", "snippet.py")]
STARTING: Final = 60.0  # seconds to import what is to be warm
LATE: Final = 2.0  # seconds beyond its deadline in which the driver must have stopped the code and said so
ANSWER: Final = 64 << 20  # bytes of an answer that may be unread at any time: the driver bounds its reports at 44 MB


@dataclass(frozen=True, slots=True)
class CodeOutcome:
    """The outcome of a piece of code.

    Args:
        stdout: its output, without control sequences; a cut is marked inside.
        stderr: its error stream, likewise.
        value: the `repr` of the last expression; None if there is none, or it is None.
        error: the traceback, if it raised.
        error_type: the exception's type.
        images: the pictures that it drew.
        images_left_out: how many more there were.
        exit_code: of the process, or the argument of `sys.exit`; None if it did not end or a signal ended it.
        signal: the number of the signal that ended it.
        timed_out: whether it was stopped at the deadline.
        alive: whether its variables can be used by more code.
        lost: why the worker ended before the code did; None if it did not.
        wall: seconds that it took.
        cpu: seconds of processor time, if its process ended.
        stdout_cut: bytes left out of stdout.
        stderr_cut: bytes left out of stderr.
    """

    stdout: str = ""
    stderr: str = ""
    value: str | None = None
    error: str | None = None
    error_type: str | None = None
    images: tuple[ImagePart, ...] = ()
    images_left_out: int = 0
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    alive: bool = False
    lost: str | None = None
    wall: float = 0.0
    cpu: float = 0.0
    stdout_cut: int = 0
    stderr_cut: int = 0

    @property
    def ok(self) -> bool:
        """True if the code ran to its end, without an exception and with exit status 0."""
        return not (self.error or self.timed_out or self.lost or self.exit_code or self.signal)

    @property
    def ending(self) -> str | None:
        """How it ended in words, if it neither ran to its end nor was stopped at the deadline; else None."""
        if self.lost:
            return f"the code did not come to its end: {self.lost}"
        if self.signal is not None:
            return f"killed by {signal_name(self.signal)}"
        return f"exit code {self.exit_code}" if self.exit_code and not self.error else None


@dataclass(slots=True)
class StreamBuffer:
    """One stream as it arrives: its first bytes, how many were dropped, its last ones."""

    head: bytes = b""
    left_out: int = 0
    tail: bytes = b""

    def add(self, text: str, cut: int | None) -> None:
        """Add a piece; with `cut`, it follows that number of dropped bytes."""
        if cut is None:
            self.head += text.encode("latin-1")
        else:
            self.left_out, self.tail = cut, text.encode("latin-1")

    @property
    def output(self) -> StreamOutput:
        """All of it, cut between characters."""
        return StreamOutput(self.head, self.left_out, self.tail).whole_characters()


class WorkerFailure(Exception):
    """The worker ended, or does not speak as it should."""


@dataclass(slots=True)
class Worker:
    """One sandboxed driver; serves one request at a time, all of them in one session if wanted."""

    tree: RunningCommand
    owned: Sandbox | None = None
    usable: bool = True
    uses: int = 0
    unread: bytearray = field(default_factory=bytearray)

    @classmethod
    async def start(
        cls, sandbox: Sandbox, limits: SandboxLimits, preload: Sequence[str] = (), *, owned: bool = False
    ) -> Worker:
        """Start one.

        Args:
            sandbox: where.
            owned: whether the sandbox is closed with it.
            limits: for the code; those of time are per request, see `run`.
            preload: modules that are imported before the code comes.

        Raises:
            SandboxError: it did not start, or a module of `preload` cannot be imported.
        """
        texts = [path.read_text("utf-8") for path in INSIDE]
        command = [sandbox.python, "-I", "-u", "-X", "utf8", "-c", *texts, *preload]
        tree = await sandbox.start(command, limits=replace(limits, output=ANSWER))
        worker = cls(tree, sandbox if owned else None)
        try:
            ready = json.loads(await worker._line(monotonic() + STARTING))
            missing = ", ".join(map(str, ready["missing"]))
        except (WorkerFailure, ValueError, KeyError, TypeError) as e:
            outcome = await tree.terminate()
            why = readable(outcome.stderr).strip()[-500:] or str(e)
            raise SandboxError(f"Python did not start in the sandbox: {why}") from e
        except BaseException:
            await tree.terminate()
            raise
        if missing:
            await worker.close()
            raise SandboxError(f"preload: cannot be imported in the sandbox: {missing}")
        return worker

    async def run(
        self,
        code: str,
        *,
        timeout: float,
        session: bool = False,
        clean: bool = False,
        name: str = "<code>",
        output: int,
    ) -> CodeOutcome:
        """Run code.

        Args:
            code: Python.
            timeout: seconds until it is stopped.
            session: keep its variables for later code.
            clean: whether the worker must not be used again if the code leaves files.
            name: the code's file name in tracebacks.
            output: bytes kept of each stream.
        """
        self.uses += 1
        started = monotonic()
        streams = {"stdout": StreamBuffer(), "stderr": StreamBuffer()}
        request = {"code": code, "name": name, "timeout": timeout, "session": session, "clean": clean, "output": output}
        request["number"] = secrets.token_hex(16)
        try:
            async with asyncio.timeout(timeout + LATE):
                await self.tree.write(json.dumps(request).encode() + b"\n")
            done = await self._run_request(streams, started + timeout + LATE)
            ran = self._outcome_of(done)
            self.usable = not done["left"]
            if not self.usable:  # until then, what is left could write
                await self.tree.terminate()
        except (WorkerFailure, TimeoutError, BrokenPipeError, ValueError, KeyError, TypeError, RecursionError) as e:
            ran = await self._lost_outcome(e, monotonic() >= started + timeout)
        except BaseException:
            self.usable = False
            await self.tree.terminate()
            raise
        out, err = streams["stdout"].output, streams["stderr"].output
        return replace(
            ran,
            stdout=decode(out),
            stderr=decode(err),
            stdout_cut=out.left_out,
            stderr_cut=err.left_out,
            wall=round(monotonic() - started, 4),
        )

    async def close(self) -> None:
        """Kill it."""
        self.usable = False
        await self.tree.terminate()
        if self.owned is not None:
            await self.owned.close()

    async def _run_request(self, streams: dict[str, StreamBuffer], deadline: float) -> dict[str, Any]:
        while True:
            answer = json.loads(await self._line(deadline))
            if "done" in answer:
                return dict(answer["done"])
            for name, stream in streams.items():
                if name in answer:
                    stream.add(answer[name], answer.get("cut"))

    async def _line(self, deadline: float) -> bytes:
        """The driver's next line. Raises `WorkerFailure` if none comes in time."""
        searched = 0
        while (end := self.unread.find(b"\n", searched)) < 0:
            searched = len(self.unread)
            progress = await self.tree.read(timeout=max(0.0, deadline - monotonic()))
            if progress.stdout.left_out or len(self.unread) > ANSWER:
                raise WorkerFailure("its answer was too long")
            self.unread += progress.stdout.head + progress.stdout.tail
            if b"\n" in self.unread[searched:]:
                continue
            if progress.ended or not self.tree.running:
                raise WorkerFailure("the interpreter was killed")
            if monotonic() >= deadline:
                raise WorkerFailure("it could not be stopped in time")
        line = bytes(self.unread[:end])
        del self.unread[: end + 1]
        return line

    async def _lost_outcome(self, error: Exception, late: bool) -> CodeOutcome:
        """Return the outcome of code whose worker ended before it answered."""
        self.usable = False
        outcome = await self.tree.terminate()
        why = str(error) if isinstance(error, WorkerFailure) else "the interpreter answered in an unknown form"
        if isinstance(error, BrokenPipeError):
            why = "the interpreter was killed"
        if outcome.limit is not None:
            why = f"the interpreter exceeded its limit of {outcome.limit}"
        return CodeOutcome(lost=why, timed_out=late, exit_code=None)

    def _outcome_of(self, done: dict[str, Any]) -> CodeOutcome:
        """The driver's account as a value."""
        report = _report(done["report"])
        images, bad = _images(report.get("images"))
        return CodeOutcome(
            value=_text(report.get("value")),
            error=_text(report.get("error")),
            error_type=_text(report.get("type")),
            images=images,
            images_left_out=bad + _whole(report.get("skipped")),
            exit_code=_whole(report["exit"]) if "exit" in report else done["exit_code"],
            signal=done["signal"],
            timed_out=bool(done["timed_out"]),
            alive=bool(done["alive"]),
            lost="it wrote where the interpreter reports how its code ended" if done["foreign"] else None,
            cpu=float(done["cpu"]),
        )


def signal_name(number: int) -> str:
    """The name of a signal, such as SIGKILL."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has none
        return f"signal {number}"


def _report(text: str | None) -> dict[str, Any]:
    """Return the child's report about its code. The code could have written the report itself."""
    with suppress(ValueError, RecursionError):
        report = json.loads(text or "{}")
        if isinstance(report, dict):
            return report
    return {}


def _text(value: object) -> str | None:
    return readable(value) if isinstance(value, str) else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 32 else 0


def _images(values: object) -> tuple[tuple[ImagePart, ...], int]:
    """The pictures that can be sent, and how many cannot."""
    found, bad = [], 0
    for value in values if isinstance(values, list) else []:
        try:
            kind, data = value
            image = ImagePart(base64.b64decode(data, validate=True), kind)
        except (ValueError, TypeError, binascii.Error):
            bad += 1
            continue
        if image.fault:
            bad += 1
        else:
            found.append(image)
    return tuple(found), bad


class Workers:
    """Workers that are ready; each serves one request at a time, and is replaced in the background when it must be.

    Args:
        make: starts a worker.
        most: how many there are at most.
        uses: after how many requests one is replaced.
    """

    def __init__(self, make: Callable[[], Awaitable[Worker]], most: int, uses: float = math.inf) -> None:
        self.make = make
        self.uses = uses
        self.idle: list[Worker] = []
        self.free = asyncio.Semaphore(most)
        self.replacing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def one(self, *, fresh: bool = False) -> AsyncIterator[Worker]:
        """A worker, warm if there is one and no `fresh` one is wanted; afterwards it serves others, unless used up."""
        await self.free.acquire()
        try:
            worker = await self._next(fresh)
        except BaseException:
            self.free.release()
            raise
        try:
            yield worker
        finally:
            if worker.usable and worker.uses < self.uses:
                self.idle.append(worker)
                self.free.release()
            else:
                task = asyncio.create_task(self._replace(worker))
                self.replacing.add(task)
                task.add_done_callback(self.replacing.discard)

    async def _next(self, fresh: bool) -> Worker:
        while self.idle:
            worker = self.idle.pop()
            if worker.tree.running and not fresh:
                return worker
            await worker.close()
            if fresh:
                break
        return await self.make()

    async def _replace(self, worker: Worker) -> None:
        try:
            await worker.close()
            with suppress(SandboxError):  # the next request tries again, and reports why it cannot be
                self.idle.append(await self.make())
        finally:
            self.free.release()

    async def warm(self, count: int) -> None:
        """Start this number of them in advance."""
        self.idle += await asyncio.gather(*(self.make() for _ in range(count)))

    async def close(self) -> None:
        """Kill those that are idle."""
        for task in (tasks := list(self.replacing)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while self.idle:
            await self.idle.pop().close()
