"""The programs of "From other toolkits": ours do what the page says, in as many lines."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
SCRIPT: Final = runpy.run_path(str(DOCS / "wishes.py"))
WISHES: Final[dict[str, Any]] = SCRIPT["WISHES"]
ROWS: Final = {
    cells[0]: cells[1:]
    for line in (DOCS / "wishes.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and (cells := line.strip("| ").split(" | "))
}


@pytest.mark.parametrize("wish", WISHES)
def test_our_program_fulfils_the_wish(wish: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(DOCS / "wishes"))
    before = dict(os.environ)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            runpy.run_path(str(DOCS / "wishes" / f"{wish}_agentkit.py"))
    finally:  # the local server set where the providers are
        os.environ.clear()
        os.environ.update(before)
    assert out.getvalue().strip() == WISHES[wish].prints


@pytest.mark.parametrize("wish", WISHES)
def test_the_page_has_our_way_and_its_lines(wish: str) -> None:
    program = DOCS / "wishes" / f"{wish}_agentkit.py"
    way = program.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    lines = len(SCRIPT["lines"](program))
    assert ROWS[WISHES[wish].text][0] == f"{way}: {lines} lines", "run: python docs/wishes.py --write"


def test_each_wish_has_a_program_for_each_toolkit() -> None:
    there = {path.name for path in (DOCS / "wishes").glob("*_*.py")} - {"local_server.py", "many_tools.py"}
    assert there == {f"{wish}_{toolkit}.py" for wish in WISHES for toolkit in SCRIPT["TOOLKITS"]}


@pytest.mark.soak
@pytest.mark.parametrize("toolkit", ["pydantic_ai", "openai_agents"])
def test_a_peer_that_is_installed_does_what_the_page_says(toolkit: str) -> None:
    """In the versions of the page only; a program that needs a further package is not judged."""
    ran = subprocess.run([sys.executable, DOCS / "wishes.py", toolkit], capture_output=True, text=True, check=True)
    head, _, *rows = ran.stdout.splitlines()
    column = next(at for at, name in enumerate(ROWS["wish"]) if name == head.strip("| ").split(" | ")[1])
    for row in rows:
        text, did = row.strip("| ").split(" | ")
        assert did == ROWS[text][column] or "required" in did or "ModuleNotFoundError" in did
