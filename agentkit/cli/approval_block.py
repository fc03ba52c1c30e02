"""The question about a call as a block at a terminal that draws: its effect, and one key to answer, without Enter.

The block is removed when the call is decided. Loads rich and prompt_toolkit.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from agentkit.agent import Approved, Decision, Denied
from agentkit.cli import effect_rows
from agentkit.cli.approval_question import STAR
from agentkit.cli.edited_arguments import from_text, read_arguments, to_text
from agentkit.cli.keyboard import collect_lines
from agentkit.cli.line_editor import edit_line
from agentkit.cli.markdown_lines import highlight
from agentkit.cli.single_keys import END, ESCAPE, INTERRUPT, one_of
from agentkit.cli.terminal import as_json, fold, more
from agentkit.errors import ConfigError
from agentkit.schemas.words import InvalidArguments
from agentkit.tool.call_effect import Effect

if TYPE_CHECKING:
    from agentkit.cli.approval_question import Question
    from agentkit.cli.live_screen import LiveScreen

AROUND: Final = 6  # rows of a window that are kept for the keys, and what is above the block
BACK: Final = (ESCAPE, INTERRUPT, END)


async def ask_by_key(question: Question) -> Decision | None:
    """Ask until a key decides; None leaves the call waiting. Esc, Ctrl-C and Ctrl-D mean later, or no without it."""
    from agentkit.cli.live_screen import LiveScreen

    screen = question.screen
    assert isinstance(screen, LiveScreen)
    draft, viewed = "", False
    wanted = ("y", *("ap" * (not question.inner)), "n", "e", "v", *("l" * question.later), *BACK)
    lines = lru_cache(maxsize=1)(partial(_lines, question))  # by width

    def draw(ready: bool) -> None:
        rows = lines(screen.size[0])
        screen.ask(_block(question, rows[:1] if viewed else rows, screen, ready))

    try:
        while True:
            key = await one_of(wanted, draw)
            screen.end_question()
            match key:
                case "y" | "a" | "p":
                    if await _approves(question, key):
                        return Approved()
                case "n":
                    if (reason := await edit_line(f"{question.title}: no, because (may be empty): ")) is not None:
                        return Denied(reason.strip())
                case "e":
                    draft, changed = await _edited(question, draft)
                    if changed is not None:
                        return Approved(changed)
                case "v":
                    viewed = True  # printed for good: it may be longer than the window
                    screen.print_part(Text("\n").join(lines(screen.size[0])))
                case _:
                    return None if question.later else Denied()
    finally:
        screen.end_question()


async def _approves(question: Question, key: str) -> bool:
    """Approve the call by its key: this one; this one and all of its tool; this one and those that fit patterns."""
    if key != "p":
        question.remember = key == "a"
        return True
    question.screen.note(f"Allow such calls. {STAR}")
    text = await edit_line("allow> ", as_json(question.patterns))
    return text is not None and question.allow(text)


def _block(question: Question, lines: list[Text], screen: LiveScreen, ready: bool) -> RenderableType:
    """The first lines, as far as the window has room for them, and the keys once they can answer."""
    columns, height = screen.size
    most = max(min(effect_rows.SHOWN, height - AROUND), 3)
    left = len(lines) - most
    end = [Text(f"  {more(left)}", "dim")] if left > 0 else []
    return Group(*lines[:most], *end, _keys(question, columns, left > 0) if ready else Text(""))


def _lines(question: Question, columns: int) -> list[Text]:
    """Everything that the call does, in lines of this width."""
    name = question.title.partition(" ")[0]
    title = [Text(piece) for piece in fold(f"● {question.title}", columns)]
    title[0].stylize("cyan", 0, 1)
    title[0].stylize("bold", 2, 2 + len(name))
    rows = list(effect_rows.rows(question.effect, columns))
    body = [piece for mark, piece in rows if mark]
    coloured = [*_coloured(question.effect, body), *(Text(piece) for mark, piece in rows if not mark)]
    return [*title, *(Text.assemble((mark, "dim"), line) for (mark, _), line in zip(rows, coloured, strict=True))]


def _coloured(about: Effect, pieces: list[str]) -> list[Text]:
    if about.edits:
        return [Text(piece, effect_rows.COLOURS.get(piece[:1], "")) for piece in pieces]
    lines = highlight("\n".join(pieces), about.language)
    same = [line.plain for line in lines] == pieces  # whatever a lexer makes of it, what is decided about is shown
    return lines if same else [Text(piece) for piece in pieces]


def _keys(question: Question, columns: int, cut: bool) -> Text:
    """The keys, in words if they fit."""
    always = [("a", f"always for {question.call.name:.30} in this chat"), ("p", "pattern")]
    long = [
        ("y", "yes"), *(always * (not question.inner)), ("n", "no, with a reason"), ("e", "edit"),
        *([("v", "view all")] if cut else []), *([("l", "later")] if question.later else []),
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
    before = to_text(given) if editor else as_json(dict(given))
    try:
        text = _in_editor(editor, draft or before) if editor else await edit_line("json> ", draft or before)
    except ConfigError as e:
        question.tell(e)
        return draft, None
    if text is None or not text.strip() or text == before:
        return draft, None
    try:
        changed = from_text(text, given) if editor else read_arguments(text)
        question.check(changed)
    except (ConfigError, InvalidArguments) as e:
        question.tell(e)
        question.tell(ConfigError("e edits this text again; y runs the call as it was"))
        return text, None
    return text, changed


def _in_editor(editor: str, text: str) -> str:
    """The text after a person has edited it."""
    descriptor, name = tempfile.mkstemp(prefix="agentkit-", suffix=".txt")
    file = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as out:
            out.write(text)
        with collect_lines():
            done = subprocess.run([*shlex.split(editor), name], check=False)
        if done.returncode:
            raise ConfigError(f"the editor {editor!r} ended with status {done.returncode}; nothing is changed")
        return file.read_bytes().decode(errors="replace")
    except (OSError, ValueError) as e:
        raise ConfigError(f"the editor {editor!r} does not work: {e}; nothing is changed") from e
    finally:
        file.unlink(missing_ok=True)
