"""One JSON line per request: who, what, how long, and how it ended. Never a key, and never contents."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

from agentkit.errors import ConfigError


class AccessLog:
    """Writes lines to a file.

    Args:
        path: of the file, to which lines are appended; `-` for standard output, None for no log.

    Raises:
        ConfigError: the file cannot be opened.
    """

    def __init__(self, path: str | None) -> None:
        self._file: TextIO | None = None
        if path == "-":
            self._file = sys.stdout
        elif path is not None:
            try:
                self._file = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 - as long as the process
            except OSError as e:
                raise ConfigError(f"the log: cannot write {path!r}: {e.strerror}") from e

    def write(self, **fields: Any) -> None:
        """Write a line with the time and these fields, without those that are None. A full disk stops no request."""
        if self._file is None:
            return
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **fields}
        with suppress(OSError, ValueError):
            self._file.write(json.dumps({k: v for k, v in line.items() if v is not None}) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None and self._file is not sys.stdout:
            self._file.close()
