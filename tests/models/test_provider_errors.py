"""What goes wrong at a provider, and what becomes of it: the kind, the retry, the partial answer, the secret."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from converse_server import BEGIN, Answer, converse_server, exception
from replay_server import ReplayServer
from streams import answer

from agentkit.errors import ConfigError, ProviderError
from agentkit.events import CallEnd, CallError, Finish, Text, Usage
from agentkit.messages import user
from agentkit.models import ModelRequest, model
from agentkit.models.provider import RemoteModel
from agentkit.models.provider_errors import retry_after
from agentkit.models.retry import Retry
from agentkit.testing import Recording, Replay
from agentkit.toolspec import ToolSpec

PREFIXES = ["openai", "responses", "anthropic", "gemini"]
REFUSED = {"type": "error", "error": {"type": "some_error", "message": "No."}}
KEY = "canary-0123456789abcdef"
NO_CREDIT = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."

GOOD: dict[str, dict[str, Any]] = {
    "openai": {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]},
    "responses": {
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}],
    },
    "anthropic": {"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]},
}


def sse(*events: str) -> str:
    """Events of a stream; those that carry a `type` are named by it, as Anthropic insists."""
    lines = []
    for event in events:
        kind = event.partition('"type": "')[2].partition('"')[0]
        lines.append((f"event: {kind}\n" if kind else "") + f"data: {event}\n\n")
    return "".join(lines)


PARTIAL = {
    "openai": sse('{"choices": [{"index": 0, "delta": {"content": "Hel"}}]}'),
    "responses": sse('{"type": "response.output_text.delta", "output_index": 0, "delta": "Hel"}'),
    "anthropic": sse(
        '{"type": "message_start", "message": {"usage": {"input_tokens": 3}}}',
        '{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hel"}}',
    ),
    "gemini": sse('{"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]}'),
}


def refusal(tape: Replay, prefix: str, **settings: Any) -> ProviderError:
    events, error = answer(tape.model(f"{prefix}:m", **settings))
    assert events == []
    assert error is not None
    return error


class Sleeps:
    """Sleeps that only remember how long they were to be."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


# ---------------------------------------------------------------- refused


STATUSES = [
    (400, "bad_request"),
    (401, "authentication"),
    (402, "billing"),
    (403, "permission"),
    (404, "not_found"),
    (408, "timeout"),
    (409, "server"),
    (413, "bad_request"),
    (422, "bad_request"),
    (429, "rate_limit"),
    (500, "server"),
    (502, "server"),
    (503, "overloaded"),
    (504, "timeout"),
    (529, "overloaded"),
]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(("status", "kind"), STATUSES)
def test_status(prefix: str, status: int, kind: str) -> None:
    headers = {"x-request-id": "r1", "request-id": "r1", "retry-after": "7"}
    error = refusal(Replay([Recording(REFUSED, status, headers)]), prefix)
    assert (error.kind, error.status, error.code, error.provider) == (kind, status, "some_error", prefix)
    assert str(error) == f"{prefix} {status} (some_error): No."
    assert (error.request_id, error.retry_after) == ("r1", 7.0)


@pytest.mark.parametrize(("status", "kind"), STATUSES)
def test_status_of_bedrock(status: int, kind: str) -> None:
    headers = {"x-amzn-errortype": "SomeException", "retry-after": "7"}
    with converse_server(Answer({"message": "No."}, status, headers)) as server:
        made = server.model()
        events, error = answer(made)
    assert events == []
    assert error is not None
    assert (error.kind, error.status, error.code) == (kind, status, "SomeException")
    assert str(error) == f"{made.provider} {status} (SomeException): No."
    assert (error.request_id, error.retry_after) == ("req-1", 7.0)


def test_redirect_that_leads_nowhere() -> None:
    error = refusal(Replay([Recording("moved", 302, {"content-type": "text/plain"})]), "openai")
    assert (error.kind, error.status) == ("bad_request", 302)


