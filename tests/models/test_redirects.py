"""Redirects over real sockets and the real SDKs: a request, with its headers and its words, goes to no other server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest
from raw_server import raw_server

from agentkit.errors import ProviderError
from agentkit.messages import user
from agentkit.models import ModelRequest, model

PREFIXES = ["openai", "responses", "anthropic", "gemini"]
SECRETS = {"api-key": "AZURE-KEY", "X-Gateway-Token": "GW-TOKEN", "Cookie": "session=1"}
NOT_FOUND = b"HTTP/1.1 404 X\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def moved(status: int, location: str, body: str = "") -> bytes:
    fields = f"location: {location}\r\ncontent-length: {len(body)}\r\nconnection: close"
    return f"HTTP/1.1 {status} X\r\n{fields}\r\n\r\n{body}".encode()


async def failure(url: str, prefix: str, *, stream: bool = True, **settings: Any) -> ProviderError:
    """The error in which a request to this server ends."""
    given = {"api_key": "sk-own-key", "headers": SECRETS, "max_retries": 0, "timeout": 5.0, **settings}
    async with model(f"{prefix}:m", base_url=f"{url}/v1", **given) as made:
        with pytest.raises(ProviderError) as caught:
            _ = [event async for event in made.stream(ModelRequest([user("Private words")], stream=stream))]
    return caught.value


async def asked(prefix: str, status: int, to: str, **settings: Any) -> tuple[ProviderError, list[bytes], str, str]:
    """The error; what the other server got; both addresses. `to` is where the first one redirects to."""
    heads: list[bytes] = []
    async with raw_server(NOT_FOUND, log=heads) as there:
        location = to.format(there=there, port=there.rpartition(":")[2])
        async with raw_server(moved(status, location, "<p>moved</p>")) as here:
            return await failure(here, prefix, **settings), heads, here, there


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_server_is_not_followed(prefix: str, status: int) -> None:
    error, heads, here, there = asyncio.run(asked(prefix, status, "{there}/steal?key=abc", stream=status % 2 == 0))
    assert heads == []
    assert (error.kind, error.status) == ("bad_request", status)
    assert str(error) == (
        f"{here.removeprefix('http://')} {status}: {here} redirects to {there}; no redirect to another server is "
        f"followed, since the request and its keys are meant for this one. If the other is right, pass it as base_url="
    )


ELSEWHERE = {
    "another name of the host": "http://localhost:{port}/v1",
    "the same host in TLS": "https://127.0.0.1:{port}/v1",
    "without a scheme": "//localhost:{port}/v1",
    "another scheme": "ftp://localhost/v1",
    "with credentials": "http://a:b@localhost:{port}/v1",
    "in capitals": "HTTP://LOCALHOST:{port}/v1",
    "no host": "https:///v1",
}


@pytest.mark.parametrize("to", ELSEWHERE.values(), ids=ELSEWHERE)
def test_however_the_other_server_is_named(to: str) -> None:
    error, heads, here, _ = asyncio.run(asked("openai", 307, to))
    assert (heads, error.status, f"{here} redirects to " in str(error)) == ([], 307, True)
    assert "a:b" not in str(error)


WITHIN = ["/v2/answers", "answers", "{here}/v2/answers", "//{host}/v2/answers", "HTTP://{host}/v2/answers"]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("to", WITHIN)
def test_within_the_server_it_is_followed(prefix: str, to: str) -> None:
    async def run() -> list[bytes]:
        heads: list[bytes] = []
        answers: Sequence[list[bytes]] = [[], [NOT_FOUND]]
        async with raw_server(*answers, log=heads) as here:
            answers[0].append(moved(307, to.format(here=here, host=here.removeprefix("http://"))))
            assert (await failure(here, prefix)).kind == "not_found"
        return heads

    _, second = asyncio.run(run())
    assert b"answers" in second.split(b"\r\n")[0]
    assert b"GW-TOKEN" in second


def test_after_a_redirect_within_the_server_as_well() -> None:
    async def run() -> tuple[list[bytes], list[bytes], str]:
        heads: list[bytes] = []
        others: list[bytes] = []
        async with (
            raw_server(NOT_FOUND, log=others) as there,
            raw_server([moved(307, "/v2")], [moved(308, f"{there}/v2")], log=heads) as here,
        ):
            return heads, others, str(await failure(here, "openai"))

    heads, others, said = asyncio.run(run())
    assert (len(heads), others, "redirects to" in said) == (2, [], True)


def test_with_a_client_of_ones_own_which_stays_as_it_is() -> None:
    async def run() -> tuple[list[bytes], int]:
        others: list[bytes] = []
        async with (
            raw_server(NOT_FOUND, log=others) as there,
            raw_server(moved(307, f"{there}/v2")) as here,
            httpx2.AsyncClient(follow_redirects=True) as client,
        ):
            assert "redirects to" in str(await failure(here, "openai", http_client=client))
            refused = len(others)
            assert (await client.get(here)).status_code == 404
        return others[refused:], refused

    others, refused = asyncio.run(run())
    assert (len(others), refused) == (1, 0)


def test_it_is_not_tried_again() -> None:
    heads: list[bytes] = []

    async def run() -> None:
        async with raw_server(moved(307, "https://other.example/v1"), log=heads) as here:
            await failure(here, "openai", max_retries=2)

    asyncio.run(run())
    assert len(heads) == 1
