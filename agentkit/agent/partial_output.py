"""The output of a run so far, from the run's events. Pure; knows no model.

The text of a reply is read from the place where `Output.read` finds its first value, a call of the output's tool from
its arguments. Both are accepted by `ArgumentText`: only what their end cannot change.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from typing import TYPE_CHECKING, Any, Final

from agentkit.errors import ConfigError
from agentkit.events import ArgumentDelta, CallStart, Event, Finish, Text
from agentkit.formats.pieces import Pieces
from agentkit.models.argument_text import ArgumentText
from agentkit.schemas import walk
from agentkit.tool.reply import VALUE, Output, json_start
from agentkit.toolspec import ToolSpec

if TYPE_CHECKING:
    from agentkit.agent.run import RunStream

_GROWTH: Final = 1.02  # a value is made once the text has grown by 2 %: the time stays linear, and the steps small
_SEARCH: Final = 1.05  # the same for the search for its beginning, which takes longer
_FIRST_KEY: Final = re.compile(r'\{\s*("(?:[^"\\]|\\.)*"\s*:|[^\s"])')
_IN_VALUE: Final = re.compile(rf'\{{\s*"{VALUE}"\s*:')
_NOTHING: Final = object()


async def partial_values(run: RunStream[Any]) -> AsyncGenerator[Any, None]:
    """The values of `RunStream.partial_output`."""
    if (output := run.plan.output) is None:
        raise ConfigError("partial_output() needs an output_type; for text write text_stream()")
    from pydantic_core import to_jsonable_python

    tool = run.plan.output_tool
    partial = PartialOutput(output, None if tool is None else tool.name)
    async for event in run:
        for value in partial.see(event):
            yield value
    given = run.result._output
    for value in partial.end(*(to_jsonable_python(one, by_alias=True) for one in given or ())):
        yield value


class PartialOutput:
    """The output of one run, as far as it is certain.

    Args:
        output: its type.
        tool: the name of the tool whose call is the output; None if it is the reply.
    """

    def __init__(self, output: Output, tool: str | None) -> None:
        self._output = output
        self._spec = ToolSpec(tool or "", "", output.schema.schema)
        self._tool = tool
        self._shown: Any = _NOTHING  # the last value that still counts
        self._over = False  # whether the reply is
        self._begin()

    def _begin(self) -> None:
        self._over = False
        self._said = Pieces()  # the text before its value
        self._searched = 0
        self._length = 0
        self._index: int | None = None if self._tool else -1  # of the call
        self._text: ArgumentText | None = None

    def see(self, event: Event) -> Iterator[Any]:
        """Yield what follows from an event: None if the values so far no longer count, and a value that has grown."""
        if isinstance(event, Finish):
            self._over = True
        elif self._over and isinstance(event, (Text, CallStart)):
            self._begin()
            if self._shown is not _NOTHING:
                self._shown = _NOTHING
                yield None
        if isinstance(event, Text) and self._tool is None:
            self._see_text(event.text)
        elif isinstance(event, CallStart) and self._index is None and event.name == self._tool:
            self._index, self._text = event.index, ArgumentText(self._spec, declared=True)
        elif isinstance(event, ArgumentDelta) and event.index == self._index and self._text is not None:
            self._text.feed(event)
        else:
            return
        if self._text is not None and len(self._text.prefix) >= max(self._length + 1, self._length * _GROWTH):
            yield from self._grown(self._text)

    def end(self, *output: Any) -> Iterator[Any]:
        """Yield the run's output as JSON data; before it None if the values so far do not count, or nothing does."""
        if self._shown is not _NOTHING and not (output and _continues(self._shown, output[0])):
            yield None
        if self._shown is _NOTHING or self._shown not in output:
            yield from output

    def _grown(self, text: ArgumentText) -> Iterator[Any]:
        value = text.prefix.value()
        self._length = len(text.prefix)
        if self._output.wrapped and value is not None:
            value = value.get(VALUE, _NOTHING)
        empty = value in (None, {}, []) and self._shown is _NOTHING  # a bracket in a sentence has no values
        if not empty and value is not _NOTHING and value != self._shown:
            self._shown = value
            yield value

    def _see_text(self, text: str) -> None:
        if self._text is not None:
            self._text.feed(ArgumentDelta(0, text))
            return
        self._said.add(text)
        if len(self._said) < self._searched * _SEARCH:
            return
        said = self._said.text()
        self._searched = len(said)
        start = json_start(said, lists=self._output.wrapped)
        if start >= 0 and (before := self._before(said, start)) is not None:
            self._text = ArgumentText(self._spec, declared=True)
            self._text.feed(ArgumentDelta(0, before + said[start:]))

    def _before(self, said: str, start: int) -> str | None:
        """The text that wraps a value as the schema does, if it came without that; None if it is not certain yet."""
        if not self._output.wrapped:
            return ""
        around = self._spec.parameters
        options = [*walk.alternatives(around["properties"][VALUE], around)]
        if said[start] == "{":
            if not _FIRST_KEY.match(said, start):
                return None
            if _IN_VALUE.match(said, start):
                also = any(VALUE in o.get("properties", {}) or o.get("additionalProperties") for o in options)
                return None if also else ""  # it may be the property of an object that is not wrapped
        kind = "object" if said[start] == "{" else "array"
        return f'{{"{VALUE}": ' if any(o.get("type", kind) == kind for o in options) else None


def _continues(shown: Any, value: Any) -> bool:
    """Return whether a value has everything that was shown: keys are only added, strings and lists only grow."""
    match shown:
        case dict():
            return isinstance(value, dict) and all(k in value and _continues(v, value[k]) for k, v in shown.items())
        case list():
            whole = isinstance(value, list) and len(shown) <= len(value)
            return whole and all(map(_continues, shown, value))
        case str():
            return isinstance(value, str) and value.startswith(shown)
        case _:
            return bool(shown == value) and isinstance(shown, bool) == isinstance(value, bool)