def test_page_of_a_proxy() -> None:
    page = Recording("<html>Bad gateway</html>", 502, {"content-type": "text/html"})
    error = refusal(Replay([page]), "openai")
    assert (error.kind, error.code, str(error)) == ("server", None, "openai 502: <html>Bad gateway</html>")


def test_page_in_place_of_an_answer() -> None:
    page = Recording("<html>Log in</html>", 200, {"content-type": "application/json"})
    error = refusal(Replay([page]), "openai")
    assert error.kind == "stream"
    assert "is not JSON" in str(error)
    assert "<html>Log in</html>" in str(error)


FIELD = {"type": "missing", "loc": ["body", "tools", 0], "msg": "field required"}


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"detail": "Model m is not loaded"}, "Model m is not loaded"),
        ({"detail": [FIELD]}, "body.tools.0: field required"),
        ({"detail": [FIELD, {"msg": "too long"}]}, "body.tools.0: field required; too long"),
        ({"detail": [{"msg": str(n)} for n in range(7)]}, "0; 1; 2; 3; 4; and 2 more"),
        ({"detail": {"message": "No."}}, "No."),
        ([{"error": {"code": 400, "message": "No."}}], "(400): No."),
        ({"error": {"msg": "No."}}, "No."),
        ({"error": {"error": {"message": "No.", "code": "c"}}}, "(c): No."),
        ({"error": "No."}, "No."),
        ({"errors": ["No.", {"message": "Never."}]}, "No.; Never."),
        ({"error_message": "No."}, "No."),
        ({"why": ["a\x1b", KEY]}, 'no reason given; the error begins {"why": ["a\\u001b", "[key]"]}'),
        ({"why": "x" * 900}, 'no reason given; the error begins {"why": "' + "x" * 491),
        ({"detail": []}, 'no reason given; the error begins {"detail": []}'),
        ([], "no reason given"),
    ],
)
def test_reason_wherever_the_server_writes_it(prefix: str, body: Any, said: str) -> None:
    error = refusal(Replay([Recording(body, 400)]), prefix, api_key=KEY)
    assert str(error) == f"{prefix} 400{' ' if said.startswith('(') else ': '}{said}"


def test_reason_inside_the_stream_wherever_it_is() -> None:
    streamed = sse(json.dumps({"error": {"detail": [FIELD]}}))
    _, error = answer(Replay([PARTIAL["openai"] + streamed]).model("openai:m"))
    assert str(error) == "openai inside the stream: body.tools.0: field required"
    _, error = answer(
        Replay([PARTIAL["openai"] + sse(json.dumps({"error": {"why": KEY}}))]).model("openai:m", api_key=KEY)
    )
    assert str(error) == 'openai inside the stream: no reason given; the error begins {"why": "[key]"}'


def test_other_server_goes_by_its_name() -> None:
    error = refusal(Replay([Recording(REFUSED, 404)]), "openai", base_url="http://localhost:8000/v1")
    assert error.provider == "localhost:8000"


def test_error_in_a_response_of_status_200() -> None:
    error = refusal(Replay([{"error": {"message": "No.", "code": 502}}]), "openai")
    assert (error.kind, error.status, error.code) == ("server", None, "502")


# ---------------------------------------------------------------- broken off

