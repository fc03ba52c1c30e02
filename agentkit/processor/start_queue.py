"""The calls that may run, until each starts: their order, and which of them are kept back.

Knows the locks of calls that must not run concurrently, and the application's gate; starts nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container

from agentkit.messages import ToolCall
from agentkit.processor import exclusive_locks, not_run
from agentkit.processor.admission import AdmittedCall
from agentkit.tool.result import ToolResult

Gate = Callable[[ToolCall], ToolResult | None]
"""Called once when a call is about to start: None lets it start, a result answers it instead."""


class StartQueue:
    """The admitted calls of one response that have not started, in `calls`; calls `wake` when `ready` may have one.

    With `sequential`, each call delays those after it; a terminating call does so until it is decided about.
    """

    def __init__(self, gate: Gate | None, wake: Callable[[], None], *, sequential: bool) -> None:
        self.calls: deque[AdmittedCall] = deque()
        self.sequential = sequential
        self._gate = gate
        self._wake = wake

    def delays(self, admitted: AdmittedCall) -> bool:
        """Return True if a call that waits here delays the calls after it."""
        return self.sequential or (admitted.tool.policy.terminates and not admitted.decided)

    def ready(self, undecided: Container[int]) -> AdmittedCall | None:
        """Return the first call that no other call delays, nor a decision in progress; `kept_back` may still.

        It holds its lock only if it is decided about.
        """
        for admitted in self.calls:
            free = not (admitted.decided and admitted.tool.policy.exclusive)
            if admitted.index not in undecided and (free or self._locked(admitted)):
                return admitted
            if self.delays(admitted):
                return None
        return None

    def _locked(self, admitted: AdmittedCall) -> bool:
        """Acquire the lock of an exclusive tool's call. False if it must wait for it; True if it never gets it."""
        if admitted.lock is None:
            tool = admitted.tool
            key = tool.method if tool.instance is None else tool.instance
            try:
                admitted.lock = exclusive_locks.acquire(key, self._wake, threaded=not tool.is_async)
            except exclusive_locks.Stuck as e:
                admitted.refusal = not_run.LOCKED.result(name=tool.name, why=e)
        return admitted.lock is not None or admitted.refusal is not None

    def kept_back(self, ready: AdmittedCall) -> ToolResult | None:
        """Return the answer to a call that is ready and never starts; None if it may start."""
        return ready.refusal if ready.refusal is not None or self._gate is None else self._gate(ready.call)

    def take(self, admitted: AdmittedCall) -> bool:
        """Remove a call, which keeps its lock; False if it is no longer there."""
        if admitted not in self.calls:
            return False
        self.calls.remove(admitted)
        return True

    def drop(self, admitted: AdmittedCall) -> None:
        """Remove a call, which does not start, and release its lock."""
        if self.take(admitted):
            admitted.unlock()

    def drop_all(self, after: int = -1) -> dict[int, ToolCall]:
        """Remove and return the calls after this one; none of them will start."""
        dropped = [admitted for admitted in self.calls if admitted.index > after]
        for admitted in dropped:
            self.drop(admitted)
        return {admitted.index: admitted.call for admitted in dropped}
