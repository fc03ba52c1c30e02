"""The protocol of every sandbox, and the promises that callers rely on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from agentkit.sandbox.quota import SandboxLimits, SandboxOutcome, SandboxProgress


class RunningCommand(Protocol):
    """A command that runs in a sandbox, with everything it starts; an async context manager that kills them all.

    For conversations with a process: a shell session, a warm interpreter. Belongs to the event loop that started it.
    """

    @property
    def running(self) -> bool:
        """True until the command ends."""

    async def write(self, data: bytes) -> None:
        """Write to its stdin; returns when all is written.

        Raises:
            BrokenPipeError: it has ended or closed its stdin.
        """

    def close_stdin(self) -> None:
        """Tell the command that no more input follows."""

    async def read(self, *, until: bytes | None = None, timeout: float | None = None) -> SandboxProgress:
        """Return the output since the previous read; wait until there is some.

        At most `limits.output` bytes of each stream are kept between two reads.

        Args:
            until: wait until stdout contains these bytes; by default any output suffices. They count as found only in
                the output since the previous read.
            timeout: seconds after which the output so far, perhaps none, is returned. None: until some output arrives
                or the command ends.
        """

    async def wait(self, timeout: float | None = None) -> SandboxOutcome:
        """Wait for its end. The outcome holds the output that was not read before.

        Raises:
            TimeoutError: it still runs after `timeout` seconds, and continues to run.
            SandboxError: the sandbox could not start the command.
        """

    async def terminate(self) -> SandboxOutcome:
        """Kill the command and everything it started; returns when all are gone. Harmless after the end.

        Raises:
            SandboxError: a process does not die, because the kernel waits for a device.
        """

    async def __aenter__(self) -> Self:
        """The running command."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Terminate it."""


class Sandbox(Protocol):
    """Runs untrusted commands. Obtained from `sandbox()`; an async context manager that closes itself.

    A command sees its folder (read and write), the system (read-only) and no network; its stdin is empty by default,
    and its environment holds only what is listed here and given. Several commands may run at the same time.

    Attributes:
        name: the backend: `bwrap`, `landlock` or `none`.
        workdir: the folder in which commands run, under the same path inside and outside.
        python: an interpreter that commands can run: the one of this process.
    """

    @property
    def name(self) -> str:
        """The backend."""

    @property
    def workdir(self) -> Path:
        """The folder in which commands run."""

    @property
    def python(self) -> str:
        """A Python that commands can run."""

    async def run(
        self,
        command: Sequence[str],
        *,
        files: Mapping[str, bytes] | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        limits: SandboxLimits | None = None,
    ) -> SandboxOutcome:
        """Run one command to its end, or to its limits. When this returns, everything it started is dead.

        Cancelling it kills the whole tree first.

        Args:
            command: the program and its arguments; no shell reads them.
            files: written into the folder first, by relative path.
            stdin: the command's input.
            env: variables in addition to the sandbox's own.
            limits: instead of the sandbox's.

        Raises:
            SandboxError: nothing ran: an argument cannot be passed, a file's name is refused, or the start failed.
        """

    async def start(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        limits: SandboxLimits | None = None,
        wall: float | None = None,
    ) -> RunningCommand:
        """Start one command and talk to it.

        Args:
            command: the program and its arguments; no shell reads them.
            env: variables in addition to the sandbox's own.
            limits: instead of the sandbox's. `limits.cpu` is for the lifetime of each process, so a session needs
                more than one command does; `limits.wall` is not used.
            wall: seconds until the tree is killed; None: when it is terminated, or the sandbox closed.

        Raises:
            SandboxError: an argument cannot be passed, or the start failed.
        """

    async def close(self) -> None:
        """Kill all running commands, and remove the folder if it is private. Harmless when repeated."""

    async def __aenter__(self) -> Self:
        """The sandbox."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
