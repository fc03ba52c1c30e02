"""`--probe`: what is found about servers that answer well and badly, and the setting that cures each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from raw_server import raw_server
from replay_server import Recorded, ReplayServer

from agentkit import formats
from agentkit.cli.probe_report import lines, run_probe
from agentkit.errors import ConfigError, ProviderError
from agentkit.gateway import stream_faults as faults
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.probe_findings import ModelFinding
from agentkit.gateway.upstream_probe import ProbedServer, ProbeReport, get_time, listed_models, probe
from agentkit.messages import ToolCall
from agentkit.tool import ToolRegistry

pytestmark = pytest.mark.anyio

CITIES = ("Ulm", "Bonn")
SPECS = ToolRegistry(get_time).specs()
USAGE = {"prompt_tokens": 20, "completion_tokens": 30, "total_tokens": 50}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def whole(message: dict[str, Any], reason: str = "stop") -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    return json.dumps({"id": "c", "choices": [choice], "usage": USAGE}).encode()


def stream(*deltas: dict[str, Any], reason: str | None = "stop", done: bool = True, usage: bool = True) -> bytes:
    chunks: list[Any] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    chunks += [{"choices": [], "usage": USAGE}] if usage else []
    return "".join(f"data: {json.dumps(c)}\n\n" for c in chunks).encode() + (b"data: [DONE]\n\n" if done else b"")


def call(index: int, *, at: int | None = None, **more: Any) -> dict[str, Any]:
    function = {"name": "get_time", "arguments": json.dumps({"city": CITIES[index]})}
    return {"index": index if at is None else at, "id": f"c{index}", "type": "function", "function": function, **more}


def in_text(format: str) -> str:
    return formats.render_calls(format, [ToolCall("", "get_time", {"city": city}) for city in CITIES], SPECS)


NATIVE_WHOLE = whole({"content": None, "tool_calls": [call(0), call(1)]}, "tool_calls")
NATIVE_STREAM = stream({"tool_calls": [call(0)]}, {"tool_calls": [call(1)]}, reason="tool_calls")
HERMES = in_text("hermes")


@contextmanager
def server(*replies: bytes | Recorded) -> Iterator[ProbedServer]:
    with ReplayServer(replies) as replay:
        yield ProbedServer(replay.url)


async def finding(*replies: bytes | Recorded, kind: str | None = None, name: str = "qwen2.5") -> ModelFinding:
    with server(*replies) as probed:
        return (await probe(probed._replace(server=kind), [name])).findings[0]


async def test_a_server_that_calls_natively_needs_nothing() -> None:
    found = await finding(NATIVE_WHOLE, NATIVE_STREAM)
    assert (str(found.whole), str(found.streamed), found.text, found.setting) == (
        "native",
        "native",
        None,
        "--format auto",
    )
    assert found.notes == ()


@pytest.mark.parametrize("format", ["hermes", "llama3_json", "qwen3_coder", "pythonic"])
async def test_calls_in_text_are_read(format: str) -> None:
    text = in_text(format)
    found = await finding(whole({"content": text}), stream({"content": text}))
    assert (found.whole.calls, found.streamed.calls, found.text) == ("text", "text", None)
    assert found.setting == "--format auto"
    assert found.streamed.format == format


async def test_native_calls_that_come_as_text_in_a_stream() -> None:
    found = await finding(NATIVE_WHOLE, stream({"content": HERMES}))
    assert (str(found.whole), str(found.streamed), found.setting) == ("native", "in text (hermes)", "--format auto")


async def test_calls_that_the_server_cuts_out() -> None:
    found = await finding(whole({"content": ""}), stream({"content": ""}), stream({"content": HERMES}))
    assert (found.whole.calls, found.streamed.calls) == ("cut out", "cut out")
    assert found.setting == "--format hermes"


async def test_calls_that_the_server_cuts_out_whatever_is_asked() -> None:
    empty = stream({"content": ""})
    found = await finding(whole({"content": ""}), empty, empty, stream({"content": "Hello."}), kind="vllm")
    assert (found.text and found.text.calls, found.works) == ("cut out", False)
    assert found.setting.startswith("start vLLM without --tool-call-parser")


@pytest.mark.parametrize(
    ("streamed", "fault"),
    [
        (stream({"tool_calls": [call(0)]}, {"tool_calls": [call(1, at=0)]}, reason="tool_calls"), faults.SHARED),
        (stream({"tool_calls": [call(0)]}, {"tool_calls": [call(1)]}), faults.STOP),
        (stream({"tool_calls": [call(0, at=1)]}, reason="tool_calls"), faults.GAPS),
    ],
)
async def test_a_stream_that_clients_misread_is_replaced_by_text(streamed: bytes, fault: str) -> None:
    found = await finding(NATIVE_WHOLE, streamed, stream({"content": HERMES}))
    assert (str(found.streamed), found.setting) == ("native, bad wire", "--format hermes")
    assert found.notes == (f"streamed: {fault}",)


async def test_what_harms_nobody_is_only_noted() -> None:
    quiet = stream({"tool_calls": [call(0)]}, reason="tool_calls", done=False, usage=False)
    found = await finding(NATIVE_WHOLE, quiet)
    assert (str(found.streamed), found.setting) == ("native", "--format auto")
    assert found.notes == (f"streamed: {faults.NO_DONE}, {faults.NO_USAGE}",)


MESSAGE = {"id": "m", "type": "message", "role": "assistant", "stop_reason": "tool_use", "usage": {"output_tokens": 9}}
TOOL_USE = {"type": "tool_use", "id": "c0", "name": "get_time", "input": {"city": "Ulm"}}
ITEM = {"type": "function_call", "id": "i", "call_id": "c0", "name": "get_time", "arguments": '{"city": "Ulm"}'}
RESPONSE = {"id": "r", "object": "response", "status": "completed", "output": [ITEM], "usage": {"output_tokens": 9}}


@pytest.mark.parametrize(
    ("wire", "reply", "path"),
    [
        ("messages", MESSAGE | {"content": [TOOL_USE]}, "/v1/messages"),
        ("responses", RESPONSE, "/v1/responses"),
    ],
)
async def test_the_other_wires(wire: WireName, reply: dict[str, Any], path: str) -> None:
    with ReplayServer([json.dumps(reply).encode()] * 2) as replay:
        url = replay.url.removesuffix("/v1") if wire == "messages" else replay.url
        found = (await probe(ProbedServer(url, wire), ["qwen2.5"])).findings[0]
        assert (found.whole.calls, found.streamed.calls, found.setting) == ("native", "native", "--format auto")
        assert [request.path for request in replay.requests] == [path, path]


async def test_a_server_that_refuses_tools() -> None:
    refusal = Recorded(b'{"error": {"message": "this model does not support tools"}}', 400)
    found = await finding(refusal, refusal, stream({"content": in_text("xml")}), name="other")
    assert (found.whole.calls, found.streamed.calls, found.setting) == ("refused", "refused", "--format xml")
    assert "does not support tools" in found.notes[0]


async def test_a_model_that_calls_in_no_way() -> None:
    words = "It is noon in both."
    found = await finding(whole({"content": words}), stream({"content": words}), stream({"content": words}))
    assert (str(found.whole), found.setting, found.works) == ("no call", "let --fit try more formats", False)


@pytest.mark.parametrize(("said", "grammar"), [("agentkit-7", True), ("Hello.", False)])
async def test_whether_the_server_enforces_grammars(said: str, grammar: bool) -> None:
    words = "It is noon in both."
    replies = whole({"content": words}), stream({"content": words}), stream({"content": words})
    found = await finding(*replies, whole({"content": said}), kind="llamacpp")
    assert found.grammar is grammar
    assert found.setting == ("--format hermes --constrained" if grammar else "let --fit try more formats")


async def test_fit_chooses_the_setting_if_it_finds_one() -> None:
    with server(NATIVE_WHOLE, NATIVE_STREAM) as probed:  # refuses everything after that
        (found,) = (await probe(probed, ["qwen2.5"], fit=True)).findings
    assert (found.fit_error, found.setting) == ("no mode did a task right", "--format auto")
    assert replace(found, fit="hermes+c", fitted="8 of 12 tasks right").setting == "--format hermes --constrained"
    assert replace(found, fit="native").setting == "--format auto"


# ---------------------------------------------------------------- lists, and servers that do not answer


def models_of(*names: str, owner: str = "vllm", status: str = "200 OK") -> bytes:
    body = json.dumps({"object": "list", "data": [{"id": name, "owned_by": owner} for name in names]}).encode()
    return b"HTTP/1.1 %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (status.encode(), len(body), body)


async def test_the_models_of_a_server() -> None:
    async with raw_server(models_of("a", "b")) as url:
        assert await listed_models(ProbedServer(f"{url}/v1")) == {"a": "vllm", "b": "vllm"}


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (models_of(), ConfigError, "status 200 and lists no models: name one"),
        (models_of("a", status="404 Not Found"), ConfigError, "status 404 and lists no models"),
        (models_of("a", status="401 Unauthorized"), ProviderError, "it needs a key: name the variable that has it"),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>", ConfigError, "lists no models"),
    ],
)
async def test_no_list(reply: bytes, error: type[Exception], message: str) -> None:
    async with raw_server(reply) as url:
        with pytest.raises(error, match=message):
            await probe(ProbedServer(f"{url}/v1"))


async def test_a_wrong_key_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROBED_KEY", "sk-secret-of-mine")
    async with raw_server(models_of("a", status="403 Forbidden")) as url:
        with pytest.raises(ProviderError, match="it refused the key") as refused:
            await probe(ProbedServer(f"{url}/v1", key_env="PROBED_KEY"))
    assert "sk-secret" not in str(refused.value)


async def test_no_server_and_no_key() -> None:
    with pytest.raises(
        ProviderError, match=r"there is no answer at http://127\.0\.0\.1:9/v1/models .*: start the server"
    ):
        await probe(ProbedServer("http://127.0.0.1:9/v1"))
    with pytest.raises(ConfigError, match="the environment variable NOT_THERE is not set"):
        await probe(ProbedServer("http://127.0.0.1:9/v1", key_env="NOT_THERE"), ["a"])


# ---------------------------------------------------------------- the report


def test_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    bad = stream({"tool_calls": [call(0)]}, {"tool_calls": [call(1, at=0)]}, reason="tool_calls")
    with server(NATIVE_WHOLE, NATIVE_STREAM, NATIVE_WHOLE, bad, stream({"content": HERMES})) as probed:
        assert run_probe(probed, ["qwen2.5", "qwen3"]) == 0
    assert capsys.readouterr().out == (
        "model    whole   streamed          as text           grammar  setting\n"
        "-------  ------  ----------------  ----------------  -------  ---------------\n"
        "qwen2.5  native  native            -                 -        --format auto\n"
        "qwen3    native  native, bad wire  in text (hermes)  -        --format hermes\n"
        "\n"
        "qwen3\n"
        "  streamed: several calls at one index\n"
    )


def test_exit_status_1_if_no_setting_helps(capsys: pytest.CaptureFixture[str]) -> None:
    words = whole({"content": "Noon."}), stream({"content": "Noon."}), stream({"content": "Noon."})
    with server(*words) as probed:
        assert run_probe(probed, ["qwen2.5"]) == 1
    assert "let --fit try more formats" in capsys.readouterr().out


def test_models_that_were_not_asked_are_counted() -> None:
    assert list(lines(ProbeReport((), 292)))[-1] == "The server lists 292 more: name those to probe."
