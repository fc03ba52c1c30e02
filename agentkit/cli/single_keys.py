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
ALONE: Final = 0.1  # seconds after which Esc is a key, and not the beginning of an arrow key
REDRAW: Final = 0.08  # seconds


@contextmanager
def keys_pressed(pressed: Callable[[KeyPress], None]) -> Iterator[None]:
    """Call `pressed` with each key. Needs a running event loop, and a terminal that does not collect lines."""
    keys, loop = create_input(), asyncio.get_running_loop()

    def flush() -> None:
        for press in keys.flush_keys():
            pressed(press)

    def ready() -> None:
        for press in keys.read_keys():
            pressed(press)
        loop.call_later(ALONE, flush)

    with keys.attach(ready):
        yield


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


async def one_of(wanted: Collection[str], draw: Callable[[], None]) -> str:
    """Wait for one of these keys, and draw again and again while waiting. Keys typed before are discarded."""
    keys = create_input()
    clear_typeahead(keys)
    got: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def pressed(press: KeyPress) -> None:
        key = press.key.value if isinstance(press.key, Keys) else press.key.lower()
        if key in wanted and not got.done():
            got.set_result(key)

    with keys.raw_mode(), keys_pressed(pressed):
        while not got.done():
            if keys.closed:
                return END
            draw()
            await asyncio.wait([got], timeout=REDRAW)
    return got.result()
