"""The charts of a report, drawn by matplotlib: as SVG whose colours the page decides, and as PNG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentkit.checks.unicode import clean, escape_controls
from agentkit.errors import ConfigError, install_command
from agentkit.rollout.records.measures import ToolMeasures
from agentkit.rollout.records.trajectory import ERROR_ENDS
from agentkit.rollout.report.findings import Findings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_TOOLS: Final = 12
"""Tools in a chart, those with the most calls; the page's table has all of them."""
_MOST_ENDS: Final = 10

INK, SOFT, GRID, PAPER = "#24292e", "#626a73", "#dfe3e7", "#fefefe"
BLUE, GREEN, AMBER, RED, VIOLET = "#2c6fbb", "#3f8f5f", "#c98a1b", "#c2403d", "#8a63b8"
COLOURS: Final = {
    INK: "--ink",
    SOFT: "--soft",
    GRID: "--grid",
    PAPER: "--paper",
    BLUE: "--blue",
    GREEN: "--green",
    AMBER: "--amber",
    RED: "--red",
    VIOLET: "--violet",
}
"""Each colour of a chart, and the variable of the page that stands for it: so one chart serves light and dark."""

_GOOD: Final = frozenset({"answered", "terminated_by_tool"})
_WIDE, _HIGH = 4.4, 2.9
"""The size of a chart in inches: so narrow that its text can be read on a phone."""
_HEAD, _BAR = 1.3, 0.34
"""The height of a chart of horizontal bars without any, and that of each."""
_STYLE: Final = {
    "svg.fonttype": "none",  # text stays text: it can be selected, searched, and drawn in the page's font
    "svg.hashsalt": "agentkit",  # the same records give the same file
    "text.parse_math": False,  # a name with two dollar signs is a name
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": SOFT,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "hatch.linewidth": 1.2,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "text.color": INK,
    "grid.color": GRID,
    "legend.frameon": False,
    "legend.labelcolor": SOFT,
    "legend.fontsize": 9.5,
    "figure.facecolor": "none",
    "figure.constrained_layout.h_pad": 0.12,
    "figure.constrained_layout.w_pad": 0.1,
    "savefig.facecolor": "none",
}


def svg_charts(found: Findings) -> list[str]:
    """Each chart that has something to show, as an SVG element."""
    return [_svg(chart, found) for chart in CHARTS if chart.has(found)]


