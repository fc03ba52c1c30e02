"""Tags, attributes and raw values read as they stream, as models write them and not as XML demands.

Knows the reader, no format. Values are raw: entities in them are not decoded, markup in them is content. Attribute
values are entity-decoded. A value ends at the first closing tag that is followed by something that may follow it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Search, Wait, beginnings, may_begin, pattern

_SPACES: Final = r"\s{0,1024}"  # white space looked over before a delimiter; more than that is content
_LAYOUT: Final = r"(?:\s|\\n){0,1024}"  # the same between pairs, where GLM models also write a newline as its escape
_PREFIX: Final = r"(?:[^\W\d][\w.-]{0,31}:)?"  # a namespace
_TAG_PART: Final = (
    rf"<(?:/?(?:[^\s<>/\"'=]{{0,160}}(?: [^\s<>/\"'=]{{0,80}})?(?:\s{{0,64}}(?:>{_SPACES}(?:<[^<>]{{0,160}})?)?)?)?)?"
)
_BOUNDARY: Final = r"(?=[\s/>])"

ANY_OPENING: Final = Delimiter(r"<(?P<name>[^\W\d][\w.-]{0,127})(?=[\s/>])", r"<(?:[^\W\d][\w.-]{0,127})?")

_NAME = re.compile(r"[^\s=/>\"'<]+")
_UNQUOTED = re.compile(r"(?:[^\s>/\"']|/(?!>))+")
_ENTITY = Delimiter(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});", r"&#?[0-9a-zA-Z]{0,8}")
_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}

CDATA_OPEN: Final = "<![CDATA["
CDATA_CLOSE: Final = "]]>"
_CDATA = Delimiter(rf"{_SPACES}<!\[CDATA\[", rf"{_SPACES}(?:<(?:!(?:\[(?:C(?:D(?:A(?:T(?:A)?)?)?)?)?)?)?)?")
_NEWLINE = Delimiter(r"\r?\n", r"\r?")


@cache
def opening_tag(name: str) -> str:
    """A regular expression for the start of an opening tag, up to its name's end."""
    return f"<{_PREFIX}{re.escape(name)}{_BOUNDARY}"


@cache
def closing_tag(name: str) -> str:
    """A regular expression for a closing tag."""
    return rf"</{_PREFIX}{re.escape(name)}\s{{0,64}}>"


@cache
def tag(name: str, *, closing: bool) -> Delimiter:
    """One tag as a delimiter: a whole closing tag, or an opening tag up to its name's end."""
    return Delimiter(closing_tag(name) if closing else opening_tag(name), _TAG_PART, re.IGNORECASE)


def layout(r: Reader) -> Wait:
    """Consume what stands between the literals of a pair and says nothing: white space, also as its escape."""
    yield from r.space()
    while (yield from r.sees(_ESCAPED_NEWLINE)):
        r.at += len(r"\n")
        yield from r.space()


_ESCAPED_NEWLINE = Delimiter(r"\\n", r"\\?")


@dataclass(frozen=True, slots=True)
class End:
    """Where a raw value ends.

    Args:
        delimiter: matches at the end of the value; its group `close` is what closes it.
        stops: finds the first place at which the end, or a nested tag, may be.
        what: the closing tag, for messages.
        nested: matches an opening tag of the same name inside the value, whose closing tag is content; None ignores
            them.
        verbatim: whether a newline at the value's start belongs to the value.
    """

    delimiter: Delimiter
    what: str
    nested: Delimiter | None = None
    stops: Search = re.compile(may_begin("</")).search
    verbatim: bool = False


@cache
def end_of_value(name: str, tags: tuple[str, ...], literals: tuple[str, ...] = ()) -> End:
    """The end of a value closed by `</name>` where a tag (a regular expression each) or a literal comes next."""
    follow = f"(?={_SPACES}(?:{'|'.join((*tags, *map(pattern, literals)))}))" if tags or literals else ""
    part = "|".join([_TAG_PART, *(f"{closing_tag(name)}{_SPACES}{beginnings(text)}" for text in literals)])
    return End(Delimiter(f"(?P<close>{closing_tag(name)}){follow}", part, re.IGNORECASE), f"</{name}>")


