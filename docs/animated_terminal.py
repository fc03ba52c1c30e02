"""A terminal session as an SVG that plays: frames of a screen become one film strip, moved by CSS. Knows no session.

The picture needs no script, so it plays as an `<img>`. A reader who prefers reduced motion sees the last frame.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Mapping
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from recording import DrawnTerminal

LINE: Final = 19
WIDTH: Final = 8.4
SIZE: Final = 14
MARGIN: Final = 14
BAR: Final = 30
END: Final = 4.0
"""Seconds for which the last frame stays before the film starts again."""
COLOURS: Final = {
    "default": "#d8dee9",
    "black": "#5c6470",
    "red": "#f47067",
    "green": "#8ddb8c",
    "brown": "#e3b341",
    "blue": "#6cb6ff",
    "magenta": "#dcbdfb",
    "cyan": "#76d9e6",
    "white": "#d8dee9",
    "brightblack": "#8b949e",
}
"""Of pyte's names for the first eight colours; a bright one is drawn like its plain one."""
GROUND: Final = "#161b22"


class Run(NamedTuple):
    """Neighbouring characters of one look."""

    column: int
    text: str
    colour: str
    ground: str
    style: str


Frame = tuple[tuple[Run, ...], ...]
"""The lines of a screen."""


_DIM: Final = re.compile(r"\x1b\[((?:[01];)*)2(;36)?m")
"""Dim, perhaps also bold or cyan: pyte does not know dim, so it is drawn in grey, and dim cyan in cyan."""


class FilmedTerminal(DrawnTerminal):
    """A terminal that keeps what it showed, and when."""

    def __init__(self, words: list[str], *, columns: int, folder: Path, environment: Mapping[str, str]) -> None:
        self.film: list[tuple[float, Frame]] = []
        super().__init__(words, columns=columns, folder=folder, environment=environment)

    def receive(self, text: str) -> None:
        """Keep the screen if it has changed."""
        super().receive(_DIM.sub(lambda found: f"\x1b[{found[1]}{'36' if found[2] else '90'}m", text))
        frame = self._frame()
        if not self.film or self.film[-1][1] != frame:
            self.film.append((time.monotonic(), frame))

    def watch(self, seconds: float) -> None:
        """Read what the program writes for some time."""
        end = time.monotonic() + seconds
        with contextlib.suppress(AssertionError):  # nothing was written in the rest of the time
            self.read_until(lambda: time.monotonic() > end, "", seconds)

    def type_slowly(self, keys: str) -> None:
        """Type at a person's pace."""
        for key in keys:
            self.watch(0.5 if key in "\r\n" else 0.05)
            self.type(key)

    def _frame(self) -> Frame:
        screen = self.shown.screen
        cursor = None if screen.cursor.hidden else (screen.cursor.y, screen.cursor.x)
        return tuple(_line(screen.buffer[y], screen.columns, y, cursor) for y in range(screen.lines))


def _line(row: Any, columns: int, y: int, cursor: tuple[int, int] | None) -> tuple[Run, ...]:
    cells = [(x, row[x], (y, x) == cursor) for x in range(columns)]
    runs = []
    for (colour, ground, style), group in groupby(cells, key=lambda cell: _look(cell[1], cursor=cell[2])):
        cells_of_run = list(group)
        text = "".join(cell.data for _, cell, _ in cells_of_run)
        if text.strip() or ground:
            runs.append(Run(cells_of_run[0][0], text if ground else text.rstrip(), colour, ground, style))
    return tuple(runs)


def _look(cell: Any, *, cursor: bool) -> tuple[str, str, str]:
    colour, ground = _colour(cell.fg), "" if cell.bg == "default" else _colour(cell.bg)
    if cell.reverse != cursor:
        colour, ground = ground or GROUND, colour
    styles = {"b": cell.bold, "i": cell.italics, "u": cell.underscore}
    return colour, ground, "".join(letter for letter, is_set in styles.items() if is_set)


def _colour(name: str) -> str:
    return COLOURS.get(name) or COLOURS.get(name.removeprefix("bright")) or f"#{name}"


def cut(film: Iterable[tuple[float, Frame]], step: float = 0.06) -> list[tuple[float, Frame]]:
    """The film from 0, without frames that are visible for less than `step` seconds."""
    kept: list[tuple[float, Frame]] = []
    start = None
    for at, frame in film:
        start = at if start is None else start
        if kept and at - start - kept[-1][0] < step:
            kept[-1] = (kept[-1][0], frame)
        elif not kept or kept[-1][1] != frame:
            kept.append((at - start, frame))
    return kept


def drawn(film: list[tuple[float, Frame]], columns: int, title: str, label: str) -> str:
    """The picture, without the rows that are always empty at the top and the bottom.

    Args:
        film: seconds and the screen from then on.
        columns: of the terminal.
        title: in the window's bar.
        label: what the picture shows, for readers who do not see it.
    """
    used = [y for _, frame in film for y, line in enumerate(frame) if line]
    top, rows = min(used), max(used) + 1 - min(used)
    width, inner = round(columns * WIDTH + 2 * MARGIN), rows * LINE
    height = BAR + inner + 2 * MARGIN
    seconds = film[-1][0] + END
    known: dict[tuple[Run, ...], int] = {}
    strip = []
    for at, (_, frame) in enumerate(film):
        for y, line in enumerate(frame[top:]):
            if line:
                number = known.setdefault(line, len(known))
                strip.append(f'<use href="#l{number}" y="{at * inner + y * LINE}"/>')
    moves = "".join(
        f"{100 * when / seconds:.2f}%{{transform:translateY({-at * inner}px)}}" for at, (when, _) in enumerate(film)
    )
    style = (
        f"text{{font:{SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}}"
        ".b{font-weight:bold}.i{font-style:italic}.u{text-decoration:underline}"
        f"@keyframes f{{{moves}}}"
        f".f{{animation:f {seconds:.2f}s step-end infinite}}"
        "@media(prefers-reduced-motion:reduce){.f{animation:none;"
        f"transform:translateY({-(len(film) - 1) * inner}px)}}}}"
    )
    lights = "".join(
        f'<circle cx="{18 + 18 * at}" cy="16" r="5.5" fill="{colour}"/>'
        for at, colour in enumerate(("#ec6a5e", "#f4bf4f", "#61c554"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(label)}"><style>{style}</style><defs>'
        + "".join(f'<g id="l{number}">{"".join(map(_run, line))}</g>' for line, number in known.items())
        + f'</defs><rect width="{width}" height="{height}" rx="8" fill="{GROUND}"/>{lights}'
        f'<text x="{width / 2}" y="20" text-anchor="middle" fill="{COLOURS["brightblack"]}">{escape(title)}</text>'
        f'<svg x="{MARGIN}" y="{BAR + MARGIN / 2}" width="{width - 2 * MARGIN}" height="{inner}">'
        f'<g class="f">{"".join(strip)}</g></svg></svg>\n'
    )


def _run(run: Run) -> str:
    """Characters at their column; `textLength` keeps columns in line in every font."""
    x, width = round(run.column * WIDTH, 1), round(len(run.text) * WIDTH, 1)
    ground = f'<rect x="{x}" width="{width}" height="{LINE}" fill="{run.ground}"/>' if run.ground else ""
    if not run.text.strip():
        return ground
    kind = f' class="{" ".join(run.style)}"' if run.style else ""
    return (
        f'{ground}<text x="{x}" y="{LINE - 5}" textLength="{width}" fill="{run.colour}"{kind}>'
        f"{escape(run.text).replace('⎿', '└')}</text>"  # the first is missing in many fonts
    )
