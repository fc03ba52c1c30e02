"""The process dies at any moment, another one resumes: nothing happens twice, nothing is lost, no thread is stuck."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CRASH = Path(__file__).parents[2] / "benchmarks" / "crash.py"
FAULTS = ("duplicated", "lost", "bricked", "doubled_messages")


def crash(*arguments: str) -> dict[str, Any]:
    """What `benchmarks/crash.py` counts. In a process of its own: it forks."""
    done = subprocess.run([sys.executable, CRASH, "--json", *arguments], capture_output=True, text=True, check=True)
    counted: dict[str, Any] = json.loads(done.stdout)
    return counted


def faults(counted: dict[str, Any]) -> dict[str, Any]:
    return {name: counted[name] for name in FAULTS if counted[name]} | {"": counted["faults"]}


def shares(now: str) -> list[object]:
    """One of 36 moments now, all in the soak."""
    return [now, *(pytest.param(f"{n}/12", marks=pytest.mark.soak) for n in range(1, 13))]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("share", shares("1/36"))
def test_before_and_after_every_statement_of_sqlite(share: str) -> None:
    counted = crash("--points", "--share", share)
    assert faults(counted) == {"": []}
    assert counted["crashes"] > 7


@pytest.mark.timeout(400)
@pytest.mark.parametrize("share", shares("21/36"))
def test_before_and_after_every_statement_of_postgres(postgres_dsn: str, share: str) -> None:
    counted = crash("--points", "--share", share, "--store", postgres_dsn)
    assert faults(counted) == {"": []}
    assert counted["crashes"] > 3


@pytest.mark.timeout(400)
def test_6_kills_at_random_moments() -> None:
    counted = crash("--kills", "6", "--seed", "0")
    assert faults(counted) == {"": []}
    assert counted["crashes"] >= 6


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10, 20))
def test_1000_kills_at_random_moments(seed: int) -> None:
    assert faults(crash("--kills", "100", "--seed", str(seed))) == {"": []}


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(2))
def test_200_kills_at_random_moments_on_postgres(seed: int, postgres_dsn: str) -> None:
    assert faults(crash("--kills", "100", "--seed", str(seed), "--store", postgres_dsn)) == {"": []}
