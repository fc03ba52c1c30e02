"""Threads in PostgreSQL: when transactions start and end, and the effects of a lost connection.

The operations are those of `sql.py`. Loads asyncpg on first use.

The connections belong to a separate event loop in a separate thread: a connection belongs to one loop, while a store
outlives loops (`asyncio.run` twice), and an operation that was started is finished even if the waiting task ends.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from agentkit.checks.bounds import CALLABLE, SECONDS, TEXT, Bound, Bounds, or_none, refuse, whole
from agentkit.errors import ConfigError, StoreError, install_command
from agentkit.threads.sql.jobs import Job, answer
from agentkit.threads.sql.operations import Duplicate, Operations, Rows, SqlDialect, Steps
from agentkit.threads.sql.store_bridge import Driver, Kind, OnStatement, SqlStore

BEGIN: Final[dict[Kind, str | None]] = {
    "write": "BEGIN",
    "read": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "statement": None,
}
"""How a transaction of each kind starts. A thread's row is locked: its writers wait for each other."""

INSTALL_LOCK: Final = 7_274_505_163_190_181
"""The advisory lock under which tables are created. Any number that no one else uses; this one was chosen at random."""


def _names_a_schema(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", value) is not None


_BOUNDS: Final[Bounds] = {
    "dsn": TEXT,
    "schema": Bound(_names_a_schema, "a name of at most 63 lowercase letters, digits and _, not starting with a digit"),
    "connections": whole(1),
    "timeout": SECONDS,
    "on_statement": or_none(CALLABLE),
}


class PostgresStore(SqlStore):
    """Threads in PostgreSQL, for several machines (see `Store` for the methods).

    Needs `pip install "agentkit-calls[postgres]"`.

    Times are the server's. If a connection breaks while COMMIT runs, it is unknown whether it was done; the
    `StoreError` says so.

    Args:
        dsn: such as `postgresql://user:password@host:5432/database`.
        schema: contains the tables; created if necessary.
        connections: the maximum number of connections; they are opened when needed.
        timeout: the time limit for connecting, and for one statement, in seconds.
        on_statement: called before and after each SQL statement, including BEGIN and COMMIT, in the thread that runs
            it; for tests that crash there.

    Raises:
        ConfigError: asyncpg is not installed, the DSN cannot be read, or `schema` is not a plain name.
    """

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "agentkit",
        connections: int = 10,
        timeout: float = 30.0,
        on_statement: OnStatement | None = None,
    ) -> None:
        given = {"dsn": dsn, "schema": schema, "connections": connections}
        refuse("PostgresStore", given | {"timeout": timeout, "on_statement": on_statement}, _BOUNDS)
        self.dsn = dsn
        self.schema = schema
        name, operations = _without_password(dsn), Operations(_dialect(schema))
        options = {"dsn": dsn, "max_size": connections, "timeout": timeout, "command_timeout": timeout}
        self._start_server = partial(PoolThread, _driver(), name, options, on_statement, operations)
        super().__init__(operations, name)

    def _drivers(self) -> Mapping[Kind, Driver]:
        server = self._start_server()
        return {"write": server, "read": server, "statement": server}


