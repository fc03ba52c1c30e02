"""A program in a terminal of its own, for tests and for the recordings of the docs. Knows how agentkit is started."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from warm_program import PROGRAM, Started, start


def _own_terminal() -> None:
    """So that Ctrl-C reaches the program, also where whoever runs the tests ignores it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """A program in a terminal of its own: type keys, wait for what appears.

    Args:
        words: the program and its arguments.
        columns: how wide the terminal is.
        folder: where the program runs; here unless given.
        environment: variables beside those of this process.
    """

    def __init__(
        self,
        words: list[str],
        *,
        columns: int = 80,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.keys, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.seen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        all_of_it = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | {"TERM": "dumb", "NO_COLOR": "1"}
        all_of_it |= environment or {}
        self.process: subprocess.Popen[bytes] | Started
        if words[: len(PROGRAM)] == PROGRAM:
            self.process = start(words, (screen, screen, screen), folder=folder, environment=all_of_it, terminal=True)
        else:
            self.process = subprocess.Popen(
                words,
                stdin=screen,
                stdout=screen,
                stderr=screen,
                start_new_session=True,
                preexec_fn=_own_terminal,
                cwd=folder,
                env=all_of_it,
            )
        os.close(screen)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.keys)

    def type(self, text: str) -> None:
        os.write(self.keys, text.encode())

    def wait_for(self, text: str, seconds: float = 30) -> str:
        """What appeared up to and with `text` since the last wait."""
        self.read_until(lambda: text in self.seen, text, seconds)
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def read_until(self, done: Callable[[], bool], awaited: str, seconds: float = 30) -> None:
        """Read what the program writes until a condition holds."""
        deadline = time.monotonic() + seconds
        while not done():
            ready, _, _ = select.select([self.keys], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"{awaited!r} did not appear in {self.seen!r}"
            text = self._decoder.decode(os.read(self.keys, 65_536))
            self.receive(text)
            self.seen += text.replace("\r\n", "\n")

    def receive(self, text: str) -> None:
        """Called with all that the program writes."""

    def press(self, key: str, until: str) -> None:
        """Press a key, again each second, until `until` appears: readline misses a signal between two of its waits."""
        while until not in self.seen:
            self.type(key)
            with contextlib.suppress(AssertionError):
                self.wait_for(until, seconds=1)
                return

    def rest(self, seconds: float = 30) -> str:
        """What appeared since the last wait, up to the program's end."""
        deadline = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self.keys], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"the program did not end; it wrote {self.seen!r}"
            try:
                new = os.read(self.keys, 4096)
            except OSError:  # EIO, Linux's word for: nobody holds the other end any more
                new = b""
            if not new:
                break
            text = self._decoder.decode(new)
            self.receive(text)
            self.seen += text.replace("\r\n", "\n")
        said, self.seen = self.seen, ""
        return said

    def status(self) -> int:
        return self.process.wait(30)
