"""Single keys of a terminal: which ones answer a question, and when Esc is a key of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from prompt_toolkit.input import create_pipe_input

from agentkit.cli import single_keys
from agentkit.cli.single_keys import ESCAPE, QUIET, one_of

pytestmark = pytest.mark.anyio


async def answer(monkeypatch: pytest.MonkeyPatch, draw: Callable[[bool, Callable[[str], None]], None]) -> str:
    """The key that answers; `draw` can type."""
    with create_pipe_input() as keys:
        monkeypatch.setattr(single_keys, "create_input", lambda: keys)
        return await asyncio.wait_for(one_of(("y", "a", ESCAPE), lambda ready: draw(ready, keys.send_text)), 30)


async def test_keys_typed_while_the_question_is_drawn_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    drawings: list[bool] = []

    def draw(ready: bool, type: Callable[[str], None]) -> None:
        if not drawings:
            type("a")
        if ready and True not in drawings:
            type("y")
        drawings.append(ready)

    assert await answer(monkeypatch, draw) == "y"
    assert drawings[0] is False


@pytest.mark.parametrize("typed", ["ay", "yx", "also please\n"])
async def test_keys_in_one_go_do_not_answer(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    pending = [typed, "y"]
    began = asyncio.get_running_loop().time()

    def draw(ready: bool, type: Callable[[str], None]) -> None:
        if ready and pending:
            type(pending.pop(0))

    assert await answer(monkeypatch, draw) == "y"
    assert asyncio.get_running_loop().time() - began > 2 * QUIET


async def test_an_arrow_key_in_two_pieces_is_not_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key before it must not end the wait for the rest of the sequence."""
    got: list[str] = []
    with create_pipe_input() as keys:
        monkeypatch.setattr(single_keys, "create_input", lambda: keys)
        with single_keys.keys_pressed(lambda press: got.append(press.key)):
            for wait, text in ((0.085, "x"), (0.04, "\x1b"), (0.3, "[A")):
                keys.send_text(text)
                await asyncio.sleep(wait)
    assert got == ["x", "up"]