@dataclass(eq=False, repr=False)  # its options have a password
class PoolThread:
    """The thread, its loop and the pool of connections."""

    driver: Any
    name: str
    options: Mapping[str, Any]
    on_statement: OnStatement | None
    operations: Operations

    def __post_init__(self) -> None:
        self._pool: Any = None
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        # A daemon: a process that ends does not wait for it, and work that was not answered was not guaranteed.
        Thread(target=self._serve, name="agentkit-postgres", daemon=True).start()

    def submit(self, job: Job, kind: Kind) -> None:
        """Start a job; one without steps ends the server, after all earlier jobs."""
        self._loop.call_soon_threadsafe(self._begin, job, kind)

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _begin(self, job: Job, kind: Kind) -> None:
        task = self._loop.create_task(self._end(job) if job.steps is None else self._answer(job, kind))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, job: Job, kind: Kind) -> None:
        assert job.steps is not None
        try:
            result = await self._transaction(job.steps, kind)
        except BaseException as e:  # noqa: BLE001 (whatever it is, the task that waits must get it)
            answer([job], [(None, self._explain(e))])
        else:
            answer([job], [(result, None)])

    async def _end(self, job: Job) -> None:
        await asyncio.gather(*self._tasks - {asyncio.current_task()}, return_exceptions=True)
        try:
            if self._pool is not None:
                await self._pool.close()
        except Exception:  # noqa: BLE001 (whatever it is, a server that does not answer is not waited for)
            self._pool.terminate()
        finally:
            answer([job], [(None, None)])
            self._loop.stop()

    async def _transaction(self, steps: Callable[[], Steps[Any]], kind: Kind) -> Any:
        if self._pool is None:
            async with self._opening:
                if self._pool is None:
                    self._pool = await self._open()
        async with self._pool.acquire() as connection:
            return await self._work(connection, steps, kind)

    async def _open(self) -> Any:
        try:
            pool = await self.driver.create_pool(**self.options, min_size=0, reset=_keep)
        except (ValueError, TypeError) as e:  # asyncpg parses the DSN here; its message may quote the password
            raise StoreError(f"{self.name}: asyncpg cannot read this DSN ({type(e).__name__})") from None
        try:
            async with pool.acquire() as connection:
                if not await self._work(connection, self.operations.ready, "read"):
                    await self._work(connection, self.operations.install, "write")
        except BaseException:
            pool.terminate()
            raise
        return pool

    async def _work(self, connection: Any, steps: Callable[[], Steps[Any]], kind: Kind) -> Any:
        begin = BEGIN[kind]
        if begin is None:
            return await self._drive(connection, steps())
        try:
            await self._execute(connection, begin)
            result = await self._drive(connection, steps())
            await self._commit(connection)
        except BaseException:
            await self._roll_back(connection)
            raise
        return result

    async def _roll_back(self, connection: Any) -> None:
        """Roll a transaction back; if that can no longer be requested, close its connection, which also undoes it."""
        try:
            await self._execute(connection, "ROLLBACK")
        except Exception:  # noqa: BLE001 (whatever it is, the error that led here is the one to tell)
            with suppress(Exception):  # a broken connection was returned to the pool and cannot be closed
                connection.terminate()

    async def _commit(self, connection: Any) -> None:
        try:
            await self._execute(connection, "COMMIT")
        except Exception as e:
            if not self._is_lost(e):
                raise
            lost = "the connection broke during COMMIT, so it is unknown whether the changes were made"
            raise StoreError(f"{self.name}: {lost} ({self._cause(e)})") from e

    async def _drive(self, connection: Any, steps: Steps[Any]) -> Any:
        try:
            sql, values = next(steps)
            while True:
                try:
                    rows = await self._execute(connection, sql, *values)
                except self.driver.IntegrityConstraintViolationError as e:
                    sql, values = steps.throw(Duplicate(str(e)))
                else:
                    sql, values = steps.send(rows)
        except StopIteration as e:
            return e.value

    async def _execute(self, connection: Any, sql: str, *values: Any) -> Rows:
        if self.on_statement is not None:
            self.on_statement("before", sql)
        rows: Rows = await connection.fetch(_numbered(sql), *values)
        if self.on_statement is not None:
            self.on_statement("after", sql)
        return rows

    def _is_lost(self, e: BaseException) -> bool:
        """Return True if an error means that the connection was lost or never made; False if a request was refused."""
        d = self.driver
        refused = (d.QueryCanceledError, d.DataError, d.ClientConfigurationError)
        ended = (d.PostgresConnectionError, d.OperatorInterventionError)  # as reported by the server
        met = (d.InterfaceError, d.InternalClientError)  # asyncpg used a closed connection
        unreachable = (OSError, TimeoutError, UnicodeError)  # the last one: resolving a host name
        return isinstance(e, (*ended, *met, *unreachable)) and not isinstance(e, refused)

    def _cause(self, e: BaseException) -> str:
        """Why a connection was lost; not in asyncpg's words about its own states, in which it notices only later."""
        met: BaseException | None = e
        while isinstance(met, (self.driver.InterfaceError, self.driver.InternalClientError)):
            met = met.__cause__ or met.__context__
        if isinstance(met, (self.driver.PostgresError, OSError, TimeoutError, UnicodeError)):
            return str(met) or type(met).__name__
        return "the server or the network closed it"

    def _explain(self, e: BaseException) -> BaseException:
        """An error with agentkit's message; errors that are not from the database are unchanged."""
        if type(e) is StoreError:
            return e if self.name in str(e) else StoreError(f"{self.name}: {e}")
        if self._is_lost(e):
            return _caused(f"{self.name}: there is no connection, so nothing was changed: {self._cause(e)}", e)
        if isinstance(e, (self.driver.PostgresError, self.driver.InterfaceError)):
            return _caused(f"{self.name}: PostgreSQL error, nothing was changed: {e}", e)
        return e


def _caused(message: str, e: BaseException) -> StoreError:
    error = StoreError(message)
    error.__cause__ = e
    return error


async def _keep(connection: Any) -> None:
    """Nothing to reset: session settings are never changed, and this saves a round trip."""


def _driver() -> Any:
    try:
        return import_module("asyncpg")
    except ImportError as e:
        raise ConfigError(f"PostgresStore requires asyncpg: {install_command('postgres')}") from e


def _dialect(schema: str) -> SqlDialect:
    return SqlDialect(
        tables=f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'",
        now="extract(epoch FROM clock_timestamp())::float8",
        prefix=f'"{schema}".',
        lock=" FOR UPDATE",
        text='TEXT COLLATE "C"',
        before_install=(
            f"SELECT pg_advisory_xact_lock({INSTALL_LOCK})",
            f'CREATE SCHEMA IF NOT EXISTS "{schema}"',
        ),
    )


@lru_cache(maxsize=512)
def _numbered(sql: str) -> str:
    """The statement with `$1, $2, …`, as PostgreSQL requires, for each `?`."""
    first, *rest = sql.split("?")
    return first + "".join(f"${i}{part}" for i, part in enumerate(rest, 1))


_URL: Final = re.compile(r"(?i)\s*postgres(?:ql)?://")


def _without_password(dsn: str) -> str:
    """A DSN without its password.

    Raises:
        ConfigError: it cannot be read. The message shows no part of it, because any part could be the password.
    """
    expected = "expected postgresql://user:password@host:5432/database, with special characters escaped as in %40"
    try:
        if not dsn.isprintable():  # asyncpg passes a NUL on to the system's resolver
            raise ValueError
        parts = urlsplit(dsn)
        if _URL.match(dsn) is None or "@" in parts.path:  # a part that looks like another may be of the password
            raise ValueError
    except ValueError:
        raise ConfigError(f"the PostgreSQL DSN is not a URL: {expected}") from None
    hosts = parts.netloc.rpartition("@")[2]
    ports = [host.rpartition("]")[2].partition(":")[2] for host in hosts.split(",")]
    ports += [port for given in parse_qs(parts.query).get("port", ()) for port in given.split(",")]
    if not all(port == "" or (port.isascii() and port.isdigit() and 0 < int(port) < 65536) for port in ports):
        raise ConfigError(f"the port of the PostgreSQL DSN is not a number from 1 to 65535: {expected}")
    return f"{parts.scheme}://{hosts}{parts.path}"
