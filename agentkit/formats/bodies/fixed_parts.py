"""The parts other than bodies: literals, tags, names, ids and skipped text.

Knows the call in progress, the reader and the declarations. A part reads from the call's current position and leaves
the call after itself. It raises `Decline` (this is not a call) only before it has reported anything, `Damage` after.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import cache

from agentkit.checks.spelling import nearest
from agentkit.errors import ErrorCode
from agentkit.formats import tags
from agentkit.formats.call import CallReader, ended, item_of, until
from agentkit.formats.edges import one_of
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
from agentkit.formats.kind import PartKind, Writing, refuse_writing
from agentkit.formats.openers import Openers
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Wait, literal


def read_literal(r: Reader, call: CallReader, part: str) -> Wait:
    """Read a literal; any white space around it is accepted. The last literal may be missing at the text's end."""
    wanted = part.strip()
    if not wanted:
        return
    yield from r.space()
    if call.complete and (yield from _opens_next(r, call, wanted)):
        return
    if found := (yield from r.sees(literal(wanted))):
        r.at = found.end()
    elif not call.started:
        raise Decline
    elif call.complete and r.ended and wanted.startswith(r.buf[r.at :]):
        r.at = len(r.buf)  # the call is complete; a sampler that stops at the closing literal omits it
    elif not (call.complete and (yield from _close_forgotten(r, call))):
        raise missing_error(r, repr(wanted))


def read_tag(r: Reader, call: CallReader, part: Tag) -> Wait:
    """Read a tag without a slot."""
    if call.complete:
        return
    yield from r.space()
    if found := (yield from r.sees(tags.tag(part.name, closing=part.closing))):
        r.at = found.end()
    elif not (call.arguments.by_name and (yield from _close_forgotten(r, call))):
        raise missing_error(r, edge(part), "invalid_arguments")


def missing_error(r: Reader, wanted: str, code: ErrorCode = "invalid_json") -> Damage:
    """Return the error for text other than the wanted one, or for the text's end."""
    if r.at >= len(r.buf):
        return Damage("truncated_call", f"the text ended before {wanted}", r.offset, ended=True)
    return Damage(code, f"expected {wanted}", r.offset, got=True)


def absent_error(r: Reader, call: CallReader, start: int, wanted: str, code: ErrorCode = "invalid_json") -> Exception:
    """Return the error for text from this offset that lacks the wanted end; the reader goes back to the offset."""
    if not call.started:
        return Decline()
    is_cut = ended(r, start) or r.cut >= start
    r.back_to(start)  # the text there may contain whole calls
    return Damage("truncated_call" if is_cut else code, f"expected {wanted}", start, ended=is_cut, got=not is_cut)


def _opens_next(r: Reader, call: CallReader, closing: str) -> Generator[None, None, bool]:
    """Return True if the apparent end of a call begins the next one, as a fence does: the call has no end."""
    first = call.shape.call[0].strip() if isinstance(call.shape.call[0], str) else ""
    return first != closing and first.startswith(closing) and (yield from r.sees(literal(first))) is not None


def _close_forgotten(r: Reader, call: CallReader) -> Generator[None, None, bool]:
    """Return True if the next call, the section's end or a control token is here: models forget to close a call.

    They also write several envelopes in one tag. Source: hermes-agent#25333.
    """
    section = call.shape.section
    texts = (call.shape.call[0], section.close if section is not None else "", *call.format.markup)
    follow = one_of(tuple(text.strip() for text in texts if isinstance(text, str) and text.strip()))
    again = call.openers.derive(_another, call.shape)
    return (yield from r.sees(follow)) is not None or (yield from r.sees(again)) is not None


def _another(openers: Openers, shape: Shape) -> Delimiter:
    """Return the delimiter of the next envelope in the tag of one."""
    item = item_of(openers, shape)
    separator = r"[,;]\s{0,64}"
    begun = item.beginning
    return Delimiter(f"(?:{separator})?{item.regex.pattern}", f"{begun}|{separator}(?:{begun})?")


@cache
def ends_of_name(parts: tuple[FormatPart, ...]) -> tuple[str, ...]:
    """Return the texts that may directly follow a name before these parts."""
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
_IN_NO_ATTRIBUTE = re.compile(r"[<>\"]").search
_NAME = re.compile(r"[^\s<>{}\[\]()\"'`,;=]{1,256}\Z")


def _read_name(r: Reader, call: CallReader, *, entities: bool = False) -> Generator[None, None, str]:
    yield from r.space()
    ends = ends_of_name(call.shape.call[call.part + 1 :])
    text = (yield from until(r, ends, _IN_NO_ATTRIBUTE if entities else _IN_NO_NAME)) or ""
    name = (tags.decode_entities(text) if entities else text).strip()
    name = name.removesuffix(r"\n")  # a line break that GLM 4.5 had escaped, in SGLang's tests of its detector
    if _NAME.match(name) is None:
        raise Decline
    return name


def read_name(r: Reader, call: CallReader, part: Name) -> Wait:
    """Read the tool's name, up to the text after it."""
    name = (yield from _read_name(r, call, entities=part.attribute)).removeprefix(part.prefix)
    if not name or not (yield from _is_called(r, call, name)):
        raise Decline
    call.begin(r, name)


