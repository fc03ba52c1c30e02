"""The gateway with the format raw: bytes go through, errors are right in each wire, and nothing is left open."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator

import anthropic
import httpx2
import openai
import pytest
from fake_upstream import Step, chunked, fake_upstream, head, until, whole
from gateway_kit import CHAT, COMPLETION, chat, chunk, gateway, leave, messages, post, raw

from agentkit.gateway.raw_reply import whole_events


def test_a_whole_reply_is_forwarded() -> None:
    with fake_upstream(whole(COMPLETION, x_request_id="r1", server="x")) as upstream, gateway(raw(upstream.url)) as at:
        got = post(at)
    assert (got.status_code, got.json(), got.headers["x-request-id"]) == (200, COMPLETION, "r1")
    assert (got.headers["x-agentkit-format"], "server" in got.headers) == ("raw", False)
    assert upstream.bodies == [CHAT]


def test_a_stream_is_forwarded_byte_by_byte() -> None:
    events = chunk("Hel") + chunk("lo.") + b"data: [DONE]\n\n"
    pieces = [bytes([byte]) for byte in events]
    with fake_upstream(chunked(*pieces)) as upstream, gateway(raw(upstream.url)) as at:
        got = post(at, {**CHAT, "stream": True})
    assert (got.content, got.headers["content-type"]) == (events, "text/event-stream")


def test_the_sdk_of_openai_reads_a_stream() -> None:
    answer = chunked(chunk("Hel"), chunk("lo."), b"data: [DONE]\n\n")
    with fake_upstream(answer) as upstream, gateway(raw(upstream.url)) as at, chat(at) as client:
        stream = client.chat.completions.create(stream=True, **CHAT)
        assert "".join(one.choices[0].delta.content or "" for one in stream) == "Hello."
    assert upstream.requests[0][0]["authorization"] == "Bearer sk-client-key"


def test_a_model_has_another_name_at_its_server() -> None:
    settings = raw("x") | {"models": {"gpt": {"format": "raw", "model": "Qwen/Qwen3"}}}
    with (
        fake_upstream(whole(COMPLETION)) as upstream,
        gateway(settings | {"upstreams": {"fake": {"url": upstream.url}}}) as at,
    ):
        assert post(at, CHAT | {"model": "gpt", "extra": 1}).status_code == 200
        refused = post(at, CHAT | {"model": "gtp"})
    assert upstream.bodies == [CHAT | {"model": "Qwen/Qwen3", "extra": 1}]
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        404,
        "there is no model 'gtp'; did you mean 'gpt'?",
    )


ERROR = {"error": {"message": "slow down", "type": "rate_limit_error", "param": None, "code": "rate_limit_exceeded"}}


def test_an_error_of_the_upstream_is_unchanged() -> None:
    with fake_upstream(whole(ERROR, 429, retry_after="120")) as upstream, gateway(raw(upstream.url)) as at:
        got = post(at)
    assert (got.status_code, got.headers["retry-after"], got.json()) == (429, "120", ERROR)


BUSY = whole(ERROR, 429, retry_after="0")


@pytest.mark.parametrize(
    ("answers", "status", "requests"),
    [
        ([BUSY, whole(COMPLETION)], 200, 2),
        ([[b""], whole(COMPLETION)], 200, 2),  # the connection is closed before an answer
        ([BUSY], 429, 3),
        ([whole(ERROR, 429, retry_after="120")], 429, 1),  # left to the client
        ([whole({"error": {"code": "insufficient_quota"}}, 429)], 429, 1),
        ([whole(ERROR, 500)], 500, 1),
    ],
)
def test_what_is_repeated(answers: list[list[bytes | float]], status: int, requests: int) -> None:
    with fake_upstream(*answers) as upstream:
        settings = raw(upstream.url) | {"upstreams": {"fake": {"url": upstream.url}}}
        with gateway(settings) as at:
            assert post(at).status_code == status
    assert len(upstream.requests) == requests


def test_a_request_is_not_repeated_once_its_reply_has_begun() -> None:
    cut = [head(content_length="100"), b'{"id"']
    with (
        fake_upstream(cut) as upstream,
        gateway(raw(upstream.url)) as at,
        chat(at) as client,
        pytest.raises(openai.InternalServerError, match="its reply was cut off") as caught,
    ):
        client.chat.completions.create(**CHAT)
    assert (caught.value.status_code, caught.value.code, len(upstream.requests)) == (502, "upstream_interrupted", 1)


@pytest.mark.parametrize("status", [500, 502])
def test_a_page_instead_of_an_error_becomes_an_error_in_the_wire(status: int) -> None:
    page = [head(status, "text/html", content_length="13"), b"<html>bad</ht"]
    with fake_upstream(page) as upstream:
        with (
            gateway(raw(upstream.url)) as at,
            chat(at) as client,
            pytest.raises(openai.InternalServerError, match="<html>bad") as of_chat,
        ):
            client.chat.completions.create(**CHAT)
        with (
            gateway(raw(upstream.url, "messages")) as at,
            messages(at) as other,
            pytest.raises(anthropic.InternalServerError, match="<html>bad") as of_messages,
        ):
            other.messages.create(max_tokens=9, **CHAT)
    assert of_chat.value.status_code == of_messages.value.status_code == status
    assert of_messages.value.body == {
        "type": "error",
        "error": {"type": "api_error", "message": f"the upstream answered with status {status}: <html>bad</ht"},
    }


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_redirect_is_an_error_that_says_so(path: str) -> None:
    moved = [head(302, location="http://127.0.0.1:9/", content_length="5"), b"moved"]
    with fake_upstream(moved) as upstream, gateway({"upstreams": {"a": {"url": upstream.url}}}) as at:
        got = post(at, {**CHAT, "max_tokens": 9}, path)
    assert (got.status_code, got.json()["error"]["message"]) == (502, "the upstream answered with status 302: moved")


def test_an_error_that_repeats_the_gateways_key_does_not_show_it() -> None:
    refused = {"error": {"message": "wrong key: sk-up/stream", "type": "invalid_request_error"}}
    with fake_upstream(whole(refused, 401)) as upstream:
        settings = {"upstreams": {"a": {"url": upstream.url, "key_env": "UPSTREAM_KEY"}}}
        with gateway(settings, {"UPSTREAM_KEY": "sk-up/stream"}) as at:
            got = post(at), post(at, {**CHAT, "max_tokens": 9}, "/v1/messages")
    assert [(one.status_code, one.json()["error"]["message"]) for one in got] == [(401, "wrong key: [key]")] * 2


def test_a_server_that_is_not_there() -> None:
    with gateway(raw("http://127.0.0.1:9")) as at:
        got = post(at)
    assert (got.status_code, got.json()["error"]["code"]) == (502, "upstream_unreachable")
    assert "no server listens at its address" in got.json()["error"]["message"]


def test_garbage_instead_of_http() -> None:
    with fake_upstream([b"SSH-2.0-OpenSSH\r\n\r\n"]) as upstream, gateway(raw(upstream.url)) as at:
        got = post(at)
    assert (got.status_code, got.json()["error"]["code"]) == (502, "upstream_invalid")


STREAM = chunk("Hel") + chunk("lo.") + b"data: [DONE]\n\n"


@pytest.mark.parametrize("cut", range(0, len(STREAM), 17))
def test_a_stream_that_is_cut_ends_with_an_error(cut: int) -> None:
    """At every place: whole events arrive, half of one does not, and then the reason."""
    answer = chunked(*([STREAM[:cut]] if cut else []), cut=True)
    with fake_upstream(answer) as upstream, gateway(raw(upstream.url)) as at:
        got = post(at, {**CHAT, "stream": True})
    events = got.text.split("\n\n")
    assert events[:-3] == STREAM[:cut].decode().split("\n\n")[:-1]
    assert json.loads(events[-3].removeprefix("data: "))["error"]["code"] == "upstream_interrupted"


def test_the_sdks_raise_the_error_of_a_stream_that_is_cut() -> None:
    with (
        fake_upstream(chunked(chunk("Hel"), b'data: {"id', cut=True)) as upstream,
        gateway(raw(upstream.url)) as at,
        chat(at) as client,
        pytest.raises(openai.APIError, match="was cut off"),
    ):
        list(client.chat.completions.create(stream=True, **CHAT))
    start = b'event: message_start\ndata: {"type": "message_start", "message": {"id": "m", "type": "message", "role": '
    start += b'"assistant", "model": "m", "content": [], "usage": {"input_tokens": 1, "output_tokens": 0}}}\n\n'
    with (
        fake_upstream(chunked(start, cut=True)) as upstream,
        gateway(raw(upstream.url, "messages")) as at,
        messages(at) as other,
        pytest.raises(anthropic.APIStatusError, match="was cut off"),
    ):
        list(other.messages.create(stream=True, max_tokens=9, **CHAT))
    assert upstream.requests[0][0]["x-api-key"] == "sk-client-key"


def test_responses_end_with_an_error_event() -> None:
    with (
        fake_upstream(chunked(cut=True)) as upstream,
        gateway(raw(upstream.url, "responses")) as at,
        chat(at) as client,
    ):
        (event,) = client.responses.create(model="m", input="Hi", stream=True)
    assert (event.type, getattr(event, "code", None)) == ("error", "upstream_interrupted")


def test_a_client_that_leaves_cancels_the_upstream() -> None:
    with fake_upstream(chunked(chunk("Hel"), 30.0, chunk("lo."))) as upstream, gateway(raw(upstream.url)) as at:
        with httpx2.stream("POST", f"{at}/v1/chat/completions", json={**CHAT, "stream": True}, timeout=60) as got:
            assert next(got.iter_lines())
        until(lambda: upstream.left == 1)


def test_a_client_that_leaves_before_the_reply_cancels_the_upstream() -> None:
    with fake_upstream([30.0]) as upstream, gateway(raw(upstream.url)) as at:
        leave(at, upstream)
        until(lambda: upstream.left == 1)


def test_a_client_that_does_not_read_stops_the_upstream() -> None:
    """Back-pressure: 40 MB do not end up in the gateway's memory."""
    event = b"data: " + b"x" * 40_000 + b"\n\n"
    with (
        fake_upstream(chunked(*[event] * 1_000)) as upstream,
        gateway(raw(upstream.url)) as at,
        httpx2.stream("POST", f"{at}/v1/chat/completions", json={**CHAT, "stream": True}, timeout=60) as got,
    ):
        assert next(got.iter_raw())
        held = [-1] * 10
        while held[0] != upstream.sent:  # until nothing more is sent during ten other requests
            httpx2.get(f"{at}/healthz", timeout=60)
            held = [*held[1:], upstream.sent]
        assert upstream.sent < 500