IN_STREAM = {
    "openai": sse('{"error": {"message": "Sorry", "code": "server_error"}}'),
    "responses": sse(
        '{"type": "response.failed", "response": {"error": {"message": "Sorry", "code": "server_error"}}}'
    ),
    "anthropic": sse('{"type": "error", "error": {"type": "api_error", "message": "Sorry"}}'),
    "gemini": sse('{"error": {"code": 500, "message": "Sorry", "status": "INTERNAL"}}'),
}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_error_inside_the_stream_comes_after_the_partial_answer(prefix: str) -> None:
    events, error = answer(Replay([PARTIAL[prefix] + IN_STREAM[prefix]]).model(f"{prefix}:m"))
    assert [e for e in events if not isinstance(e, Usage)] == [Text("Hel")]
    assert error is not None
    assert (error.kind, error.status) == ("server", None)
    assert str(error).endswith("Sorry")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_connection_cut(prefix: str) -> None:
    cut = Recording(PARTIAL[prefix] + "data: {", cut=len(PARTIAL[prefix].encode()) + 4)
    events, error = answer(Replay([cut]).model(f"{prefix}:m"))
    assert [e for e in events if not isinstance(e, Usage)] == [Text("Hel")]
    assert error is not None
    assert error.kind == "connection"
    said = (
        f"{prefix}: the model's server closed the connection before the reply was complete: RemoteProtocolError: peer "
    )
    assert str(error).startswith(said)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_stream_that_just_ends(prefix: str) -> None:
    events, error = answer(Replay([PARTIAL[prefix]]).model(f"{prefix}:m", max_retries=1))
    assert [e for e in events if not isinstance(e, Usage)] == [Text("Hel")]
    assert error is not None
    assert error.kind == "connection"  # as if the connection had broken there
    assert str(error).endswith("not retried, because a part of the response had already been passed on")


def test_stream_that_ends_before_its_first_event_is_retried() -> None:
    started = sse('{"choices": [{"index": 0, "delta": {"role": "assistant"}}]}')
    events, error = answer(Replay([started, GOOD["openai"]]).model("openai:m", max_retries=1, sleep=Sleeps()))
    assert (events[0], error) == (Text("Hi"), None)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "service_unavailable_error", "code": "server_is_overloaded"}, "overloaded"),
        ({"type": "server_error", "code": "a_new_code"}, "server"),
        ({"type": "rate_limit_error", "code": "1302"}, "rate_limit"),
        ({"type": "ThrottlingException"}, "rate_limit"),
        ({"type": "invalid_request_error", "code": "a_new_code"}, "bad_request"),
        ({"type": "insufficient_quota", "code": "insufficient_quota"}, "billing"),
        ({"type": "a_new_type", "code": "a_new_code"}, "stream"),
    ],
)
def test_kind_inside_the_stream_by_code_or_else_by_type(error: dict[str, str], kind: str) -> None:
    tape = Replay([sse(json.dumps({"error": error | {"message": "No."}}))])
    assert refusal(tape, "openai", max_retries=0).kind == kind


@pytest.mark.parametrize("prefix", PREFIXES)
def test_damaged_event(prefix: str) -> None:
    events, error = answer(Replay([PARTIAL[prefix] + "event: x\ndata: {nonsense\n\n"]).model(f"{prefix}:m"))
    assert Text("Hel") in events
    assert error is not None
    assert error.kind == "stream"


def test_call_that_was_finished_before_the_error_stays_finished() -> None:
    def call(index: int, id: str, arguments: str) -> str:
        piece = {"index": index, "id": id, "function": {"name": "f", "arguments": arguments}}
        return json.dumps({"choices": [{"delta": {"tool_calls": [piece]}}]})

    pieces = sse(call(0, "a", '{"a":1}'), call(1, "b", '{"a'))
    events, error = answer(Replay([pieces + IN_STREAM["openai"]]).model("openai:m"))
    assert [e.call.id for e in events if isinstance(e, CallEnd)] == ["a"]
    assert [(e.call.id, e.code) for e in events if isinstance(e, CallError)] == [("b", "truncated_call")]
    assert not any(isinstance(e, Finish) for e in events)
    assert error is not None


def test_break_after_the_finish_is_none() -> None:
    done = PARTIAL["openai"] + sse('{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}')
    events, error = answer(Replay([Recording(done + "x" * 50, cut=len(done) + 10)]).model("openai:m"))
    assert events == [Text("Hel"), Finish("stop", "stop")]
    assert error is None


# ---------------------------------------------------------------- retries


@pytest.mark.parametrize("prefix", PREFIXES)
def test_passing_failures_are_tried_again(prefix: str) -> None:
    sleeps = Sleeps()
    tape = Replay(
        [Recording(REFUSED, 500), Recording(IN_STREAM[prefix]), Recording(PARTIAL[prefix], cut=1), GOOD[prefix]]
    )
    events, error = answer(tape.model(f"{prefix}:m", max_retries=3, sleep=sleeps, dice=lambda: 1.0))
    assert error is None
    assert Text("Hi") in events
    assert sleeps.seconds == [1.0, 2.0, 4.0]
    tape.assert_finished()


