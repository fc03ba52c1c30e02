"""Starts a local server and exchanges lines of JSON with it. Lines, last words and the time to exit are bounded.

The official SDK's own transport has no bound on a line, and lets the server write to the program's standard error.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import secrets
import signal
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from agentkit.checks.unicode import clean_json, escape_controls
from agentkit.interop.mcp.amount import too_many
from agentkit.interop.mcp.endpoints import INHERITED, LocalServer, safe_words

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

_LOG: Final = logging.getLogger("agentkit.mcp")
_EXIT: Final = 2.0  # seconds to exit after its input was closed, as the MCP specification asks
_KILL: Final = 1.0  # seconds to exit after SIGTERM
_NOTICE: Final = 1.0  # seconds, on a busy machine, between the end of its output and the news that it has exited
_WORDS: Final = 20  # lines of its standard error that are kept
_QUOTED: Final = 3  # of them, in a message
_MARK: Final = "AGENTKIT_MCP_SESSION"  # a variable of its environment, by which what it has started is found
_PASSES: Final = 5  # over all processes, as long as there are any of its: they may start others in the meantime
_ENDS: Final = 200  # characters of an unreadable line in which its id is looked for
_ID: Final = re.compile(
    rb'\A\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\b|"id"\s*:\s*(\d{1,18})\s*\}\s*\Z'
)


class LocalProcess:
    """A started server.

    Args:
        server: what to start.
        cap: bytes that one line may have.
    """

    def __init__(self, server: LocalServer, cap: int) -> None:
        self._server = server
        self._cap = cap
        self._words: deque[str] = deque(maxlen=_WORDS)
        self._process: asyncio.subprocess.Process | None = None

    async def fate(self) -> str:
        """Return how it ended, and its last words, for a message; empty while it runs."""
        process = self._process
        if process is None:
            return ""
        await _exited(process, _NOTICE)
        if process.returncode is None:
            return ""
        code = process.returncode
        ended = f"it exited with status {code}" if code >= 0 else f"it was ended by signal {-code}"
        words = safe_words(" ".join(list(self._words)[-_QUOTED:]), self._server.secrets)[-500:]
        return f"{ended}; its last words: {words}" if words else ended

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Start it; its two streams of messages. At the end the process, and all it has started, is gone."""
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        mark = secrets.token_hex(16)
        self._process = process = await asyncio.create_subprocess_exec(
            *self._server.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**inherited, **self._server.env, _MARK: mark},
            cwd=self._server.cwd,
            start_new_session=True,
            limit=self._cap,
        )
        said, heard = anyio.create_memory_object_stream[Any](0)
        sent, sending = anyio.create_memory_object_stream[Any](0)
        try:
            async with anyio.create_task_group() as group, said, heard, sent, sending:
                group.start_soon(self._read, process, said)
                group.start_soon(self._write, process, sending, said)
                group.start_soon(self._listen, process)
                try:
                    yield heard, sent
                finally:
                    group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
                _end_started(f"{_MARK}={mark}".encode())

    async def _read(self, process: asyncio.subprocess.Process, said: MemoryObjectSendStream[Any]) -> None:
        async with said:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                while (line := await self._line(process)) is not None:
                    if (message := _message(line, self._cap, self._server.secrets)) is not None:
                        await said.send(message)

    async def _line(self, process: asyncio.subprocess.Process) -> bytes | None:
        """The next line; None at the end. Of a line that is too long, only its two ends."""
        assert process.stdout is not None
        ends = b""
        while True:
            try:
                rest = await process.stdout.readuntil()
                return ends[:_ENDS] + b" " * (self._cap + 1) + rest[-_ENDS:] if ends else rest
            except asyncio.IncompleteReadError:
                return None
            except asyncio.LimitOverrunError as e:
                ends += (await process.stdout.readexactly(e.consumed or 1))[: _ENDS - len(ends)]

    async def _write(
        self,
        process: asyncio.subprocess.Process,
        sending: MemoryObjectReceiveStream[SessionMessage],
        said: MemoryObjectSendStream[Any],
    ) -> None:
        assert process.stdin is not None
        try:
            async for item in sending:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()
        except (OSError, RuntimeError):  # it reads no more: nobody need wait for an answer any longer
            await said.aclose()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(65_536):
            for line in chunk.decode(errors="replace").splitlines():
                words = escape_controls(safe_words(line, self._server.secrets)[:500])
                self._words.append(words)
                _LOG.debug("%s: %s", self._server.name, words)


def _message(line: bytes, cap: int, secrets: Sequence[str]) -> SessionMessage | None:
    """A line as a message; None for one that cannot be read, unless somebody waits for it."""
    from mcp.shared.message import SessionMessage
    from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
    from pydantic import ValidationError

    why = f"its answer is larger than {cap:,} bytes" if len(line) > cap else too_many(line)
    if not why:
        text = line.decode(errors="replace")
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
        except ValueError:
            pass
        try:  # half of a surrogate pair, which JavaScript writes for a cut emoji, is not read by pydantic
            return SessionMessage(jsonrpc_message_adapter.validate_python(clean_json(json.loads(text)), by_name=False))
        except (ValueError, RecursionError) as e:
            said = "no JSON-RPC message" if isinstance(e, ValidationError) else str(e)
            why = f"its answer cannot be read: {said:.200}"
    found = _ID.search(line[:_ENDS]) or _ID.search(line[-_ENDS:])
    if found is None:
        words = escape_controls(safe_words(line.decode(errors="replace"), secrets)[:200])
        _LOG.debug("a line of a local MCP server is not a message: %s", words)
        return None
    number = int(found[1] or found[2])
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=INTERNAL_ERROR, message=why)))


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its input, wait, then end it and everything that it has started."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        await _exited(process, _EXIT)
        _signal(process, signal.SIGTERM)
        await _exited(process, _KILL)
    finally:  # even if this is cancelled
        _signal(process, signal.SIGKILL)
        await _exited(process, _KILL)
        transport = getattr(process, "_transport", None)  # a grandchild may hold the pipes; nothing public closes them
        if transport is not None:
            transport.close()


def _end_started(mark: bytes) -> None:
    """Kill the server's processes that have left its group: found by their environment in `/proc`, if there is one."""
    for _ in range(_PASSES):
        found = 0
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended, or is another user's
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
                    found += 1
        if not found:
            return


def _signal(process: asyncio.subprocess.Process, kind: signal.Signals) -> None:
    """Signal the process and all it has started: they are a separate group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, kind)


async def _exited(process: asyncio.subprocess.Process, patience: float) -> None:
    """Wait until it has exited; `process.wait()` would also wait for those that inherited its pipes."""
    with anyio.move_on_after(patience):
        while process.returncode is None:  # noqa: ASYNC110 - nothing sends an event
            await anyio.sleep(0.01)
