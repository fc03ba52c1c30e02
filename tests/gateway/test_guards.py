"""Who is refused, and why: names of the host, web pages, keys, sizes, and how many at the same time."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NoReturn

import anthropic
import httpx2
import openai
import pytest
from fake_upstream import chunked, fake_upstream, until, whole
from gateway_kit import CHAT, COMPLETION, gateway, post, raw
from hypothesis import given
from hypothesis import strategies as st

from agentkit.gateway.client_wire import PATHS
from agentkit.gateway.wires import WIRES

KEYS = {"ada": "ADA_KEY", "grace": "GRACE_KEY"}
ENVIRONMENT = {"ADA_KEY": "sk-ada-12345678", "GRACE_KEY": "sk-grace-12345678", "UPSTREAM_KEY": "sk-upstream-12345678"}
LIMITS = {"body_bytes": 200_000, "header_bytes": 8_000}
ORIGIN = "http://localhost:3000"


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """A gateway with keys and limits."""
    with fake_upstream(whole(COMPLETION)) as upstream:
        settings = raw(upstream.url, keys=KEYS, limits=LIMITS, allowed_hosts=["gw.example.org"])
        settings |= {"allowed_origins": ["https://app.example.org"], "timeouts": {"request": 0.3}}
        with gateway(settings, ENVIRONMENT) as at:
            yield at


def refused(address: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
    """The status and the message of a refusal."""
    sent = {"authorization": "Bearer sk-ada-12345678", "content-type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    data = json.dumps(CHAT).encode() if body is None else body
    got = httpx2.post(f"{address}/v1/chat/completions", content=data, headers=sent)
    return got.status_code, "" if got.status_code == 200 else got.json()["error"]["message"]


def test_names_of_the_host(guarded: str) -> None:
    assert refused(guarded, host="gw.example.org") == (200, "")
    assert refused(guarded, host="localhost:4000") == (200, "")
    assert refused(guarded, host="evil.example") == (
        421,
        "Host 'evil.example' is not a name of this server; see allowed_hosts",
    )
    assert refused(guarded, host="localhost@evil.example")[0] == 421


def test_web_pages(guarded: str) -> None:
    assert refused(guarded, origin="https://evil.example") == (
        403,
        "requests from web pages of 'https://evil.example' are refused; see allowed_origins",
    )
    assert refused(guarded, origin="null")[0] == 403
    assert refused(guarded, sec_fetch_site="cross-site") == (
        403,
        "requests from web pages are refused (Sec-Fetch-Site: cross-site); see allowed_origins",
    )
    assert refused(guarded, origin="http://localhost:3000", sec_fetch_site="same-site")[0] == 403
    assert refused(guarded, origin="https://app.example.org", sec_fetch_site="cross-site") == (200, "")


def test_an_allowed_web_page_may_ask_first(guarded: str) -> None:
    headers = {"origin": "https://app.example.org", "access-control-request-method": "POST"}
    got = httpx2.options(f"{guarded}/v1/chat/completions", headers=headers)
    assert (got.status_code, got.headers["access-control-allow-origin"]) == (204, "https://app.example.org")
    other = httpx2.options(f"{guarded}/v1/chat/completions", headers=headers | {"origin": "https://evil.example"})
    assert (other.status_code, "access-control-allow-origin" in other.headers) == (403, False)


def test_keys(guarded: str) -> None:
    assert refused(guarded, authorization="Bearer sk-grace-12345678") == (200, "")
    assert refused(guarded, authorization="", x_api_key="sk-grace-12345678") == (200, "")
    assert refused(guarded, authorization="Bearer sk-grace-1234567") == (
        401,
        "a key is required: it is not a key of this gateway",
    )
    assert refused(guarded, authorization="") == (
        401,
        "a key is required: there is none in Authorization or x-api-key",
    )
    assert refused(guarded, authorization="Basic sk-ada-12345678")[0] == 401
    assert httpx2.get(f"{guarded}/metrics").status_code == 401
    assert httpx2.get(f"{guarded}/healthz").status_code == 200


def test_the_sdks_know_a_wrong_key(guarded: str) -> None:
    with openai.OpenAI(base_url=f"{guarded}/v1", api_key="wrong") as client, pytest.raises(openai.AuthenticationError):
        client.chat.completions.create(**CHAT)
    with (
        anthropic.Anthropic(base_url=guarded, api_key="wrong") as other,
        pytest.raises(anthropic.AuthenticationError) as caught,
    ):
        other.messages.create(max_tokens=9, **CHAT)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] == "authentication_error"


def test_what_a_body_must_be(guarded: str) -> None:
    assert refused(guarded, content_type="text/plain") == (
        415,
        "expected the content type application/json, found 'text/plain'",
    )
    assert refused(guarded, content_type="application/json; charset=utf-8") == (200, "")
    bomb = gzip.compress(b" " * 10_000_000)
    assert refused(guarded, bomb, content_encoding="gzip") == (
        415,
        "expected a body that is not compressed, found the content encoding 'gzip'",
    )
    assert refused(guarded, b"{")[1].startswith("the body is not JSON: ")
    assert refused(guarded, b"\xff")[0] == 400
    assert refused(guarded, b"[" * 100_000)[0] == 400
    assert refused(guarded, b"[1]") == (400, "expected a JSON object, found [1]")
    assert refused(guarded, b'{"model": 5}') == (400, "model: expected a name, found 5")


def test_a_body_that_is_too_long(guarded: str) -> None:
    assert refused(guarded, b" " * 300_000) == (413, "the body is longer than 200,000 bytes")

    def pieces() -> Iterator[bytes]:
        for _ in range(300):
            yield b" " * 1_000

    headers = {"authorization": "Bearer sk-ada-12345678", "content-type": "application/json"}
    got = httpx2.post(f"{guarded}/v1/chat/completions", content=pieces(), headers=headers)
    assert (got.status_code, got.json()["error"]["code"]) == (413, "request_too_large")


def conversation(address: str, *pieces: bytes, seconds: float = 0.0) -> bytes:
    """What the gateway answers to bytes until it closes the connection."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        got = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(seconds)
            while piece := connection.recv(65_536):
                got += piece
        except ConnectionError:
            pass
        return got


