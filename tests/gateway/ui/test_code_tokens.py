"""Code as tokens that a page colours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from agentkit.gateway.ui.code_tokens import LONGEST, CodeTokens

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def reader() -> AsyncIterator[CodeTokens]:
    tokens = CodeTokens()
    yield tokens
    tokens.close()


async def test_code_is_read_as_tokens(reader: CodeTokens) -> None:
    assert await reader.tokens("python", "x = 'a'  # b\n") == [
        ("n", "x"), ("", " "), ("o", "="), ("", " "), ("s1", "'a'"), ("", "  "), ("c1", "# b"), ("", "\n"),
    ]  # fmt: skip


async def test_a_file_name_is_a_language(reader: CodeTokens) -> None:
    assert ("k", "def") in await reader.tokens("a.py", "def f(): pass")


@pytest.mark.parametrize(
    ("language", "code"),
    [("nothing", "x = 1"), ("", "x = 1"), ("../../etc/passwd", "x"), ("python", "x" * (LONGEST + 1)), ("python", "")],
)
async def test_other_text_is_plain(reader: CodeTokens, language: str, code: str) -> None:
    assert await reader.tokens(language, code) == [("", code)]


@pytest.mark.parametrize("code", ["\n\nx\n\n", "x\r\ny\r\n", "a\tb", "\ud800 é 漢", " ", "\x00"])
async def test_no_character_is_lost(reader: CodeTokens, code: str) -> None:
    assert "".join(text for _, text in await reader.tokens("python", code)) == code


async def test_many_texts_at_once(reader: CodeTokens) -> None:
    found = await asyncio.gather(*(reader.tokens("python", f"x{n} = {n}") for n in range(20)))
    assert [tokens[0] for tokens in found] == [("n", f"x{n}") for n in range(20)]


async def test_a_text_that_takes_too_long_is_plain_and_blocks_nothing(reader: CodeTokens) -> None:
    """Pygments' pattern for C takes quadratic time for empty lines."""
    code = "\n" * LONGEST
    slow = asyncio.create_task(reader.tokens("c", code))
    turns = 0
    while not slow.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert await slow == [("", code)]
    assert turns > 1
    assert await reader.tokens("python", "x") == [("n", "x")]


async def test_closing_ends_the_worker() -> None:
    reader = CodeTokens()
    await reader.tokens("python", "x = 1")
    process = reader._process
    reader.close()
    assert process is not None
    assert process.returncode is not None
