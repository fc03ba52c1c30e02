"""The options of `agentkit serve` for an agent that is served as a model, and the agent that they name."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from agentkit.cli.python_objects import load_agent
from agentkit.errors import ConfigError

if TYPE_CHECKING:
    from agentkit.gateway.agent_model import AgentModel

AGENT_OPTIONS: Final = ("agent", "store", "unapproved", "show_calls")
"""The names of the options."""

UNAPPROVED: Final = ("deny", "safe", "ask")
"""What becomes of calls that need approval, see `agentkit.gateway.agent_model`, which takes long to load."""


def add_agent(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument(
        "--agent", metavar="MODULE:NAME", help="serve an Agent with its own tools as a model, such as shop:agent"
    )
    command.add_argument(
        "--store",
        metavar="WHERE",
        help="keep threads of the agent, a SQLite file or postgresql://user@host/database; default: none",
    )
    command.add_argument(
        "--unapproved",
        choices=UNAPPROVED,
        help="calls of the agent that need approval: deny them; offer safe tools only; or let them wait in their "
        "thread, and ask in the reply; default: deny",
    )
    command.add_argument("--show-calls", action="store_true", help="show the agent's calls in the reply's thinking")


def agent_of(arguments: argparse.Namespace) -> AgentModel | None:
    """Return the agent of the options, which must be closed; None if there is none.

    Raises:
        ConfigError: it cannot be loaded, its model has no key, or options do not go together.
    """
    if arguments.agent is None:
        given = [f"--{name}" for name in ("store", "unapproved") if getattr(arguments, name) is not None]
        given += ["--show-calls"] if arguments.show_calls else []
        if given:
            raise ConfigError(f"{' and '.join(given)}: for an agent only; name it with --agent")
        return None
    if arguments.unapproved == "ask" and arguments.store is None:
        raise ConfigError("--unapproved ask: calls wait in a thread; name a store for it with --store")
    from agentkit.cli.threads import store_option
    from agentkit.gateway.agent_model import APPROVE, AgentModel
    from agentkit.threads import ThreadManager

    agent = load_agent(arguments.agent)
    threads = None if arguments.store is None else ThreadManager(arguments.store)
    where = "" if arguments.store is None else store_option(arguments.store).replace("{", "{{").replace("}", "}}")
    return AgentModel(
        agent,
        threads=threads,
        unapproved=arguments.unapproved or "deny",
        approve=f"{APPROVE}{where}",
        shows_calls=arguments.show_calls,
    )
