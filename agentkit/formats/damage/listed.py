"""What is in a section and is not a call: where the next call after it starts, if the text plainly writes one.

A section is a run of calls that are not recognizable alone: JSON objects or Python calls in a list. A call damaged
before a tool's name is known would otherwise be text, together with the calls after it. Knows the declarations; reads
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, Literal

from agentkit.formats.format import Envelope, FormatPart, KeyEnvelope, NameTag, PythonCall, Section
from agentkit.formats.reader import Delimiter, Search, pattern
from agentkit.formats.tags import closing_tag, opening_tag

REACH: Final = 8192
"""Characters searched for the next call; anything longer is left unchanged."""
_REACH_IN_PROSE: Final = 2048

_SPACE: Final = r"\s{0,64}"
_ARGUMENT: Final = r"[^\W\d]\w{0,127}="
_FOR_A_PARENTHESIS: Final = re.compile(rf"\)|{_ARGUMENT}|(?P<open>[^\W\d]\w{{0,127}}\Z)").match
"""What follows a bracket in the place of a call's own."""
BLOCKS: Final = (
    "if", "elif", "else", "for", "while", "def", "class", "with", "try", "except", "finally", "async", "match", "case",
)  # fmt: skip
"""What a block of Python begins with."""
_BLOCK: Final = re.compile(rf"^[ \t]*(?:{'|'.join(BLOCKS)})\b", re.MULTILINE)
_TAG: Final = r"<[^<>\[\]\n]{0,64}"
_LIKE_A_CALL: Final = re.compile(
    rf"(?:{_TAG}>[^<>()\[\]\n=,\"']{{0,64}}+){{0,4}}+(?:{_TAG}(?P<tag>\Z)|"
    rf"[^\w\],.;:!?-]{{0,64}}[\w.-]{{0,{REACH}}}(?:\s{{1,64}}[\w.-]{{1,128}})?\s{{0,64}}"
    rf"(?:{_TAG}(?P<mark>\Z)|(?:{_TAG}>)?"
    r"(?:[(){=\"'\[*+/%]|\][\w.-]{0,128}(?:(?<=[\w.-])[(=]|(?P<word>\Z))|(?P<open>\Z))))"
    r"|[\w.-]{0,128}[^\w\s\[\]()'\"][\w.-]{0,128}(?:\(|(?P<joined>\Z))"  # one character of its name is wrong
    r"|,\s{0,64}[^\W\d]\w{0,128}(?:=[\w\"'\[{-]|(?P<argument>=?\Z))"  # an argument before the name
)
"""What a list of calls begins with, even if the first one is damaged; a named group if more text must decide."""
_ITEM: Final = re.compile(rf"\]?[^\w\],.;:!?-]{{0,64}}[\w.-]{{0,{REACH}}}\s{{0,64}},\s{{0,64}}")
_ITEM_BEGUN: Final = re.compile(rf"\]?[^\w\],.;:!?-]{{0,64}}[\w.-]{{0,{REACH}}}\s{{0,64}}\Z")
_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*\n")
_BRACKET: Final = re.compile(r"\]")
_OPENING: Final = 256  # characters before a call in which what opens it may be
_BEHIND: Final = 512  # characters searched after what looks like the end of a damaged section
_BEHIND_PROSE: Final = 96  # the same after a bracket that may belong to prose
_IN_LIST: Final = re.compile(r"\(\)|[\])},;\"']|\Z")
_IN_CALL: Final = re.compile(r"[\w.-]{1,128}(?:[(=]|(?P<open>\Z))")
"""What follows a bracket that was written inside a call, in place of another character."""
_ONLY_PUNCTUATION: Final = re.compile(r"(?:[\s\[\](){},;]|(?<![^\s;])#[^\n]*(?=\n))*\Z")


@dataclass(frozen=True, slots=True)
class Next:
    """What was found, and up to where: a `call` starts there; calls are `lost` up to there; or there is `none`.

    `told` means that the section is known to end there.
    """

    kind: Literal["call", "lost", "none"]
    end: int = 0
    told: bool = False


