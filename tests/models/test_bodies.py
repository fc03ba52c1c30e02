"""Responses over a real socket and the real SDKs: when one is over, how large it may be, what is said of odd ones."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import logging
import time
import traceback
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_server import SSE, Step, raw_server

from agentkit.errors import ConfigError, ProviderError
from agentkit.events import CallEnd, Event, Finish, Text, Usage, merge
from agentkit.messages import UserMessage, user
from agentkit.models import ModelRequest, model
from agentkit.models.model_options import ModelSettings
from agentkit.models.provider import RemoteModel
from agentkit.models.secrets import watch_logs
from agentkit.models.sse import EventReader
from agentkit.testing import Recording, Replay

HI = b'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}}]}\n\n'
STOP = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}\n\n'
BEAT = b": keep-alive\n\n"
CLAUDE = b"".join(
    b"event: x\ndata: " + json.dumps(event).encode() + b"\n\n"
    for event in (
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )
)
COMPLETED = (
    b'data: {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}\n\n'
    b'data: {"type": "response.completed", "response": {"status": "completed"}}\n\n'
)


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def ask(
    *steps: Any, prefix: str = "openai", path: str = "/v1", log: list[bytes] | None = None, **settings: Any
) -> tuple[list[Event], ProviderError | None]:
    """The events of one answer, and the error in which they end."""

    async def run() -> tuple[list[Event], ProviderError | None]:
        async with raw_server(*steps, log=log) as url:
            given = {"api_key": "k", "max_retries": 0, "timeout": 5.0, "linger": 0.2, **settings}
            made = model(f"{prefix}:m", base_url=url + path, **given)
            assert isinstance(made, RemoteModel)
            events: list[Event] = []
            try:
                async for event in made.stream(ModelRequest([user("Hi")])):
                    events.append(event)  # noqa: PERF401 - the events before an error count
            except ProviderError as e:
                return merge(events), e
            finally:
                await made.aclose()
            return merge(events), None

    return asyncio.run(run())


def failure(*steps: Any, **settings: Any) -> ProviderError:
    _, error = ask(*steps, **settings)
    assert error is not None
    return error


# ---------------------------------------------------------------- when it is over


@pytest.mark.parametrize("beat", [(90.0,), (BEAT, 0.05) * 2_000], ids=["silence", "keep-alives"])
@pytest.mark.parametrize(
    ("prefix", "path", "body"),
    [
        ("openai", "/v1", HI + STOP),
        ("responses", "/v1", COMPLETED),
        ("anthropic", "", CLAUDE),
    ],
)
def test_a_finished_response_ends_without_the_connection(
    prefix: str, path: str, body: bytes, beat: tuple[Step, ...]
) -> None:
    ask(SSE, body, prefix=prefix, path=path)  # the SDK is loaded
    began = time.monotonic()
    events, error = ask(SSE, body, *beat, prefix=prefix, path=path)
    assert (events[0], type(events[-1]), error) == (Text("Hi"), Finish, None)
    assert time.monotonic() - began < 30  # far below the time-out, and the end of the beats


def data(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


ARGUMENTS = '{"to": "Al"}'
PIECE = {"index": 0, "id": "c1", "function": {"name": "pay", "arguments": ARGUMENTS}}
ITEM = {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "pay", "arguments": ARGUMENTS}
CALLING = {
    "openai": data(
        {"choices": [{"index": 0, "delta": {"content": "Hi", "tool_calls": [PIECE]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    )
    + b"data: [DONE]\n\n",
    "responses": data(
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"},
        {"type": "response.output_item.done", "output_index": 1, "item": ITEM},
        {"type": "response.completed", "response": {"status": "completed"}},
    ),
    "anthropic": data(
        {"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c1", "name": "pay"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ARGUMENTS}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ),
}


@pytest.mark.parametrize("prefix", CALLING)
def test_what_comes_after_the_end_is_no_more_of_the_response(prefix: str) -> None:
    path, once = "" if prefix == "anthropic" else "/v1", CALLING[prefix]
    events, error = ask(SSE, once, prefix=prefix, path=path)
    assert error is None
    assert [e.call.arguments for e in events if isinstance(e, CallEnd)] == [{"to": "Al"}]
    for later in (once, once.replace(b'"c1"', b'"c2"').replace(b'"index": 1', b'"index": 2')):
        assert ask(SSE, once, later, prefix=prefix, path=path) == (events, None)
        assert ask(SSE, once + later, prefix=prefix, path=path) == (events, None)


@pytest.mark.parametrize("begun", ["The light ", ""])
def test_only_its_end_ends_a_stream_of_gemini(begun: str) -> None:
    """Models give each chunk a reason, and proxies those without words. Source: litellm#2195, CLIProxyAPI#5651."""
    first, rest = ({"content": {"parts": [{"text": text}]}, "finishReason": "STOP"} for text in (begun, "is red."))
    chunks = [data({"candidates": [one], "usageMetadata": {"promptTokenCount": 9}}) for one in (first, rest)]
    events, error = ask(SSE, chunks[0], 0.3, chunks[1], prefix="gemini", path="", linger=0.0)
    assert (events, error) == ([Text(f"{begun}is red."), Usage(9), Finish("stop", "STOP")], None)


