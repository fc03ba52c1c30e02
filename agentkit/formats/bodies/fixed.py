"""The parts other than bodies: literals, tags, names, ids and skipped text.

Knows the call in progress, the reader and the declarations. A part reads from the call's current position and leaves
the call after itself. It raises `Decline` (this is not a call) only before it has reported anything, `Damage` after.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterable
from functools import cache
from typing import Final

from agentkit.checks.spelling import nearest
from agentkit.errors import ErrorCode
from agentkit.formats import tags
from agentkit.formats.call import CallReader, ended, item_of, until
from agentkit.formats.escapes import attribute
from agentkit.formats.format import (
    CallBody,
    CallId,
    CountedName,
    FormatPart,
    Name,
    Pairs,
    Recipient,
    Shape,
    Skip,
    Tag,
    edge,
)
from agentkit.formats.kind import PartKind, Writing, only_read
from agentkit.formats.openers import Openers
from agentkit.formats.otherkeys import BESIDE
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Search, Wait, literal


def read_literal(r: Reader, call: CallReader, part: str) -> Wait:
    """A literal; any white space around it is accepted. The last literal may be missing at the text's end."""
    wanted = part.strip()
    if not wanted:
        return
    yield from r.space()
    if (yield from _opens_next(r, call, wanted)):
        return
    if found := (yield from r.sees(literal(wanted))):
        r.at = found.end()
    elif not call.started:
        call.id = yield from read_loosely(r, wanted)
    elif (closing := tags.in_tag(wanted)) and (found := (yield from r.sees(tags.closing(closing[0][1:])))):
        r.at = found.end()
    elif call.complete and r.ended and wanted.startswith(r.buf[r.at :]):
        r.at = len(r.buf)  # the call is complete; a sampler that stops at the closing literal omits it
    elif call.complete and (yield from _close_forgotten(r, call)):
        return
    elif r.at >= len(r.buf):
        raise Damage("truncated_call", f"the text ended before {wanted!r}", r.offset, ended=True)
    else:
        raise Damage("invalid_json", f"expected {wanted!r}", r.offset, got=True)


def read_loosely(r: Reader, wanted: str) -> Generator[None, None, str]:
    """An opening literal that is a tag, read like a tag: in any case, with attributes. Returns the id in them."""
    if (found := tags.in_tag(wanted)) is None:
        raise Decline
    name, rest = found
    opening = yield from read_opening_tag(r, name)
    if rest:
        yield from r.space()
        if (after := (yield from r.sees(literal(rest)))) is None:
            raise Decline
        r.at = after.end()
    return opening.attributes.get("id") or ""


def read_opening_tag(r: Reader, name: str) -> Generator[None, None, tags.Opening]:
    """An opening tag whose attributes contain nothing that a call needs."""
    if (found := (yield from r.sees(tags.tag(name, closing=False)))) is None:
        raise Decline
    r.at = found.end()
    if r.buf.startswith(">", r.at):  # as nearly all: it has no attributes
        r.at += 1
        return tags.Opening()
    opening = yield from tags.Attributes(r, name, ()).read()
    if opening.empty or strays(opening.attributes):
        raise Decline
    return opening


def strays(attributes: Iterable[str], own: Collection[str] = ()) -> list[str]:
    """The attributes of a tag that would be lost, since nothing reads them; `own` are names that matter here."""
    return [k for k in attributes if k in own or (k not in _IDLE and not k.startswith(("xml:", "xmlns:")))]


_IDLE: Final = ("xmlns", "string", *BESIDE)


def _opens_next(r: Reader, call: CallReader, closing: str) -> Generator[None, None, bool]:
    """Whether what looks like a complete call's end begins the next call, as a fence does: its end is forgotten."""
    first = call.shape.call[0].strip() if isinstance(call.shape.call[0], str) else ""
    if not call.part or not call.complete or first == closing or not first.startswith(closing):
        return False
    return (yield from r.sees(literal(first))) is not None


def _close_forgotten(r: Reader, call: CallReader) -> Generator[None, None, bool]:
    """Whether the next call, the section's end or a control token is here: models forget to close a call.

    They also write several envelopes in one tag. Source: hermes-agent#25333.
    """
    first, section = call.shape.call[0], call.shape.section
    for text in (first, section.close if section is not None else "", *call.format.markup):
        if isinstance(text, str) and text.strip() and (yield from r.sees(literal(text.strip()))):
            return True
    again = call.openers.derived(_another, call.shape)
    return (yield from r.sees(again)) is not None


def _another(openers: Openers, shape: Shape) -> Delimiter:
    """The next envelope in the tag of one."""
    item = item_of(openers, shape)
    separator = r"[,;]\s{0,64}"
    begun = item.begun[3:-3]
    return Delimiter(f"(?:{separator})?{item.whole.pattern}", f"{begun}|{separator}(?:{begun})?")


