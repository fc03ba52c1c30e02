"""Text that no model wrote, as a model reads it: results and tool declarations in which every marker is broken.

A marker is text that any format reads as a call, or any family's template as special (`control`). Pure; knows no
registry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from agentkit.errors import ErrorCode, FormatError
from agentkit.formats import control
from agentkit.formats.catalog import CATALOG
from agentkit.formats.damage.unread import object_of
from agentkit.formats.edges import weak
from agentkit.formats.engine import get
from agentkit.formats.escapes import any_tag, attribute
from agentkit.formats.format import Envelope, Format, Name, NameTag, Pairs, PythonCall, Shape, Tag, TagParameters
from agentkit.formats.ownmarkers import OwnMarkers, own_markers
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
    """A tool's result as the model of this format reads it.

    It is named, marked `success` or with its error code, and quarantined, including its name and its id: no text in it
    can be read as a call.
    """
    declared = get(format)
    patterns = _patterns(declared, tools)
    safe = _breaker(declared, tools)
    slots = {"name": attribute(safe(name)), "id": attribute(safe(call_id)), "status": error or "success"}
    before, after = declared.result.open.format_map(slots), declared.result.close
    return f"{before}{_apart(before, safe(text), after, patterns)}{after}"


def _apart(before: str, text: str, after: str, patterns: Sequence[re.Pattern[str]]) -> str:
    """A quarantined text that forms no marker together with the wrapper around it."""
    head, tail = before[-_REACH:], after[:_REACH]
    for pattern in patterns:
        edge = max(0, len(text) - _REACH)
        reached = [m for m in pattern.finditer(text[edge:] + tail) if m.start() < len(text) - edge]
        for found in reversed(reached):
            at = edge + found.start()
            if not pattern.match(text, at):
                own = found[0][: len(text) - at]
                broken = _similar(found) if found.lastgroup == _SINGLE else _break(own)
                text = text[:at] + broken + text[at + len(own) :]
        alone = {m.start() for m in pattern.finditer(head + _JOINER)}
        if any(m.start() < len(head) and m.start() not in alone for m in pattern.finditer(head + text[:_REACH])):
            text = _JOINER + text
    return text


def quarantine(text: str, format: str | Format, tools: Sequence[ToolSpec] = ()) -> str:
    """Break every marker of every format, and every control token of any family, in text that no model wrote.

    The text is then never read as a call, cannot close its wrapper and cannot end or begin a turn. Only the markers
    change (`<invoke` becomes `&lt;invoke`); all other characters stay. A bare tool name at the start of a line is a
    marker only in a format in which it starts a call. Doing it twice changes nothing more.
    """
    return _breaker(format, tools)(text)


_CATALOGUED = frozenset(map(id, CATALOG))
"""Comparing a format with each of the catalogue takes as long as breaking the markers of a short text."""


def _breaker(format: str | Format, tools: Sequence[ToolSpec]) -> Callable[[str], str]:
    fixed, *named = _patterns(get(format), tools)
    if not named:
        return lambda text: fixed.sub(_broken, text)
    return lambda text: named[0].sub(_broken, fixed.sub(_broken, text))


def _patterns(declared: Format, tools: Sequence[ToolSpec]) -> tuple[re.Pattern[str], ...]:
    """What finds the markers of all formats, and those of the tools if there are any."""
    made = (tag for t in tools for tag in (t.name, t.name.replace("_", "-")))  # the tags of tools without an element
    own = (t.element.tag for t in tools if t.element is not None)
    fixed = _markers(None if id(declared) in _CATALOGUED else declared)
    if not tools:
        return (fixed,)
    tags = tuple(dict.fromkeys((*own, *made)))
    return fixed, _markers_of_tools(tags, tuple(t.name for t in tools), _bare(declared))


def _broken(found: re.Match[str]) -> str:
    return _similar(found) if found.lastgroup == _SINGLE else _break(found[0])


def _similar(found: re.Match[str]) -> str:
    """What is written in place of a marker that is only one character."""
    wide = chr(ord(found[0]) + 0xFEE0) if found[0].isascii() else f"&#{ord(found[0])};"
    return "&lt;" if found[0] == "<" else wide


def _break(text: str) -> str:
    """The beginning of a marker, broken after its first character that is not white space."""
    marker = text.lstrip()
    space = text[: len(text) - len(marker)]
    if not marker:
        return text + _JOINER
    return space + ("&lt;" if marker[0] == "<" else marker[0] + _JOINER) + marker[1:]


_SINGLE = "single"
_REACH = 256  # characters of the wrapper and of the text that a marker across both can have
_JOINER = "\u2060"  # WORD JOINER: invisible; not part of any token, and not allowed between tokens of JSON or Python
_TOKEN = re.compile(r"<[^<>\s]*>?|\[[^\[\]<>\s]+\]?|`{3}\w+|\w+\[")
_COMMON = ("```json", "```python")
_BARE = r"\{(?=\s*\"(?:name|tool_name|tool_calls|type|function)\")|\[(?=\s*[^\W\d][\w.]*\s*\()"
"""Where JSON or Python in plain text may be read as a call."""


@lru_cache(maxsize=256)
def _markers_of_tools(tags_: tuple[str, ...], names: tuple[str, ...], bare: tuple[str, ...]) -> re.Pattern[str]:
    """The tools' own tags; and what shows a call of one of them by its name alone, in a format in which that counts."""
    either = "|".join(map(re.escape, names))
    return re.compile("|".join([any_tag(tags_), *(text.replace(_NAMES, either) for text in bare)]), re.IGNORECASE)


