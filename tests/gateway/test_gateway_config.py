"""A gateway's settings: what a file may say, and how a mistake in it is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Say

from agentkit.errors import ConfigError
from agentkit.gateway.gateway_config import (
    GatewayConfig,
    GatewayLimits,
    GatewayModel,
    GatewayTimeouts,
    UpstreamSettings,
    read_config,
)

FILE = """
host: 0.0.0.0
port: 4001
allowed_hosts: [gw.example.org]
allowed_origins: ["https://app.example.org"]
upstreams:
  local: {url: "http://127.0.0.1:8000/v1", server: vllm, key_env: VLLM_KEY}
  cloud: {url: "https://api.anthropic.com", wire: messages, key_env: ANTHROPIC_API_KEY}
models:
  qwen: {upstream: local, model: Qwen/Qwen3-8B, format: qwen3_coder, constrained: true, retries: 1}
  claude: {upstream: cloud, format: raw}
keys: {ada: ADA_KEY}
limits: {body_bytes: 1000000, concurrent: 50}
timeouts: {idle: 60, heartbeat: 5}
log: access.jsonl
"""


def read(folder: Path, text: str) -> GatewayConfig:
    path = folder / "gateway.yaml"
    path.write_text(text)
    return read_config(path)


def test_a_file_says_all(tmp_path: Path) -> None:
    assert read(tmp_path, FILE) == GatewayConfig(
        upstreams={
            "local": UpstreamSettings("local", "http://127.0.0.1:8000/v1", "chat", "vllm", "VLLM_KEY"),
            "cloud": UpstreamSettings("cloud", "https://api.anthropic.com", "messages", key_env="ANTHROPIC_API_KEY"),
        },
        models={
            "qwen": GatewayModel("qwen", "local", "Qwen/Qwen3-8B", "qwen3_coder", True, 1),
            "claude": GatewayModel("claude", "cloud", format="raw"),
        },
        keys={"ada": "ADA_KEY"},
        allowed_hosts=("gw.example.org",),
        allowed_origins=("https://app.example.org",),
        host="0.0.0.0",
        port=4001,
        limits=GatewayLimits(body_bytes=1_000_000, concurrent=50),
        timeouts=GatewayTimeouts(idle=60, heartbeat=5),
        log="access.jsonl",
    )


def test_one_server_is_enough(tmp_path: Path) -> None:
    config = read(tmp_path, "upstreams: {a: {url: http://127.0.0.1:8000}}")
    assert config.models == {"*": GatewayModel("*", "a")}
    assert (config.host, config.port) == ("127.0.0.1", 4000)


LOCAL = "upstreams: {a: {url: http://x}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            (
                ": expected a mapping with upstreams, models, keys, allowed_hosts, allowed_origins, host, port, "
                "limits, timeouts, log, found None"
            ),
        ),
        ("a: [", ": cannot be read as YAML: "),
        ("upstreams: {}", ": upstreams: expected at least one server, such as local: {url: http://…/v1}"),
        ("upstream: {}", ": upstream: there is no setting 'upstream'; did you mean 'upstreams'? There are upstreams, "),
        ("upstreams: {a: {}}", ": upstreams.a: has no url, such as http://127.0.0.1:8000/v1"),
        (
            "upstreams: {a: {url: localhost}}",
            (": upstreams.a.url: expected a URL such as http://127.0.0.1:8000/v1, found 'localhost'"),
        ),
        (
            "upstreams: {a: {url: 'http://ada:secret@x'}}",
            (": upstreams.a.url: has credentials or a query; name the variable of the server's key in key_env"),
        ),
        (
            "upstreams: {a: {url: http://x, wire: chats}}",
            (": upstreams.a.wire: expected one of chat, responses, messages, found 'chats'; did you mean 'chat'?"),
        ),
        ("upstreams: {a: {url: http://x, server: vlm}}", ": upstreams.a.server: expected one of vllm, sglang, "),
        ("upstreams: {a: {url: http://x, key_env: sk-1}}", ": upstreams.a.key_env: expected the name of a variable"),
        (
            LOCAL + "models: {m: {format: hermse}}",
            (
                ": models.m.format: expected auto, raw or a text format; no "
                "format is called 'hermse'; did you mean 'hermes'?"
            ),
        ),
        (LOCAL + "models: {m: {upstream: b}}", ": models.m.upstream: there is no upstream 'b'; there are a"),
        (LOCAL + "models: {m: {retries: -1}}", ": models.m.retries: expected an integer (0 or more), found -1"),
        (
            LOCAL + "models: {m: {constraind: true}}",
            (": models.m.constraind: there is no setting 'constraind'; did you mean 'constrained'?"),
        ),
        (LOCAL + "models: [m]", ": models: expected a mapping, found ['m']"),
        (LOCAL + "limits: {body_bytes: 1MB}", ": limits.body_bytes: expected an integer (1 or more), found '1MB'"),
        (LOCAL + "timeouts: {idle: 0}", ": timeouts.idle: expected seconds above 0, found 0"),
        (LOCAL + "port: 70000", ": port: expected a port from 0 to 65535, found 70000"),
        (LOCAL + "host: 0.0.0.0", ": host: '0.0.0.0' can be reached from other machines: list the names by which "),
        (
            "upstreams: {a: {url: http://x, key_env: A}}\nhost: 0.0.0.0\nallowed_hosts: [x]",
            (
                ": host: '0.0.0.0' can be "
                "reached from other machines, and would share an upstream's key with them: give clients "
            ),
        ),
        ("upstreams: {a: {url: http://x}, b: {url: http://y}}", ": models.*: has no upstream; there are a, b"),
    ],
)
def test_mistakes(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'gateway.yaml'}{message}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "no model server given: pass --upstream http://127.0.0.1:8000/v1, or --config gateway.yaml"),
        ("--upstream x", "--upstream: expected a URL such as http://127.0.0.1:8000/v1, found 'x'"),
        (
            "--upstream http://x --format hermse",
            ("--format: expected auto, raw or a text format; no format is called 'hermse'; did you mean 'hermes'?"),
        ),
        ("--upstream http://x --retries -1", "--retries: expected an integer (0 or more), found -1"),
        (
            "--upstream http://x --host 0.0.0.0",
            (
                "--host: '0.0.0.0' can be reached from other machines: list the names "
                "by which clients call the gateway in --allow-host"
            ),
        ),
        (
            "--upstream http://x --host 0.0.0.0 --allow-host x --upstream-key-env A",
            (
                "--host: '0.0.0.0' can be reached "
                "from other machines, and would share an upstream's key with them: give clients --key-env"
            ),
        ),
        (
            "--config gateway.yaml --port 1 --format raw",
            ("--config is for all settings: move --format, --port into gateway.yaml"),
        ),
        ("--config missing.yaml", "missing.yaml: cannot be read as YAML: [Errno 2] "),
        (
            "--upstream http://x --key-env ada=NO_SUCH_KEY",
            "the key of the client ada: the environment variable NO_SUCH",
        ),
        ("--upstream http://x --upstream-key-env NO_SUCH_KEY", "the key of the upstream upstream: the environment "),
        ("--upstream http://x --log /no/such/folder/log", "the log: cannot write '/no/such/folder/log': No such file "),
    ],
)
def test_mistakes_in_options(words: str, message: str, say: Say, tmp_path: Path) -> None:
    status, out, err = say("serve", *words.split())
    assert (status, out) == (2, "")
    assert err.startswith(f"agentkit serve: {message}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--wire chats", "argument --wire: invalid choice: 'chats'; did you mean 'chat'? There are chat, responses, "),
        ("--model-map gpt", "argument --model-map: expected NAME=VALUE, found 'gpt'"),
    ],
)
def test_options_that_argparse_refuses(words: str, message: str, say: Say, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        say("serve", *words.split())
    assert message in capsys.readouterr().err
