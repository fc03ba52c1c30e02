"""The writer of calls as text, from the same declarations. Pure; knows no registry and no model.

All text written here is read back before it is returned, so that a value is either represented exactly or refused with
a `FormatError`: it is never silently altered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentkit.checks.unicode import has_surrogate
from agentkit.errors import FormatError
from agentkit.events import CallEnd
from agentkit.formats.bodies.kinds import KINDS
from agentkit.formats.engine import Parser, get
from agentkit.formats.format import Format, ToolElement
from agentkit.formats.kind import Writing
from agentkit.formats.reserved_tags import refuse_reserved
from agentkit.messages import ToolCall
from agentkit.schemas.typed import values
from agentkit.toolspec import ToolSpec


def render_calls(format: str | Format, calls: Sequence[ToolCall], tools: Sequence[ToolSpec]) -> str:
    """Render calls as a model of this format would have written them.

    Raises:
        FormatError: the format cannot represent a value; the message names the tool and the reason.
    """
    declared = get(format)
    if not calls:
        return ""
    known = {t.name: t for t in tools}
    written = [_write(_writing(declared, call, n, known)) for n, call in enumerate(calls)]
    if (section := declared.section) is None:
        text = declared.separator.join(written)
    elif section.each:
        text = declared.separator.join(section.start + one + section.end for one in written)
    else:
        text = section.start + declared.separator.join(written) + section.end
    _check(declared, calls, tools, text)
    return text


def _writing(format: Format, call: ToolCall, number: int, known: Mapping[str, ToolSpec]) -> Writing:
    tool = _spec(format, call, known)
    if not format.tagged:
        return Writing(format, tool, call, number)
    layout = next(p.layout for p in format.call if isinstance(p, ToolElement))
    elements = (other.with_element(layout).element for other in known.values() if other.name != tool.name)
    return Writing(format, tool, call, number, tuple([element.tag for element in elements if element is not None]))


def _write(w: Writing) -> str:
    try:
        text = "".join(KINDS[type(p)].write(w, p) for p in w.format.call)
    except FormatError as e:
        raise e if w.tool.name in str(e) else FormatError(f"{w.tool.name}: {e}") from e
    except RecursionError as e:
        raise FormatError(f"{w.tool.name}: a value is nested too deep to be written") from e
    if has_surrogate(text):
        raise FormatError(f"{w.tool.name}: a string with a lone surrogate cannot be written in any format")
    return text


def _spec(format: Format, call: ToolCall, known: Mapping[str, ToolSpec]) -> ToolSpec:
    """Return the called tool; if it is not offered (any more), a tool that accepts any arguments of these names."""
    tool = known.get(call.name)
    if tool is None:
        tool = ToolSpec(call.name, "", {"type": "object", "properties": {name: {} for name in call.arguments}})
    return tool.with_element(next((p.layout for p in format.call if isinstance(p, ToolElement)), "own"))


def _check(format: Format, calls: Sequence[ToolCall], tools: Sequence[ToolSpec], text: str) -> None:
    """Written text must be read back as the same calls."""
    known = {t.name: t for t in tools}
    parser = Parser(
        format, [*tools, *(_spec(format, c, known) for c in calls if c.name not in known)], in_code="execute"
    )
    events = parser.feed(text) + parser.close()
    got = [e.call for e in events if isinstance(e, CallEnd)]
    for i, call in enumerate(calls):
        if i >= len(got) or got[i].name != call.name or not _equal(got[i].arguments, call.arguments):
            refuse_reserved(format, [_spec(format, call, known)])
            raise FormatError(
                f"format {format.name!r} cannot represent this call of {call.name!r}: it would be read back as "
                f"{got[i].name + ' ' + values.dump(got[i].arguments)[:200] if i < len(got) else 'no call'}"
            )
    if len(got) != len(calls):
        raise FormatError(
            f"format {format.name!r} cannot represent these calls: {len(calls)} would be read as {len(got)}"
        )


def _equal(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a.keys() == b.keys() and all(values.same(a[k], b[k]) for k in a)
