"""The fuzz: damaged texts of every format, read whole, by the character and in random pieces, and judged.

What was written is known (see `damaged_texts`), so what was read can be judged without another parser:

- nothing raises; every cutting gives the same merged events; texts and raw spans of calls are exactly the input;
- every call is begun once and ends once;
- a call that runs is one that was written, with the very arguments that were meant, and it runs once;
- no raw value takes in its own format's markup; with `strict`, none has any, and nothing runs after a damaged call;
- a damaged call of which an opening and the tool's name stand in the text is a call or an error;
- a text without damage is read as it was meant, without a repair. In a damaged text anything may be refused.

Every fault is of a class (`CLASSES`): `raises`, `differs between cuttings`, `wrong call`, `lost` or `refused`. Of the
first three there may be none; `lost` is bounded by a fraction of the damaged texts.

    python tests/support/fuzz.py --texts 1000000 --characters 200000 --seed 1 --processes 2

damages the tokens of the first number of texts and characters of the second, and prints how many texts of each format
and damage were read, and of each kind of fault the number and the smallest text.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from damaged_texts import CALLED, Plan, Planned, Written
from damages import damaged, plan
from format_tools import ADD, ASK, NOTE, PING
from judging import MILD, Judge

from agentkit import formats
from agentkit.events import Event, SourceEvent, merge
from agentkit.formats import Format, Parser

SEEDS = 1_000_000_000
"""Texts of one seed: those of the next one follow."""
SIXTH = 5
"""Texts with damaged tokens for each with damaged characters, where no number of the latter is given."""

CLASSES = ("raises", "differs between cuttings", "wrong call", "lost", "refused")
"""What a fault amounts to, the worst first.

`wrong call`: what is told is not what the text says: a call that it does not hold, or one with other values, cut ones,
or a neighbour's markup in them; or events that are not the text. `lost`: a call became text without an error.
`refused`: a text without damage is told as an error, or is read with a repair that it does not need.
"""
NEVER = CLASSES[:3]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with what was read of a text."""

    kind: str
    plan: Plan
    text: str
    detail: str

    @property
    def grade(self) -> str:
        """Its class."""
        return grade(self.kind)


def grade(kind: str) -> str:
    """The class to which a kind of fault belongs."""
    if kind.startswith("raises") or kind == "a fault of ours":
        return CLASSES[0]
    if kind in MILD:
        return "lost" if "lost" in kind else "refused"
    return CLASSES[1] if kind == "cuttings differ" else CLASSES[2]


# ---------------------------------------------------------------- reading


def readers(plan: Plan) -> tuple[Format, ...]:
    """In what formats a text is read: mostly its own, sometimes all that tell themselves."""
    rng = random.Random(plan.seed + 2)
    kind = rng.random()
    every = formats.auto()
    known = (
        any(f.name == plan.format.name for f in every) and plan.format.name != "cline"
    )  # its tags are those of `xml`
    if kind < 0.06 and known and plan.shape == plan.format.shapes[0]:
        return every
    return (plan.format,)


def read(text: str, declared: Sequence[Format], pieces: Sequence[str]) -> list[Event]:
    """The merged events of a text that comes in these pieces."""
    parser = Parser(declared, CALLED)
    events: list[SourceEvent] = []
    for piece in pieces:
        events += parser.feed(piece)
    return merge([*events, *parser.close()])


def cuttings(text: str, seed: int) -> Iterator[Sequence[str]]:
    """The text by the character, and in random pieces."""
    yield text
    rng = random.Random(seed + 3)
    places = sorted({0, len(text), *(rng.randrange(len(text) + 1) for _ in range(rng.randrange(1, 8)))})
    yield [text[a:b] for a, b in pairwise(places)]


