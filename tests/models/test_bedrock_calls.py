"""Requests to Bedrock over a real socket: threads, cancellation, time-outs, errors, credentials."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from converse_server import (
    BEGIN,
    CLAUDE,
    HELLO,
    Answer,
    converse_server,
    delta,
    end,
    exception,
    start,
    stop,
)
from streams import answer, events_of

from agentkit.agent import Agent
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import Event, Finish, Text, Usage, merge
from agentkit.messages import user
from agentkit.models import ModelRequest, model
from agentkit.models.bedrock import BedrockModel
from agentkit.models.boto_calls import THREAD
from agentkit.models.model_options import ModelSettings

ASKED = ModelRequest([user("Hi")])


@pytest.fixture(autouse=True)
def nobodys_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials, no region, and no service of a cloud's machine that has some."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    for thread in [one for one in threading.enumerate() if one.name == THREAD]:
        thread.join(30)
        assert not thread.is_alive()


# ---------------------------------------------------------------- threads


async def first(events: AsyncGenerator[Event, None], count: int) -> list[Event]:
    """The first events of a response that is then left."""
    async with aclosing(events):
        return [await anext(events) for _ in range(count)]


def test_leaving_a_stream_closes_its_connection() -> None:
    with converse_server(Answer(BEGIN + delta(0, text="Hello"), hangs="at the end")) as server:
        assert asyncio.run(first(server.model().stream(ASKED), 1)) == [Text("Hello")]
        assert server.left.wait(30)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("hangs", ["at the start", "at the end"])
def test_cancelling_closes_the_connection(hangs: Literal["at the start", "at the end"], stream: bool) -> None:
    async def cancel() -> None:
        asking = asyncio.create_task(anext(server.model().stream(ModelRequest([user("Hi")], stream=stream))))
        await asyncio.to_thread(server.asked.wait, 30)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    with converse_server(Answer(BEGIN, hangs=hangs)) as server:
        asyncio.run(cancel())
        assert server.left.wait(30)


def test_a_stream_that_nobody_reads_waits() -> None:
    """The thread does not read a long response into memory: 64 events wait, and the next one is not read."""

    async def read() -> list[Event]:
        events = server.model().stream(ASKED)
        async with aclosing(events):
            found: list[Event] = [await anext(events)]
            await asyncio.sleep(0.3)
            found += [event async for event in events]
        return found

    texts = b"".join(delta(0, text=str(n % 10)) for n in range(1_000))
    with converse_server(Answer(BEGIN + texts + stop(0) + end("end_turn"))) as server:
        *said, _, _ = asyncio.run(read())
    assert "".join(e.text for e in said if isinstance(e, Text)) == "0123456789" * 100


def test_many_requests_at_once() -> None:
    async def one(asked: BedrockModel) -> list[Event]:
        return merge([event async for event in asked.stream(ASKED)])

    async def many() -> list[list[Event]]:
        async with server.model() as asked:
            return await asyncio.gather(*(one(asked) for _ in range(40)))

    with converse_server(Answer(HELLO, cuts=1)) as server:
        found = asyncio.run(many())
    assert found == [[Text("Hello"), Usage(10, 2), Finish("stop", "end_turn")]] * 40


def test_a_connection_that_another_request_uses_by_now_is_not_closed() -> None:
    async def twice() -> list[Event]:
        asked = server.model()
        left = asked.stream(ASKED)
        await anext(left)
        await asyncio.sleep(0.2)  # the whole response has come, and its connection is free
        going_on = asked.stream(ASKED)
        found = [await anext(going_on)]
        await left.aclose()
        return found + [event async for event in going_on]

    with converse_server(Answer(HELLO), Answer(BEGIN + delta(0, text="Ho") + stop(0) + end("end_turn"))) as server:
        assert asyncio.run(twice()) == [Text("Ho"), Usage(10, 2), Finish("stop", "end_turn")]


# ---------------------------------------------------------------- failures


def failure(*answers: Answer, **settings: Any) -> ProviderError:
    with converse_server(*answers) as server:
        _, error = answer(server.model(**settings))
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (400, "ValidationException", "Invocation with on-demand throughput isn't supported.", "bad_request"),
        (400, "ValidationException", "Input is too long for requested model.", "too_long"),
        (403, "AccessDeniedException", "You don't have access to the model.", "permission"),
        (403, "UnrecognizedClientException", "The security token is invalid.", "authentication"),
        (404, "ResourceNotFoundException", "Could not resolve the foundation model.", "not_found"),
        (408, "ModelTimeoutException", "Timed out.", "timeout"),
        (424, "ModelErrorException", "The model failed.", "server"),
        (429, "ThrottlingException", "Too many tokens, please wait before trying again.", "rate_limit"),
        (429, "ModelNotReadyException", "Not ready.", "overloaded"),
        (500, "InternalServerException", "Oops.", "server"),
        (503, "ServiceUnavailableException", "Too busy.", "overloaded"),
    ],
)
def test_an_error_of_the_service(status: int, code: str, message: str, kind: str) -> None:
    error = failure(Answer({"message": message}, status, {"x-amzn-errortype": f"{code}:http://x/"}))
    assert (error.kind, error.status, error.code, error.request_id) == (kind, status, code, "req-1")
    assert f"{status} ({code}): {message}" in str(error)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("throttlingException", "rate_limit"),
        ("modelStreamErrorException", "server"),
        ("internalServerException", "server"),
        ("serviceUnavailableException", "overloaded"),
        ("validationException", "bad_request"),
    ],
)
def test_an_error_inside_the_stream(code: str, kind: str) -> None:
    with converse_server(Answer(BEGIN + delta(0, text="Hel") + exception(code, "It failed."))) as server:
        events, error = answer(server.model(max_retries=2))
        assert len(server.requests) == 1  # a part of the response has been passed on
    assert events == [Text("Hel")]
    assert error is not None
    assert (error.kind, error.code) == (kind, code)
    assert f"inside the stream ({code}): It failed." in str(error)


def test_one_policy_of_retries_which_is_ours() -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    busy = Answer({"message": "Too busy."}, 503, {"x-amzn-errortype": "ServiceUnavailableException"})
    slow = Answer({"message": "Slow down."}, 429, {"x-amzn-errortype": "ThrottlingException", "retry-after": "7"})
    stopped = Answer(BEGIN + exception("throttlingException", "Slow."))
    with converse_server(busy, slow, stopped, Answer(HELLO)) as server:
        settings = {"max_retries": 3, "sleep": wait, "dice": lambda: 1.0}
        assert events_of(server.model(**settings))[0] == Text("Hello")
        assert len(server.requests) == 4
    assert waits == [1.0, 7.0, 4.0]


def test_nothing_listens() -> None:
    with converse_server(Answer(HELLO)) as server:
        asked = server.model()
    _, error = answer(asked)
    assert error is not None
    assert (error.kind, error.retryable) == ("connection", True)


@pytest.mark.parametrize(
    ("hangs", "where"),
    [("at the start", "before the response began"), ("at the end", "in the middle of the response")],
)
def test_a_time_out(hangs: Literal["at the start", "at the end"], where: str) -> None:
    error = failure(Answer(BEGIN, hangs=hangs), timeout=0.2)
    assert error.kind == "timeout"
    assert f"nothing came for 0.2 s (timeout), {where}" in str(error)


@pytest.mark.parametrize("body", [BEGIN + delta(0, text="x" * 5_000) + end("end_turn"), {"x": "x" * 5_000}])
def test_a_response_is_limited(body: Any) -> None:
    error = failure(Answer(body), max_response=1_000)
    assert "the response is larger than the 1,000 bytes of max_response" in str(error)


def test_a_page_is_no_answer() -> None:
    error = failure(Answer(b"<html>Sign in</html>", headers={"content-type": "text/html"}))
    assert not error.retryable or error.kind == "connection"


# ---------------------------------------------------------------- settings


def test_no_credentials_and_no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="Unable to locate credentials; boto3 reads AWS_PROFILE"):
        answer(model(f"bedrock:{CLAUDE}"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA1234567890")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-secret-key")
    with pytest.raises(ConfigError, match=r"You must specify a region; .*AWS_DEFAULT_REGION"):
        answer(model(f"bedrock:{CLAUDE}"))
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(ConfigError, match=r"profile \(nobody\) could not be found"):
        answer(model(f"bedrock:{CLAUDE}"))


def test_a_field_that_the_api_does_not_have() -> None:
    with converse_server(Answer(HELLO)) as server, pytest.raises(ConfigError) as refused:
        answer(server.model(extra={"thinking": {"type": "enabled"}}))
    assert 'Unknown parameter in input: "thinking"' in str(refused.value)
    assert "extra={'additionalModelRequestFields': {…}}" in str(refused.value)


def test_requests_are_signed_with_botos_credentials_and_none_is_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA1234567890")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-secret-key")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "the-session-token")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    caplog.set_level(logging.DEBUG)
    said = "the canonical request was x-amz-security-token:the-session-token the-secret-key AKIA1234567890"
    with converse_server(Answer({"message": said}, 403, {"x-amzn-errortype": "InvalidSignatureException"})) as server:
        _, error = answer(server.model(api_key=None))
        signed = server.requests[0]["headers"]["Authorization"]
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=AKIA1234567890/")
    assert "/eu-central-1/bedrock/aws4_request" in signed
    assert error is not None
    assert error.kind == "authentication"
    for secret in ("the-secret-key", "the-session-token", "AKIA1234567890"):
        assert secret not in f"{error} {error.body} {error.__cause__!r} {vars(error.__cause__)} {caplog.text}"


def test_renewed_credentials_are_hidden_by_the_one_filter(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=5)  # so close to their end that boto3 renews them for each request
    issue = tmp_path / "issue.sh"
    issue.write_text(
        f"""echo >> {tmp_path}/issued; n=$(wc -l < {tmp_path}/issued)
        printf '{{"Version": 1, "AccessKeyId": "AKIA12345%d", "SecretAccessKey": "the-secret-key-%d",' $n $n
        printf '"SessionToken": "the-session-token-%d", "Expiration": "{soon.isoformat()}"}}' $n"""
    )
    (tmp_path / "config").write_text(f"[default]\nregion = eu-west-1\ncredential_process = sh {issue}\n")
    caplog.set_level(logging.DEBUG)
    signing = logging.getLogger("botocore.auth")
    with converse_server(*[Answer(HELLO)] * 5) as server:
        asked = server.model(api_key=None)
        filters = len(signing.filters)
        for _ in range(5):
            events_of(asked)
        signed = [one["headers"]["X-Amz-Security-Token"] for one in server.requests]
    assert len(set(signed)) == 5
    assert len(signing.filters) == filters
    assert "the-session-token" not in caplog.text
    signing.debug(signed[-1])
    assert signed[-1] not in caplog.text


@pytest.mark.parametrize(
    ("path", "region"),
    [("/bedrock-runtime.us-west-2.amazonaws.com", "us-west-2"), ("/bedrock.example.com", "eu-west-1")],
)
def test_a_request_is_signed_for_the_region_of_its_url(path: str, region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA1234567890")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-secret-key")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with converse_server(Answer(HELLO)) as server:
        events_of(server.model(base_url=server.url + path, api_key=None))
        assert f"/{region}/bedrock/aws4_request" in server.requests[0]["headers"]["Authorization"]


@pytest.mark.parametrize("given", [True, False])
def test_a_key_of_bedrock(given: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    if not given:
        monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key-9876")
    caplog.set_level(logging.DEBUG)
    with converse_server(Answer(HELLO)) as server:
        events_of(server.model(api_key="bedrock-key-9876" if given else None, headers={"x-team": "a"}))
        headers = server.requests[0]["headers"]
    assert (headers["Authorization"], headers["x-team"]) == ("Bearer bedrock-key-9876", "a")
    assert "bedrock-key-9876" not in caplog.text


def test_another_server_needs_neither_a_key_nor_a_region() -> None:
    with converse_server(Answer(HELLO)) as server:
        asked = server.model(api_key=None)
        assert events_of(asked)[0] == Text("Hello")
        assert "Authorization" not in server.requests[0]["headers"]
        assert repr(asked) == f"<bedrock:{CLAUDE} at {server.url.removeprefix('http://')}>"


def test_a_url_with_credentials() -> None:
    with converse_server(Answer({"message": "Who is ada:secret1?"}, 401)) as server:
        asked = server.model(base_url=server.url.replace("//", "//ada:secret1@"), api_key=None)
        _, error = answer(asked)
        assert server.requests[0]["headers"]["Authorization"] == "Basic YWRhOnNlY3JldDE="
    assert "secret1" not in f"{error} {asked!r}"
    with pytest.raises(ConfigError, match="base_url must be a URL such as"):
        server.model(base_url="ada:secret1@x")


def test_settings_that_are_not_for_boto3() -> None:
    with pytest.raises(ConfigError, match="boto3 takes no http_client"):
        BedrockModel(CLAUDE, ModelSettings(http_client=object()))


# ---------------------------------------------------------------- agents


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


CALL = start(0, toolUse={"toolUseId": "t", "name": "add"}) + delta(0, toolUse={"input": '{"a": 1, "b": 2}'}) + stop(0)


def test_an_agent_with_a_tool() -> None:
    with converse_server(Answer(BEGIN + CALL + end("tool_use")), Answer(HELLO)) as server:
        result = asyncio.run(Agent(server.model(), [add]).run("1 + 2?"))
        sent = server.requests[1]["body"]["messages"]
    assert result.text == "Hello"
    assert sent[-1]["content"] == [{"toolResult": {"toolUseId": "t", "content": [{"text": "3"}], "status": "success"}}]


def test_calls_as_text() -> None:
    call = '<function_calls>\n<invoke name="add">\n<parameter name="a">1</parameter>\n<parameter name="b">2</parameter>'
    texts = BEGIN + delta(0, text=f"{call}\n</invoke>\n</function_calls>") + stop(0) + end("end_turn")
    with converse_server(Answer(texts, cuts=5), Answer(HELLO)) as server:
        asked = model(f"bedrock:{CLAUDE}", format="invoke", base_url=server.url, api_key="bedrock-key-1234")
        result = asyncio.run(Agent(asked, [add]).run("1 + 2?"))
        bodies = [request["body"] for request in server.requests]
    assert result.text == "Hello"
    assert all("toolConfig" not in body for body in bodies)
    assert "3" in bodies[1]["messages"][-1]["content"][0]["text"]


# ---------------------------------------------------------------- thinking


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("eu.anthropic.claude-sonnet-5", True),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/global.anthropic.claude-sonnet-5", True),
        ("us.amazon.nova-2-lite-v1:0", False),
        ("moonshotai.kimi-k2.5", False),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/abc", False),
    ],
)
def test_thinking_goes_back_to_the_models_of_its_maker(name: str, kept: bool) -> None:
    thought = delta(0, reasoningContent={"text": "Hm."}) + delta(0, reasoningContent={"signature": "SIG"}) + stop(0)
    reply = BEGIN + thought + delta(1, text="Hello") + stop(1) + end("end_turn")
    with converse_server(Answer(reply), Answer(HELLO)) as server:
        said = Agent(server.model()).run_sync("Hi").messages
        events_of(server.model(name), [*said, user("Go on")])
    thinking = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "SIG"}}}
    assert server.requests[1]["body"]["messages"][1]["content"] == [thinking] * kept + [{"text": "Hello"}]
