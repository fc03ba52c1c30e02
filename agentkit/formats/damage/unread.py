"""What follows an opening that only calls have, and cannot be read as a call: whether it plainly names a tool.

If it does, a call was written and is lost, and the model must be shown that. If it does not, the opening is text: prose
may mention one ("the token <tool_call> begins a call"), and a tool's name in a sentence does not make it a call. Knows
the declarations; reads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from agentkit.formats.edges import fenced
from agentkit.formats.format import CountedName, Envelope, Name, NameTag, Pairs, Shape, Tag
from agentkit.formats.reader import beginnings, pattern
from agentkit.formats.reader import behind as follows
from agentkit.formats.tags import TAG_PART, opening_tag, spelt, tag_of
from agentkit.toolspec import Element, ToolSpec

_REACH: Final = 1024  # pieces other than a sentence that are searched for the name
_LONG: Final = 8192  # characters of one word or number
_SPACE: Final = r"\s{0,64}"
IN_OBJECT: Final = "|".join([follows('{ "'), "[\"'\u201c\u201d\u2018\u2019`n]"])
"""What may follow the bracket of a call's object, also a damaged one."""
_CLOSES_KEY: Final = re.compile(r"</[^<>]{1,128}>").match
_JOINED: Final = r"[^\s<]{1,512}"  # two names, and what is left of a token between them
_LABEL: Final = r"[\w+-]{0,24}[ \t]{0,8}"  # of a code fence


@dataclass(frozen=True, slots=True)
class Named:
    """A tool is named: how long the opening is, and whether the text ended before more could be known."""

    opening: int
    name: str
    ended: bool = False


class Unread:
    """Looks for a tool's name after one opening; created by `behind` or by `in_tag`."""

    __slots__ = ("_cut", "_part", "_tool", "_whole")

    def __init__(self, whole: str, cut: str, part: str, tool: str = "") -> None:
        self._whole = re.compile(whole).match
        self._cut = re.compile(rf"(?:{cut})\Z").match
        self._part = re.compile(rf"(?:{part})\Z").match
        self._tool = tool

    def named(self, text: str, at: int, *, ended: bool, alone: bool) -> Named | Literal[False] | None:
        """The tool that is named after the opening here; False if there is none, None while more text must decide.

        With `alone`, nothing is before the opening in its line: then the call may be in a code fence.
        """
        if cut := self._cut(text, at):
            named = Named(len(cut["open"]), self._tool or cut["joined"] or cut["apart"], ended=True)
            return None if not ended else named if alone or not self._in_code(cut) else False
        if found := self._whole(text, at):
            if self._in_code(found) and not alone:
                return False
            return Named(len(found["open"]), self._tool or found["joined"] or found["apart"] or "")
        return None if not ended and self._part(text, at) else False

    def _in_code(self, found: re.Match[str]) -> bool:
        return not self._tool and found["code"] is not None


