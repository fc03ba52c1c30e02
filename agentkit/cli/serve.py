"""`agentkit serve`: the gateway, which gives any client native calls from any model server."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from agentkit.checks.callers import LOOPBACK
from agentkit.cli.flag_words import flag_of, given_names
from agentkit.cli.flag_words import port as port_number
from agentkit.cli.help_text import examples
from agentkit.cli.serve_agent import AGENT_OPTIONS, add_agent, agent_of
from agentkit.errors import ConfigError, install_command
from agentkit.gateway.client_wire import PATHS, WireName
from agentkit.models.servers import SERVERS

if TYPE_CHECKING:
    from agentkit.gateway.agent_model import AgentModel
    from agentkit.gateway.gateway_app import Gateway
    from agentkit.gateway.gateway_config import GatewayConfig

_UPSTREAM: Final = "upstream"
"""The name of the server of `--upstream`."""

_FLAGS: Final[Mapping[str, str]] = {
    f"upstreams.{_UPSTREAM}.url": "--upstream",
    f"upstreams.{_UPSTREAM}.key_env": "--upstream-key-env",
    "keys": "--key-env",
    "host": "--host",
    "allowed_hosts": "--allow-host",
    "log": "--log",
}
"""The options of settings that may be wrong together with others."""


def add(commands: Any) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "serve",
        help="serve native calls from any model server",
        description="Serve OpenAI's and Anthropic's APIs in front of a model server; calls in text become native.",
        epilog=examples(
            "agentkit serve --upstream http://127.0.0.1:8000/v1",
            "agentkit serve --upstream http://127.0.0.1:8080 --server llamacpp --format hermes --constrained",
            "agentkit serve --config gateway.yaml",
            after="Then set OPENAI_BASE_URL=http://127.0.0.1:4000/v1 or ANTHROPIC_BASE_URL=http://127.0.0.1:4000.",
        ),
    )
    command.add_argument("--config", metavar="FILE", help="all settings from a YAML file; no other option is allowed")
    command.add_argument("--upstream", metavar="URL", help="the model server, such as http://127.0.0.1:8000/v1")
    command.add_argument("--wire", choices=tuple(PATHS), help="the API that it speaks; default: chat")
    command.add_argument("--server", choices=tuple(SERVERS), help="its kind, if it is one of these")
    command.add_argument(
        "--format",
        help="auto: native calls, and those in text become native; raw: nothing is changed; or a text format, in which "
        "the model is taught to call; default: auto",
    )
    command.add_argument("--constrained", action="store_true", help="constrain calls in text by a grammar")
    command.add_argument("--retries", type=int, metavar="N", help="how often the model is asked again; default: 2")
    command.add_argument(
        "--model-map",
        action="append",
        default=[],
        type=_pair,
        metavar="CLIENT=UPSTREAM",
        help="a name that clients use, and the upstream's name of that model; may be repeated",
    )
    add_listening(command, port=4000)
    command.add_argument("--upstream-key-env", metavar="ENV", help="the environment variable with the upstream's key")
    add_agent(command)
    command.add_argument(
        "--probe", action="store_true", help="find out what the server's models do with tools, and which options help"
    )
    command.add_argument("--fit", action="store_true", help="with --probe: also try formats on a dozen tasks each")
    command.add_argument("--log", metavar="FILE", help="the access log; default: standard output")
    command.set_defaults(run=run, parser=command)


def add_listening(command: argparse.ArgumentParser, port: int) -> None:
    """Declare where a gateway listens, and who may call it.

    Args:
        command: the command.
        port: the default port.
    """
    command.add_argument("--host", help="the address to listen at; default: 127.0.0.1")
    command.add_argument("--port", type=port_number, help=f"default: {port}; 0 chooses a free one")
    command.add_argument(
        "--key-env",
        action="append",
        default=[],
        type=_pair,
        metavar="CLIENT=ENV",
        help="a client's name, and the environment variable with its key; may be repeated",
    )
    command.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a further name by which clients call it"
    )
    command.add_argument(
        "--allow-origin", action="append", default=[], metavar="URL", help="a web page that may call it"
    )


def listening(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings of `add_listening`, as a gateway's file has them; without those left to their defaults."""
    callers = {"allowed_hosts": arguments.allow_host, "allowed_origins": arguments.allow_origin}
    return {"keys": dict(arguments.key_env), **callers, **_given({"host": arguments.host, "port": arguments.port})}


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if name and equals and value:
        return name, value
    raise argparse.ArgumentTypeError(f"expected NAME=VALUE, found {text!r}")


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    from agentkit.gateway.gateway_app import Gateway
    from agentkit.gateway.wires import WIRES

    if arguments.probe:
        return _probe(arguments)
    if arguments.fit:
        raise ConfigError("--fit: for the findings of --probe; pass both")
    config = _config(arguments)
    agent = agent_of(arguments)
    gateway = Gateway(config, WIRES, os.environ, [] if agent is None else [agent])
    serve_gateway(gateway, lambda address: print(_greeting(config, address, agent), file=sys.stderr, flush=True))
    return 0


