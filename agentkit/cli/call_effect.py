"""The effect of a call, for a person who decides about it: a diff, a new file, a command, or its arguments.

The names and values of the arguments decide, not the tool's name: a path with a text is a file that is written, `old_…`
with `new_…` an edit, `command` or `code` a program. If the tool's instance has a folder in `root`, as `Files` has, the
file is read, so that the diff has its surroundings. Nothing is hidden: whatever the body does not show is in `rest`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentkit.cli.terminal import GOES_ON, arguments, fold, visible
from agentkit.messages import ToolCall
from agentkit.tool.bound_tool import BoundTool

SHOWN: Final = 20  # lines of a body, unless all are requested
LARGE: Final = 200_000  # characters of a file that is still compared: difflib's time grows with the square
PATHS: Final = ("file_path", "path", "filename", "file")
PROGRAMS: Final = {"command": "bash", "cmd": "bash", "script": "bash", "code": "python"}
DIFF: Final = "diff"


class Effect(NamedTuple):
    """The effect of a call.

    Attributes:
        target: the file that it is about; empty if there is none.
        note: about the target, such as `new, 6 lines`.
        body: the lines of a diff, a text or a program, with each invisible character escaped.
        language: of the body, as pygments names it; `diff`, or a file's name; empty if unknown.
        rest: the arguments that are shown neither by the title nor by the body.
    """

    target: str = ""
    note: str = ""
    body: tuple[str, ...] = ()
    language: str = ""
    rest: Mapping[str, Any] = {}


def effect(call: ToolCall, tool: BoundTool | None) -> Effect:
    """Return what a call would do."""
    rest = dict(call.arguments)
    path = next((name for name in PATHS if _one_line(rest.get(name))), None)
    if path is None:
        name = next((name for name in PROGRAMS if isinstance(rest.get(name), str)), None)
        if name is None:
            return Effect(rest=rest)
        return Effect(body=_lines(rest.pop(name)), language=PROGRAMS[name], rest=rest)
    target = rest.pop(path)
    file = _place(tool, target)
    if pair := _pair(rest):
        old, new = (rest.pop(name) for name in pair)
        return _edit(visible(target), _present(file), old, new, rest)
    texts = [name for name, value in rest.items() if isinstance(value, str) and _is_text(name, value)]
    if len(texts) == 1:
        return _text(target, file, rest.pop(texts[0]), rest)
    return Effect(visible(target), rest=rest)


def title(call: ToolCall, about: Effect, count: str) -> str:
    """The title of a block: the tool, its target, and which of several calls this is."""
    arrow = f" → {about.target}" if about.target else ""
    note = f" ({about.note})" if about.note else ""
    return f"{visible(call.name)}{arrow}{note}{f' · {count}' if count else ''}"


def rows(about: Effect, width: int, most: int | None) -> tuple[list[tuple[str, str]], int]:
    """The body as pairs of a mark and a piece of at most `width` columns, and the number of lines left out.

    Args:
        about: the effect.
        width: the maximum number of columns of a piece.
        most: how many rows; None for all.
    """
    out: list[tuple[str, str]] = []
    for n, line in enumerate(about.body):
        pieces = list(fold(line, max(width, 1)))
        if most is not None and len(out) + len(pieces) > most and not (n == len(about.body) - 1 and not out):
            return out, len(about.body) - n
        out.extend(("│ " if not k else GOES_ON, piece) for k, piece in enumerate(pieces))
    return out, 0


def rest_lines(about: Effect, width: int) -> list[str]:
    """The arguments that the body does not show, as lines."""
    return list(arguments(about.rest, width, "  "))


def _one_line(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "\n" not in value


def _is_text(name: str, value: str) -> bool:
    return "\n" in value or "content" in name or "text" in name


def _lines(text: str) -> tuple[str, ...]:
    """The lines of a text; the line end at its end adds none."""
    lines = text.removesuffix("\n").split("\n")
    return tuple(visible(line.expandtabs(4)) for line in lines)


def _pair(given: Mapping[str, Any]) -> tuple[str, str] | None:
    """The names of a text and of its replacement, such as `old_str` and `new_str`."""
    for name, value in given.items():
        new = f"new{name[3:]}"
        if name.startswith("old") and isinstance(value, str) and isinstance(given.get(new), str):
            return name, new
    return None


def _edit(target: str, before: str | None, old: str, new: str, rest: Mapping[str, Any]) -> Effect:
    times = before.count(old) if before is not None and old else None
    if before is not None and times == 1:
        return Effect(target, "", _diff(before, before.replace(old, new)), DIFF, rest)
    found = "" if times is None else "the text is not in the file" if not times else f"found {times} times"
    return Effect(target, found, _diff(old, new), DIFF, rest)


def _text(target: str, file: Path | None, text: str, rest: Mapping[str, Any]) -> Effect:
    size = _count(text)
    before = _present(file)
    if before is not None and set(rest) <= {"command"}:
        if before == text:
            return Effect(visible(target), f"exists, {size}, no change", (), DIFF, rest)
        return Effect(visible(target), f"exists, {_count(before)}", _diff(before, text), DIFF, rest)
    new = "new, " if _missing(file) else ""
    return Effect(visible(target), f"{new}{size}", _lines(text), Path(target).name, rest)


def _count(text: str) -> str:
    lines = text.count("\n") + (not text.endswith("\n")) if text else 0
    return f"{lines} line{'s' * (lines != 1)}"


def _diff(before: str, after: str) -> tuple[str, ...]:
    """A unified diff without the names of the files. A line end at the end of only one text counts as an empty line."""
    if before.endswith("\n") and after.endswith("\n"):
        before, after = before[:-1], after[:-1]
    lines = list(difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm=""))
    return tuple(visible(line.expandtabs(4)) for line in lines[2:])


def _place(tool: BoundTool | None, path: str) -> Path | None:
    """Where a file of the tool is; None if the tool does not say so, or if it is outside its folder."""
    root = getattr(tool.instance, "root", None) if tool is not None else None
    if not isinstance(root, Path):
        return None
    try:
        place = root / path
        return place if place.resolve().is_relative_to(root.resolve()) else None
    except (OSError, ValueError, RuntimeError):  # an over-long name, a zero byte, a loop of links
        return None


def _missing(file: Path | None) -> bool:
    try:
        return file is not None and not file.exists()
    except (OSError, ValueError):
        return False


def _present(file: Path | None) -> str | None:
    """The text of a file; None if it cannot be read, or is too large to be compared."""
    try:
        if file is None or not file.is_file() or file.stat().st_size > LARGE:
            return None
        return file.read_bytes().decode()
    except (OSError, ValueError):
        return None
