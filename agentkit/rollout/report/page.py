"""The report as files: one HTML page, and a PNG.

The page shows what models and tools wrote, so it is safe by three means: every text is escaped by the template engine,
characters that are invisible or change the direction of text are shown as escapes, and the page's own policy forbids
scripts, frames, forms and any request to the network.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentkit.checks.unicode import clean, escape_controls
from agentkit.errors import ConfigError, install_command
from agentkit.rollout.records.measures import TABLE_HEAD, duration
from agentkit.rollout.records.trajectory import ERROR_ENDS
from agentkit.rollout.report.charts import png_charts, svg_charts
from agentkit.rollout.report.findings import Findings

if TYPE_CHECKING:
    from jinja2 import Template


GROUP_NOTE: Final = (
    "A success is a reward of at least {:g}; pass@k is the unbiased estimate of Chen et al. (2021) over the samples "
    "with enough trajectories for the largest k; std is the standard deviation (n - 1) of one sample's rewards. "
)


def write_page(
    found: Findings,
    path: str | os.PathLike[str],
    *,
    title: str = "Rollout",
    runs: Sequence[Mapping[str, str]] = (),
) -> None:
    """Write the HTML page; a file of this name is replaced.

    Args:
        found: what it shows.
        path: the file.
        title: its heading.
        runs: what `read_runs` says about the runs that wrote the records.

    Raises:
        ConfigError: matplotlib or Jinja is not installed.
    """
    Path(path).write_text(page(found, title=title, runs=runs), encoding="utf-8")


def write_png(found: Findings, path: str | os.PathLike[str]) -> None:
    """Write the charts as one picture; a file of this name is replaced.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    Path(path).write_bytes(png_charts(found))


def page(found: Findings, *, title: str = "Rollout", runs: Sequence[Mapping[str, str]] = ()) -> str:
    """The HTML page; see `write_page`.

    Raises:
        ConfigError: matplotlib or Jinja is not installed.
    """
    from markupsafe import Markup

    template = _template()
    measures = found.measures
    return template.render(
        title=title,
        runs=[*reversed(runs)],
        measures=measures,
        tiles=_tiles(found),
        charts=[Markup(chart) for chart in svg_charts(found)],
        head=TABLE_HEAD,
        rows=measures.rows(),
        picks=found.selection(),
        errors=ERROR_ENDS,
        group_note=GROUP_NOTE.format(found.groups.success) if found.groups.several() else "",
    )


def _tiles(found: Findings) -> list[tuple[str, str, str]]:
    """The figures at the top: what, how much, and its kind."""
    m = found.measures
    failed = sum(tool.failed_calls for tool in m.tools.values())
    calls = sum(tool.calls for tool in m.tools.values())
    errors = sum(m.ends[end] for end in ERROR_ENDS)
    tiles = [
        ("trajectories", f"{m.trajectories:,}", ""),
        ("mean reward", f"{m.rewards.mean:.4g}" if m.rewards.count else "-", ""),
        ("calls", f"{calls:,}", ""),
        ("failed calls", _share(failed, calls), "warn" if failed else ""),
        ("ended by an error", f"{errors:,}", "bad" if errors else ""),
        (
            "cut by a limit",
            _share(found.truncated_trajectories, m.trajectories),
            "warn" if found.truncated_trajectories else "",
        ),
        ("time per trajectory, p50", duration(m.seconds.quantile(0.5)), ""),
    ]
    if groups := found.groups.several():
        none = sum(one.successes == 0 for one in groups)
        every = sum(one.successes == one.count for one in groups)
        equal = sum(one.lowest == one.highest for one in groups)
        spread = sum(one.deviation for one in groups) / len(groups)
        tiles += [
            ("samples without a success", _share(none, len(groups)), ""),
            ("samples with successes only", _share(every, len(groups)), ""),
            ("samples with equal rewards", _share(equal, len(groups)), "warn" if equal == len(groups) else ""),
            ("std of a sample's rewards, mean", f"{spread:.3g}", ""),
        ]
    if m.failed_rewards:
        tiles.append(("rewards that failed", f"{m.failed_rewards:,}", "bad"))
    if m.failed_releases:
        tiles.append(("tool instances not released", f"{m.failed_releases:,}", "bad"))
    if m.rewards.not_finite:
        tiles.append(("infinite or undefined rewards", f"{m.rewards.not_finite:,}", "bad"))
    return tiles


def _share(some: int, whole: int) -> str:
    return f"{some:,} ({100 * some / whole:.1f} %)" if some else "0"


@cache
def _template() -> Template:
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as e:
        raise ConfigError(f"the report is written with Jinja: {install_command('rollout')}") from e
    from markupsafe import Markup

    def visible(value: Any) -> Any:
        return value if isinstance(value, Markup) or not isinstance(value, str) else escape_controls(clean(value))

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=visible, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["duration"] = duration
    return environment.from_string(files("agentkit.rollout.report").joinpath("page.html.jinja").read_text("utf-8"))
