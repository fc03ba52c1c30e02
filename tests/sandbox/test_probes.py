"""Every attempt to escape, on every backend, as root and as an ordinary user; and the page that says so."""

from __future__ import annotations

import re

import pytest
from sandboxes import CONFINED, ROOT, USERS, attempts_as

from agentkit.sandbox.attempts import ATTEMPTS

NAMES = {*(attempt.__name__ for attempt in ATTEMPTS), "cpu_loop", "daemon"}


@pytest.mark.share(2)
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("variant", CONFINED)
def test_row_31_every_attempt_is_contained(variant: str, user: str) -> None:
    found = attempts_as(user, variant)
    assert {name: reached for name, reached in found.items() if reached} == {}
    assert found.keys() == NAMES


def test_the_page_lists_every_attempt() -> None:
    """Its cells are written by docs/sandbox_table.py from such runs; a new attempt needs a new row."""
    table = (ROOT / "docs" / "sandbox.md").read_text().split("<!-- table:")[1].split("<!-- end of table -->")[0]
    rows = re.findall(r"^\| `(\w+)` \|[^|]+\| (.*) \|$", table, re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(NAMES)
    assert {cell for _, cells in rows for cell in cells.split(" | ")} == {"contained"}
