"""What models really wrote, read and judged: accuracy per model and category, next to what their own handlers got.

Reads the recordings in `../shared/data` (or where `AGENTKIT_SHARED_DATA` points) and judges with the leaderboard's own
checker, which `pip install --no-deps bfcl-eval` brings. An irrelevance row is right when nothing would be executed: no
call of an offered tool with its required arguments.

    python benchmarks/recorded.py [own|auto]
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentkit import formats
from agentkit.formats import Format, ToolSpec, calls, parse

DATA = Path(os.environ.get("AGENTKIT_SHARED_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
OWN: dict[str, tuple[str, ...]] = {
    "hermes": ("hermes",),
    "xlam-json": ("xlam1",),
    "granite-20b": ("granite-20b-fc",),
    "glm4 name-newline-json": ("glm4",),
    "pythonic": ("pythonic",),
    "json/pythonic list": ("xlam", "pythonic"),
}
"""The recording's word for its model's format, and ours."""


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


def right(row: dict[str, Any], case: dict[str, Any], reader: Any, mode: str, judge: Any, questions: Any) -> bool:
    """Whether what we read in one recording is right."""
    tools = offered(case, row["dots_as_underscores"])
    events = parse(row["text"], reader, tools, in_code="reply" if mode == "auto" else "ignore")
    read = [{"name": c.name, "arguments": dict(c.arguments)} for c in calls(events)]
    if case["category"] == "irrelevance":
        required = {t.name: set(t.parameters.get("required", ())) for t in tools}
        return not any(c["name"] in required and required[c["name"]] <= c["arguments"].keys() for c in read)
    try:
        return bool(read) and bool(judge(case, read, questions, row["dots_as_underscores"])["valid"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return False  # the checker itself cannot compare such calls


def main() -> None:
    """Print the table."""
    mode = sys.argv[1] if len(sys.argv) > 1 else "own"
    sys.path.insert(0, str(DATA))
    try:
        checker = importlib.import_module("bfcl_judge")
    except ImportError as e:
        print(f"nothing measured: this needs {DATA} and `pip install --no-deps bfcl-eval`: {e}")
        return
    questions = checker.load_questions()
    cases = {case["id"]: case for case in rows("bfcl_cases.jsonl")}
    baseline = json.loads((DATA / "bfcl_recorded_baseline.json").read_text())
    auto: tuple[Format, ...] = formats.auto()
    n: Counter[tuple[str, str]] = Counter()
    ok: Counter[tuple[str, str]] = Counter()
    for row in rows("bfcl_recorded.jsonl"):
        case = cases[row["bfcl_id"]]
        if case["language"] != "python":
            continue
        key = row["model"], case["category"]
        n[key] += 1
        reader = auto if mode == "auto" else OWN[row["format"]]
        ok[key] += right(row, case, reader, mode, checker.judge, questions)
    print(f"{'model':42} {'category':18} {'ours':>6} {'handler':>8} {'rows':>5}")
    for model, category in sorted(n):
        handler = baseline[model].get(category, {}).get("accuracy", float("nan"))
        share = ok[model, category] / n[model, category]
        allowed = handler if category == "irrelevance" else handler - 0.01
        mark = "" if share >= allowed - 5e-4 else "  below"
        print(f"{model:42} {category:18} {share:6.3f} {handler:8.3f} {n[model, category]:5}{mark}")


if __name__ == "__main__":
    main()
