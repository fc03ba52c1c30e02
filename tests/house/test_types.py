"""What a type checker makes of a user's program: `typed_program.py` holds its findings by `assert_type`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typed_program

ROOT = Path(__file__).parents[2]
PROGRAM = Path(typed_program.__file__)
BIN = Path(sys.executable).parent
PYRIGHT = next((found for name in ("pyright", "basedpyright") if (found := BIN / name).exists()), None)
STRICT = {
    "typeCheckingMode": "strict",
    "enableTypeIgnoreComments": False,  # those are mypy's
    "reportUnnecessaryTypeIgnoreComment": "error",
}


def checked(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=110)
    return done.stdout + done.stderr if done.returncode else ""


def test_mypy_finds_the_types() -> None:
    cache = ROOT / ".mypy_cache" / "of_a_user"
    command = (sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", cache)
    assert checked(*command, "--python-version", "3.11", PROGRAM) == ""


@pytest.mark.soak
@pytest.mark.skipif(PYRIGHT is None, reason="neither pyright nor basedpyright is installed")
def test_pyright_finds_the_types(tmp_path: Path) -> None:
    config = tmp_path / "pyrightconfig.json"
    config.write_text(json.dumps({"include": [str(PROGRAM)], "pythonVersion": "3.11", **STRICT}))
    assert PYRIGHT is not None
    assert checked(PYRIGHT, "--level", "error", "--pythonpath", sys.executable, "-p", config) == ""


def test_the_program_runs(tmp_path: Path) -> None:
    typed_program.main(tmp_path / "shop.db")
