"""The calls of a response, one after another: each is read to its end, or its damage is reported.

Knows the reader, the openers and the parts; knows nothing of what is between calls.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Any, Final

from agentkit.events import CallEnd, CallError, CallStart, Markup
from agentkit.formats import values
from agentkit.formats.bodies.fixed import comes_again, over_again, read_loosely, read_opening_tag
from agentkit.formats.bodies.kinds import KINDS
from agentkit.formats.call import CallReader, Lead
from agentkit.formats.damage.completing import doubtful, keys_of, repaired_call
from agentkit.formats.damage.missing_close import close_values
from agentkit.formats.damage.resync import resync_at
from agentkit.formats.edges import edge_of
from agentkit.formats.format import Shape, Tag
from agentkit.formats.jsontext import ESCAPED_UNIT, GOES_ON, goes_on
from agentkit.formats.openers import Opener, Openers
from agentkit.formats.plaincalls import Found, plain_call
from agentkit.formats.prosereader import ProseReader
from agentkit.formats.reader import Damage, Decline, Reader, Wait
from agentkit.formats.repairs import LONE_SURROGATE, MISSING_BRACE
from agentkit.messages import ToolCall, call_as_read

_INSIDE: Final = "expected the end of the JSON before the end of the call, after which more of it follows"
_LACKING: Final = "a parameter comes before the opening of this call: write it after that"
_new = tuple.__new__
_LAST_WORD: Final = re.compile(r"[\w.-]{1,256}\Z").match


class Calls:
    """Reads calls, and knows where the last one was.

    `call` is the open one, `count` how many there were before; `before` is the text between two calls, which is markup
    if the second one is a call; `last` opened the last call, `section` the open section, `reopen` the one that
    was just closed, `outer` the list in which the open section opened. `fenced` ends the fence around the calls:
    exactly as many backticks as opened it. `lacking` is the offset of a call of which a parameter comes before its
    opening, -1 for none.
    """

    __slots__ = (
        "before",
        "call",
        "count",
        "fenced",
        "lacking",
        "last",
        "openers",
        "outer",
        "prose",
        "r",
        "reopen",
        "section",
    )

    def __init__(self, r: Reader, openers: Openers, prose: ProseReader) -> None:
        self.r, self.openers, self.prose = r, openers, prose
        self.call: CallReader | None = None
        self.count = 0
        self.before = ""
        self.fenced = ""
        self.lacking = -1
        self.section: Opener | None = None
        self.reopen: Opener | None = None
        self.outer: Opener | None = None
        self.last: Opener | None = None

    @property
    def alone(self) -> bool:
        """Whether nothing but white space is before this place in its line."""
        return self.prose.quoting.blank or "\n" in self.before

    def say_before(self) -> None:
        """What was skipped after a call is markup: another call, or the end of that one, is here."""
        if self.before:
            self.r.out.append(Markup(self.before))
            self.prose.quoting.note(self.before)
            self.before = ""

    def fresh(self, entry: Opener) -> CallReader:
        """A call that may open here."""
        return CallReader(entry, self.openers, self.count, Lead(self.before, alone=self.alone))

    def unknown(self) -> CallReader:
        """A call about which nothing is known, not even how it begins."""
        return self.fresh(Opener("call", self.openers.formats[0], Shape(())))

    def read(self, entry: Opener, inside: int | None = None) -> Generator[None, None, bool]:
        """Read one call, after the opening of a section if that is here.

        With `inside`, what was kept up to that offset is its wrapping, which becomes markup. False if it turns out not
        to be a call before any event of it was emitted.
        """
        r = self.r
        call = self.fresh(entry)
        call.arguments.tool, call.known_only = entry.tool, entry.weak
        call.blocked = self.prose.blocked and entry.shape.section is None
        if inside is None:
            r.open()
        else:
            call.lead.opening = r.raw()
        start = r.offset
        if start == self.lacking:
            call.arguments.doubt = Damage("ambiguous_call", _LACKING, start)
        self.call = call
        try:
            if entry.kind == "section":
                yield from self.section_start(entry, call)
            for call.part, part in enumerate(entry.shape.call):
                yield from KINDS[type(part)].read(r, call, part)
            if (doubt := call.arguments.doubt) is not None:
                doubt.end = r.offset
                raise doubt
            self._repair(call)
        except Decline:
            return self._undo(start, inside)
        except Damage as damage:
            if call.known_only and not call.started:  # common characters that open nothing known
                return self._undo(start, inside)
            yield from self.damaged(call, damage)
        else:
            self._done(call, call.arguments.by_name, r.text(r.mark + call.lead.size, r.offset), call.arguments.repairs)
        self.over(entry)
        return True

    def at_once(self, entry: Opener) -> bool:
        """Read a whole call in one step; False, with nothing consumed, if its parts must read it."""
        r = self.r
        if self.lacking >= 0 and r.offset == self.lacking:
            return False
        if (found := plain_call(r, entry, self.openers, self.count)) is None:
            return False
        if self.before:
            r.out.append(Markup(self.before))
        if found.start > r.at:
            r.out.append(Markup(r.buf[r.at : found.start]))
        r.out.append(_new(CallStart, (found.index, found.name, None)))
        r.out += found.deltas
        r.at = found.end
        self._done(found, found.arguments, r.buf[found.start : found.end], found.repairs)
        self.over(entry)
        return True

    def over(self, entry: Opener | None = None) -> None:
        """The open call has been reported; `entry` opened it, unless that is unknown."""
        if self.r.kept is not None:
            self.r.shut()
        if self.before:
            self.prose.quoting.note(self.before)
        self.call, self.before = None, ""
        self.count += 1
        self.prose.left = None
        if entry is not None:
            self.last, self.reopen = entry, None
            if entry.kind == "section":
                self.outer, self.section = self._around(entry), entry

    def _around(self, entry: Opener) -> Opener | None:
        """The open list, of other calls than those of the section that opens here."""
        if self.section is None or self.section.shape.section == entry.shape.section:
            return None
        return self.section if self.openers.meant(self.section).listed is not None else None

    def _undo(self, start: int, inside: int | None) -> bool:
        """It was not a call: go back to where it seemed to start."""
        self.call = None
        self.r.back_to(start)
        if inside is None:
            self.r.shut()
        return False

    def section_start(self, entry: Opener, call: CallReader) -> Wait:
        """The opening of a section, which becomes markup once the call after it has started."""
        r = self.r
        assert entry.shape.section is not None
        edge = entry.shape.section.open
        first = tag = ""
        if isinstance(edge, Tag):
            yield from read_opening_tag(r, edge.name)
            first, tag = "<", edge.name
        elif (found := (yield from r.sees(edge_of(edge)))) is not None:
            r.at = found.end()
            first = edge.strip()
        else:
            call.id = yield from read_loosely(r, edge)
        yield from r.space()
        if first and comes_again(r, first) and (again := self.openers.meant(entry).twice[0]) is not None:
            yield from over_again(r, again, tag)
            yield from r.space()
        call.lead.opening = r.raw()

    def _done(self, call: CallReader | Found, arguments: dict[str, Any], raw: str, repairs: Sequence[str]) -> None:
        """Report that the call is complete."""
        if not raw.isascii() or ESCAPED_UNIT(raw):
            arguments = values.encodable(arguments, raw)
            repairs = (*repairs, LONE_SURROGATE) if values.replaced(arguments, raw) else repairs
        self.prose.refused = False
        done = call_as_read(call.id, call.name, arguments, call.opener.format.name, raw)
        self.r.out.append(_new(CallEnd, (call.index, done, tuple(repairs))))

    def _repair(self, call: CallReader) -> None:
        """Repair arguments that were read, as the tool's schema requires."""
        r = self.r
        close_values(call, r.offset, allowed=r.repairs)
        call.repair(r)

    def damaged(self, call: CallReader, damage: Damage) -> Wait:
        """Repair a call that cannot be read as written, or report it, and find where reading continues."""
        r = self.r
        # another shape of the format might have read what the text's end cut off from an earlier place
        nothing_read = call.arguments.body == damage.position
        while nothing_read and not r.ended and (r.at >= len(r.buf) or _LAST_WORD(r.buf, r.at)):
            yield
        unread = r.ended and nothing_read
        cut = damage.position == r.cut or (unread and (damage.position < r.cut or _LAST_WORD(r.buf, r.at)))
        if cut and not damage.ended and damage.code != "internal_error":
            at = r.cut if r.cut >= r.mark else damage.position
            damage = Damage("truncated_call", f"the text ended: {damage.message}", at, ended=True, got=damage.got)
        try:
            end = yield from resync_at(r, call, damage)
        except Damage:  # no edge within the length that a call may have
            end = r.offset
        raw = r.raw()[: end - r.mark]
        if r.may_rewind(end):
            r.back_to(end)
        else:
            raw = r.raw()
        repairable = damage.code == "invalid_json" and not damage.ended
        if repairable and (yield from r.sees(GOES_ON)):  # what seemed to close the body is inside it
            repairable = False
        read = repaired_call(r, call, raw) if repairable else None
        if read and MISSING_BRACE in read.repairs and (yield from r.sees(goes_on(keys_of(call.shape)))):
            damage, read, repairable = Damage(damage.code, _INSIDE, damage.position), None, False
        if read:
            call.arguments.by_name, call.arguments.repairs = read.arguments, [*read.repairs]
            self._repair(call)
            if read.end < len(raw) and r.may_rewind(r.mark + read.end):
                raw = raw[: read.end]
                r.back_to(r.mark + read.end)
            self._done(call, call.arguments.by_name, raw[call.lead.size :], call.arguments.repairs)
            return
        self.refuse(call, doubtful(r, call, raw, damage) if repairable else damage, raw)

    def refuse(self, call: CallReader, damage: Damage, raw: str) -> None:
        """Report a call that cannot be executed."""
        self.prose.refused = True
        arguments = values.encodable(call.arguments.by_name, raw) if damage.code == "truncated_call" else {}
        call.lead.say(self.r)
        lost = ToolCall(call.id, call.name, arguments, call.format.name, raw[call.lead.size :])
        self.r.out.append(
            CallError(call.index, damage.code, damage.full_message(raw, self.r.mark), lost, damage.position)
        )
