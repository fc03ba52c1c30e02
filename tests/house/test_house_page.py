"""CONTRIBUTING.md: the files that it names are there, and every room stands in its picture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:agentkit|tests|docs|tools)/[\w./]*)`", PAGE))))
def test_what_the_page_names_is_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_every_room_stands_in_the_picture() -> None:
    picture = PAGE.split("```text\n")[1].split("```")[0]
    rooms = {p.stem for p in (ROOT / "agentkit").iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert rooms - {"__init__", "__main__", "testing"} - set(re.findall(r"\w+", picture)) == set()