def serve_gateway(gateway: Gateway, greet: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        gateway: the application.
        greet: called with the URL, without a path, once it listens.

    Raises:
        ConfigError: uvicorn is missing, or the port is taken.
    """
    try:
        from agentkit.gateway.gateway_server import address_of, listen, server_of
    except ImportError as e:
        raise ConfigError(f"the gateway needs uvicorn: {install_command('gateway')}") from e
    server = server_of(gateway)
    gc.collect()
    gc.freeze()  # modules are never garbage: to search them again and again would delay replies
    with listen(gateway.config) as listening:
        address = address_of(listening)
        if gateway.config.host not in LOOPBACK:  # the name under which clients call it
            address = f"http://{gateway.config.allowed_hosts[0]}:{address.rpartition(':')[2]}"
        greet(address)
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(server.serve(sockets=[listening]))


_OF_UPSTREAM: Final = frozenset(
    ("--wire", "--server", "--format", "--constrained", "--retries", "--model-map", "--upstream-key-env")
)


def _config(arguments: argparse.Namespace) -> GatewayConfig:
    """The settings of the file, or of the options."""
    from agentkit.gateway.gateway_config import config_of, read_config

    given = [flag_of(name) for name in given_names(arguments) if name not in (*AGENT_OPTIONS, "config")]
    if arguments.config is not None:
        if given:
            raise ConfigError(f"--config is for all settings: move {', '.join(given)} into {arguments.config}")
        return read_config(arguments.config)
    if arguments.upstream is None and arguments.agent is None:
        raise ConfigError("no model server given: pass --upstream http://127.0.0.1:8000/v1, or --config gateway.yaml")
    lost = [option for option in given if option in _OF_UPSTREAM]
    if arguments.upstream is None and lost:
        raise ConfigError(f"{', '.join(lost)}: for a model server; add --upstream, or remove it")
    served = {} if arguments.upstream is None else _served(arguments)
    top = {**served, **listening(arguments), **_given({"log": arguments.log})}
    return config_of(top, as_flag, needs_upstream=arguments.agent is None)


def _served(arguments: argparse.Namespace) -> dict[str, Any]:
    """The server of the options, and its models."""
    upstream = {"url": arguments.upstream, "wire": arguments.wire, "server": arguments.server}
    model = {"format": arguments.format, "constrained": arguments.constrained, "retries": arguments.retries}
    return {
        "upstreams": {_UPSTREAM: _given(upstream | {"key_env": arguments.upstream_key_env})},
        "models": {
            **{name: _given(model | {"model": there}) for name, there in arguments.model_map},
            "*": _given(model),
        },
    }


def _probe(arguments: argparse.Namespace) -> int:
    """Find out what the models of the server do, and print it."""
    from agentkit.cli.probe_report import run_probe
    from agentkit.gateway.upstream_probe import ProbedServer

    if arguments.upstream is None:
        raise ConfigError("--probe: name the model server with --upstream, such as http://127.0.0.1:8000/v1")
    wire: WireName = arguments.wire or "chat"
    models = [there for _, there in arguments.model_map]
    probed = ProbedServer(arguments.upstream, wire, arguments.server, arguments.upstream_key_env)
    return run_probe(probed, models, fit=arguments.fit)


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that are not left to their defaults."""
    return {name: value for name, value in settings.items() if value is not None}


def as_flag(place: str) -> str:
    """A setting's option."""
    return _FLAGS.get(place) or flag_of(place.rpartition(".")[2])


def _greeting(config: GatewayConfig, address: str, agent: AgentModel | None) -> str:
    """The address, what it does for each model, and what to set in a client."""
    lines = [f"serving at {address}: set OPENAI_BASE_URL={address}/v1 or ANTHROPIC_BASE_URL={address}"]
    if agent is not None:
        lines.append(f"  {agent.name}: an agent")
    for name, model in config.models.items():
        upstream = config.upstreams[model.upstream]
        shown = "any model" if name == "*" else name
        there = f" as {model.model}" if model.model and model.model != name else ""
        lines.append(f"  {shown}: {upstream.url} ({upstream.wire}){there}, format {model.format}")
    return "\n".join(lines)