def fuzz(plan: Plan, *, strict: bool = False) -> tuple[Written | None, list[Fault]]:
    """Write the text of a plan, read it in three cuttings, judge it."""
    written = damaged(plan)
    if written is None:
        return None, []
    text, declared = written.text, readers(plan)
    try:
        events = read(text, declared, [text])
    except Exception as e:  # noqa: BLE001 - whatever is raised is what is looked for
        return written, [Fault(f"raises {type(e).__name__}", plan, text, str(e)[:200])]
    found = [Fault(kind, plan, text, detail[:300]) for kind, detail in Judge(written, events, strict=strict).faults()]
    for pieces in cuttings(text, plan.seed):
        try:
            other = read(text, declared, pieces)
        except Exception as e:  # noqa: BLE001 - as above
            return written, [*found, Fault(f"raises {type(e).__name__} in pieces", plan, text, str(e)[:200])]
        if other != events:
            first = next((f"{a} / {b}" for a, b in zip(events, other, strict=False) if a != b), "more events")
            found.append(Fault("cuttings differ", plan, text, first))
            break
    return written, found


# ---------------------------------------------------------------- shrinking


def smaller(of: Plan) -> Iterator[Plan]:
    """Plans like this one with something less."""
    for i in range(len(of.damages)):
        yield replace(of, damages=of.damages[:i] + of.damages[i + 1 :])
    for i in range(len(of.calls) if len(of.calls) > 1 else 0):
        yield replace(of, calls=of.calls[:i] + of.calls[i + 1 :], prose=of.prose[:i] + of.prose[i + 1 :])
    yield from (replace(of, prose=(*of.prose[:i], "", *of.prose[i + 1 :])) for i, said in enumerate(of.prose) if said)
    if of.thought:
        yield replace(of, thought="")
    for i, call in enumerate(of.calls):
        yield from (replace(of, calls=(*of.calls[:i], less, *of.calls[i + 1 :])) for less in _less(call))


def _less(call: Planned) -> Iterator[Planned]:
    if call.quoting:
        yield replace(call, quoting="")
    for j, content in enumerate(call.contents):
        if content:
            yield replace(call, contents=(*call.contents[:j], "", *call.contents[j + 1 :]))
    for tool in (PING, NOTE, ASK, ADD):
        if len(tool.parameters["properties"]) < len(call.tool.parameters["properties"]):
            yield replace(call, tool=tool)


def shrunk(fault: Fault, tries: int = 400, *, strict: bool = False) -> Fault:
    """The smallest text found that has the same kind of fault."""
    done = 0
    while True:
        for candidate in smaller(fault.plan):
            for seed in range(fault.plan.seed, fault.plan.seed + 4):
                done += 1
                found = fuzz(replace(candidate, seed=seed), strict=strict)[1]
                hit = next((f for f in found if f.kind == fault.kind and len(f.text) <= len(fault.text)), None)
                if hit or done > tries:
                    break
            if hit or done > tries:
                break
        else:
            return fault
        if hit is None:
            return fault
        fault = hit


# ---------------------------------------------------------------- many

Key = tuple[str, str, str]


@dataclass(slots=True)
class Tally:
    """What many texts showed: the counts by format, damage and class, and the smallest text of each kind of fault."""

    texts: Counter[str]
    by_format: Counter[str]
    by_damage: Counter[str]
    worst: Counter[str]
    faults: Counter[Key]
    examples: dict[Key, Fault]

    def by_class(self) -> dict[str, int]:
        """How many texts show a fault of each class; a text that shows several counts with the worst."""
        return {grade: self.worst[grade] for grade in CLASSES}

    @classmethod
    def empty(cls) -> Tally:
        return cls(Counter(), Counter(), Counter(), Counter(), Counter(), {})

    def add(self, other: Tally) -> None:
        """Take in what another process found."""
        for name in ("texts", "by_format", "by_damage", "worst", "faults"):
            getattr(self, name).update(getattr(other, name))
        for key, fault in other.examples.items():
            self.show(key, fault)

    def show(self, key: Key, fault: Fault) -> None:
        """Keep the smallest text of a kind."""
        if key not in self.examples or len(fault.text) < len(self.examples[key].text):
            self.examples[key] = fault

    def count(self, of: Plan, written: Written | None, faults: Sequence[Fault]) -> None:
        """Count one text; `unwritten` is one that its format cannot carry, or that damage made a sound one."""
        if written is None:
            self.texts["unwritten"] += 1
            return
        self.texts["damaged" if written.done else "sound"] += 1
        self.by_format[of.format.name] += 1
        self.by_damage.update(written.done or ["none"])
        self.worst.update(sorted((fault.grade for fault in faults), key=CLASSES.index)[:1])
        for fault in faults:
            key = (fault.kind, of.format.name, "+".join(written.done) or "none")
            self.faults[key] += 1
            self.show(key, fault)