def test_usage_that_comes_late_is_waited_for() -> None:
    events, _ = ask(SSE, HI, STOP, 0.05, USAGE, b"data: [DONE]\n\n", 30.0, linger=5.0)
    assert events == [Text("Hi"), Usage(3, 1), Finish("stop", "stop")]


def test_usage_behind_the_end_is_counted_if_it_is_there() -> None:
    events, _ = ask(SSE, HI + STOP + b"data: [DONE]\n\n" + USAGE + HI, 30.0)
    assert events == [Text("Hi"), Usage(3, 1), Finish("stop", "stop")]


# ---------------------------------------------------------------- how large it may be


def test_a_response_is_bounded_after_decompression() -> None:
    packed = gzip.compress(HI * 20_000)
    head = SSE.replace(b"connection", b"content-encoding: gzip\r\nconnection")
    error = failure(head, packed, max_response=100_000)
    assert (error.kind, error.retryable) == ("stream", False)
    assert "the response is larger than the 100,000 bytes of max_response" in str(error)


def test_one_line_without_end_is_not_kept() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(b"data: " + b"x" * 1_000_000) for _ in range(90)) + packer.flush()
    head = SSE.replace(b"connection", b"content-encoding: gzip\r\nconnection")
    assert "an event of the stream is longer than 67,108,864 bytes" in str(failure(head, packed))


def test_a_whole_response_is_bounded_too() -> None:
    head = SSE.replace(b"text/event-stream", b"application/json")
    assert "larger than the 1,000 bytes" in str(failure(head, b'{"a": "' + b"x" * 2_000, max_response=1_000))


# ---------------------------------------------------------------- what is said of odd ones


def test_a_byte_order_mark_costs_nothing() -> None:
    events, error = ask(SSE, b"\xef\xbb\xbf" + HI + STOP)
    assert (events, error) == ([Text("Hi"), Finish("stop", "stop")], None)


def test_a_page_in_place_of_a_stream() -> None:
    error = failure(SSE.replace(b"event-stream", b"html"), b"<html>Log in</html>", path="")
    assert error.kind == "stream"
    assert str(error).partition(": ")[2] == (
        "expected an event stream, found a page (text/html); 19 bytes had come, which begin '<html>Log in</html>' "
        "(base_url has no path; most servers answer under /v1)"
    )


def test_a_whole_completion_under_a_wrong_type() -> None:
    whole = b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}'
    events, error = ask(SSE.replace(b"event-stream", b"plain"), whole)
    assert (events, error) == ([Text("Hi"), Finish("stop", "stop")], None)


def test_silence_in_the_middle() -> None:
    error = failure(SSE, HI, 30.0, timeout=0.2)
    assert error.kind == "timeout"
    said = "nothing came for 0.2 s (timeout), in the middle of the response; 63 bytes had come, which begin 'data: "
    assert said in str(error)


