"""The page stays small: its files are served as they are, without a build step."""

from __future__ import annotations

from typing import Final

from static_page import STATIC

MOST: Final = 150_000
"""Bytes of all files together, not compressed."""


def test_the_pages_files_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in STATIC.iterdir()}
    assert "main.js" in sizes
    assert sum(sizes.values()) <= MOST, sorted(sizes.items(), key=lambda one: -one[1])
