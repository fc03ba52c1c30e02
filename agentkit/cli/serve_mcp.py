"""`agentkit mcp`: the tools of a class as an MCP server, over stdio or streamable HTTP.

And what `agentkit chat` and `agentkit rollout` need: a server's command is shown and approved at the terminal.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkit.cli.flag_words import TOOLS, flag_of, given_names, port
from agentkit.cli.help_text import examples
from agentkit.cli.keyboard import read_line
from agentkit.cli.terminal import plain
from agentkit.errors import ConfigError

if TYPE_CHECKING:
    from mcp.server import Server

    from agentkit.interop.mcp import MCPTools


def add(commands: Any) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "mcp",
        help="serve tools to MCP clients",
        description="Serve tools over the Model Context Protocol: over standard input and output, or with --http.",
        epilog=examples(
            "agentkit mcp -t agentkit_tools.files:Files",
            "agentkit mcp -t agentkit_tools.files:Files --http --port 8000",
        ),
    )
    command.add_argument("-t", "--tools", **TOOLS, required=True, help="such as agentkit_tools.files:Files")
    command.add_argument("--name", default="agentkit", help="the server's name; default: agentkit")
    command.add_argument("--http", action="store_true", help="serve streamable HTTP, at /mcp")
    command.add_argument("--host", default="127.0.0.1", help="the address to listen at; default: 127.0.0.1")
    command.add_argument("--port", type=port, default=8000, help="default: 8000; 0 chooses a free one")
    command.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a further name by which clients call it"
    )
    command.add_argument("--token-env", metavar="NAME", help="the environment variable with the token of its clients")
    command.add_argument(
        "--approve",
        choices=("always", "never"),
        default="never",
        help="what to do with calls that need approval: a server has nobody to ask; default: never",
    )
    command.set_defaults(run=run, parser=command)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the input ends, or until Ctrl-C."""
    from agentkit.interop.mcp import mcp_server
    from agentkit.tool.registry import ToolRegistry

    for name in () if arguments.http else given_names(arguments):
        if name in ("host", "port", "allow_host", "token_env"):
            arguments.parser.error(f"{flag_of(name)} is for a server over HTTP: add --http, or remove it")
    registry = ToolRegistry(*arguments.tools)
    server = mcp_server(registry, name=arguments.name, approve_all=arguments.approve == "always")
    asyncio.run(_http(server, arguments) if arguments.http else _stdio(server))
    return 0


async def _stdio(server: Server[Any]) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _http(server: Server[Any], arguments: argparse.Namespace) -> None:
    import uvicorn

    from agentkit.interop.mcp import mcp_app

    token = None
    if arguments.token_env is not None and not (token := os.environ.get(arguments.token_env)):
        raise ConfigError(f"--token-env: the environment variable {arguments.token_env} is not set")
    logging.getLogger("mcp.server.streamable_http").addFilter(_no_departure)
    app: Any = mcp_app(server, host=arguments.host, allowed_hosts=arguments.allow_host, token=token)
    family = socket.AF_INET6 if ":" in arguments.host else socket.AF_INET
    with socket.create_server((arguments.host, arguments.port), family=family, backlog=2048) as listening:
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        print(f"serving MCP at http://{host}:{listening.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
        await uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on")).serve(sockets=[listening])


def _no_departure(record: logging.LogRecord) -> bool:
    """Say if a record of the SDK tells more than that a client left before it had sent its request."""
    return record.exc_info is None or type(record.exc_info[1]).__name__ != "ClientDisconnect"


# ---------------------------------------------------------------- the servers of a chat


def servers(
    path: str | None, approve: str, who: str = "this chat", otherwise: str = ", or pass --approve always"
) -> Sequence[MCPTools]:
    """The servers of a file, not yet started.

    Args:
        path: the `mcpServers` file; None for no servers.
        approve: as `--approve` of the chat.
        who: the program that asks whether a server may be started.
        otherwise: what else would do.

    Raises:
        ConfigError: the file cannot be read.
    """
    if path is None:
        return ()
    if not path:
        raise ConfigError("--mcp: expected the name of a file, found an empty one")
    from agentkit.interop.mcp import MCPTools

    def approved(command: str) -> bool:
        return approve == "always" if approve != "ask" else asked(command, who, otherwise)

    return MCPTools.from_file(path, pins=pins_of(path), approve=approved)


def pins_of(path: str | os.PathLike[str]) -> Path:
    """Where the approved commands and the pins of the servers of a file are kept: next to it."""
    return Path(path).with_suffix(".pins.json")


def asked(command: str, who: str, otherwise: str = "") -> bool:
    """Ask at the terminal whether the command of an MCP server may be started.

    Args:
        command: as it would be run.
        who: the program to start in a terminal instead.
        otherwise: what else would do.

    Raises:
        ConfigError: standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise ConfigError(
            f"the MCP server {command!r} was never approved, and nobody can be asked here: start {who} once in "
            f"a terminal{otherwise}"
        )
    print(plain(f"starts the MCP server: {command}"))
    while (answer := read_line("start it? (y/n) ").strip().lower()) not in ("y", "yes", "n", "no"):
        pass
    return answer in ("y", "yes")