def test_headers_that_are_too_long(guarded: str) -> None:
    start = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    flood = [b"x-a: " + b"y" * 1_000 + b"\r\n"] * 100
    assert conversation(guarded, start, *flood)[:13] in (b"HTTP/1.1 431 ", b"")  # a reset connection may lose it
    assert refused(guarded, x_long="y" * 9_000) == (431, "the headers are longer than 8,000 bytes")
    assert conversation(guarded, start + b"x-a: " + b"y" * 9_000).startswith(b"HTTP/1.1 431 ")


def test_a_client_that_sends_slowly(guarded: str) -> None:
    start = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    assert conversation(guarded, start) == b""
    key = b"x-api-key: sk-ada-12345678\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
    assert conversation(guarded, start + key).startswith(b"HTTP/1.1 408 ")


def test_what_is_not_http(guarded: str) -> None:
    assert conversation(guarded, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_paths_and_methods(guarded: str) -> None:
    key = {"x-api-key": "sk-ada-12345678"}
    got = httpx2.get(f"{guarded}/v1/chat/completions", headers=key)
    assert (got.status_code, got.headers["allow"]) == (405, "POST")
    got = httpx2.get(f"{guarded}/v1/embeddings", headers=key)
    assert (got.status_code, got.json()["error"]["type"]) == (404, "not_found_error")


def test_more_requests_than_are_answered_at_the_same_time() -> None:
    """One is answered, one waits, and further ones are refused at once."""
    limits = {"concurrent": 1, "queue": 1}
    got: list[httpx2.Response] = []
    answer = threading.Event()

    def ask(address: str) -> None:
        got.append(post(address, timeout=60))

    with fake_upstream([answer, *whole(COMPLETION)]) as upstream, gateway(raw(upstream.url, limits=limits)) as at:
        threads = [threading.Thread(target=ask, args=[at]) for _ in range(3)]
        for thread in threads:
            thread.start()
        until(lambda: got)
        answer.set()
        for thread in threads:
            thread.join()
    busy, *others = got
    assert (busy.status_code, busy.headers["retry-after"], busy.json()["error"]["code"]) == (503, "1", "overloaded")
    assert [one.status_code for one in others] == [200, 200]


def test_a_request_that_waits_too_long() -> None:
    settings: dict[str, Any] = {"limits": {"concurrent": 1}, "timeouts": {"queue": 0.1}}
    answer = threading.Event()
    with fake_upstream([answer, *whole(COMPLETION)]) as upstream, gateway(raw(upstream.url, **settings)) as at:
        thread = threading.Thread(target=post, args=[at])
        thread.start()
        until(lambda: upstream.requests)
        assert post(at).json()["error"]["message"] == "the gateway is busy: no request ended within 0.1 s"
        answer.set()
        thread.join()


def test_the_upstreams_key_replaces_that_of_the_client() -> None:
    with fake_upstream(whole(COMPLETION)) as upstream:
        one = {"url": upstream.url, "key_env": "UPSTREAM_KEY"}
        with gateway(raw("x") | {"upstreams": {"fake": one}, "keys": KEYS}, ENVIRONMENT) as at:
            headers = {"x-api-key": "sk-ada-12345678", "cookie": "a=b", "x-title": "t", "connection": "x-hop"}
            assert post(at, headers={**headers, "x-hop": "1"}).status_code == 200
    (sent, _), *_ = upstream.requests
    assert sent["authorization"] == "Bearer sk-upstream-12345678"
    assert {"x-api-key", "cookie", "x-hop"} & sent.keys() == set()
    assert sent["x-title"] == "t"


def test_a_key_of_the_gateway_is_not_passed_on() -> None:
    with fake_upstream(whole(COMPLETION)) as upstream, gateway(raw(upstream.url, keys=KEYS), ENVIRONMENT) as at:
        assert post(at, headers={"x-api-key": "sk-ada-12345678"}).status_code == 200
    assert "12345678" not in str(upstream.requests)


def test_a_client_that_reads_nothing_is_dropped() -> None:
    event = b"data: " + b"x" * 40_000 + b"\n\n"
    timeouts = {"idle": 0.2, "heartbeat": 0.1}
    with (
        fake_upstream(chunked(*[event] * 1_000)) as upstream,
        gateway(raw(upstream.url, timeouts=timeouts)) as at,
        httpx2.stream("POST", f"{at}/v1/chat/completions", json={**CHAT, "stream": True}) as got,
    ):
        assert next(got.iter_raw())
        until(lambda: upstream.left == 1)


def test_a_fault_of_the_gateway_is_an_error_in_the_wire(caplog: pytest.LogCaptureFixture) -> None:
    """And the log says where it is, without what was asked."""

    def faulty(body: Mapping[str, Any]) -> NoReturn:
        raise KeyError(str(body))

    settings = raw("http://127.0.0.1:9", "messages", models={"*": {}})
    with gateway(settings, wires={"chat": replace(WIRES["chat"], output=faulty)}) as at:
        got = post(at)
    assert (got.status_code, got.json()["error"]["code"]) == (500, "internal_error")
    assert "KeyError" in caplog.text
    assert "Hi" not in caplog.text


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)
)


@given(
    body=JSON | st.dictionaries(st.sampled_from(["model", "messages", "stream"]), JSON),
    path=st.sampled_from([*PATHS.values()]),
)
def test_no_body_is_a_fault(guarded: str, body: Any, path: str) -> None:
    key = {"x-api-key": "sk-ada-12345678", "content-type": "application/json"}
    got = httpx2.post(guarded + path, content=json.dumps(body).encode(), headers=key)
    assert got.status_code in (200, 400)
    assert isinstance(got.json(), dict)
