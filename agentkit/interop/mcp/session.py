"""One pooled session with a server: opened on first use, shared by all calls, reopened after a failure.

Runs in the `BackgroundLoop`. Knows the official SDK; knows no agentkit tool and no model.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from agentkit.checks.unicode import clean_json
from agentkit.interop.mcp.endpoints import Endpoint, LocalServer, safe_words
from agentkit.interop.mcp.handlers import elicitation_callback, sampling_callback
from agentkit.interop.mcp.http_transport import LOST, NOT_FOUND, UNSENT, http_streams
from agentkit.interop.mcp.local_transport import LocalProcess
from agentkit.interop.mcp.mcp_options import MCPOptions
from agentkit.interop.mcp.message_filter import LISTED, Unfit, fault, filter_messages

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import Tool

_LOG: Final = logging.getLogger("agentkit.mcp")

PAGES: Final = 100
"""Pages of a list that are read: a server could send them forever."""

_BROKEN: Final = ("Failed to parse JSON response", "SSE stream ended without a response")


class Reporter(Protocol):
    """Receives a call's progress, its total, and a message."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """The server has reported progress."""
        ...


class CallFailed(Exception):
    """A request without a result.

    `why`: it did not reach the server, there is no answer that can be read, or the server refused it.
    """

    def __init__(self, message: str, why: Literal["unsent", "unanswered", "refused"]) -> None:
        super().__init__(message)
        self.why = why


class Connection:
    """One session, from its start to its end. A task of its own enters and leaves it, as the SDK requires."""

    def __init__(self, where: Endpoint, options: MCPOptions, changed: Callable[[], None], unfit: Unfit) -> None:
        self._where = where
        self._options = options
        self._changed = changed
        self._unfit = unfit
        self._local = LocalProcess(where, options.max_message) if isinstance(where, LocalServer) else None
        self._leave = asyncio.Event()
        self._calls = 0
        self.broken = False
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(), name=f"MCP session with {where.name}")

    async def client(self) -> Client:
        """Return the SDK's client, once the handshake is done.

        Raises:
            CallFailed: there is no such server, it is not an MCP server, or it is too slow.
        """
        seconds = self._options.connect_timeout
        done, _ = await asyncio.wait({self._ready}, timeout=seconds)
        if not done:
            self.close()
            raise CallFailed(f"the MCP server was not ready after {seconds:g} s ({self._where})", "unsent")
        return self._ready.result()

    async def _live(self) -> None:
        from mcp import Client
        from mcp_types import ToolListChangedNotification

        async def heard(message: Any) -> None:
            if isinstance(message, ToolListChangedNotification):
                self._changed()

        try:
            client = Client(
                filter_messages(self._transport(), self._unfit),
                message_handler=heard,
                elicitation_callback=elicitation_callback(self._options.elicit),
                sampling_callback=sampling_callback(self._options.sample),
                client_info=_ourselves(),
                cache=None,
            )
            async with client:
                # a server's own schema could hold a regular expression that takes hours; it checks its own results
                client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]
                self._ready.set_result(client)
                await self._leave.wait()
        except asyncio.CancelledError:
            if not self._ready.done():
                self._fail(f"the session with the MCP server was closed ({self._where})")
            raise
        except BaseException as e:  # noqa: BLE001 - any fault of the SDK or the server, even a group, becomes a CallFailed
            self._fail(f"cannot use the MCP server ({self._where}): {await self.words(e)}")
        finally:
            self.broken = True

    def _transport(self) -> AbstractAsyncContextManager[Any]:
        if self._local is not None:
            return self._local.streams()
        assert not isinstance(self._where, LocalServer)
        return http_streams(self._where, self._options.max_message)

    def _fail(self, message: str) -> None:
        if not self._ready.done():
            self._ready.set_exception(CallFailed(message, "unsent"))
            self._ready.exception()  # so that nobody has to read it
        elif not self._leave.is_set():
            _LOG.warning("%s", message)

    async def words(self, error: BaseException | str) -> str:
        """An error of this session in words, with the server's fate."""
        fate = await self._local.fate() if self._local is not None else ""
        said = safe_words(error, self._where.secrets)
        if isinstance(error, FileNotFoundError) and isinstance(self._where, LocalServer):
            return f"there is no {'folder' if error.filename == self._where.cwd else 'program'} {error.filename!r:.200}"
        return "; ".join(filter(None, (said, fate)))

    async def use(self, work: Callable[[Client], Awaitable[Any]]) -> Any:
        """Do something with the session; it is not left before all of this is done.

        Raises:
            CallFailed: it cannot be opened, or has been left.
        """
        if self._leave.is_set():
            raise CallFailed(f"the session with the MCP server has ended ({self._where})", "unsent")
        self._calls += 1  # before it waits: another call may break the session in the meantime
        try:
            return await work(await self.client())
        finally:
            self._calls -= 1
            if self.broken and not self._calls:
                self._leave.set()

    def retire(self) -> None:
        """Use it no more; it ends after its last call."""
        self.broken = True
        if not self._calls:
            self._leave.set()

    def close(self) -> None:
        """End it now, with all its calls."""
        self.broken = True
        if not self._leave.is_set() and not self._ready.done():
            self._task.cancel()  # once: a second time would interrupt the end of the process
        self._leave.set()

    async def wait_closed(self) -> None:
        """Wait for its end."""
        with suppress(asyncio.CancelledError):
            await asyncio.wait({self._task})


