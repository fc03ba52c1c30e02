"""Values whose closing tag was forgotten: the next parameter's opening then stands in the middle of one.

Told only after the whole call, by what the tool's schema says: where a required parameter is missing, and its opening
stands in the value of another one and is not closed there, that value ends there. Where it is a parameter that may be
left out, nobody can tell; nor where a closing tag ends a line of a value and nothing there opens it. Knows the call in
progress and the declarations.
"""

from __future__ import annotations

import re

from agentkit.formats import values
from agentkit.formats.call import CallReader
from agentkit.formats.format import Pairs, TagParameters
from agentkit.formats.reader import Damage, pattern
from agentkit.formats.repairs import MISSING_CLOSE
from agentkit.formats.tags import closing_tag, opening_tag
from agentkit.formats.valueends import end_of_pair, end_of_parameter


def close_values(call: CallReader, end: int, *, repair: bool) -> None:
    """Give back to missing parameters what an unclosed value before them swallowed.

    Args:
        call: the call, which has been read.
        end: absolute offset behind it.
        repair: whether that is permitted.

    Raises:
        Damage: `ambiguous_call` where the swallowed parameter may as well be missing.
    """
    part = next((p for p in call.shape.call if isinstance(p, Pairs | TagParameters)), None)
    if part is None or call.tool is None:
        return
    known = [n for n in call.tool.parameters.get("properties", {}) if n not in call.arguments]
    required = [n for n in known if n in call.tool.parameters.get("required", ())]
    if not known or not call.raw:
        return
    edge = end_of_pair(call.shape, part) if isinstance(part, Pairs) else end_of_parameter(call.shape, part)
    closing = re.compile(pattern(part.close.strip()) if isinstance(part, Pairs) else closing_tag(part.name))
    opening = re.compile("|".join(f"(?P<_{i}>{_opening(part, name)})" for i, name in enumerate(known)))
    for name, value in list(call.arguments.items()):
        behind = edge.unopened(value) if isinstance(value, str) and name in call.raw else -1
        if behind >= 0 and _LINE_ENDS(value, behind):  # in a sentence it is likelier content
            raise _unopened(name, known[0], edge.what, end)
        found = list(opening.finditer(value)) if isinstance(value, str) and name in call.raw else []
        if not found or closing.search(value, found[0].end()):  # none, or balanced: content
            continue
        names = [known[int((f.lastgroup or "_0")[1:])] for f in found]
        if set(names).isdisjoint(required) or len(set(names)) < len(names) or not repair:
            raise unsure(name, names[0], end, end)
        if edge.closes(value[: found[0].start()]):
            closed = f"expected a parameter or the end of the call behind {edge.what} of {name!r}"
            raise Damage("invalid_arguments", closed, end, end=end)
        starts = [0, *(f.end() for f in found)]
        stops = [*(f.start() for f in found), len(value)]
        for key, start, stop in zip((name, *names), starts, stops, strict=True):
            text = _trimmed(part, value[start:stop], first=not start, last=stop == len(value))
            call.arguments[key] = values.read(text, *call.schema(key))
        call.note(MISSING_CLOSE)


def unsure(name: str, swallowed: str, at: int, end: int) -> Damage:
    """The error for a value in which another parameter begins, so that its own end may be missing."""
    return Damage(
        "ambiguous_call",
        f"{swallowed!r} begins inside the value of {name!r}: close each value, and put one that holds such markup in "
        f"<![CDATA[ … ]]>",
        at,
        end=end,
    )


def _unopened(name: str, missing: str, what: str, end: int) -> Damage:
    """The error for a value in which another one ends, whose opening may be what is missing."""
    return Damage(
        "ambiguous_call",
        f"{what} stands inside the value of {name!r}, and {missing!r} was not given: open each value, and put one that "
        f"holds such markup in <![CDATA[ … ]]>",
        end,
        end=end,
    )


def _opening(part: Pairs | TagParameters, name: str) -> str:
    """A regular expression for all that stands before the value of a parameter."""
    if isinstance(part, Pairs):
        return pattern(f"{part.key}{name}{part.middle}".rstrip())
    return (
        rf"""{opening_tag(part.name)}\s+{re.escape(part.attribute)}\s*=\s*["']?{re.escape(name)}["'\s][^<>]{{0,64}}>"""
    )


def _trimmed(part: Pairs | TagParameters, text: str, *, first: bool, last: bool) -> str:
    """A piece of a value without the newlines that belong to the format: before an opening, and behind one."""
    if not first and (isinstance(part, TagParameters) or part.newlines != "none"):
        text = _NEWLINE_AT_START.sub("", text)
    return text if last else _NEWLINE_AT_END.sub("", text)


_LINE_ENDS = re.compile(r"[ \t]*\r?\n").match
_NEWLINE_AT_START = re.compile(r"\A\r?\n")
_NEWLINE_AT_END = re.compile(r"\r?\n\Z")
