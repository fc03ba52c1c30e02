"""`agentkit serve --probe`: what each model of a server does, and the setting that gives its clients native calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from agentkit.cli.model_choice import model_log
from agentkit.cli.progress_line import ProgressLine
from agentkit.cli.terminal import columns, hanging, plain, table, width

if TYPE_CHECKING:
    from agentkit.gateway.probe_findings import ModelFinding
    from agentkit.gateway.upstream_probe import ProbedServer, ProbeReport

HEAD: Final = ("model", "whole", "streamed", "as text", "grammar", "setting")
DROP: Final = ("grammar", "as text")
"""The columns of the table that are left out where it does not fit."""


def run_probe(server: ProbedServer, models: Sequence[str] = (), *, fit: bool = False) -> int:
    """Probe a server and print the findings.

    Args:
        server: the server.
        models: their names; none for those that it lists.
        fit: whether `agentkit fit` also chooses the format of each.

    Returns:
        The exit status: 1 if a model has no setting that works.

    Raises:
        AgentkitError: as `probe`.
    """
    from agentkit.gateway.upstream_probe import probe

    with ProgressLine("probe") as progress, model_log(logging.ERROR):  # the table says what is odd
        tried = 0

        def watch(model: str, what: str) -> None:
            nonlocal tried
            tried += 1
            progress.count(tried, None, f"{model}: {what}")

        report = asyncio.run(probe(server, models, fit=fit, watch=watch))
    for line in lines(report):
        print(plain(line))
    return int(not all(one.works for one in report.findings))


def lines(report: ProbeReport) -> Iterator[str]:
    """Write the findings for a person: a table, and what it has no room for."""
    found = report.findings
    yield from table(HEAD, [_cells(one) for one in found], columns(), DROP)
    for one in found:
        if one.notes:
            yield ""
            yield one.model
        for note in one.notes:
            yield from hanging(note, width(), "  ")
    if report.left_out:
        yield ""
        yield f"The server lists {report.left_out} more: name those to probe."
    kinds = {one.server for one in found if one.server is not None}
    if kinds:
        yield ""
        yield f"The server is {' and '.join(sorted(kinds))}."


def _cells(one: ModelFinding) -> tuple[str, ...]:
    grammar = {True: "enforced", False: "no", None: "-"}[one.grammar]
    return (
        one.model,
        str(one.whole),
        str(one.streamed),
        "-" if one.text is None else str(one.text),
        grammar,
        one.setting,
    )