def test_silence_before_the_beginning() -> None:
    assert "nothing came for 0.2 s (timeout), before the response began" in str(failure(30.0, timeout=0.2))


def test_a_stream_that_is_none() -> None:
    error = failure(SSE, b"Welcome!\n")
    assert "no finish reason and no closing event came; 9 bytes had come, which begin 'Welcome!\\n'" in str(error)


@pytest.mark.parametrize(
    ("prefix", "path", "said"),
    [
        ("openai", "", "(base_url has no path; most servers answer under /v1)"),
        ("anthropic", "/v1", "(base_url ends in /v1, and the SDK adds /v1/messages)"),
        ("gemini", "/v1beta", "(base_url ends in /v1beta, and the SDK adds a version, such as /v1)"),
    ],
)
def test_an_address_that_nobody_knows_there(prefix: str, path: str, said: str) -> None:
    missing = b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{}"
    error = failure(missing, prefix=prefix, path=path)
    assert error.kind == "not_found"
    assert str(error).endswith(said)


def test_a_redirect_in_a_circle_is_not_tried_again() -> None:
    heads: list[bytes] = []
    there = b"HTTP/1.1 307 X\r\nlocation: /v1/chat/completions\r\nconnection: close\r\n\r\n"
    error = failure(there, log=heads, max_retries=2)
    assert error.kind == "bad_request"
    assert len(heads) == 21  # once, and the twenty redirects that the SDK follows


@pytest.mark.parametrize("data", ["[" * 100_000, '{"a": 1' + "0" * 5_000 + "}"], ids=["deep", "long number"])
def test_json_that_python_does_not_read(data: str) -> None:
    assert failure(SSE, f"data: {data}\n\n".encode()).kind == "stream"


def test_calls_that_are_announced_and_do_not_come_are_asked_for_again() -> None:
    async def at_once(seconds: float) -> None:
        assert seconds > 0

    none = STOP.replace(b"stop", b"tool_calls")
    events, error = ask([SSE, none], [SSE, HI + STOP], max_retries=1, sleep=at_once)
    assert (events, error) == ([Text("Hi"), Finish("stop", "stop")], None)
    assert "says that it calls tools (tool_calls), but it has no call and no text" in str(failure(SSE, none))


@given(st.data())
def test_events_do_not_depend_on_how_bytes_are_cut(data: st.DataObject) -> None:
    lines = [b"data: a", b"data:b", b"data", b": c", b"event: x", b"", b"data: \xc3\xa9", b"id: 1", b"error: e"]
    line = st.sampled_from(lines)
    ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
    text = b"".join(data.draw(st.lists(st.tuples(line, ends).map(b"".join), max_size=8)))
    whole = EventReader(100)
    wanted = [*whole.feed(text), *whole.close()]
    reader = EventReader(100)
    assert [d for byte in text for d in reader.feed(bytes([byte]))] + [*reader.close()] == wanted


# ---------------------------------------------------------------- secrets

KEY, PASSWORD = "canary-0123456789abcdef", "canary password/77"


def test_an_exception_of_the_caller_stays_whole() -> None:
    class Mine(Exception):
        payload: object = None

    async def run(given: object) -> object:
        made = Replay([Recording({"error": {"message": "no"}}, status=400)]).model("openai:m")
        try:
            raise Mine
        except Mine as e:
            e.payload = given
            with pytest.raises(ProviderError) as failed:
                _ = [event async for event in made.stream(ModelRequest([user("Hi")]))]
            assert "Mine" not in str(failed.value)
            return e.payload

    assert asyncio.run(run(given := object())) is given