def behind(
    opening: str, begun: str, names: Iterable[str], openings: str, ends: str, *, joined: str = "", keyed: str = ""
) -> Unread:
    """What finds a tool's name after an opening.

    Between the two there may be brackets, quotes, tags, keys, and words to which such a character is joined, but no
    words of a sentence, no code and no other opening, unless all that follows is one piece of code. After the name, no
    sentence continues, unless the name is joined to the opening.

    Args:
        opening: a regular expression for what nothing but calls begins with.
        begun: a regular expression for its beginnings.
        names: the offered tools' names.
        openings: a regular expression for all openings of calls.
        ends: one for what ends this call.
        joined: one for what must be before a name that is joined to the opening, where that may be empty.
        keyed: a literal that only follows a parameter's name: where the tool's is joined to that, it shows the call.
    """
    stop = rf"(?i:{openings}|{ends})"
    known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or "(?!)"
    if opening.endswith("\\["):  # it may be the first character of another opening
        opening = rf"{opening[:-2]}(?!{stop})\["
    space = r"(?!\n[ \t\r]{0,64}\n)\s"
    follows = r"[^\s\w.,;!?]|\s{1,64}(?:[\w.-]{1,64}=[\"']|[{\[<])|[ \t]{1,8}="
    word = rf"(?!(?:{known})(?![\w-]))\w{{1,{_LONG}}}+(?={follows})"
    between = rf"(?>{space}|(?!{stop})(?:</?(?!(?:{known})\s)[\w:.-]{{1,64}}(?=\s)|[^\w\s`])|{word}){{0,{_REACH}}}+"
    quotes = r"[\"']{0,8}"
    after = rf"[\"']{{1,8}}{_SPACE}[^\w\s.!?]|{_SPACE}[^\w\s.,;!?:)\"'`-]|,{_SPACE}[\"'{{\[<]"
    apart = rf"(?:[\"']{{1,8}}{_SPACE}|\s{{1,64}})"
    after += rf"|{_SPACE}`{{3}}\w{{0,16}}{_SPACE}[{{\[]|{apart}[\w.-]{{1,64}}\s{{0,8}}[=:(]"
    after += rf"|\){_SPACE}(?:{ends})|:{_SPACE}(?:[{{\[]|[\w.-]{{1,64}}=)"  # as in `ls: {`, and `ls: path=`
    key = r"[ \t]{0,64}\r?\n(?:[\w-]{1,64}[ \t][\w-]{1,64}:\s{0,64}[{\[\"]|[ \t]{1,64}[\w.-]{1,64}:)"
    after += rf"|:?{key}"  # the next line is of two words, or indented
    # in code another opening is only another style: the rest of a tag and the bracket of a list may be before it
    first = rf"(?:[^<>`\n]{{0,64}}>)?+(?:{space}|\[){{0,64}}+"
    code = rf"{first}(?:`{{3,16}}{_LABEL}(?:\r?\n|(?=[{{\[<]))|`{{1,2}}(?=[{{\[<]|(?<=\n`)\w|(?<=\n``)\w))"
    shown = rf"{code}(?>\s|(?!(?i:{ends}))(?:</?(?!(?:{known})\s)[\w:.-]{{1,64}}(?=\s)|[^\w\s`])|{word}){{0,{_REACH}}}+"
    opened = rf"(?P<open>{opening})"
    after_opening = rf"(?<={joined})" if joined else ""
    # a key that is joined shows the call before any name that comes later, in any cutting
    whole = rf"{opened}(?:{after_opening}(?P<joined>{known})(?=[^\w-])|{_JOINED}{pattern(keyed) or '(?!)'}"
    whole += rf"|(?:{between}|(?P<code>{shown}))(?P<apart>{known})(?:\s{{1,8}}(?P=apart))?(?={after}))"
    before = r"(?<=[\"'=:{\[(>])"
    cut = rf"{opened}(?:{after_opening}(?P<joined>{known})(?::\d{{0,9}})?"
    cut += rf"|(?:{between}|(?P<code>{shown})){before}(?P<apart>{known}){quotes})\s*"
    fence = rf"{_SPACE}`{{1,3}}\w{{0,16}}{_SPACE}"
    begun_key = r"[ \t]{0,64}(?:\r?\n[ \t]{0,64}[\w.-]{0,64}(?:[ \t][\w-]{0,64}(?::\s{0,64})?)?)?"
    over = rf":?{begun_key}|:?\s{{0,64}}[\w.-]{{0,64}}|{quotes},?{_SPACE}[\w.-]{{0,64}}\s{{0,8}}=?"
    over = rf"(?:{over}|{fence}|\)\s{{0,64}}(?:[^\w\s]\s{{0,1024}})?\S{{0,64}})"
    tail = rf"(?:(?P<twice>{known})\s{{1,8}}(?P=twice)|\w{{0,{_LONG}}}){over}"
    begun_code = rf"{first}`{{1,16}}{_LABEL}\r?"
    begun_code += rf"|{_JOINED}{beginnings(keyed)}" if keyed else ""
    return Unread(whole, cut, rf"{begun}|(?:{opening})(?:{begun_code}|(?:{between}|{shown}){tail})")


