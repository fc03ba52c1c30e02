"""The name under which agentkit is installed: one constant, free on PyPI; `agentkit` there is a stranger's package."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

from agentkit.errors import DISTRIBUTION

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BARE = re.compile(r"\bagentkit\[\w|\b(?:pip install|uv add|uvx|pipx install)[ \"'](?:-\w+ )?[\"']?agentkit\b(?!-calls)")
READ = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "pyproject.toml", "Makefile")),
    *chain.from_iterable((ROOT / room).rglob("*.py") for room in ("agentkit", "tools", "examples", "docs")),
    *(ROOT / "docs").rglob("*.md"),
]


def test_the_constant_is_the_name_of_the_distribution() -> None:
    assert PROJECT["name"] == DISTRIBUTION


def test_no_line_installs_the_package_of_another_project() -> None:
    assert BARE.search("pip install 'agentkit[cli]'")
    assert BARE.search("pip install agentkit")
    assert [(path.name, found[0]) for path in READ if (found := BARE.search(path.read_text(encoding="utf-8")))] == []


def test_each_extra_that_is_named_exists() -> None:
    extra = re.compile(re.escape(DISTRIBUTION) + r"\[([a-z,]+)\]|install_command\(['\"](\w+)['\"]\)")
    named = {
        one for path in READ for match in extra.finditer(path.read_text()) for one in (match[1] or match[2]).split(",")
    }
    assert named
    assert named <= PROJECT["optional-dependencies"].keys()
