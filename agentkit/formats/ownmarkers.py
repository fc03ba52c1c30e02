"""The markers of a format that is not in the catalogue, whatever they look like: where text may be read as its call.

Knows the declarations; reads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agentkit.formats.bodies.fixed import ends_of_name
from agentkit.formats.format import (
    CallId,
    CountedName,
    Envelope,
    Format,
    FormatPart,
    KeyEnvelope,
    Name,
    NameTag,
    PythonCall,
    Recipient,
    Tag,
    ToolElement,
)
from agentkit.formats.reader import pattern
from agentkit.formats.tags import in_tag

_IN_NAME: Final = r"[^\s<>{}\[\]()\"'`,;=]"
_IN_ATTRIBUTE: Final = r"[^<>\"]{1,256}?"
_FENCE: Final = r"(?:`{3}\w*\s*)?"
_OBJECT: Final = rf"\s*{_FENCE}(?:\[\s*)?\{{\s*[\"']"
_CALLED: Final = rf"\s*{_FENCE}(?:[\[(]\s*)*[^\W\d][\w.]*\s*\("
_LONG: Final = 3  # characters of an opening that is rare in code and in Markdown, if one of them is a letter


@dataclass(frozen=True, slots=True)
class OwnMarkers:
    """Regular expressions for the markers of a format, each in a case of its own.

    `long` ones cannot be read once something follows their first character; `single` ones are only that character.
    """

    long: tuple[str, ...]
    single: tuple[str, ...]


def own_markers(format: Format) -> OwnMarkers:
    """What opens calls of a format, and what ends a result.

    An opening that is common in other text (`[[`, `(`, `TOOL`) counts only where what follows it may be a call.
    """
    found = {False: dict[str, None](), True: dict[str, None]()}
    edges = [format.result.close, *(e for s in format.shapes for e in (s.opening, s.first) if isinstance(e, str))]
    single = "|".join(sorted({re.escape(e.strip()) for e in edges if len(e.strip()) == 1})) or "(?!)"
    for shape in format.shapes:
        if shape.section is not None:
            _add(found, (shape.section.open, *shape.call), single)
        _add(found, shape.call, single)
    close, shown = format.result.close, format.result.close.strip()
    if shown:
        before, after = "(?<!\\S)" * close[0].isspace(), "(?!\\S)" * close[-1].isspace()
        words = r"\s+".join(map(re.escape, shown.split()))
        found[len(shown) == 1][f"{before}{words}{after}"] = None
    begin = format.result.open.split("{")[0].strip()
    if _distinct(begin):
        found[False][pattern(begin)] = None
    return OwnMarkers(*(tuple(f"(?-i:{text})" for text in found[single]) for single in (False, True)))


def _add(found: dict[bool, dict[str, None]], parts: Sequence[FormatPart], single: str) -> None:
    """The marker with which these parts begin, unless that is a tag, or what a call without an opening begins with."""
    while parts and isinstance(parts[0], str) and not parts[0].strip():
        parts = parts[1:]
    match parts:
        case (Envelope(name, arguments), *_):
            keys = "|".join(map(re.escape, (name, *arguments)))
            found[False][rf"\{{(?=\s*\"(?:{keys})\"\s*:)"] = None
        case (str(opening), *_):
            text = opening.strip()
            behind = "" if _distinct(text) else f"(?={''.join(_behind(parts[1:], single))})"
            found[len(text) == 1][f"{pattern(text)}{behind}"] = None


def _distinct(text: str) -> bool:
    """Whether an opening is so unlike all other text that it is a marker regardless of what follows it."""
    return len(text) >= _LONG and not text[0].isalnum() and any(map(str.isalnum, text))


def _behind(parts: Sequence[FormatPart], single: str) -> Iterator[str]:
    """What the text after an opening begins with, if it can be a call.

    `single` are other markers of one character: what is shown in place of them may be in a name.
    """
    for n, part in enumerate(parts):
        match part:
            case str(text) if not text.strip():
                continue
            case str(text) if in_tag(text) is None:
                yield rf"\s*{pattern(text.strip())}"
                continue
            case Tag() | NameTag() | ToolElement() | str():
                yield r"\s*<"
            case Name(attribute=True):
                yield _named(_IN_ATTRIBUTE, parts[n + 1 :])
            case Name() | CountedName() | CallId() | Recipient():
                yield _named(rf"(?:{_IN_NAME}|{single}){{1,256}}?", parts[n + 1 :])
            case Envelope() | KeyEnvelope():
                yield _OBJECT
            case PythonCall():
                yield _CALLED
        return


def _named(characters: str, after: Sequence[FormatPart]) -> str:
    ends = "|".join(pattern(end) if end.strip() else re.escape(end) for end in ends_of_name(tuple(after)))
    return rf"\s*{characters}\s*(?:{ends})"
