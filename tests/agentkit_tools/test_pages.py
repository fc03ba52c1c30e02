"""Pages of many shapes: what is read from them, and that no page can make the reader work without bounds."""
# ruff: noqa: RUF001  # the pages are in several scripts

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from growth import assert_linear, cpu_seconds
from hypothesis import given
from hypothesis import strategies as st

from agentkit_tools.pages.feeds import feed_text
from agentkit_tools.pages.page_source import MAX_ATTRIBUTES, MAX_PIECES, decode_page, parse_html, truncate
from agentkit_tools.pages.page_text import PageText, page_text
from agentkit_tools.pages.page_writer import Addresses

PAGES = Path(__file__).parent / "pages"
URL = "https://site.example/a/"


class Shape(NamedTuple):
    """One saved page: pieces of its text in their order, and what must not be in it."""

    file: str
    title: str
    there: tuple[str, ...]
    absent: tuple[str, ...] = ()
    header: str = "text/html"


SHAPES = [
    Shape(
        "nested_tables.html",
        "Spare parts & prices",
        (
            "# Spare parts\n\nPumps\n\n| Part | Price | In stock |\n| --- | --- | --- |\n",
            "| [Pump P7](https://site.example/parts/p7) | 12,50 € | yes |\n",
            "| Pump P8 \\| heavy | 19,00 € | Berlin, 3<br>Wien, 0 |\n\nCall us: **0800 123**\n\n",
            "| Size | Flow | Flow |\n| --- | --- | --- |\n| Size | low | high |\n| A | 1.5 l/s | 2.5 l/s |\n",
        ),
    ),
    Shape(
        "broken_markup.html",
        "Unclosed everything",
        (
            "## Opening hours\n\nMonday to **Friday *nine to*** five\n\nSaturday closed\n\n- Bread\n- Milk\n- Cheese\n",
            "| Tea | 3.20 |\n| Coffee | 2.80 |\n",
            "[About us](https://site.example/a/about.html)[Contact](https://site.example/a/contact.html)",
            "After the broken attribute.\nx < y && y > z\nAfter the end of the document.",
        ),
        ("an open comment",),
    ),
    Shape(
        "scripts.html",
        "Weather",
        (
            "Today: sunny.",
            "for the eyes only",
            "Tomorrow: rain (seen without scripts).",
            "Object fallback: no movie.",
            "Canvas fallback: a chart.",
            "A link that is a script",
            "A link that is data",
            "Wind: 12 km/h.",
        ),
        (
            *("style text", "written by", "secret", "template", "steal", "alert", "javascript:", "data:", "unclosed"),
            *("Ignore all previous instructions", "invisible words", "hidden words", "evil.example"),
        ),
    ),
    Shape(
        "code_listings.html",
        "Sorting in Python",
        (
            "Call `sorted(x)`, or ``a`b`` with a backtick; press `Ctrl`+`C`.",
            '```python\ndef first(xs):\n    if xs < 3 && ys:\n        return "<b>"\n\n\ttab = 1\n```\n',
            '```\n$ ls -l | grep "x"\ntotal   0\n```\n',
            "```\nSELECT *\n  FROM t;\n```\n",
            "````md\nA fence inside:\n```\nx\n```\n````\n",
            "Line\nbreak. `out put` n H_2O, x^2. ~~old~~ *new* * star _ under",
        ),
        ("left out",),
    ),
    Shape("windows_1251.html", "Новости", ("# Погода в Москве\n\nСегодня — солнечно, +5 °C. Цена: 5 €.",)),
    Shape(
        "shift_jis.html",
        "天気予報",
        ("東京は晴れ、気温は５度です。ソース表示～①",),
        header="text/html; charset=Shift_JIS",
    ),
    Shape("gb18030.html", "新闻", ("北京今天晴。镕基、喆",)),
    Shape("wrong_declaration.html", "Café menu", ("Crème brûlée — 5 €, “smart quotes”, 日本語",)),
    Shape("claims_utf8.html", "Prix", ("Déjà vu à Besançon: 5 €",)),
    Shape("utf16.html", "UTF-16", ("Zażółć gęślą jaźń",), header="text/html; charset=ISO-8859-1"),
    Shape(
        "comments.html",
        "Comments",
        ("Before. Between.", "For all others.", "After end.", "Still here.", "Last."),
        ("a comment", "old browsers", "php", "-->"),
    ),
    Shape(
        "forms.html",
        "Order",
        (
            "Your order",
            "Name  [name: Ada]",
            "[size: small / medium (selected) / large]",
            "[x] As a gift",
            "[ ] Express",
            "[note: Please ring twice]",
            "[pw: ]",
            "[Buy now] [Cancel]",
        ),
        ("token-123", "secret"),
    ),
    Shape(
        "frames.html",
        "Old manual",
        (
            "[frame](https://site.example/a/menu.html)",
            "[Start page](https://site.example/text/start.html)",
            "Your browser shows no frames.",
        ),
    ),
    Shape(
        "definition_lists.html",
        "Glossary",
        (
            "Agent\n: A program that acts.\n",
            "Tool\n\nFunction\n: What it acts with.\n: Also:\n\n  hammer\n  : for nails\n",
            "Thread\n: A conversation.\n\n  It is stored.\n\nMore\n\nFolded text.\n",
            "> Quoted **words**.\n>\n> > Quoted twice.\n\n12 Main Street\n\n---\n",
            'WHO (World Health Organization), added, "short", May Day',
        ),
    ),
    Shape(
        "rtl.html",
        "الأخبار",
        (
            "# أخبار اليوم\n\nالسعر 5 USD فقط، وabc.\n",
            "עברית: [שלום](https://site.example/he/שלום), ۱۲۳\n\n- أول\n- ثان\n",
        ),
    ),
    Shape(
        "entities.html",
        "AT&T — “news”",
        (
            "Fish & chips, 3 < 5, © 2024, café, 😀 😀, &lt;not a tag&gt;\n",
            "Q&A, a&b=c\n\n[query](https://site.example/s?a=1&b=2&copy=3) <script>alert(1)</script>\n",
        ),
        ("\x00",),
    ),
    Shape(
        "svg_math.html",
        "Figures",
        (
            "Sales: Sales by year 2023: 5, 2024: 7 2024 up.\n",
            "Area $a = \\pi r^2$ of a circle.\n\nHalf 1/2, root √x.\n\n漢(kan)\n",
        ),
        ("alert", ".a{}"),
    ),
    Shape("json_ld.html", "Recipe", ("A soup for four.", '"name": "Tomato soup"', '"8 tomatoes"', "Cook for 20")),
    Shape(
        "lists.html",
        "Steps",
        (
            "3. Third\n   - inner one\n   - inner two\n     1. deepest\n4. Fourth, first paragraph.\n",
            "   Second paragraph.\n",
            "   ```\n   code in item\n   ```\n\nText directly in a list\n\n- item\n",
            "- a list in a list without item\n\n10. Ten\n9. next\n",
            "- [Next](https://docs.example/guide/next.html)\n- Top\n- [Other](https://docs.example/other/)\n- Here\n",
        ),
    ),
    Shape(
        "images.html",
        "Gallery",
        (
            "![A cat on a mat](https://site.example/a/cat.jpg)\n\nOur cat, 2024\n\nLogo: [image: Logo in the page]\n",
            "[![Enlarge](https://site.example/small.jpg)](https://site.example/big)",
            "![A picture [with brackets]](https://site.example/a/a.jpg) ![Loaded late](https://site.example/a/lazy.jpg)",
            "[video](https://site.example/a/v.mp4)",
            "Video fallback.",
            "[North](https://site.example/north)",
        ),
        ("base64", "spacer", "x.png"),
    ),
    Shape(
        "article.html",
        "A long way home - The Paper",
        ("# A long way home\n\nBy Ada Byron\n", "(https://site.example/a/story2.html)", "Related:", "Reader: Nice."),
        ("World", "Log in", "Imprint"),
    ),
    Shape(
        "div_soup.html",
        "Forum: how do I sort?",
        (
            "[Home](https://site.example/1) |",
            "ada\n\nHow do I sort",
            "x.sort()",
            "bob\n\nThat is right. It returns None.",
        ),
    ),
    Shape("empty_app.html", "App", ("You need to enable JavaScript to run this app.",)),
]


