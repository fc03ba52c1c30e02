"""The tools' HTTP client: what it repeats, how long it waits, how much it reads; rows 27, 29 and 38."""

from __future__ import annotations

import asyncio
import gzip
import logging
import time
import zlib
from collections.abc import Sequence
from typing import Any

import pytest
from raw_server import Step, raw_server
from site_server import Page, SiteServer

from agentkit.errors import ConfigError
from agentkit_tools.network.addresses import RequestFailed
from agentkit_tools.network.http_client import HttpClient, Key, Response

OK = Page({"ok": True})
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n"


def get(url: str, *, headers: dict[str, str] | None = None, key: Key | None = None, **options: Any) -> Response:
    client = HttpClient(**{"backoff": 0.01, **options})
    return asyncio.run(client.request("GET", url, headers=headers, key=key))


def failure(url: str, **options: Any) -> RequestFailed:
    with pytest.raises(RequestFailed) as caught:
        get(url, **options)
    return caught.value


def from_raw(*steps: Step | Sequence[Step], **options: Any) -> Response:
    async def main() -> Response:
        async with raw_server(*steps) as url:
            return await HttpClient(**{"retries": 0, "timeout": 5.0, **options}).request("GET", url)

    return asyncio.run(main())


# Again


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_succeed_later_is_repeated(status: int) -> None:
    with SiteServer({"/": [Page(status=status), Page(status=status), OK]}) as site:
        assert get(site.url).json() == {"ok": True}
    assert len(site.visits) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_what_will_not_succeed_is_not_repeated(status: int) -> None:
    with SiteServer({"/": Page(status=status)}) as site:
        assert failure(site.url).status == status
    assert len(site.visits) == 1


def test_after_the_last_attempt_the_failure_is_reported() -> None:
    with SiteServer({"/": Page({"message": "quota used up"}, 429)}) as site:
        assert str(failure(site.url)) == '127.0.0.1 answered 429 (Too Many Requests): {"message": "quota used up"}'
    assert len(site.visits) == 3


def test_retry_after_is_followed() -> None:
    with SiteServer({"/": [Page(status=429, headers={"Retry-After": "0.15"}), OK]}) as site:
        start = time.monotonic()
        assert get(site.url).json() == {"ok": True}
    assert time.monotonic() - start >= 0.15


def test_retry_after_beyond_the_deadline_is_reported_at_once() -> None:
    with SiteServer({"/": Page(status=503, headers={"Retry-After": "3600"})}) as site:
        assert str(failure(site.url)) == (
            "127.0.0.1 answered 503 (Service Unavailable); the next attempt is possible in 3600 seconds, later than "
            "this call may take"
        )
    assert len(site.visits) == 1


def test_a_connection_that_breaks_is_repeated() -> None:
    async def main() -> bytes:
        answers: list[list[Step]] = [
            [HEAD + b"content-length: 10\r\n\r\nhalf"],
            [HEAD + b"content-length: 2\r\n\r\nok"],
        ]
        async with raw_server(*answers) as url:
            return (await HttpClient(backoff=0.01).request("GET", url)).body

    assert asyncio.run(main()) == b"ok"


# Bounds: row 27


def test_row_27_an_endless_body_is_cut() -> None:
    answer = from_raw(HEAD + b"\r\n", *[b"x" * 50_000] * 40, 60.0, max_bytes=1_000_000)
    assert (len(answer.body), answer.cut) == (1_000_000, True)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_row_27_a_bomb_is_cut_after_decompression(encoding: str) -> None:
    bomb = b"\0" * 100_000_000
    bomb = gzip.compress(bomb, 1) if encoding == "gzip" else zlib.compress(bomb, 1)
    assert len(bomb) < 1_000_000
    answer = from_raw(HEAD + b"content-encoding: " + encoding.encode() + b"\r\n\r\n" + bomb, max_bytes=1_000_000)
    assert (len(answer.body), answer.cut) == (1_000_000, True)


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"one two " * 500, mtime=0)),
        ("gzip", gzip.compress(b"one two " * 200, mtime=0) + gzip.compress(b"one two " * 300, mtime=0)),
        ("deflate", zlib.compress(b"one two " * 500)),
        ("deflate", raw_deflate(b"one two " * 500)),
    ],
    ids=["gzip", "two members", "deflate", "raw deflate"],  # gzip writes the time, and workers differ
)
def test_a_compressed_body_is_read_whole_or_its_end_is_missed(encoding: str, packed: bytes) -> None:
    """Whatever the server's `Content-Length` says."""
    head = HEAD + b"content-encoding: " + encoding.encode() + b"\r\n\r\n"
    assert from_raw(head + packed).body == b"one two " * 500
    whole = len(gzip.compress(b"one two " * 200))  # the first of two members
    for end in set(range(12, len(packed), 7)) - {whole}:
        with pytest.raises(RequestFailed, match="the compressed body is incomplete"):
            from_raw(head + packed[:end])


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", ",".join(["gzip"] * 5000)])
def test_row_27_an_encoding_that_is_not_undone_is_refused(encoding: str) -> None:
    with pytest.raises(RequestFailed, match="unsupported content encoding") as caught:
        from_raw(HEAD + b"content-encoding: " + encoding.encode() + b"\r\n\r\nx")
    assert len(str(caught.value)) < 400


def test_row_27_a_body_that_is_not_what_it_claims_is_refused() -> None:
    with pytest.raises(RequestFailed, match="cannot be decompressed"):
        from_raw(HEAD + b"content-encoding: gzip\r\n\r\nnot gzip")