@dataclass(frozen=True, slots=True)
class Inside:
    """How many brackets are open at a place in a call, and how far in it that place is."""

    depth: int = 0
    lists: int = 0
    at: int = 0


OUTSIDE: Final = Inside()


@dataclass(frozen=True, slots=True)
class CallForms:
    """How the calls of a section are written.

    Args:
        start: matches the start of a call of an offered tool.
        next: finds it.
        begins: matches what may become one.
        mention: what can only be the name of one.
        token: brackets and strings, whole; in Python also words and comments.
        unbalanced: matches calls of which the first has no opening bracket; a named group if more text must decide.
    """

    start: Search
    next: re.Pattern[str]
    begins: Search
    mention: re.Pattern[str]
    token: re.Pattern[str]
    unbalanced: Search


class Listed:
    """Looks for the next call of a section.

    `told` means that its calls are found without it: JSON objects in prose.

    Args:
        section: what is around the calls.
        firsts: what its calls can begin with; the first entry is what these calls begin with. Up to a tag, no more of
            them come: such a call is recognizable alone.
        names: the offered tools' names.
        strong: whether what opens the section is uncommon in prose.
        openings: creates what matches the openings of calls in any of the formats at the end of a text; see `at_end`.
    """

    __slots__ = (
        "close",
        "damaged",
        "fence",
        "forms",
        "goes_on",
        "no_prose",
        "open",
        "openings",
        "python",
        "strong",
        "told",
    )

    def __init__(
        self,
        section: Section,
        firsts: Sequence[FormatPart],
        names: Iterable[str],
        openings: Callable[[], re.Pattern[str]],
        *,
        strong: bool,
    ) -> None:
        first = firsts[0]
        self.openings = openings
        self.python = isinstance(first, PythonCall)
        self.strong = strong
        self.fence = strong and isinstance(section.open, str) and section.open.startswith("```")
        known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or "(?!)"
        self.damaged = re.compile(rf"{_SPACE}(?:{known})(?:[^\w\s\],.;:!?-]|[\],.;:!?-]{_ARGUMENT})").match
        self.no_prose = re.compile(rf"{_SPACE}(?:(?:{known})\b|\w{{256}})").match
        start, mention = _how(first, known)
        bodies = (other for other in firsts[1:] if isinstance(other, Envelope | KeyEnvelope | PythonCall))
        mentions = [mention, *(_how(other, known)[1] for other in bodies)]
        if self.python and not strong:
            mentions = [rf"[,;\[\n]{_SPACE}(?:{known}){_SPACE}\("]
        begun = r"[\w.-]{0,128}\s{0,64}"
        if not self.python:
            begun = r'\{\s{0,64}(?:"[^"{}]{0,128}"?[\s:]{0,64}(?:"[^"{}]{0,128})?)?'
        strings = r'"(?:[^"\\]|\\.)*"'
        if self.python:
            strings = rf'"""(?:[^\\]|\\.)*?"""|\'\'\'(?:[^\\]|\\.)*?\'\'\'|{strings}|\'(?:[^\'\\]|\\.)*\''
        words = r"|\w+|#[^\n]*" if self.python else ""
        more = rf"(?:{known}){_SPACE}\(|(?P<name>[\w.-]{{0,128}}{_SPACE}\Z)"
        unbalanced = re.compile(
            rf"{_SPACE}(?:{known})[^()\[\]{{}}\n]{{0,256}}+\]?(?:\){_SPACE}(?:,{_SPACE}(?:{more})|(?P<over>\Z))|(?P<item>\Z))"
        ).match
        self.forms = CallForms(
            re.compile(start).match,
            re.compile(start),
            re.compile(rf"(?:{begun})\Z").match,
            re.compile("|".join(mentions)),
            re.compile(rf"{strings}|[\[\](){{}}\"']{words}", re.DOTALL),
            unbalanced,
        )
        close = section.close
        edge = pattern(close.strip()) if isinstance(close, str) else closing_tag(close.name)
        alone = isinstance(close, str) and len(close.strip()) < 2
        self.told = alone and not strong and not self.python
        tagged = [opening_tag(other.name) for other in firsts if isinstance(other, NameTag)]
        self.close = None if alone else re.compile("|".join([edge, *tagged]), re.IGNORECASE)
        opening = pattern(section.open.strip()) if isinstance(section.open, str) else opening_tag(section.open.name)
        self.open = re.compile(opening if strong else rf"{opening}{_SPACE}(?:{start})", re.IGNORECASE)
        self.goes_on = re.compile(rf"[,;{'' if alone else chr(10)}]{_SPACE}(?:{start})")

    def reach(self, text: str, at: int, *, opened: bool) -> int:
        """How many characters are searched from this place; more if no prose begins like this."""
        return REACH if opened or self.strong or self.no_prose(text, at) else _REACH_IN_PROSE

    def next(self, text: str, *, whole: bool, opened: bool, inside: Inside = OUTSIDE) -> Next | None:
        """What comes next in a section.

        Args:
            text: what follows in it, at most `reach` characters of it.
            whole: whether that is all that can be searched.
            opened: whether the section is known to be one, because it had a call.
            inside: the brackets of a damaged call that are open where `text` starts.

        Returns:
            None while more text must decide.
        """
        if opened or self.strong or not self.python:
            return self._with_opening(text, self._found(text, whole=whole, opened=opened, inside=inside))
        if not (like := self._like_calls(text, whole=whole)):
            return None if like is None else Next("none")
        found = self._found(text, whole=whole, opened=False, inside=inside)
        return Next("none") if found is not None and self._opens_again(text, found) else self._with_opening(text, found)

    def _opens_again(self, text: str, found: Next) -> bool:
        """Whether a list of calls starts in what was found, with its own bracket: then the one before it is prose.

        Damage at one place leaves no such text: if the first call of a list is damaged, no second one starts a list.
        """
        opening = self.open.search(text, 0, found.end + _REACH_IN_PROSE)
        if found.kind == "none" or opening is None or opening.start() >= found.end:
            return False
        first = self.forms.mention.search(text)
        if first is None or first.start() < opening.start():
            return False
        before = self.inside(text[: opening.start()])  # in a damaged call, or in a string, it is part of a value
        return before.depth == 0 and (before.at == opening.start() or not self._closes(text, before.at))

    def _closes(self, text: str, at: int) -> bool:
        """Whether the string that may start there ends in this text."""
        string = self.forms.token.match(text, at)
        return string is not None and len(string[0]) > 1

    def _found(self, text: str, *, whole: bool, opened: bool, inside: Inside) -> Next | None:
        """What comes next in what may be a section."""
        limit = self.close.search(text) if self.close is not None else None
        within = text[: limit.start()] if limit is not None else text
        found, end = self._walk(within, whole=whole or limit is not None, opened=opened, inside=inside)
        if found or (end < 0 and not whole and limit is None):
            return Next("call", end) if found else None
        told = limit is not None or end >= 0
        end = end if end >= 0 else len(within)
        if told and (beyond := self._beyond(text, end, whole=whole, opened=opened or self.strong)) != 0:
            return Next("lost", end + beyond, told=True) if beyond else None
        return self._without(within, end, told=told, limited=limit is not None)

    def _with_opening(self, text: str, found: Next | None) -> Next | None:
        """The same with what opens the call that was found: another section, or the token of another format.

        Unless it is there in place of all that is damaged.
        """
        if found is None or found.kind != "call":
            return found
        opening = self.openings().search(text, max(found.end - _OPENING, 0), found.end)
        if opening is None or not text[: opening.start()].strip():
            return found
        return Next("call", opening.start())

    def _like_calls(self, text: str, *, whole: bool) -> bool | None:
        """Whether a list in prose may be one of calls, by its first item; None while more text must decide."""
        if self.damaged(text):
            return True
        call = self.forms.unbalanced(text)  # its opening bracket is another character
        if call is not None and (call.lastgroup is None or not whole):
            return True if call.lastgroup is None else None
        item = _ITEM.match(text)
        if item is not None and (starts := self.starts(text[item.end() :], whole=whole)) is not False:
            return starts
        like = _LIKE_A_CALL.match(text)
        told = like.lastgroup is None if like is not None else not _ITEM_BEGUN.match(text)
        return like is not None if told else None if not whole else False

    def _without(self, text: str, end: int, *, told: bool, limited: bool) -> Next:
        """What it means that no call starts up to where the section ends, or as far as it is searched."""
        mentions = list(self.forms.mention.finditer(text, 0, end))
        if not mentions and self.fence and limited and text.strip():
            return Next("lost", end, told)  # its label promises calls, and its content is not a call
        if not mentions:
            return Next("none", end, told)
        if not told:
            line = text.find("\n", mentions[-1].end())
            end = line if line >= 0 else end
        return Next("lost", end, told)

    def _beyond(self, text: str, end: int, *, whole: bool, opened: bool) -> int | None:
        """How far after what looks like the section's end its calls continue, with another call and an end.

        None while more text must decide.
        """
        behind = _BEHIND if opened else _BEHIND_PROSE
        if not opened and (call := _IN_CALL.match(text, end + 1)):
            if call["open"] is not None and not whole:
                return None
            behind = _REACH_IN_PROSE
        elif not opened and (whole or len(text) > end + 1) and _IN_LIST.match(text, end + 1) is None:
            return 0
        rest = text[end + 1 : end + behind]
        whole = whole or len(rest) == behind - 1
        more, opening = self.goes_on.search(rest), self.open.search(rest)
        if opening is not None and (more is None or opening.start() < more.start()):
            return 0
        if not whole:
            return None
        ends = list((self.close or _BRACKET).finditer(rest, more.end())) if more is not None else []
        return 1 + ends[-1].start() if ends else 0

    def inside(self, text: str) -> Inside:
        """What is open at the end of a text that begins with a call; a string that is open there is examined again."""
        depth = lists = 0
        for token in self.forms.token.finditer(text):
            if self._opens_string(token[0]):
                return Inside(depth, lists, token.start())
            depth, lists = _counted(token[0], depth, lists)
        return Inside(depth, lists, len(text))

    def _opens_string(self, c: str) -> bool:
        """Whether this is a quote not followed by another."""
        return c == '"' or (c == "'" and self.python)

    def _walk(self, text: str, *, whole: bool, opened: bool, inside: Inside) -> tuple[bool, int]:
        """Whether a call starts, and where; otherwise where the section ends, -1 if that is unknown."""
        depth, lists, past = inside.depth, inside.lists, 0
        prose = not (opened or self.strong)
        for token in self.forms.token.finditer(text):
            c, at = token[0], token.start()
            if prose and (blank := _blank(text, past, token, depth)) >= 0:
                return False, blank
            if not whole and token.end() == len(text):
                return False, -1  # more of it may come
            if at and not depth and self._is_call(c, text, at):
                return True, at
            if self._opens_string(c):
                past = at
                break  # nothing after it is known to be outside a string
            if c == "]" and self.close is None and not depth and not lists:
                instead = _FOR_A_PARENTHESIS(text, token.end()) if self.python else None
                if instead is None or instead["open"] is not None:
                    return False, -1 if instead is not None and not whole else at
            depth, lists, past = *_counted(c, depth, lists), token.end()
        else:
            depth = 0
        waits = depth and not whole and _in_value(text, past)
        return False, _blank(text, past) if prose and not waits else -1

    def _is_call(self, c: str, text: str, at: int) -> bool:
        return (c == "{" or self.python) and self.forms.start(text, at) is not None and self._is_item(text, at)

    def _is_item(self, text: str, at: int) -> bool:
        """Whether what starts there is one of the section's calls, and not part of a larger Python expression."""
        if not self.python:
            return True
        before = text[:at].rstrip(" \t")
        line = text.rfind("\n", 0, at) + 1
        if _BLOCK.search(before) and (text[line] in " \t" or _BLOCK.match(text, line)):
            return False
        return before[-1:] in ("[", ",", ";", "\n")

    def starts(self, text: str, *, whole: bool) -> bool | None:
        """Whether a call starts exactly here; None while more text must decide."""
        if self.forms.start(text):
            return True
        return None if not whole and self.forms.begins(text) else False


