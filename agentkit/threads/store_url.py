"""The location of a thread store: a path, a URL or the store itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from agentkit.errors import ConfigError
from agentkit.threads.store import Store

_EXPECTED: Final = "thread store: expected a path, sqlite:///path or postgresql://host/database"

_NO_PATH: Final = re.compile(
    r"(?i)^\s*[a-z][a-z0-9+.-]+:/"  # a URL with one slash; a drive has one letter
    r"|^\s*postgres(?:ql)?(?:\+\w+)?:"  # or with none
    r"|^[^/\\]*:[^/\\]*@"  # user and password
    r"|(?:^|\s)(?:host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*="  # libpq's keywords
)
"""Texts that are not paths, although they have no `://`; with a password, it would become a file's name."""


def open_store(where: Store | str | Path) -> Store:
    """The store that `where` names. Nothing is opened before its first use.

    Args:
        where: a path or `sqlite:///relative.db`, `sqlite:////absolute.db` (SQLite; `":memory:"` is not persistent),
            `postgresql://user:password@host/database` (PostgreSQL), or a store, which is returned.

    Raises:
        ConfigError: the scheme is unknown, or PostgreSQL's driver is not installed.
    """
    if not isinstance(where, (str, Path)):
        return where
    scheme, separator, rest = str(where).partition("://")
    if isinstance(where, Path) or not separator:
        if isinstance(where, str) and _NO_PATH.search(where):
            raise ConfigError(f"{_EXPECTED}, found what looks like a DSN; pass a Path if it is a file's name")
        from agentkit.threads.sql.sqlite import SQLiteStore

        return SQLiteStore(where)
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from agentkit.threads.sql.sqlite import SQLiteStore

        return SQLiteStore(rest[1:])
    if scheme in ("postgresql", "postgres"):
        from agentkit.threads.sql.postgres import PostgresStore

        return PostgresStore(str(where))
    raise ConfigError(f"{_EXPECTED}, found {f'{scheme}://…'!r}")  # the rest may contain a password
