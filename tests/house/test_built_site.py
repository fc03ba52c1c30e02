"""The built site, opened from disk: in a real browser its search works, and no page is wider than a phone."""

from __future__ import annotations

import html.parser
import importlib.util
import os
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("mkdocs", "material", "mkdocstrings"))), reason="the extra `docs`"
    ),
]
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: chromium)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make docs` builds it: each warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    return folder


class Page(html.parser.HTMLParser):
    """What a page loads, links to, and can be linked by."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in ("script", "img", "iframe", "source") and "src" in found:
            self.loaded.append(found["src"])
        elif tag == "link" and found.get("rel") != "canonical" and "href" in found:
            self.loaded.append(found["href"])


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}


def test_every_link_leads_to_a_file_and_to_an_anchor_in_it(pages: dict[Path, Page]) -> None:
    """Without a server: a link to a folder would show its files."""
    lost = []
    for path, page in pages.items():
        for link in page.links:
            address = urllib.parse.urlsplit(link)
            if address.scheme or address.netloc:
                continue
            there = (path.parent / urllib.parse.unquote(address.path)).resolve() if address.path else path
            anchor = urllib.parse.unquote(address.fragment)
            known = anchor in pages[there].ids or not anchor if there in pages else there.is_file()
            if not known:
                lost.append((path.name, link))
    assert lost == []


def test_no_page_loads_anything_from_elsewhere(pages: dict[Path, Page]) -> None:
    assert [(path.name, one) for path, page in pages.items() for one in page.loaded if "//" in one] == []


def test_markdown_is_not_shown_as_it_is_written(pages: dict[Path, Page]) -> None:
    """An escaped | in a table's code, and an example of a docstring, which Markdown takes for a quotation."""
    shown = {path.name: path.read_text(encoding="utf-8") for path in pages}
    assert [name for name, text in shown.items() if re.search(r"<td>[^\n]*<code>[^<\n]*\\\|", text)] == []
    assert [path.name for path in pages if path.parent.name == "reference" and "<blockquote" in shown[path.name]] == []


@pytest.fixture(scope="module")
def phone() -> Iterator[Browser]:
    with Browser(390, 844) as browser:
        yield browser


@in_a_browser
def test_the_search_works_from_disk(site: Path) -> None:
    """Typed into the field of the first page; its first result is opened, and is about what was searched."""
    with Browser(1280, 900) as browser:
        browser.open((site / "index.html").as_uri())
        browser.until("document.querySelector('[data-md-component=search-query]') !== null")
        browser.run(
            "(() => { const field = document.querySelector('[data-md-component=search-query]'); field.focus();"
            " field.value = 'idempotency_key'; field.dispatchEvent(new Event('keyup', {bubbles: true})); })()"
        )
        first = browser.until("document.querySelector('.md-search-result__link')?.href")
        assert first.startswith(site.as_uri())
        browser.open(first)
        assert "idempotency_key" in browser.until("document.querySelector('article')?.innerText")


@in_a_browser
def test_no_page_is_wider_than_a_phone(pages: dict[Path, Page], phone: Browser) -> None:
    """What is wider, a table or a line of code, scrolls in its own place."""
    wide = []
    for path in pages:
        phone.open(path.as_uri())
        if (width := phone.run("document.documentElement.scrollWidth")) > 390:
            wide.append((path.name, width))
    assert wide == []