@lru_cache(64)
def at_end(openings: str) -> re.Pattern[str]:
    """Matches what opens calls, given as a regular expression, with a list's or a tag's bracket, at a text's end."""
    return re.compile(rf"(?:(?:{openings})[>\[\s]{{0,64}})+\Z", re.IGNORECASE)


def _how(first: FormatPart, known: str) -> tuple[str, str]:
    """How calls of the known tools start that begin with this part, and what can only be the name of one."""
    match first:
        case PythonCall():
            start = rf"(?<![\w.-])(?:default_api\.)?(?:{known}){_SPACE}\("
            return start, start
        case KeyEnvelope():
            named = rf'"(?:{known})"{_SPACE}:'
        case Envelope(name=key):
            named = rf'"{re.escape(key)}"{_SPACE}:{_SPACE}"(?:{known})"'
        case _:
            raise TypeError(f"calls that begin with {first!r} are recognized without their section")
    return rf"\{{{_SPACE}{named}", named


_ANY_NAME: Final = r"[^\W\d][\w.-]{0,255}"


@cache
def formed(first: FormatPart) -> Delimiter:
    """What has the form of a call that begins with this part, regardless of its name."""
    match first:
        case PythonCall():
            return Delimiter(rf"{_ANY_NAME}{_SPACE}\(", rf"(?:{_ANY_NAME}{_SPACE})?")
        case Envelope(name=key):
            whole = rf'\{{{_SPACE}"{re.escape(key)}"{_SPACE}:{_SPACE}"{_ANY_NAME}"'
            return Delimiter(whole, rf'\{{{_SPACE}(?:"[^"{{}}]{{0,128}}(?:"[\s:]{{0,64}}(?:"[\w.-]*)?)?)?')
        case KeyEnvelope():
            whole = rf'\{{{_SPACE}"{_ANY_NAME}"{_SPACE}:{_SPACE}\{{'
            return Delimiter(whole, rf'\{{{_SPACE}(?:"[\w.-]*(?:"[\s:]{{0,64}})?)?')
        case _:
            return Delimiter("(?!)", "(?!)")


