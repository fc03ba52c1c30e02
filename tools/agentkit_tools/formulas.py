r"""Comparison of two formulas by `math-verify`, in a separate process with limits of time and memory.

A model writes the formula, and its cost cannot be seen in it: `9^{9\cdot 9\cdot 9\cdot 9\cdot 9}`.
A computation inside a library in C can be ended only by ending its process; in this one it would block every thread.

That process also runs this file. There it imports only the standard library and `math-verify`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from typing import Final

SECONDS: Final = 5.0  # for one pair; usual ones take milliseconds
MEMORY: Final = 2 << 30  # bytes of address space
_INHERITED: Final = ("HOME", "LANG", "LD_LIBRARY_PATH", "PATH")


def equal_formulas(answer: str, truth: str) -> bool:
    """Return True if `math-verify` finds that an answer equals the truth.

    Returns False if it is not installed, or if the comparison takes longer than `SECONDS` or more than `MEMORY`.
    One pair is compared at a time.
    """
    if importlib.util.find_spec("math_verify") is None:
        return False
    return _process(os.getpid()).equal(answer, truth)


class _Process:
    """The process that compares; started when it is needed, and again after it was ended by a limit."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._popen: subprocess.Popen[str] | None = None

    def equal(self, answer: str, truth: str) -> bool:
        with self._turn:
            popen = self._popen = self._popen or self._start()
            assert popen.stdin is not None
            assert popen.stdout is not None
            try:
                popen.stdin.write(json.dumps([truth, answer]) + "\n")
                popen.stdin.flush()
                answered = popen.stdout.readline()
            except BrokenPipeError:
                answered = ""
            if not answered:  # it ran into a limit: its own alarm ends it, so that nobody need watch it
                self._popen = None
                _end(popen)
            return answered == "true\n"

    def _start(self) -> subprocess.Popen[str]:
        popen = subprocess.Popen(
            [sys.executable, "-P", __file__, json.dumps(sys.path), str(SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _INHERITED if name in os.environ},
            encoding="utf-8",
        )
        weakref.finalize(self, _end, popen)  # also at the end of the program
        return popen


@functools.cache
def _process(pid: int) -> _Process:
    """The one of this process: a fork must not read the answers of its parent's."""
    return _Process()


def _end(popen: subprocess.Popen[str]) -> None:
    popen.kill()
    popen.wait()
    for stream in (popen.stdin, popen.stdout):
        assert stream is not None
        with contextlib.suppress(BrokenPipeError):  # what it never read
            stream.close()


def _compare(truth: str, answer: str) -> bool:
    """Compare a pair inside the process. `math-verify`'s own time limit needs Python to run; the alarm does not."""
    from math_verify import parse, verify

    wrapped = (text if "\\boxed" in text or "$" in text else f"${text}$" for text in (truth, answer))
    gold, given = (parse(text, parsing_timeout=None) for text in wrapped)
    return bool(given) and bool(verify(gold, given, timeout_seconds=None))


def _serve() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.path[:], seconds = json.loads(sys.argv[1]), float(sys.argv[2])
    _compare("1", "1")  # imports everything: its time is not that of the first pair
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_REAL, seconds)  # SIGALRM ends the process, whatever it computes
        same = _compare(*json.loads(line))
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout.write(json.dumps(same) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