def run(seeds: range, *, characters: bool = False, strict: bool = False) -> Tally:
    """Fuzz the texts of these seeds."""
    tally = Tally.empty()
    for seed in seeds:
        of = plan(seed, characters=characters)
        tally.count(of, *fuzz(of, strict=strict))
    return tally


def many(texts: int, seed: int, processes: int, *, characters: bool = False, strict: bool = False) -> Tally:
    """Fuzz so many texts in so many processes; the same seed gives the same texts."""
    size = 2000
    first = seed * SEEDS + (SEEDS // 2 if characters else 0)
    parts = [range(first + i, first + min(i + size, texts)) for i in range(0, texts, size)]
    total = Tally.empty()
    read = partial(run, characters=characters, strict=strict)
    if processes == 1:
        for part in parts:
            total.add(read(part))
        return total
    with multiprocessing.Pool(processes) as pool:
        for found in pool.imap_unordered(read, parts):
            total.add(found)
    return total


def report(tally: Tally, show: int, *, strict: bool) -> None:
    """Print counts, and of each kind of fault the smallest texts."""
    print("texts:", dict(tally.texts))
    print("formats:", dict(tally.by_format.most_common()))
    print("damages:", dict(tally.by_damage.most_common()))
    kinds = Counter[str]()
    for (kind, _, _), n in tally.faults.items():
        kinds[kind] += n
    print("faults:", dict(kinds))
    for kind, n in sorted(kinds.items(), key=lambda found: (CLASSES.index(grade(found[0])), -found[1])):
        mine = Counter({k: v for k, v in tally.faults.items() if k[0] == kind})
        print(f"\n=== {grade(kind)}: {kind}: {n}")
        print("   formats:", dict(_by(mine, 1).most_common(60)))
        print("   damages:", dict(_by(mine, 2).most_common(14)))
        for key in sorted(mine, key=lambda k: len(tally.examples[k].text))[:show]:
            fault = shrunk(tally.examples[key], strict=strict)
            print(f"   {key[1]} [{'+'.join(fault.plan.damages)}] seed {fault.plan.seed}\n      {fault.text[:900]!r}")
            print(f"      -> {fault.detail}")


def _by(counts: Counter[Key], place: int) -> Counter[str]:
    out: Counter[str] = Counter()
    for key, n in counts.items():
        out[key[place]] += n
    return out


def main() -> int:
    """Run the fuzz as the words say."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--texts", type=int, default=20_000, help="texts with damaged tokens")
    words.add_argument("--characters", type=int, help="texts with damaged characters; one in six of all by default")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--processes", type=int, default=2)
    words.add_argument("--show", type=int, default=3, help="smallest texts to print of each kind of fault")
    words.add_argument("--strict", action="store_true", help="nothing runs after damage, or has markup in a raw value")
    given = words.parse_args()
    failed = False
    for characters in (False, True):
        texts = (
            given.texts if not characters else given.texts // SIXTH if given.characters is None else given.characters
        )
        start = time.monotonic()
        tally = many(texts, given.seed, given.processes, characters=characters, strict=given.strict)
        seconds = max(time.monotonic() - start, 0.001)
        print(
            f"##### {texts} texts, damaged {'characters' if characters else 'tokens'}: {texts / seconds:.0f} per second"
        )
        report(tally, given.show, strict=given.strict)
        print(f"\ntexts with faults, by the worst: {tally.by_class()}\n")
        failed = failed or any(tally.worst[grade] for grade in NEVER)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
