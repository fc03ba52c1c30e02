"""Blocks that have the index, the id and the name of a call that came before, on the Messages API. Pure.

Gateways repeat what they pass on: a block that says the same is the same call. As in chat completions, other arguments
are another call's, since some servers give all calls one id. What might be either is ambiguous.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, Literal

from agentkit.models.native import NativeCall
from agentkit.models.native_arguments import is_another, readable
from agentkit.models.wire import text_of
from agentkit.unicode import clean

AGAIN: Final = "a call with its id and name came twice; whether they are one is ambiguous"


class RepeatedBlocks:
    """The calls of one message by what names them, and the open blocks that may repeat some of them."""

    def __init__(self) -> None:
        self._calls: defaultdict[tuple[int, str, str], list[NativeCall]] = defaultdict(list)
        self._open: dict[int, list[NativeCall]] = {}

    def add(self, at: int, call: NativeCall) -> None:
        """A call has started in a block."""
        if call.id:
            self._calls[at, call.id, call.name].append(call)

    def open(self, at: int, block: Mapping[str, Any]) -> bool:
        """A block starts, and stays open here if it may repeat calls that were complete; whether it does."""
        named = self._calls.get((at, clean(text_of(block.get("id"))), clean(text_of(block.get("name")))), [])
        complete = [call for call in named if call.ended or call.stopped or call.values is not None]
        if complete:
            self._open[at] = complete
        return bool(complete)

    def __contains__(self, at: int) -> bool:
        return at in self._open

    def judge(self, at: int, text: str, *, stopped: bool) -> tuple[NativeCall, _Verdict]:
        """Which call the block is that is over here, and how certain that is; arguments as of `judged`.

        The same as any of those that came before; ambiguous if it may be one of them.
        """
        verdicts = [(call, judged(call, text, stopped=stopped)) for call in self._open.pop(at)]
        return min(verdicts, key=lambda one: _CERTAIN.index(one[1]))


_Verdict = Literal["same", "another", "ambiguous"]
_CERTAIN: Final[tuple[_Verdict, ...]] = ("same", "ambiguous", "another")


def judged(call: NativeCall, text: str, *, stopped: bool) -> _Verdict:
    """Which call a block is that may repeat one.

    Args:
        call: the one that came before.
        text: the arguments in the block.
        stopped: whether its end came. Without it they are perhaps a part.
    """
    if text == call.text or (not stopped and call.text.startswith(text)):
        return "same"
    values, others = readable(call.text), readable(text)
    if values is not None and values == others:
        return "same"
    return "another" if values is not None and text.strip() and is_another(values, text) else "ambiguous"
