"""`agentkit demo`: the main feature without a key: one tool class, one registry, a JSON- and an XML-calling model.

Only the models and the network are missing: the responses were composed in the wire format of OpenAI's chat
completions, are stored in `demo_data`, and reach OpenAI's SDK as bytes. Everything else is as in real use.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentkit.cli.help_text import examples
from agentkit.cli.screen import Screen
from agentkit.cli.terminal import block, cells, plain, width
from agentkit.events import ToolCompleted, ToolFailed, ToolSkipped

if TYPE_CHECKING:
    from agentkit.messages import ToolCall
    from agentkit.tool.registry import ToolRegistry

PROMPT: Final = "Write hello.py and a README.md in your folder. Then let the greeting be French, and show me the file."
RESPONSES: Final = 4  # in each recording
PIECE: Final = 100  # bytes per chunk of a response: less than one event, so that events arrive in parts
NARROW: Final = 76  # columns; with fewer, the two calls are below each other
GAP: Final = " │ "


class Way(NamedTuple):
    """One way for a model to call: the recording's name, its heading, and the text format, if any."""

    name: str
    title: str
    format: str | None


WAYS: Final = (Way("json", "JSON, as native calls", None), Way("xml", "XML, in the model's text", "xml"))
INTRODUCTION: Final = (
    "One class, agentkit_tools.files.Files, is registered once. Two models do the same task with it in a temporary "
    "folder: one calls natively, the other writes XML in its text. The models are RECORDED: their responses were "
    "composed in the wire format of OpenAI's chat completions, and reach OpenAI's own SDK as bytes. The SDK, the "
    "parsing, the registry and the files are real. No key, no network."
)


class CallResult(NamedTuple):
    """A call as the model wrote it, its result, and whether it succeeded."""

    call: ToolCall
    result: str
    completed: bool


def add(commands: Any) -> None:
    """Declare the command."""
    command = commands.add_parser(
        "demo",
        help="one tool class called by a JSON-calling and an XML-calling model; needs no key",
        epilog=examples("agentkit demo"),
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show each call in both ways, then that they did the same. Exit status 1 if anything is not as expected."""
    from agentkit.tool.registry import ToolRegistry
    from agentkit_tools.files import Files

    screen = Screen(sys.stdout)
    screen.line(screen.style("agentkit demo", "bold"))
    for line in (*block(INTRODUCTION, width()), "", *block(f"user: {PROMPT}", width())):
        screen.line(line)
    with TemporaryDirectory(prefix="agentkit-demo-") as folder:
        registry = ToolRegistry()
        registry.register_tool(Files(folder), ["create_file", "read_file", "str_replace"])  # those that it calls
        ours, theirs = (asyncio.run(work(way, registry)) for way in WAYS)
        for both in zip(ours, theirs, strict=False):
            show(both, screen)
        problems = list(differences(registry, ours, theirs, Path(folder)))
    for problem in problems:
        screen.problem(problem)
    if not problems:
        methods = len(registry.tools)
        screen.line(f"\n2 formats, {methods} methods of one object, identical files {screen.style('✓', 'green')}")
    return int(bool(problems))


async def work(way: Way, registry: ToolRegistry) -> list[CallResult]:
    """Run one recorded model; returns its calls in the order in which it wrote them."""
    from agentkit.agent import Agent
    from agentkit.testing import Replay

    recordings = files("agentkit.cli") / "demo_data"
    responses = [(recordings / f"{way.name}-{n}.sse").read_bytes() for n in range(1, RESPONSES + 1)]
    model = Replay(responses, chunks=PIECE).model(f"openai:composed-{way.name}", format=way.format)
    ended: dict[str, CallResult] = {}
    async with Agent(model, registry).stream(PROMPT) as events:
        async for event in events:
            if isinstance(event, ToolCompleted | ToolFailed | ToolSkipped):
                ended[event.call.id] = CallResult(event.call, event.result.text, isinstance(event, ToolCompleted))
        calls = [call for message in events.result.messages for call in getattr(message, "calls", ())]
    return [ended[call.id] for call in calls]


# ---------------------------------------------------------------- what is shown


def show(both: Sequence[CallResult], screen: Screen) -> None:
    """Show one call in both ways: side by side, or below each other if there is no room."""
    wide = width() >= NARROW
    across = (width() - len(GAP)) // 2 if wide else width() - 2
    calls = [[*block(_written(step.call), across)] for step in both]
    results = [[*block(_result(step), across)] for step in both]
    screen.line(f"\n{screen.style(both[0].call.name, 'cyan', 'bold')}")
    if not wide:
        for way, call, result in zip(WAYS, calls, results, strict=True):
            screen.line(screen.style(way.title, "dim"))
            for line in (*call, *result):
                screen.line(f"  {line}".rstrip())
        return
    titles = [f"{way.title:{across}}" for way in WAYS]
    screen.line(screen.style(GAP.join(titles).rstrip(), "dim"))
    for pair in (*zip_longest(*calls, fillvalue=""), *zip_longest(*results, fillvalue="")):
        left, right = pair
        screen.line(f"{left}{' ' * (across - cells(left))}{screen.style(GAP, 'dim')}{right}".rstrip())


def _written(call: ToolCall) -> str:
    """A call as the model wrote it; where a JSON string has a line end, a line ends."""
    if call.format is not None:
        return call.raw.strip("\n")
    given = [f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items()]
    head = f'{{"name": {json.dumps(call.name)}, "arguments": {{'
    return "\n".join([head, ",\n".join(given), "}}"]).replace("\\n", "\n")


def _result(step: CallResult) -> str:
    first, *more = plain(step.result).splitlines()
    return f"{'✓' if step.completed else '✗'} {first}{' …' if more else ''}"


# ---------------------------------------------------------------- what is checked


def differences(
    registry: ToolRegistry, ours: list[CallResult], theirs: list[CallResult], folder: Path
) -> Iterator[str]:
    """Yield each difference between the two ways: in the calls, the object that they reach, the files."""
    for step in (*ours, *theirs):
        if not step.completed:
            yield f"{step.call.name} failed: {step.result}"
    if [step.call.name for step in ours] != [step.call.name for step in theirs]:
        yield "the two models called different methods"
    for name, tool in registry.tools.items():
        if registry.xml_tools.get(tool.tag or "") is not tool:
            yield f"the name {name} and the tag <{tool.tag}> lead to different objects"
        if name not in {step.call.name for step in ours}:
            yield f"{name} was never called"
    written = [{path.name: path.read_bytes() for path in (folder / way.name).iterdir()} for way in WAYS]
    if written[0] != written[1] or not written[0]:
        yield f"the files differ: {sorted(written[0])}, {sorted(written[1])}"
