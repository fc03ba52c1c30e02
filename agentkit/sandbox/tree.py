"""A running process tree: its output buffered, its end and its deadline awaited. Knows no kind of sandbox."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import Final, NamedTuple

from agentkit.checks.missing_await import EnteredAsync
from agentkit.errors import SandboxError
from agentkit.sandbox.outputs import Outputs, readable
from agentkit.sandbox.quota import LimitName, SandboxLimits, SandboxOutcome, SandboxProgress, StreamOutput

GRACE: Final = 2.0
"""Seconds for a killed tree to be gone, and for the rest of its output; killing 64 processes takes milliseconds."""

BOUND: Final = 5 * GRACE
"""Seconds after which a killed tree is given up on: a process in the kernel's hands may not die at all."""


class ProcessEnd(NamedTuple):
    """The command's end as the sandbox reports it.

    Attributes:
        code: the exit code, or minus the signal; None if unknown.
        out_of_memory: whether the kernel killed for want of memory.
        failed: why the command was not started; empty if it was. More may be in its stderr.
        cpu: seconds of processor time of the whole tree; None if unknown.
    """

    code: int | None
    out_of_memory: bool = False
    failed: str = ""
    cpu: float | None = None


class StartedProcess(NamedTuple):
    """A process that was started, and how to deal with it.

    Attributes:
        popen: the outermost process, with three pipes.
        stop: kills the whole tree; may be called repeatedly, and after its end.
        ended: called once with the status of the outermost process and its seconds of processor time, when the tree
            is gone.
        released: called last; frees the resources of the start.
        inner: a descriptor of the process with which all others die, if that is not the outermost.
    """

    popen: subprocess.Popen[bytes]
    stop: Callable[[], None]
    ended: Callable[[int, float], ProcessEnd]
    released: Callable[[], None]
    inner: int | None = None


@dataclass(slots=True)
class TreeEnding:
    """The reason for a tree's end, and its outcome.

    Args:
        timed_out: whether it was killed at the deadline.
        killed: whether it was killed.
        failed: why there is no outcome; empty if there is one.
        outcome: how it ended, once it has.
    """

    timed_out: bool = False
    killed: bool = False
    failed: str = ""
    outcome: SandboxOutcome = field(default_factory=SandboxOutcome)


