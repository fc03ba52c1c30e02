"""What the guides list in tables is what there is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from agentkit import Agent, errors
from agentkit.agent import RunOptions, Settings
from agentkit.tool.policy import KEYWORDS

DOCS = Path(__file__).parents[2] / "docs"
FIRST = re.compile(r"^\| `(\w+)` \|(?: (?:`([^|]+)`)? *\|)?", re.MULTILINE)


def section(page: str, title: str) -> str:
    return (DOCS / page).read_text().split(f"## {title}\n")[1].split("\n## ")[0]


def test_all_arguments_of_an_agent() -> None:
    own, requests, runs = (DOCS / "reference" / "arguments.md").read_text().split("\n\n| argument |")[1:]
    parameters = {n: p for n, p in inspect.signature(Agent).parameters.items() if p.kind is not p.VAR_KEYWORD}
    shown = {
        name: "" if p.default is p.empty else "str" if p.default is str else repr(p.default)
        for name, p in parameters.items()
    }
    assert dict(FIRST.findall(own)) == shown
    assert [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD] == ["model", "tools"]
    assert [name for name, _ in FIRST.findall(requests)] == list(Settings.__annotations__)
    assert [*Settings.__annotations__, *(name for name, _ in FIRST.findall(runs))] == list(RunOptions.__annotations__)


def test_every_keyword_on_how_a_tool_may_be_run() -> None:
    table = (DOCS / "tools-running.md").read_text().split("\n\n| keyword |")[1].split("\n\n")[0]
    cells = [row.split(" | ")[0] for row in table.splitlines()[2:]]
    assert sorted(name for cell in cells for name in re.findall(r"`(\w+)`", cell)) == sorted(KEYWORDS)


def test_what_goes_wrong_with_a_thread() -> None:
    named = [
        name for name, _ in FIRST.findall(section("threads.md", "Messages")) if name.startswith(("Thread", "Store"))
    ]
    there = [n for n, e in vars(errors).items() if inspect.isclass(e) and errors.StoreError in e.__bases__]
    assert sorted(named) == sorted(there)