def read(shape: Shape, **options: bool) -> PageText:
    return page_text(decode_page((PAGES / shape.file).read_bytes(), shape.header), URL, **options)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.file)
def test_the_text_of_a_page_is_kept_in_its_order(shape: Shape) -> None:
    page = read(shape)
    assert page.title == shape.title
    at = 0
    for piece in shape.there:
        found = page.text.find(piece, at)
        assert found >= 0, f"{piece!r} is not in the rest:\n{page.text[at:]}"
        at = found + len(piece)
    assert [piece for piece in shape.absent if piece in page.text] == []


def test_the_whole_page_has_what_surrounds_its_main_part() -> None:
    article = next(shape for shape in SHAPES if shape.file == "article.html")
    assert read(article).omitted == "menus, headers, footers and the like"
    whole = read(article, whole=True)
    assert whole.omitted == ""
    for piece in ("[Log in](https://site.example/login)", "- [World](https://site.example/world)", "Imprint"):
        assert piece in whole.text


def test_a_page_that_is_all_menu_is_shown() -> None:
    page = page_text("<title>t</title><nav><a href=/x>Only</a></nav><aside>this</aside>", URL)
    assert page == PageText("t", "[Only](https://site.example/x)\n\nthis\n")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "feed.xml",
            (
                "All of it\n\n## [First & best](https://news.example/1)\n\nMon, 06 May 2024 10:00:00 GMT\n\n"
                "Escaped **HTML** here.\n\n## [Second <item>](https://site.example/2)\n\n"
                "Full [text](https://site.example/full).\n"
            ),
        ),
        ("atom.xml", "## [v1.2](https://site.example/releases/1.2)\n\n2024-05-06T10:00:00Z\n\n- faster\n"),
    ],
)
def test_a_feed_is_read(file: str, text: str) -> None:
    found = feed_text(decode_page((PAGES / file).read_bytes()), URL)
    assert found is not None
    assert found.text == text


