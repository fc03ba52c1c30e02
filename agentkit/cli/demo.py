"""`agentkit demo`: the main feature without a key: one tool class, one registry, a JSON- and an XML-calling model.

Only the models and the network are missing: the responses were composed in the wire format of OpenAI's chat
completions, are stored in `demo_data`, and reach OpenAI's SDK as bytes. Everything else is as in real use.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from agentkit.cli.help_text import examples
from agentkit.cli.screen import Screen
from agentkit.cli.terminal import table
from agentkit.events import ToolCompleted, ToolFailed

if TYPE_CHECKING:
    from agentkit.tool.registry import ToolRegistry

PROMPT = "Write hello.py and a README.md in your folder. Then let the greeting be French, and show me the file."
RESPONSES = 4  # in each recording
PIECE = 100  # bytes per chunk of a response: less than one event, so that events arrive in parts as on a network
PACE = 0.005  # seconds between two events, for a human viewer; otherwise none


class Way(NamedTuple):
    """One way for a model to call: the recording's name, its heading, and the text format, if any."""

    name: str
    title: str
    format: str | None


WAYS = (
    Way("json", "a model that makes native JSON calls", None),
    Way("xml", "a model that writes XML tags in its text", "xml"),
)
INTRODUCTION = """\
One tool class (agentkit_tools.files.Files), registered once, works for two models in a temporary folder.
The model side is RECORDED: its responses were composed in the wire format of OpenAI's chat completions and reach
OpenAI's own SDK as bytes. The SDK, the parsing, the registry and the files are real. No key, no network."""


def add(commands: Any) -> None:
    """Declare the command."""
    command = commands.add_parser(
        "demo",
        help="one tool class called by a JSON-calling and an XML-calling model; needs no key",
        epilog=examples("agentkit demo"),
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show both ways, then that they called the same methods. Exit status 1 if anything is not as expected."""
    from agentkit.tool.registry import ToolRegistry
    from agentkit_tools.files import Files

    screen = Screen(sys.stdout)
    screen.line(screen.style("agentkit demo", "bold"))
    screen.line(INTRODUCTION)
    with TemporaryDirectory(prefix="agentkit-demo-") as folder:
        registry = ToolRegistry()
        registry.register_tool(Files(folder), ["create_file", "read_file", "str_replace"])  # those that it calls
        reached: dict[str, Counter[str]] = {}
        failures = 0
        for number, way in enumerate(WAYS, start=1):
            screen.line(f"\n{screen.style(f'{number}. {way.title}', 'bold')}\n")
            screen.line(f"user: {PROMPT}")
            reached[way.name], failed = asyncio.run(work(way, registry, screen))
            failures += failed
        met = meeting(registry, reached)
        same = compare_files(Path(folder))
    screen.line(f"\n{screen.style('Both called the same methods of the same object', 'bold')}\n")
    for row in table(("method", "function name", "XML tag", "one BoundTool", "JSON calls", "XML calls"), met):
        screen.line(row)
    screen.line(f"\n{screen.style('Both wrote the same files', 'bold')}\n")
    for row in table(("by JSON", "by XML", "bytes", "equal"), same):
        screen.line(row)
    good = not failures and all(row[3] == "yes" and row[4] == row[5] != "0" for row in met)
    good = good and bool(same) and all(row[3] == "yes" for row in same)
    screen.line("" if good else "\nSomething above is not as expected.")
    return 0 if good else 1


async def work(way: Way, registry: ToolRegistry, screen: Screen) -> tuple[Counter[str], int]:
    """Run one recorded model; returns the number of completed calls by function name, and of failed calls."""
    from agentkit.agent import Agent
    from agentkit.testing import Replay

    recordings = files("agentkit.cli") / "demo_data"
    responses = [(recordings / f"{way.name}-{n}.sse").read_bytes() for n in range(1, RESPONSES + 1)]
    completed: Counter[str] = Counter()
    failed = 0
    model = Replay(responses, chunks=PIECE).model(f"openai:composed-{way.name}", format=way.format)
    async with Agent(model, registry).stream(PROMPT) as events:
        async for event in events:
            screen.show(event)
            await asyncio.sleep(PACE if sys.stdout.isatty() else 0)
            completed.update([event.call.name] if isinstance(event, ToolCompleted) else [])
            failed += isinstance(event, ToolFailed)
    screen.fresh()
    return completed, failed


def meeting(registry: ToolRegistry, reached: dict[str, Counter[str]]) -> list[tuple[str, ...]]:
    """For each method: its two registry keys, whether they lead to one object, and how often each model called it."""
    rows = []
    for name, tool in registry.tools.items():
        tag = tool.tag or ""
        one: bool = registry.xml_tools.get(tag) is tool
        calls = [str(reached[way.name][name]) for way in WAYS]
        rows.append((tool.where, name, f"<{tag}>", "yes" if one else "NO", *calls))
    return rows


def compare_files(folder: Path) -> list[tuple[str, ...]]:
    """Return rows that compare the files of both models."""
    rows = []
    for file in sorted((folder / "json").rglob("*")):
        other = folder / "xml" / file.relative_to(folder / "json")
        content = file.read_bytes()
        equal = other.is_file() and other.read_bytes() == content
        names = [path.relative_to(folder).as_posix() for path in (file, other)]
        rows.append((*names, str(len(content)), "yes" if equal else "NO"))
    return rows
