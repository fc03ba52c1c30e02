"""The fuzz (`fuzz.py`) in the suite: a bounded share of it here, a larger one with `make soak`.

`AGENTKIT_FUZZ_TEXTS` asks for another number of texts, `AGENTKIT_FUZZ_SEED` for other ones.
"""

from __future__ import annotations

import os
from collections import Counter

import fuzz
import pytest
from damages import DAMAGES, plan

from agentkit.formats import CATALOG

SEED = int(os.environ.get("AGENTKIT_FUZZ_SEED", "0"))
TEXTS = int(os.environ.get("AGENTKIT_FUZZ_TEXTS", "1100"))


def told(tally: fuzz.Tally) -> str:
    """Each kind of fault with its smallest text."""
    lines = []
    for kind in sorted({kind for kind, _, _ in tally.faults}):
        mine = {k: f for k, f in tally.examples.items() if k[0] == kind}
        key = min(mine, key=lambda k: len(mine[k].text))
        fault = fuzz.shrunk(mine[key], tries=100)
        count = sum(n for k, n in tally.faults.items() if k[0] == kind)
        lines.append(f"{kind}: {count}, as in {key[1]} {fault.text!r} -> {fault.detail}")
    return "\n".join(lines)


REMAIN = 0.002
"""The share of texts in the soak that may show a fault: of 30,000 five did, most by two damages that meet, such as a
closing tag that is gone in front of a misspelt opening. It is to become 0. In the suite's own share none may."""


def hold(first: int, texts: int, remain: float = 0) -> None:
    """No text of these seeds shows a fault, or no more than this share."""
    tally = fuzz.run(range(first, first + texts))
    assert sum(tally.faults.values()) <= remain * texts, told(tally)


@pytest.mark.parametrize("share", range(4))
def test_damaged_texts_are_read_without_a_fault(share: int) -> None:
    hold(SEED * fuzz.SEEDS + share * TEXTS // 4, TEXTS // 4)


@pytest.mark.soak
@pytest.mark.parametrize("share", range(10))
def test_many_damaged_texts_are_read_without_a_fault(share: int) -> None:
    hold((SEED + 1) * fuzz.SEEDS + share * 3000, 3000, REMAIN)


def test_the_fuzz_puts_every_damage_into_every_format() -> None:
    met: Counter[tuple[str, str]] = Counter()
    for seed in range(60_000):
        of = plan(seed)
        met.update((of.format.name, damage) for damage in of.damages)
    assert {(f.name, damage) for f in CATALOG for damage in DAMAGES} == set(met)


def test_the_same_seed_is_the_same_text() -> None:
    assert fuzz.fuzz(plan(7))[0] == fuzz.fuzz(plan(7))[0]
