"""The page's own files on a bare server, with a test page and the page's policy: for tests of single modules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import SimpleHTTPRequestHandler
from threading import Thread
from typing import Any, Final

from browser import chromium, in_browser
from busy_server import BusyServer
from playwright.sync_api import Dialog, Page

from agentkit.gateway.ui.page_files import CSP, STATIC

PAGE: Final = b"""<!doctype html><html lang="en"><meta charset="utf-8">
<title>test</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="shell.css"><link rel="stylesheet" href="conversation.css">
<main><h1 class="hidden">test</h1>
<div id="conversation" role="log" aria-live="off" aria-label="Conversation" tabindex="0"></div></main>
<div id="status" role="status" class="hidden"></div></html>"""
TREE: Final = """root => {
  const names = ["href", "start", "class"];
  const attributes = (e) => names.map((name) => e.getAttribute(name) && `[${e.getAttribute(name)}]`);
  const walk = (node) => node.nodeType === 3 ? JSON.stringify(node.data)
    : `${node.localName}${attributes(node).filter(Boolean).join("")}(${[...node.childNodes].map(walk).join(" ")})`;
  return [...root.childNodes].map(walk).join(" ");
}"""
"""A function to what an element holds, as text."""


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args, directory=str(STATIC))

    def do_GET(self) -> None:
        if self.path != "/":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE)

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", CSP)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


@cache
def static_page() -> str:
    """The address of the test page; the server ends with the process."""
    server = BusyServer(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, name="static page", daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


class Modules:
    """The test page in a tab, for any thread."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda said: self.faults.append(said.text))
        page.on("dialog", self._note_dialog)
        page.on("request", lambda sent: self._note(sent.url))

    def _note_dialog(self, dialog: Dialog) -> None:
        self.faults.append("dialog")
        dialog.dismiss()

    def _note(self, url: str) -> None:
        if not url.startswith((static_page(), "data:")):
            self.faults.append(url)

    def run(self, script: str, value: Any = None) -> Any:
        """Evaluate JavaScript: a function is called with the value, and a promise is awaited."""
        return in_browser(lambda: self.page.evaluate(script, value))

    def apply(self, *events: dict[str, Any]) -> None:
        """Give events to the page's conversation, and wait until they are drawn."""
        self.run(
            "async (es) => { for (const e of es) conversation.apply(e);"
            " await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))); }",
            list(events),
        )

    def click(self, name: str, number: int = 0) -> None:
        """Press a button."""
        in_browser(lambda: self.page.get_by_role("button", name=name, exact=True).nth(number).click())

    def fill(self, label: str, text: str) -> None:
        """Write into a field."""
        in_browser(lambda: self.page.get_by_label(label).fill(text))

    def text(self, selector: str) -> list[str]:
        """The visible text of elements."""
        found: list[str] = in_browser(lambda: self.page.locator(selector).all_inner_texts())
        return found


@cache
def _opened() -> Modules:
    """A tab for all tests of this process: a new one takes a process of the browser."""
    return Modules(chromium().new_context(viewport={"width": 1000, "height": 800}).new_page())


@contextmanager
def modules(setup: str) -> Iterator[Modules]:
    """Load the test page, run a script in it, and check at the end that nothing went wrong."""

    def begin() -> Modules:
        opened = _opened()
        opened.page.goto(static_page())
        opened.page.evaluate(setup)
        return opened

    opened = in_browser(begin)
    yield opened
    faults, opened.faults = opened.faults, []
    assert faults == []
