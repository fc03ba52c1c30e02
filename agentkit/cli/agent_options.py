"""The options of an agent that is made for the command line, and the agent that they describe."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentkit.cli.flag_words import TOOLS
from agentkit.cli.keyboard import as_argument
from agentkit.cli.model_choice import add_format, add_settings

if TYPE_CHECKING:
    from agentkit.agent import Agent
    from agentkit.interop.mcp import MCPTools
    from agentkit.models import Model


def add_agent_parts(command: argparse.ArgumentParser) -> None:
    """Declare what an agent has besides its model."""
    add_format(command)
    add_settings(command)
    command.add_argument("--system", type=as_argument, help="the system prompt")
    command.add_argument("-t", "--tools", **TOOLS, default=[], help="such as agentkit_tools.files:Files")
    command.add_argument(
        "--mcp", metavar="FILE", help="also the tools of the MCP servers in this file, such as servers.json"
    )
    command.add_argument("--require-approval", action="store_true", help="require approval for every call")


def agent_with(model: Model, arguments: argparse.Namespace, servers: Sequence[MCPTools]) -> Agent:
    """Return an agent with the tools and settings of these arguments.

    Args:
        model: answers.
        arguments: those of `add_agent_parts`.
        servers: further tools.

    Raises:
        ConfigError: a tool cannot be loaded.
    """
    from agentkit.agent import Agent
    from agentkit.processor import ProcessorConfig

    settings = {name: getattr(arguments, name) for name in ("max_tokens", "temperature", "max_turns")}
    given = {name: value for name, value in settings.items() if value is not None}
    config = ProcessorConfig(requires_approval=True if arguments.require_approval else None)
    return Agent(model, [*arguments.tools, *servers], system=arguments.system, config=config, **given)
