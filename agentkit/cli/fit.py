"""`agentkit fit`: which calling mode suits a model, as a table, a recommendation, and the lines that use it."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from agentkit.cli.flag_words import TOOLS, temperature, whole
from agentkit.cli.help_text import SETTINGS, examples
from agentkit.cli.model_choice import ModelChoice, add_model, add_server, is_reference, model_log
from agentkit.cli.progress_line import ProgressLine
from agentkit.cli.terminal import block, columns, plain, table, truncate, width
from agentkit.errors import ConfigError

if TYPE_CHECKING:
    from agentkit.fit import FitProgress, FitReport, FitRow

HEAD: Final = ("mode", "right", "likely", "invented", "unread", "empty", "tokens", "seconds")
DROP: Final = ("empty", "unread", "seconds")
"""The columns of the table that are left out where it does not fit."""
SHORT: Final = "-"
"""As a file for `--json`: standard output."""


def add(commands: Any) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "fit",
        help="find out how a model calls tools best: natively, or in which text format",
        description="Try the ways of calling tools on a dozen tasks, compare them, and print the lines that use the "
        "best. Exit status 1 if the model does no task right in any of them.",
        epilog=examples(
            "agentkit fit -m openai:qwen3 --base-url http://127.0.0.1:8080/v1 --server llamacpp",
            "agentkit fit -m openai:gpt-5 --modes native,xml --tasks 6",
            after=SETTINGS,
        ),
    )
    add_model(command)
    add_server(command)
    command.add_argument(
        *("-t", "--tools"),
        **TOOLS,
        default=[],
        help="also try these tools; they are never run, only their calls are judged",
    )
    command.add_argument(
        "--modes", metavar="A,B", help="such as native,xml,hermes+c (+c: by a grammar); default: by the model's name"
    )
    command.add_argument("--tasks", type=whole, default=12, metavar="N", help="how many of the 12 tasks to try")
    command.add_argument("--max-tokens", type=whole, default=512, metavar="N", help="of one reply; default: 512")
    command.add_argument(
        "--temperature", type=temperature, metavar="T", help="default: 0 with --base-url, otherwise the model's own"
    )
    command.add_argument("--json", metavar="FILE", help="write the figures to this file; - is standard output")
    command.set_defaults(run=run, settings=("model", "base_url", "api_key_env", "server"))


def run(arguments: argparse.Namespace) -> int:
    """Try the modes, and print the findings. Exit status 1 if nothing works."""
    choice = ModelChoice(
        arguments.model, base_url=arguments.base_url, server=arguments.server, api_key_env=arguments.api_key_env
    )
    model = choice.create()  # also refuses what does not go together, before anything is asked
    modes = None if arguments.modes is None else arguments.modes.split(",")
    if arguments.json not in (None, SHORT) and not Path(arguments.json).parent.is_dir():
        raise ConfigError(f"--json {arguments.json}: there is no folder {Path(arguments.json).parent}")
    from agentkit.fit import fit
    from agentkit.tool import ToolRegistry

    tools = ToolRegistry(*arguments.tools)
    told: list[FitProgress] = []
    try:
        with ProgressLine("fit") as progress, model_log(logging.ERROR):  # the table counts odd replies

            def seen(now: FitProgress) -> None:
                told[:] = [now]
                progress.count(now.done, now.total, f"{now.mode}: {now.task}")

            report = asyncio.run(
                fit(
                    model if is_reference(arguments.model) else arguments.model,
                    tools,
                    base_url=arguments.base_url,
                    server=arguments.server,
                    api_key_env=arguments.api_key_env,
                    modes=modes,
                    tasks=arguments.tasks,
                    temperature=arguments.temperature,
                    max_tokens=arguments.max_tokens,
                    watch=seen,
                )
            )
    except KeyboardInterrupt:
        for line in table(HEAD, [_cells(row) for row in told[-1].rows] if told else [], columns(), DROP):
            print(plain(line))
        print("interrupted: nothing is recommended")
        raise
    out = sys.stderr if arguments.json == SHORT else sys.stdout
    for line in lines(report, own=len(tools.specs())):
        print(plain(line), file=out)
    if arguments.json is not None:
        write(report, arguments.json)
    return int(report.best is None)


def write(report: FitReport, where: str) -> None:
    """Write the figures as JSON.

    Raises:
        ConfigError: the file cannot be written.
    """
    text = json.dumps(report.as_dict(), indent=2)
    if where == SHORT:
        print(text)
        return
    try:
        Path(where).write_text(f"{text}\n", encoding="utf-8")
    except OSError as e:
        raise ConfigError(f"--json {where}: {e}") from e


# ---------------------------------------------------------------- what is printed


def lines(report: FitReport, own: int = 0) -> Iterator[str]:
    """Write the findings for a person.

    Args:
        report: the figures.
        own: how many tools of the user's there are.
    """
    shown = [row for row in report.rows if not row.error]
    yield from table(HEAD, [_cells(row) for row in shown], columns(), DROP)
    yield ""
    for row in report.rows:
        if row.error:
            yield truncate(f"{row.mode} cannot be used: {row.error}", 4 * width())
    yield from block(_remarks(report, own), width())
    yield ""
    if report.best is None:
        yield "No mode did a task right: this model is too small for tools, or the server changes what it writes."
        return
    wrong = [one for one in report.best.outcomes if not one.right]
    if wrong:
        yield f"What {report.best.mode} got wrong:"
        yield from (f"  {truncate(f'{one.task}: {one.mistake}', width() - 2)}" for one in wrong)
        yield ""
    if 2 * report.best.right < report.best.tasks_tried:
        yield "No mode did half of the tasks right: this model is hardly able to use tools."
    yield f"Best: {report.best.mode}. In Python, and at the terminal:"
    yield ""
    yield from _pasteable(report.python, "")
    yield from _pasteable(report.command, " \\")


def _pasteable(line: str, goes_on: str) -> Iterator[str]:
    """A line of code, folded so that it can be pasted.

    Args:
        line: the line; empty for none.
        goes_on: the end of each line but the last.
    """
    pieces = wrap(line, width() - 8, break_long_words=False, break_on_hyphens=False)
    for number, piece in enumerate(pieces):
        yield f"  {'    ' if number else ''}{piece}{goes_on if number < len(pieces) - 1 else ''}"


def _cells(row: FitRow) -> tuple[str, ...]:
    low, high = row.likely
    counts = (row.invented_results, row.unread, row.empty, round(row.tokens), f"{row.seconds:.1f}")
    numbers = (f"{count:,}" if isinstance(count, int) else count for count in counts)
    return (
        str(row.mode),
        f"{row.right:>2} of {row.tasks_tried}",
        f"{100 * low:.0f}-{100 * high:.0f} %",
        *(number.rjust(len(name)) for number, name in zip(numbers, HEAD[3:], strict=True)),
    )


def _remarks(report: FitReport, own: int) -> str:
    said = [
        f"This is a sample of {report.tasks} tasks: a difference of one or two means little.",
        "likely: what part of very many tasks would be right, with a probability of 95 %.",
        "Tokens (in and out) and seconds are per task.",
    ]
    if any(row.mode.constrained for row in report.rows):
        said.append("+c: calls are constrained by a grammar.")
    if any(row.left_out for row in report.rows):
        said.append("Modes that could no longer be the best were stopped early.")
    if own:
        said.append(f"Your tools ({own}) were not run: only their calls were judged.")
    return " ".join(said)
