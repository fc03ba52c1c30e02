"""Untrusted text as a model reads it: results and tool declarations without calls, control tokens and result ends.

A tool's result is data: it is shown unchanged but for control tokens (`control`), which a server would read as special,
calls of the conversation's own format, and the result's end. These are cut by one `MARK`, and `restore` removes the
marks from arguments that pass the text on. Pure; knows no registry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from agentkit.checks.unicode import visible
from agentkit.errors import ErrorCode, FormatError
from agentkit.events import ArgumentDelta, CallEnd, CallError, CallStart, Markup, Text
from agentkit.formats import control
from agentkit.formats.control import MARK, lengthen_marks
from agentkit.formats.engine import Parser, get
from agentkit.formats.escapes import attribute
from agentkit.formats.format import Format
from agentkit.schemas.walk import words
from agentkit.toolspec import ToolSpec

# ---------------------------------------------------------------- results


def render_result(
    format: str | Format,
    name: str,
    call_id: str,
    text: str,
    error: ErrorCode | None = None,
    tools: Sequence[ToolSpec] = (),
) -> str:
    """Render a tool's result as the model of this format reads it.

    It is named, marked `success` or with its error code, and quarantined, including its name and its id: no text in it
    can be read as a call of this format, as a control token, or as the end of the result.
    """
    declared = get(format)
    safe = [attribute(_cut(slot, declared, tools)) for slot in (name, call_id)]
    before = declared.result.open.format_map({"name": safe[0], "id": safe[1], "status": error or "success"})
    return f"{before}{_cut(text, declared, tools, before, declared.result.close)}{declared.result.close}"


def quarantine(text: str, format: str | Format, tools: Sequence[ToolSpec] = ()) -> str:
    """Cut every control token of any family, and every call of this format, in untrusted text.

    The text is then never read as a call, cannot end or begin a turn, and does not close the format's results.
    Everything else is unchanged, including other formats' calls. `restore` returns the original text.
    """
    return _cut(text, get(format), tools)


_REACH: Final = 256  # characters of the wrapper that a token across its start or end can have
_FIRST: Final = 128  # characters that are read first to find the next call, then twice as many, and so on
_WORK: Final = 16  # how often the characters of a text may be read, on average; a hostile one is cut everywhere


def _cut(text: str, format: Format, tools: Sequence[ToolSpec], before: str = "", after: str = "") -> str:
    """Return the text, quarantined, as it is between the parts of a wrapper."""
    shown = _Calls(format, tools, before, after).cut(lengthen_marks(text))
    head, tail = before[-_REACH:], after[:_REACH]
    whole = head + shown + tail
    gaps = {max(m.start() + 1, len(head)) for m in _tokens(format).finditer(whole) if m.end(1) > len(head)}
    ends = [len(head), *sorted(gap for gap in gaps if gap <= len(head) + len(shown)), len(head) + len(shown)]
    return MARK.join(whole[gap:end] for gap, end in pairwise(ends))


@lru_cache(maxsize=64)
def _tokens(format: Format) -> re.Pattern[str]:
    """Return a pattern for control tokens and the end of a result; each begins at a match, and is its group."""
    close = format.result.close.strip()
    first = re.escape(control.FIRST + close[:1])  # most characters begin none
    own = [re.escape(close)] if close else []
    return re.compile(f"(?=[{first}])(?=({'|'.join([*own, control.pattern()])}))")


class _Calls:
    """Cuts the calls of a format in a text, damaged ones included.

    The parser itself finds them. A call is cut after its first character, and after each `<` in it, so that it cannot
    end a value that passes it on. From there the text is read again until no call begins there: calls in calls are cut,
    too. Nothing hides a call: code, thinking and answers are read like all other text.
    """

    def __init__(self, format: Format, tools: Sequence[ToolSpec], before: str, after: str) -> None:
        self._format, self._tools = _without_regions(format), tools
        self._before, self._after = before, after
        self._budget = 0

    def cut(self, text: str) -> str:
        """Return the text, cut where it is read alone, and then where it is read in its wrapper."""
        whole, first, rest = self._before + text + self._after, len(self._before), len(self._after)
        self._budget = _WORK * (len(whole) + _FIRST)
        start, clean, marks = first, False, 0
        while not clean:
            clean = start == 0
            while (span := self._call(whole, start)) is not None:
                last = len(whole) - rest
                again, start = marks > 0 and span[0] == start, max(span[0], first)
                if (gap := _FREE.search(whole, start + 1, last)) is None:  # it is the wrapper's own
                    break
                if again or self._budget <= 0:  # one mark was not enough, as where an opening has only one character
                    marks = 2 * marks if self._budget > 0 else 0
                    cut = gap.start(), last, _FREE.sub(MARK, whole[gap.start() : last], count=marks)
                else:
                    marks, end = 1, min(max(span[1], gap.start()), last)
                    inner = _TAGS.sub(rf"\g<0>{MARK}", whole[gap.start() : end])
                    cut = gap.start(), end, f"{MARK}{inner}"
                whole, clean = f"{whole[: cut[0]]}{cut[2]}{whole[cut[1] :]}", False
                if not marks:
                    return whole[first : len(whole) - rest]
            start, marks = 0, 0
        return whole[first : len(whole) - rest]

    def _call(self, text: str, start: int) -> tuple[int, int] | None:
        """Return the start of the first call from there, without white space before it, and the end of its section."""
        at = begin = start
        end: int | None = None
        for event in self._events(text, start):
            if isinstance(event, CallStart) and end is not None:
                break
            if isinstance(event, CallStart | ArgumentDelta):
                continue
            is_text = isinstance(event, Text) and not event.text.isspace()
            is_call = isinstance(event, CallEnd | CallError) and not _is_not_a_call(event)
            at += len(event.call.raw if isinstance(event, CallEnd | CallError) else event.text)
            if end is None:
                begin, end = (at if is_text or _is_not_a_call(event) else begin), (at if is_call else None)
            elif is_text or is_call:
                break
            elif isinstance(event, Markup):
                end = at
        return None if end is None else (_SPACE.match(text, begin).end(), end)  # type: ignore[union-attr]  # it matches

    def _events(self, text: str, start: int) -> Iterator[Any]:
        parser, size = Parser(self._format, self._tools, in_code="execute"), _FIRST
        while piece := text[start : start + size]:
            self._budget -= size
            yield from parser.feed(piece)
            start, size = start + size, 2 * size
        yield from parser.close()


def _is_not_a_call(event: Any) -> bool:
    """Return True if this calls no tool: its name is cut, in a format whose opening cannot be, or the fault is ours."""
    if not isinstance(event, CallEnd | CallError):
        return False
    return MARK in event.call.name or (isinstance(event, CallError) and event.code == "internal_error")


_SPACE: Final = re.compile(r"\s*")
_TAGS: Final = re.compile(f"<(?!{MARK})")
_FREE: Final = re.compile(f"(?<!{MARK})(?!{MARK})")
"""A place for one more mark that makes no other run of marks longer."""


@lru_cache(maxsize=64)
def _without_regions(format: Format) -> Format:
    """Return the format without regions that hide calls."""
    return replace(format, thinking=(), answer=(), markup=())


# ---------------------------------------------------------------- declarations

_CLOSING = re.compile(r"</[^\W\d_][\w.:-]*|<!\[CDATA\[|<!--")
_FENCE = re.compile(r"`{3,}")
_HEADING = re.compile(r"^([ \t]{0,3}#{1,6})(?=[ \t])", re.MULTILINE)

_PLAIN = re.compile(r"[$\w.-]*", re.ASCII)
"""A word that no format, template or prompt reads as markup, such as a name: most words of a schema are."""


class DeclarationQuarantine:
    """Tool declarations as a prompt shows them, when their author is unknown.

    Explanatory text (descriptions, titles, defaults, examples) is shown with its markers broken, so that it can still
    be read. Words that a model must write back exactly (parameters' names, `enum` and `const`) are not changed: a
    broken spelling would be a second one for the same value, which every format would have to distinguish, and a
    control token cannot be written back in any case, since it ends the reply. If such a word contains a marker, the
    declaration is refused. The same applies to invisible characters (`visible`).
    """

    def __init__(self, format: str | Format, tools: Sequence[ToolSpec] = ()) -> None:
        self._format, self._tools = get(format), tools
        self._known: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Explanatory text, without anything that a format, a template or the prompt itself reads as markup."""
        if _PLAIN.fullmatch(text):
            return text
        if (known := self._known.get(text)) is None:
            known = self._known[text] = self._break_markers(text)
        return known

    def _break_markers(self, text: str) -> str:
        shown = quarantine(visible(text), self._format, self._tools).replace(f"<{MARK}", "&lt;")
        for closing in set(_CLOSING.findall(shown)):
            name = closing.removeprefix("</")
            shown = re.sub(rf"<(?=/?{re.escape(name.lstrip('<'))})", "&lt;", shown)
        shown = _FENCE.sub(lambda m: m[0][0] + MARK + m[0][1:], shown)
        return _HEADING.sub(rf"\1{MARK}", shown)

    def tool(self, tool: ToolSpec) -> ToolSpec:
        """Return a tool with its description and its parameters as they are shown.

        Raises:
            FormatError: its name, or something that a model must write back exactly, contains a marker.
        """
        self.word(tool.name, "a tool's name")
        return replace(
            tool, description=self.text(tool.description), parameters=self.schema(tool.parameters, tool.name)
        )

    def schema(self, schema: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return a JSON Schema as it is shown.

        Raises:
            FormatError: something that must be written back exactly contains a marker.
        """
        for word, place in words(schema):
            self.word(word, f"{where}: {place}")
        return self._show(schema)  # type: ignore[no-any-return]  # an object stays one

    def word(self, word: str, where: str) -> None:
        """Refuse a word that a model must write back but that could only be shown in another spelling."""
        if (changed := self.text(word)) != word:
            raise FormatError(
                f"{where}: {word!r} contains what a prompt or a model's template reads as markup, or what nobody sees "
                f"(it would have to be shown as {changed!r}, and could not be written back); use another word"
            )

    def _show(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {self.text(k): self._show(v) for k, v in value.items()}
            case list() | tuple():
                return [self._show(v) for v in value]
            case _:
                return value
