"""Logs the errors of a tool author's code: the model gets a message, the author a traceback.

Knows the log; knows no call, no arguments and no result: what a model sent or a tool returned does not belong here.
"""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from types import TracebackType
from typing import Final

from agentkit.checks.keys import without_credentials, words

_LOG: Final = logging.getLogger("agentkit.processor.tools")
_OWN: Final = str(Path(__file__).parent.parent)
_TRACEBACK: Final = 10_000  # characters of it
SENT: Final = "the error was sent to the model"
_LONGEST: Final = 500  # characters of an exception's message


class AuthorErrors:
    """The errors of one run: each place is logged once in full, at the level ERROR, and then at DEBUG.

    With the traceback if logging is configured; otherwise in one line, which Python shows on the standard error.
    """

    def __init__(self) -> None:
        self._logged: set[tuple[str, str, str, int]] = set()

    def report_error(self, where: str, error: BaseException, then: str = SENT) -> None:
        """Log an exception of an author's code, its class and method, and what became of it; the run continues."""
        trace = _outside(error.__traceback__)
        file, line = _place(trace)
        message = " ".join(words(error)[: 2 * _LONGEST].split())[:_LONGEST]
        self._log(where, f"raised {message}", file, line, error, trace, then)

    def report_value(self, where: str, what: str, then: str = SENT) -> None:
        """Log that a tool returned a value that cannot be used, how to fix it, and what became of it."""
        self._log(where, f"returned {what}", "?", 0, None, None, then)

    def _log(
        self,
        where: str,
        what: str,
        file: str,
        line: int,
        error: BaseException | None,
        trace: TracebackType | None,
        then: str,
    ) -> None:
        fault = (where, what.partition(":")[0], file, line)
        level = logging.DEBUG if fault in self._logged else logging.ERROR
        self._logged.add(fault)
        if not _LOG.isEnabledFor(level):
            return
        at = f", at {file}:{line}" if line else ""
        text = f"the tool {where} {what}{at}; {then}"
        record = _LOG.makeRecord(_LOG.name, level, file, line, "%s", (text,), None)
        if error is not None and level == logging.ERROR and _LOG.hasHandlers():
            record.exc_info = (type(error), error, trace)
            record.exc_text = traceback_text(error, trace)
        _LOG.handle(record)


def traceback_text(error: BaseException, trace: TracebackType | None) -> str:
    """Return a traceback fit to be shown: its end, where the cause is. Secrets are redacted first, not cut in two."""
    text = "".join(traceback.format_exception(type(error), error, trace)).strip()
    return without_credentials(text[-2 * _TRACEBACK :])[-_TRACEBACK:]


def _outside(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the author's code on."""
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN):
        trace = trace.tb_next
    return trace


def _place(trace: TracebackType | None) -> tuple[str, int]:
    """Return the last place in the author's own file that it passed through."""
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    return next((place for place in reversed(places) if place[0] == places[0][0]), ("?", 0))
