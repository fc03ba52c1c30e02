"""Values whose closing tag was forgotten: the next parameter's opening is then in the middle of one.

This is decided only after the whole call, by the tool's schema: if a required parameter is missing, and its opening is
in the value of another one and is not closed there, that value ends there. If the parameter is optional, the call is
ambiguous; so it is if a value contains a closing tag that nothing there opens and that is not part of a sentence, or
something that is nearly the opening of a parameter that was not passed. Knows the call in progress and the
declarations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final

from agentkit.formats import values
from agentkit.formats.call import CallReader
from agentkit.formats.damage.crossing import closed_in_data, headless, opened_after_rest
from agentkit.formats.damage.near_openings import NO_SPACE, near_opening, written_openings
from agentkit.formats.format import Pairs, TagParameters
from agentkit.formats.reader import Damage, Search, pattern
from agentkit.formats.repairs import MISSING_CLOSE
from agentkit.formats.tags import closing_tag, opening_tag
from agentkit.formats.valueends import ValueEnd, end_of_value
from agentkit.formats.worn import begins_closing, but_for_one, worn_by_one, worn_closing


def close_values(call: CallReader, end: int, *, allowed: frozenset[str]) -> None:
    """Return to missing parameters what an unclosed value before them swallowed.

    Args:
        call: the call, which has been read.
        end: absolute offset after it.
        allowed: the repairs that may be made.

    Raises:
        Damage: `ambiguous_call` where the swallowed parameter may as well be missing.
    """
    part = next((p for p in call.shape.call if isinstance(p, Pairs | TagParameters)), None)
    if part is None or call.tool is None or not call.arguments.plain:
        return
    by_name, plain, marked = call.arguments.by_name, call.arguments.plain, _marked(part)
    given = [(n, v) for n, v in by_name.items() if isinstance(v, str) and n in plain and marked(v)]
    if not given and MISSING_CLOSE not in call.arguments.repairs:
        return
    edge = end_of_value(call.shape, part)
    known = [n for n in call.tool.parameters.get("properties", {}) if n not in by_name]
    for name, value in given:
        unclosed = MISSING_CLOSE in call.arguments.repairs
        if edge.marks(value):
            _refuse_marked(name, value, call, part, end)
        if unclosed and edge.half(value):
            raise unsure(name, "a call", end, end)
        if unclosed and worn_by_one(value, edge.what):
            raise _unopened(name, f"nearly {edge.what}", end)
        if begun := _begun(part) if _half_opens(value, edge, part) else headless(value, edge, part):
            raise unsure(name, begun, end, end)
    if known:
        _return_to(known, given, call, part, end, allowed)
    if MISSING_CLOSE in call.arguments.repairs:
        _refuse_in_data(call, edge, end)


def _refuse_marked(name: str, value: str, call: CallReader, part: Pairs | TagParameters, end: int) -> None:
    """Refuse a value in which values open or close that may be others of the call; arguments as of `close_values`."""
    edge = end_of_value(call.shape, part)
    swallowed = _opened_again(value, edge, call.arguments.by_name) or _of_another(value, edge, call)
    if swallowed := swallowed or opened_after_rest(value, edge):
        raise unsure(name, swallowed, end, end)
    if _is_twice(value, edge):
        raise _twice(name, edge.what, end)
    behind = edge.unopened(value)
    unclosed = MISSING_CLOSE in call.arguments.repairs
    if behind >= 0 and (unclosed or edge.half(value[behind:]) or _goes_on(value, behind, edge, part)):
        raise _unopened(name, edge.what, end)


def _refuse_in_data(call: CallReader, edge: ValueEnd, end: int) -> None:
    """Refuse data in which a value is closed that nothing there opens, as the closing of another one was missing."""
    for name, value in call.arguments.by_name.items():
        if name in call.arguments.plain and closed_in_data(value, edge):
            raise _unopened(name, edge.what, end)


def _return_to(
    known: Sequence[str],
    given: Sequence[tuple[str, str]],
    call: CallReader,
    part: Pairs | TagParameters,
    end: int,
    allowed: frozenset[str],
) -> None:
    """Return to the parameters that were not passed what the values that were given swallowed."""
    edge = end_of_value(call.shape, part)
    required = call.tool.parameters.get("required", ()) if call.tool is not None else ()
    closing = re.compile(pattern(part.close.strip()) if isinstance(part, Pairs) else closing_tag(part.name))
    loose = re.IGNORECASE if isinstance(part, TagParameters) else re.NOFLAG  # as tags are read
    opening = re.compile("|".join(f"(?P<_{i}>{_opening(part, name)})" for i, name in enumerate(known)), loose)
    for name, value in given:
        worn = worn_closing(value, edge.what)
        if worn >= 0 and _in_a_sentence(value, worn, edge, part, call, known):
            worn = -1
        shut = worn >= 0 or _is_bare(value, part) or _is_shut(value, edge, part, call, known)
        if shut or _misspelt(value, edge, known):
            raise _unopened(name, edge.what, end, known[0])
        found = list(opening.finditer(value))
        if any(begins_closing(value[: f.start()], edge.what) for f in found):
            raise _unopened(name, edge.what, end, known[0])
        closed = closing.search(value, found[0].end()) if found else None
        balanced = closed is not None and edge.opened(value) <= 0
        if balanced and closed is not None and _may_be_next(value, found[0], closed):
            balanced = edge.in_a_call(value, found[0].start())  # otherwise its value may be what follows
        swallowed = "" if found else near_opening(value, part, known) or _opened_again(value, edge, known)
        if balanced or not (found or swallowed):
            continue  # balanced, or there is none: content
        names = [known[int((f.lastgroup or "_0")[1:])] for f in found]
        sure = found and not closed and len(set(names)) == len(names) and not set(names).isdisjoint(required)
        if not sure or MISSING_CLOSE not in allowed:
            raise unsure(name, names[0] if names else swallowed, end, end)
        if edge.closes(value[: found[0].start()]):
            message = f"expected a parameter or the end of the call after {edge.what} of {name!r}"
            raise Damage("invalid_arguments", message, end, end=end)
        starts = [0, *(f.end() for f in found)]
        stops = [*(f.start() for f in found), len(value)]
        for key, start, stop in zip((name, *names), starts, stops, strict=True):
            text = _trimmed(part, value[start:stop], first=not start, last=stop == len(value))
            call.arguments.by_name[key] = call.arguments.read(text, *call.arguments.schema(key), allowed)
        call.arguments.note(MISSING_CLOSE)


def _may_be_next(value: str, opening: re.Match[str], closing: re.Match[str]) -> bool:
    """Whether a parameter in a value, from its opening to a closing, may be the next one, whose value continues."""
    continues = bool(value[closing.end() :].strip()) and _is_placed(value, opening.start())
    return continues or not value[opening.end() : closing.start()].strip()


def _goes_on(value: str, behind: int, edge: ValueEnd, part: Pairs | TagParameters) -> bool:
    """Whether what follows the closing that ends here may be another value."""
    return _ends_line(value, behind, edge, part) or _nearly_opens(value, edge, part)


def _ends_line(value: str, behind: int, edge: ValueEnd, part: Pairs | TagParameters) -> bool:
    """Whether the closing that ends here is joined to text before it, and is the last thing in its line.

    So closings are written, unless each one is on a line of its own: what follows it may be another value.
    """
    if isinstance(part, Pairs) and part.close[:1].isspace():
        return False
    closing = next((f for f in edge.own.finditer(value) if f.end() == behind), None) if edge.own is not None else None
    before = value[closing.start() - 1 : closing.start()] if closing is not None else ""
    return bool(before.strip()) and _LINE_END(value, behind) is not None


@lru_cache(256)
def _marked(part: Pairs | TagParameters) -> Search:
    """Finds one of some characters, without which a value has no part of an opening or a closing that is looked for."""
    edges = [text for opening in written_openings(part, "") for text in (opening.strip()[0], opening.strip()[-1])]
    edges.append(part.close.strip()[0] if isinstance(part, Pairs) else "<")
    return re.compile(f"[{re.escape(''.join(sorted({edge.lower() + edge.upper() for edge in edges})))}]").search


def _opened_again(value: str, edge: ValueEnd, names: Collection[str]) -> str:
    """The first of these parameters that opens in a value and is not closed there; empty if none does.

    Half a quoted call is content, unless a call ends before it: then one call is over there, and another one begins,
    of which the opening may be missing. It may be one of another tool.
    """
    if edge.own is None or edge.opened(value) <= 0 or (edge.half(value) and not edge.ends_first(value)):
        return ""
    found = ((f.groupdict().get("name") or "").strip() for f in edge.own.finditer(value) if f["close"] is None)
    another = edge.ends_first(value)
    return next((name for name in found if name in names or another), "")


def _of_another(value: str, edge: ValueEnd, call: CallReader) -> str:
    """The first parameter of another tool that opens at the start of a line in a value; empty if none does.

    Or between two words, joined to both. Not if all that opens there is closed, or half a quoted call is there.
    """
    if edge.own is None or call.tool is None or edge.opened(value) <= 0 or edge.half(value):
        return ""
    own = call.tool.parameters.get("properties", {})
    others = {name for tool in call.tools.values() for name in tool.parameters.get("properties", {}) if name not in own}
    for found in edge.own.finditer(value):
        name = (found.groupdict().get("name") or "").strip()
        behind = value[found.end() : found.end() + 1]
        if found["close"] is None and name in others and _is_placed(value, found.start(), behind):
            return name
    return ""


def _is_placed(value: str, at: int, behind: str = "x") -> bool:
    """Whether an opening tag is the first thing in its line, or joined to a word before it, and to what is `behind`."""
    before = value[max(at - _LINE, 0) : at]
    return before.rstrip(" \t")[-1:] in ("", "\n") or (before[-1:].strip() not in ("", *_MARKS) and behind > " ")


def unsure(name: str, swallowed: str, at: int, end: int) -> Damage:
    """The error for a value in which another parameter starts, so that its own end may be missing."""
    return Damage(
        "ambiguous_call",
        f"{swallowed!r} starts inside the value of {name!r}: close each value, and put one that contains such markup "
        f"in <![CDATA[ … ]]>",
        at,
        end=end,
    )


def _unopened(name: str, what: str, end: int, missing: str = "") -> Damage:
    """The error for a value in which another one ends, whose opening may be what is missing."""
    lost = f", and {missing!r} is missing: open" if missing else ", and nothing there opens it: open and close"
    return Damage(
        "ambiguous_call",
        f"{what} is inside the value of {name!r}{lost} each value, and put one that contains such markup in "
        f"<![CDATA[ … ]]>",
        end,
        end=end,
    )


def _is_twice(value: str, edge: ValueEnd) -> bool:
    """Whether a value is closed inside by what nothing there opens, and the same text follows: it is written twice."""
    if edge.what[0] not in value or edge.own is None or (behind := edge.unopened(value)) < 0:
        return False
    last = max((f.start() for f in edge.own.finditer(value, 0, behind)), default=0)
    before = value[:last].strip()
    return bool(before) and value[behind:].rstrip().endswith(before)


def _nearly_opens(value: str, edge: ValueEnd, part: Pairs | TagParameters) -> bool:
    """Whether something that is nearly the opening of a parameter comes after a closing, with nothing between them.

    Of that opening one character is another one, too many or missing, or its rest is.
    """
    if edge.own is None:
        return False
    begun = "".join((part.key if isinstance(part, Pairs) else f"<{part.name}").split())
    for closed in edge.own.finditer(value):
        at = _SPACE(value, closed.end()).end()  # type: ignore[union-attr]  # it matches nothing too
        text = value[at : at + 2 * len(begun)].translate(NO_SPACE)
        if closed["close"] is None or text.startswith("</") or edge.own.match(value, at) is not None:
            continue
        if text.startswith(begun) or but_for_one(text, begun):
            return True
    return False


def _half_opens(value: str, edge: ValueEnd, part: Pairs | TagParameters) -> bool:
    """Whether a line of a value starts with the opening of a parameter, of which the rest is missing.

    Not if half a quoted call is there.
    """
    begun = _begun(part)
    at = value.find(begun)
    while at >= 0 and edge.own is not None:
        alone = value[max(at - _LINE, 0) : at].rstrip(" \t")[-1:] in ("", "\n")
        if alone and edge.own.match(value, at) is None:
            return not edge.half(value)
        at = value.find(begun, at + 1)
    return False


def _begun(part: Pairs | TagParameters) -> str:
    """What opens a parameter, before its name."""
    return part.key.strip() if isinstance(part, Pairs) else f'<{part.name} {part.attribute}="'


def _twice(name: str, what: str, end: int) -> Damage:
    """The error for a value that is written twice."""
    return Damage(
        "ambiguous_call",
        f"the value of {name!r} is written twice, with {what} between: write it once, and put a value that contains "
        f"such markup in <![CDATA[ … ]]>",
        end,
        end=end,
    )


def _is_bare(value: str, part: Pairs | TagParameters) -> bool:
    """Whether the opening tag of a parameter is in a value without its end, or without a name and not closed."""
    if not isinstance(part, TagParameters) or f"<{part.name}".casefold() not in value.casefold():
        return False
    if re.search(rf"<{re.escape(part.name)}\s[^<>]{{0,512}}(?=<|\Z)", value, re.IGNORECASE) is not None:
        return True
    bare = re.findall(rf"<{re.escape(part.name)}\s{{0,64}}>", value, re.IGNORECASE)
    return len(bare) > len(re.findall(closing_tag(part.name), value, re.IGNORECASE))


def _misspelt(value: str, edge: ValueEnd, missing: Sequence[str]) -> bool:
    """Whether a tag after a closing one names a parameter that was not passed, and opens nothing."""
    if edge.own is None:
        return False
    names = re.compile(rf"<[^\n]{{0,64}}?\b(?:{'|'.join(map(re.escape, missing))})\b")
    for closed in (f for f in edge.own.finditer(value) if f["close"]):
        at = _SPACE(value, closed.end()).end()  # type: ignore[union-attr]  # it matches nothing too
        if names.match(value, at) and not edge.own.match(value, at):
            return True
    return False


_LINE_END: Final = re.compile(r"[ \t]*\r?\n\s*\S").match


def _is_shut(value: str, edge: ValueEnd, part: Pairs | TagParameters, call: CallReader, missing: Sequence[str]) -> bool:
    """Whether a value seems to be closed inside, and what follows that belongs to another one.

    By a closing that nothing there opens; or by the last one, if a call opens there and does not end.
    """
    if edge.own is None:
        return False
    behind = edge.unopened(value)
    last = max((f.end() for f in edge.own.finditer(value) if f["close"]), default=-1) if behind < 0 else -1
    if last >= 0 and edge.half(value):
        behind = last
    return behind >= 0 and not _in_a_sentence(value, behind, edge, part, call, missing)


def _in_a_sentence(
    value: str, behind: int, edge: ValueEnd, part: Pairs | TagParameters, call: CallReader, missing: Sequence[str]
) -> bool:
    """Whether a closing tag is part of a sentence, or of a line of code, that continues after it.

    Not if what is there is all that is left of the opening of a parameter that was not passed, or its value.
    """
    rest = value[behind:]
    if rest and _SENTENCE(rest) is None and not _in_marks(value, behind, edge):
        return False
    word = rest.lstrip("\"'`)]},.;:!?\\ \t").strip()
    for schema, root in map(call.arguments.schema, missing):
        if values.is_scalar(schema, root) and not isinstance(values.read(word, schema, root), str):
            return False
    for name in missing:
        for opening in written_openings(part, name):
            if any(rest.startswith(opening[n:]) for n in range(len(opening))):
                return False
    return True


def _in_marks(value: str, behind: int, edge: ValueEnd) -> bool:
    """Whether quotes or brackets enclose the closing tag that ends here."""
    found = next((f for f in edge.own.finditer(value) if f.end() == behind), None) if edge.own is not None else None
    before = value[found.start() - 1 : found.start()] if found else ""
    return before in _MARKS and value.startswith(_MARKS[before], behind)


def _opening(part: Pairs | TagParameters, name: str) -> str:
    """A regular expression for all that precedes the value of a parameter."""
    if isinstance(part, Pairs):
        middle = pattern(part.middle.rstrip())
        if part.kind:
            middle = rf"(?:{middle}|{pattern(part.kind[0])}[^<>\"\n]{{0,64}}{pattern(part.kind[1].rstrip())})"
        return pattern(f"{part.key}{name}") + middle
    return (
        rf"""{opening_tag(part.name)}\s+{re.escape(part.attribute)}\s*=\s*["']?{re.escape(name)}["'\s][^<>]{{0,64}}>"""
    )


def _trimmed(part: Pairs | TagParameters, text: str, *, first: bool, last: bool) -> str:
    """A piece of a value without the newlines that belong to the format: before an opening, and after one."""
    if not first and (isinstance(part, TagParameters) or part.newlines != "none"):
        text = _NEWLINE_AT_START.sub("", text)
    return text if last else _NEWLINE_AT_END.sub("", text)


_SPACE = re.compile(r"\s*").match
_LINE: Final = 64  # characters examined of a line before a tag
_SENTENCE = re.compile(r"[ \t]+[^\s<]|[,.;:!?]+(?:[\s<]|\Z)|\\[nrt\"'\\]").match
"""After a tag, how a sentence or a line of code continues."""
_MARKS = {'"': '"', "'": "'", "`": "`", "(": ")", "[": "]", "{": "}", "\\": "\\"}
_NEWLINE_AT_START = re.compile(r"\A\r?\n")
_NEWLINE_AT_END = re.compile(r"\r?\n\Z")
