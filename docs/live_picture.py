"""The picture of the live results: a bar for each way of calling, from the runs that `real_models.py --json` kept.

python docs/live_picture.py runs.json    writes docs/images/live.svg
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path
from typing import Any

PICTURE = Path(__file__).parent / "images" / "live.svg"
PEERS = ("openai-agents", "pydantic-ai")
ROW, LEFT, WIDTH = 30, 260, 400
STYLE = (
    "text{font:15px Verdana,Arial,sans-serif;fill:#1f2328}.own{fill:#2f7d4f}.peer{fill:#b3524a}.all{fill:#e6e8eb}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.all{fill:#30363d}}"
)


def drawn(runs: list[dict[str, Any]]) -> str:
    """The picture, with the modes in the order of their results."""
    modes = {run["mode"] for run in runs}
    rows = [(sum(r["ok"] for r in runs if r["mode"] == m), sum(r["mode"] == m for r in runs), m) for m in modes]
    bars = [_bar(at, *row) for at, row in enumerate(sorted(rows, reverse=True))]
    size = f'width="{LEFT + WIDTH + 90}" height="{ROW * len(bars) + 8}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><style>{STYLE}</style>{"".join(bars)}</svg>\n'


def _bar(at: int, right: int, count: int, mode: str) -> str:
    y, long = at * ROW + 8, WIDTH * right / count
    name = mode if mode in PEERS else f"agentkit, {mode.removesuffix('+c')}{', constrained' * mode.endswith('+c')}"
    return (
        f'<text x="{LEFT - 10}" y="{y + 15}" text-anchor="end">{escape(name)}</text>'
        f'<rect class="all" x="{LEFT}" y="{y}" width="{WIDTH}" height="20" rx="3"/>'
        f'<rect class="{"peer" if mode in PEERS else "own"}" x="{LEFT}" y="{y}" width="{long:.0f}" height="20" rx="3"/>'
        f'<text x="{LEFT + WIDTH + 10}" y="{y + 15}">{right} of {count}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["runs"]), encoding="utf-8")
