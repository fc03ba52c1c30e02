"""A page's tree as Markdown: text, links, tables, lists, code and forms; nothing that a reader does not see.

Dropped: scripts, styles, templates, comments, images without a description, what is hidden by `hidden` or by an inline
style, and, unless the whole page is wanted, what surrounds its main part: menus, headers, footers. Walks the tree
without recursion. lxml is loaded with this module: import it on first use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urljoin

import lxml.etree as etree

from agentkit_tools.pages.page_source import bare, parsed
from agentkit_tools.pages.page_tables import is_data, table_lines
from agentkit_tools.pages.page_writer import Writer, code_span, fenced

Element: TypeAlias = Any  # lxml's: it ships no types

DROPPED: Final = frozenset(("script", "style", "template", "link", "meta", "colgroup", "datalist"))
SURROUNDING: Final = frozenset(("nav", "header", "footer", "aside"))
HEADINGS: Final = {f"h{n}": n for n in range(1, 7)}
BLOCKS: Final = frozenset(
    (
        *("address", "article", "aside", "body", "caption", "center", "details", "dialog", "div", "dl", "fieldset"),
        *("figcaption", "figure", "footer", "form", "frameset", "header", "hgroup", "html", "legend", "main", "nav"),
        *("noscript", "optgroup", "p", "search", "section", "summary", "table", "tbody", "tfoot"),
        *("thead", "tr", "dt"),
    )
)
MARKS: Final = {
    **dict.fromkeys(("b", "strong"), ("strong", "**", "**")),
    **dict.fromkeys(("i", "em", "cite", "dfn"), ("em", "*", "*")),
    **dict.fromkeys(("s", "del", "strike"), ("del", "~~", "~~")),
    "q": ("quote", '"', '"'),
    "button": ("button", "[", "]"),
}
CODE: Final = frozenset(("code", "kbd", "samp", "tt"))
VERBATIM: Final = frozenset(("pre", "listing", "xmp", "plaintext"))
EMBEDDED: Final = {"iframe": "src", "frame": "src", "video": "src", "audio": "src", "source": "src", "embed": "src"}
LITTLE: Final = 200  # characters: with less visible text than this, a page's data for machines are shown as well

_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)", re.IGNORECASE)
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight-source|brush:)-?\s?([\w+#-]+)")


class PageText(NamedTuple):
    """What is readable on a page.

    Args:
        title: of the page; may be empty.
        text: in Markdown.
        omitted: what was omitted although it is visible, in words; may be empty.
    """

    title: str
    text: str
    omitted: str = ""


def page_text(html: str, url: str, *, whole: bool = False) -> PageText:
    """Read a page.

    Args:
        html: the page, as broken as it may be.
        url: where it came from; links are relative to it.
        whole: also menus, headers and footers.
    """
    tree = parsed(html)
    if tree is None:
        found = re.search(r"<title[^>]*>([^<]*)", html, re.IGNORECASE)
        text = bare(html)
        deep = "all formatting, since it is nested too deeply" if text else ""
        return PageText(_line(found[1]) if found else "", text, deep)
    base = _base(tree, url)
    main, skipped, omitted = (tree, frozenset[str](), "") if whole else _main(tree)
    text = _Walk(base, skipped).run(main)
    if omitted and len(text) < LITTLE:  # what looks like a frame around the page is the page
        text, omitted = _Walk(base, frozenset()).run(tree), ""
    if len(text) < LITTLE:
        text += _for_machines(tree)
    return PageText(_title(tree), text, omitted)


def _title(tree: Element) -> str:
    found = tree.xpath("//head/title | //meta[@property='og:title']/@content | //h1")
    texts = (str(one) if isinstance(one, str) else "".join(one.itertext()) for one in found)
    return next((line for text in texts if (line := _line(text))), "")


def _line(text: str) -> str:
    return " ".join(text.split())[:300]


def _base(tree: Element, url: str) -> str:
    given = tree.xpath("string(//base/@href)")
    return absolute(url, given) or url


def absolute(base: str, target: str) -> str | None:
    """An absolute http, https or mailto URL; None for anything else."""
    target = "".join(target.split()) if "\n" in target else target.strip()
    if not target or target.startswith("#"):
        return None
    try:
        url = urljoin(base, target)
    except ValueError:
        return None
    url = url.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    return url if re.match(r"(?i)(https?://|mailto:)[^\x00-\x1f<>]+$", url) else None


def _main(tree: Element) -> tuple[Element, frozenset[str], str]:
    """The main part of a page, the elements to omit in it, and in words what is omitted by both."""
    words = "menus, headers, footers and the like"
    marked = tree.xpath("//main | //*[@role='main']") or tree.xpath("(//article)[1]")
    several = len(marked) > 1 or (
        marked and marked[0].tag == "article" and marked[0].xpath("boolean(following::article)")
    )
    if marked and not several:
        size, total = (
            len(one.xpath("normalize-space(string())")) for one in (marked[0], next(tree.iter("body"), tree))
        )
        if size > 500 or 3 * size > total:
            return marked[0], frozenset(("nav",)), words if size < total else ""
    around = tree.xpath("boolean(//nav | //header | //footer | //aside)")
    return tree, SURROUNDING, words if around else ""


def _for_machines(tree: Element) -> str:
    """The description and the JSON-LD of a page, whose own text is written by a script."""
    parts = [str(one) for one in tree.xpath("//meta[@name='description']/@content")[:1]]
    for script in tree.xpath("//script[@type='application/ld+json']")[:20]:
        try:
            data = json.loads(script.text or "")
        except (ValueError, RecursionError):
            continue  # not data; a browser ignores it as well
        parts.append(fenced(json.dumps(data, indent=1, ensure_ascii=False), "json"))
    return "".join(f"\n{part}\n" for part in parts)


@dataclass(slots=True)
class _Walk:
    """One walk over a tree. `_ends` are what is to be done at the end of each open element."""

    base: str
    skipped: frozenset[str]
    in_cell: bool = False
    out: Writer = field(default_factory=Writer)
    _numbers: list[int | None] = field(default_factory=list)
    _top: Element | None = None

    def run(self, top: Element) -> str:
        """The Markdown of an element."""
        self._top = top
        walk = etree.iterwalk(top, events=("start", "end"))
        ends: list[Callable[[], None] | None] = []
        for event, element in walk:
            if event == "start":
                end, inside = self.start(element)
                ends.append(end)
                if not inside:
                    walk.skip_subtree()
                elif element.text:
                    self.out.words(element.text)
            else:
                end = ends.pop()
                if end is not None:
                    end()
                if element.tail and element is not top:
                    self.out.words(element.tail)
        return self.out.text

    def start(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        """Write an element's beginning: what to do at its end, and whether to go into it."""
        tag = element.tag if isinstance(element.tag, str) else ""
        if not tag or tag in DROPPED or (tag in self.skipped and not _titled(element)) or hidden(element):
            return None, False
        if tag == "title" and element.getparent() is not None and element.getparent().tag == "head":
            return None, False  # not all that the parser puts into the head belongs there, but this does
        simple = _SIMPLE.get(tag)
        if simple is not None:
            return simple(self, element)
        if tag in BLOCKS:
            self.out.paragraph()
            return self.out.paragraph, True
        if tag in MARKS:
            self.out.mark(*MARKS[tag])
            return self.out.unmark, True
        _before(element, self.out)
        return None, True

    # One kind of element each

    def heading(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        self.out.paragraph()
        return lambda: self.out.heading(HEADINGS[element.tag]), True

    def link(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        url = absolute(self.base, element.get("href", ""))
        if url is None:
            return None, True
        self.out.mark("link", "[", f"]({url})")
        return self.out.unmark, True

    def image(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        words = _line(element.get("alt") or "")
        if words:
            url = absolute(self.base, element.get("data-src") or element.get("src") or "")
            self.out.raw(f"![{words}]({url})" if url else f"[image: {words}]")
        return None, False

    def embedded(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        url = absolute(self.base, element.get(EMBEDDED[element.tag], ""))
        if url:
            self.out.raw(f" [{_line(element.get('title') or '') or element.tag}]({url}) ")
        return None, element.tag not in ("iframe", "frame")  # the parser puts a picture's image into its source

    def area(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        url, words = absolute(self.base, element.get("href", "")), _line(element.get("alt") or "")
        if url and words:
            self.out.raw(f" [{words}]({url}) ")
        return None, False

    def line_break(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        self.out.raw("\n")
        return None, False

    def rule(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        self.out.paragraph()
        self.out.block("---")
        return None, False

    def code(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        text = " ".join(visible(element).split())
        if text:
            self.out.raw(code_span(text))
        return None, False

    def verbatim(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        self.out.paragraph()
        text = visible(element).replace("\r\n", "\n").rstrip()
        text = text.removeprefix("\n")
        if text:
            self.out.block(fenced(text, _language(element)))
        return None, False

    def items(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        start = element.get("start", "1")
        ordered = element.tag == "ol"
        self._numbers.append((int(start) if re.fullmatch(r"-?[0-9]{1,9}", start) else 1) if ordered else None)
        self.out.paragraph()
        if element.getparent() is not None and element.getparent().tag == "li":
            self.out.close_up()

        def end() -> None:
            self.out.paragraph()
            self._numbers.pop()

        return end, True

    def item(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        number = self._numbers[-1] if self._numbers else None
        value = element.get("value", "")
        if number is not None:
            number = int(value) if re.fullmatch(r"-?[0-9]{1,9}", value) else number
            backwards = element.getparent() is not None and element.getparent().get("reversed") is not None
            self._numbers[-1] = number - 1 if backwards else number + 1
        first = "- " if number is None else f"{number}. "
        if element.getprevious() is not None and element.getprevious().tag == "li":
            self.out.close_up()
        self.out.indent(first, " " * len(first))
        return self.out.dedent, True

    def definition(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        self.out.paragraph()
        self.out.close_up()
        self.out.indent(": ", "  ")
        return self.out.dedent, True

    def quotation(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        self.out.indent("> ", "> ")
        return self.out.dedent, True

    def table(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        self.out.paragraph()
        if self.in_cell or not is_data(element):
            return self.out.paragraph, True
        captions = element.findall("caption")
        for caption in captions:
            self.out.words(visible(caption))
            self.out.paragraph()
        lines = table_lines(element, self.cell)
        if lines:
            self.out.block("\n".join(lines))
        return None, False

    def cell(self, element: Element) -> str:
        """What a table's cell contains, in one line."""
        lines = [line for line in _Walk(self.base, self.skipped, in_cell=True).run(element).split("\n") if line]
        return "<br>".join(lines).replace("|", "\\|")

    def part_of_row(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        if not self.in_cell:
            self.out.paragraph()
            return self.out.paragraph, True
        if element.getprevious() is not None and element is not self._top:  # a table within a cell: its rows are lines
            self.out.words(", ")
        return None, True

    def frameless(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        self.out.paragraph()
        words = bare(element.text or "")  # the parser takes its markup for text
        if words:
            self.out.block(words)
        return None, False

    def abbreviation(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        title = _line(element.get("title") or "")
        return (lambda: self.out.words(f" ({title})")) if title else None, True

    def raised(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        if len(element) == 0 and (element.text or "").strip():
            self.out.raw("^" if element.tag == "sup" else "_")
        return None, True

    def field(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        text = _field(element)
        if text:
            self.out.raw(f" {text} ")
        return None, False

    def formula(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        if next(element.iterancestors("math"), None) is not None:
            return None, True
        tex = element.xpath("string(.//annotation[contains(@encoding, 'tex')])") or element.get("alttext") or ""
        if tex.strip():
            self.out.raw(f"${' '.join(tex.split())}$")
        return None, not tex.strip()


Start = Callable[[_Walk, Element], tuple[Callable[[], None] | None, bool]]

_SIMPLE: Final[dict[str, Start]] = {
    **dict.fromkeys(HEADINGS, _Walk.heading),
    **dict.fromkeys(EMBEDDED, _Walk.embedded),
    **dict.fromkeys(CODE, _Walk.code),
    **dict.fromkeys(VERBATIM, _Walk.verbatim),
    **dict.fromkeys(("ul", "ol", "menu", "dir"), _Walk.items),
    **dict.fromkeys(("input", "select", "textarea"), _Walk.field),
    **dict.fromkeys(("sub", "sup"), _Walk.raised),
    **dict.fromkeys(("abbr", "acronym"), _Walk.abbreviation),
    **dict.fromkeys(("img", "amp-img"), _Walk.image),
    "a": _Walk.link,
    "area": _Walk.area,
    "br": _Walk.line_break,
    "hr": _Walk.rule,
    "li": _Walk.item,
    "dd": _Walk.definition,
    "blockquote": _Walk.quotation,
    "table": _Walk.table,
    "math": _Walk.formula,
    "td": _Walk.part_of_row,
    "th": _Walk.part_of_row,
    "noframes": _Walk.frameless,
}


def hidden(element: Element) -> bool:
    """Whether a reader does not see an element, as far as it says so itself."""
    if element.get("hidden") is not None or _HIDDEN.search(element.get("style") or ""):
        return True
    if element.get("aria-hidden") != "true":
        return False
    previous = element.getprevious()  # of a formula: this is its drawn copy
    return previous is not None and previous.find(".//math") is not None


def _titled(element: Element) -> bool:
    """Whether a header contains the title of the page."""
    outermost = element.tag == "header" and next(element.iterancestors("header"), None) is None
    return outermost and element.find(".//h1") is not None


def visible(element: Element) -> str:
    """An element's text, its line breaks kept."""
    parts: list[str] = []
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, one in walk:
        if event == "end":
            parts.append(one.tail or "" if one is not element else "")
        elif one.tag in DROPPED or hidden(one):
            walk.skip_subtree()
        else:
            parts.append("\n" if one.tag == "br" else one.text or "")
    return "".join(parts)


_APART: Final = frozenset(("title", "desc", "text"))  # of a drawing
_BETWEEN: Final = {"mfrac": "/", "msup": "^", "msub": "_"}


def _before(element: Element, out: Writer) -> None:
    """What the markup of a formula or a drawing says without words."""
    parent, previous = element.getparent(), element.getprevious()
    if parent is not None and parent.tag in _BETWEEN and previous is not None and previous.getprevious() is None:
        out.raw(_BETWEEN[parent.tag])
    if element.tag in _APART:
        out.words(" ")
    if element.tag == "msqrt":
        out.raw("√")


def _language(element: Element) -> str:
    """The language that a listing declares."""
    around = (element, *element.iterchildren("code"), element.getparent())
    classes = " ".join(one.get("class") or "" for one in around if one is not None)
    found = _LANGUAGE.search(classes)
    return found[1] if found else ""


def _field(element: Element) -> str:
    """A form's field as words; nothing for a hidden one, and never a password."""
    name = _line(element.get("name") or element.get("placeholder") or element.get("aria-label") or element.tag)
    kind = (element.get("type") or "text").lower()
    if element.tag == "select":
        options = [
            _line(visible(one)) + (" (selected)" if one.get("selected") is not None else "")
            for one in element.iter("option")
        ]
        return f"[{name}: {' / '.join(options)}]"
    if element.tag == "textarea":
        return f"[{name}: {_line(visible(element))}]"
    value = _line(element.get("value") or "")
    match kind:
        case "hidden":
            return ""
        case "checkbox" | "radio":
            return "[x]" if element.get("checked") is not None else "[ ]"
        case "submit" | "button" | "reset":
            return f"[{value or kind}]"
        case "image":
            return f"[{_line(element.get('alt') or '') or name}]"
        case "password":
            return f"[{name}: ]"
        case _:
            return f"[{name}: {value}]"