def test_xml_that_is_no_feed_is_left_to_others() -> None:
    assert feed_text("<?xml version='1.0'?><urlset><url/></urlset>", URL) is None


@pytest.mark.parametrize(
    ("body", "header", "text"),
    [
        (b"caf\xe9", "text/html; charset=utf-8", "café"),
        (b"\x1b$BF|\x1b(B", "text/html; charset=ISO-2022-JP", "日"),
        ("日".encode("utf-16-le"), "text/html; charset=utf-16", "日"),
        ("日".encode("euc_jp"), 'text/html; charset="EUC-JP"', "日"),
        (b"\x93x\x94 \x80", "text/html; charset=latin1", "“x” €"),
        (b"x\x9cK", "text/html; charset=zlib", "xœK"),  # what Python knows and no browser
        (b"\xff", "text/html; charset=rot13", "ÿ"),
        (b"+ADw-b", "text/html; charset=utf-7", "+ADw-b"),
        (b"\xef\xbb\xbfok", "text/html; charset=windows-1251", "ok"),
        (b"", "", ""),
    ],
)
def test_a_page_is_decoded(body: bytes, header: str, text: str) -> None:
    assert decode_page(body, header) == text


def test_a_character_may_be_cut() -> None:
    assert decode_page("café".encode()[:-1], "text/html", cut=True) == "caf"


def test_a_page_without_head_and_body_tags_is_read() -> None:
    page = page_text("<!DOCTYPE html><title>T</title><main><h1>A</h1><p>x</main>", URL)
    assert page == PageText("T", "# A\n\nx\n")


# Bounds

