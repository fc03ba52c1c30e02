"""The effect of a call, for a person who decides about it: an edit, a text, a program, or its arguments.

The names and values of the arguments decide, not the tool's name: a path with `old_…` and `new_…` is an edit, a path
with a text is a text for a file, `command` or `code` a program. No file is read: only the tool knows which files it may
read, and what it does with them. Nothing is hidden: whatever the body does not show is in `rest`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentkit.checks.visible_text import visible
from agentkit.messages import ToolCall

LONGEST: Final = 100  # characters of a path in the title; a longer one is shown with the other arguments
PATHS: Final = ("file_path", "path", "filename", "file")
PROGRAMS: Final = {"command": "bash", "cmd": "bash", "script": "bash", "code": "python"}


class Effect(NamedTuple):
    """The effect of a call.

    Attributes:
        target: the file that it is about; empty if there is none.
        note: about the text, such as `6 lines`.
        body: the lines of an edit, a text or a program, with each invisible character escaped.
        language: of the body, as pygments names it, or a file's name; empty if unknown.
        edits: whether the body is an edit: its lines start with a space, `-` or `+`.
        rest: the arguments that are shown neither by the title nor by the body.
    """

    target: str = ""
    note: str = ""
    body: tuple[str, ...] = ()
    language: str = ""
    edits: bool = False
    rest: Mapping[str, Any] = {}


def effect(call: ToolCall) -> Effect:
    """Return what a call would do."""
    rest = dict(call.arguments)
    path = next((name for name in PATHS if _fits_title(rest.get(name))), None)
    if path is None:
        name = next((name for name in PROGRAMS if isinstance(rest.get(name), str)), None)
        if name is None:
            return Effect(rest=rest)
        return Effect(body=_lines(rest.pop(name)), language=PROGRAMS[name], rest=rest)
    target = rest.pop(path)
    if pair := _pair(rest):
        old, new = (rest.pop(name) for name in pair)
        return Effect(visible(target), body=_edit(old, new), edits=True, rest=rest)
    texts = [name for name, value in rest.items() if isinstance(value, str) and _is_text(name, value)]
    if len(texts) != 1:
        return Effect(visible(target), rest=rest)
    lines = _lines(rest.pop(texts[0]))
    return Effect(visible(target), f"{len(lines)} line{'s' * (len(lines) != 1)}", lines, Path(target).name, rest=rest)


def effect_json(about: Effect) -> dict[str, Any]:
    """The effect as a JSON object, for a page that shows it."""
    return {**about._asdict(), "body": list(about.body), "rest": dict(about.rest)}


def _fits_title(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "\n" not in value and len(visible(value)) <= LONGEST


def _is_text(name: str, value: str) -> bool:
    return "\n" in value or "content" in name or "text" in name


def _lines(text: str) -> tuple[str, ...]:
    """The lines of a text; the line end at its end adds none."""
    return tuple(map(_line, text.removesuffix("\n").split("\n")))


def _line(text: str) -> str:
    """A line in which a tab differs from spaces."""
    return visible(text.replace("\t", "⇥\t").expandtabs(4))


def _pair(given: Mapping[str, Any]) -> tuple[str, str] | None:
    """The names of a text and of its replacement, such as `old_str` and `new_str`."""
    for name, value in given.items():
        new = f"new{name[3:]}"
        if name.startswith("old") and isinstance(value, str) and isinstance(given.get(new), str):
            return name, new
    return None


def _edit(old: str, new: str) -> tuple[str, ...]:
    """All lines of both texts; those that are equal at the start and at the end once."""
    before, after = old.split("\n"), new.split("\n")
    start = _equal(before, after)
    end = _equal(before[start:][::-1], after[start:][::-1])
    middle, last = len(before) - end, len(after) - end
    parts = ((" ", before[:start]), ("-", before[start:middle]), ("+", after[start:last]), (" ", before[middle:]))
    return tuple(f"{sign}{_line(line)}" for sign, lines in parts for line in lines)


def _equal(some: Sequence[str], others: Sequence[str]) -> int:
    """How many of the first lines are equal."""
    return next((n for n, (a, b) in enumerate(zip(some, others, strict=False)) if a != b), min(len(some), len(others)))
