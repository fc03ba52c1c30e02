"""Which way of calling tools suits a model on a server: tried on a dozen tasks, compared, and recommended.

Uses only models, agents and tools. Prints nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.foreign.absent_imports import explained_module

if TYPE_CHECKING:
    from agentkit.fit.calling_modes import CallingMode
    from agentkit.fit.fit_report import FitReport, FitRow
    from agentkit.fit.rungs import FitProgress, fit
    from agentkit.fit.trial import TaskOutcome

__all__ = ["CallingMode", "FitProgress", "FitReport", "FitRow", "TaskOutcome", "fit"]

explained_module(
    __name__,
    "write fit(…), from agentkit.fit import fit",
    homes={
        "agentkit.fit.calling_modes": "CallingMode",
        "agentkit.fit.fit_report": "FitReport FitRow",
        "agentkit.fit.rungs": "FitProgress fit",
        "agentkit.fit.trial": "TaskOutcome",
    },
)
