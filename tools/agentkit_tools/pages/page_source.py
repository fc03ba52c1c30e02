"""The bytes of a page as text, and HTML as a tree, whatever the page declares, breaks or hides.

Knows encodings and lxml's parsers with their limits; knows nothing of Markdown. Nothing is executed and nothing further
is loaded: no script, style, entity, DTD or frame. lxml is loaded with this module: import it on first use.
"""

from __future__ import annotations

import codecs
import html
import itertools
import re
from collections.abc import Iterator
from typing import Final

import lxml.etree as etree
import lxml.html

MAX_PIECES: Final = 400_000  # tags and attributes of one page: at most some 150 MB as a tree, as in a page of 15 MB
MAX_ATTRIBUTES: Final = 64  # of one tag: libxml2 compares each with all others, 100,000 would take minutes

# Encodings

_OTHERWISE: Final = {  # what Python does not know, or reads in another way
    "ascii us-ascii iso-8859-1 iso8859-1 latin1 latin-1 l1 x-cp1252": "cp1252",
    "unicode-1-1-utf-8": "utf-8",
    "utf-16 unicode": "utf-16-le",
    "gb2312 gbk gb_2312-80 x-gbk chinese csgb2312": "gb18030",
    "big5 x-x-big5 cn-big5 csbig5": "big5hkscs",
    "shift_jis shift-jis sjis x-sjis windows-31j csshiftjis": "cp932",
    "x-euc-jp": "euc_jp",
    "euc-kr ks_c_5601-1987 ksc5601 korean windows-949 cseuckr": "cp949",
    "iso-8859-8-i": "iso8859_8",
    "iso-8859-9 latin5": "cp1254",
    "iso-8859-11 tis-620 windows-874": "cp874",
    "koi8 koi": "koi8_r",
    "mac x-mac-roman": "mac_roman",
}
_LIKEWISE: Final = (  # what Python reads in the same way
    "utf-8 utf8 utf-16le utf-16be gb18030 big5-hkscs ms_kanji cp932 euc-jp iso-2022-jp csiso2022jp cp949 iso-8859-2 "
    "latin2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 arabic iso-8859-7 greek iso-8859-8 hebrew iso-8859-10 "
    "iso-8859-13 iso-8859-14 iso-8859-15 latin9 iso-8859-16 koi8-r koi8-u macintosh ibm866 cp866 866"
)
ENCODINGS: Final = {
    **{label: codec for labels, codec in _OTHERWISE.items() for label in labels.split()},
    **{label: label for label in _LIKEWISE.split()},
    **{label: label for number in range(1250, 1259) for label in (f"windows-{number}", f"cp{number}")},
}
"""What pages declare, and what browsers read it as. Nothing else is looked up: Python also knows `zlib` and `rot13`."""

