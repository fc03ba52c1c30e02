"""`agentkit serve` as its user meets it: the start, the log, the figures, and the end after SIGTERM."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from fake_upstream import chunked, fake_upstream, until, whole
from gateway_kit import CHAT, COMPLETION, chat, chunk, gateway, leave, messages, post, raw, served

MODELS = {"object": "list", "data": [{"id": "qwen", "object": "model"}, {"id": "llama", "object": "model"}]}


def test_it_says_where_it_is_and_what_it_does(tmp_path: Path) -> None:
    with fake_upstream(whole(COMPLETION)) as upstream:
        options = "--upstream", upstream.url, "--format", "raw", "--model-map", "gpt=m", "--log", "log.jsonl"
        with served(*options, folder=tmp_path) as (at, running):
            assert running.stderr is not None
            lines = [running.stderr.readline() for _ in range(2)]
            assert post(at, CHAT | {"model": "gpt"}).json() == COMPLETION
            until((tmp_path / "log.jsonl").read_text)
    assert lines == [
        f"  gpt: {upstream.url} (chat) as m, format raw\n",
        f"  any model: {upstream.url} (chat), format raw\n",
    ]
    (line,) = (tmp_path / "log.jsonl").read_text().splitlines()
    logged = json.loads(line)
    assert logged.keys() == {"time", "id", "model", "upstream", "wire", "status", "ms", "format"}
    assert {**logged, "time": 0, "ms": 0, "id": 0} == {
        "time": 0,
        "id": 0,
        "model": "gpt",
        "upstream": "upstream",
        "wire": "chat",
        "status": 200,
        "ms": 0,
        "format": "raw",
    }


def listens(address: str) -> bool:
    host, port = address.removeprefix("http://").split(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except ConnectionError:
        return False
    return True


def test_sigterm_lets_streams_end_under_load() -> None:
    """No new connection is accepted, and twenty streams that run at that time are complete."""
    going_on = threading.Event()
    answer = chunked(chunk("Hel"), going_on, chunk("lo."), b"data: [DONE]\n\n")
    got: list[str] = []

    def ask(address: str) -> None:
        with chat(address) as client:
            stream = client.chat.completions.create(stream=True, **CHAT)
            got.append("".join(one.choices[0].delta.content or "" for one in stream))

    with (
        fake_upstream(answer) as upstream,
        served("--upstream", upstream.url, "--format", "raw") as (at, running),
    ):
        threads = [threading.Thread(target=ask, args=[at]) for _ in range(20)]
        for thread in threads:
            thread.start()
        until(lambda: upstream.sent >= 20 * 2)
        running.send_signal(signal.SIGTERM)
        until(lambda: not listens(at))
        assert got == []
        going_on.set()
        for thread in threads:
            thread.join()
        assert running.wait(30) == -signal.SIGTERM
    assert got == ["Hello."] * 20


def test_sigterm_ends_a_stream_that_takes_too_long(tmp_path: Path) -> None:
    settings = "{upstreams: {a: {url: URL}}, models: {'*': {format: raw}}, port: 0, timeouts: {shutdown: 1}}"
    with fake_upstream(chunked(chunk("Hel"), 30.0)) as upstream:
        (tmp_path / "gateway.yaml").write_text(settings.replace("URL", upstream.url))
        with served("--config", str(tmp_path / "gateway.yaml"), port=None) as (at, running), chat(at) as client:
            stream = client.chat.completions.create(stream=True, **CHAT)
            next(stream)
            running.send_signal(signal.SIGTERM)
            with pytest.raises(openai.APIError, match="the gateway is shutting down"):
                next(stream)
            assert running.wait(30) == -signal.SIGTERM
        until(lambda: upstream.left == 1)


def test_no_key_is_in_any_log(tmp_path: Path) -> None:
    keys = {"ADA": "sk-ada-0123456789", "UP": "sk-up-0123456789"}
    options = ["--format", "raw", "--key-env", "ada=ADA", "--upstream-key-env", "UP"]
    with (
        fake_upstream(whole(COMPLETION), [b"garbage\r\n\r\n"], whole({"error": {"message": "x"}}, 401)) as upstream,
        served("--upstream", upstream.url, *options, **keys) as (at, running),
    ):
        for key in ("sk-ada-0123456789", "sk-ada-0123456789", "sk-ada-0123456789", "sk-wrong-0123456789"):
            post(at, {**CHAT, "user": "contents"}, headers={"x-api-key": key})
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["status"], line.get("key"), line.get("error")) for line in lines] == [
        (200, "ada", None),
        (502, "ada", "upstream_invalid"),
        (401, "ada", None),
        (401, None, "invalid_api_key"),
    ]
    assert "0123456789" not in out + err
    assert "contents" not in out + err
    assert "Hi" not in out + err


def test_the_port_may_be_taken() -> None:
    with fake_upstream(whole(COMPLETION)) as upstream:
        taken = upstream.url.rpartition(":")[2]
        with (
            pytest.raises(AssertionError, match=f"cannot listen at 127.0.0.1 port {taken}: Address already in use"),
            served("--upstream", upstream.url, port=taken),
        ):
            pass


def figures(address: str) -> dict[str, float]:
    lines = httpx2.get(f"{address}/metrics").text.splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_figures() -> None:
    stream = chunked(chunk("Hel"), 0.05, chunk("lo."))
    answers = stream, whole(COMPLETION), [b"garbage\r\n\r\n"], whole({"error": {"message": "x"}}, 500)
    with fake_upstream(*answers) as upstream, gateway(raw(upstream.url)) as at:
        assert figures(at)["agentkit_requests_in_flight"] == 0
        for _ in range(4):
            post(at)
        until(lambda: figures(at)["agentkit_requests_in_flight"] == 0)
        found = figures(at)
    ok = 'gen_ai_request_model="m",wire="chat"'
    assert found[f'gen_ai_server_request_duration_seconds_count{{{ok},http_response_status_code="200"}}'] == 2
    assert (
        found[f'gen_ai_server_request_duration_seconds_bucket{{{ok},http_response_status_code="200",le="+Inf"}}'] == 2
    )
    assert found[f"gen_ai_server_time_to_first_token_seconds_count{{{ok}}}"] == 1
    assert found['agentkit_upstream_errors_total{upstream="fake",code="upstream_invalid"}'] == 1
    assert found['agentkit_upstream_errors_total{upstream="fake",code="500"}'] == 1
    assert found["agentkit_client_left_total"] == 0


def test_calls_in_text_are_counted_and_logged(tmp_path: Path) -> None:
    text = '<tool_call>\n{"name": "look", "arguments": {"at": "tea"}}\n</tool_call>'
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 20, "total_tokens": 29}
    parameters = {"type": "object", "properties": {"at": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "look", "parameters": parameters}}
    log = tmp_path / "log.jsonl"
    with (
        fake_upstream(whole({**COMPLETION, "choices": [choice], "usage": usage})) as upstream,
        gateway({"upstreams": {"a": {"url": upstream.url}}, "log": str(log)}) as at,
    ):
        got = post(at, {**CHAT, "tools": [tool]})
        until(lambda: figures(at)["agentkit_requests_in_flight"] == 0)
        found = figures(at)
    (call,) = got.json()["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "look", "arguments": '{"at": "tea"}'}
    assert got.headers["x-agentkit-format"] == "hermes"
    assert found['agentkit_recovered_calls_total{format="hermes"}'] == 1
    assert found['gen_ai_client_token_usage_sum{gen_ai_request_model="m",gen_ai_token_type="output"}'] == 20
    logged = json.loads(log.read_text())
    assert (logged["recovered"], logged["input_tokens"], logged["output_tokens"]) == (1, 9, 20)


@pytest.mark.parametrize(
    "more", [{"logprobs": True}, {"modalities": ["text", "audio"]}, {"tool_choice": {"type": "hosted"}}], ids=str
)
def test_a_call_is_recovered_though_a_translated_reply_could_not_honour_the_request(more: dict[str, Any]) -> None:
    text = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    with (
        fake_upstream(whole({**COMPLETION, "choices": [choice]})) as upstream,
        gateway({"upstreams": {"a": {"url": upstream.url}}}) as at,
    ):
        got = post(at, {**CHAT, "tools": [{"type": "function", "function": {"name": "look"}}], **more})
    (call,) = got.json()["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "look", "arguments": "{}"}


def test_a_call_in_the_text_stays_text_if_the_server_stores_what_it_may_quote() -> None:
    part = {"type": "output_text", "text": '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    reply = {"id": "resp_2", "object": "response", "status": "completed", "output": [item]}
    asked = {"model": "m", "input": "Go on.", "tools": [{"type": "function", "name": "look", "parameters": {}}]}
    one = {"wire": "responses"}
    with fake_upstream(whole(reply)) as upstream, gateway({"upstreams": {"a": {"url": upstream.url, **one}}}) as at:
        got = [post(at, {**asked, **more}, "/v1/responses") for more in ({}, {"previous_response_id": "resp_1"})]
        found = figures(at)
    assert [[one["type"] for one in reply.json()["output"]] for reply in got] == [["function_call"], ["message"]]
    assert found["agentkit_recovery_failed_total"] == 0


def test_a_native_call_in_another_wire_is_neither_recovered_nor_is_its_client_gone() -> None:
    function = {"name": "look", "arguments": '{"at": "tea"}'}
    delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]}
    choices = (
        [{"index": 0, "delta": delta, "finish_reason": None}],
        [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    )
    chunks = [b"data: %b\n\n" % json.dumps({"id": "c", "choices": choice}).encode() for choice in choices]
    with fake_upstream(chunked(*chunks)) as upstream, gateway({"upstreams": {"a": {"url": upstream.url}}}) as at:
        tool = {"name": "look", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}
        got = post(at, {**CHAT, "max_tokens": 9, "stream": True, "tools": [tool]}, "/v1/messages")
        until(lambda: figures(at)["agentkit_requests_in_flight"] == 0)
        found = figures(at)
    assert "tool_use" in got.text
    assert found["agentkit_client_left_total"] == 0
    assert not [name for name in found if name.startswith("agentkit_recovered_calls")]


def test_an_error_of_the_upstream_is_counted_whatever_its_code() -> None:
    busy = {"error": {"message": "wait", "code": "rate_limit_exceeded"}}
    with (
        fake_upstream(whole(busy, 429)) as upstream,
        gateway({"upstreams": {"a": {"url": upstream.url, "repeats": 0}}}) as at,
    ):
        got = post(at, {**CHAT, "max_tokens": 9}, "/v1/messages")
        until(lambda: figures(at)["agentkit_requests_in_flight"] == 0)
        found = figures(at)
    assert got.status_code == 429
    assert found['agentkit_upstream_errors_total{upstream="a",code="429"}'] == 1


def test_a_client_that_left_is_counted() -> None:
    with fake_upstream([30.0]) as upstream, gateway(raw(upstream.url)) as at:
        leave(at, upstream)
        until(lambda: figures(at)["agentkit_client_left_total"] == 1)


def test_models_of_the_upstream_and_of_the_map() -> None:
    with fake_upstream(whole(MODELS)) as upstream:
        models = {"gpt": {"model": "qwen", "format": "raw"}, "*": {}}
        with gateway(raw(upstream.url) | {"models": models}) as at, chat(at) as client, messages(at) as other:
            assert [model.id for model in client.models.list()] == ["gpt", "qwen", "llama"]
            assert [model.id for model in other.models.list()] == ["gpt", "qwen", "llama"]
            assert (client.models.retrieve("qwen").id, other.models.retrieve("gpt").id) == ("qwen", "gpt")
            with pytest.raises(openai.NotFoundError, match="there is no model 'qwem'; did you mean 'qwen'"):
                client.models.retrieve("qwem")
    assert upstream.requests[0][0][":path"] == "/v1/models"


def test_the_state_of_upstreams() -> None:
    with fake_upstream(whole(MODELS)) as upstream:
        upstreams = {"here": {"url": upstream.url}, "away": {"url": "http://127.0.0.1:9"}}
        with gateway({"upstreams": upstreams, "models": {"m": {"upstream": "here"}}}) as at:
            got = httpx2.get(f"{at}/healthz")
    assert (got.status_code, got.json()) == (200, {"status": "ok", "upstreams": {"here": "up", "away": "down"}})


def test_opentelemetry_gets_spans_and_figures() -> None:
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "_TRACER_PROVIDER", tracing)
        patch.setattr(metrics._internal, "_METER_PROVIDER", MeterProvider([reader]))
        with fake_upstream(whole(COMPLETION)) as upstream, gateway(raw(upstream.url)) as at:
            parent = f"00-{'a' * 32}-{'b' * 16}-01"
            post(at, headers={"traceparent": parent})
            until(spans.get_finished_spans)
    (span,) = spans.get_finished_spans()
    assert (span.name, span.parent and span.parent.span_id) == ("chat m", int("b" * 16, 16))
    assert span.context is not None
    assert upstream.requests[0][0]["traceparent"] == f"00-{'a' * 32}-{span.context.span_id:016x}-01"
    data: Any = reader.get_metrics_data()
    assert [one.name for one in data.resource_metrics[0].scope_metrics[0].metrics] == ["gen_ai.server.request.duration"]


def test_it_starts_fast() -> None:
    before = os.times().children_user
    with served("--upstream", "http://127.0.0.1:9", "--format", "raw"):
        pass
    took = os.times().children_user - before
    print(f"start: {took:.2f} s of CPU")
    assert took < 5  # 0.5 s on a quiet machine; this finds a provider's SDK that is loaded