_NAMES = "NAMES"
_AT_LINE = rf"(?m:^[^\S\n]*(?:{_NAMES})(?=\s*[({{]))"
_IN_LIST = rf"(?m:(?:(?<=[,;\[])|^)[^\S\n]*(?:default_api\.)?(?:{_NAMES})(?=\s*\())"
_DAMAGED = r"\{(?=[^{\u2060]{1,64}?(?<![\w-])(?:NAMES)(?=[^\w-])[^{\u2060]{0,64}(?:\{|\b(?:KEYS)\b))"
_IN_OBJECT = rf"\"(?=KEY\"\s*:\s*\"(?:{_NAMES})\")"


@lru_cache(maxsize=256)
def _bare(format: Format) -> tuple[str, ...]:
    """Regular expressions for where a tool's name alone shows a call: at the start of a line, or in a list in prose.

    There a damaged call is an error as well, so that the others of the list have to be broken, too; and so is a damaged
    object in a format of bare JSON.
    """
    found = dict.fromkeys([_AT_LINE] if _has_bare_names(format) else [])
    for shape in format.shapes:
        body = next((part for part in shape.call if isinstance(part, Envelope)), None)
        if body is not None and object_of(shape, ()) is not None:
            found[_DAMAGED.replace("KEYS", "|".join(map(re.escape, body.arguments)))] = None
        if shape.section is not None and weak(shape.section.open):
            match shape.first:
                case PythonCall():
                    found[_IN_LIST] = None
                case Envelope(name=key):
                    found[_IN_OBJECT.replace("KEY", re.escape(key))] = None
    return tuple(found)


@lru_cache(maxsize=64)
def _markers(format: Format | None) -> re.Pattern[str]:
    """Every marker of every format, including one that is not in the catalogue, and every control token.

    Separate from the tools' markers, which change now and then: this takes milliseconds to compile.
    """
    names: set[str] = set()
    literals: set[str] = set(control.tokens())
    for declared in (*CATALOG, *((format,) if format is not None else ())):
        for part in _fixed(declared):
            match part:
                case Tag(name) | NameTag(name) | TagParameters(name):
                    names.add(name)
                case str(text):
                    for token in _TOKEN.findall(text):
                        found = re.fullmatch(r"</?([\w.:-]+)>?", token)
                        if found:
                            names.add(found[1])
                        elif len(token) > 2 and token not in _COMMON:
                            literals.add(token)
    # one look at a character decides about all markers that begin with it
    every = [f"(?=<)(?:{any_tag(sorted(names))}|{control.PIPED})", _chosen(literals)]
    own = own_markers(format) if format is not None else OwnMarkers((), ())
    marker = f"(?={'|'.join([*every, _BARE, *own.long])})."
    if own.single:
        marker = f"(?P<{_SINGLE}>(?={'|'.join(own.single)}).)|{marker}"
    # only its first character is taken: another marker may begin inside it, as with its last one
    return re.compile(marker, re.IGNORECASE)


def _chosen(literals: Iterable[str]) -> str:
    """A regular expression for literals and for numbered control tokens, chosen by their first two characters.

    Ignoring case, `re` would try each of them in turn: those two are compared with both their cases instead.
    """
    series = dict(zip(map("".join, control.SERIES), control.series(), strict=True))
    those = {**{literal: re.escape(literal) for literal in literals}, **series}
    tree: dict[str, dict[str, list[str]]] = {}
    for literal, pattern in sorted(those.items(), key=lambda one: len(one[0]), reverse=True):
        first, second = literal[0], literal[1]
        rest = pattern.removeprefix(re.escape(first)).removeprefix(re.escape(second))
        tree.setdefault(_cased(first), {}).setdefault(_cased(second), []).append(rest)
    ends = {first: _either(f"{second}{_either(rest)}" for second, rest in tree[first].items()) for first in tree}
    return _either(f"{first}{rest}" for first, rest in ends.items())


def _cased(character: str) -> str:
    """A regular expression for a character in both its cases, even where case is ignored."""
    cases = {character.lower(), character.upper()}
    return f"(?-i:[{''.join(map(re.escape, sorted(cases)))}])"