MANY = 100_000
HOSTILE = {
    "billion laughs": "<!DOCTYPE html [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;'>]><p>&b;</p>end",
    "an external entity": '<!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]><p>&x;</p>end',
    "an external DTD": '<!DOCTYPE html SYSTEM "http://127.0.0.1:9/x.dtd"><p>end',
    "depth of 100,000": "<div>" * 100_000 + "end",
    "depth of 1,900": "<blockquote><b>" * 950 + "end",
    "100,000 attributes": "<p " + " ".join(f"a{n}=1" for n in range(MANY)) + ">end",
    "attributes on lines": "<p\n" + "\n".join(f"a{n}='>'" for n in range(MANY)) + ">end",
    "attributes by slashes": "<p/" + "/".join(f"a{n}" for n in range(MANY)) + ">end",
    "NUL": "e\0nd<p>\0end</p>",
    "lone surrogates": "\ud800<p title='\udfff'>end",
    "control characters": "".join(map(chr, range(32))) + "end",
    "quotes that cross": "<a ='<b =\"" * MANY + ">end",
    "comments that never end": "end" + "<!--" * MANY,
    "tags that never end": "end" + "<a" * MANY,
    "scripts that never end": "end<p>x" + "<script>" * MANY,
    "nothing but <": "<" * MANY + " end",
    "nested links": "<a href=/x>y" * 2_000 + "end",
    "nested tables": "<table><tr><th>" * 500 + "end",
    "nested lists": "<ul><li>" * 900 + "<p>x</p>" * 1_000 + "end",
    "nested formulas": "<math><msup>" * 900 + "x" * 10_000 + "end",
    "cells over everything": "<table><tr><th>" + "<tr><td colspan=1000 rowspan=65534>end" * 1_000,
    "many items": "<ol>" + "<li>x" * 10_000 + "end",
    "a URL that is none": '<a href="http://[::1">end</a><base href="http://[">',
}
"""Name, and a page that ends in `end` or has it as its only word."""


@pytest.mark.parametrize("name", HOSTILE)
def test_row_8_a_hostile_page_is_read_within_bounds(name: str) -> None:
    start = time.process_time()
    page = page_text(HOSTILE[name], URL)
    assert "end" in page.text or name == "quotes that cross"  # the browser sees one endless attribute there
    assert "root:" not in page.text
    assert "haha" not in page.text
    assert len(page.text) < 20_000_000
    assert time.process_time() - start < 10


@pytest.mark.soak
def test_row_8_a_page_of_several_mb_is_read_within_bounds() -> None:
    for page in ("<div>" * 1_000_000 + "<p>" * 1_000_000, "<p>some words " * 300_000, "<table><tr><td>x" * 300_000):
        assert page_text(f"{page}end", URL).text.rstrip(" |\n").endswith("end")


def test_a_tag_keeps_its_first_attributes() -> None:
    tag = "<a href='/kept' " + " ".join(f"data-{n}='>'" for n in range(10 * MAX_ATTRIBUTES)) + ">link</a>"
    tree = parse_html(tag)
    assert tree is not None
    assert len(tree.find(".//a").attrib) == MAX_ATTRIBUTES
    assert page_text(tag, URL).text == "[link](https://site.example/kept)\n"


def test_what_is_nested_too_deeply_keeps_its_words_and_says_so() -> None:
    page = page_text("<title>Deep</title>" + "<div>one<p>" * 5_000 + "<script>no</script>two &amp; three", URL)
    assert page.title == "Deep"
    assert page.text.endswith("one\ntwo & three")
    assert page.omitted == "all formatting, since it is nested too deeply"


def test_time_grows_linearly() -> None:
    words = "<p>Some words <b>in</b> a <a href='/p?a=1'>link</a>.</p><ul><li>x<li>y</ul>"
    block = f"{words}<table><tr><td>1<td>2<tr><td>3</table>"

    def seconds(times: int) -> float:
        return cpu_seconds(lambda: page_text(block * times, URL))

    assert_linear(seconds, 200)


@given(st.text(alphabet=st.sampled_from("<>/=\"'!-& abptdhrliux\n\0[]"), max_size=80))
def test_any_text_is_a_page(text: str) -> None:
    page_text(text, URL)


TAGS = re.findall(
    r"\w+",
    "a abbr b blockquote br button caption code dd div dl dt em h1 header hr kbd label li main nav ol p pre q section "
    "span sub sup svg table tbody td th thead tr ul",
)
PIECES = st.sampled_from([*(f"<{tag}>" for tag in TAGS), *(f"</{tag}>" for tag in TAGS), *["w"] * 40])