def _blank(text: str, start: int, token: re.Match[str] | None = None, depth: int = 0) -> int:
    """Where, from `start` to the end of a token or of the text, a blank line ends what is in prose; -1 for nowhere.

    A blank line in a string, `depth` brackets deep, is part of a value.
    """
    found = _BLANK_LINE.search(text, start, token.end() if token is not None else len(text))
    if found is None:
        return -1
    valued = token is not None and found.start() > token.start() and depth > 0 and _in_value(text, token.start())
    return -1 if valued else found.start()


def _in_value(text: str, at: int) -> bool:
    """Whether a value may start here: an apostrophe in a word does not start one."""
    return text[:at].rstrip()[-1:] in (":", "=", ",", "(", "[", "{")


def _counted(c: str, depth: int, lists: int) -> tuple[int, int]:
    """How many brackets, and square brackets outside of others, are open after this token."""
    lists += ((c == "[") - (c == "]")) if not depth else 0
    depth += (c in ("{", "(")) - (c in ("}", ")"))
    return max(depth, 0), max(lists, 0)


def later(size: int) -> int:
    """How long a text must become to be searched again: the cost of a long one in small pieces stays linear."""
    return size + 16 + size // 4


def only_punctuation(text: str) -> bool:
    """Whether this has only brackets, commas, white space and Python's comments: no call is lost with it."""
    return _ONLY_PUNCTUATION.match(text) is not None
