"""The names of a response's calls, which may come complete, repeated, or in pieces. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from agentkit.models.native import NativeCall


class CallNames:
    """The names of one response's calls.

    Args:
        tools: the names of the tools that were offered; empty if they are unknown.
    """

    def __init__(self, tools: Iterable[str] = ()) -> None:
        self._tools = frozenset(tools)
        self._sorted = sorted(self._tools)
        self._longest = max(map(len, self._tools), default=0)
        self._pieced: dict[int, dict[int, None]] = {}  # of calls whose names came in pieces: where the pieces meet
        self._ways: dict[int, set[str]] = {}  # how these pieces were put together
        self._before: dict[str, frozenset[str]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def fits(self, name: str) -> bool:
        """Whether the name of an offered tool begins like this."""
        at = bisect_left(self._sorted, name)
        return at < len(self._sorted) and self._sorted[at].startswith(name)

    def before(self, name: str) -> frozenset[str]:
        """The names that fit with this one after them."""
        if name not in self._before:
            places = ((tool, at) for tool in self._sorted for at in _places(tool, name))
            self._before[name] = frozenset(tool[:at] for tool, at in places)
        return self._before[name]

    def pieced(self, call: NativeCall) -> bool:
        """Whether the call's name came in pieces."""
        return call.index in self._pieced

    def more(self, call: NativeCall, name: str) -> str:
        """The name of a call after one more fragment; some servers repeat the fragment, or all of the name so far."""
        joined = call.name + name
        again = name if name.startswith(call.name) and (name in self._tools or joined not in self._tools) else joined
        if call.name and (name != call.name or joined in self._tools):
            self._pieced.setdefault(call.index, {})[len(call.name)] = None
            self._ways.setdefault(call.index, set()).add("joined" if again == joined else "grown")
        if again != joined and joined in self._tools and call.pieces.blank:
            call.doubt = f"its name came in pieces, which may mean {again!r} or {joined!r}"
        elif call.name and again != call.name and call.values is not None:
            call.doubt = f"another name came after its arguments: {call.name!r} or {again!r}"
        return again

    def torn(self, call: NativeCall) -> bool:
        """Whether no tool has this name, and it is incomplete or consists of pieces that do not fit each other."""
        if call.name in self._tools:
            return call.index in self._pieced and (bool(call.doubt) or len(self._ways[call.index]) > 1)
        return call.index in self._pieced or (call.pieces.blank and self.fits(call.name))

    def beginnings(self, call: NativeCall) -> set[str]:
        """What the call's name was before its further pieces, if a tool's name begins like this."""
        cuts = [at for at in self._pieced.get(call.index, ()) if at <= self._longest]
        return {name for name in (call.name[:at] for at in cuts) if self.fits(name)}

    def rests(self, calls: Iterable[NativeCall]) -> set[str]:
        """What came of the calls' names after their first pieces, if a tool's name may contain it."""
        return {
            call.name[at:]
            for call in calls
            for at in self._pieced.get(call.index, ())
            if len(call.name) - at <= self._longest
        }

    def takers(self, name: str, rests: set[str]) -> frozenset[str] | None:
        """The beginnings of which a name that starts another call may be the next piece; None if that is all.

        Args:
            name: the name.
            rests: what came of any call's name after its first pieces.
        """
        if not self.fits(name) and any(name in tool for tool in self._sorted):
            return None
        taken = []
        for tool in self._sorted:
            for at in _places(tool, name):
                rest = tool[at + len(name) :]
                if not rest or any(rest[:end] in rests for end in range(len(rest) + 1)):
                    taken.append(tool[:at])
        return frozenset(taken)


def _places(text: str, part: str) -> Iterable[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)
