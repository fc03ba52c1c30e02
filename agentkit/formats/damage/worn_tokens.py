"""A token in the place of the one that opens a call: what is left of that, or one that no format knows.

A model writes `<|tool|>` for `<|tool_call|>`, or the token of another family. What follows it is written like a call of
an offered tool, and no format reads it without its opening: a call is lost. Knows the declarations; reads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agentkit.formats.format import (
    Braced,
    CallId,
    CountedName,
    Envelope,
    Format,
    FormatPart,
    Json,
    KeyEnvelope,
    Name,
    PythonCall,
    Shape,
    Skip,
    edge,
)
from agentkit.formats.reader import Delimiter, any_beginning, any_of, pattern
from agentkit.formats.worn import lacks_some

_SPACE: Final = r"\s{0,64}"
_OWN: Final = re.compile(r"<[^<>\s]+>|\[[A-Z_]+\]").match
_PIPED: Final = re.compile(r"<[|｜]").match
_SECOND: Final = rf"\"\w{{0,64}}(?:\"{_SPACE})?"
_FIRST: Final = rf"\"\w{{0,64}}(?:\"[\s:]{{0,64}}(?:\"[\w.-]{{0,256}}(?:\"[\s,]{{0,64}}(?:{_SECOND})?)?)?)?"
_PIECE: Final = r"[^\s{}\"]"
_WORD: Final = rf"{_PIECE}{{1,256}}+"
_NAME: Final = r"[\w.-]{1,256}+"
_BRACKETS: Final = r"[\[\s]{0,512}+"
_WORDS: Final = rf"(?:{_WORD})?+(?:\s{{1,64}}+{_WORD}){{0,3}}+"


@dataclass(frozen=True, slots=True)
class Behind:
    """What may follow a token: a call of this format, in this shape."""

    format: Format
    shape: Shape


class Worn:
    """Finds a token that has the place of an opening one before a call of an offered tool: at `opens`, if `may_be`.

    At `before`, one that is followed by the opening of a call or of a section of calls.
    """

    __slots__ = ("_known", "_own", "_sections", "before", "behind", "may_be", "opens")

    def __init__(self, formats: Sequence[Format], names: Mapping[str, object]) -> None:
        known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or "(?!)"
        shapes = [(format, shape) for format in formats for shape in format.shapes]
        read = {_begins(_first(shape)) for _, shape in shapes if not _opening(shape)[0]} - {""}  # needs no opening
        self._own: dict[str, None] = {}
        behind: dict[str, Behind] = {}
        short: dict[str, None] = {}  # what can follow a tag, of which prose has many: no name before a literal
        openings = {part.strip() for _, shape in shapes for part in shape.call[:1] if isinstance(part, str)} - {""}
        for format, shape in shapes:
            token, rest, parts = _opening(shape)
            if any(opening in rest for opening in openings):
                continue  # it is read without the token
            if token and _begins(parts[0]) not in read and (follows := _follows(rest, parts, known)):
                self._own[token] = None
                behind.setdefault(follows, Behind(format, shape))
                if rest in ("", "[") and isinstance(parts[0], Envelope | KeyEnvelope | PythonCall):
                    short[follows] = None
        self._known = " ".join(text for format in formats for text in _fixed(format))
        around = [(edge(s.section.open), s.first) for _, s in shapes if s.section is not None]
        own = [(section.strip(), call.strip()) for section, call in around if isinstance(call, str)]
        self._sections = tuple({section: None for section, call in own if _OWN(call)})
        opening = dict.fromkeys([*(call for _, call in own if _OWN(call)), *self._sections])
        self.behind = tuple(behind.values())
        tag, block = _made_of(self._own, "<"), _made_of(self._own, "[")
        piped, plain = rf"<[|｜][^\s<>]{{1,64}}>|\[[{block}]{{3,64}}\]", rf"<[{tag}]{{3,64}}>"
        every = "|".join(f"(?P<b{n}>{follows})" for n, follows in enumerate(behind)) or "(?!)"
        few = "|".join(f"(?P<c{n}>{follows})" for n, follows in enumerate(behind) if follows in short) or "(?!)"
        python = any(isinstance(part, PythonCall) for b in self.behind for part in b.shape.call)
        one = rf"{_BRACKETS}(?:{_NAME})?" if python else _BRACKETS
        words = _WORDS if len(short) < len(behind) else one
        begun = rf"<(?:[|｜][^\s<>]{{0,64}}|[{tag}]{{0,64}})|\[[{block}]{{0,64}}"
        part = rf"(?:(?:{piped}){_SPACE}+{words}|{plain}{one}){_SPACE}+(?:\{{{_SPACE}(?:{_FIRST})?)?"
        whole = rf"(?P<token>{piped}){_SPACE}(?:{every})|(?P<tag>{plain}){_SPACE}(?:{few})"
        self.opens: Delimiter = Delimiter(whole, f"{begun}|{part}")
        self.before: Delimiter = Delimiter(
            rf"(?P<token>{piped}){_SPACE}(?:{any_of(opening)})", rf"{begun}|(?:{piped}){_SPACE}{any_beginning(opening)}"
        )
        self.may_be = re.compile(rf"{piped}|{plain}|(?:{begun})\Z" if behind else "(?!)").match

    def opens_section(self, found: re.Match[str]) -> bool:
        """Whether the token at a match of `before` is what is left of a section's opening."""
        return any(lacks_some(found["token"], section) for section in self._sections)

    def at(self, found: re.Match[str], *, aside: bool) -> int:
        """Which of `behind` is lost at a match of `opens`; -1 if the token has another meaning.

        With `aside`, it begins what someone else says, and so must be what is left of an opening.
        """
        token = token_of(found)
        worn = any(lacks_some(token, own) for own in self._own)
        if token in self._known or not (worn or (_PIPED(token) and not aside)):
            return -1
        groups = found.groupdict()
        return next(n for n, _ in enumerate(self.behind) if groups[f"b{n}"] or groups.get(f"c{n}"))


