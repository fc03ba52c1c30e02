"""The built site, opened from disk in a real browser: its search finds what people type, and pages fit the window."""

from __future__ import annotations

import html.parser
import importlib.util
import json
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
    shown = {path: path.read_text(encoding="utf-8") for path in pages}
    assert [path for path, text in shown.items() if re.search(r"<td>[^\n]*<code>[^<\n]*\\\|", text)] == []
    assert [path for path, text in shown.items() if "reference" in path.parts and "<blockquote" in text] == []


@pytest.fixture(scope="module")
def phone() -> Iterator[Browser]:
    with Browser(390, 844) as browser:
        yield browser


@pytest.fixture(scope="module")
def desk() -> Iterator[Browser]:
    with Browser(1280, 900) as browser:
        yield browser


QUERIES = {
    "retry": "retries.html",
    "rate limit": "retries.html",
    "approve": "approvals.html",
    "human in the loop": "approvals.html",
    "stop a run": "stopping.html",
    "cancel": "stopping.html",
    "pydantic model": "structured_output.html",
    "json schema": "structured_output.html",
    "streaming": "streaming.html",
    "FastAPI": "recipes/http.html",
    "vllm": "servers/vllm.html",
    "ollama": "servers/ollama.html",
    "qwen": "reference/catalogue.html",
    "which format does qwen use": "reference/catalogue.html",
    "anthropic": "models.html",
    "timeout": "limits.html",
    "mcp server": "mcp.html",
    "postgres": "stores.html",
    "test my agent": "testing.html",
    "token ids": "rollouts-tokens.html",
    "verl": "rollouts-exports.html",
    "langchain": "from_langchain.html",
    "pydantic ai": "from_pydantic_ai.html",
    "system prompt": "agents.html",
    "budget": "limits.html",
    "context window": "context.html",
    "agent timeout": "limits.html",
    "tool confirmation": "approvals.html",
    "<tool_call> in output qwen3 vllm": "servers/vllm.html",
    "switch model": "threads.html",
    "parallel tool calls": "tools-running.html",
    "logging": "hooks.html",
    "mock": "testing.html",
    "vision": "messages.html",
    "sse": "recipes/http.html",
    "save chat postgres": "stores.html",
    "abort": "stopping.html",
    "agent in the browser": "ui.html",
    "ag-ui": "ui_events.html",
    "useChat": "ui_events.html",
}
"""What people type, and the page that should be the first result."""


@in_a_browser
@pytest.mark.parametrize(("query", "page"), QUERIES.items(), ids=QUERIES)
def test_the_search_finds_the_page_for(query: str, page: str, site: Path, desk: Browser) -> None:
    """Typed into the field of the landing page, which is opened from disk."""
    desk.open((site / "index.html").as_uri())
    desk.until("document.querySelector('[data-md-component=search-query]') !== null")
    desk.run(
        "(() => { const field = document.querySelector('[data-md-component=search-query]'); field.focus();"
        f" field.value = {json.dumps(query)}; field.dispatchEvent(new Event('keyup', {{bubbles: true}})); }})()"
    )
    first = desk.until("document.querySelector('.md-search-result__link')?.href")
    assert urllib.parse.urlsplit(first).path == urllib.parse.urlsplit((site / page).as_uri()).path


SCROLLING = """[...document.querySelectorAll('.md-content pre > code')].filter(e => e.scrollWidth > e.clientWidth)
    .map(e => e.innerText.split('\\n').reduce((a, b) => a.length > b.length ? a : b))"""


@in_a_browser
def test_no_code_scrolls_at_a_desk(site: Path, pages: dict[Path, Page], desk: Browser) -> None:
    """Outside of the reference, 88 columns fit at 1280 pixels; what a program prints is wrapped."""
    found = []
    for path in pages:
        if site / "reference" not in path.parents:
            desk.open(path.as_uri())
            found += [(path.name, line) for line in desk.run(SCROLLING)]
    assert found == []


@in_a_browser
def test_no_page_is_wider_than_a_phone(pages: dict[Path, Page], phone: Browser) -> None:
    """What is wider, a table or a line of code, scrolls in its own place."""
    wide = []
    for path in pages:
        phone.open(path.as_uri())
        if (width := phone.run("document.documentElement.scrollWidth")) > 390:
            wide.append((path.name, width))
    assert wide == []
