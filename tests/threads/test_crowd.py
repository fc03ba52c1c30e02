"""Several processes at once on one thread, some killed at any moment.

Nothing is lost or doubled, no call runs twice, and who is turned away is told who runs the thread.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CROWD = Path(__file__).parents[2] / "benchmarks" / "crowd.py"
FAULTS = ("duplicated", "lost", "bricked", "doubled_messages", "doubled_replies", "unclear")


def crowd(*arguments: str) -> dict[str, Any]:
    """What `benchmarks/crowd.py` counts. In a process of its own: it forks."""
    done = subprocess.run([sys.executable, CROWD, "--json", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counted: dict[str, Any] = json.loads(done.stdout)
    return counted


def faults(counted: dict[str, Any]) -> dict[str, Any]:
    return {name: counted[name] for name in FAULTS if counted[name]} | {"": counted["faults"]}


def test_four_processes_on_one_thread_of_postgres_some_killed(postgres_dsn: str) -> None:
    counted = crowd("--store", postgres_dsn, "--kills", "8")
    assert faults(counted) == {"": []}
    assert counted["crashes"] == 8
    assert counted["turned_away"] > 0


def test_four_processes_on_one_thread_of_sqlite_some_killed() -> None:
    counted = crowd("--kills", "8")
    assert faults(counted) == {"": []}
    assert counted["crashes"] == 8


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(4))
def test_200_kills_among_six_processes_of_postgres(seed: int, postgres_dsn: str) -> None:
    kills = ("--clients", "6", "--kills", "200", "--each", "8", "--seed", str(seed))
    assert faults(crowd("--store", postgres_dsn, *kills)) == {"": []}
