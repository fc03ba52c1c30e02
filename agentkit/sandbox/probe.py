"""A test of a sandbox: attempts to escape, run inside and verified from outside. They do no harm if they succeed."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final

from agentkit.sandbox.base_sandbox import BaseSandbox
from agentkit.sandbox.quota import SandboxLimits, SandboxOutcome

ATTEMPTS: Final = Path(__file__).with_name("attempts.py")

PROBED: Final = SandboxLimits(cpu=5, wall=10, memory=512 << 20, file_size=1 << 20, processes=24, output=1 << 16)

SPIN: Final = "while True: pass"

DAEMON: Final = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            with open("beat", "w") as file:
                file.write(str(time.monotonic()))
            time.sleep(0.02)
    os._exit(0)
time.sleep(60)
"""

INSIDE: Final = {"HOME", "LANG", "PATH", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
"""Variables that a command has or that shells and Python set."""

BYSTANDER: Final = """
import os, signal, sys
signal.signal(signal.SIGURG, lambda *_: os.write(1, b"!"))
os.write(1, b".")
sys.stdin.read()
"""

MINIMAL: Final = ("PATH", "LD_LIBRARY_PATH")  # of the bystander's environment


async def probe(box: BaseSandbox, *, thorough: bool = True) -> dict[str, str | None]:
    """Try to escape.

    Args:
        box: the sandbox.
        thorough: also burn a second of processor time, and wait for a deadline.

    Returns:
        By name of the attempt its success in words; None where it was contained.
    """
    if not thorough:
        return await run_attempts(box)
    attempts, spun, daemon = await asyncio.gather(run_attempts(box), try_spinning(box), try_daemon(box))
    return {**attempts, "cpu_loop": spun, "daemon": daemon}


async def run_attempts(box: BaseSandbox) -> dict[str, str | None]:
    """Run all of `attempts`, and check their effects outside."""
    with ExitStack() as opened:
        scene = opened.enter_context(Scene())
        command = [box.python, "-I", "-S", "-", json.dumps(scene.facts)]
        outcome = await box.run(command, stdin=ATTEMPTS.read_bytes(), limits=PROBED)
        try:
            found: dict[str, str | None] = json.loads(outcome.stdout)
        except ValueError:
            return {"start": f"the attempts did not run: {describe(outcome)}"}
        return {**found, **{name: effect for name, effect in scene.effects().items() if effect}}


def describe(outcome: SandboxOutcome) -> str:
    """Describe an outcome in one line."""
    last = outcome.stderr.strip().splitlines()[-1:] or [""]
    return f"exit code {outcome.exit_code}, signal {outcome.signal}, limit {outcome.limit}: {last[0][:300]}"


async def try_spinning(box: BaseSandbox) -> str | None:
    """A loop without end, ended after one second of processor time."""
    outcome = await box.run([box.python, "-I", "-S", "-c", SPIN], limits=SandboxLimits(cpu=1, wall=10))
    return None if outcome.limit == "cpu" else f"not ended for its processor time: {describe(outcome)}"


async def try_daemon(box: BaseSandbox) -> str | None:
    """A process that left its session and holds the pipe, dead at the deadline."""
    start = monotonic()
    outcome = await box.run([box.python, "-I", "-S", "-c", DAEMON], limits=SandboxLimits(wall=0.5))
    if not outcome.timed_out or monotonic() - start > 2:
        return f"the call returned after {monotonic() - start:.1f} s: {describe(outcome)}"
    beat = box.workdir / "beat"
    before = beat.read_text() if beat.exists() else ""
    await asyncio.sleep(0.1)
    after = beat.read_text() if beat.exists() else ""
    return None if before == after else "it lives on"


class Scene:
    """Things outside that must not be reached, and whether they were."""

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._canary = f"canary-{secrets.token_hex(8)}"

    def __enter__(self) -> Scene:
        with ExitStack() as opening:
            folder = Path(opening.enter_context(tempfile.TemporaryDirectory(prefix="agentkit-outside-")))
            folder.chmod(0o755)
            self._outside = folder / "outside"
            self._outside.write_text(self._canary)
            self._outside.chmod(0o644)
            os.utime(self._outside, (1_000_000, 1_000_000))
            unique = f"agentkit-{secrets.token_hex(8)}"
            self._listening = [
                opening.enter_context(listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))),
                opening.enter_context(listening(socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "socket"))),
                opening.enter_context(listening(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + unique)),
            ]
            (folder / "socket").chmod(0o777)
            self._udp = opening.enter_context(listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)))
            self._victim = opening.enter_context(bystander(self._canary))
            self.facts: dict[str, Any] = {
                "outside": str(self._outside),
                "home_files": files_of(Path(os.path.expanduser("~"))),
                "unique": unique,
                "tcp": self._listening[0].getsockname()[1],
                "udp": self._udp.getsockname()[1],
                "netns": False,
                "unix": str(folder / "socket"),
                "victim": self._victim.pid,
                "host": os.getpid(),
                "yranac": self._canary[::-1],
                "variables": sorted(os.environ.keys() - INSIDE),
                "processes": PROBED.processes,
            }
            self._opened = opening.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def effects(self) -> dict[str, str | None]:
        """Return the effects outside the sandbox, by attempt."""
        status = self._outside.stat()
        names = ("tcp", "unix_path", "unix_abstract")
        return {
            "tmp_write": None if self._outside.read_text() == self._canary else "a file outside was changed",
            "chmod": None if stat.S_IMODE(status.st_mode) == 0o644 else "the mode of a file outside was changed",
            "times": None if status.st_mtime == 1_000_000 else "the times of a file outside were changed",
            "udp": "a datagram arrived" if arrived(self._udp) else None,
            "kill_all": "a signal arrived outside" if self._signalled() else None,
            "kill_outside": None if self._victim.poll() is None else "a process outside was killed",
            **{name: "a connection arrived" for name, at in zip(names, self._listening, strict=True) if arrived(at)},
        }

    def _signalled(self) -> bool:
        """Return True if the bystander received the harmless signal."""
        assert self._victim.stdout is not None
        os.set_blocking(self._victim.stdout.fileno(), False)
        return bool(self._victim.stdout.read())


@contextmanager
def listening(family: int, kind: int, address: Any) -> Iterator[socket.socket]:
    """A socket outside."""
    with socket.socket(family, kind) as listener:
        listener.setblocking(False)
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen(1)
        yield listener


def arrived(listener: socket.socket) -> bool:
    """Return True if a connection or a datagram arrived."""
    with suppress(BlockingIOError):
        if listener.type == socket.SOCK_DGRAM:
            return bool(listener.recv(100))
        listener.accept()[0].close()
        return True
    return False


@contextmanager
def bystander(canary: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process outside with a secret in its arguments and environment."""
    kept = {name: os.environ[name] for name in MINIMAL if name in os.environ}
    command = [sys.executable, "-I", "-S", "-c", BYSTANDER, canary]
    env = {**kept, "SECRET": canary}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=env) as process:
        try:
            assert process.stdout is not None
            process.stdout.read(1)  # it is ready
            yield process
        finally:
            process.kill()


def files_of(folder: Path) -> list[str]:
    """Some files that this process can read."""
    with suppress(OSError):
        return [str(path) for path in sorted(folder.iterdir()) if path.is_file() and os.access(path, os.R_OK)][:20]
    return []
