"""Tags and attributes read as they stream, as models write them rather than as XML requires.

Knows the reader, no format. Attribute values are entity-decoded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Wait, beginnings

CDATA_OPEN: Final = "<![CDATA["
CDATA_CLOSE: Final = "]]>"
SPACES: Final = r"\s{0,1024}"  # white space skipped before a delimiter; any more is content
PREFIX: Final = r"(?:[^\W\d][\w.-]{0,31}+:)?"  # a namespace
TAG_PART: Final = (
    rf"<(?>/?[^\s<>/\"'=]{{0,160}}+(?> [^\s<>/\"'=]{{0,80}}+)?(?>\s{{0,64}}+(?>>{SPACES}+(?><[^<>]{{0,160}}+)?)?)?)?"
)
_BOUNDARY: Final = r"(?=[\s/>])"
AFTER_NAME: Final = ",;"  # after a tag's name, as if attributes were a list

ANY_OPENING: Final = Delimiter(r"<(?P<name>[^\W\d][\w.-]{0,127})(?=[\s/>])", r"<(?:[^\W\d][\w.-]{0,127})?")

_NAME = re.compile(r"[^\s=/>\"'<]+")
_ENTITY = Delimiter(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});", r"&#?[0-9a-zA-Z]{0,8}")
_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}

_cached = lru_cache(4096)  # names of tools and parameters, which an application may make without end


@_cached
def name_pattern(name: str) -> str:
    """Return a regular expression for a tag's name: models mix up hyphens and underscores."""
    return re.sub(r"\\?[-_]", "[-_]", re.escape(name))


def fold_name(name: str) -> str:
    """Return a tag's name in lower case, with underscores for hyphens."""
    return name.lower().replace("-", "_")


@_cached
def opening_tag(name: str) -> str:
    """Return a regular expression for the start of an opening tag, up to its name's end."""
    return f"<{PREFIX}{name_pattern(name)}{_BOUNDARY}"


@_cached
def closing_tag(name: str) -> str:
    """Return a regular expression for a closing tag."""
    return rf"</{PREFIX}{name_pattern(name)}\s{{0,64}}>"


@_cached
def tag(name: str, *, closing: bool) -> Delimiter:
    """Return one tag as a delimiter: a whole closing tag, or an opening tag up to its name's end."""
    return Delimiter(closing_tag(name) if closing else opening_tag(name), TAG_PART, re.IGNORECASE)


@_cached
def closing(name: str) -> Delimiter:
    """Return the delimiter of a closing tag without a namespace: no other tag begins it, not even at the text's end."""
    part = re.sub(r"\\?[-_]", "[-_]", beginnings(f"</{name} >"))
    return Delimiter(rf"</{name_pattern(name)}\s{{0,64}}>", part, re.IGNORECASE)


def tag_of(text: str) -> str:
    """Return the name of the plain opening tag that a literal is or starts, as `<function=` does; empty without one."""
    found = _BEGUN_TAG(text.strip())
    return found[1] if found else ""


_BEGUN_TAG = re.compile(r"<([a-zA-Z][\w.:|-]*)[>=]").match


def skip_layout(r: Reader) -> Iterable[None]:
    """Consume white space between the literals of a pair, escaped or not."""
    nothing = r.at < len(r.buf) and r.buf[r.at] != "\\" and not r.buf[r.at].isspace()
    return () if nothing else _skip_layout(r)


def _skip_layout(r: Reader) -> Wait:
    yield from r.space()
    while (yield from r.sees(_ESCAPED_NEWLINE)):
        r.at += len(r"\n")
        yield from r.space()


_ESCAPED_NEWLINE = Delimiter(r"\\n", r"\\?")


# ---------------------------------------------------------------- opening tags


@dataclass(slots=True)
class Opening:
    """An opening tag's content: attributes in order (None for one without a value), and whether it closed itself."""

    attributes: dict[str, str | None] = field(default_factory=dict)
    empty: bool = False


