"""`agentkit rollout report`: a file of records as a page and a picture; also the figures of a rollout as lines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentkit.checks.visible_text import visible
from agentkit.cli.flag_words import number_type
from agentkit.cli.help_text import examples
from agentkit.cli.progress_line import ProgressLine
from agentkit.cli.screen import Screen
from agentkit.cli.terminal import cells, columns, hanging, plain, table
from agentkit.errors import ConfigError

if TYPE_CHECKING:
    from agentkit.rollout import Measures

_BAD: Final = ("failed", "timeouts", "NO CALL", "NOT ")
"""How the figures begin that count failures."""


def add_report(command: argparse.ArgumentParser) -> None:
    """Declare `report`."""
    actions: Any = command.add_subparsers(dest="action", metavar="report")
    report = actions.add_parser(
        "report",
        help="a file of records as a page with charts, and as a picture",
        description="Write one HTML page that needs no network, and a PNG of its charts; print the figures.",
        epilog=examples("agentkit rollout report run.jsonl", "agentkit rollout report run.jsonl --to run.html"),
    )
    report.add_argument("records", metavar="FILE", help="the file of records, such as run.jsonl")
    report.add_argument(
        "--to", nargs="+", metavar="FILE", help="where to: names ending in .html or .png; default: next to the records"
    )
    report.add_argument(
        "--success",
        type=number_type(float, -sys.float_info.max, sys.float_info.max, "a number"),
        default=1.0,
        metavar="R",
        help="the least reward of a success, for pass@k; default: 1",
    )
    report.set_defaults(run=run_report)


def run_report(arguments: argparse.Namespace) -> int:
    """Write the page and the picture, and print the figures."""
    from agentkit.rollout import read_records, read_runs
    from agentkit.rollout.report import Findings, write_page, write_png

    path = Path(arguments.records)
    if path.is_dir():
        raise ConfigError(f"{path}: expected a file of records, found a folder")
    targets = [Path(to) for to in arguments.to or (path.with_suffix(".html"), path.with_suffix(".png"))]
    for target in targets:
        if target.suffix not in (".html", ".png"):
            raise ConfigError(f"--to {target}: expected a name ending in .html or .png")
    found = Findings(success=arguments.success)
    with ProgressLine(f"reading {path}") as line:
        for record in read_records(path):
            found.add(record)
            line.count(found.measures.trajectories)
    if not found.measures.trajectories:
        raise ConfigError(f"{path} has no records")
    show_figures(found.measures)
    for target in targets:
        if target.suffix == ".html":
            write_page(found, target, title=f"Rollout report: {path.name}", runs=read_runs(path))
        else:
            write_png(found, target)
        print(visible(f"wrote {target}"))
    return 0


def show_figures(measures: Measures) -> None:
    """Print the figures of a rollout: what counts failures in red, tools as columns, as many as fit."""
    screen = Screen(sys.stdout)
    tables = _tables(measures.figures(), columns()) if measures.tools else ()
    summary = [piece for line in measures.summary() for piece in hanging(plain(line), columns(), "")]
    for line in (*summary, *tables):
        bad = line.startswith(_BAD) and any(word not in ("0", "-") for word in line.split()[1:])
        screen.line(screen.style(plain(line), *(["red", "bold"] if bad else [])))


def _tables(figures: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """The figures as tables not wider than `width`, each with the names of the figures and some of the tools."""
    widths = [max(map(cells, column)) for column in zip(*figures, strict=True)]
    at = 1
    while at < len(widths):
        end = at + 1
        while end < len(widths) and (width is None or widths[0] + sum(w + 2 for w in widths[at : end + 1]) <= width):
            end += 1
        shown = [
            (row[0], *(cell.rjust(w) for cell, w in zip(row[at:end], widths[at:end], strict=True))) for row in figures
        ]
        yield from ("", *table(shown[0], shown[1:], width))
        at = end
