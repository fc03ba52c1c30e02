"""The bodies of error responses over a real socket and the real SDKs: bounded, told with their status, readable."""

from __future__ import annotations

import asyncio
import json
import traceback
import zlib
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_server import raw_server
from streams import answer

from agentkit.checks.unicode import commands, escape_controls
from agentkit.errors import ProviderError
from agentkit.messages import user
from agentkit.models import ModelRequest, model
from agentkit.models.provider import RemoteModel
from agentkit.testing import Recording, Replay

PREFIXES = ["openai", "responses", "anthropic", "gemini"]
MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


async def at_once(seconds: float) -> None:
    assert seconds > 0


def head(status: int, *fields: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status} X", *fields, "connection: close", "", ""]).encode()


def failure(
    *steps: Any, prefix: str = "openai", stream: bool = True, log: list[bytes] | None = None, **settings: Any
) -> ProviderError:
    """The error in which one request ends, within 30 seconds."""

    async def run() -> ProviderError:
        async with raw_server(*steps, log=log) as url:
            given = {"api_key": "k", "max_retries": 0, "timeout": 5.0, "sleep": at_once, **settings}
            async with model(f"{prefix}:m", base_url=f"{url}/v1", **given) as made:
                with pytest.raises(ProviderError) as caught:
                    async with asyncio.timeout(30):
                        _ = [event async for event in made.stream(ModelRequest([user("Hi")], stream=stream))]
        return caught.value

    return asyncio.run(run())


@cache
def bomb(megabytes: int = 3) -> bytes:
    """So many megabytes of the letter a, packed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(b"a" * MIB) for _ in range(megabytes)) + packer.flush()


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_the_body_of_an_error_is_bounded_in_each_attempt(prefix: str, stream: bool) -> None:
    heads: list[bytes] = []
    packed = head(500, "content-encoding: gzip"), bomb()
    error = failure(*packed, prefix=prefix, stream=stream, log=heads, max_retries=1)
    assert (error.kind, error.status, len(heads)) == ("server", 500, 2)
    assert str(error).endswith("aaa; only its first 1,048,576 bytes were read")
    assert len(str(error.body)) == MIB


def test_a_smaller_bound_of_the_model_holds_for_errors_too() -> None:
    error = failure(head(400), b"no " * 1_000, max_response=30)
    assert str(error).endswith("400: " + "no " * 9 + "no; only its first 30 bytes were read")


def test_a_body_of_exactly_the_bound_is_whole() -> None:
    assert str(failure(head(400), b"x" * 30, max_response=30)).endswith("400: " + "x" * 30)


def test_a_redirect_is_bounded_too() -> None:
    error = failure(head(302, "content-encoding: gzip", "location: /v2"), bomb(), max_retries=0)
    assert (error.kind, "TooManyRedirects" in str(error)) == ("bad_request", True)


def test_an_error_that_breaks_off_keeps_its_status() -> None:
    error = failure(head(401, "content-length: 1000"), b'{"error": {"mess')
    assert (error.kind, error.status, error.body) == ("authentication", 401, '{"error": {"mess')
    assert "; the rest of it could not be read (RemoteProtocolError: peer closed connection" in str(error)


def test_an_error_that_does_not_end_keeps_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentkit.models.error_bodies.WAIT", 0.2)
    error = failure(head(429, "retry-after: 7"), *((b"x", 0.05) * 100))
    assert (error.kind, error.status, error.retry_after) == ("rate_limit", 429, 7.0)
    assert str(error).endswith("; the rest of it did not come within 0.2 s")


def test_an_error_that_cannot_be_unpacked_keeps_its_status() -> None:
    error = failure(head(404, "content-encoding: gzip"), b"not packed")
    assert (error.kind, error.status) == ("not_found", 404)
    assert "DecodingError" in str(error)


def test_a_callers_own_http_client_reads_errors_of_others_whole() -> None:
    """It is watched in agentkit's requests alone."""
    tape = Replay([Recording("x" * 3_000_000, 400)] * 2)

    async def run() -> tuple[ProviderError | None, int]:
        async with tape.client() as client:
            made = model("openai:m", http_client=client, api_key="k", max_retries=0)
            assert isinstance(made, RemoteModel)
            error = None
            try:
                _ = [event async for event in made.stream(ModelRequest([user("Hi")]))]
            except ProviderError as e:
                error = e
            return error, len((await client.post("http://localhost/", json={})).content)

    error, read = asyncio.run(run())
    assert error is not None
    assert (len(str(error.body)), read) == (MIB, 3_000_000)


# ---------------------------------------------------------------- what is said of it


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("depth", [90, 300, 600, 900, 5_000])
def test_a_deep_error_is_an_error_like_any_other(prefix: str, depth: int) -> None:
    body = '{"error": {"message": "No.", "why": ' + '{"a":' * depth + "1" + "}" * (depth + 2)
    _, error = answer(Replay([Recording(body, 401)]).model(f"{prefix}:m"))
    assert error is not None
    assert (error.kind, error.status) == ("authentication", 401)


EVIL = "bad \x1b[31mred\x07 \u202egnp.exe\u2028 \x9b1m"
SAFE = r"bad \x1b[31mred\x07 \u202egnp.exe\u2028 \x9b1m"


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    "told",
    [
        Recording({"type": "error", "error": {"message": EVIL, "code": "\x1b]0;x\x07"}}, 400),
        Recording(EVIL, 400, {"content-type": "text/plain"}),
        Recording(f"<html>{EVIL}</html>", 502, {"content-type": "text/html"}),
        Recording(f"<html>{EVIL}</html>", 200, {"content-type": "text/html"}),
        Recording(f"<html>{EVIL}</html>", 200, {"content-type": "application/json"}),
        Recording("data: " + json.dumps({"type": "error", "error": {"message": EVIL}}) + "\n\n"),
        Recording("data: {" + EVIL + "}\n\n"),
        Recording(EVIL),
    ],
    ids=["json", "text", "page", "page 200", "page as json", "in the stream", "damaged event", "no stream"],
)
def test_no_error_commands_the_screen_that_shows_it(prefix: str, told: Recording) -> None:
    _, error = answer(Replay([told]).model(f"{prefix}:m"))
    assert error is not None
    assert "gnp.exe" in str(error)
    shown = "".join(traceback.format_exception(error)) + str(error) + repr(error)
    assert [c for c in shown if commands(c)] == []


def test_what_is_escaped_stays_readable() -> None:
    _, error = answer(Replay([Recording({"error": {"message": EVIL}}, 400)]).model("openai:m"))
    assert str(error) == f"openai 400: {SAFE}"
    assert error is not None
    assert error.body == {"message": EVIL}


@given(st.text())
def test_escaped_text_commands_nothing(text: str) -> None:
    assert not any(map(commands, escape_controls(text)))