def read_tag(r: Reader, call: CallReader, part: Tag) -> Wait:
    """A tag without a slot."""
    if call.complete:
        return
    yield from r.space()
    found = yield from r.sees(tags.tag(part.name, closing=part.closing))
    if found is None and call.arguments.by_name and (yield from _close_forgotten(r, call)):
        return
    if found is None:
        what = f"</{part.name}>" if part.closing else f"<{part.name}>"
        if r.at >= len(r.buf):
            raise Damage("truncated_call", f"the text ended before {what}", r.offset, ended=True)
        raise Damage("invalid_arguments", f"expected {what}", r.offset, got=True)
    r.at = found.end()


@cache
def ends_of_name(parts: tuple[FormatPart, ...]) -> tuple[str, ...]:
    """What may directly follow a name before these parts."""
    ends: list[str] = []
    for part in parts:
        match part:
            case str(text) if text.strip():
                return (*ends, text.split()[0])
            case str(text):
                ends += ["\n"] if text else []
            case CallBody(start=str(start)) if start:
                ends.append(start)
                if not part.may_be_empty:
                    return tuple(ends)
            case Skip():
                ends += [" ", "<", '"']
            case other:
                raise TypeError(f"a name cannot end before {other!r}")
    return tuple(ends)


_IN_NO_NAME = re.compile(r"[<>{}\[\]()\"'`,;=]").search
_IN_NO_TAG = re.compile(r"[{}\n]").search  # the body is already here: what should precede it was forgotten
_IN_NO_SKIP = re.compile(r"[<>]").search
_IN_NO_HEADER = re.compile(r"[<>=]").search  # another header begins here
_IN_NO_ATTRIBUTE = re.compile(r"[<>\"]").search
_NAME = re.compile(r"[^\s<>{}\[\]()\"'`,;=]{1,256}\Z")


def _read_name(r: Reader, call: CallReader, *, entities: bool = False) -> Generator[None, None, str]:
    yield from r.space()
    ends = ends_of_name(call.shape.call[call.part + 1 :])
    text = (yield from until(r, ends, _IN_NO_ATTRIBUTE if entities else _IN_NO_NAME)) or ""
    name = (tags.decoded(text) if entities else text).strip()
    name = name.removesuffix(r"\n")  # a line break that GLM 4.5 had escaped, in SGLang's tests of its detector
    if _NAME.match(name) is None:
        raise Decline
    return name


def read_name(r: Reader, call: CallReader, part: Name) -> Wait:
    """The tool's name, up to what follows it."""
    name = yield from _read_name(r, call, entities=part.attribute)
    if name == part.prefix:  # white space may be between the two
        start = r.offset
        try:
            name = yield from _read_name(r, call, entities=part.attribute)
        except Decline:  # there is no name: it is still answered
            r.back_to(start)
    following = call.shape.call[call.part + 1]
    if call.known_only and isinstance(following, str) and following.strip():
        found = yield from r.sees(literal(following.strip()))
        if found is None and not (r.ended and r.cut == r.offset):
            raise Decline  # its opening is common in prose, and the text that must follow a call's name is missing
    elif not call.knows(name) and (yield from _is_mentioned(r, call, name)):
        raise Decline
    call.begin(r, name.removeprefix(part.prefix))


_SHAPED: Final = re.compile(r"[\d_]|[a-z][A-Z]|\w[.:-]\w").search  # as names are, and no words


def _is_mentioned(r: Reader, call: CallReader, name: str) -> Generator[None, None, bool]:
    """Whether prose only mentions an opening, and what is read as a name after it is the next word, or an ellipsis.

    Only where nothing but the name shows that it is a call: one of no tool, without arguments. It is a mention in a
    sentence, and elsewhere if the name has no letters, or only capitals, or is apart from what is around it.
    """
    parts: list[FormatPart] = [*call.shape.call[call.part + 1 :], "", ""]
    following, body = parts[:2]
    if not (isinstance(following, str) and not following.strip()) or not isinstance(body, Pairs):
        return False
    said = not call.lead.alone or _NO_WORD(name) or _APART(r.raw())
    if not said or _SHAPED(name) or nearest(name, call.tools):
        return False
    start = r.offset
    yield from r.space()
    yield from r.more()
    argued = r.at >= len(r.buf) or r.buf[r.at] in "{["
    argued = argued or (yield from r.sees(literal(body.key.strip()))) is not None
    if not argued and r.buf[r.at] == "<":
        argued = (yield from r.sees(literal(str(call.shape.call[-1]).strip()))) is None
    r.back_to(start)
    return not argued


