"""`agentkit threads`: list, show, export and delete a store's threads, and decide about their waiting calls."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agentkit.checks.visible_text import visible
from agentkit.cli.flag_words import TOOLS, whole
from agentkit.cli.help_text import examples
from agentkit.cli.keyboard import as_argument
from agentkit.cli.screen import Screen
from agentkit.cli.settings import STORE
from agentkit.cli.terminal import as_json, columns, table, truncate, width
from agentkit.errors import ConfigError, StoreError, ThreadNotFound

if TYPE_CHECKING:
    from agentkit.threads import ThreadManager

Done = TypeVar("Done")
_EXAMPLES: Final[Mapping[str, str]] = {
    "list": " --limit 10",
    "show": " notes --full",
    "export": " notes --as openai",
    "delete": " notes",
    "approve": """ notes call_5 --arguments '{"name": "old.txt"}'""",
    "deny": ' notes call_6 --reason "I still need it"',
    "allowed": " notes",
    "revoke": " notes 1",
}
"""What follows the name of an action, for an example."""
Run = Callable[[argparse.Namespace], int]


def add(commands: Any) -> None:
    """Declare the commands and their options."""
    group = commands.add_parser(
        "threads",
        help="list, show, export, delete stored conversations; approve or deny their calls",
        epilog=examples(
            "agentkit threads list",
            "agentkit threads show notes",
            "agentkit threads approve notes call_5",
            "agentkit threads export notes --as openai",
        ),
    )
    actions = group.add_subparsers(dest="action", required=True, metavar="action")
    listed = _action(actions, "list", "list threads, newest changes first", partial(_opened, list_threads), named=False)
    listed.add_argument("--limit", type=whole, default=50, help="how many at most (default: 50)")
    shown = _action(actions, "show", "show turns, calls, results, durations, tokens, approvals", partial(_opened, show))
    shown.add_argument("--full", action="store_true", help="show complete texts instead of their first lines")
    exported = _action(actions, "export", "print the messages as JSON lines", partial(_opened, export))
    exported.add_argument(
        "--as", dest="wire", default="json", metavar="SHAPE",
        help="json (agentkit's own, lossless), openai, anthropic, or a text format such as hermes",
    )  # fmt: skip
    exported.add_argument("--tools", **TOOLS, default=[], help="for a text format: the tools, for their tags")
    deleted = _action(actions, "delete", "delete a thread and everything in it", delete)
    deleted.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    approved = _action(
        actions, "approve", "let a waiting call run once its thread continues", partial(_opened, approve)
    )
    denied = _action(actions, "deny", "deny a waiting call", partial(_opened, deny))
    for command in (approved, denied):
        command.add_argument("call", help="the call's id, as printed by `show`")
    approved.add_argument(
        "--arguments", type=as_argument, metavar="JSON", help="run it with these instead; the complete JSON object"
    )
    approved.add_argument("--tools", **TOOLS, default=[], help="the tools, which check the new arguments")
    approved.add_argument(
        "--always", nargs="?", const=True, default=False, type=as_argument, metavar="JSON",
        help="allow later calls too: all of the tool, or those whose arguments fit these patterns, a JSON object",
    )  # fmt: skip
    _action(actions, "allowed", "list the rules for calls that run without asking", partial(_opened, list_rules))
    revoked = _action(actions, "revoke", "ask again about the calls of a rule", partial(_opened, revoke))
    revoked.add_argument("rule", help="its number, as printed by `allowed`")
    denied.add_argument("--reason", type=as_argument, default="", help="the reason, for the model")


def add_store(command: argparse.ArgumentParser) -> None:
    """Declare the option for the store."""
    command.add_argument(
        "--store", metavar="WHERE", help=f"a SQLite file or postgresql://user@host/database; default: {STORE}"
    )


def _action(actions: Any, name: str, does: str, run: Run, *, named: bool = True) -> argparse.ArgumentParser:
    end = examples(f"agentkit threads {name}{_EXAMPLES[name]}")
    command: argparse.ArgumentParser = actions.add_parser(name, help=does, description=does, epilog=end)
    if named:
        command.add_argument("thread", help="the thread's id")
    add_store(command)
    command.set_defaults(run=run, settings=("store",))
    return command


def _opened(
    work: Callable[[ThreadManager, argparse.Namespace], Awaitable[Done]], arguments: argparse.Namespace
) -> Done:
    """Run a command on the store.

    Raises:
        ConfigError: there is no such file; reading threads does not create one.
        ThreadNotFound: in words for somebody at a terminal.
    """
    from agentkit.threads import ThreadManager, open_store

    store = open_store(arguments.store)  # before it is shown: it may be a URL with an error, and contain a password

    async def run() -> Done:
        manager = ThreadManager(store)
        try:
            return await work(manager, arguments)
        except ThreadNotFound as e:
            listed = f"agentkit threads list{store_option(arguments.store)}"
            found = f"there is no thread {arguments.thread!r}"
            raise ThreadNotFound(f"{found}; `{listed}` shows those that are there") from e
        finally:
            await manager.aclose()

    if "://" not in arguments.store and not Path(arguments.store).exists():
        raise ConfigError(f"there is no thread store {arguments.store} here; select another with --store")
    return asyncio.run(run())


async def list_threads(manager: ThreadManager, arguments: argparse.Namespace) -> int:
    """One line for each thread."""
    from agentkit.cli.transcript import age, state, words

    rows, now = [], time.time()
    for thread in await manager.list_threads(limit=arguments.limit):
        try:
            log = await manager.get_log(thread.id)
        except ThreadNotFound:  # deleted in the meantime
            continue
        except StoreError as e:  # a damaged thread must not hide the others
            summary = ("damaged", truncate(str(e), 60))
        else:
            summary = (state(log), words(log, 40))
        if thread.damage is not None:
            summary = ("damaged", truncate(thread.damage, 60))
        rows.append((visible(thread.id), str(thread.entries), age(now - thread.updated), *summary))
    head = ("thread", "entries", "changed", "state", "first words")
    print("\n".join(table(head, rows, columns(), drop=("entries", "changed"))))
    return 0


async def show(manager: ThreadManager, arguments: argparse.Namespace) -> int:
    """Show one thread."""
    from agentkit.cli.transcript import state, totals, transcript

    log = await manager.get_log(arguments.thread)
    screen = Screen(sys.stdout)
    for line in transcript(log, width(), screen.style, full=arguments.full):
        screen.line(line)
    for line in (totals(log), state(log)):
        screen.line(screen.style(truncate(line, width()), "dim"))
    return 0


async def export(manager: ThreadManager, arguments: argparse.Namespace) -> int:
    """Print the messages, one per line, including those compacted since."""
    from agentkit.threads.conversation import messages_of
    from agentkit.threads.export import export_messages, whole

    log = await manager.get_log(arguments.thread)
    for message in export_messages(messages_of(whole(log)), arguments.wire, arguments.tools):
        print(as_json(message))
    return 0


def delete(arguments: argparse.Namespace) -> int:
    """Delete one thread, after confirmation. Asks outside the event loop, where Ctrl-C ends it at once."""
    entries = _opened(_entries, arguments)
    name = visible(arguments.thread)
    if not arguments.yes:
        if not sys.stdin.isatty():
            raise ConfigError("deleting cannot be undone: pass --yes if nobody can be asked")
        try:
            answer = input(f"delete {name} with its {entries}? [y/N] ")
        except EOFError:
            answer = ""
        if answer.strip().lower() not in ("y", "yes"):
            print("nothing was deleted")
            return 1
    _opened(lambda manager, _: manager.delete_thread(arguments.thread), arguments)
    print(f"deleted {name}")
    return 0


async def _entries(manager: ThreadManager, arguments: argparse.Namespace) -> str:
    """The number of entries of a thread, in words; a damaged thread can also be deleted."""
    try:
        return f"{(await manager.get_thread(arguments.thread)).entries} entries"
    except ThreadNotFound:
        raise
    except StoreError:
        return "damaged entries"


async def approve(manager: ThreadManager, arguments: argparse.Namespace) -> int:
    """Let a call run when the thread continues."""
    from agentkit.cli.approval_prompt import who
    from agentkit.cli.edited_arguments import read_arguments
    from agentkit.threads import AllowRule

    given = None if arguments.arguments is None else read_arguments(arguments.arguments)
    if arguments.tools:
        manager.add_tool(arguments.tools)
    remember = arguments.always
    if isinstance(remember, str):
        calls = await manager.pending(arguments.thread)
        name = next((call.name for call in calls if call.id == arguments.call), "the call")
        remember = AllowRule(name, read_arguments(remember))
    await manager.approve(arguments.thread, arguments.call, arguments=given, by=who(), remember=remember)
    print(f"approved {visible(arguments.call)}; {how_to_continue(arguments.thread, arguments.store)}")
    if given is not None and not arguments.tools:
        note = "the new arguments are checked when the call runs; --tools MODULE:CLASS checks them first"
        print(note, file=sys.stderr)
    return 0


async def deny(manager: ThreadManager, arguments: argparse.Namespace) -> int:
    """Deny a call."""
    from agentkit.cli.approval_prompt import who

    await manager.deny(arguments.thread, arguments.call, arguments.reason, by=who())
    print(f"denied {visible(arguments.call)}; {how_to_continue(arguments.thread, arguments.store)}")
    return 0


async def list_rules(manager: ThreadManager, arguments: argparse.Namespace) -> int:
    """List the rules of a thread."""
    from agentkit.cli.kept_rules import rule_lines

    print("\n".join(rule_lines(await manager.allow_rules(arguments.thread))))
    return 0


async def revoke(manager: ThreadManager, arguments: argparse.Namespace) -> int:
    """Revoke a rule."""
    from agentkit.cli.kept_rules import numbered_rule

    rule = numbered_rule(await manager.allow_rules(arguments.thread), arguments.rule)
    await manager.revoke(arguments.thread, rule)
    print(f"revoked {visible(str(rule))}")
    return 0


def how_to_continue(thread: str, store: str) -> str:
    """How to continue a thread, as a shell command."""
    return visible(
        f"continue with: agentkit chat --thread {shlex.quote(thread)}{store_option(store)} --model … --tools …"
    )


def store_option(store: str) -> str:
    """The option that selects this store; without a password."""
    if store == STORE:
        return ""
    return f" --store {shlex.quote(store) if '://' not in store else store.partition('://')[0] + '://…'}"
