"""A response of the policy's as events: its calls, and text that only looks like a call, so that all are answered.

Pure text. Thinking that the prompt opened is not a call; nor is the text after a result that the model made up. A text
that plainly is a call, and cannot be read, is a `CallError`: the model reads its error, as of any other bad call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, cast

from agentkit import formats
from agentkit.events import (
    CallEnd,
    CallError,
    Event,
    InventedResult,
    Markup,
    SourceEvent,
    Text,
    Thinking,
    merge,
)
from agentkit.formats import Format, Parser
from agentkit.formats.format import Tag, edge
from agentkit.messages import ToolCall
from agentkit.processor.lost_attempts import find_attempt, strip_quotes
from agentkit.rollout.tokens.opened_thinking import began_inside, closer_of
from agentkit.toolspec import ToolSpec

_WORDS: Final = (
    r"(?:tool|function|search|code|execution|interpreter)?[ _-]?"
    r"(?:information|observations?|outputs?|results?|responses?|documents?)"
)
_MADE_UP: Final = re.compile(rf"\s*(?:<({_WORDS})\b[^<>\n]{{0,80}}>|{_WORDS}:(?=\s)|```{_WORDS}\n)", re.IGNORECASE)
"""How a result begins that a model writes itself, right after its call, in the words of its training's loop.

Sources: Search-R1 (`<information>`), open-instruct (`<output>`), ReAct (`Observation:`), ToRL (a block of `output`).
"""


def events_of(
    text: str,
    format: Format,
    tools: Sequence[ToolSpec],
    *,
    thinking: bool | None,
    can_open: Callable[[], bool | None] = lambda: None,
) -> list[SourceEvent]:
    """A whole response, read.

    Args:
        text: the response.
        format: in which format.
        tools: those that the model may call.
        thinking: whether its prompt opened thinking; None decides by the text and by `can_open`.
        can_open: tells whether prompts can open thinking; None if that is not known.
    """
    events = list(Parser(format, tools, thinking=bool(thinking)).close(text))
    if thinking is not None or (closer := closer_of(format)) is None or closer not in text:
        return events
    inside = began_inside(merge(events), format, can_open)
    return list(Parser(format, tools, thinking=True).close(text)) if inside else events


def without_made_up(events: Sequence[SourceEvent]) -> Sequence[SourceEvent]:
    """The events up to a result that the model made up right after a call; all that follows is one `InventedResult`."""
    if not any(isinstance(event, Text) for event in events):
        return events
    merged, after = cast("list[SourceEvent]", merge(events)), False
    for at, event in enumerate(merged):
        if after and isinstance(event, Text) and _MADE_UP.match(event.text):
            return [*merged[:at], InventedResult("".join(map(_source, merged[at:])))]
        after = isinstance(event, (CallEnd, CallError)) or (after and isinstance(event, Markup))
    return events


def with_attempts(
    events: Sequence[SourceEvent], format: Format, tools: Sequence[ToolSpec]
) -> tuple[Sequence[SourceEvent], str | None]:
    """Return the events of a response without calls, with an attempt at a call as a `CallError`.

    That is a call of a tool in a form that cannot be read, or the format's own marks of a call with none between them:
    nothing, `null`, a list, prose, code.

    Returns:
        The events, and the name of the other format that reads the call; empty if none does, None if there is no call.
    """
    said = "".join(e.text for e in events if isinstance(e, (Text, Markup)))
    name, begins, other = _in_another(said, tools) or ("", _marked(said, format), "")
    if not name and (unread := find_attempt(said, tools)) is not None:
        name, begins = unread.name, unread.text
    if begins is None:
        return events, None
    why = f"your call of {name} cannot be read" if name else "there is no call between the marks of one"
    events = cast("list[SourceEvent]", merge(events))
    kept: list[SourceEvent] = []
    thought = next((at for at in range(len(events) - 1, -1, -1) if isinstance(events[at], Thinking)), -1)
    for at, event in enumerate(events):
        source = _source(event)
        found = source.find(begins[:_HEAD]) if at > thought else -1
        if found >= 0:
            kept += [type(event)(source[:found])] if isinstance(event, (Text, Markup)) and found else []
            begins = source[found:] + "".join(map(_source, events[at + 1 :]))
            break
        kept.append(event)
    else:
        begins = ""  # quoted code between its parts was left out: it stays text
    names = ", ".join(tool.name for tool in tools)
    message = f"{why}, and no tool ran; write it as calls are written here: the name of a tool ({names}), and arguments"
    call = ToolCall("", name, {}, format.name, begins)
    return [*kept, CallError(0, "ambiguous_call", message, call)], other


_HEAD: Final = 16
"""Characters by which an attempt is found again in the events."""


def _marked(said: str, format: Format) -> str | None:
    """Return the text from the format's own mark of a call on, if that begins a line, or the call ends the response."""
    for opening, closing in _marks(format):
        if not (_MARK.match(opening) and _MARK.match(closing)) or opening not in said:
            continue
        for found in re.finditer(re.escape(opening), strip_quotes(said)):
            begins = found.string[found.start() :]
            alone = not found.string[: found.start()].rpartition("\n")[2].strip()
            inner, closed, after = begins.removeprefix(opening).partition(closing)
            if alone or (closed and not after.strip() and not inner.startswith((" and ", " or ", " ... "))):
                return begins
    return None


@cache
def _marks(format: Format) -> tuple[tuple[str, str], ...]:
    """Return the opening and closing of each of a format's shapes; empty where they depend on the call."""
    ends = ((s.opening, s.section.close if s.section is not None else s.call[-1]) for s in format.shapes)
    return tuple((_literal(opening), _literal(closing)) for opening, closing in ends)


def _literal(part: object) -> str:
    return edge(part).strip() if isinstance(part, (str, Tag)) else ""


def _in_another(said: str, tools: Sequence[ToolSpec]) -> tuple[str, str | None, str] | None:
    """A call of one of the tools in another format, which its mark begins: name, text from there on, format."""
    names = {tool.name for tool in tools if tool.name in said}
    for format in formats.CATALOG if names else ():
        opening = next((o for o, _ in _marks(format) if _MARK.match(o) and o in said), None)
        if opening is None:
            continue
        name = next((c.name for c in formats.calls(formats.parse(said, format, tools)) if c.name in names), None)
        if name is not None:
            return name, said[said.index(opening) :], format.name
    return None


_MARK: Final = re.compile(r"[<\[｜|]\S{2,}")


def _source(event: Event) -> str:
    return event.call.raw if isinstance(event, (CallEnd, CallError)) else str(getattr(event, "text", ""))
