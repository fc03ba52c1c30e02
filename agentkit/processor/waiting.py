"""The calls that may run, until each starts: their order, and which of them are kept back.

Knows lines of calls that must not run concurrently, and the application's gate; starts nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container

from agentkit.messages import ToolCall
from agentkit.processor import lines, not_run
from agentkit.processor.admission import Admitted
from agentkit.processor.replies import failed
from agentkit.tool.result import ToolResult

Gate = Callable[[ToolCall], str | None]
"""Called once when a call is about to start: None lets it start, a string prevents it. (No gate lets all start.)"""


class WaitingCalls:
    """The admitted calls of one response that have not started, in `calls`.

    Args:
        gate: called when a call is about to start; None lets every call start.
        sequential: whether a call holds up those after it.
        wake: called when it is worth asking again for one that is ready.
    """

    def __init__(self, gate: Gate | None, wake: Callable[[], None], *, sequential: bool) -> None:
        self.calls: deque[Admitted] = deque()
        self.sequential = sequential
        self._gate = gate
        self._wake = wake
        self._places: dict[int, lines.LinePlace] = {}  # of those at the head of their line
        self._blocked: dict[int, ToolResult] = {}  # those that will never get there, and why

    def ready(self, undecided: Container[int]) -> Admitted | None:
        """The call that may start now, as far as other calls are concerned.

        Args:
            undecided: the calls whose approval is being decided.
        """
        for admitted in self.calls:
            if admitted.index not in undecided and (not admitted.tool.policy.exclusive or self._heads(admitted)):
                return admitted
            if self.sequential:
                return None
        return None

    def _heads(self, admitted: Admitted) -> bool:
        """Return whether no other call keeps this one of an exclusive tool waiting; it then holds its place in line."""
        if admitted.index in self._places:
            return True
        tool = admitted.tool
        key = tool.method if tool.instance is None else tool.instance
        try:
            place = lines.take(key, self._wake, threaded=not tool.is_async)
        except lines.Stuck as e:
            self._blocked[admitted.index] = not_run.LOCKED.result(name=tool.name, why=e)
            return True
        if place is not None:
            self._places[admitted.index] = place
        return place is not None

    def kept_back(self, ready: Admitted) -> ToolResult | None:
        """The answer to a call that is ready and never starts; None if it may start."""
        if self._blocked and (blocked := self._blocked.pop(ready.index, None)) is not None:
            return blocked
        why = None if self._gate is None else self._gate(ready.call)
        return None if why is None else failed("limit", why)

    def take(self, admitted: Admitted) -> bool:
        """Remove a call, which keeps its place in line; False if it is no longer there."""
        calls = self.calls
        if calls and calls[0] is admitted:
            calls.popleft()
        elif admitted in calls:
            calls.remove(admitted)
        else:
            return False
        return True

    def place(self, index: int) -> lines.LinePlace | None:
        """The place in line of a call that starts; it belongs to the call from now on."""
        return self._places.pop(index, None)

    def drop(self, admitted: Admitted) -> None:
        """A call will not start."""
        self.calls.remove(admitted)
        self.leave_line(admitted.index)

    def drop_one(self, index: int) -> None:
        """The call with this index will not start, if it is one of these."""
        for admitted in [a for a in self.calls if a.index == index]:
            self.drop(admitted)

    def drop_all(self, after: int = -1) -> dict[int, ToolCall]:
        """Remove and return the calls after this one; none of them will start."""
        dropped = {a.index: a.call for a in self.calls if a.index > after}
        self.calls = deque(a for a in self.calls if a.index not in dropped)
        for index in dropped:
            self.leave_line(index)
        return dropped

    def leave_line(self, index: int) -> None:
        """Release the place that this call may hold."""
        if (place := self.place(index)) is not None:
            place.task_over()

    def leave_lines(self) -> None:
        """Release all places."""
        for index in list(self._places):
            self.leave_line(index)