def keyed(shape: Shape) -> str:
    """What follows a parameter's name, if only what opens it separates that from the tool's name; else empty."""
    named = (second for first, second in pairwise(shape.call) if isinstance(first, Name) and isinstance(second, Pairs))
    return next((found[0] for part in named if (found := _CLOSES_KEY(part.middle))), "")


def inside(shape: Shape, names: Iterable[str], openings: str, ends: str) -> Unread:
    """What finds a tool's name where the next call of an open section belongs; arguments as of `behind`."""
    named = next((part for part in shape.call if isinstance(part, Name | CountedName)), None)
    prefix = named.prefix if named is not None else ""
    own = re.escape(prefix)
    begun = beginnings(prefix) if prefix else "(?!)"
    return behind(f"(?:{own})?" if own else "", begun, names, openings, ends, joined=own or "(?!)")


def object_of(shape: Shape, names: Iterable[str]) -> Unread | None:
    """What shows that a damaged object calls a tool; None if none is written so, bare or in a fence."""
    part = next((p for p in shape.call if isinstance(p, Envelope)), None)
    if part is None:
        return None
    if shape.first is part and shape.section is None:
        return _in_object(r"\{", r"\{", part, names, shown=False)
    first = shape.section.open if shape.section is not None else shape.first
    return _in_object(_FENCE, _FENCE_BEGUN, part, names, shown=True) if fenced(first) else None


_FENCE: Final = r"(?:`{3,16}(?i:json[\w+-]{0,8})?\s{1,16}){1,4}\[?\s{0,64}\{"
"""A fence around JSON; one with another label shows an example, as in any format."""
_FENCE_BEGUN: Final = r"(?:`{0,16}[\w+-]{0,24}\s{0,16}){1,4}\[?\s{0,64}\{?"


def _in_object(opening: str, begun: str, part: Envelope, names: Iterable[str], *, shown: bool) -> Unread:
    """What shows that a damaged object, which is common in prose, calls a tool: its name, and the keys of a call.

    One of the two keys is as it should be, and there are arguments. A JSON Schema describes a tool and calls none.
    Where data is `shown`, as in a code fence, the key of the name must be as it should be.
    """
    known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or "(?!)"
    keys = rf"(?:{'|'.join(map(re.escape, part.arguments))})"
    blank = r"\n\s{0,8}\n"  # which no object has, and prose has
    inner, signs = r"[^{\u206f]", r"[^\w{}\u206f]"  # no quarantined text
    apart = rf"(?:(?!{blank})[^\w{{}}.!?\u206f]){{1,16}}"
    schema = rf"{_SPACE}[\"']?(?:type|properties|\$schema)[\"']?{_SPACE}:"
    brace = rf"\{{(?={_SPACE}(?:[^}}:]{{13}}|[^}}:]{{0,12}}[}}:]))(?!{schema})"
    named = rf"{inner}{{0,32}}?(?<![\w-]){re.escape(part.name)}(?=[^\w-]){signs}{{1,16}}"
    other_key = rf"(?:(?!descr|\btype|{blank}){inner}){{0,32}}{brace}"
    given = rf"{apart}(?:{keys}(?=[^\w-]){signs}{{0,8}}(?:{brace}|\w)|{other_key})"
    own = rf"{named}(?<![\w-])(?P<apart>{known})(?=[^\w-]){given}"
    other = rf"{inner}{{1,32}}?(?<![\w-])(?P<joined>{known})(?=[^\w-]){apart}{keys}{signs}{{0,8}}{brace}"
    other = r"(?P<joined>(?!))" if shown else other
    whole = rf"(?P<open>{opening})(?P<code>(?!))?(?:{own}|{other})"
    return Unread(whole, "(?!)", rf"{begun}|(?:{opening})[^{{]{{0,320}}(?:\{{{_SPACE}[^}}:]{{0,13}})?")


