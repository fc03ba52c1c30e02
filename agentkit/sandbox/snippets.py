"""Python snippets in monty, an interpreter without files, network and environment. Loads it on first use."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

from agentkit.checks.missing_await import EnteredAsync
from agentkit.errors import SandboxUnavailable, install_command
from agentkit.sandbox.output_buffer import OutputBuffer
from agentkit.sandbox.quota import LimitName, SandboxLimits, SandboxOutcome

LIMIT_OF: dict[str, LimitName] = {"TimeoutError": "cpu", "MemoryError": "memory"}
"""How monty says which limit ended a snippet."""


_SETTLES: Final = 0.1
"""Seconds in which monty's threads release Python's objects after its end.

If the program ends before they have, it is aborted: about one run in five with pydantic-monty 1.4.
"""


class Snippets(EnteredAsync):
    """Runs short Python programs in a warm worker of monty; an async context manager.

    Not a `Sandbox`: there are no commands, files or processes, and of Python's library only what monty has built in. In
    exchange a snippet starts in well under a millisecond and needs nothing from the system. Each runs by itself: names
    are not kept for the next one. Belongs to the event loop in which it was first used.

    Args:
        limits: for snippets that bring none. `cpu`, `wall`, `memory` and `output` count; the others do not apply.
    """

    name = "monty"

    def __init__(self, limits: SandboxLimits | None = None) -> None:
        self._limits = limits or SandboxLimits()
        self._opened = AsyncExitStack()
        self._pool: Any = None
        self._opening = asyncio.Lock()

    async def run_python(self, source: str, *, limits: SandboxLimits | None = None) -> SandboxOutcome:
        """Run one snippet. An uncaught exception is an outcome: exit code 1, the traceback in `stderr`.

        Raises:
            SandboxUnavailable: monty is not installed.
        """
        limits = limits or self._limits
        pool = await self._start_pool()
        from pydantic_monty import MontyError

        out, err = OutputBuffer(limits.output), OutputBuffer(limits.output)

        def printed(stream: str, text: str) -> None:
            (out if stream == "stdout" else err).add(text.encode("utf-8", "replace"))

        start, code, limit, timed_out = monotonic(), 0, None, False
        try:
            async with (
                asyncio.timeout(limits.wall),
                pool.checkout(limits={"max_feed_duration_secs": limits.cpu, "max_memory": limits.memory}) as session,
            ):
                await session.feed_run(source, print_callback=printed)
        except MontyError as e:
            code, limit = 1, LIMIT_OF.get(type(e.exception()).__name__)
            printed("stderr", e.display() if hasattr(e, "display") else str(e))
        except TimeoutError:
            code, limit, timed_out = 1, "wall", True
        wrote, complained = out.take(), err.take()
        return SandboxOutcome(
            stdout=wrote.text,
            stderr=complained.text,
            exit_code=None if timed_out else code,
            timed_out=timed_out,
            limit=limit,
            wall=monotonic() - start,
            stdout_cut=wrote.left_out,
            stderr_cut=complained.left_out,
        )

    async def _start_pool(self) -> Any:
        """The workers, started when first needed."""
        async with self._opening:
            if self._pool is None:
                try:
                    from pydantic_monty import AsyncMonty
                except ImportError as e:
                    raise SandboxUnavailable(f"monty is not installed: {install_command('monty')}") from e
                self._pool = await self._opened.enter_async_context(AsyncMonty())
        return self._pool

    async def close(self) -> None:
        """Stop the workers. Harmless when repeated."""
        opened, self._pool = self._pool is not None, None
        await self._opened.aclose()
        if opened:
            await asyncio.sleep(_SETTLES)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
