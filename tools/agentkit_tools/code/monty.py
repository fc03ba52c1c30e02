"""Python code in monty, an interpreter of a subset of Python: no files, network, environment or packages.

Needs the extra `monty`.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from agentkit.errors import ConfigError, install_command
from agentkit.sandbox import SandboxLimits, StreamOutput
from agentkit_tools.code.terminal_text import decode, readable
from agentkit_tools.code.worker import CodeOutcome

if TYPE_CHECKING:
    from pydantic_monty import Monty, MontyError, MontySession

MAX_TEXT: Final = 20_000  # characters of a value's repr, and of a traceback


class MontyRuns:
    """Runs code in monty for one tool; the counterpart of the interpreters in a sandbox.

    Every snippet has limits: monty itself has none by default, and prints to this process's own output.

    Args:
        limits: its `memory` is used.
        timeout: seconds for one piece of code.
        output: bytes of output that are kept, half from the start and half from the end.

    Raises:
        ConfigError: the extra `monty` is not installed.
    """

    def __init__(self, limits: SandboxLimits, timeout: float, output: int) -> None:
        try:
            import pydantic_monty
        except ImportError as e:
            raise ConfigError(f"sandbox='monty' needs the extra `monty`: {install_command('monty')}") from e
        self.made = pydantic_monty
        self.limits: Any = {"max_feed_duration_secs": timeout, "max_memory": limits.memory}
        self.output = output
        self.pool: Monty | None = None
        self.session: MontySession | None = None
        self.one_by_one = asyncio.Lock()

    async def alone(self, code: str) -> CodeOutcome:
        """Run code that shares nothing with other code."""
        return await asyncio.to_thread(self._alone, self._pool(), code)

    async def in_session(self, code: str) -> tuple[CodeOutcome, str]:
        """Run code with the variables of earlier code."""
        async with self.one_by_one:
            if self.session is None:
                self.session = await asyncio.to_thread(self._checkout(self._pool()).__enter__)
            ran = await asyncio.to_thread(self._run, self.session, code)
            if not ran.alive:
                self.session = None
            return ran, ""

    async def close(self) -> None:
        """End its processes."""
        pool, self.pool, self.session = self.pool, None, None
        if pool is not None:
            await asyncio.to_thread(pool.__exit__, None, None, None)

    def _pool(self) -> Monty:
        if self.pool is None:
            self.pool = self.made.Monty().__enter__()
        return self.pool

    def _checkout(self, pool: Monty) -> MontySession:
        return pool.checkout(limits=self.limits)

    def _alone(self, pool: Monty, code: str) -> CodeOutcome:
        with self._checkout(pool) as session:
            return self._run(session, code)

    def _run(self, session: MontySession, code: str) -> CodeOutcome:
        started = monotonic()
        printed = self.made.CollectStreams()
        found: dict[str, Any] = {"alive": True}
        try:
            value = session.feed_run(code, print_callback=printed)
            found["value"] = None if value is None else shorten(repr(value))
        except self.made.MontyError as e:
            found |= self._failure(e, monotonic() - started)
        streams: dict[str, str] = {"stdout": "", "stderr": ""}
        for stream, piece in printed.output:
            streams[stream] += piece
        for name, text in streams.items():
            data = text.encode("utf-8", "replace")
            half, cut = self.output // 2, max(0, len(data) - self.output)
            kept = StreamOutput(data[:half], cut, data[-half:]).whole_characters() if cut else StreamOutput(data)
            found[name], found[f"{name}_cut"] = decode(kept), kept.left_out
        return CodeOutcome(wall=round(monotonic() - started, 4), **found)

    def _failure(self, error: MontyError, seconds: float) -> dict[str, Any]:
        """Return the report of an exception of the code, or of the interpreter's end."""
        if not isinstance(error, (self.made.MontyRuntimeError, self.made.MontySyntaxError)):
            late = seconds > self.limits["max_feed_duration_secs"]  # within one operation, which cannot be interrupted
            return {"lost": readable(str(error)), "alive": False, "timed_out": late}
        kind = type(error.exception()).__name__
        timed_out = kind == "TimeoutError" and "time limit exceeded" in str(error)
        return {"error": shorten(readable(error.display())), "error_type": kind, "timed_out": timed_out}


def shorten(text: str) -> str:
    """The text, with its middle omitted if it is long."""
    half, over = MAX_TEXT // 2, len(text) - MAX_TEXT
    return text if over <= 0 else f"{text[:half]}\n[… {over} characters omitted …]\n{text[-half:]}"