@given(st.lists(PIECES, max_size=14))
def test_no_word_is_lost_however_tags_are_mixed(pieces: list[str]) -> None:
    """Of all that the parser keeps; what it calls text is on the page."""
    html = "".join(f"w{n}x" if piece == "w" else piece for n, piece in enumerate(pieces))
    tree = parse_html(html)
    kept = "" if tree is None else "".join(tree.itertext())
    text = page_text(html, URL, whole=True).text
    assert [word for n in range(len(pieces)) if (word := f"w{n}x") in kept and word not in text] == []


@given(st.binary(max_size=60), st.sampled_from(["", "utf-8", "utf-16", "gbk", "shift_jis", "iso-2022-jp", "nonsense"]))
def test_any_bytes_are_a_page(body: bytes, charset: str) -> None:
    page_text(decode_page(body, f"text/html; charset={charset}"), URL)


@given(st.text(alphabet=st.characters(codec="utf-8", categories=("L", "N")), min_size=1, max_size=40))
def test_words_are_kept_exactly(words: str) -> None:
    assert page_text(f"<p>{words}</p>", URL).text == f"{words}\n"


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.file)
def test_reading_stops_in_time_with_what_was_read_until_then(shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any element of any page."""
    monkeypatch.setattr("agentkit_tools.pages.page_text.OFTEN", 1)
    html = decode_page((PAGES / shape.file).read_bytes(), shape.header)
    words = set(re.findall(r"\w+", page_text(html, "https://a.example/", whole=True).text))
    for looks in range(0, 60, 7):
        left = iter(range(looks))
        found = page_text(html, "https://a.example/", whole=True, late=lambda left=left: next(left, None) is None)
        assert set(re.findall(r"\w+", found.text)) <= words
        assert found.stopped or looks


@pytest.mark.parametrize("piece", ["<p>a", "</b>", "<!x>", "<i a1=1>", "<i\na=\nb='2'>"])
def test_a_page_of_tags_is_read_up_to_a_bound(piece: str) -> None:
    assert len(truncate(piece * 450_000)) <= len(piece) * MAX_PIECES
    assert truncate(piece * 100) == piece * 100


@pytest.mark.parametrize(
    "html",
    [
        "<base href='/12345/'>" + "<a href=x>y</a> " * 9,
        "<a href='/123456'><p>y</p><p>y</p>" + "<p>y</p>" * 7 + "</a>",  # written again in each paragraph
        "<base href='/12345/'>" + "<img alt=y src=x>" * 9,
        "<base href='/12345/'>" + "<iframe title=y src=x></iframe>" * 9,
        "<base href='/12345/'><table><tr><th>a<th>b<th>c" + ("<tr>" + "<td><a href=x>y</a>" * 3) * 3 + "</table>",
    ],
)
def test_the_addresses_of_a_page_take_no_more_than_their_room(html: str) -> None:
    room = Addresses(50)  # for two of `https://e.org/12345/x`
    page = page_text(html, "https://e.org/", addresses=room)
    assert (page.text.count("](https://e.org/12345"), page.text.count("y]"), page.unlinked) == (2, 9, 7)


def test_the_entries_of_a_feed_share_one_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentkit_tools.pages.feeds.Addresses", lambda: Addresses(50))
    words = "<description>&lt;a href=x&gt;y&lt;/a&gt;</description>"
    entry = f"<item><title>t</title><link>https://e.org/12345</link>{words}</item>"
    page = feed_text(f"<rss><channel>{entry * 3}</channel></rss>", URL)
    assert page is not None
    assert (page.text.count("](https://e.org/"), page.unlinked) == (3, 3)


def test_a_base_longer_than_any_address_is_none() -> None:
    page = "<base href='/{}/'><a href=x>y</a>"
    assert page_text(page.format("a" * 9_000), URL).text == "[y](https://site.example/a/x)\n"
    assert page_text(page.format("b"), URL).text == "[y](https://site.example/b/x)\n"
