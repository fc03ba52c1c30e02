"""Real model outputs, parsed and judged: accuracy per model and category, compared with the models' own handlers.

Reads the recordings in `../shared/data` (or in `AGENTKIT_SHARED_DATA`) and judges with the leaderboard's own checker
(`pip install --no-deps bfcl-eval`). An irrelevance row is right if nothing would be executed: no call of an offered
tool with its required arguments.

    python benchmarks/recorded.py own          each model in its own format
    python benchmarks/recorded.py auto         every model with format="auto"
    python benchmarks/recorded.py irrelevance  the calls found where none was expected, for models whose handler read
    none python benchmarks/recorded.py malformed    damaged outputs, row by row: right, or wrong, and whose error it is
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from plainly import plain_calls, wrote

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event
from agentkit.formats import ToolSpec, parse

DATA = Path(os.environ.get("AGENTKIT_SHARED_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
OWN: dict[str, tuple[str, ...]] = {
    "hermes": ("hermes",),
    "xlam-json": ("xlam1",),
    "granite-20b": ("granite-20b-fc",),
    "glm4 name-newline-json": ("glm4",),
    "pythonic": ("pythonic",),
    "json/pythonic list": ("xlam", "pythonic"),
    "granite-20b <function_call>": ("granite-20b-fc",),
}
"""The recording's name for its model's format, and ours."""

SILENT = ("gpt-4o-2024-08-06", "mistral-large-2407", "NousResearch_Hermes-2-Theta-Llama-3-70B")
"""Models whose own handler read hardly any call: theirs are listed where none was expected."""

Call = dict[str, Any]


def rows(name: str) -> Iterator[dict[str, Any]]:
    """The rows of one file of recordings."""
    with (DATA / name).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def offered(case: dict[str, Any], underscores: bool) -> list[ToolSpec]:
    """A case's tools, under the names that the model saw."""
    return [
        ToolSpec(t["name"].replace(".", "_") if underscores else t["name"], t.get("description", ""), t["parameters"])
        for t in case["tools"]
    ]


def events_of(row: dict[str, Any], case: dict[str, Any], mode: str) -> list[Event]:
    """What we read from one recording."""
    tools = offered(case, row["dots_as_underscores"])
    if mode == "auto":
        return [*parse(row["text"], formats.auto(), tools, in_code="reply")]
    return [*parse(row["text"], OWN[row["format"]], tools)]


def read_calls(events: Sequence[Event]) -> list[Call]:
    """The calls among the events."""
    return [{"name": c.name, "arguments": dict(c.arguments)} for c in formats.calls(events)]


