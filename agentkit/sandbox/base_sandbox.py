"""The base of the backends: a folder, an environment, one way to run. A backend defines how a command is started."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from agentkit.checks.missing_await import EnteredAsync
from agentkit.errors import SandboxError
from agentkit.sandbox.input_files import place
from agentkit.sandbox.private import private_folder
from agentkit.sandbox.quota import SandboxLimits, SandboxOutcome, checked_wall
from agentkit.sandbox.tree import ProcessTree, StartedProcess

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Programs and libraries."""

SETTINGS: Final = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)
"""What programs need of /etc. The rest may hold secrets, which root reads regardless of their mode."""

MAX_COMMAND: Final = 1 << 17  # bytes of one argument: MAX_ARG_STRLEN of Linux


class Setup(NamedTuple):
    """The settings of a sandbox.

    Attributes:
        workdir: the folder, or None for a private temporary one.
        read: paths outside that commands may read.
        protected: names at the top of the folder that commands may read but not change.
        env: variables for every command.
        limits: for commands that bring none.
    """

    workdir: Path | None = None
    read: tuple[Path, ...] = ()
    protected: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    limits: SandboxLimits = SandboxLimits()


class Order(NamedTuple):
    """One command, ready to be started.

    Attributes:
        command: the program and its arguments.
        env: its whole environment.
        limits: what it may use.
    """

    command: tuple[str, ...]
    env: dict[str, str]
    limits: SandboxLimits


class BaseSandbox(EnteredAsync):
    """A sandbox, except for how it starts a command."""

    name = ""
    _uid: int | None = None
    """The user who runs the commands, if not this process's."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._private, self._owned = private_folder()
        self._tmp = self._private / "tmp"
        self._tmp.mkdir()
        self._workdir = (setup.workdir or self._private / "work").resolve()
        self._workdir.mkdir(parents=True, exist_ok=True)
        self._running: set[ProcessTree] = set()
        self._closed = False

    @property
    def workdir(self) -> Path:
        """The folder in which commands run."""
        return self._workdir

    @property
    def python(self) -> str:
        """A Python that commands can run."""
        return sys.executable

    @property
    def readable(self) -> list[Path]:
        """The paths that commands may read besides their folder: the system, this Python, the caller's list."""
        paths = dict.fromkeys([*map(Path, (*SYSTEM, *SETTINGS, *this_python())), *self._setup.read])
        return [path for path in paths if path.exists()]

    async def run(
        self,
        command: Sequence[str],
        *,
        files: Mapping[str, bytes] | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        limits: SandboxLimits | None = None,
    ) -> SandboxOutcome:
        """Run one command to its end, or to its limits; see `Sandbox.run`."""
        if files:
            place(self._workdir, files, self._uid)
        wall = (limits or self._setup.limits).wall
        async with await self.start(command, env=env, limits=limits, wall=wall) as tree:
            feeding = asyncio.create_task(feed(tree, stdin))
            try:
                return await tree.wait()
            finally:
                feeding.cancel()
                with suppress(asyncio.CancelledError):
                    await feeding

    async def start(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        limits: SandboxLimits | None = None,
        wall: float | None = None,
    ) -> ProcessTree:
        """Start one command and talk to it; see `Sandbox.start`."""
        if self._closed:
            raise SandboxError("the sandbox is closed")
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            raise SandboxError(
                "SIGCHLD is ignored in this process, so the end of a command cannot be seen; use SIG_DFL"
            )
        wall = checked_wall(wall)
        order = Order(
            checked_command(command),
            {**self._environment(), **checked_env(self._setup.env), **checked_env(env or {})},
            limits or self._setup.limits,
        )
        tree = ProcessTree(await self._launch(order), order.limits, wall)
        self._running = {tree, *(other for other in self._running if other.running)}
        return tree

    def _environment(self) -> dict[str, str]:
        """The variables that every command has. Nothing of this process's environment is passed on."""
        own = os.path.dirname(sys.executable)
        return {
            "HOME": str(self._workdir),
            "LANG": "C.UTF-8",
            "PATH": ":".join(dict.fromkeys((own, "/usr/local/bin", "/usr/bin", "/bin"))),
            "TMPDIR": str(self._tmp),
        }

    async def _launch(self, order: Order) -> StartedProcess:
        raise NotImplementedError

    async def close(self) -> None:
        """Kill all running commands, and remove the private folder. Harmless when repeated."""
        self._closed = True
        for tree in self._running:
            await tree.terminate()
        self._running.clear()
        self._remove()

    def _remove(self) -> None:
        self._owned.close()
        shutil.rmtree(self._private, ignore_errors=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


@cache
def this_python() -> list[str]:
    """Return the folders of this Python and its packages, including the links by which it is called."""
    prefixes = [sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix]
    places = [*prefixes, *map(os.path.realpath, prefixes)]
    link = sys.executable
    while os.path.islink(link):
        link = os.path.join(os.path.dirname(link), os.readlink(link))
        places.append(os.path.dirname(link))  # of the link alone: what lies above may be somebody's home
    return list(dict.fromkeys(place for place in map(os.path.normpath, places) if place != "/"))


async def feed(tree: ProcessTree, stdin: bytes) -> None:
    """Write all of stdin, then close it. A command need not read it."""
    with suppress(BrokenPipeError):
        await tree.write(stdin)
    tree.close_stdin()


def checked_command(command: Sequence[str]) -> tuple[str, ...]:
    """The command, if the system can pass it on."""
    words = () if isinstance(command, (str, bytes)) else tuple(command)
    if not words or not all(isinstance(word, str) for word in words) or not words[0]:
        raise SandboxError(
            f"expected a program and its arguments, such as ['python', '-c', 'print(1)'], got {command!r}"
        )
    for word in words:
        _passable("an argument", word)
    return tuple(word[:] for word in words)  # of a subclass of str, the text


def checked_env(env: Mapping[str, str]) -> dict[str, str]:
    """Variables, if the system can pass them on. A refused value is not quoted: it may be a secret."""
    for name, value in env.items():
        if not all(isinstance(word, str) for word in (name, value)) or not name or "=" in name:
            raise SandboxError(f"env: expected names without '=' and strings as values, got {name!r}")
        _passable(f"env: the name {name!r}", name)
        _passable(f"env: the value of {name!r}", value)
    return {name[:]: value[:] for name, value in env.items()}


def _passable(what: str, text: str) -> None:
    try:
        size = len(os.fsencode(text))
    except UnicodeEncodeError as e:
        raise SandboxError(f"{what} contains a lone surrogate, which the system cannot pass on") from e
    if "\0" in text:
        raise SandboxError(f"{what} contains NUL, which the system cannot pass on")
    if size >= MAX_COMMAND:
        raise SandboxError(
            f"{what} is {size:,} bytes long, the system passes at most {MAX_COMMAND - 1:,}: "
            "long texts go into a file, or through standard input"
        )
