"""The user's messages at a terminal: a line editor with history, several lines, pasting and completion.

Loads prompt_toolkit; imported only where there is a terminal that it can use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import create_output
from prompt_toolkit.shortcuts import CompleteStyle

from agentkit.unicode import clean

Choices = Callable[[], Mapping[str, Sequence[str]]]
"""The slash words, each with the words that may follow it."""


class _Interrupted(Exception):
    """Ctrl-C: unlike KeyboardInterrupt it ends no event loop."""


class LineEditor:
    """Asks for messages.

    Args:
        prompt: the text before a message.
        choices: the words that can be completed.
        history: the file with earlier messages; None keeps them in memory.
    """

    def __init__(self, prompt: str, choices: Choices, history: Path | None) -> None:
        self._session: PromptSession[str] = PromptSession(
            message=[("bold", prompt)],
            multiline=True,
            prompt_continuation=_dots,
            history=InMemoryHistory() if history is None else _CleanHistory(str(history)),
            key_bindings=_keys(),
            completer=_Words(choices),
            complete_style=CompleteStyle.READLINE_LIKE,
            complete_while_typing=False,
            interrupt_exception=_Interrupted,
            output=create_output(always_prefer_tty=True),
        )

    async def ask(self) -> str | None:
        """One message; None if Ctrl-C was pressed instead.

        Raises:
            EOFError: Ctrl-D was pressed.
        """
        try:
            return await self._session.prompt_async()
        except _Interrupted:
            return None


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


class _CleanHistory(FileHistory):
    """A history that can hold whatever was typed, even if it is not valid text."""

    def store_string(self, string: str) -> None:
        super().store_string(clean(string))


def _dots(width: int, line: int, wrapped: int) -> StyleAndTextTuples:
    """Return the mark before the second line and all others."""
    return [("class:dim", "...".rjust(width - 1) + " ")]


def _keys() -> KeyBindings:
    """Enter sends; Alt-Enter, or a backslash before Enter, begins another line."""
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
        names = (f"/{name}{' ' * bool(more)}" for name, more in choices.items())
        fitting: Iterable[str] = choices.get(word[1:], ()) if space else names
        begun = rest if space else word
        yield from (Completion(one, -len(begun)) for one in fitting if one.startswith(begun))