@pytest.mark.parametrize(
    ("headers", "waits"),
    [
        ({"retry-after": "7"}, [7.0]),
        ({"retry-after-ms": "1500", "retry-after": "7"}, [1.5]),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, [0.0]),
        ({"retry-after": "soon"}, [0.5]),
        ({"retry-after": "3600"}, None),
        ({"x-should-retry": "false"}, None),
    ],
)
def test_provider_says_how_long_to_wait(headers: Mapping[str, str], waits: list[float] | None) -> None:
    sleeps = Sleeps()
    tape = Replay([Recording(REFUSED, 429, headers), GOOD["openai"]])
    _, error = answer(tape.model("openai:m", max_retries=2, sleep=sleeps, dice=lambda: 0.0))
    assert sleeps.seconds == (waits or [])
    assert (error is None) == (waits is not None)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_lasting_failures_are_not_tried_again(status: int) -> None:
    sleeps = Sleeps()
    refusal(Replay([Recording(REFUSED, status), GOOD["openai"]]), "openai", max_retries=2, sleep=sleeps)
    assert sleeps.seconds == []


@pytest.mark.parametrize(
    ("prefix", "status", "error"),
    [
        ("openai", 429, {"code": "insufficient_quota", "type": "insufficient_quota", "message": "No credit."}),
        ("openai", 429, {"code": None, "type": "insufficient_quota", "message": "You exceeded your current quota."}),
        ("openai", 402, {"code": 402, "message": "This request requires more credits."}),
        ("openai", 402, {"code": "invalid_request_error", "type": "unknown_error", "message": "Insufficient Balance"}),
        ("anthropic", 402, {"type": "billing_error", "message": "Check your payment details."}),
        ("anthropic", 400, {"type": "invalid_request_error", "message": NO_CREDIT}),
    ],
    ids=["openai", "openai-type", "openrouter", "deepseek", "anthropic", "anthropic-400"],
)
def test_no_credit_left_is_not_tried_again(prefix: str, status: int, error: dict[str, Any]) -> None:
    tape = Replay([Recording({"type": "error", "error": error}, status), GOOD[prefix]])
    assert (refusal(tape, prefix, max_retries=2).kind, len(tape.requests)) == ("billing", 1)


def test_retries_end() -> None:
    sleeps = Sleeps()
    tape = Replay([Recording(REFUSED, 500)] * 3)
    assert refusal(tape, "openai", max_retries=2, sleep=sleeps, dice=lambda: 1.0).status == 500
    assert sleeps.seconds == [1.0, 2.0]


def test_nothing_is_tried_again_once_the_answer_has_begun() -> None:
    sleeps = Sleeps()
    tape = Replay([PARTIAL["openai"] + IN_STREAM["openai"], GOOD["openai"]])
    _, error = answer(tape.model("openai:m", max_retries=2, sleep=sleeps))
    assert error is not None
    assert sleeps.seconds == []


def test_back_off_is_bounded_and_spread() -> None:
    error = ProviderError("x", kind="server", provider="p")
    assert Retry(times=100).wait(50, error, 1.0) == 30.0
    assert Retry(times=100).wait(50, error, 0.0) == 15.0


def test_date_to_wait_for() -> None:
    assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0) == 60.0


# ---------------------------------------------------------------- secrets


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("status", [200, 401])
def test_key_never_shows(prefix: str, status: int) -> None:
    """Even where the server repeats it in its error."""
    body = {"type": "error", "error": {"type": "x", "message": f"bad key {KEY}, also sk-abcdefghij0123"}}
    whole = Recording(body, status) if status == 401 else Recording(IN_STREAM[prefix].replace("Sorry", f"bad {KEY}"))
    made = Replay([whole]).model(f"{prefix}:m", api_key=KEY)
    _, error = answer(made)
    assert error is not None
    shown = "".join(traceback.format_exception(error)) + repr((error, error.body, made, made.settings, vars(error)))
    assert KEY not in shown
    assert "sk-abcdefghij0123" not in shown
    assert "[key]" in str(error)