def png_charts(found: Findings) -> bytes:
    """All charts in one picture."""
    charts = [chart for chart in CHARTS if chart.has(found)]
    rows = max((len(charts) + 2) // 3, 1)

    def draw_all(figure: Figure) -> None:
        axes = figure.subplots(rows, 3, squeeze=False).flatten()
        for chart, on in zip(charts, axes, strict=False):
            chart.draw(on, found)
        for empty in axes[len(charts) :]:
            empty.set_axis_off()

    return _rendered(draw_all, (_WIDE * 3, _HIGH * rows), format="png", dpi=120, facecolor=PAPER)


def _svg(chart: Chart, found: Findings) -> str:
    height = _HIGH if chart.bars is None else _HEAD + _BAR * chart.bars(found)
    text = _rendered(
        lambda figure: chart.draw(figure.subplots(), found), (_WIDE, height), format="svg", metadata={"Date": None}
    ).decode()
    text = text[text.index("<svg") :]  # without the XML declaration, which HTML does not have
    text = re.sub(r"<metadata>.*?</metadata>", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r'<svg [^>]*viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" role="img">', text, count=1)
    for colour, variable in COLOURS.items():
        text = text.replace(colour, f"var({variable})")
    return text


def _rendered(draw: Callable[[Figure], None], size: tuple[float, float], **saved: Any) -> bytes:
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as e:
        raise ConfigError(f"charts are drawn by matplotlib: {install_command('rollout')}") from e

    style: Any = _STYLE
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name in a script for which matplotlib's font has no letters
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        out = io.BytesIO()
        figure.savefig(out, **saved)
    return out.getvalue()


# ---------------------------------------------------------------- the charts


def _rewards(axes: Axes, found: Findings) -> None:
    rewards = found.measures.rewards
    values, counts = zip(*rewards.bars(), strict=True)
    axes.set_title("Reward per trajectory")
    if all(abs(value - round(value)) < 1e-9 for value in values) and rewards.highest - rewards.lowest <= 30:
        _whole_numbers(axes, {round(value): count for value, count in zip(values, counts, strict=True)}, BLUE)
    else:
        bins = min(30, max(len(values) * 2, 5))
        axes.hist(values, bins=bins, weights=counts, color=BLUE, rwidth=0.94)
    axes.axvline(rewards.mean, color=AMBER, linewidth=1.5, linestyle="--", label=f"mean {rewards.mean:.3g}")
    axes.set_ylabel("trajectories")
    axes.grid(axis="y")
    _legend(axes)


def _curve(axes: Axes, found: Findings) -> None:
    places, means = zip(*found.curve.of("reward"), strict=True)
    step, mean = found.curve.step, found.measures.rewards.mean
    axes.set_title("Reward over time")
    axes.plot(
        places, means, color=BLUE, linewidth=1.2, marker="o", markersize=2.5,
        label=f"averages of {step:,} trajectories" if step > 1 else "trajectories",
    )  # fmt: skip
    axes.axhline(mean, color=AMBER, linewidth=1.5, linestyle="--", label=f"mean {mean:.3g}")
    axes.set_xlabel("trajectory, in the order of ending")
    axes.grid()
    _legend(axes, below_label=True)


def _groups(axes: Axes, found: Findings) -> None:
    groups = found.groups.several()
    step = -(-len(groups) // 60)
    shown = groups[::step]
    axes.set_title("Reward per sample: mean and std")
    axes.errorbar(
        range(len(shown)), [one.mean for one in shown], [one.deviation for one in shown],
        color=BLUE, fmt="o", markersize=3.5, linewidth=1.2, ecolor=SOFT,
    )  # fmt: skip
    axes.set_xlabel("samples, by mean" + (f"; one of {step:,}" if step > 1 else ""))
    axes.set_xticks([])
    axes.grid(axis="y")


def _pass_rates(axes: Axes, found: Findings) -> None:
    rates = found.groups.pass_rates()
    places = range(len(rates))
    axes.set_title(f"pass@k (success: reward ≥ {found.groups.success:g})")
    axes.plot(places, [one.rate for one in rates], color=GREEN, linewidth=1.5, marker="o", markersize=4)
    for place, one in zip(places, rates, strict=True):
        axes.annotate(f"{one.rate:.2f}", (place, one.rate), (0, 6), textcoords="offset points", ha="center", color=SOFT)
    axes.set_xticks(places, [f"{one.k}" for one in rates])
    axes.set_xlim(-0.5, len(rates) - 0.5)
    axes.set_ylim(0, 1.15)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_xlabel("k")
    axes.grid(axis="y")


def _lengths(axes: Axes, found: Findings) -> None:
    axes.set_title("Length and reward")
    for truncated, colour, marker, label in ((False, BLUE, "o", "ended itself"), (True, RED, "x", "cut by a limit")):
        points = [one for one in found.lengths.kept if one.truncated == truncated]
        if points:
            axes.scatter(
                [one.written for one in points], [one.reward for one in points],
                s=14, color=colour, marker=marker, alpha=0.6, linewidths=1.2, label=label,
            )  # fmt: skip
    unit = "tokens" if found.tokenized else "characters"
    axes.set_xlabel(f"{unit} that the model wrote")
    axes.set_ylabel("reward")
    axes.grid()
    _legend(axes, below_label=True)


def _failures(axes: Axes, found: Findings) -> None:
    axes.set_title("Failed calls over time, by kind")
    styles = zip((RED, AMBER, VIOLET, BLUE, GREEN), ("o", "s", "^", "D", "v"), strict=True)
    for (kind, _), (colour, marker) in zip(found.measures.failures.most_common(5), styles, strict=False):
        places, shares = zip(*found.failures.of(kind), strict=True)
        axes.plot(
            places, [100 * share for share in shares],
            color=colour, linewidth=1.2, marker=marker, markersize=3.5, label=_label(kind),
        )  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_ylabel("% of the calls")
    axes.set_xlabel("trajectory, in the order of ending")
    axes.grid()
    _legend(axes, below_label=True)


def _ends(axes: Axes, found: Findings) -> None:
    ends = found.measures.ends.most_common(_MOST_ENDS)[::-1]
    axes.set_title("Why trajectories ended")
    for row, (end, count) in enumerate(ends):
        colour, hatch = (GREEN, "") if end in _GOOD else (RED, "////") if end in ERROR_ENDS else (AMBER, "")
        bar = axes.barh([row], [count], height=0.6, color=colour, hatch=hatch, edgecolor=PAPER, linewidth=0)
        axes.bar_label(bar, [f"{count:,}"], color=SOFT, padding=4)
    _horizontal(axes, [end for end, _ in ends])


def _turns(axes: Axes, found: Findings) -> None:
    axes.set_title("Responses per trajectory")
    _whole_numbers(axes, found.turns, VIOLET)
    axes.set_ylabel("trajectories")
    axes.grid(axis="y")


def _calls(axes: Axes, found: Findings) -> None:
    tools = _most_called(found)
    rows, calls, failed = range(len(tools)), [tool.calls for _, tool in tools], [tool.failed_calls for _, tool in tools]
    good = [all_calls - bad for all_calls, bad in zip(calls, failed, strict=True)]
    axes.set_title("Calls per tool")
    axes.barh(rows, good, height=0.6, color=GREEN)
    bars = axes.barh(rows, failed, left=good, height=0.6, color=RED, hatch="////", edgecolor=PAPER, linewidth=0)
    said = [f"{n:,}, {bad:,} failed" if bad else f"{n:,}" for n, bad in zip(calls, failed, strict=True)]
    axes.bar_label(bars, said, color=SOFT, padding=4)
    axes.set_xlim(0, max(calls) * 1.45)
    _horizontal(axes, [name for name, _ in tools])


def _times(axes: Axes, found: Findings) -> None:
    tools = _timed(found)
    axes.set_title("Time per call: median to p99")
    for offset, colour, marker, label, of in (
        (0.15, BLUE, "o", "running", "ran"),
        (-0.15, AMBER, "s", "queued", "queued"),
    ):
        for row, (_, tool) in enumerate(tools):
            low, high = (max(getattr(tool, of).quantile(q), 1e-7) for q in (0.5, 0.99))
            axes.plot([low, high], [row + offset] * 2, color=colour, linewidth=3, solid_capstyle="round")
            axes.plot([low], [row + offset], marker, color=colour, markersize=6, label=label if row == 0 else None)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_seconds)
    axes.xaxis.set_minor_formatter("")
    _horizontal(axes, [name for name, _ in tools])
    _legend(axes)


def _seconds(value: float, _: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if value >= size * 0.999:
            return f"{value / size:.4g} {unit}"
    return f"{value:.0e} s"


def _whole_numbers(axes: Axes, counts: Mapping[int, int], colour: str) -> None:
    """Bars over whole numbers, of which at least three have room: a single bar is narrow."""
    axes.bar(list(counts), list(counts.values()), color=colour, width=0.8)
    low, high = min(counts), max(counts)
    wider = max(2 - (high - low), 0) / 2
    axes.set_xlim(low - wider - 0.6, high + wider + 0.6)
    axes.locator_params(axis="x", integer=True)
    axes.locator_params(axis="y", integer=True)


def _horizontal(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), [_label(name) for name in names])
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    axes.margins(x=0.14)
    axes.grid(axis="x")


def _legend(axes: Axes, *, below_label: bool = False) -> None:
    """Put the legend below the chart, at a distance that does not depend on its height."""
    from matplotlib.transforms import ScaledTranslation

    below = ScaledTranslation(0, -(36 if below_label else 22) / 72, axes.figure.dpi_scale_trans)
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=axes.transAxes + below, ncols=2,
        borderaxespad=0, columnspacing=1.2, handletextpad=0.5,
    )  # fmt: skip