_NO_WORD: Final = re.compile(r"\W*|[A-Z]+").fullmatch
_APART: Final = re.compile(r"[ \t]\S+[ \t]+\Z").search


_COUNT = re.compile(r":\d+\Z")


def read_counted_name(r: Reader, call: CallReader, part: CountedName) -> Wait:
    """The tool's name in the id of the call."""
    call.id = yield from _read_name(r, call)
    call.begin(r, _COUNT.sub("", call.id).removeprefix(part.prefix))


def read_call_id(r: Reader, call: CallReader, part: CallId) -> Wait:
    """The call's id, up to what follows it."""
    yield from r.space()
    start = r.offset
    try:
        call.id = yield from _read_name(r, call)
    except Decline:
        if not call.started:
            raise
        over = ended(r, start)
        r.back_to(start)
        code: ErrorCode = "truncated_call" if over else "invalid_json"
        raise Damage(code, "expected the call's id and what follows it", start, ended=over, got=True) from None


def read_recipient(r: Reader, call: CallReader, part: Recipient) -> Wait:
    """A name that the call itself repeats."""
    yield from _read_name(r, call)


def read_skip(r: Reader, call: CallReader, part: Skip) -> Wait:
    """Meaningless characters, up to the next literal."""
    following = call.shape.call[call.part + 1]
    assert isinstance(following, str)
    start = r.offset
    skipped = yield from until(r, (following.strip(),), _in_no_skip(part))
    if skipped is None or _is_header(skipped, part) or _begins_another(skipped, part, call):
        if not call.started:
            raise Decline
        over = ended(r, start) or r.cut >= start
        r.back_to(start)
        code: ErrorCode = "truncated_call" if over else "invalid_json"
        raise Damage(code, f"expected {following.strip()!r}", start, ended=over)


def _in_no_skip(part: Skip) -> Search:
    return _IN_NO_TAG if "<" in part.written or not part.written else _IN_NO_SKIP


def _is_header(skipped: str, part: Skip) -> bool:
    return bool(part.tokens) and _IN_NO_HEADER(_any_token(part.tokens).sub("", skipped)) is not None


_EMPTY_LINE = re.compile(r"\n[^\S\n]*\n").search


def _begins_another(skipped: str, part: Skip, call: CallReader) -> bool:
    """Whether another call or a paragraph begins in skipped characters: the name would be run with what follows it."""
    if part.tokens or not skipped or skipped.isspace():
        return False
    edges = (call.shape.first, call.shape.opening)
    opens = any(isinstance(edge, str) and literal(edge.strip()).whole.search(skipped) for edge in edges)
    return opens or _EMPTY_LINE(skipped) is not None


def skips(part: Skip, following: str) -> bool:
    """Whether what is written in place of the skipped characters is skipped up to the text that follows."""
    text = part.written.replace("{number}", "1")
    over = f"{text}{following}".find(following) == len(text)
    return over and _in_no_skip(part)(text) is None and not _is_header(text, part)


@cache
def _any_token(tokens: tuple[str, ...]) -> re.Pattern[str]:
    """Any of these tokens."""
    return re.compile("|".join(map(re.escape, tokens)))


# ---------------------------------------------------------------- written


def write_literal(w: Writing, part: str) -> str:
    """The literal, its white space included."""
    return part


def write_tag(w: Writing, part: Tag) -> str:
    """The tag."""
    return edge(part)


def write_name(w: Writing, part: Name) -> str:
    """The tool's name."""
    return part.prefix + (attribute(w.call.name) if part.attribute else w.call.name)


def write_counted_name(w: Writing, part: CountedName) -> str:
    """The call's id if it is of this kind; otherwise one made from the tool's name and the call's number."""
    return w.call.id if _COUNTED.match(w.call.id) else f"{part.prefix}{w.call.name}:{w.number}"


_COUNTED = re.compile(r"\S+:\d+\Z")


def write_call_id(w: Writing, part: CallId) -> str:
    """The call's id; if it is not valid here, one of ten characters, as in Solar Open's ids."""
    return w.call.id if _NAME.match(w.call.id) else f"call{w.number + 1:06}"


def write_skip(w: Writing, part: Skip) -> str:
    """The text in place of the skipped characters; it may count the calls."""
    return part.written.replace("{number}", str(w.number + 1))


KINDS = (
    PartKind(str, read_literal, write_literal, taught=()),
    PartKind(Tag, read_tag, write_tag, taught=()),
    PartKind(Name, read_name, write_name, taught=()),
    PartKind(CountedName, read_counted_name, write_counted_name, taught=()),
    PartKind(CallId, read_call_id, write_call_id, taught=()),
    PartKind(Recipient, read_recipient, only_read, taught=()),
    PartKind(Skip, read_skip, write_skip, taught=()),
)
