"""The question about a call as a block at a terminal that draws: its effect, and one key to answer, without Enter.

The block is removed when the call is decided. Loads rich and prompt_toolkit.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from agentkit.agent import Approved, Decision, Denied
from agentkit.cli import call_effect
from agentkit.cli.edited_arguments import from_text, read_arguments, to_text
from agentkit.cli.keyboard import collect_lines
from agentkit.cli.line_editor import edit_line
from agentkit.cli.markdown_lines import highlight
from agentkit.cli.single_keys import END, ESCAPE, INTERRUPT, one_of
from agentkit.errors import ConfigError
from agentkit.schemas.words import InvalidArguments

if TYPE_CHECKING:
    from agentkit.cli.approval_question import Question
    from agentkit.cli.live_screen import LiveScreen

AROUND: Final = 6  # rows of a window that are kept for the title, the keys, and what is above them
BACK: Final = (ESCAPE, INTERRUPT, END)
DIFF_COLOURS: Final = {"+": "green", "-": "red", "@": "dim"}


async def ask_by_key(question: Question) -> Decision | None:
    """Ask until a key decides; None leaves the call waiting. Esc, Ctrl-C and Ctrl-D mean later, or no without it."""
    from agentkit.cli.approval_question import forget_typed
    from agentkit.cli.live_screen import LiveScreen

    screen = question.screen
    assert isinstance(screen, LiveScreen)
    draft = ""
    wanted = ("y", "a", "n", "e", "v", *("l" * question.later), *BACK)
    forget_typed()
    try:
        while True:
            key = await one_of(wanted, lambda: screen.ask(_block(question, screen)))
            screen.end_question()
            match key:
                case "y" | "a":
                    question.always = key == "a"
                    return Approved()
                case "n":
                    if (reason := await edit_line(f"{question.title}: no, because (may be empty): ")) is not None:
                        return Denied(reason.strip())
                case "e":
                    draft, changed = await _edited(question, draft)
                    if changed is not None:
                        return Approved(changed)
                case "v":
                    _view(question, screen)
                case _:
                    return None if question.later else Denied()
    finally:
        screen.end_question()


def _block(question: Question, screen: LiveScreen) -> RenderableType:
    columns, height = screen.size
    most = max(min(call_effect.SHOWN, height - AROUND), 3)
    return Group(*_effect(question, columns, most), _keys(question, columns, most))


def _view(question: Question, screen: LiveScreen) -> None:
    """Print the complete effect, for good: it may be longer than the window."""
    for line in _effect(question, screen.size[0], None):
        screen.print_part(line)


def _effect(question: Question, columns: int, most: int | None) -> Iterator[RenderableType]:
    about = question.effect
    name, _, rest = question.title.partition(" ")
    yield Text.assemble(("● ", "cyan"), (name, "bold"), f" {rest}" if rest else "", overflow="fold")
    rows, left = call_effect.rows(about, max(columns - 4, 1), most)
    for (mark, _), line in zip(rows, _coloured(about, [piece for _, piece in rows]), strict=True):
        yield Text.assemble((f"  {mark}", "dim"), line)
    if left:
        yield Text(f"  … {left} more line{'s' * (left != 1)}", "dim")
    others = call_effect.rest_lines(about, columns)
    cut = len(others) if most is None else max(most - len(rows), 3)
    yield from map(Text, others[:cut])
    if cut < len(others):
        yield Text(f"  … {len(others) - cut} more lines", "dim")


def _coloured(about: call_effect.Effect, pieces: list[str]) -> list[Text]:
    if about.language == call_effect.DIFF:
        return [Text(piece, DIFF_COLOURS.get(piece[:1], "")) for piece in pieces]
    lines = highlight("\n".join(pieces), about.language)
    same = [line.plain for line in lines] == pieces  # whatever a lexer makes of it, what is decided about is shown
    return lines if same else [Text(piece) for piece in pieces]


def _keys(question: Question, columns: int, most: int) -> Text:
    """The keys, in words if they fit."""
    rows, left = call_effect.rows(question.effect, max(columns - 4, 1), most)
    cut = left or len(call_effect.rest_lines(question.effect, columns)) > max(most - len(rows), 3)
    long = [
        ("y", "yes"), ("a", f"always for {question.call.name:.30} in this chat"), ("n", "no, with a reason"),
        ("e", "edit"), *([("v", "view all")] if cut else []), *([("l", "later")] if question.later else []),
    ]  # fmt: skip
    text = _joined(long)
    return text if text.cell_len < columns else _joined([(key, words.split()[0].rstrip(",")) for key, words in long])


def _joined(keys: list[tuple[str, str]]) -> Text:
    parts = [Text.assemble((key, "bold cyan"), f" {words}") for key, words in keys]
    return Text.assemble("  ", Text(" · ", "dim").join(parts))


async def _edited(question: Question, draft: str) -> tuple[str, Mapping[str, Any] | None]:
    """Arguments that a person has edited, in an editor if there is one, or as one line of JSON.

    Returns the text as it was left, to be edited again, and the arguments; None if they do not fit or are unchanged.
    """
    given = question.call.arguments
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    before = to_text(given) if editor else json.dumps(dict(given), ensure_ascii=False, default=str)
    text = _in_editor(editor, draft or before) if editor else await edit_line("json> ", draft or before)
    if text is None or not text.strip() or text == before:
        return draft, None
    try:
        changed = from_text(text, given) if editor else read_arguments(text)
        question.check(changed)
    except (ConfigError, InvalidArguments) as e:
        question.tell(e)
        return text, None
    return text, changed


def _in_editor(editor: str, text: str) -> str | None:
    """The text after a person has edited it; None if the editor failed."""
    descriptor, name = tempfile.mkstemp(prefix="agentkit-", suffix=".txt")
    file = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as out:
            out.write(text)
        with collect_lines():
            done = subprocess.run([*shlex.split(editor), name], check=False)
        return None if done.returncode else file.read_bytes().decode(errors="replace")
    except (OSError, ValueError):
        return None
    finally:
        file.unlink(missing_ok=True)
