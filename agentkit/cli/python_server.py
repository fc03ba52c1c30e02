"""`agentkit python-server`: runs Python code for HTTP clients, in a sandbox."""

from __future__ import annotations

import argparse
import os
from typing import Any

from agentkit.cli.flag_words import port
from agentkit.cli.help_text import examples

HOST, PORT = "127.0.0.1", 1212


def add(commands: Any) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "python-server",
        help="run Python code for HTTP clients, in a sandbox",
        description="POST /execute {code, timeout} answers {output, error, success}; GET / answers the server's state. "
        "Compatible with the code server of open-instruct.",
        epilog=examples("agentkit python-server --port 1212 --preload numpy"),
    )
    command.add_argument("--host", default=HOST, help=f"address to listen on; default: {HOST}, this machine only")
    command.add_argument("--port", type=port, default=PORT, help=f"default: {PORT}; 0 chooses one")
    command.add_argument(
        "--workers", type=int, default=2 * (os.cpu_count() or 1), help="how many run at once; default: 2 per processor"
    )
    command.add_argument(
        "--queue", type=int, default=1000, help="how many may wait, more get status 503; default: 1000"
    )
    command.add_argument("--max-timeout", type=float, default=60.0, help="the longest timeout in seconds; default: 60")
    command.add_argument("--memory", type=int, default=1024, help="MiB for each process; default: 1024")
    command.add_argument("--processes", type=int, default=64, help="processes of one request at once; default: 64")
    command.add_argument("--preload", nargs="+", default=[], metavar="MODULE", help="modules to import in advance")
    command.add_argument("--sandbox", default="auto", help="auto, bwrap, landlock, or none; default: auto")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from agentkit_tools.python_server import ServerSettings, serve

    settings = ServerSettings(
        workers=arguments.workers,
        queue=arguments.queue,
        most_seconds=arguments.max_timeout,
        kind=arguments.sandbox,
        preload=tuple(arguments.preload),
        memory=arguments.memory << 20,
        processes=arguments.processes,
    )
    serve(settings, arguments.host, arguments.port)
    return 0