def test_an_upstream_that_falls_silent() -> None:
    with fake_upstream(together(*chunked(chunk("Hel"), 30.0))) as upstream:
        with gateway(raw(upstream.url, timeouts={"idle": 0.15, "heartbeat": 0.05})) as at:
            got = post(at, {**CHAT, "stream": True}).text.split("\n\n")
        until(lambda: upstream.left == 1)
    assert got[0] == chunk("Hel").decode().strip()
    assert got[1] == ": keep-alive"
    assert json.loads(got[-3].removeprefix("data: "))["error"]["message"].endswith("nothing arrived for 0.15 s")


def test_an_upstream_that_never_answers() -> None:
    """It is not asked again, though other failures would be repeated here."""
    with fake_upstream([30.0]) as upstream:
        settings = raw("x", timeouts={"first_byte": 0.5}) | {"upstreams": {"fake": {"url": upstream.url}}}
        with gateway(settings) as at:
            got = post(at)
        until(lambda: upstream.left == 1)
    assert (got.status_code, got.json()["error"]["code"]) == (504, "upstream_timeout")
    assert len(upstream.requests) == 1


def together(head: Step, first: Step, *further: Step) -> list[Step]:
    """An answer whose first piece arrives with its head."""
    assert isinstance(head, bytes)
    assert isinstance(first, bytes)
    return [head + first, *further]


