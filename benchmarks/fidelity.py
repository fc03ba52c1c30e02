"""How faithfully calls are read: random calls in every format, whole and cut at random places.

Each text is written as the vendor's template writes it (our writers are tested against the rendered templates), some
after a sentence, half with two calls. The values hold what models write: markup, source code, quotes, JSON as text,
numbers as text, Unicode, nested objects. Nothing is damaged, and no value holds a marker of its own format.

    python benchmarks/fidelity.py [--texts 40] [--seed 1] [--peers PYTHON] [--show] [format …]

`--peers` names a Python with vLLM, SGLang or transformers; `fidelity_peers.py` runs there and reads the same texts.
Of each reader and format, in percent of the calls: lost (no call of that tool), invented (more calls than written),
altered (other arguments), and of the texts: leaked (visible text differs), differing (the cut text is not read as the
whole one), raised.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from agentkit.errors import AgentkitError
from agentkit.events import CallEnd, Event, Text
from agentkit.formats import CATALOG, Format, Parser, ToolSpec, get, render_calls
from agentkit.messages import ToolCall

STRINGS: Final = (
    "plain words",
    '<div class="a">\n  <p>x &amp; y</p>\n</div>',
    "<![CDATA[ x ]]> <br/> </p>",
    "if a < b and c > d:\n    print(\"hello\\n\", 'it')\n",
    "for (int i = 0; i < n; i++) { s += a[i]; }  // C",
    '{"a": [1, 2, {"b": null}], "c": "}"}',
    '[{"name": "x"}]',
    "say \"hi\", then 'bye'",
    "C:\\temp\\new\\u0041",
    "naïve 日本語 😀 \u2028 ½ \u0301",
    "a\tb\r\nc",
    "12",
    "true",
    "null",
    "1e5",
    "",
    "  two spaces around  ",
    "# heading\n\n- item\n\n```python\nx = 1\n```\n",
    "a, b = f(x=1); print(b)",
    "SELECT * FROM t WHERE a <> 'b' -- c",
    "x" * 300,
)
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "text": STRINGS,
    "count": (0, -1, 7, 2**53),
    "ratio": (0.5, -2.25, 1e-7),
    "flag": (True, False),
    "tags": ([], ["a", "b"], ['"', "<x>"], ["é", "1"]),
    "options": ({}, {"k": {"deep": [1, None, "x"]}}, {"a b": "</p>", "n": 1.5}),
}
PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object"},
    },
    "required": ["text"],
}
TOOLS: Final = [ToolSpec("write_note", "Write a note.", PARAMETERS), ToolSpec("search", "Search.", PARAMETERS)]
PROSE: Final = "I will do that now.\n"
ALONE: Final = {"harmony", "llama3_json", "llama4_pythonic", "pythonic", "phi4_mini_json", "xlam", "xlam1"}
"""Formats whose calls are the whole reply, or whose prose has its own channel."""
QUOTED: Final = "<![CDATA["
FAULTS: Final = ("lost", "invented", "altered", "leaked", "differing", "raised")
Case = dict[str, Any]
Reading = dict[str, Any]


def a_call(rng: random.Random) -> ToolCall:
    """A random call: the string in any case, some of the other arguments."""
    others = [name for name in VALUES if name != "text" and rng.random() < 0.4]
    arguments = {name: rng.choice(VALUES[name]) for name in ("text", *others)}
    return ToolCall("", rng.choice(TOOLS).name, arguments)


def cases(format: Format, texts: int, seed: int) -> Iterator[Case]:
    """Texts in a format with what they say, and one random cutting of each. A call that it cannot hold is left out."""
    rng = random.Random(f"{seed} {format.name}")
    for _ in range(texts):
        prose = PROSE if rng.random() < 0.5 and format.name not in ALONE else ""
        calls = [a_call(rng) for _ in range(1 + (rng.random() < 0.5))]
        try:
            text = prose + render_calls(format, calls, TOOLS)
        except AgentkitError:
            continue  # one call only, or a value with the format's own markers
        if text.count(QUOTED) > sum(str(call.arguments).count(QUOTED) for call in calls):
            continue  # quoted by us, as no template would
        ends = sorted({rng.randrange(1, len(text)) for _ in range(rng.choice((3, 12, len(text))))})
        yield {
            "format": format.name,
            "names": [format.name, *format.aliases],
            "text": text,
            "prose": prose.strip(),
            "calls": [[call.name, dict(call.arguments)] for call in calls],
            "chunks": [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)],
        }


# ---------------------------------------------------------------- readers


def ours(case: Case) -> Reading:
    """What we read of a case, whole and in pieces."""
    format = get(case["format"])

    def read(chunks: Iterable[str]) -> list[Any]:
        parser = Parser(format, TOOLS)
        events: list[Event] = [e for chunk in chunks for e in parser.feed(chunk)]
        events += parser.close()
        calls = [[e.call.name, dict(e.call.arguments)] for e in events if isinstance(e, CallEnd)]
        return ["".join(e.text for e in events if isinstance(e, Text)), calls]

    return {"whole": read([case["text"]]), "cut": read(case["chunks"])}


def peers(python: str, wanted: list[Case]) -> dict[str, list[Reading | None]]:
    """What each peer that is installed there reads of each case; None where it has no such format."""
    script = Path(__file__).with_name("fidelity_peers.py")
    tools = [{"type": "function", "function": t.to_json()} for t in map(_Offered, TOOLS)]
    done = subprocess.run(
        [python, str(script)], input=json.dumps({"tools": tools, "cases": wanted}), capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{script.name} failed:\n{done.stderr[-2000:]}")
    found: dict[str, list[Reading | None]] = json.loads(done.stdout.splitlines()[-1])
    return found


class _Offered:
    """A tool as OpenAI's API declares it."""

    def __init__(self, tool: ToolSpec) -> None:
        self._tool = tool

    def to_json(self) -> dict[str, Any]:
        return {"name": self._tool.name, "description": self._tool.description, "parameters": self._tool.parameters}


