"""The page itself: its files, and the headers that bound what a browser lets it do."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final

from agentkit.gateway.client_request import RequestRefused

STATIC: Final = Path(__file__).with_name("static")

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
"""What the page may load and do: its own files and its own API."""

SAFE_HEADERS: Final = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Of every response."""

_KINDS: Final = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
    ".ico": b"image/x-icon",
    ".json": b"application/json",
    ".txt": b"text/plain; charset=utf-8",
}


class PageFiles:
    """The files that `STATIC` has now; no other is served later."""

    def __init__(self) -> None:
        self._files = {
            file.relative_to(STATIC).as_posix(): (file, _KINDS[file.suffix])
            for file in STATIC.rglob("*")
            if file.suffix in _KINDS and file.is_file()
        }

    def read(self, path: str) -> tuple[bytes, bytes, bytes]:
        """A file's content type, its etag and its bytes.

        Args:
            path: of the request: `/`, or `/ui/` and a file's name.

        Raises:
            RequestRefused: there is no such file (status 404).
        """
        found = self._files.get("index.html" if path == "/" else path.removeprefix("/ui/"))
        if found is None:
            raise RequestRefused(404, f"there is nothing at {path[:100]!r}", "not_found")
        file, kind = found
        content = file.read_bytes()
        return kind, b'"' + sha256(content).hexdigest()[:32].encode() + b'"', content
