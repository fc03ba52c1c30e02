"""The charts of a report, drawn by matplotlib: as SVG whose colours the page decides, and as PNG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from agentkit.errors import ConfigError, install_command
from agentkit.rollout.records.measures import ToolMeasures
from agentkit.rollout.records.trajectory import ERROR_ENDS
from agentkit.rollout.report.findings import Findings
from agentkit.unicode import clean, escape_controls

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_TOOLS: Final = 12
"""Tools in a chart, those with the most calls; the page's table has all of them."""

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
_SIZE: Final = (6.4, 3.2)
_STYLE: Final = {
    "svg.fonttype": "none",  # text stays text: it can be selected, searched, and drawn in the page's font
    "svg.hashsalt": "agentkit",  # the same records give the same file
    "text.parse_math": False,  # a name with two dollar signs is a name
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": SOFT,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "text.color": INK,
    "grid.color": GRID,
    "legend.frameon": False,
    "legend.labelcolor": SOFT,
    "legend.fontsize": 8.5,
    "figure.facecolor": "none",
    "figure.constrained_layout.h_pad": 0.12,
    "figure.constrained_layout.w_pad": 0.1,
    "savefig.facecolor": "none",
}

Draw = Callable[["Axes", Findings], None]


def svg_charts(found: Findings) -> list[str]:
    """Each chart that has something to show, as an SVG element."""
    return [_svg(draw, found) for draw, has in CHARTS if has(found)]


def png_charts(found: Findings) -> bytes:
    """All charts in one picture."""
    draws = [draw for draw, has in CHARTS if has(found)]
    rows = max((len(draws) + 1) // 2, 1)

    def draw_all(figure: Figure) -> None:
        axes = figure.subplots(rows, 2, squeeze=False).flatten()
        for draw, on in zip(draws, axes, strict=False):
            draw(on, found)
        for empty in axes[len(draws) :]:
            empty.set_axis_off()

    return _rendered(draw_all, (_SIZE[0] * 2, _SIZE[1] * rows), format="png", dpi=120, facecolor=PAPER)


def _svg(draw: Draw, found: Findings) -> str:
    text = _rendered(
        lambda figure: draw(figure.subplots(), found), _SIZE, format="svg", metadata={"Date": None}
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
    values, counts = zip(*found.measures.rewards.bars(), strict=True)
    axes.set_title("Reward per trajectory")
    axes.hist(values, bins=min(30, max(len(values) * 2, 5)), weights=counts, color=BLUE, rwidth=0.94)
    axes.axvline(
        found.measures.rewards.mean, color=AMBER, linewidth=1.5, label=f"mean {found.measures.rewards.mean:.3g}"
    )
    axes.set_ylabel("trajectories")
    axes.grid(axis="y")
    axes.legend()


def _curve(axes: Axes, found: Findings) -> None:
    places, means = zip(*found.curve.means(), strict=True)
    step = found.curve.step
    axes.set_title("Reward in the order of ending" + (f", means of {step:,}" if step > 1 else ""))
    axes.plot(places, means, color=BLUE, linewidth=1.2, marker="o", markersize=2.5)
    axes.axhline(found.measures.rewards.mean, color=AMBER, linewidth=1, linestyle="--")
    axes.set_xlabel("trajectory")
    axes.grid()


def _ends(axes: Axes, found: Findings) -> None:
    ends = found.measures.ends.most_common(10)[::-1]
    colours = [GREEN if end in _GOOD else RED if end in ERROR_ENDS else AMBER for end, _ in ends]
    axes.set_title("Why trajectories ended")
    bars = axes.barh(range(len(ends)), [count for _, count in ends], color=colours)
    axes.bar_label(bars, [f"{count:,}" for _, count in ends], color=SOFT, padding=4)
    _horizontal(axes, [end for end, _ in ends])


def _turns(axes: Axes, found: Findings) -> None:
    turns = sorted(found.turns.items())
    axes.set_title("Responses per trajectory")
    axes.bar([turn for turn, _ in turns], [count for _, count in turns], color=VIOLET, width=0.8)
    axes.set_ylabel("trajectories")
    axes.locator_params(axis="x", integer=True)
    axes.grid(axis="y")


def _calls(axes: Axes, found: Findings) -> None:
    tools = _most_called(found)
    parts = (
        ("succeeded", GREEN, [tool.calls - tool.failed_calls for _, tool in tools]),
        ("timed out", AMBER, [tool.timeouts for _, tool in tools]),
        ("failed", RED, [tool.failed_calls - tool.timeouts for _, tool in tools]),
    )
    axes.set_title("Calls per tool")
    left = [0] * len(tools)
    for label, colour, counts in parts:
        if any(counts):
            axes.barh(range(len(tools)), counts, left=left, color=colour, label=label)
        left = [a + b for a, b in zip(left, counts, strict=True)]
    _horizontal(axes, [name for name, _ in tools])
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, -0.3), ncols=3)


def _times(axes: Axes, found: Findings) -> None:
    tools = [(name, tool) for name, tool in _most_called(found) if tool.ran.count]
    axes.set_title("Time per call: median to 99th percentile")
    for offset, colour, label, of in ((0.14, BLUE, "running", "ran"), (-0.14, AMBER, "queued", "queued")):
        for row, (_, tool) in enumerate(tools):
            low, high = (max(getattr(tool, of).quantile(q), 1e-7) for q in (0.5, 0.99))
            axes.plot([low, high], [row + offset] * 2, color=colour, linewidth=3, solid_capstyle="round")
            axes.plot([low], [row + offset], "o", color=colour, markersize=6, label=label if row == 0 else None)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_seconds)
    axes.xaxis.set_minor_formatter("")
    _horizontal(axes, [name for name, _ in tools])
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, -0.3), ncols=2)


def _seconds(value: float, _: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if value >= size * 0.999:
            return f"{value / size:.4g} {unit}"
    return f"{value:.0e} s"


def _horizontal(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), [_label(name) for name in names])
    axes.set_ylim(-0.6, max(len(names), 3) - 0.4)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")


def _most_called(found: Findings) -> list[tuple[str, ToolMeasures]]:
    """The tools with the most calls, the first of them last: matplotlib draws from the bottom."""
    tools = sorted(found.measures.tools.items(), key=lambda item: item[1].calls, reverse=True)
    return [(name, tool) for name, tool in tools[:MOST_TOOLS] if tool.calls][::-1]


def _label(name: str) -> str:
    line = escape_controls(" ".join(clean(name[:200]).split()))
    return line if len(line) <= 28 else f"{line[:27]}…"


CHARTS: Final[tuple[tuple[Draw, Callable[[Findings], object]], ...]] = (
    (_rewards, lambda found: found.measures.rewards.count),
    (_curve, lambda found: found.measures.rewards.count > 1),
    (_calls, _most_called),
    (_times, lambda found: any(tool.ran.count for _, tool in _most_called(found))),
    (_ends, lambda found: found.measures.ends),
    (_turns, lambda found: found.turns),
)
"""Each chart, and whether there is anything to draw."""