def token_of(found: re.Match[str]) -> str:
    """The token at a match of `opens`."""
    return str(found["token"] or found["tag"])


def _fixed(format: Format) -> Iterator[str]:
    """The texts of a format in which its tokens are."""
    yield from (*format.markup, *map(edge, format.ends), format.result.open, format.result.close)
    yield from (text for pair in (*format.thinking, *format.answer) for text in pair)
    for shape in format.shapes:
        yield from (part for part in shape.call if isinstance(part, str))
        yield from map(edge, (shape.section.open, shape.section.close) if shape.section is not None else ())


def _made_of(tokens: Iterable[str], first: str) -> str:
    """The characters of the tokens that begin like this, for a class."""
    return re.escape("".join(sorted({c for token in tokens if token[0] == first for c in token[1:-1]}))) or r"\0"


def _first(shape: Shape) -> FormatPart:
    """The first part of a call, white space left out."""
    return next(part for part in shape.call if not isinstance(part, str) or part.strip())


def _begins(part: FormatPart) -> str:
    """How a call begins that a format may read without anything before it: by its name's key, or as Python."""
    return part.name if isinstance(part, Envelope) else "(" if isinstance(part, PythonCall) else ""


def _opening(shape: Shape) -> tuple[str, str, tuple[FormatPart, ...]]:
    """The token that opens calls of this shape, the text after it, and the parts that follow; no token without one."""
    text, parts = "", shape.call
    if isinstance(parts[0], str) and (parts[0].strip() or shape.section is None):
        text, parts = parts[0].strip(), parts[1:]
    elif shape.section is not None:
        text = edge(shape.section.open).strip()
    found = _OWN(text)
    return (found[0], text[found.end() :].strip(), parts) if found else ("", "", parts)


def _follows(rest: str, parts: tuple[FormatPart, ...], known: str) -> str:
    """A regular expression for a call of a known tool after its opening token; empty if that is not looked for."""
    listed = rf"(?:\[{_SPACE}){{0,4}}" if rest in ("", "[") else rf"(?:{pattern(rest)})?{_SPACE}"
    match parts:
        case (Envelope(name=key, arguments=arguments), *_):
            named = rf'\{{{_SPACE}"{re.escape(key)}"{_SPACE}:{_SPACE}"(?:{known})"{_SPACE}'
            return rf'{listed}{named}(?:\}}|,{_SPACE}"(?:{"|".join(arguments)})"{_SPACE}:)'
        case (KeyEnvelope(), *_):
            return rf'{listed}\{{{_SPACE}"(?:{known})"{_SPACE}:{_SPACE}\{{'
        case (PythonCall(), *_):
            return rf"{listed}(?:{known}){_SPACE}\("
        case (CountedName(prefix), *_):
            return rf"{listed}(?:{re.escape(prefix)})?(?:{known}):\d"
        case (CallId(), str(text), *more):
            named = _follows("", tuple(more), known)
            return rf"[^\s<>{{}}\[\]\"]{{1,64}}{_SPACE}{pattern(text.strip())}{_SPACE}{named}" if named else ""
        case (Name(prefix), str(text), *more) if any(isinstance(part, Json) for part in more) and text.strip():
            return rf"{listed}(?:{re.escape(prefix)})?(?:{known}){_SPACE}{pattern(text.strip())}"
        case (Name(prefix), Skip(), str(text), *more) if any(isinstance(part, Json) for part in more):
            skipped = rf"{_PIECE}{{0,128}}(?:[ \t]{{1,64}}{_PIECE}{{1,128}})?[ \t]{{0,64}}"  # no more than `_WORDS`
            return rf"{listed}(?:{re.escape(prefix)})?(?:{known}){skipped}{pattern(text.strip())}"
        case (Name(prefix), Json() | Braced(), *_):
            return rf"{listed}(?:{re.escape(prefix)})?(?:{known}){_SPACE}\{{"
        case _:
            return ""


_TURNS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\](){}"]', re.DOTALL)
_IN_PYTHON: Final = re.compile(rf"'(?:[^'\\]|\\.)*+'|{_TURNS.pattern}|'", re.DOTALL)


def end_of(text: str, at: int, *, python: bool) -> int:
    """Where the first bracket from `at` on is closed; -1 if that is not in this text."""
    depth = 0
    for token in (_IN_PYTHON if python else _TURNS).finditer(text, at):
        c = token[0]
        if len(c) > 1:
            continue
        if c in "\"'":
            return -1
        depth += 1 if c in "[({" else -1
        if depth <= 0:
            return token.end()
    return -1
