"""Single keys of a terminal, without Enter: an answer to a question, and Esc while an answer is written.

Loads prompt_toolkit, which reads keys; imported only where there is a terminal that it can use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final

from prompt_toolkit.input import create_input
from prompt_toolkit.input.typeahead import clear_typeahead, store_typeahead
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

ESCAPE: Final = "escape"
INTERRUPT: Final = "c-c"
END: Final = "c-d"
SEQUENCE: Final = 0.1  # seconds after which Esc is a key, and not the beginning of an arrow key
QUIET: Final = 0.4  # seconds without a key before one can answer, and
ALONE: Final = 0.2  # after it: what is typed or pasted in one go was not meant as an answer
REDRAW: Final = 0.08  # seconds


@contextmanager
def keys_pressed(pressed: Callable[[KeyPress], None]) -> Iterator[None]:
    """Call `pressed` with each key. Needs a running event loop, and a terminal that does not collect lines."""
    keys, loop = create_input(), asyncio.get_running_loop()
    later = loop.call_soon(lambda: None)

    def flush() -> None:
        for press in keys.flush_keys():
            pressed(press)

    def ready() -> None:
        nonlocal later
        later.cancel()
        for press in keys.read_keys():
            pressed(press)
        later = loop.call_later(SEQUENCE, flush)

    try:
        with keys.attach(ready):
            yield
    finally:
        later.cancel()


@contextmanager
def escape_stops(stop: Callable[[], None]) -> Iterator[None]:
    """While something is shown, Esc stops it; all other keys are kept for the next prompt."""
    keys = create_input()

    def pressed(press: KeyPress) -> None:
        if press.key == Keys.Escape:
            stop()
        else:
            store_typeahead(keys, [press])

    with keys_pressed(pressed):
        yield


async def one_of(wanted: Collection[str], draw: Callable[[bool], None]) -> str:
    """Wait for one of these keys, pressed alone, and draw again and again while waiting.

    Args:
        wanted: the keys.
        draw: draws the question; its argument says whether a key can answer it now.
    """
    keys, now = create_input(), asyncio.get_running_loop().time
    clear_typeahead(keys)
    ready, answer, typed = False, "", now()

    def pressed(press: KeyPress) -> None:
        nonlocal ready, answer, typed
        key = press.key.value if isinstance(press.key, Keys) else press.key.lower()
        answer = key if ready and key in wanted else ""
        ready, typed = False, now()

    with keys.raw_mode(), keys_pressed(pressed):
        draw(False)
        typed = now()  # after the question was drawn
        while not (answer and now() - typed > ALONE):
            if keys.closed:
                return END
            open_now = now() - typed > QUIET
            draw(open_now)
            ready = open_now
            await asyncio.sleep(REDRAW)
    return answer
