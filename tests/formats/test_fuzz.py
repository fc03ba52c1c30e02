"""The fuzz (`fuzz.py`) in the suite: a bounded number of texts here, more with `make soak`.

`AGENTKIT_FUZZ_TEXTS` asks for another number of texts, `AGENTKIT_FUZZ_SEED` for other ones.
"""

from __future__ import annotations

import os
from collections import Counter

import fuzz
import pytest
from damages import CHARACTERS, TOKENS, plan

from agentkit.formats import CATALOG

SEED = int(os.environ.get("AGENTKIT_FUZZ_SEED", "0"))
TEXTS = int(os.environ.get("AGENTKIT_FUZZ_TEXTS", "1000"))
LOST = 0.005
"""The share of damaged texts in which a call may be lost."""
WRONG = 0.0002
"""The share of texts in which a wrong call may be made: a quoted call may end where the one around it lacks its end."""


def told(tally: fuzz.Tally) -> str:
    """Each kind of fault with its smallest text."""
    lines = []
    for kind in sorted({kind for kind, _, _ in tally.faults}):
        mine = {k: f for k, f in tally.examples.items() if k[0] == kind}
        key = min(mine, key=lambda k: len(mine[k].text))
        fault = fuzz.shrunk(mine[key], tries=100, strict=True)
        count = sum(n for k, n in tally.faults.items() if k[0] == kind)
        lines.append(f"{fault.grade}: {kind}: {count}, as in {key[1]} {fault.text!r} -> {fault.detail}")
    return "\n".join(lines)


def hold(first: int, texts: int, *, characters: bool) -> None:
    """No text of these seeds raises, differs between cuttings, or is refused if it is sound; few calls are lost."""
    tally = fuzz.run(range(first, first + texts), characters=characters, strict=True)
    found = tally.by_class()
    assert found["raises"] == found["differs between cuttings"] == found["refused"] == 0, told(tally)
    assert found["wrong call"] <= max(WRONG * texts, 1), told(tally)
    assert found["lost"] <= max(LOST * tally.texts["damaged"], 3), told(tally)


@pytest.mark.parametrize("characters", [False, True], ids=["tokens", "characters"])
def test_damaged_texts_are_read_without_a_fault(characters: bool) -> None:
    hold(SEED * fuzz.SEEDS, TEXTS // (fuzz.SIXTH if characters else 1), characters=characters)


@pytest.mark.soak
@pytest.mark.parametrize("share", range(12))
def test_many_damaged_texts_are_read_without_a_fault(share: int) -> None:
    hold((SEED + 1) * fuzz.SEEDS + share * 3000, 3000, characters=share % 6 == 5)


def test_the_fuzz_puts_every_damage_into_every_format() -> None:
    for known, characters in ((TOKENS, False), (CHARACTERS, True)):
        met: Counter[tuple[str, str]] = Counter()
        for seed in range(8_000):
            of = plan(seed, characters=characters)
            met.update((of.format.name, damage) for damage in of.damages)
        assert {(f.name, damage) for f in CATALOG for damage in known} == set(met)


def test_the_same_seed_is_the_same_text() -> None:
    assert fuzz.fuzz(plan(7))[0] == fuzz.fuzz(plan(7))[0]


def test_every_fault_is_of_a_class() -> None:
    kinds = ("raises KeyError", "cuttings differ", "not what was written", "lost", "a sound call is refused")
    assert [fuzz.grade(kind) for kind in kinds] == [*fuzz.CLASSES]
