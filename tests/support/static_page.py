"""The page's own files on a bare server, with a test page and the page's policy: for tests of single modules."""

from __future__ import annotations

from functools import cache
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import agentkit.gateway

STATIC: Final = Path(agentkit.gateway.__file__).parent / "ui" / "static"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
PAGE: Final = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>test</title>
<link rel="stylesheet" href="shell.css"><link rel="stylesheet" href="conversation.css">
<main><h1 class="hidden">test</h1><div id="conversation" role="log" aria-live="off" aria-label="Conversation" tabindex="0"></div></main>
<div id="status" role="status" class="hidden"></div></html>"""


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
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


@cache
def static_page() -> str:
    """The address of the test page; the server ends with the process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, name="static page", daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"
