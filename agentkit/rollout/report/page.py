"""The report as files: one HTML page, and a PNG.

The page shows what models and tools wrote, so it is safe by three means: every text is escaped by the template engine,
characters that are invisible or change the direction of text are shown as escapes, and the page's own policy forbids
scripts, frames, forms and any request to the network.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkit.errors import ConfigError, install_command
from agentkit.rollout.records.measures import TABLE_HEAD, duration
from agentkit.rollout.records.trajectory import ERROR_ENDS
from agentkit.rollout.report.charts import png_charts, svg_charts
from agentkit.rollout.report.findings import Findings
from agentkit.unicode import clean, escape_controls

if TYPE_CHECKING:
    from jinja2 import Template


def write_page(found: Findings, path: str | os.PathLike[str], *, title: str = "Rollout") -> None:
    """Write the HTML page; a file of this name is replaced.

    Raises:
        ConfigError: matplotlib or Jinja is not installed.
    """
    Path(path).write_text(page(found, title=title), encoding="utf-8")


def write_png(found: Findings, path: str | os.PathLike[str]) -> None:
    """Write the charts as one picture; a file of this name is replaced.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    Path(path).write_bytes(png_charts(found))


def page(found: Findings, *, title: str = "Rollout") -> str:
    """The HTML page.

    Raises:
        ConfigError: matplotlib or Jinja is not installed.
    """
    from markupsafe import Markup

    template = _template()
    measures = found.measures
    return template.render(
        title=title,
        measures=measures,
        tiles=_tiles(found),
        charts=[Markup(chart) for chart in svg_charts(found)],
        head=TABLE_HEAD,
        rows=measures.rows(),
        picks=[pick for pick in found.picks if pick.trajectories],
        errors=ERROR_ENDS,
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
        ("failed calls", f"{failed:,} ({100 * failed / calls:.1f} %)" if calls else "0", "warn" if failed else ""),
        ("ended by an error", f"{errors:,}", "bad" if errors else ""),
        ("time per trajectory, p50", duration(m.seconds.quantile(0.5)), ""),
    ]
    if m.failed_rewards:
        tiles.append(("rewards that failed", f"{m.failed_rewards:,}", "bad"))
    if m.failed_releases:
        tiles.append(("tool instances not released", f"{m.failed_releases:,}", "bad"))
    if m.rewards.not_finite:
        tiles.append(("infinite or undefined rewards", f"{m.rewards.not_finite:,}", "bad"))
    return tiles


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
