"""A web site on this machine: given answers by path, over a real socket, from threads of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from threading import Thread
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

from busy_server import BusyServer


class Page(NamedTuple):
    """One answer; a dict or list as body is sent as JSON."""

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = {"Content-Type": "text/html"}


class Visit(NamedTuple):
    """One request that came in; the headers' names in lower case, the body as parsed JSON."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


Site = Mapping[str, Page | Sequence[Page] | Callable[[Visit], Page]]


class SiteServer:
    """A context manager. Of several answers of a path each is given once, the last one again and again."""

    def __init__(self, site: Site, host: str = "127.0.0.1") -> None:
        self.visits: list[Visit] = []
        self._site = dict(site)
        self._given: dict[str, int] = {}
        self._server = BusyServer((host, 0), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://{host}:{self.port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, visit: Visit) -> Page:
        self.visits.append(visit)
        answers = self._site.get(visit.path, Page(b"no such page", 404))
        if callable(answers):
            return answers(visit)
        if isinstance(answers, Page):
            return answers
        number = self._given[visit.path] = self._given.get(visit.path, 0) + 1
        return answers[min(number, len(answers)) - 1]


def _handler(site: SiteServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            sent = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = json.loads(sent) if sent else None
            page = site.answer(Visit(self.command, url.path, dict(parse_qsl(url.query)), headers, body))
            content = page.body if isinstance(page.body, bytes) else json.dumps(page.body).encode()
            if not isinstance(page.body, bytes) and page.headers == Page().headers:
                page = page._replace(headers={"Content-Type": "application/json"})
            self.send_response(page.status)
            for name, value in {"Content-Length": str(len(content)), **page.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(content)
            except ConnectionError:
                self.close_connection = True  # the client has read enough, which is what some tests want

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    return Handler
