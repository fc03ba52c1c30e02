"""Attacks on the page's server: by other web sites, by clients that send nonsense, by floods."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fake_upstream import until
from page_shop import Shop, turn
from ui_kit import HeldModel, PageClient, calls_of, page

from agentkit import Agent
from agentkit.errors import ConfigError
from agentkit.gateway.routes import key_from
from agentkit.gateway.ui import code_tokens, ui_app
from agentkit.gateway.ui.code_tokens import CodeTokens
from agentkit.gateway.ui.page_files import CSP, STATIC
from agentkit.gateway.ui.thread_hub import ThreadHub

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageClient]:
    with page(Agent(HeldModel(turn), [Shop()]), tmp_path_factory.mktemp("page") / "a.db") as client:
        yield client


WRITES = (
    ("POST", "/ui/api/threads"),
    ("PATCH", "/ui/api/threads/x"),
    ("DELETE", "/ui/api/threads/x"),
    ("POST", "/ui/api/threads/x/messages"),
    ("POST", "/ui/api/threads/x/decisions"),
    ("POST", "/ui/api/threads/x/outcomes"),
    ("POST", "/ui/api/threads/x/continue"),
    ("POST", "/ui/api/threads/x/stop"),
    ("POST", "/ui/api/threads/x/fork"),
    ("POST", "/ui/api/highlight"),
    ("POST", "/ag-ui"),
)
READS = (
    ("GET", "/"),
    ("GET", "/ui/main.js"),
    ("GET", "/ui/api/setup"),
    ("GET", "/ui/api/threads"),
    ("GET", "/ui/api/threads/x/events"),
    ("GET", "/ui/api/threads/x/export"),
)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"origin": "http://localhost:3000", "sec-fetch-site": "same-site"}, 403),
    ],
)
@pytest.mark.parametrize(("method", "path"), [*WRITES, *READS])
def test_other_sites_are_refused_everywhere(
    client: PageClient, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    content = None if method == "GET" else b"{}"
    assert client.http.request(method, path, content=content, headers=JSON | headers).status_code == status


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
@pytest.mark.parametrize(("method", "path"), [write for write in WRITES if write[0] == "POST"])
def test_what_a_form_can_send_is_refused(client: PageClient, method: str, path: str, kind: str) -> None:
    headers = {"content-type": kind} if kind else {}
    assert client.http.request(method, path, content=b"{}", headers=headers).status_code == 415


def test_another_site_is_not_allowed_to_ask(client: PageClient) -> None:
    for origin in ("https://evil.example", "http://localhost:3000"):
        asked = {"origin": origin, "access-control-request-method": "DELETE"}
        reply = client.http.options("/ui/api/threads/x", headers=asked)
        assert reply.status_code in (403, 405)
        assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "path",
    [
        f"/ui/{'a' * 300}.js",
        "/ui/%2e%2e/ui_app.py",
        "/ui/%2e%2e/static/main.js",
        "/ui/..%2fstatic/main.js",
        f"/ui/{STATIC}/main.js",
        f"/ui/%2f{STATIC}/main.js",
        "/ui/main.js%00.html",
        "/ui/main.js/",
        "/ui/C:%5cmain.js",
        "/ui/%ff%fe.js",
        "/ui/",
        "/ui",
    ],
)
def test_only_the_pages_files_are_served(client: PageClient, path: str) -> None:
    reply = client.http.get(path)
    assert (reply.status_code, reply.headers["content-security-policy"]) == (404, CSP)


@pytest.mark.parametrize(
    "body",
    [
        b'{"title": NaN}',
        b'{"title": "", "a": 1e400}',
        b'{"title": "", "a": Infinity}',
        b'{"title": "a", "title": "b"}',
        b'{"title": "", "a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"title": "", "a": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"title": "", "a": ' + b"1" * 5000 + b"}",
        b'{"title": "\xff"}',
        b"\xff\xfe{\x00}\x00",
        b"[]",
        b"1",
    ],
)
def test_a_body_that_is_no_plain_json_is_refused(client: PageClient, body: bytes) -> None:
    assert client.http.post("/ui/api/threads", content=body, headers=JSON).status_code == 400


def test_half_characters_are_replaced_and_the_rest_is_kept(client: PageClient) -> None:
    body = b'{"title": "a\\ud800b\\u0000c\\ud83d\\ude00"}'
    thread = client.http.post("/ui/api/threads", content=body, headers=JSON).json()["id"]
    titles = {one["id"]: one["title"] for one in client.ask("GET", "threads")["threads"]}
    assert titles[thread] == "a\ufffdb\0c\U0001f600"


@pytest.mark.parametrize("id", ["", "\0", "\n", "x" * 201, "m1", 5, None, ["a"]])
def test_a_message_needs_an_id(client: PageClient, id: Any) -> None:
    thread = client.new()
    client.ask("POST", f"threads/{thread}/messages", {"id": id, "content": "hello"}, 400)
    assert client.messages(thread) == []


def test_a_foreign_client_cannot_use_the_servers_ids(client: PageClient) -> None:
    thread = client.new()
    client.say(thread, "hello")
    client.settled(thread, "idle")
    asked = {"threadId": thread, "runId": "r1", "messages": [{"id": "m1", "role": "user", "content": "more"}]}
    assert "one of the server's own ids" in client.http.post("/ag-ui", json=asked).text
    assert [message["content"] for message in client.messages(thread)] == ["hello", "You said hello."]


@pytest.mark.parametrize("thread", ["", ".", "..", "a/b", "a\n", "x" * 201, None])
def test_a_foreign_client_cannot_name_every_thread(client: PageClient, thread: Any) -> None:
    asked = {"threadId": thread, "runId": "r1", "messages": [{"id": "u1", "role": "user", "content": "hello"}]}
    assert client.http.post("/ag-ui", json=asked).status_code == 400


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "data:image/svg+xml;base64,PHN2Zz4="])
def test_an_image_is_data_or_at_a_web_address(client: PageClient, url: str) -> None:
    parts = [{"type": "image", "source": {"type": "url", "value": url}}]
    asked = {"threadId": "t1", "runId": "r1", "messages": [{"id": "u1", "role": "user", "content": parts}]}
    assert client.http.post("/ag-ui", json=asked).status_code == 400


def test_arguments_that_no_browser_could_read_are_refused(client: PageClient) -> None:
    thread = client.new()
    client.say(thread, "order")
    (call,) = calls_of(client.settled(thread, "waiting")).values()
    body = {"call": call["id"], "hash": call["hash"], "approved": True, "arguments": {"item": "a", "amount": 1e999}}
    path = f"/ui/api/threads/{thread}/decisions"
    assert client.http.post(path, content=json.dumps(body), headers=JSON).status_code == 400
    (call,) = calls_of(client.settled(thread, "waiting")).values()
    assert call["status"] == "waiting"


def test_streams_are_bounded(client: PageClient) -> None:
    thread = client.new()
    path = f"/ui/api/threads/{thread}/events"
    limits = httpx2.Limits(max_connections=None)
    with httpx2.Client(base_url=client.url, limits=limits, timeout=30) as http, ExitStack() as streams:
        for _ in range(ui_app._STREAMS):
            assert streams.enter_context(http.stream("GET", path)).status_code == 200
        refused = http.get(path)
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "overloaded"
        assert client.ask("GET", "setup")["agent"] == "agent"

    def opens() -> bool:
        with client.http.stream("GET", path) as reply:
            return reply.status_code == 200

    until(opens)  # the server has seen that the others are closed


def test_a_flood_of_code_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_tokens, "_WAITING", 3)

    async def flood() -> list[list[tuple[str, str]]]:
        read = CodeTokens()
        try:
            return await asyncio.gather(*(read.tokens("python", f"x = {n}") for n in range(10)))
        finally:
            read.close()

    found = asyncio.run(flood())
    assert [len(tokens) > 1 for tokens in found] == [True] * 3 + [False] * 7
    assert ["".join(text for _, text in tokens) for tokens in found] == [f"x = {n}" for n in range(10)]


def test_the_server_ends_while_hostile_code_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = {"language": "literate-haskell", "code": "(" * 19_000}
    senders = ThreadPoolExecutor(20)
    arrived: list[str] = []
    read = ThreadHub.tokens

    async def tokens(hub: ThreadHub, language: str, code: str) -> list[tuple[str, str]]:
        arrived.append(code)
        return await read(hub, language, code)

    monkeypatch.setattr(ThreadHub, "tokens", tokens)
    with page(Agent(HeldModel(turn)), tmp_path / "a.db") as client:
        sent = [
            senders.submit(httpx2.post, f"{client.url}/ui/api/highlight", json=hostile, timeout=60) for _ in range(20)
        ]
        until(lambda: len(arrived) == 20)
        client.ask("GET", "setup")
        since = time.monotonic()
    assert time.monotonic() - since < 30
    assert {503} <= {one.result().status_code for one in sent} <= {200, 503}
    senders.shutdown()


def test_a_key_that_no_header_can_have_is_refused() -> None:
    for key, why in (("", "is not set"), ("sk-\u00fc", "not printable ASCII"), ("sk\n-a", "not printable ASCII")):
        with pytest.raises(ConfigError, match=why):
            key_from({"K": key}, "K", "a key")