class ProcessTree(EnteredAsync):
    """One command in a sandbox with everything it starts, while it runs; see `RunningCommand`.

    Belongs to the event loop that started it.
    """

    def __init__(self, started: StartedProcess, limits: SandboxLimits, wall: float | None) -> None:
        self._loop: AbstractEventLoop = asyncio.get_running_loop()
        self._started = started
        self._limits = limits
        self._since = monotonic()
        self._end = TreeEnding()
        self._finishing: asyncio.Task[None] | None = None
        self._gone = asyncio.Event()
        popen = started.popen
        stdin, stdout, stderr = popen.stdin, popen.stdout, popen.stderr
        if stdin is None or stdout is None or stderr is None:
            raise ValueError("a process tree needs a process with three pipes")
        self._outputs = Outputs(stdout, stderr, limits.output)
        self._pidfd = os.pidfd_open(popen.pid)
        os.set_blocking(stdin.fileno(), False)
        self._loop.add_reader(self._pidfd, self._reap)
        self._deadline = None if wall is None else self._loop.call_later(wall, self._expire)

    async def __aenter__(self) -> ProcessTree:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.terminate()

    @property
    def running(self) -> bool:
        """True until the command ends."""
        return not self._gone.is_set()

    async def write(self, data: bytes) -> None:
        """Write to its stdin; returns when all is written.

        Raises:
            BrokenPipeError: it has ended or closed its stdin.
        """
        stdin = self._started.popen.stdin
        if stdin is None or stdin.closed:
            raise BrokenPipeError("the command's stdin is closed")
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(stdin.fileno(), rest) :]
            except BlockingIOError:
                await self._writable(stdin.fileno())
            if stdin.closed:
                raise BrokenPipeError("the command has ended")

    async def _writable(self, fd: int) -> None:
        ready = asyncio.Event()
        self._loop.add_writer(fd, ready.set)
        gone = self._loop.create_task(self._gone.wait())
        waiting = self._loop.create_task(ready.wait())
        try:
            await asyncio.wait((gone, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            waiting.cancel()
            if not self._gone.is_set():
                self._loop.remove_writer(fd)

    def close_stdin(self) -> None:
        """Tell the command that no more input follows."""
        stdin = self._started.popen.stdin
        if stdin is not None and not stdin.closed:
            self._loop.remove_writer(stdin.fileno())
            stdin.close()

    async def read(self, *, until: bytes | None = None, timeout: float | None = None) -> SandboxProgress:
        """Return the output since the previous read; wait until there is some.

        Args:
            until: wait until stdout contains these bytes; by default any output suffices. They count as found only in
                the output since the previous read.
            timeout: seconds after which the output so far, perhaps none, is returned. None: until some output arrives
                or the command ends.
        """
        with suppress(TimeoutError):  # the caller asked for what has arrived by then
            async with asyncio.timeout(timeout):
                await self._outputs.until(until, self._gone.is_set)
        return SandboxProgress(*self._outputs.take(more=self.running), ended=not self.running)

    async def wait(self, timeout: float | None = None) -> SandboxOutcome:
        """Wait for its end. The outcome holds the output that was not read before.

        Raises:
            TimeoutError: it still runs after `timeout` seconds, and continues to run.
            SandboxError: the sandbox could not start the command.
        """
        async with asyncio.timeout(timeout):
            await self._gone.wait()
        if self._end.failed:
            raise SandboxError(self._end.failed)
        return self._end.outcome

    async def terminate(self) -> SandboxOutcome:
        """Kill the command and everything it started; returns when all are gone. Harmless after the end.

        Raises:
            SandboxError: a process does not die, because the kernel waits for a device.
        """
        self.kill()
        cancelled: asyncio.CancelledError | None = None
        until = monotonic() + BOUND
        while not self._gone.is_set() and monotonic() < until:
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout(until - monotonic()):
                        await self._gone.wait()
            except asyncio.CancelledError as e:
                cancelled = e
        if cancelled is not None:
            raise cancelled
        if not self._gone.is_set():
            raise SandboxError(f"a process has not ended {BOUND:g} s after it was killed")
        return self._end.outcome

    def kill(self) -> None:
        """Kill the command and everything it started, without waiting."""
        if self.running:
            self._end.killed = True
            self._started.stop()
            self._loop.call_later(GRACE, self._force)

    def _expire(self) -> None:
        self._end.timed_out = self.running
        self.kill()

    def _force(self) -> None:
        if self._pidfd >= 0:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _reap(self) -> None:
        """The outermost process has ended, and with it all others: collect it, then read the rest of the pipes."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1
        cpu, code = 0.0, 0
        try:
            _, status, usage = os.wait4(self._started.popen.pid, 0)
            cpu, code = usage.ru_utime + usage.ru_stime, os.waitstatus_to_exitcode(status)
        except ChildProcessError:  # somebody waits for any child
            self._end.failed = "another part of this process has collected how the command ended"
        self._started.popen.returncode = code
        if self._deadline is not None:
            self._deadline.cancel()
        self._finishing = self._loop.create_task(self._finish(cpu, monotonic() - self._since))

    async def _finish(self, cpu: float, wall: float) -> None:
        try:
            await self._drain()
            ended = self._started.ended(self._started.popen.returncode, cpu)
            outputs = self._outputs.take(more=False)
            self._end.outcome = outcome_of(ended, self._end.timed_out, self._limits.cpu, wall, *outputs)
            if ended.failed and not self._end.killed:
                self._end.failed = f"{ended.failed}: {self._end.outcome.stderr.strip()}".removesuffix(": ")
        except BaseException as e:
            self._end.failed = f"how the command ended is unknown: {type(e).__name__}: {e}"
            raise
        finally:
            self.close_stdin()
            self._started.released()
            self._gone.set()
            self._outputs.wake()

    async def _drain(self) -> None:
        """Wait until all processes are gone and all that they wrote is read; bounded, should one not die."""
        if self._started.inner is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await readable(self._started.inner)
        await self._outputs.drain(GRACE)


def outcome_of(
    ended: ProcessEnd, timed_out: bool, most_cpu: float, wall: float, out: StreamOutput, err: StreamOutput
) -> SandboxOutcome:
    """Return the outcome of a command that has ended."""
    code = None if timed_out else ended.code
    name = "SIGKILL" if code is None else None if code >= 0 else signal_name(-code)
    limit: LimitName | None = None
    if timed_out:
        limit = "wall"
    elif ended.out_of_memory:
        limit = "memory"
    elif name == "SIGXCPU" or (name == "SIGKILL" and (ended.cpu or 0) >= most_cpu):
        limit = "cpu"
    elif name == "SIGXFSZ":
        limit = "file_size"
    return SandboxOutcome(
        stdout=out.text,
        stderr=err.text,
        exit_code=code if name is None else None,
        signal=name,
        timed_out=timed_out,
        limit=limit,
        wall=wall,
        cpu=ended.cpu,
        stdout_cut=out.left_out,
        stderr_cut=err.left_out,
    )


def signal_name(number: int) -> str:
    """The name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has none
        return f"signal {number}"
