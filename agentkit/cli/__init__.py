"""The command line: `agentkit demo | chat | threads | parse | formats | tools`. One file per group of commands.

argparse only. Exit status: 0 done, 1 the command could not do it (the message says why), 2 wrong arguments, 3 a call
waits for approval, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from agentkit.cli import chat, demo, inspect, threads
from agentkit.cli.terminal import plain
from agentkit.errors import AgentkitError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the words after `agentkit`; those of the process unless given.

    Returns:
        The exit status.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 shows ? instead of ending the run
    arguments = parser().parse_args(argv)
    sys.path.insert(0, os.getcwd())  # so that --tools my_module:MyTool finds the file beside the user
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except AgentkitError as e:
        print(f"agentkit {arguments.command}: {plain(str(e))}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    from agentkit import __version__

    top = argparse.ArgumentParser(prog="agentkit", description="Write a tool method once; any model can call it.")
    top.add_argument("--version", action="version", version=f"agentkit {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    demo.add(commands)
    chat.add(commands)
    threads.add(commands)
    inspect.add(commands)
    return top
