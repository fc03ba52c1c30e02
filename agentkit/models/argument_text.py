"""The arguments of one call as JSON text, from any deltas: of the whole arguments, or of one parameter each. Pure.

One way for all clients: the joined text parses to the call's arguments, and before the call's end it is never complete
JSON. Text that the arguments may still contradict, such as a number that is written as text, waits for the end.
"""

from __future__ import annotations

from typing import Final

from agentkit.events import ArgumentDelta
from agentkit.formats.callarguments import ParameterKinds
from agentkit.messages import ToolCall
from agentkit.models.json_prefix import Contradiction, JsonPrefix
from agentkit.schemas.typed import values
from agentkit.toolspec import ToolSpec

_WRAPPERS: Final = frozenset(("arguments", "input", "properties", "parameters"))
"""Keys that may only wrap the arguments; see `agentkit.formats.callarguments`."""


class ContradictedArguments(Exception):
    """The arguments of a call contradict their text, of which a part has been sent."""


class ArgumentText:
    r"""The JSON text of one call's arguments.

    String parameters are passed on as they arrive; other values are complete when they are passed on.

    >>> text = ArgumentText(ToolSpec("say", "", {"type": "object", "properties": {"words": {"type": "string"}}}))
    >>> text.feed(ArgumentDelta(0, 'a "b', "words")), text.end(ToolCall("call_1", "say", {"words": 'a "b"'}))
    ('{"words": "a \\"b', '\\""}')

    Args:
        tool: the called tool, whose schema types the values; None if it is unknown.
        declared: whether only parameters that the schema declares are passed on, and null only where it may be one.
    """

    __slots__ = ("_declared", "_key", "_keyed", "_kinds", "_words", "prefix")

    def __init__(self, tool: ToolSpec | None = None, *, declared: bool = False) -> None:
        self._declared = declared
        self._kinds = ParameterKinds(tool) if tool is not None else None
        self._words = self._kinds.words if self._kinds is not None else frozenset[str]()  # without those that began
        self._key: str | None = None  # the parameter whose string is open
        self._keyed: bool | None = None  # whether the deltas are of one parameter each; None before the first one
        self.prefix = JsonPrefix(self._passes)
        """The text that was passed on."""

    def feed(self, delta: ArgumentDelta) -> str:
        """Return the text to send for a delta; it may be empty."""
        key, prefix = delta.key, self.prefix
        if key is None and not self._keyed:
            if self._keyed is None:
                self._keyed = False
            return prefix.feed(delta.text)
        if key is None or self._keyed is False:  # both kinds in one call
            prefix.stop()
            return ""
        if prefix.stopped:
            return ""
        if self._keyed is None:
            self._keyed = True
        if key == self._key:
            return prefix.write(delta.text)
        ended, self._key = prefix.end_string(), None
        if key not in self._words:
            return ended
        self._key = key
        self._words -= {key}
        return ended + prefix.open(key) + prefix.write(delta.text)

    def end(self, call: ToolCall) -> str:
        """Return the rest of the text of a complete call.

        Raises:
            ContradictedArguments: its arguments are others than the text that has been sent.
        """
        try:
            return self.prefix.rest(dict(call.arguments))
        except Contradiction as e:
            raise ContradictedArguments(
                f"the arguments of {call.name!r} contradict the part of them that was already sent: {e}"
            ) from e

    def _passes(self, key: str, first: str) -> bool:
        """Return whether no repair can change a value; see `ParameterKinds.fits`."""
        kinds = self._kinds
        if kinds is None:
            return True
        if self._declared:
            tool = kinds.tool
            null = first == "n" and not values.accepts_null(tool.schema_of(key), tool.parameters)
            if null or not tool.declares(key):
                return False
        if key in kinds.known:
            return first != '"' or key in kinds.texts
        return key not in _WRAPPERS and (first != '"' or kinds.others)
