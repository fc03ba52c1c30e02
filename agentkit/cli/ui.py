"""`agentkit ui`: a page in the browser to talk to an agent, to watch it work, and to approve its calls."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentkit.checks.callers import LOOPBACK
from agentkit.checks.keys import shown_url
from agentkit.cli.agent_options import add_agent_parts, agent_with
from agentkit.cli.flag_words import flag_of, given_names
from agentkit.cli.help_text import SETTINGS, examples
from agentkit.cli.model_choice import ModelChoice, add_model, is_reference, load_sdks
from agentkit.cli.python_objects import load_agent
from agentkit.cli.serve import add_listening, as_flag, listening, serve_gateway
from agentkit.cli.serve_mcp import servers
from agentkit.cli.settings import fill
from agentkit.cli.terminal import plain
from agentkit.cli.threads import add_store
from agentkit.errors import ConfigError

if TYPE_CHECKING:
    from agentkit.agent import Agent
    from agentkit.gateway.gateway_config import GatewayConfig
    from agentkit.gateway.ui.page_models import ModelOption
    from agentkit.gateway.ui.ui_app import Page
    from agentkit.models import Model

PORT: Final = 4001
NOTHING: Final = (
    "no model and no agent given: pass --model openai:gpt-5, or --agent shop:agent for an Agent in shop.py; "
    "--demo needs no key"
)
_ALWAYS: Final = frozenset(("store", "host", "port", "key_env", "allow_host", "allow_origin", "open"))
"""The options that go with a model, with an agent and with the demonstration."""


class PageAgent(NamedTuple):
    """The agent of a page.

    Attributes:
        agent: the agent.
        choices: the models that a person can choose.
        store: where its threads are.
        suggestions: messages to begin with; empty for none.
        again: the command that returns to these threads later; empty for the same one.
        models: those of the choices, as far as they are known before one is chosen.
    """

    agent: Agent
    choices: Sequence[ModelOption]
    store: str
    suggestions: Sequence[str] = ()
    again: str = ""
    models: Sequence[Model] = ()


def add(commands: Any) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "ui",
        help="talk to an agent in the browser: watch it work, approve its calls",
        description="Serve a page to talk to an agent, on this machine. Threads are kept in the store, as those of "
        "`agentkit chat --thread` are.",
        epilog=examples(
            "agentkit ui --demo",
            "agentkit ui -m openai:gpt-5 -t agentkit_tools.files:Files --open",
            "agentkit ui -m openai:gpt-5 -t agentkit_tools.files:Files agentkit_tools.web:Web --require-approval",
            "agentkit ui -m openai:gpt-5 -m anthropic:claude-sonnet-5",
            "agentkit ui --agent shop:agent --store chats.db",
            after=SETTINGS,
        ),
    )
    command.add_argument("--agent", metavar="MODULE:NAME", help="an Agent with its own tools, such as shop:agent")
    command.add_argument("--demo", action="store_true", help="a script in place of a model, with real tools; no key")
    add_model(command, repeated=True)
    add_agent_parts(command)
    add_store(command)
    add_listening(command, PORT)
    command.add_argument("--open", action="store_true", help="also open the page in the browser")
    command.set_defaults(run=run, parser=command)


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C or SIGTERM."""
    from agentkit.gateway.gateway_app import Gateway
    from agentkit.gateway.wires import WIRES

    config = _config(arguments)
    with _page_agent(arguments) as found:
        # at the first message, all of the page would wait for them
        threading.Thread(target=load_sdks, args=(found.agent.model, *found.models), daemon=True).start()
        gateway = Gateway(config, WIRES, os.environ, page=_page(found))
        serve_gateway(gateway, lambda address: _greet(address, arguments, found))
    return 0


def _config(arguments: argparse.Namespace) -> GatewayConfig:
    from agentkit.gateway.gateway_config import config_of

    if arguments.host is not None and arguments.host not in LOOPBACK and not arguments.key_env:
        raise ConfigError(
            f"--host: {arguments.host!r} can be reached from other machines, which could use your tools: give a key "
            "with --key-env me=PAGE_KEY"
        )
    return config_of({"port": PORT, **listening(arguments), "log": None}, as_flag, needs_upstream=False)