class Session:
    """The pooled session.

    Args:
        where: the server.
        options: how it is opened.
        listed: called with the server's tools whenever they were listed: after each opening, and after each change.
        unfit: told about each listed tool that is malformed.
    """

    def __init__(
        self, where: Endpoint, options: MCPOptions, listed: Callable[[list[Tool]], None], unfit: Unfit
    ) -> None:
        self._unfit = unfit
        self._where = where
        self._options = options
        self._listed = listed
        self._stale = True
        self._now: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None

    async def open(self) -> Connection:
        """The session, open and with its tools listed; all that need it while it is opened wait for the same one.

        Raises:
            CallFailed: it cannot be opened.
        """
        if self._now is not None and not self._now.broken and not self._stale:
            return self._now
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(_seen)
        return await asyncio.shield(self._opening)

    async def _open(self) -> Connection:
        if self._now is None or self._now.broken:
            self._now = Connection(self._where, self._options, self._changed, self._unfit)
        connection = self._now
        try:
            await connection.client()
            async with asyncio.timeout(self._options.connect_timeout):
                self._stale = False
                self._listed(await connection.use(lambda client: all_pages(client.list_tools, "tools")))
        except BaseException as e:
            self._stale = True
            connection.close()
            if isinstance(e, CallFailed | asyncio.CancelledError):
                raise
            raise CallFailed(f"cannot list the tools of {self._where}: {await connection.words(e)}", "unsent") from None
        return connection

    def _changed(self) -> None:
        self._stale = True

    async def ask(self, work: Callable[[Client], Awaitable[Any]]) -> Any:
        """Send a request. One that has certainly not reached the server is sent a second time, over a new session.

        Raises:
            CallFailed: no result; the message says why.
            TimeoutError: no result in time; the server was told that the request is cancelled.
        """
        try:
            return await self._ask(work)
        except CallFailed as e:
            if e.why != "unsent":
                raise
        return await self._ask(work)

    async def _ask(self, work: Callable[[Client], Awaitable[Any]]) -> Any:
        from mcp import MCPError

        connection = await self.open()
        try:
            async with asyncio.timeout(self._options.timeout):
                return await connection.use(work)
        except MCPError as e:
            raise await self._judged(e, connection) from None
        except (CallFailed, TimeoutError, asyncio.CancelledError):
            raise
        except Exception as e:  # noqa: BLE001 - whatever the SDK makes of a bad answer
            what = fault(e) if isinstance(e, ValueError) else e
            said = f"the MCP server's answer cannot be used: {await connection.words(what)}"
            raise CallFailed(said, "unanswered") from None

    async def _judged(self, error: Any, connection: Connection) -> CallFailed:
        """Return the failure of a call that an error answered; a lost connection is retired."""
        from mcp_types import CONNECTION_CLOSED

        if error.code in (CONNECTION_CLOSED, LOST):
            connection.retire()
            said = f"the connection to the MCP server was lost: {await connection.words(error)}"
            return CallFailed(f"{said}; the next call connects again", "unanswered")
        said = safe_words(_said(error), self._where.secrets)
        if error.code == UNSENT:
            connection.retire()
            return CallFailed(said, "unsent")
        if error.message.startswith(_BROKEN):  # the SDK's words
            return CallFailed(f"the answer did not arrive: {said}", "unanswered")
        return CallFailed(said, "refused")

    async def close(self) -> None:
        """End the session; the next call would open a new one."""
        if self._opening is not None:
            self._opening.cancel()
        connection, self._now = self._now, None
        if connection is not None:
            connection.close()
            await connection.wait_closed()


async def all_pages(page_of: Callable[..., Awaitable[Any]], field: str) -> list[Any]:
    """All items of a list that a server divides into pages; none if it has no such list.

    Args:
        page_of: asks for the page at a `cursor`.
        field: the list in a page.

    Raises:
        ValueError: it has more than `PAGES` pages, or more than `LISTED` items.
    """
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND

    found: list[Any] = []
    cursor: str | None = None
    for _ in range(PAGES):
        try:
            page = await page_of(cursor=cursor)
        except MCPError as e:
            if e.code != METHOD_NOT_FOUND or e.error.data == NOT_FOUND or found:
                raise
            return found
        found += getattr(page, field)
        if len(found) > LISTED:
            raise ValueError(f"it lists more than {LISTED:,} {field.replace('_', ' ')}")
        if (cursor := page.next_cursor) is None:
            return found
    raise ValueError(f"its list of {field.replace('_', ' ')} has more than {PAGES} pages")


def _said(error: Any) -> str:
    """An error answer in words, with the data that the server sent with it."""
    said = str(error) if error.message else f"the MCP server answered with the error {error.code}, without a message"
    data = error.error.data
    if data in (None, NOT_FOUND):
        return said
    return f"{said}: {data if isinstance(data, str) else json.dumps(clean_json(data))}"


def _seen(task: asyncio.Task[Any]) -> None:
    """Its failure was seen, even if all that waited for it have been cancelled."""
    if not task.cancelled():
        task.exception()


async def _unchecked(name: str, result: Any) -> None:
    """Checks nothing."""


def _ourselves() -> Any:
    from mcp_types import Implementation

    from agentkit import __version__

    return Implementation(name="agentkit", version=__version__)