def _most_called(found: Findings) -> list[tuple[str, ToolMeasures]]:
    """The tools with the most calls, the first of them last: matplotlib draws from the bottom."""
    tools = sorted(found.measures.tools.items(), key=lambda item: item[1].calls, reverse=True)
    return [(name, tool) for name, tool in tools[:MOST_TOOLS] if tool.calls][::-1]


def _timed(found: Findings) -> list[tuple[str, ToolMeasures]]:
    return [(name, tool) for name, tool in _most_called(found) if tool.ran.count]


def _label(name: str) -> str:
    line = escape_controls(" ".join(clean(name[:200]).split()))
    return line if len(line) <= 20 else f"{line[:19]}…"


class Chart(NamedTuple):
    """One chart: how it is drawn, whether there is anything to draw, and how many horizontal bars it has."""

    draw: Callable[[Axes, Findings], None]
    has: Callable[[Findings], object]
    bars: Callable[[Findings], int] | None = None


CHARTS: Final = (
    Chart(_rewards, lambda found: found.measures.rewards.count),
    Chart(_curve, lambda found: found.measures.rewards.count > 1),
    Chart(_groups, lambda found: len(found.groups.several()) > 1),
    Chart(_pass_rates, lambda found: len(found.groups.pass_rates()) > 1),
    Chart(_lengths, lambda found: len({one.written for one in found.lengths.kept}) > 1),
    Chart(_turns, lambda found: found.turns),
    Chart(_failures, lambda found: found.measures.failures and found.measures.trajectories > 1),
    Chart(_calls, _most_called, lambda found: len(_most_called(found))),
    Chart(_times, _timed, lambda found: len(_timed(found)) + 1),
    Chart(_ends, lambda found: found.measures.ends, lambda found: min(len(found.measures.ends), _MOST_ENDS)),
)