def _is_called(r: Reader, call: CallReader, name: str) -> Generator[None, None, bool]:
    """Return True if a call continues after its name, which may also be a word after an opening that prose mentions.

    After an opening that is common in prose, the next literal must follow. If only white space ends a name of no tool,
    an argument must; or the call's end, if the call begins a line or the name has the form of one.
    """
    following: list[FormatPart] = [*call.shape.call[call.part + 1 :], "", ""]
    wanted = following[0].strip() if isinstance(following[0], str) else ""
    start = r.offset
    if wanted:
        follows = not call.known_only or (yield from r.follows(literal(wanted)))
    elif call.knows(name) or not isinstance(body := following[1], Pairs):
        return True
    else:
        begins = call.lead.alone and not r.raw().endswith((" ", "\t"))
        yield from r.space()
        follows = r.buf[r.at : r.at + 1] in "{[" or (yield from r.follows(literal(body.key.strip())))
        if not follows and (begins or _SHAPED(name) or nearest(name, call.tools)) and not _NO_WORD(name):
            follows = (yield from r.sees(literal(str(call.shape.call[-1]).strip()))) is not None
    r.back_to(start)
    return follows


_SHAPED = re.compile(r"[\d_]|[a-z][A-Z]|\w[.:-]\w").search  # as names are, and no words
_NO_WORD = re.compile(r"\W*|[A-Z]+").fullmatch


_COUNT = re.compile(r":\d+\Z")


def read_counted_name(r: Reader, call: CallReader, part: CountedName) -> Wait:
    """Read the tool's name in the id of the call."""
    call.id = yield from _read_name(r, call)
    call.begin(r, _COUNT.sub("", call.id).removeprefix(part.prefix))


def read_call_id(r: Reader, call: CallReader, part: CallId) -> Wait:
    """Read the call's id, up to the text after it."""
    yield from r.space()
    start = r.offset
    try:
        call.id = yield from _read_name(r, call)
    except Decline:
        raise absent_error(r, call, start, "the call's id and what follows it") from None


def read_recipient(r: Reader, call: CallReader, part: Recipient) -> Wait:
    """Read a name that the call itself repeats."""
    yield from _read_name(r, call)


def read_skip(r: Reader, call: CallReader, part: Skip) -> Wait:
    """Read meaningless characters, up to the next literal."""
    following = str(call.shape.call[call.part + 1]).strip()
    start = r.offset
    skipped = yield from until(r, (following,), _never_skipped(part).search)
    if skipped is None or _is_header(skipped, part, (call.shape.first, call.shape.opening)):
        raise absent_error(r, call, start, repr(following))


_BEGINS = "{}<>\n\0"


@cache
def _never_skipped(part: Skip) -> re.Pattern[str]:
    """Return a pattern for characters that begin a body, a line or a tag, except those that are written there."""
    written = "".join((part.written or "<>", *part.tokens))
    return re.compile(f"[{''.join(c for c in _BEGINS if c not in written)}]")


def _is_header(skipped: str, part: Skip, edges: tuple[FormatPart, ...]) -> bool:
    """Return True if another call begins in skipped characters: this name would get that call's arguments."""
    if part.tokens:
        return _IN_NO_HEADER(_any_token(part.tokens).sub("", skipped)) is not None
    return any(isinstance(edge, str) and literal(edge.strip()).regex.search(skipped) for edge in edges)


_IN_NO_HEADER = re.compile(r"[<>=]").search


def skips(part: Skip, following: str) -> bool:
    """Return True if the text that is written for skipped characters would be skipped up to the text that follows."""
    text = part.written.replace("{number}", "1")
    fits = f"{text}{following}".find(following) == len(text)
    return fits and _never_skipped(part).search(text) is None and not _is_header(text, part, ())


@cache
def _any_token(tokens: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, tokens)))


# ---------------------------------------------------------------- written


def write_literal(w: Writing, part: str) -> str:
    """Write the literal, its white space included."""
    return part


def write_tag(w: Writing, part: Tag) -> str:
    """Write the tag."""
    return edge(part)


def write_name(w: Writing, part: Name) -> str:
    """Write the tool's name."""
    return part.prefix + (attribute(w.call.name) if part.attribute else w.call.name)


def write_counted_name(w: Writing, part: CountedName) -> str:
    """Write the call's id if it is of this kind; otherwise one made from the tool's name and the call's number."""
    return w.call.id if _COUNTED.match(w.call.id) else f"{part.prefix}{w.call.name}:{w.number}"


_COUNTED = re.compile(r"\S+:\d+\Z")


def write_call_id(w: Writing, part: CallId) -> str:
    """Write the call's id; if it is not valid here, one of ten characters, as in Solar Open's ids."""
    return w.call.id if _NAME.match(w.call.id) else f"call{w.number + 1:06}"


def write_skip(w: Writing, part: Skip) -> str:
    """Write the text in place of the skipped characters; it may count the calls."""
    return part.written.replace("{number}", str(w.number + 1))


KINDS = (
    PartKind(str, read_literal, write_literal, taught=()),
    PartKind(Tag, read_tag, write_tag, taught=()),
    PartKind(Name, read_name, write_name, taught=()),
    PartKind(CountedName, read_counted_name, write_counted_name, taught=()),
    PartKind(CallId, read_call_id, write_call_id, taught=()),
    PartKind(Recipient, read_recipient, refuse_writing, taught=()),
    PartKind(Skip, read_skip, write_skip, taught=()),
)