class Judge:
    """The leaderboard's checker."""

    def __init__(self) -> None:
        checker = importlib.import_module("bfcl_judge")
        self.judge, self.questions = checker.judge, checker.load_questions()

    def right(self, case: dict[str, Any], calls: list[Call], underscores: bool) -> bool:
        """Whether these calls answer the case; on an irrelevance case, whether none of them would be executed."""
        if case["category"] == "irrelevance":
            return not any(executes(c, offered(case, underscores)) for c in calls)
        if case["language"] != "python":  # its arguments are source strings, which the checker cannot compare
            wanted = [(c["name"].replace(".", "_"), c["arguments"]) for c in case["ground_truth_calls"]]
            return wanted == [(c["name"], c["arguments"]) for c in calls]
        try:
            return bool(calls) and bool(self.judge(case, calls, self.questions, underscores)["valid"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return False  # the checker itself cannot compare such calls


def executes(call: Call, tools: Sequence[ToolSpec]) -> bool:
    """Whether a call would reach a tool: it is offered, and its required arguments are there."""
    return any(
        t.name == call["name"] and set(t.parameters.get("required", ())) <= call["arguments"].keys() for t in tools
    )


# ---------------------------------------------------------------- accuracy


def accuracy(mode: str, judge: Judge) -> None:
    """Print the table. Where agentkit's is below the handler's published figure, print a simple reader's as well."""
    cases = {case["id"]: case for case in rows("bfcl_cases.jsonl")}
    baseline = json.loads((DATA / "bfcl_recorded_baseline.json").read_text())
    n: Counter[tuple[str, str]] = Counter()
    ok: Counter[tuple[str, str]] = Counter()
    plain: Counter[tuple[str, str]] = Counter()
    for row in rows("bfcl_recorded.jsonl"):
        case, underscores = cases[row["bfcl_id"]], row["dots_as_underscores"]
        if case["language"] != "python":
            continue
        key = row["model"], case["category"]
        n[key] += 1
        ok[key] += judge.right(case, read_calls(events_of(row, case, mode)), underscores)
        plain[key] += judge.right(case, plain_calls(row["text"]), underscores)
    print(f"{'model':42} {'category':18} {'ours':>6} {'handler':>8} {'rows':>5}")
    for model, category in sorted(n):
        key = model, category
        handler = baseline[model].get(category, {}).get("accuracy", float("nan"))
        share = ok[key] / n[key]
        allowed = handler if category == "irrelevance" else handler - 0.01
        below = f"  below; a plain reader gets {plain[key] / n[key]:.3f}"
        print(
            f"{model:42} {category:18} {share:6.3f} {handler:8.3f} {n[key]:5}{'' if share >= allowed - 5e-4 else below}"
        )


# ---------------------------------------------------------------- calls where none was expected


def irrelevance(judge: Judge) -> None:
    """List each call that would be executed on an irrelevance row of the models whose handler read nothing."""
    cases = {case["id"]: case for case in rows("bfcl_cases.jsonl")}
    found: Counter[str] = Counter()
    unsure = 0
    for row in rows("bfcl_recorded.jsonl"):
        case = cases[row["bfcl_id"]]
        if row["model"] not in SILENT or case["category"] != "irrelevance":
            continue
        for event in events_of(row, case, "auto"):
            if not isinstance(event, CallEnd):
                continue
            call = {"name": event.call.name, "arguments": dict(event.call.arguments)}
            if executes(call, offered(case, row["dots_as_underscores"])):
                sure = wrote(event.call.raw, call)
                unsure += not sure
                found[row["model"]] += 1
                print(f"{row['model'][-30:]:30} {row['bfcl_id']:16} {'' if sure else 'NOT PLAIN '}{event.call.raw!r}")
    print(f"calls: {dict(found)}; not read the same by json.loads or ast: {unsure}")


# ---------------------------------------------------------------- damaged outputs


def verdict(row: dict[str, Any], case: dict[str, Any], events: Sequence[Event], judge: Judge) -> tuple[str, str]:
    """The verdict on a damaged output, and why.

    A wrong answer is the model's error if each executed call is in the text as json.loads or ast read it; otherwise it
    is ours.
    """
    ends = [e for e in events if isinstance(e, CallEnd)]
    errors = [e for e in events if isinstance(e, CallError)]
    calls = read_calls(events)
    repairs = sorted({name for e in ends for name in e.repairs})
    repaired = f"repaired: {', '.join(repairs)}" if repairs else "nothing to repair in its calls"
    if not ends:
        return "no call", errors[0].message[:90] if errors else "no call in its text"
    if judge.right(case, calls, underscores=True):
        return "right", repaired
    ours = [e for e in ends if not wrote(e.call.raw, {"name": e.call.name, "arguments": dict(e.call.arguments)})]
    if ours:
        return "wrong through a repair", f"{repaired}; {ours[0].call.raw[:80]!r}"
    wanted, got = len(row["ground_truth_calls"]), len(calls)
    why = f"wrote {got} calls for {wanted}" if wanted != got else "wrote other values"
    return "wrong by the model", f"{why}{f', {len(errors)} unreadable' if errors else ''}; {repaired}"


def malformed(judge: Judge) -> None:
    """Print a verdict for each damaged output, and the fractions."""
    known = {case["id"]: case for case in rows("bfcl_cases.jsonl")}
    count: Counter[str] = Counter()
    for row in rows("raw_malformed.jsonl"):
        plain = {**row, "language": "", "category": ""}  # a case that is not available has no checker
        case = known.get(row["bfcl_id"], plain)
        events = [*parse(row["text"], OWN[row["format"]], offered(row, underscores=True))]
        found, why = verdict(row, case, events, judge)
        count[found] += 1
        print(f"{row['bfcl_id']:24} {row['defect'][:38]:38} {found:24} {why}")
    total = count.total()
    print(f"{total} rows: " + ", ".join(f"{name} {n} ({n / total:.0%})" for name, n in count.most_common()))
    print(f"wrong calls executed through a repair: {count['wrong through a repair']}")


def main() -> None:
    """Print what was requested."""
    mode = sys.argv[1] if len(sys.argv) > 1 else "own"
    sys.path.insert(0, str(DATA))
    try:
        judge = Judge()
    except ImportError as e:
        print(f"nothing measured: this needs {DATA} and `pip install --no-deps bfcl-eval`: {e}")
        return
    if mode == "irrelevance":
        irrelevance(judge)
    elif mode == "malformed":
        malformed(judge)
    else:
        accuracy(mode, judge)


if __name__ == "__main__":
    main()