@cache
def end_of_pair(close: str, newlines: str, followers: tuple[str, ...]) -> End:
    """The end of a value closed by a literal where one of the literals `followers` comes next.

    With `newlines` "both", one newline before the literal belongs to the end; with "none", not even the one at the
    value's start is dropped.
    """
    trim = newlines == "both"
    newline = r"(?:\r?\n)?" if trim else ""
    follow = f"(?={_LAYOUT}(?:{'|'.join(map(pattern, followers))}))" if followers else ""
    part = f"{newline}(?:{beginnings(close)}|{pattern(close)}{_LAYOUT}(?:\\\\|{'|'.join(map(beginnings, followers))}))"
    first = re.escape(close[0])
    newline_stops = rf"|\n(?={first}|\Z)|\r(?=\n(?:{first}|\Z)|\Z)" if trim else ""
    stops = re.compile(may_begin(close) + newline_stops).search
    whole = Delimiter(f"{newline}(?P<close>{pattern(close)}){follow}", part)
    return End(whole, close, stops=stops, verbatim=newlines == "none")


@cache
def end_of_content(name: str) -> End:
    """The end of an element's own content: its closing tag, balanced against opening tags of the same name inside."""
    whole = Delimiter(f"(?P<close>{closing_tag(name)})", _TAG_PART, re.IGNORECASE)
    stops = re.compile(rf"<(?=[/\w{re.escape(name[0])}]|\Z)").search
    return End(whole, f"</{name}>", nested=tag(name, closing=False), stops=stops)


# ---------------------------------------------------------------- opening tags


@dataclass(slots=True)
class Opening:
    """What an opening tag said: attributes in order (None for one without a value), and whether it closed itself."""

    attributes: dict[str, str | None] = field(default_factory=dict)
    empty: bool = False


