"""Pages can be read and copied: short paragraphs, and code that fits its column. The reference is exempt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [
    pytest.param(path, id=str(path.relative_to(ROOT)))
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if ROOT / "docs" / "reference" not in path.parents
]
WORDS: Final = 90
COLUMNS: Final = 88
FENCE: Final = re.compile(r"^ *(`{3,})(.*)\n((?:.*\n)*?) *\1 *$", re.MULTILINE)
PRODUCED: Final = re.compile(r'title="(?:output|recording)"|mermaid')
"""The output of a program is shown unchanged, and the style sheet wraps it. A diagram is drawn."""
ITEM: Final = re.compile(r"\s*(?:[-*+]|\d+\.)\s")


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs, items and table cells of a page without its front matter and code."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    for block in re.split(r"\n\s*\n", FENCE.sub("\n", text)):
        part: list[str] = []
        for line in block.splitlines():
            if line.lstrip().startswith("|"):
                yield from line.split("|")
                continue
            if line.startswith("#"):
                yield line
                continue
            if ITEM.match(line):
                yield " ".join(part)
                part = []
            part.append(line)
        yield " ".join(part)


def wide(text: str) -> list[str]:
    """The lines of code that do not fit; of a console, the commands."""
    return [
        line
        for block in FENCE.finditer(text)
        if not PRODUCED.search(block[2])
        for line in block[3].splitlines()
        if len(line) > COLUMNS and (line.startswith("$ ") or not block[2].startswith("console"))
    ]


@pytest.mark.parametrize("page", PAGES)
def test_a_paragraph_is_short(page: Path) -> None:
    long = [part for part in paragraphs(page.read_text(encoding="utf-8")) if len(part.split()) > WORDS]
    assert not long, f"over {WORDS} words; make it a list, a table or less: {long}"


@pytest.mark.parametrize("page", PAGES)
def test_code_fits_its_column(page: Path) -> None:
    assert wide(page.read_text(encoding="utf-8")) == []


def test_what_is_too_long_is_found() -> None:
    words = "word " * WORDS
    page = f"---\ntitle: {words} x\n---\n# {words}\n{words}\n- {words}\n- {words} x\n\n| {words} x | {words} |\n"
    assert [len(part.split()) for part in paragraphs(page)].count(WORDS + 2) == 1  # the item, with its dash
    assert [len(part.split()) for part in paragraphs(page)].count(WORDS + 1) == 3  # the heading, an item, a cell
    line = "x" * (COLUMNS + 1)
    assert wide(f"```sh\n{line}\n```\n\n    ```text\n    x\n    ```\n") == [line]
    assert wide(f'```text title="output"\n{line}\n```\n\n```console\n$ ls\n{line}\n```\n') == []
    assert wide(f"```console\n$ {line}\n{line}\n```\n") == [f"$ {line}"]