def _either(patterns: Iterable[str]) -> str:
    return f"(?:{'|'.join(patterns)})"


@lru_cache(maxsize=256)
def _has_bare_names(format: Format) -> bool:
    """Whether a bare tool name at the start of a line starts a call."""
    return any(map(_starts_with_name, format.shapes))


def _starts_with_name(shape: Shape) -> bool:
    return isinstance(shape.opening, Name | PythonCall)


def _fixed(format: Format) -> Iterator[Any]:
    """Every fixed part of a format: its literals and tags."""
    yield from (tag for pair in (*format.thinking, *format.answer) for tag in pair)
    yield from (format.result.open, format.result.close, *format.markup)
    for shape in format.shapes:
        if shape.section is not None:
            yield from (shape.section.open, shape.section.close)
        for part in shape.call:
            yield from (part.key, part.middle, part.close) if isinstance(part, Pairs) else (part,)


# ---------------------------------------------------------------- declarations

_CLOSING = re.compile(r"</[^\W\d_][\w.:-]*|<!\[CDATA\[|<!--")
_FENCE = re.compile(r"`{3,}")
_HEADING = re.compile(r"^([ \t]{0,3}#{1,6})(?=[ \t])", re.MULTILINE)
_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that are invisible or change how text is displayed: control characters, reordering, lone surrogates."""
_PLAIN = re.compile(r"[\w ,.;:!?'()=+*/%$@&|^~\"\n\t-]*\Z", re.ASCII).match
"""Text that cannot contain a marker, except a bare tool name before a parenthesis: most text of declarations."""


_WORDS = (
    "type", "properties", "required", "description", "title", "items", "string", "integer", "number", "boolean",
    "array", "object", "additionalProperties", "default", "enum", "anyOf", "$ref", "$defs", "format",
)  # fmt: skip
"""Words of JSON Schema that most declarations contain."""


class Declared:
    """Tool declarations as a prompt shows them, when their author is unknown.

    Explanatory text (descriptions, titles, defaults, examples) is shown with its markers broken, so that it can still
    be read. Words that a model must write back exactly (parameters' names, `enum` and `const`) are not changed: a
    broken spelling would be a second one for the same value, which every format would have to distinguish, and a
    control token cannot be written back in any case, since it ends the reply. If such a word contains a marker, the
    declaration is refused.
    """

    def __init__(self, format: str | Format, tools: Sequence[ToolSpec] = ()) -> None:
        self._break = _breaker(format, tools)
        self._known = {word: word for word in _WORDS}
        declared = get(format)
        self._bare = _has_bare_names(declared)
        self._own = id(declared) not in _CATALOGUED  # whose markers may be characters of plain text

    def text(self, text: str) -> str:
        """Explanatory text, without anything that a format, a template or the prompt itself reads as markup."""
        if (known := self._known.get(text)) is not None:
            return known
        plain = not self._own and _PLAIN(text) and not (self._bare and "(" in text)
        shown = text if plain else self._broken(text)
        self._known[text] = shown
        return shown

    def _broken(self, text: str) -> str:
        shown = self._break(_UNSEEN.sub("\ufffd", text))
        for closing in set(_CLOSING.findall(shown)):
            name = closing.removeprefix("</")
            shown = re.sub(rf"<(?=/?{re.escape(name.lstrip('<'))})", "&lt;", shown)
        shown = _FENCE.sub(lambda m: m[0][0] + _JOINER + m[0][1:], shown)
        return _HEADING.sub(rf"\1{_JOINER}", shown)

    def tool(self, tool: ToolSpec) -> ToolSpec:
        """A tool with its description and its parameters as they are shown.

        Raises:
            FormatError: its name, or something that a model must write back exactly, contains a marker.
        """
        self.word(tool.name, "a tool's name")
        return replace(
            tool, description=self.text(tool.description), parameters=self.schema(tool.parameters, tool.name)
        )

    def schema(self, schema: Mapping[str, Any], where: str) -> dict[str, Any]:
        """A JSON Schema as it is shown.

        Raises:
            FormatError: something that must be written back exactly contains a marker.
        """
        for word, place in words(schema):
            self.word(word, f"{where}: {place}")
        return self._shown(schema)  # type: ignore[no-any-return]  # an object stays one

    def word(self, word: str, where: str) -> None:
        """Refuse a word that a model must write back but that could only be shown in another spelling."""
        if (changed := self.text(word)) != word:
            raise FormatError(
                f"{where}: {word!r} contains what a prompt or a model's template reads as markup "
                f"(it would have to be shown as {changed!r}, and could not be written back); use another word"
            )

    def _shown(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {self.text(k): self._shown(v) for k, v in value.items()}
            case list() | tuple():
                return [self._shown(v) for v in value]
            case _:
                return value
