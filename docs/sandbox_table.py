"""The table of attempts to escape in docs/sandbox.md, from runs as root and as an ordinary user.

python docs/sandbox_table.py          print the table
python docs/sandbox_table.py --write  put it into the page

To fill all columns it must run as root, on a machine with bubblewrap and with a Python that everyone may read.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from _pytest.outcomes import Skipped

from agentkit.sandbox.attempts import ATTEMPTS

PAGE = Path(__file__).parent / "sandbox.md"
sys.path.append(str(PAGE.parent.parent / "tests" / "support"))
from sandboxes import CONFINED, USERS, attempts_as  # noqa: E402  # the runs are those of the tests

OPEN, CLOSE = "<!-- table: python docs/sandbox_table.py --write -->\n", "<!-- end of table -->\n"

APART = {
    "cpu_loop": "Compute without end.",
    "daemon": "Leave the session with the pipe in hand, and live beyond the deadline.",
}
"""What is tried in a separate run."""


def column(variant: str, user: str) -> dict[str, str | None] | str:
    """What one run found, or why there is none."""
    try:
        return attempts_as(user, variant)
    except Skipped as e:
        return str(e)


def cell(found: dict[str, str | None] | str, name: str) -> str:
    """One attempt in one run."""
    if isinstance(found, str):
        return "not run"
    return found[name] or "contained"


def table() -> str:
    """All attempts in all runs."""
    columns = {(variant, user): column(variant, user) for variant in CONFINED for user in USERS}
    what = {attempt.__name__: inspect.getdoc(attempt) or "" for attempt in ATTEMPTS} | APART
    heads = [f"{variant}, {user}" for variant, user in columns]
    lines = [f"| attempt | what is tried | {' | '.join(heads)} |", f"|---|---|{'---|' * len(heads)}"]
    for name, words in what.items():
        cells = " | ".join(cell(found, name) for found in columns.values())
        lines.append(f"| `{name}` | {words.splitlines()[0].rstrip('.')} | {cells} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table or write it into the page."""
    rows = table()
    if "--write" not in sys.argv:
        sys.stdout.write(rows)
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(OPEN)
    after = rest.partition(CLOSE)[2]
    PAGE.write_text(f"{before}{OPEN}\n{rows}\n{CLOSE}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
