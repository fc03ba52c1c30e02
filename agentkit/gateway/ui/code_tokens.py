"""Code as tokens to be coloured, read by pygments in a process that can be ended."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

LONGEST: Final = 20_000
"""Characters of a text that is still read."""

_WAITING: Final = 50
"""Texts that wait for the worker."""

_WORKER: Final = Path(__file__).with_name("token_worker.py")


class CodeTokens:
    """Reads code in a worker process, which starts with the first text, and again after one that took too long."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "agentkit-tokens")
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting = 0

    async def tokens(self, language: str, code: str) -> list[tuple[str, str]]:
        """Return the tokens of a text: pygments' short class, such as `k`, empty for plain text, and the characters.

        Args:
            language: as pygments names it, or a file's name.
            code: the text; more than 20,000 characters, 2 seconds of CPU time, an unknown language, or more than 50
                texts that wait give one plain token.
        """
        if not language or not code or max(len(code), len(language)) > LONGEST or self._waiting >= _WAITING:
            return [("", code)]
        loop = asyncio.get_running_loop()
        self._waiting += 1
        try:
            return await loop.run_in_executor(self._thread, self._ask, language, code) or [("", code)]
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """End the worker; texts that wait are given up."""
        if self._process is not None:
            self._process.kill()
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._end()

    def _ask(self, language: str, code: str) -> list[tuple[str, str]] | None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answer = b""
        with suppress(OSError, ValueError):  # it has ended, or is closed
            self._process.stdin.write(json.dumps([language, code]).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            self._end()
            return None
        return [(kind, text) for kind, text in json.loads(answer)]

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(OSError):
                process.communicate()
