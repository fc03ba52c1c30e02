"""A URL with https for a server that speaks http: named as such, and not tried again."""

from __future__ import annotations

import asyncio

import pytest
from raw_server import raw_server

from agentkit.errors import ProviderError
from agentkit.messages import user
from agentkit.models import ModelRequest, model
from agentkit.models.schemes import other_scheme

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
ALSO_TLS = b"HTTP/1.1 400 The plain HTTP request was sent to HTTPS port\r\nconnection: close\r\n\r\n"


async def failure() -> tuple[ProviderError, str]:
    """The error of a request with https to a server that speaks http, and the server's host and port."""
    async with raw_server(OK) as url:
        host = url.removeprefix("http://")
        async with model("openai:m", base_url=f"https://{host}/v1", timeout=1.0) as made:
            with pytest.raises(ProviderError) as caught:
                _ = [event async for event in made.stream(ModelRequest([user("Hi")]))]
    return caught.value, host


async def other(answer: bytes) -> str:
    async with raw_server(answer) as url:
        return await other_scheme(url.replace("http:", "https:"))


def test_https_where_http_is_spoken() -> None:
    error, host = asyncio.run(failure())
    assert (error.kind, error.retryable) == ("bad_request", False)
    assert str(error) == f"{host}: the server speaks http, not https; write base_url='http://{host}/v1'"


@pytest.mark.parametrize("answer", [ALSO_TLS, b"ready\r\n", b""], ids=["tls", "another protocol", "nothing"])
def test_what_does_not_answer_in_http(answer: bytes) -> None:
    assert asyncio.run(other(answer)) == ""


def test_no_server() -> None:
    assert asyncio.run(other_scheme("https://127.0.0.1:9/v1")) == ""
