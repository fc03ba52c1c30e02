"""`python -m agentkit` and examples, forked off a process that has made their imports: a second of CPU cheaper each.

They have a session, streams, a folder and an environment of their own, as if started; only the interpreter and
the modules are there already. A test of what depends on Python's start, as encodings do, or on imports starts a Python.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TextIO

PROGRAM = [sys.executable, "-m", "agentkit"]
STRICT = [sys.executable, "-W", "error"]
LOADED = (
    "agentkit.agent.agent", "agentkit.agent.in_memory", "agentkit.agent.unanswered_calls",
    "agentkit.cli.approval_prompt",
    "agentkit.cli.chat_storage", "agentkit.models.model_strings", "agentkit.models.openai", "agentkit.threads.manager",
    "agentkit.threads.open_response", "agentkit.threads.sql.sqlite", "anyio._backends._asyncio", "docstring_parser",
    "httpcore2", "jsonschema", "openai.resources.chat.completions", "prompt_toolkit.shortcuts", "pydantic",
    "rich.console", "rich.live", "rich.markdown", "rich.panel", "rich.syntax", "sqlite3", "truststore",
)  # fmt: skip
"""What a chat imports; a module that is not installed is passed over."""
OF_OPTIONS = {"--mcp": ("mcp.client.session", "mcp.client.stdio", "mcp.shared.message", "mcp_types.methods")}
"""What it imports for an option, once one asks for it."""


class Started:
    """A running program: as much of `subprocess.Popen` as the tests ask for."""

    def __init__(self, pid: int, told: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._told = told

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._told.settimeout(timeout)
            try:
                status = self._told.recv(16)
            except TimeoutError:
                raise subprocess.TimeoutExpired(PROGRAM, timeout or 0) from None
            self._told.close()
            self.returncode = os.waitstatus_to_exitcode(int(status))
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(1e-6)
        return None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(
    words: list[str], streams: tuple[int, int, int], *, folder: Path | None = None,
    environment: Mapping[str, str] | None = None, terminal: bool = False,
) -> Started:  # fmt: skip
    """Start `python -m agentkit`, or `python -W error` with a file.

    Args:
        words: `PROGRAM` and its arguments, or `STRICT` and the file.
        streams: file descriptors of its input, its output and its complaints.
        folder: where it runs; here unless given.
        environment: all its variables; those of this process unless given.
        terminal: its input is a terminal that becomes its own.
    """
    assert words[:3] in (PROGRAM, STRICT)
    asked = [words[1:], str(folder or Path.cwd()), dict(os.environ if environment is None else environment), terminal]
    control, (told, theirs) = _server(), socket.socketpair()
    message = json.dumps(asked).encode()
    with theirs:
        socket.send_fds(control, [len(message).to_bytes(4, "big")], [*streams, theirs.fileno()])
        control.sendall(message)
    return Started(int(told.recv(16)), told)


def begin(words: list[str], typed: str) -> Started:
    """Start `python -m agentkit` on an input in a pipe; nobody reads what it prints."""
    (read, write), nowhere = os.pipe(), os.open(os.devnull, os.O_WRONLY)
    running = start(words, (read, nowhere, nowhere))
    os.write(write, typed.encode())
    for fd in (read, write, nowhere):
        os.close(fd)
    return running


def run(words: list[str], typed: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end on an input in a pipe, for at most a minute."""
    read, write = os.pipe()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        running = start(words, (read, out.fileno(), err.fileno()))
        os.close(read)
        with open(write, "w") as pipe, contextlib.suppress(BrokenPipeError):
            pipe.write(typed)
        try:
            status = running.wait(60)
        finally:
            running.kill()
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(words, status, out.read(), err.read())


@cache
def _server() -> socket.socket:
    """A connection to the process of which the programs are forked; it ends with this one."""
    ours, theirs = socket.socketpair()
    with theirs:
        words = [sys.executable, __file__, str(theirs.fileno())]
        server = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True)

    @atexit.register
    def end() -> None:
        ours.shutdown(socket.SHUT_RDWR)  # a process that a test forked and left may have it open, too
        ours.close()
        server.wait(30)

    return ours


def _load(names: Iterable[str]) -> None:
    for name in names:
        if name not in sys.modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _serve(control: socket.socket) -> None:
    _load(LOADED)
    while True:
        size, fds, _, _ = socket.recv_fds(control, 4, 4)
        if not size:
            return
        message = b""
        while len(message) < int.from_bytes(size, "big"):
            message += control.recv(65_536)
        asked = json.loads(message)
        _load(name for option in OF_OPTIONS if option in asked[0] for name in OF_OPTIONS[option])
        if os.fork() == 0:
            control.close()
            _keep(fds, *asked)
            return
        for fd in fds:
            os.close(fd)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _keep(fds: list[int], words: list[str], folder: str, environment: dict[str, str], terminal: bool) -> None:
    """Run the program in a child, and tell its pid and its status, each in 16 bytes: they may be read late."""
    *streams, told = fds
    if pid := os.fork():
        os.write(told, b"%16d" % pid)
        os.write(told, b"%16d" % os.waitpid(pid, 0)[1])
        os._exit(0)
    os.setsid()
    for fd, stream in zip(streams, range(3), strict=True):
        os.dup2(fd, stream)
    os.closerange(3, max(fds) + 1)
    if terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = _text(io.BufferedReader(io.FileIO(0, closefd=False)), sys.stdin)
    sys.stdout = _text(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), sys.stdout, lines=os.isatty(1))
    sys.stderr = _text(io.BufferedWriter(io.FileIO(2, "w", closefd=False)), sys.stderr, lines=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    match words:
        case ["-m", module, *arguments]:
            sys.path[0], sys.argv[1:] = folder, arguments
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [*_, file]:
            warnings.simplefilter("error")
            sys.path[0], sys.argv = str(Path(file).parent), [file]
            runpy.run_path(file, run_name="__main__")


def _text(stream: io.BufferedReader | io.BufferedWriter, like: TextIO, *, lines: bool = False) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, like.encoding, like.errors, line_buffering=lines)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
