"""A server's declarations at its first use: a later change is found, and shown as a difference.

In memory, or in a JSON file that is shared by the runs of a program.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from agentkit.checks.unicode import escape_controls
from agentkit.errors import ConfigError
from agentkit.interop.mcp.declarations import Declaration

VERSION: Final = 1
LINES: Final = 80
"""Lines of a difference that are shown."""
_ROUNDS: Final = 100_000  # about 50 ms, once per start of a server


class Pins:
    """The pinned declarations of one server, and the command that was approved for it.

    Args:
        path: the file; None keeps them in memory.
        server: the server's name, under which they are kept.
    """

    def __init__(self, path: str | os.PathLike[str] | None, server: str) -> None:
        self._path = None if path is None else Path(path)
        self._server = server
        self._kept: dict[str, Any] = self._read().get(server, {})

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of all tools that were ever pinned, in that order."""
        return tuple(self._kept.get("tools", ()))

    def approved(self, identity: bytes) -> bool:
        """Return True if exactly this command was approved before, see `LocalServer.identity`."""
        kept = self._kept.get("command")
        return isinstance(kept, Mapping) and bool(kept["digest"] == _digest(identity, kept["salt"]))

    def approve(self, identity: bytes) -> None:
        """Remember that a command was approved."""
        salt = secrets.token_hex(16)
        self._keep("command", {"salt": salt, "digest": _digest(identity, salt)})

    def check(self, declared: Iterable[Declaration]) -> dict[str, str]:
        """Pin the tools that are new; the others that have changed, each with its difference."""
        pinned: dict[str, Any] = dict(self._kept.get("tools", {}))
        changes: dict[str, str] = {}
        for one in declared:
            before = pinned.get(one.name)
            if before is None:
                pinned[one.name] = {"digest": one.digest, **one.as_json()}
            elif before["digest"] != one.digest:
                changes[one.name] = difference(before, one.as_json())
        if pinned != self._kept.get("tools", {}):
            self._keep("tools", pinned)
        return changes

    def accept(self, declared: Declaration) -> None:
        """Pin a tool as it is now."""
        self._keep("tools", {**self._kept["tools"], declared.name: {"digest": declared.digest, **declared.as_json()}})

    def _read(self) -> dict[str, Any]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            if found["version"] != VERSION:
                raise ValueError(f"version {found['version']!r:.20}, expected {VERSION}")
            return dict(found["servers"])
        except (ValueError, KeyError, TypeError, OSError) as e:
            raise ConfigError(
                f"{self._path}: the pinned tools cannot be read ({type(e).__name__}: {e}); to approve all tools again, "
                "delete the file"
            ) from e

    def _keep(self, what: str, kept: Mapping[str, Any]) -> None:
        self._kept = {**self._kept, what: kept}
        if self._path is None:
            return
        read = self._read()
        servers = {**read, self._server: {**read.get(self._server, {}), what: kept}}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"version": VERSION, "servers": servers}, indent=1, ensure_ascii=False)
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(name, self._path)


def _digest(identity: bytes, salt: str) -> str:
    """A digest that tells nobody the values in it: it is slow, so that short ones cannot be guessed from it."""
    return hashlib.pbkdf2_hmac("sha256", identity, bytes.fromhex(salt), _ROUNDS).hex()


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the difference line by line; anything that could control a terminal is escaped."""
    old, new = (_lines({k: v for k, v in one.items() if k != "digest"}) for one in (before, after))
    lines = [escape_controls(line[:500]) for line in difflib.unified_diff(old, new, "pinned", "now", lineterm="", n=1)]
    more = [f"… and {len(lines) - LINES} more lines"] if len(lines) > LINES else []
    return "\n".join([*lines[:LINES], *more])


def _lines(declared: Mapping[str, Any]) -> list[str]:
    text = str(declared.get("description", ""))
    schema = json.dumps(declared.get("schema"), indent=1, sort_keys=True, ensure_ascii=False)
    return [*(f"description: {line}" for line in text.splitlines()), *schema.splitlines()]