class Attributes:
    """Read the rest of an opening tag, after its name.

    Until an attribute of `known` has been seen, bad syntax means that this is no tag at all (`Decline`); after that
    it is
    `Damage`. `found`, when overridden, hears of each attribute as soon as its value has begun; `said` of each piece.
    """

    def __init__(self, r: Reader, name: str, known: Collection[str]) -> None:
        self.r, self.name, self.known = r, name, known
        self.committed = False
        self.opening = Opening()

    def found(self, key: str) -> None:
        """An attribute that commits the tag, or follows one that did, has begun."""

    def said(self, key: str, text: str) -> None:
        """A piece of an attribute's value, decoded."""

    def refuse(self, message: str) -> Exception:
        """The error for bad syntax here: damage once the tag is committed, else no tag at all."""
        at = self.r.offset
        return Damage("invalid_arguments", f"{message} in <{self.name}>", at, got=True) if self.committed else Decline()

    def need(self, what: str) -> Wait:
        """Wait for a character; the text's end inside the tag is an error."""
        yield from self.r.more()
        if self.r.at >= len(self.r.buf):
            if not self.committed:
                raise Decline
            raise Damage("truncated_call", f"the text ended {what} of <{self.name}>", self.r.offset, ended=True)

    def read(self) -> Generator[None, None, Opening]:
        """Consume the tag up to and over its `>`."""
        r = self.r
        while True:
            yield from r.space()
            yield from self.need("in the tag")
            c = r.buf[r.at]
            if c == ">":
                r.at += 1
                return self.opening
            if c == "/":
                r.at += 1
                yield from self.need("in the tag")
                if r.buf[r.at] != ">":
                    raise self.refuse("expected '>' after '/'")
                r.at += 1
                self.opening.empty = True
                return self.opening
            yield from self.attribute()

    def attribute(self) -> Wait:
        """Consume one attribute."""
        r = self.r
        key = yield from self.key()
        key = key.lower() if key not in self.known and key.lower() in self.known else key
        yield from r.space()
        yield from self.need("in the tag")
        if key in self.opening.attributes:
            raise self.refuse(f"attribute {key!r} is given twice")
        if r.buf[r.at] != "=":
            if not self.committed and key not in self.known:
                raise Decline
            self.begin(key)
            self.opening.attributes[key] = None
            return
        r.at += 1
        yield from r.space()
        yield from self.need(f"before the value of attribute {key!r}")
        self.begin(key)
        self.opening.attributes[key] = yield from self.value(key)

    def begin(self, key: str) -> None:
        """An attribute is here: commit if it is known, and say so if committed."""
        self.committed = self.committed or key in self.known
        if self.committed:
            self.found(key)

    def key(self) -> Generator[None, None, str]:
        """Consume an attribute's name."""
        r = self.r
        while True:
            found = _NAME.match(r.buf, r.at)
            if found is None or found.end() - r.at > r.limits.name:
                raise self.refuse("expected an attribute or '>'")
            if found.end() < len(r.buf):
                r.at = found.end()
                return found[0]
            if r.ended:
                r.at = len(r.buf)
                yield from self.need("in the tag")
            yield

    def value(self, key: str) -> Generator[None, None, str]:
        """Consume a quoted value, decoding its entities."""
        quote = self.r.buf[self.r.at]
        if quote not in "\"'":
            return (yield from self.unquoted(key))
        self.r.at += 1
        pieces: list[str] = []
        stop = _QUOTED_STOP[quote]
        size = 0
        while True:
            r = self.r
            found = stop(r.buf, r.at)
            end = found.start() if found else len(r.buf)
            if end > r.at:
                pieces.append(r.buf[r.at : end])
                r.at = end
                size += len(pieces[-1])
                if self.committed:
                    self.said(key, pieces[-1])
            if not self.committed and size > r.limits.name:
                raise Decline
            if found is None:
                yield from self.need(f"inside the attribute {key!r}")
                continue
            if found[0] == quote:
                r.at += 1
                return "".join(pieces)
            entity = yield from r.sees(_ENTITY)
            pieces.append(_decode(entity[0][1:-1]) if entity else "&")
            self.r.at += len(entity[0]) if entity else 1
            if self.committed:
                self.said(key, pieces[-1])

    def unquoted(self, key: str) -> Generator[None, None, str]:
        """Consume a value without quotes."""
        r = self.r
        while True:
            found = _UNQUOTED.match(r.buf, r.at)
            if found and found.end() < len(r.buf) - (r.buf[-1] == "/"):
                r.at = found.end()
                if self.committed:
                    self.said(key, found[0])
                return found[0]
            if found is None and len(r.buf) - r.at > 1:
                raise self.refuse(f"expected a value for attribute {key!r}")
            if len(r.buf) - r.at > r.limits.name:
                raise self.refuse(f"the unquoted value of attribute {key!r} is too long")
            if r.ended:
                r.at = len(r.buf)
                yield from self.need(f"inside the attribute {key!r}")
            yield


_QUOTED_STOP: Final = {'"': re.compile('["&]').search, "'": re.compile("['&]").search}


def decoded(text: str) -> str:
    """An attribute's value without its entities."""
    return _ENTITY.whole.sub(lambda found: _decode(found[0][1:-1]), text)


def _decode(entity: str) -> str:
    if entity[0] != "#":
        return _NAMED[entity]
    code = int(entity[2:], 16) if entity[1] in "xX" else int(entity[1:])
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


# ---------------------------------------------------------------- raw values