def test_an_upstream_that_dribbles() -> None:
    """Neither a head nor a body that arrives byte by byte keeps a client waiting for ever."""
    dribble: list[Step] = [b"x", 0.02] * 1_000
    with fake_upstream(chunked(*dribble), [b"HTTP/1.1 200 ", *dribble]) as upstream:
        with gateway(raw(upstream.url, timeouts={"total": 0.3})) as at:
            body = post(at, {**CHAT, "stream": True})
        with gateway(raw(upstream.url, timeouts={"first_byte": 0.3})) as at:
            head = post(at)
    assert "its reply took longer than 0.3 s" in body.text
    assert "no answer within 0.3 s" in head.text


def test_heartbeats_of_messages_are_pings() -> None:
    ping, got, go_on = 'event: ping\ndata: {"type": "ping"}\n\n', "", threading.Event()
    events = "event: a\ndata: {}\n\n", "event: message_stop\ndata: {}\n\n"
    with (
        fake_upstream(chunked(events[0].encode(), go_on, events[1].encode())) as upstream,
        gateway(raw(upstream.url, "messages", timeouts={"heartbeat": 0.05})) as at,
        httpx2.stream("POST", f"{at}/v1/messages", json={**CHAT, "stream": True}, timeout=60) as reply,
    ):
        for piece in reply.iter_text():
            got += piece
            if got.count(ping) >= 2:
                go_on.set()
    assert got.replace(ping, "") == "".join(events)


def test_raw_needs_the_wire_of_the_server() -> None:
    with (
        gateway(raw("http://127.0.0.1:9")) as at,
        messages(at) as client,
        pytest.raises(anthropic.BadRequestError, match="send its requests to /v1/chat/completions"),
    ):
        client.messages.create(max_tokens=9, **CHAT)


async def _bytes_of(stream: bytes) -> AsyncIterator[bytes]:
    for at in range(len(stream)):
        yield stream[at : at + 1]


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"], ids=["LF", "CRLF"])
def test_an_event_leaves_when_it_is_complete_though_its_end_is_cut(end: bytes) -> None:
    async def pieces() -> list[bytes]:
        return [piece async for piece in whole_events(_bytes_of(b"data: 1" + end + b"data: [DONE]" + end), "chat")]

    assert asyncio.run(pieces()) == [b"data: 1" + end, b"data: [DONE]" + end]
