"""What tests of threads share: the event loop; fresh stores, SQLite in a folder, PostgreSQL where there is a server."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import postgres_server
import pytest

from agentkit.threads.sql.postgres import PostgresStore
from agentkit.threads.sql.sqlite import SQLiteStore
from agentkit.threads.store import Store

NewStore = Callable[..., Any]
COUNT = itertools.count()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    pytest.importorskip("asyncpg", reason="asyncpg is not installed: pip install 'agentkit-calls[postgres]'")
    try:
        with postgres_server.server() as dsn:
            yield dsn
    except postgres_server.Absent as e:
        pytest.skip(str(e))


@pytest.fixture(params=["sqlite", "postgres"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Store]:
    """Makes an empty store; options are those of its class."""
    if request.param == "sqlite":
        return lambda **options: SQLiteStore(tmp_path / f"{next(COUNT)}.db", **{"durability": "process"} | options)
    dsn = request.getfixturevalue("postgres_dsn")
    return lambda **options: PostgresStore(dsn, schema=f"s{next(COUNT)}", **options)