# ---------------------------------------------------------------- real sockets


@asynccontextmanager
async def server(*chunks: bytes, hang: bool = False) -> AsyncIterator[str]:
    """A server on 127.0.0.1 that sends these bytes to whoever asks, and then closes the connection, or waits."""
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        await reader.readexactly(length)
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()
        if hang:
            await left.wait()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        left.set()
        listening.close()
        await listening.wait_closed()


@contextmanager
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            patched.delenv(name, raising=False)
        yield


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def over_a_socket(*chunks: bytes, hang: bool = False, timeout: float = 5.0) -> tuple[list[Any], ProviderError | None]:
    async def run() -> tuple[list[Any], ProviderError | None]:
        async with server(*chunks, hang=hang) as url:
            made = model("openai:m", base_url=url, timeout=timeout, max_retries=0)
            assert isinstance(made, RemoteModel)
            events: list[Any] = []
            try:
                async for event in made.stream(ModelRequest([user("Hi")])):
                    events.append(event)  # noqa: PERF401 - the events before an error count
            except ProviderError as e:
                return events, e
            finally:
                await made.aclose()
            return events, None

    return asyncio.run(run())


def chunked(text: str) -> list[bytes]:
    """Each byte as a chunk of its own, multi-byte characters included."""
    return [b"1\r\n" + text.encode()[at : at + 1] + b"\r\n" for at in range(len(text.encode()))]


def test_stream_over_a_socket_byte_by_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    text = sse('{"choices": [{"index": 0, "delta": {"content": "naïve 😀"}, "finish_reason": "stop"}]}', "[DONE]")
    with no_proxies(monkeypatch):
        events, error = over_a_socket(HEAD, *chunked(text), b"0\r\n\r\n")
    assert (events, error) == ([Text("naïve 😀"), Finish("stop", "stop")], None)


def test_incomplete_chunked_body(monkeypatch: pytest.MonkeyPatch) -> None:
    with no_proxies(monkeypatch):
        events, error = over_a_socket(HEAD, *chunked(PARTIAL["openai"]))
    assert events == [Text("Hel")]
    assert error is not None
    assert error.kind == "connection"


def test_silent_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with no_proxies(monkeypatch):
        events, error = over_a_socket(HEAD, *chunked(PARTIAL["openai"]), hang=True, timeout=0.2)
    assert events == [Text("Hel")]
    assert error is not None
    assert error.kind == "timeout"


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    async def free_port() -> str:
        async with server() as url:
            return url

    with no_proxies(monkeypatch):
        made = model("openai:m", base_url=asyncio.run(free_port()), max_retries=0)
        _, error = answer(made)
    assert error is not None
    assert error.kind == "connection"
    assert "the connection was refused" in str(error)


def test_consumer_who_leaves_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> list[Any]:
        async with server(HEAD, *chunked(PARTIAL["openai"] * 2), hang=True) as url:
            made = model("openai:m", base_url=url)
            assert isinstance(made, RemoteModel)
            stream = made.stream(ModelRequest([user("Hi")]))
            seen = [await anext(stream)]
            await stream.aclose()
            await made.aclose()
            return seen

    with no_proxies(monkeypatch):
        assert asyncio.run(run()) == [Text("Hel")]


def test_one_model_serves_several_event_loops() -> None:
    body = b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}'
    with ReplayServer([body] * 3) as local:
        made = model("openai:m", base_url=local.url)
        assert [answer(made, stream=False)[0] for _ in range(3)] == [[Text("Hi"), Finish("stop", "stop")]] * 3


# ---------------------------------------------------------------- a conversation that does not fit