@contextmanager
def _page_agent(arguments: argparse.Namespace) -> Iterator[PageAgent]:
    """The agent that the options name, and what it needs while it is served.

    Raises:
        ConfigError: there is none, options do not go together, or a key is missing.
    """
    given = given_names(arguments)
    for alone in ("demo", "agent"):
        if alone in given:
            others = [flag_of(name) for name in given if name not in (*_ALWAYS, alone)]
            if others:
                raise ConfigError(f"--{alone} has its own model and tools: leave {' and '.join(others)} out")
    with ExitStack() as stack:
        if arguments.demo:
            yield _demo(arguments.store)
        elif arguments.agent is not None:
            fill(arguments, ("store",))
            yield PageAgent(load_agent(arguments.agent), (), arguments.store)
        else:
            yield _made(arguments, stack)


def _demo(store: str | None) -> PageAgent:
    """The agent of the demonstration, whose files are next to its store: with the same store, everything is back."""
    from agentkit.cli.ui_demo import NAME, PROMPT, DemoModel, demo_agent
    from agentkit.gateway.ui.page_models import ModelOption

    where = _absolute(store or str(Path(mkdtemp(prefix="agentkit-demo-"), "agentkit.db")))
    files = Path(f"{where}.files" if os.path.isabs(where) else mkdtemp(prefix="agentkit-demo-"))
    again = f"agentkit ui --demo --store {shlex.quote(shown_url(where))}"
    choice = ModelOption(NAME, f"{NAME} (a script)", lambda format: DemoModel(files, again, format))
    return PageAgent(demo_agent(files, again), [choice], where, [PROMPT], again)


def _absolute(store: str) -> str:
    """A store with the whole path of its file; a URL stays as it is."""
    return store if "://" in store or store == ":memory:" else os.path.abspath(store)


def _made(arguments: argparse.Namespace, stack: ExitStack) -> PageAgent:
    """An agent of the options' models and tools."""
    names: list[str] = arguments.model
    arguments.model = names[0] if names else None
    fill(arguments, ("model", "base_url", "api_key_env", "server", "format", "tools", "mcp", "store"))
    if not arguments.model:
        raise ConfigError(NOTHING)
    first = ModelChoice.of(arguments)
    chosen = [first, *(first.with_model(name) for name in names[1:])]
    models = [choice.create() for choice in chosen]
    tools = servers(arguments.mcp, "ask", "`agentkit ui`", "")
    for server in tools:
        print(f"starting the MCP server {plain(server.name)} …", file=sys.stderr, flush=True)
        stack.enter_context(server)
    options = [_option(choice, model) for choice, model in zip(chosen, models, strict=True)]
    return PageAgent(agent_with(models[0], arguments, tools), options, arguments.store, models=models)


def _option(choice: ModelChoice, model: Model) -> ModelOption:
    """A model as a choice of the page; a model object of Python has its own format."""
    from agentkit.gateway.ui.page_models import ModelOption, format_of

    if is_reference(choice.model):
        return ModelOption(model.name, choice.model, lambda _: model, format_of(model))
    return ModelOption(model.name, choice.model, lambda format: choice.with_format(format).create())


def _page(found: PageAgent) -> Page:
    from agentkit.gateway.ui.ui_app import Page
    from agentkit.threads import ThreadManager

    threads = ThreadManager(found.store, found.agent.registry)
    where = shown_url(_absolute(found.store))
    return Page(threads, found.agent, found.choices, suggestions=found.suggestions, where=where)


def _greet(address: str, arguments: argparse.Namespace, found: PageAgent) -> None:
    """Say where the page is, and open it. A key is never printed: it came from the environment."""
    key = f"#key=${arguments.key_env[0][1]}" if arguments.key_env else ""
    where = shown_url(_absolute(found.store))
    lines = [f"the page is at {address}/{key}", f"  {found.agent.model.name}, threads in {where}"]
    if found.again:
        lines.append(f"  to return to them later: {found.again}")
    print("\n".join(lines), file=sys.stderr, flush=True)
    if arguments.open:
        threading.Thread(target=webbrowser.open, args=(f"{address}/",), daemon=True).start()
