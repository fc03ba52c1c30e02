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
from typing import Final, NamedTuple, TypeAlias

import lxml.etree as etree

from agentkit_tools.pages.page_elements import (
    DROPPED,
    MAX_BASE,
    Element,
    absolute,
    before,
    form_field,
    hidden,
    language,
    one_line,
    titled,
    visible,
)
from agentkit_tools.pages.page_source import bare, parse_html
from agentkit_tools.pages.page_tables import is_data, table_lines
from agentkit_tools.pages.page_writer import Addresses, Writer, code_span, fence_code

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
OFTEN: Final = 500  # elements' beginnings and ends, about 5 ms, after which the time is looked at
LITTLE: Final = 200  # characters: with less visible text than this, a page's data for machines are shown as well


class PageText(NamedTuple):
    """The readable content of a page.

    Args:
        title: of the page; may be empty.
        text: in Markdown.
        omitted: the visible parts that were omitted, in words; may be empty.
        stopped: whether reading was stopped, so that the rest of the page is missing.
        unlinked: the number of links without their addresses, because those of the page are too long together.
    """

    title: str
    text: str
    omitted: str = ""
    stopped: bool = False
    unlinked: int = 0


Late: TypeAlias = Callable[[], bool]
"""Whether it is time to stop."""


def never() -> bool:
    """There is no hurry."""
    return False


def page_text(
    html: str, url: str, *, whole: bool = False, late: Late = never, addresses: Addresses | None = None
) -> PageText:
    """Read a page.

    Args:
        html: the page, as broken as it may be.
        url: where it came from; links are relative to it.
        whole: also menus, headers and footers.
        late: asked now and then; when it returns True, reading stops with the text so far.
        addresses: the room for those of the links, shared with other pages; by default that of one page.
    """
    tree = parse_html(html)
    if tree is None:
        found = re.search(r"<title[^>]*>([^<]*)", html, re.IGNORECASE)
        text = bare(html)
        deep = "all formatting, since it is nested too deeply" if text else ""
        return PageText(one_line(found[1]) if found else "", text, deep)
    base = _base(tree, url)
    main, skipped, omitted = (tree, frozenset[str](), "") if whole else _main(tree)
    out = Writer(addresses=addresses or Addresses())
    text = _Walk(base, skipped, late, out).run(main)
    if omitted and len(text) < LITTLE:  # what looks like a frame around the page is the page
        out = Writer(addresses=out.addresses)
        text, omitted = _Walk(base, frozenset(), late, out).run(tree), ""
    if len(text) < LITTLE:
        text += _for_machines(tree)
    return PageText(_title(tree), text, omitted, late(), out.addresses.omitted)


def _title(tree: Element) -> str:
    found = tree.xpath("//head/title | //meta[@property='og:title']/@content | //h1")
    texts = (str(one) if isinstance(one, str) else "".join(one.itertext()) for one in found)
    return next((line for text in texts if (line := one_line(text))), "")


def _base(tree: Element, url: str) -> str:
    given = absolute(url, tree.xpath("string(//base/@href)"))
    return given if given and len(given) <= MAX_BASE else url


def _main(tree: Element) -> tuple[Element, frozenset[str], str]:
    """Return the main part of a page, the elements to omit in it, and all omissions in words."""
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
        parts.append(fence_code(json.dumps(data, indent=1, ensure_ascii=False), "json"))
    return "".join(f"\n{part}\n" for part in parts)


@dataclass(slots=True)
class _Walk:
    """One walk over a tree. `_ends` are the functions to call at the end of each open element."""

    base: str
    skipped: frozenset[str]
    late: Late
    out: Writer
    in_cell: bool = False
    _numbers: list[int | None] = field(default_factory=list)
    _top: Element | None = None

    def run(self, top: Element) -> str:
        """The Markdown of an element."""
        self._top = top
        walk = etree.iterwalk(top, events=("start", "end"))
        ends: list[Callable[[], None] | None] = []
        for number, (event, element) in enumerate(walk):
            if number % OFTEN == 0 and self.late():
                break
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
        for end in filter(None, reversed(ends)):  # of what is open when it has to stop
            end()
        return self.out.text

    def start(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        """Write an element's beginning: what to do at its end, and whether to go into it."""
        tag = element.tag if isinstance(element.tag, str) else ""
        if not tag or tag in DROPPED or (tag in self.skipped and not titled(element)) or hidden(element):
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
        before(element, self.out)
        return None, True

    # One kind of element each

    def heading(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        self.out.paragraph()
        return lambda: self.out.heading(HEADINGS[element.tag]), True

    def link(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        url = absolute(self.base, element.get("href", ""))
        if url is None:
            return None, True
        self.out.mark("link", "[", url)
        return self.out.unmark, True

    def image(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        words = one_line(element.get("alt") or "")
        if words:
            url = absolute(self.base, element.get("data-src") or element.get("src") or "")
            self.out.raw(f"![{words}{self.out.addresses.end(url)}" if url else f"[image: {words}]")
        return None, False

    def embedded(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        url = absolute(self.base, element.get(EMBEDDED[element.tag], ""))
        if url:
            words = one_line(element.get("title") or "") or element.tag
            self.out.raw(f" [{words}{self.out.addresses.end(url)} ")
        return None, element.tag not in ("iframe", "frame")  # the parser puts a picture's image into its source

    def area(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        url, words = absolute(self.base, element.get("href", "")), one_line(element.get("alt") or "")
        if url and words:
            self.out.raw(f" [{words}{self.out.addresses.end(url)} ")
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
            self.out.block(fence_code(text, language(element)))
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
        """Return the content of a table's cell in one line."""
        out = Writer(addresses=self.out.addresses)
        text = _Walk(self.base, self.skipped, self.late, out, in_cell=True).run(element)
        lines = [line for line in text.split("\n") if line]
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
        title = one_line(element.get("title") or "")
        return (lambda: self.out.words(f" ({title})")) if title else None, True

    def raised(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        if len(element) == 0 and (element.text or "").strip():
            self.out.raw("^" if element.tag == "sup" else "_")
        return None, True

    def field(self, element: Element) -> tuple[Callable[[], None] | None, bool]:
        text = form_field(element)
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