@pytest.mark.parametrize(
    ("prefix", "status", "error"),
    [
        (
            "anthropic",
            400,
            {"type": "invalid_request_error", "message": "prompt is too long: 200251 tokens > 200000 maximum"},
        ),
        ("anthropic", 413, {"type": "request_too_large", "message": "Request exceeds the maximum size"}),
        (
            "openai",
            400,
            {
                "message": "This model's maximum context length is 4097 tokens. However, your messages resulted in "
                "4294 tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            },
        ),
        (
            "openai",
            400,
            {
                "message": "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens "
                "(122942 in the messages, 8192 in the completion).",
                "type": "invalid_request_error",
                "code": "invalid_request_error",
            },
        ),
        ("responses", 400, {"message": "Your input exceeds the context window of this model.", "code": None}),
        (
            "gemini",
            400,
            {
                "code": 400,
                "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                "status": "INVALID_ARGUMENT",
            },
        ),
        (
            "gemini",
            400,
            {
                "code": 400,
                "message": "Unable to submit request because the input token count is 135538 but model only supports "
                "up to 32768. Reduce the input token count and try again.",
                "status": "INVALID_ARGUMENT",
            },
        ),
        (
            "responses",
            400,
            {"message": "prompt tokens (1055489) exceed model maximum (1050000) for x", "code": "validation_error"},
        ),
    ],
    ids=["anthropic", "anthropic-bytes", "openai", "deepseek", "responses", "gemini", "vertex", "bedrock-openai"],
)
def test_a_conversation_that_is_too_long(prefix: str, status: int, error: dict[str, Any]) -> None:
    refused = refusal(Replay([Recording({"type": "error", "error": error}, status)]), prefix)
    assert (refused.kind, refused.status, refused.retryable) == ("too_long", status, False)


@pytest.mark.parametrize(
    "said",
    [
        "Input is too long for requested model.",
        "prompt is too long: 9 tokens > 8 maximum",
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
        "too many total text bytes",
    ],
)
def test_a_conversation_that_is_too_long_for_bedrock(said: str) -> None:
    whole = Answer({"message": said}, 400, {"x-amzn-errortype": "ValidationException"})
    streamed = Answer(BEGIN + exception("validationException", said))  # as Nova reports it
    with converse_server(whole, streamed) as server:
        refused = [answer(server.model())[1] for _ in range(2)]
    assert [error and (error.kind, error.retryable) for error in refused] == [("too_long", False)] * 2


def test_a_conversation_that_is_too_long_inside_a_stream() -> None:
    said = '{"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}}'
    assert refusal(Replay([sse(said)]), "anthropic").kind == "too_long"


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "max_tokens: 10000 > 4096, which is the maximum allowed number of output tokens", "bad_request"),
        (429, "Request too large: limit 30000 tokens per minute, requested 35000", "rate_limit"),
    ],
)
def test_other_bounds_are_no_matter_of_the_conversations_length(status: int, message: str, kind: str) -> None:
    said = {"error": {"type": "invalid_request_error", "message": message}}
    assert refusal(Replay([Recording(said, status)]), "openai").kind == kind


@pytest.mark.parametrize(("budget", "limit"), [(1_024, 17_408), (20_000, 32_000), (32_000, 48_384)])
def test_default_of_max_tokens_leaves_room_beside_the_thinking(budget: int, limit: int) -> None:
    tape = Replay([{"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"}])
    answer(tape.model("anthropic:m", extra={"thinking": {"type": "enabled", "budget_tokens": budget}}))
    assert tape.requests[0]["max_tokens"] == limit


def test_a_forced_call_beside_thinking_is_asked_for_as_auto() -> None:
    tool = ToolSpec("f", "", {"type": "object", "properties": {}})
    tape = Replay([GOOD["anthropic"]])
    answer(tape.model("anthropic:m", extra={"thinking": {"type": "adaptive"}}), tools=[tool], tool_choice="required")
    assert tape.requests[0]["tool_choice"] == {"type": "auto"}


def test_a_misspelt_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"kind='quota'.: expected one of authentication, permission, "):
        ProviderError("busy", kind="quota", provider="openai")  # type: ignore[arg-type]
