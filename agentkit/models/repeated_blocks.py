"""Blocks that have the index, the id and the name of a call that came before, on the Messages API. Pure.

Gateways repeat what they pass on: a block that says the same is the same call. As in chat completions, other arguments
are another call's, since some servers give all calls one id. What might be either is ambiguous.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from agentkit.models.native import NativeCall
from agentkit.models.native_arguments import is_another, readable
from agentkit.models.wire import text_of
from agentkit.unicode import clean

AGAIN: Final = "a call with its id and name came twice; whether they are one is ambiguous"


class RepeatedBlocks:
    """The calls of one message by what names them, and the open blocks that may repeat one."""

    def __init__(self) -> None:
        self._calls: dict[tuple[int, str, str], NativeCall] = {}
        self._open: dict[int, NativeCall] = {}

    def add(self, at: int, call: NativeCall) -> None:
        """A call has started in a block."""
        if call.id:
            self._calls[at, call.id, call.name] = call

    def begins(self, at: int, block: Mapping[str, Any]) -> bool:
        """Whether a block that starts may repeat a call that was complete."""
        call = self._calls.get((at, clean(text_of(block.get("id"))), clean(text_of(block.get("name")))))
        if call is None or not (call.ended or call.stopped or call.values is not None):
            return False
        self._open[at] = call
        return True

    def __contains__(self, at: int) -> bool:
        return at in self._open

    def pop(self, at: int) -> NativeCall:
        """The call that the block which is over here may repeat."""
        return self._open.pop(at)


def judged(call: NativeCall, text: str, *, stopped: bool) -> Literal["same", "another", "ambiguous"]:
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