@pytest.mark.parametrize("prefix", ["openai", "responses", "anthropic", "gemini"])
@pytest.mark.parametrize("status", [b"200 OK", b"401 Unauthorized"])
def test_nothing_shows_a_secret(prefix: str, status: bytes) -> None:
    """Not the key, nor the credentials in the address: in no repr, log or error, wherever the server repeats them."""
    logged = io.StringIO()
    handler = logging.StreamHandler(logged)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    body = json.dumps({"error": {"message": f"bad {KEY}", "param": {KEY: [PASSWORD]}, "code": KEY}}).encode()
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\nx-request-id: %s\r\nrequest-id: %s\r\n"
    heads: list[bytes] = []

    async def run() -> str:
        named = head % (status, KEY.encode(), KEY.encode()) + b"connection: close\r\n\r\n"
        async with raw_server(named, body, log=heads) as url:
            address = url.replace("http://", "http://ada:canary%20password%2F77@") + f"/v1?key={KEY}&version=3"
            made = model(f"{prefix}:m", base_url=address, api_key=KEY, max_retries=0)
            assert isinstance(made, RemoteModel)
            with pytest.raises(ProviderError) as caught:
                _ = [event async for event in made.stream(ModelRequest([user("Hi")]))]
            await made.aclose()
        e = caught.value
        causes = [(c, getattr(c, "__dict__", {})) for c in (e.__cause__, e.__context__)]
        assert {getattr(c, name, None) for c, _ in causes for name in ("response", "request")} == {None}
        return "".join(traceback.format_exception(e)) + repr((made, made.settings, e, vars(e), causes))

    try:
        shown = asyncio.run(run()) + logged.getvalue()
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert "HTTP Request: POST http://127.0.0.1" in shown
    for secret in (KEY, PASSWORD, "canary%20password"):
        assert secret not in shown
    asked = heads[0].split(b"\r\n")
    assert b"key=%s&version=3 HTTP" % KEY.encode() in asked[0]
    assert b"authorization: basic" in heads[0].lower()


@pytest.mark.parametrize("url", ["ada:canarypass@host", "http://ada:canarypass@host:port/v1", "ftp://canarypass@h/"])
def test_an_address_that_is_none_is_refused_without_its_credentials(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url must be a URL") as caught:
        model("openai:m", base_url=url)
    assert "canarypass" not in "".join(traceback.format_exception(caught.value))


def test_settings_show_what_is_no_secret() -> None:
    settings = ModelSettings(base_url="http://a:b@h/v1?key=k", extra={"api_key": "k", "top_p": 0.5})
    assert repr(settings).startswith("Settings(base_url='http://h/v1?…', ")
    assert repr(settings).endswith("extra={'api_key': '[key]', 'top_p': 0.5})")


# ---------------------------------------------------------------- nothing to say


@pytest.mark.parametrize("prefix", ["openai", "responses", "anthropic", "gemini"])
def test_an_empty_conversation_is_not_sent(prefix: str) -> None:
    made = model(f"{prefix}:m", base_url="http://127.0.0.1:9/v1", api_key="k")

    async def run() -> None:
        async for _ in made.stream(ModelRequest([UserMessage(()), user(" \n")])):
            pass

    with pytest.raises(ConfigError, match="has no message with any content"):
        asyncio.run(run())


def test_an_owner_that_goes_while_something_is_logged_costs_no_other_its_filter(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Owner:
        pass

    owners, last = [Owner()], Owner()
    watch_logs(owners[0], ["secret-of-another"])
    logger = logging.getLogger("httpx2")

    def going(record: logging.LogRecord) -> bool:
        owners.clear()  # as the garbage collector may do at any moment
        return True

    logger.addFilter(going)
    watch_logs(last, ["canary-123456"])
    try:
        with caplog.at_level(logging.DEBUG):
            logger.debug("for url 'http://x/?key=canary-123456'")
    finally:
        logger.removeFilter(going)
    assert "key=[key]" in caplog.text
    assert "canary" not in caplog.text


def test_a_logged_traceback_shows_no_key(caplog: pytest.LogCaptureFixture) -> None:
    class Owner:
        pass

    owner, other = Owner(), Owner()
    watch_logs(other, ["secret-of-another"])
    watch_logs(owner, ["canary-123456"])
    with caplog.at_level(logging.DEBUG):
        try:
            raise ValueError("for url 'http://x/?key=canary-123456'")
        except ValueError:
            logging.getLogger("httpx2").debug("failed", exc_info=True)
    assert "ValueError: for url 'http://x/?key=[key]'" in caplog.text
    assert "canary" not in caplog.text