# ---------------------------------------------------------------- the judgement


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are the same; 1 is not True, and 1 is not 1.0 where a float was written."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)


def faults(case: Case, reading: Reading) -> Counter[str]:
    """What is wrong with a reading of a case, counted over the whole text and the cut one."""
    found: Counter[str] = Counter()
    if "raised" in reading:
        found["raised"] += 1
        return found
    for text, calls in (reading["whole"], reading["cut"]):
        wrote = Counter(name for name, _ in case["calls"])
        read = Counter(name for name, _ in calls)
        found["lost"] += (wrote - read).total()
        found["invented"] += (read - wrote).total()
        if wrote == read:
            pairs = zip(case["calls"], calls, strict=True)
            found["altered"] += sum(not (a[0] == b[0] and same(a[1], b[1])) for a, b in pairs)
        found["leaked"] += text.strip() != case["prose"]
    whole, cut = reading["whole"], reading["cut"]
    found["differing"] += not (whole[0].strip() == cut[0].strip() and same(whole[1], cut[1]))
    return found


def table(reader: str, judged: dict[str, list[tuple[Case, Counter[str]]]]) -> None:
    """One reader's rows, with their sum."""
    print(f"\n{reader}\n{'format':18} {'texts':>6}" + "".join(f"{name:>11}" for name in FAULTS))
    everything: list[tuple[Case, Counter[str]]] = []
    for name, rows in sorted(judged.items()):
        print(line(name, rows))
        everything += rows
    print(line(f"all {len(judged)} formats", everything))


def line(name: str, rows: list[tuple[Case, Counter[str]]]) -> str:
    """The shares in percent."""
    calls = sum(len(case["calls"]) for case, _ in rows)
    count: Counter[str] = sum((found for _, found in rows), Counter())
    of = {"lost": 2 * calls, "invented": 2 * calls, "altered": 2 * calls, "leaked": 2 * len(rows)}
    return f"{name:18} {len(rows):6}" + "".join(
        f"{100 * count[fault] / of.get(fault, len(rows)):10.1f}%" for fault in FAULTS
    )


def judged(wanted: list[Case], read: Callable[[int, Case], Reading | None], show: str = "") -> Any:
    """The faults of a reader, by format; with `show`, each is printed."""
    found = defaultdict(list)
    for number, case in enumerate(wanted):
        if (reading := read(number, case)) is not None:
            wrong = faults(case, reading)
            found[case["format"]].append((case, wrong))
            if show and wrong.total():
                print(f"{show}, {case['format']}: {dict(wrong)}\n  text: {case['text']!r}\n  read: {reading}")
    return found


def main() -> None:
    """Print a table for each reader. Exits with 1 if ours has a fault."""
    options = argparse.ArgumentParser(description="How faithfully calls are read.")
    options.add_argument("formats", nargs="*")
    options.add_argument("--texts", type=int, default=40, help="of each format")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--peers", metavar="PYTHON", help="a Python with vLLM, SGLang or transformers")
    options.add_argument("--show", action="store_true", help="print each fault")
    given = options.parse_args()
    chosen = [get(name) for name in given.formats] or CATALOG
    wanted = [case for format in chosen for case in cases(format, given.texts, given.seed)]
    mine = judged(wanted, lambda _, case: ours(case), "agentkit" if given.show else "")
    table(f"agentkit {version('agentkit')}", mine)
    for peer, readings in (peers(given.peers, wanted) if given.peers else {}).items():
        theirs = judged(wanted, lambda number, _, r=readings: r[number], peer if given.show else "")  # type: ignore[misc]
        table(peer, theirs)
        table(f"agentkit, the formats of {peer}", {name: mine[name] for name in theirs})
    sys.exit(any(found.total() for rows in mine.values() for _, found in rows))


if __name__ == "__main__":
    main()
