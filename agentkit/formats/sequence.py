"""The calls of a response, one after another: each is read to its end, or reported as damaged.

Knows the reader, the openers and the parts; knows nothing of the text between calls.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Any, Final

from agentkit.errors import ErrorCode
from agentkit.events import CallEnd, CallError, CallStart, Markup
from agentkit.formats.bodies.kinds import KINDS
from agentkit.formats.call import CallReader, Lead
from agentkit.formats.damage import skip_damage
from agentkit.formats.edges import edge_delimiter, is_list
from agentkit.formats.format import Name, NameTag, PythonCall, Shape, Tag, TextArgument, ToolElement
from agentkit.formats.json_repair import repaired_call
from agentkit.formats.jsontext import ESCAPED_UNIT
from agentkit.formats.openers import Opener, Openers
from agentkit.formats.plaincalls import PlainCall, plain_call
from agentkit.formats.prosereader import ProseReader
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Wait, beginnings, pattern
from agentkit.formats.valueends import leftover_of
from agentkit.messages import ToolCall, call_as_read
from agentkit.schemas.typed import values
from agentkit.schemas.typed.repairs import LONE_SURROGATE

_NOT_RUN: Final = "not run: a call before it in this reply cannot be read; write that one and this one again"
_LIST_NOT_RUN: Final = "not run: another call of its list cannot be read"
_new = tuple.__new__
_SENTENCE: Final = 256  # characters after an opening in which a call shows that it is not only mentioned
_LAST_WORD: Final = re.compile(r"[\w.-]{1,256}\Z").match


class Calls:
    """Reads calls, and keeps the openers of the last one.

    `call` is the open one, `count` the number of earlier ones; `before` is the text between two calls, which is markup
    once the second one has started; `last` opened the last call, `section` the open section, `last_section` the section
    that was just closed. `fence_end` is the end of the fence around the calls: as many backticks as opened it.
    """

    __slots__ = (
        "before", "call", "count", "fence_end", "last", "last_section", "openers", "prose", "r", "section",
    )  # fmt: skip

    def __init__(self, r: Reader, openers: Openers, prose: ProseReader) -> None:
        self.r, self.openers, self.prose = r, openers, prose
        self.call: CallReader | None = None
        self.count = 0
        self.before = ""
        self.fence_end = ""
        self.section: Opener | None = None
        self.last_section: Opener | None = None
        self.last: Opener | None = None

    @property
    def alone(self) -> bool:
        """True if only white space is before this place in its line."""
        return self.prose.quoting.blank or "\n" in self.before

    def emit_before(self) -> None:
        """Emit the text that was skipped after a call as markup: another call, or the end of that one, is here."""
        if self.before:
            self.r.out.append(Markup(self.before))
            self.prose.quoting.note(self.before)
            self.before = ""

    def new_call(self, entry: Opener) -> CallReader:
        """Return a reader for a call that may open here."""
        return CallReader(entry, self.openers, self.count, Lead(self.before, alone=self.alone))

    def unknown_call(self) -> CallReader:
        """Return a reader for a call of which not even the opening is known."""
        return self.new_call(Opener("call", self.openers.formats[0], Shape(())))

    def read(self, entry: Opener, inside: int | None = None) -> Generator[None, None, bool]:
        """Read one call, after the opening of a section if that is here.

        With `inside`, the text kept up to that offset is its wrapping, which becomes markup. False if it is text, found
        before any event of it was emitted.
        """
        r = self.r
        if inside is None and not entry.weak and (yield from self.is_mention(entry)):
            return False
        call = self.new_call(entry)
        call.arguments.tool, call.known_only = entry.tool, entry.weak
        call.blocked = self.prose.blocked and entry.shape.section is None
        listed = self.section is not None or entry.kind == "section"
        listed = listed and entry.shape.section is not None and is_list(entry.shape)
        if inside is None:
            r.begin_call()
        else:
            call.lead.opening = r.raw()
        start = r.offset
        self.call = call
        try:
            if entry.kind == "section":
                yield from self.read_section_start(entry, call)
            for call.part, part in enumerate(entry.shape.call):
                yield from KINDS[type(part)].read(r, call, part)
            call.repair(r)
            yield from self._check_next(call, listed=listed)
        except Decline:
            return self._undo(start, inside)
        except Damage as damage:
            if call.known_only and not call.started:  # common characters that open nothing known
                return self._undo(start, inside)
            yield from self.handle_damage(call, damage, listed=listed)
        else:
            self._end(call, call.arguments.by_name, r.text(r.mark + call.lead.size, r.offset), call.arguments.repairs)
        self.close_call(entry)
        return True

    def is_mention(self, entry: Opener) -> Generator[None, None, bool]:
        """Return True if prose only mentions an opening: a sentence follows, up to the next opening or the text's end.

        Source: qwen3.8-Flash-DGX#29.
        """
        r = self.r
        if entry.kind != "call" or self.section is not None:
            return False
        if (found := (yield from r.sees(self.openers.derive(_sentence, entry.shape)))) is None:
            return False
        size = len(found[0])
        while True:
            tag = r.buf.find("<", r.at + size, r.at + size + _SENTENCE)
            if r.ended or len(r.buf) - max(tag, r.at + size) >= _SENTENCE:
                return tag < 0 or self.openers.table.own.match(r.buf, tag) is not None
            yield

    def _check_next(self, call: CallReader, *, listed: bool) -> Wait:
        """Check the text after a call, which ends only where that text may follow it.

        After a call of a list, that is the next one or the list's end; after one with raw values, no part of another
        value. The calls of a list of Python calls are reported at its end: it is one expression, of which all run, or
        none.

        Raises:
            Damage: anything else follows.
        """
        r = self.r
        if not listed:
            leftover = leftover_of(call.shape)
            if leftover is not None and (yield from r.sees(leftover)):
                message = "expected no part of a call after its end: close each value and each call once"
                raise Damage("ambiguous_call", message, r.offset, got=True)
            return
        follow = self.openers.derive(_follow, call.shape)
        if not (yield from r.follows(follow)):
            raise Damage("invalid_arguments", "expected the next call or the end of the calls", r.offset, got=True)
        if isinstance(call.shape.call[0], PythonCall) and r.list_start < 0:
            r.list_start = len(r.out)

    def read_at_once(self, entry: Opener) -> bool:
        """Read a whole call in one step; False, with nothing consumed, if its parts must read it."""
        r = self.r
        if (found := plain_call(r, entry, self.openers, self.count)) is None:
            return False
        if is_list(entry.shape) and self.openers.derive(_follow, entry.shape).match(r.buf, found.end) is None:
            return False
        if (leftover := leftover_of(entry.shape)) is not None and (
            leftover.match(r.buf, found.end) or (not r.ended and leftover.part.match(r.buf, found.end))
        ):
            return False
        if self.before:
            r.out.append(Markup(self.before))
        if found.start > r.at:
            r.out.append(Markup(r.buf[r.at : found.start]))
        r.out.append(_new(CallStart, (found.index, found.name, None)))
        r.out += found.deltas
        r.at = found.end
        self._end(found, found.arguments, r.buf[found.start : found.end], found.repairs)
        self.close_call(entry)
        return True

    def close_call(self, entry: Opener | None = None) -> None:
        """Close the open call, which has been reported; `entry` opened it, unless that is unknown."""
        if self.r.call_text is not None:
            self.r.end_call()
        if self.before:
            self.prose.quoting.note(self.before)
        self.call, self.before = None, ""
        self.count += 1
        self.prose.resume_state = None
        if entry is not None:
            self.last, self.last_section = entry, None
            if entry.kind == "section":
                self.section = entry

    def _undo(self, start: int, inside: int | None) -> bool:
        """Go back to the start of an apparent call."""
        self.call = None
        self.r.back_to(start)
        if inside is None:
            self.r.end_call()
        return False

    def read_section_start(self, entry: Opener, call: CallReader) -> Wait:
        """Read the opening of a section, which becomes markup once the call after it has started."""
        r = self.r
        assert entry.shape.section is not None
        edge = entry.shape.section.open
        if (found := (yield from r.sees(edge_delimiter(edge)))) is None:
            raise Decline
        r.at = found.end()
        if isinstance(edge, Tag):
            yield from r.space()
            if r.buf[r.at : r.at + 1] != ">":
                raise Decline  # nothing reads its attributes
            r.at += 1
        yield from r.space()
        call.lead.opening = r.raw()

    def _end(self, call: CallReader | PlainCall, arguments: dict[str, Any], raw: str, repairs: Sequence[str]) -> None:
        if not raw.isascii() or ESCAPED_UNIT(raw):
            arguments = values.make_encodable(arguments, raw)
            repairs = (*repairs, LONE_SURROGATE) if values.has_replacements(arguments, raw) else repairs
        done = call_as_read(call.id, call.name, arguments, call.opener.format.name, raw)
        if self.prose.broken:
            self.r.out.append(CallError(call.index, "skipped", _NOT_RUN, done, self.r.offset))
        else:
            self.r.out.append(_new(CallEnd, (call.index, done, tuple(repairs))))

    def end_list(self, *, unread: bool = False, cut: bool = False) -> None:
        """Report a list of Python calls: none of them runs if a part of it is unread, or if the text's end cut it."""
        r = self.r
        code: ErrorCode
        code, why = ("truncated_call", "the text ended in its list") if cut else ("skipped", _LIST_NOT_RUN)
        for n in range(r.list_start, len(r.out)) if r.list_start >= 0 and (unread or cut) else ():
            if isinstance(event := r.out[n], CallEnd):
                r.out[n] = CallError(event.index, code, f"{why}; write the whole list again", event.call, r.offset)
        r.list_start = -1

    def may_continue(self) -> bool:
        """Return True if the text ends in a word, which may be the name of the next call of the open list."""
        return self.r.ended and self.section is not None and _LAST_WORD(self.r.buf, self.r.at) is not None

    def continues(self, entries: Sequence[Opener] | None) -> bool:
        """Return True if these open the next call of the open list."""
        section = self.section
        return section is not None and bool(entries) and entries[0] is self.openers.successors(section).inside  # type: ignore[index]

    def handle_damage(self, call: CallReader, damage: Damage, *, listed: bool = False) -> Wait:
        """Repair a call that cannot be read as written, or report it, up to the next edge."""
        r = self.r
        if damage.position == r.cut and not damage.ended and damage.code != "internal_error":
            damage = Damage("truncated_call", f"the text ended: {damage.message}", r.cut, ended=True, got=damage.got)
        yield from skip_damage(r, self.openers, call, damage)
        raw = r.raw()
        repairable = damage.code == "invalid_json" and not damage.ended
        if repairable and (yield from self._repair(call, raw, listed=listed)):
            return
        self.refuse(call, damage, raw)

    def _repair(self, call: CallReader, raw: str, *, listed: bool) -> Generator[None, None, bool]:
        """Read a damaged call with named repairs, if they suffice and the text after it may follow it."""
        r = self.r
        if (read := repaired_call(r, call, raw)) is None:
            return False
        call.arguments.by_name, call.arguments.repairs = read.arguments, [*read.repairs]
        call.repair(r)
        reached = r.offset
        if read.end < len(raw):
            if not r.may_rewind(r.mark + read.end):
                return False
            r.back_to(r.mark + read.end)
        if listed:
            try:
                yield from self._check_next(call, listed=True)
            except Damage:
                r.at = reached - r.base
                return False
        self._end(call, call.arguments.by_name, r.text(r.mark + call.lead.size, r.offset), call.arguments.repairs)
        return True

    def refuse(self, call: CallReader, damage: Damage, raw: str) -> None:
        """Report a call that cannot be executed. No later call of the reply runs."""
        self.end_list(unread=True, cut=damage.code == "truncated_call")
        self.prose.broken |= damage.code != "internal_error"  # a bug in agentkit costs one call
        arguments = values.make_encodable(call.arguments.by_name, raw) if damage.code == "truncated_call" else {}
        call.lead.emit(self.r)
        lost = ToolCall(call.id, call.name, arguments, call.format.name, raw[call.lead.size :])
        self.r.out.append(
            CallError(call.index, damage.code, damage.full_message(raw, self.r.mark), lost, damage.position)
        )