def of_element(tool: ToolSpec, element: Element) -> Unread:
    """What shows that a tool's own element calls it; see `in_tag`."""
    children = [node.path[0] for node in element.of("element")]
    return in_tag(element.tag, tool.name, dict.fromkeys([*tool.parameters.get("properties", ()), *children]))


def in_tag(tag: str, tool: str, parameters: Iterable[str]) -> Unread:
    """What shows that a tool's own tag calls it: it is whole, or something in it is written like an attribute.

    So does the tag of a parameter on the next line; and at the text's end, a parameter's name in it.
    """
    parameters = tuple(parameters)
    begins = rf"(?P<open>(?i:{opening_tag(tag)}))"
    # a token, or a character in place of another one, or another tag in front of an attribute
    stray = r"<[|｜][^<>]{0,64}>|<(?=[\w.-]{1,64}=[\"'])|</?[\w.:-]{1,64}>(?=\s{0,8}[\w.-]{1,64}=[\"'])"
    plain = rf"(?!\n[ \t\r]{{0,64}}\n)[^<>`\"=]|=(?!\s{{0,8}}[\"'])|{stray}"
    opened = rf"{begins}(?:{plain}){{0,512}}+"
    children = "|".join(spelt(name) for name in parameters if _PLAIN_NAME(name)) or "(?!)"
    child = rf"[ \t]{{0,64}}\r?\n[ \t]{{0,64}}<(?i:{children})>"  # only the end of the tool's own tag is missing
    whole = rf"{begins}(?:{child}|(?:{plain}){{0,512}}+(?:=\s{{0,8}}[\"']|>|(?:(?<=[\w,:])|(?<=\w[^\w\s<>`.;!?]))\"))"
    whole_names = [rf"{re.escape(name)}[\w.-]{{0,256}}" for name in parameters]
    names = "|".join([*whole_names, *(rf"(?=\w\w){beginnings(name)}" for name in parameters)]) or "(?!)"
    cut = rf"{begins}(?:(?:{plain}){{0,512}}+(?<==)|\s{{1,64}}(?:{names}))\s*"
    begun = r"[|｜][^<>]{0,64}|/?[\w.:-]{0,64}(?:=|>\s{0,8}[\w.-]{0,64}=?)?"
    part = rf"{beginnings(f'<{tag} ')}|{opened}(?:=?\s{{0,8}}|<(?:{begun}))"
    return Unread(whole, cut, part, tool)


_PLAIN_NAME: Final = re.compile(r"[\w.-]{1,64}").fullmatch
_BEFORE_LIST: Final = re.compile(r"(.*[>\]])\s*\[").fullmatch


def opening_of(shape: Shape, *, section: bool) -> tuple[str, str] | None:
    """Regular expressions for what a call of this shape begins with, and for the beginnings of that.

    With `section`, what opens its section precedes it. None if a name shows that it is a call.
    """
    first = next(part for part in shape.call if not isinstance(part, str) or part.strip())
    own = prefix = ""
    if isinstance(first, str):
        own, second = first.strip(), shape.call[shape.call.index(first) + 1]
        prefix = f"(?:{re.escape(second.prefix)})?" if isinstance(second, Name | CountedName) and second.prefix else ""
    elif isinstance(first, NameTag) and not section:
        return f"(?i:{opening_tag(first.name)})", beginnings(f"<{first.name} ")
    edge = shape.section.open if section and shape.section is not None else ""
    if isinstance(edge, Tag):
        return rf"(?i:{opening_tag(edge.name)})", beginnings(f"<{edge.name} ")
    text = f"{edge.strip()} {own}".strip()
    if not text:
        return None
    opening = pattern(text) + prefix
    if edge.strip() and own:
        opening = rf"{pattern(edge.strip())}(?:\s{{0,64}}{pattern(own)})?(?:\s{{0,64}}{prefix})?"
    elif token := _BEFORE_LIST(text):
        opening = pattern(token[1])  # the bracket of the list may be missing
    if name := tag_of(text):
        return rf"(?:{opening}|(?i:{opening_tag(name)}))", TAG_PART
    return opening, beginnings(text)
