"""SQL on a store's tables behind its back, as another program or a damaged disk would change them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from agentkit.threads import SQLiteStore


async def execute(store: Any, sql: str, *values: Any) -> None:
    """Run one statement; `{p}` stands before each table, `?` for each value."""
    if isinstance(store, SQLiteStore):
        with closing(sqlite3.connect(store.name, timeout=10)) as connection, connection:
            connection.execute(sql.format(p=""), values)
        return
    import asyncpg

    for number in range(1, len(values) + 1):
        sql = sql.replace("?", f"${number}", 1)
    connection = await asyncpg.connect(store.dsn)
    try:
        await connection.execute(sql.format(p=f'"{store.schema}".'), *values)
    finally:
        await connection.close()