_BOMS: Final = (  # that of UTF-32 begins with that of UTF-16
    *((codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF8, "utf-8")),
    *((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")),
)
_META = re.compile(rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([\w:.-]{1,40})""", re.IGNORECASE)
_XML = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w:.-]{1,40})""")
_HEADER = re.compile(r"""charset\s*=\s*["']?\s*([\w:.-]{1,40})""", re.IGNORECASE)


def decode_page(body: bytes, content_type: str = "", *, cut: bool = False) -> str:
    """Decode a page: by its byte order mark, as UTF-8 if it is valid, else as declared, else as windows-1252.

    Valid UTF-8 overrules a declaration: text in another encoding is practically never valid UTF-8 by accident, and
    wrong declarations are common. What cannot be decoded becomes U+FFFD. `cut` says that the body may end
    within a character.

    >>> decode_page("café".encode("latin-1"), "text/html; charset=ISO-8859-1")
    'café'
    >>> decode_page("café".encode(), "text/html; charset=ISO-8859-1")
    'café'
    """
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    declared = list(_declared_encodings(body, content_type))
    if not (declared and declared[0] in ("iso2022_jp", "utf-16-le", "utf-16-be")):  # pure ASCII, yet not UTF-8
        declared.insert(0, "utf-8")
    for codec in (*declared, "cp1252"):
        try:
            return codecs.getincrementaldecoder(codec)("strict").decode(body, final=not cut)
        except UnicodeDecodeError:
            continue
    return body.decode(next((codec for codec in declared if codec != "utf-8"), "cp1252"), "replace")


def _declared_encodings(body: bytes, content_type: str) -> Iterator[str]:
    """The known encodings that the header and the page itself declare."""
    head = body[:4096]
    for found in (_HEADER.search(content_type), _XML.search(head), _META.search(head)):
        if found is not None:
            label = found[1] if isinstance(found[1], str) else found[1].decode("ascii", "replace")
            codec = ENCODINGS.get(label.lower())
            if codec is not None:
                yield codecs.lookup(codec).name


# HTML


def truncate(text: str) -> str:
    """Cut the page after `MAX_PIECES`: as a tree, each takes up to 400 bytes, even where it is written with three."""
    cut = next(itertools.islice(_PIECE.finditer(text), MAX_PIECES, None), None)
    return text if cut is None else text[: cut.start()]


_PIECE = re.compile(r"<[/!?a-z]|\s[a-z][\w:-]{0,40}=", re.IGNORECASE)
_TOKEN = re.compile(
    r"""<!--.*?(?:--!?>|\Z)                                            # a comment
    |<(?P<raw>script|style|textarea|title|xmp)\b.*?(?:</(?P=raw)\b|\Z)   # elements without tags in them
    |<[a-z](?P<attributes>(?:[^>=]++|=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|))*+)(?:>|\Z)
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""What may contain `<` or `>`. Each alternative ends at the end of the text, so that a search never starts twice."""
_NAME = re.compile(r"<[^\s/>]*")
_ATTRIBUTE = re.compile(r"""[^\s=>/]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]*))?""")


def parse_html(text: str) -> lxml.html.HtmlElement | None:
    """Parse HTML to a tree; None if it is empty, or nested deeper than libxml2 reads."""
    text = _TOKEN.sub(_few_attributes, _readable(text))
    parser = lxml.html.HTMLParser(
        encoding="utf-8", huge_tree=True, no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        tree = lxml.html.document_fromstring(text.encode(), parser=parser)
    except etree.LxmlError:
        return None
    return None if _gave_up(parser.error_log) else tree


def parsed_xml(text: str) -> etree._Element | None:
    """XML as a tree, its entities not expanded and its errors skipped; None if it cannot be read."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, recover=True, remove_comments=True, remove_pis=True
    )
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", _readable(text), count=1)  # it may declare another encoding
    try:
        tree = etree.fromstring(text.encode(), parser)
    except etree.LxmlError:
        return None
    return None if tree is None or _gave_up(parser.error_log) else tree


def _gave_up(errors: etree._ListErrorLog) -> bool:
    return any(error.level_name == "FATAL" and "RESOURCE_LIMIT" in error.type_name for error in errors)


def _readable(text: str) -> str:
    """Remove the characters that UTF-8 or a tree cannot contain."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _few_attributes(found: re.Match[str]) -> str:
    """A tag without its attributes after the first `MAX_ATTRIBUTES`; anything else unchanged."""
    tag = found[0]
    if found["attributes"] is None or (len(tag) <= 2 * MAX_ATTRIBUTES and tag.endswith(">")):
        return tag
    name = _NAME.findall(tag)[0]
    if not tag.endswith(">") and ">" in tag:  # a quote that is never closed: keep the text after it
        return f"{name}><pre>{html.escape(bare(tag.partition('>')[2]))}</pre>"
    kept = [name]
    for number, attribute in enumerate(_ATTRIBUTE.finditer(tag, len(kept[0]))):
        if number == MAX_ATTRIBUTES:
            return f"{' '.join(kept)}>"
        kept.append(attribute[0])
    return tag


# Text without a tree

_MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\b[^>]*>|\Z)|<[!?/a-z][^>]*(?:>|\Z)",
    re.IGNORECASE | re.DOTALL,
)


def bare(text: str) -> str:
    """Return a page's text without its markup, each tag as a line break: for a page nested too deeply for a tree."""
    return re.sub(r"\s*\n\s*", "\n", html.unescape(_MARKUP.sub("\n", text))).strip()