class Attributes:
    """Read the rest of an opening tag, after its name.

    Until an attribute of `known` has been seen, bad syntax means that this is not a tag (`Decline`); after that it is
    `Damage`. Subclasses may override `on_attribute`, called for each attribute as soon as its value starts, and, if it
    `streams`, `on_piece`, called for each piece of a value.
    """

    streams = False

    def __init__(self, r: Reader, name: str, known: Collection[str]) -> None:
        self.r, self.name, self.known = r, name, known
        self.committed = False
        self.opening = Opening()

    def on_attribute(self, key: str) -> None:
        """Called when an attribute that commits the tag, or follows one that did, has started."""

    def on_piece(self, key: str, text: str) -> None:
        """Called with each piece of an attribute's value, decoded."""

    def refuse(self, message: str) -> Exception:
        """Return the error for bad syntax here: damage once the tag is committed, otherwise `Decline`."""
        if not self.committed:
            return Decline()
        return Damage("invalid_arguments", f"{message} in <{self.name}>", self.r.offset, got=True, in_tag=True)

    def nothing_here(self) -> bool:
        """Return True if nothing has arrived here yet, or white space is here."""
        return self.r.at >= len(self.r.buf) or self.r.buf[self.r.at].isspace()

    def need(self, what: str) -> Iterable[None]:
        """Wait for a character; the text's end inside the tag is an error."""
        return () if self.r.at < len(self.r.buf) else self._arrival(what)

    def _arrival(self, what: str) -> Wait:
        yield from self.r.more()
        if self.r.at >= len(self.r.buf):
            if not self.committed:
                raise Decline
            raise Damage("truncated_call", f"the text ended {what} of <{self.name}>", self.r.offset, ended=True)

    def read(self) -> Generator[None, None, Opening]:
        """Consume the tag up to and including its `>`."""
        r = self.r
        while True:
            if self.nothing_here():
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
        if self.nothing_here():
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
        if self.nothing_here():
            yield from r.space()
            yield from self.need(f"before the value of attribute {key!r}")
        self.begin(key)
        self.opening.attributes[key] = yield from self.value(key)

    def begin(self, key: str) -> None:
        """Commit the tag if this attribute is known; if committed, report the attribute."""
        self.committed = self.committed or key in self.known
        if self.committed:
            self.on_attribute(key)

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

    def check_value(self, key: str, written: str) -> str:
        """Return a value as it is written, unless the end of its own element is in it."""
        if f"</{self.name}" in written:
            raise self.refuse(f"write '&lt;' for '<' in attribute {key!r}: it contains '</{self.name}'")
        return written

    def value(self, key: str) -> Generator[None, None, str]:
        """Consume a quoted value, decoding its entities."""
        r = self.r
        quote = r.buf[r.at]
        if quote not in "\"'":
            raise self.refuse(f"expected quotes around the value of attribute {key!r}")
        r.at += 1
        start, stop = r.offset, _QUOTED_STOP[quote]
        size, plain = 0, True
        while True:
            found = stop(r.buf, r.at)
            if (end := found.start() if found else len(r.buf)) > r.at:
                if self.streams and self.committed:
                    self.on_piece(key, r.buf[r.at : end])
                size += end - r.at
                r.at = end
            if not self.committed and size > r.limits.name:
                raise Decline
            if found is None:
                if r.ended:
                    yield from self.need(f"inside the attribute {key!r}")
                yield
                continue
            if found[0] == quote:
                text = self.check_value(key, r.text(start, r.offset))
                r.at += 1
                return text if plain else decode_entities(text)
            plain = False
            entity = yield from r.sees(_ENTITY)
            if self.streams and self.committed:
                self.on_piece(key, _decode(entity[0][1:-1]) if entity else "&")
            r.at += len(entity[0]) if entity else 1


_QUOTED_STOP: Final = {'"': re.compile('["&]').search, "'": re.compile("['&]").search}


def decode_entities(text: str) -> str:
    """Return an attribute's value with its entities decoded."""
    return _ENTITY.regex.sub(lambda found: _decode(found[0][1:-1]), text)


def _decode(entity: str) -> str:
    if entity[0] != "#":
        return _NAMED[entity]
    code = int(entity[2:], 16) if entity[1] in "xX" else int(entity[1:])
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
