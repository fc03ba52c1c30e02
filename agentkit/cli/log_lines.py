"""Log records as lines on standard error; tracebacks go to a file if a command names one."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from agentkit.cli.terminal import complain, truncate, width


class LogLines(logging.Handler):
    """Prints warnings and errors as complaints. A message may quote a model, a tool or a stored name."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.say: Callable[[str], None] = complain
        """Prints a text."""
        self.tracebacks: Path | None = None
        """The file for tracebacks; None prints them."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record; its traceback goes to the file, if there is one."""
        text = self.format(record)
        if self.tracebacks is not None and record.exc_info:
            now = datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="seconds")
            where = f" (traceback in {self.tracebacks})"
            message = record.getMessage()
            with suppress(OSError):  # then the traceback is printed
                with self.tracebacks.open("a", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(f"{now} {text}\n\n")
                text = (truncate(message, width() - len(where)) if sys.stderr.isatty() else message) + where
        self.say(text)


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Print the warnings and errors that are logged, in addition to what the application has configured."""
    root = logging.getLogger()
    handler = LogLines()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


@contextmanager
def tracebacks_in(file: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Write the tracebacks of the command to a file, and one line for each with `say`."""
    handlers = [one for one in logging.getLogger().handlers if isinstance(one, LogLines)]
    before = [(one.say, one.tracebacks) for one in handlers]
    for one in handlers:
        one.say, one.tracebacks = say, file
    try:
        yield
    finally:
        for one, (said, tracebacks) in zip(handlers, before, strict=True):
            one.say, one.tracebacks = said, tracebacks
