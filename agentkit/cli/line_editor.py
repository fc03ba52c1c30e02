"""The user's messages at a terminal: a line editor with history, several lines, pasting and completion.

Loads prompt_toolkit; imported only where there is a terminal that it can use.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import create_output
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import Style

from agentkit.checks.unicode import clean
from agentkit.cli.slash_words import WORDS

Choices = Callable[[], Mapping[str, Sequence[str]]]
"""The slash words, each with the words that may follow it."""


FOLDED: Final = 10  # lines of a pasted text that are still shown


class _Interrupted(Exception):
    """Ctrl-C: unlike KeyboardInterrupt it ends no event loop."""


class LineEditor:
    """Asks for messages.

    Args:
        prompt: the text before a message.
        choices: the words that can be completed.
        history: the file with earlier messages; None keeps them in memory.
        toolbar: the line at the bottom.
    """

    def __init__(self, prompt: str, choices: Choices, history: Path | None, toolbar: Callable[[], str]) -> None:
        self._pastes = Pastes()
        self._session: PromptSession[str] = PromptSession(
            message=[("bold", prompt)],
            multiline=True,
            prompt_continuation=_dots,
            history=InMemoryHistory() if history is None else _CleanHistory(str(history), self._pastes),
            key_bindings=_keys(self._pastes),
            completer=_Words(choices),
            complete_style=CompleteStyle.COLUMN,
            complete_while_typing=False,
            bottom_toolbar=lambda: f" {toolbar()}",
            style=Style.from_dict({"bottom-toolbar": "noreverse dim"}),
            interrupt_exception=_Interrupted,
            output=create_output(always_prefer_tty=True),
        )

    async def ask(self) -> str | None:
        """One message; None if Ctrl-C was pressed instead, empty if it removed what was written.

        Raises:
            EOFError: Ctrl-D was pressed.
        """
        try:
            return self._pastes.whole(await self._session.prompt_async())
        except _Interrupted:
            return "" if self._session.default_buffer.text else None


def history_file() -> Path:
    """The file with the user's earlier messages, readable for nobody else; created if there is none.

    Raises:
        OSError: it cannot be created or made private.
    """
    home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    file = Path(home) / "agentkit" / "history"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.fchmod(descriptor, 0o600)  # it may be there, made by another umask
    finally:
        os.close(descriptor)
    return file


class Pastes:
    """Long pasted texts, each shown as a short one in its place."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str) -> str:
        """Return what is shown of a pasted text."""
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= FOLDED:
            return text
        place, n = f"[{lines} lines pasted]", 1
        while self._texts.get(place, text) != text:
            n += 1
            place = f"[{lines} lines pasted, no. {n}]"
        self._texts[place] = text
        return place

    def at_end(self, text: str) -> str:
        """Return the place of a pasted text with which a text ends; empty if it ends otherwise."""
        return next((place for place in self._texts if text.endswith(place)), "")

    def whole(self, text: str) -> str:
        """Return a text with what was pasted in it."""
        if not self._texts:
            return text
        places = re.compile("|".join(map(re.escape, self._texts)))
        return places.sub(lambda found: self._texts[found[0]], text)


class _CleanHistory(FileHistory):
    """A history that can hold whatever was typed, even if it is not valid text; it holds pasted texts as a whole."""

    def __init__(self, file: str, pastes: Pastes) -> None:
        super().__init__(file)
        self._pastes = pastes

    def append_string(self, string: str) -> None:
        super().append_string(self._pastes.whole(string))

    def store_string(self, string: str) -> None:
        super().store_string(clean(string))


def _dots(width: int, line: int, wrapped: int) -> StyleAndTextTuples:
    """Return the mark before the second line and all others."""
    return [("class:dim", "...".rjust(width - 1) + " ")]


def _keys(pastes: Pastes) -> KeyBindings:
    """Enter sends; Alt-Enter, or a backslash before Enter, begins another line; a long pasted text is folded."""
    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline()
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def another(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    @keys.add("tab")
    def complete(event: KeyPressEvent) -> None:
        """At once if only one word fits: the keys after it may have been typed already."""
        buffer = event.current_buffer
        fitting = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        if buffer.complete_state:
            buffer.complete_next()
        elif len(fitting) == 1:
            buffer.apply_completion(fitting[0])
        else:
            buffer.start_completion(insert_common_part=True)

    @keys.add(Keys.BracketedPaste)
    def paste(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(pastes.fold(event.data.replace("\r\n", "\n").replace("\r", "\n")))

    @keys.add("backspace")
    def delete(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        buffer.delete_before_cursor(len(pastes.at_end(buffer.document.text_before_cursor)) or 1)

    return keys


class _Words(Completer):
    """Completes slash words, and the words after them."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in document.text:
            return
        word, space, rest = text.partition(" ")
        choices = self._choices()
        if space:
            given = (one for one in choices.get(word[1:], ()) if one.startswith(rest))
            yield from (Completion(one, -len(rest)) for one in given)
            return
        for name, more in choices.items():
            if f"/{name}".startswith(word):
                about = WORDS[name][1] if name in WORDS else ""
                yield Completion(f"/{name}{' ' * bool(more)}", -len(word), display=f"/{name}", display_meta=about)


async def edit_line(prompt: str, text: str = "") -> str | None:
    """One line, which is removed from the screen when it is entered; None after Esc or Ctrl-C.

    Args:
        prompt: the text before it.
        text: what can be edited.
    """
    keys = KeyBindings()

    @keys.add("escape", eager=True)
    def back(event: KeyPressEvent) -> None:
        event.app.exit(exception=_Interrupted())

    session: PromptSession[str] = PromptSession(
        message=[("bold", prompt)], key_bindings=keys, erase_when_done=True, interrupt_exception=_Interrupted,
        output=create_output(always_prefer_tty=True),
    )  # fmt: skip
    try:
        return await session.prompt_async(default=text)
    except (_Interrupted, EOFError):
        return None