def _sentence(openers: Openers, shape: Shape) -> Delimiter:
    """Return the delimiter of a call's opening, with any tool's name, and the first letter of a sentence after it."""
    text = any(isinstance(part, TextArgument) for part in shape.call)
    match shape.call:
        case (NameTag(tag, attribute), *_) if not text:
            edges = f"<{tag} {attribute}=", ">"
        case (str(start), Name(), str(end), *_) if start.startswith("<") and end.startswith(">"):
            edges = start, ">"
        case (ToolElement(layout), *_):
            made = [tool.with_element(layout).element for tool in openers.table.named.values()]
            own = "|".join(re.escape(e.tag) for e in made if e is not None and not e.of("content"))
            return Delimiter(rf"<(?:{own or '(?!)'})>[ \t]{{1,8}}[a-z]", r"<(?:[^<>\s]{0,160}>?[ \t]{0,8})?")
        case _:
            return Delimiter("(?!)", "(?!)")
    name = "[\"']?[\\w.:-]{1,128}[\"']?"
    opening, space = pattern(edges[0]) + name + edges[1], r"[ \t]{1,8}"
    begun = rf"{beginnings(edges[0])}|{pattern(edges[0])}[\"']?[\w.:-]{{0,128}}[\"']?"
    return Delimiter(f"{opening}{space}[a-z]", f"{begun}|{opening}[ \t]{{0,8}}")


def _follow(openers: Openers, shape: Shape) -> Delimiter:
    """Return the delimiter of text after a call of a list: the next one, the list's end, a token or a tag."""
    close = edge_delimiter(shape.section.close) if shape.section is not None else None
    python = isinstance(shape.call[0], PythonCall)
    item, begun = (r"[^\W\d][\w.-]{0,255}\s{0,64}\(", r"[\w.-]{1,256}\s{0,64}") if python else (r"\{", "")
    list_end = close.regex.pattern if close is not None and close.regex.pattern else "(?!)"
    part = close.beginning if close is not None else ""
    space = r"\s{0,1024}"
    return Delimiter(
        rf"{space}(?:[,;]?{space}(?:{item}|{list_end})|<[^\s=]|`|\[[A-Z/])",
        rf"{space}(?:[,;]?{space}(?:{begun}|{part})?|[\[<]?)",
        re.I,
    )