class Value:
    """Read one raw value up to its end, telling it as deltas of `key`; `text` is the value once it has been read.

    `verbatim` tells then whether it stood in CDATA, and so is meant to the letter.
    """

    def __init__(self, r: Reader, index: int, key: str, end: End) -> None:
        self.r, self.index, self.key, self.end = r, index, key, end
        self.spans: list[tuple[int, int]] = []
        self.depth = 0
        self.first_close = -1
        self.verbatim = False

    def text(self) -> str:
        """The value, byte-exact but for the newlines and CDATA marks that are not part of it."""
        raw, mark = self.r.raw(), self.r.mark
        return "".join(raw[a - mark : b - mark] for a, b in self.spans)

    def read(self) -> Generator[None, None, None]:
        """Consume the value and its closing tag.

        Raises:
            Damage: `truncated_call` where the text ends first; `ambiguous_call` where tags of its own name do not
            balance.
        """
        r = self.r
        if not self.end.verbatim and (newline := (yield from r.sees(_NEWLINE))):
            r.at = newline.end()
        if cdata := (yield from r.sees(_CDATA)):
            r.at = cdata.end()
            self.verbatim = True
            yield from self.cdata()
            if (yield from self.closed_after_cdata()):
                return
        yield from self.plain()

    def wait(self, search: Search | None = None) -> Wait:
        """Wait for more; what `search` finds nothing in goes by as part of the value."""
        r = self.r
        if r.ended:
            raise self.truncated()
        if search is not None and r.at == len(r.buf):
            r.heat(search, None, self.index, self.key)
        yield

    def truncated(self) -> Damage:
        """The error for a text that ends inside the value."""
        at = self.r.offset
        if self.first_close >= 0:
            return Damage(
                "ambiguous_call",
                f"the first {self.end.what} closes an opening tag inside the value of {self.key!r}, and none is left "
                f"to close the call: a value that holds this tag must stand in {CDATA_OPEN} … {CDATA_CLOSE}",
                self.first_close,
                ended=True,
            )
        return Damage("truncated_call", f"the text ended inside {self.key!r}, before {self.end.what}", at, ended=True)

    def plain(self) -> Wait:
        """Consume raw characters up to the end of the value."""
        r, start, stops = self.r, self.r.offset, self.end.stops
        while True:
            found = stops(r.buf, r.at)
            r.tell(found.start() if found else len(r.buf), self.index, self.key)
            if found is None:
                yield from self.wait(stops)
            elif (close := (yield from self.closes())) is not None:
                self.spans.append((start, r.offset))
                r.at = close.end("close")
                return
            else:
                r.tell(r.at + 1, self.index, self.key)

    def closes(self) -> Generator[None, None, re.Match[str] | None]:
        """What ends the value here; None where this is content."""
        r = self.r
        if self.end.nested is not None and (yield from r.sees(self.end.nested)):
            self.depth += 1
        elif close := (yield from r.sees(self.end.delimiter)):
            if self.depth == 0:
                return close
            self.depth -= 1
            if self.first_close < 0:
                self.first_close = r.offset
        return None

    def cdata(self) -> Wait:
        """Consume the inside of a CDATA section and its closing mark."""
        r, start = self.r, self.r.offset
        while True:
            end = r.buf.find(CDATA_CLOSE, r.at)
            if end >= 0:
                r.tell(end, self.index, self.key)
                self.spans.append((start, r.offset))
                r.at += len(CDATA_CLOSE)
                return
            # "]" and "]]" at the end may begin the mark
            held = 2 if r.buf.endswith("]]") else 1 if r.buf.endswith("]") else 0
            r.tell(max(len(r.buf) - held, r.at), self.index, self.key)
            yield from self.wait(_CDATA_STOP if not held else None)

    def closed_after_cdata(self) -> Generator[None, None, bool]:
        """After a CDATA section: another one, or the end, or plain content."""
        r = self.r
        while True:
            if cdata := (yield from r.sees(_CDATA)):
                r.at = cdata.end()
                yield from self.cdata()
            else:
                break
        after = _after_space(self.end)
        if close := (yield from r.sees(after)):
            r.at = close.end("close")
            return True
        return False


_CDATA_STOP = re.compile("]").search


@cache
def _after_space(end: End) -> Delimiter:
    return Delimiter(_SPACES + end.delimiter.whole.pattern, _SPACES + f"(?:{_TAG_PART})?", re.IGNORECASE)