@pytest.mark.parametrize("drip", [[b"x", 0.05] * 100, [60.0]], ids=["body", "nothing"])
def test_row_27_one_byte_at_a_time_ends_at_the_deadline(drip: list[Step]) -> None:
    start = time.monotonic()
    with pytest.raises(RequestFailed, match=r"^127\.0\.0\.1 did not answer") as caught:
        from_raw(HEAD + b"content-length: 1000\r\n\r\n", *drip, timeout=0.3)
    assert caught.value.code == "timeout"
    assert time.monotonic() - start < 20


@pytest.mark.parametrize(
    "steps", [[60.0], [b"HTTP/1.1 200 OK\r\n", 60.0], [b"HTTP/1.1 100 Continue\r\n\r\n"] * 3 + [60.0]]
)
def test_row_27_a_server_that_never_answers_ends_at_the_deadline(steps: list[Step]) -> None:
    with pytest.raises(RequestFailed, match="did not answer"):
        from_raw(*steps, timeout=0.2)


def test_row_27_endless_headers_are_refused() -> None:
    with pytest.raises(RequestFailed, match="no answer from 127"):
        from_raw(HEAD, *[b"X-More: " + b"y" * 10_000 + b"\r\n"] * 100)


def test_row_27_too_short_a_body_is_not_taken_for_a_whole_one() -> None:
    with pytest.raises(RequestFailed, match="closed connection without sending complete message body"):
        from_raw(HEAD + b"content-length: 100\r\n\r\nonly this")


def test_row_27_a_body_ends_where_its_length_says() -> None:
    assert from_raw(HEAD + b"content-length: 4\r\n\r\nonly this").body == b"only"


def test_what_is_not_http_is_refused() -> None:
    with pytest.raises(RequestFailed, match="no answer from 127"):
        from_raw(b"220 smtp.example ESMTP\r\n")


# The environment: row 29


def test_row_29_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("SSL_CERT_FILE", "/does/not/exist")
    with SiteServer({"/": OK}) as site:
        assert get(site.url).json() == {"ok": True}


def test_row_29_no_password_of_the_home_folder_is_sent(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login ada password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with SiteServer({"/": OK}) as site:
        get(site.url)
    assert "authorization" not in site.visits[0].headers


# Rate


def test_requests_are_spread_evenly() -> None:
    async def main(url: str) -> list[Response]:
        client = HttpClient(rate=50)
        return await asyncio.gather(*(client.request("GET", url) for _ in range(6)))

    with SiteServer({"/": OK}) as site:
        start = time.monotonic()
        assert len(asyncio.run(main(site.url))) == 6
    assert time.monotonic() - start >= 0.1


def test_one_client_serves_several_event_loops() -> None:
    client = HttpClient()
    with SiteServer({"/": OK}) as site:
        for _ in range(2):
            assert asyncio.run(client.request("GET", site.url)).json() == {"ok": True}


@pytest.mark.parametrize(
    "wrong", [{"timeout": 0}, {"max_bytes": 0}, {"retries": -1}, {"rate": 0}, {"timeout": float("nan")}]
)
def test_a_number_out_of_range_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=rf"^{next(iter(wrong))}="):
        HttpClient(**wrong)  # type: ignore[arg-type]


# Bodies


def test_what_is_not_json_is_named() -> None:
    with (
        SiteServer({"/": Page(b"<html>Bad gateway")}) as site,
        pytest.raises(RequestFailed, match=r"did not answer in JSON: .*; its answer starts with '<html>Bad gateway'"),
    ):
        get(site.url).json()


def test_deep_json_is_a_failure_and_no_crash() -> None:
    with SiteServer({"/": Page(b"[" * 100_000)}) as site, pytest.raises(RequestFailed, match="did not answer in JSON"):
        get(site.url).json()


def test_json_that_was_cut_is_not_read() -> None:
    said = "sent more than the 9 bytes that are read"
    with SiteServer({"/": Page(b"[1, 2, 3]   ")}) as site, pytest.raises(RequestFailed, match=said):
        get(site.url, max_bytes=9).json()


# Keys: row 38

CANARY = "canary-3f9a1c"


def test_row_38_a_key_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """Not even if the server repeats it, in its headers, its body, its error and its redirect."""
    key = Key("SEARCH_KEY", "X-API-KEY", CANARY)
    caplog.set_level(logging.DEBUG)
    echo = {"Content-Type": "application/json", "X-Echo": CANARY}
    site_map = {
        "/": Page({"you sent": CANARY}, headers=echo),
        "/error": Page({"wrong key": CANARY}, 401, echo),
        "/moved": Page(status=302, headers={"Location": f"/?key={CANARY}"}),
        "/garbage": Page(CANARY.encode(), headers=echo),
    }
    with SiteServer(site_map) as site:
        good = get(site.url, key=key)
        assert good.json() == {"you sent": "[key]"}
        shown = [repr(key), repr(good), *(str(failure(f"{site.url}/{path}", key=key)) for path in ("error", "moved"))]
        with pytest.raises(RequestFailed) as garbage:
            get(f"{site.url}/garbage", key=key).json()
        shown += [str(garbage.value), repr(garbage.value.result)]
        assert site.visits[0].headers["x-api-key"] == CANARY
    assert CANARY not in "\n".join([*shown, caplog.text])
    assert "(b'X-Echo', b'[key]')" in caplog.text


def test_a_key_is_read_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    key = Key("SEARCH_KEY", "X-API-KEY", needed=True)
    monkeypatch.delenv("SEARCH_KEY", raising=False)
    with pytest.raises(RequestFailed, match="the operator must set SEARCH_KEY"):
        key.read()
    monkeypatch.setenv("SEARCH_KEY", " set-later\n")
    assert key.read() == "set-later"
