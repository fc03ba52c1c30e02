"""What goes wrong in an author's own code, in the log: the model is told in words, the author with a traceback.

Knows the log; knows no call, no arguments and no result: what a model sent or a tool gave is nobody's business here.
"""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from types import TracebackType
from typing import Final

from agentkit.checks.keys import without_credentials
from agentkit.processor.replies import words

_LOG: Final = logging.getLogger("agentkit.processor.tools")
_OWN: Final = str(Path(__file__).parent.parent)
_TRACEBACK: Final = 10_000  # characters of it
_LONGEST: Final = 500  # characters of what an exception says


class Faults:
    """The faults of one run: each place is told once in full, at the level ERROR, and then at DEBUG.

    With the traceback, if anybody has configured logging; else in one line, which Python shows on the standard error.
    """

    def __init__(self) -> None:
        self._told: set[tuple[str, str, str, int]] = set()

    def raised(self, where: str, error: BaseException) -> None:
        """An author's code raised; the model was told, and the run goes on.

        Args:
            where: the class and method.
            error: what it raised.
        """
        trace = _outside(error.__traceback__)
        file, line = ("?", 0) if trace is None else _place(trace)
        said = " ".join(without_credentials(words(error)[: 2 * _LONGEST]).split())[:_LONGEST]
        self._tell(where, f"raised {said}", file, line, error, trace)

    def returned(self, where: str, what: str) -> None:
        """A tool returned what no model can read.

        Args:
            where: the class and method.
            what: what is wrong with it, and what to write.
        """
        self._tell(where, what, "?", 0, None, None)

    def _tell(
        self, where: str, what: str, file: str, line: int, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        fault = (where, what.partition(":")[0], file, line)
        level = logging.DEBUG if fault in self._told else logging.ERROR
        self._told.add(fault)
        if not _LOG.isEnabledFor(level):
            return
        at = f", at {file}:{line}" if line else ""
        said = f"the tool {where} {what}{at}; the model was told"
        record = _LOG.makeRecord(_LOG.name, level, file, line, "%s", (said,), None)
        if error is not None and level == logging.ERROR and _LOG.hasHandlers():
            record.exc_info = (type(error), error, trace)
            record.exc_text = _written(error, trace)
        _LOG.handle(record)


def _written(error: BaseException, trace: TracebackType | None) -> str:
    """A traceback as it may be seen: its end, where the cause is. What is cut is blotted out first, not cut in two."""
    text = "".join(traceback.format_exception(type(error), error, trace)).strip()
    return without_credentials(text[-2 * _TRACEBACK :])[-_TRACEBACK:]


def _outside(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from where the author's code begins."""
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN):
        trace = trace.tb_next
    return trace


def _place(trace: TracebackType) -> tuple[str, int]:
    """The last place that it passed in the author's own file."""
    file, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
    for frame, at in traceback.walk_tb(trace):
        if frame.f_code.co_filename == file:
            line = at
    return file, line
