"""The first screen, README and landing page: its figures are those of their pages, and its two calls really are one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentkit import Agent, ToolCall
from agentkit.testing import ScriptedModel

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FIRST = (ROOT / "README.md", DOCS / "index.md")
PICTURE = DOCS / "images" / "chat.svg"


def rows(page: str) -> Iterator[list[str]]:
    """The rows of a page's tables, as cells without markup."""
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            yield [cell.replace("*", "").replace("`", "").strip() for cell in line.strip("|").split("|")]


def tasks() -> list[str]:
    """How many of ten tasks each toolkit does with the larger model."""
    done = {row[0]: row[1] for row in rows("parsing_accuracy.md") if len(row) == 8 and "/" in row[1]}
    ours = max((right for mode, right in done.items() if mode.startswith("agentkit")), key=lambda r: int(r.split()[0]))
    return [ours.replace("/", "of"), *(f"{peer} {done[peer].split()[0]}" for peer in ("openai-agents", "pydantic-ai"))]


def formats() -> list[str]:
    """In how many of the formats that a parser has it makes no fault."""
    table = [row for row in rows("parsing_accuracy.md") if len(row) == 5 and row[1] == "0" and " " not in row[0]]
    counts = []
    for column in (1, 2, 3):
        judged = [row[column] for row in table if row[column][0].isalnum()]  # others have a dash
        counts.append(f"{judged.count('0')} of {len(judged)}")
    return [counts[0], f"vLLM {counts[1]}", f"SGLang {counts[2]}"]


def repeated() -> list[str]:
    """How many effects each toolkit repeated when it was killed; of several ways to resume, the range."""
    table = [row for row in rows("crash_recovery.md") if len(row) == 7 and row[1].isdigit()]
    twice = [int(row[3]) for row in table]
    assert [row[0].split(" ")[0].rstrip(",") for row in (table[0], table[1], table[4])] == [
        "agentkit",
        "openai-agents",
        "LangGraph",
    ]
    peers, graphs = twice[1:4], twice[4:]
    ranges = [f"openai-agents {min(peers)} to {max(peers)}", f"LangGraph {min(graphs)} to {max(graphs)}"]
    assert {round(int(row[1]), -1) for row in table} == {300}
    return [str(twice[0]), *ranges]


@pytest.mark.parametrize("page", FIRST, ids=lambda page: page.name)
@pytest.mark.parametrize("measured", [tasks, formats, repeated])
def test_a_figure_is_that_of_its_page(page: Path, measured: Any) -> None:
    section = page.read_text(encoding="utf-8").partition("## Benchmarks\n")[2].partition("\n## ")[0]
    ours, *others = measured()
    assert f"**{ours}**" in section
    assert [other for other in others if other not in section] == []


def test_the_bars_of_the_picture_are_the_figures() -> None:
    bars = re.findall(r">(\d+) of (\d+)</text>", (DOCS / "images" / "live.svg").read_text())
    table = [row[1].split(" / ") for row in rows("parsing_accuracy.md") if len(row) == 8 and "/" in row[1]]
    assert [list(bar) for bar in bars] == table


@pytest.mark.parametrize("page", FIRST, ids=lambda page: page.name)
def test_the_short_comparison_is_a_part_of_the_long_one(page: Path) -> None:
    mark = "<!-- comparison: python docs/comparison.py --write -->\n"
    short = page.read_text(encoding="utf-8").partition(mark)[2].partition("<!-- end")[0].split("\n")
    long = (DOCS / "why.md").read_text(encoding="utf-8").split("\n")
    assert len([line for line in short if line.startswith("|")]) == 2 + 5
    assert [line for line in short if line not in long] == []


@pytest.mark.parametrize("page", FIRST, ids=lambda page: page.name)
def test_the_json_and_the_xml_call_the_same_method_with_the_same_values(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    source = next(block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "class Notes" in block)
    native = json.loads(re.findall(r"```json\n(.*?)```", text, re.DOTALL)[0])
    written = re.findall(r"```xml\n(.*?)```", text, re.DOTALL)[0]
    program: dict[str, Any] = {}
    exec(compile(source, page.name, "exec", dont_inherit=True), program)
    saved = []
    for model in (
        ScriptedModel([ToolCall("", native["name"], native["arguments"]), "Done."]),
        ScriptedModel([written, "Done."], format="xml"),
    ):
        notes = program["Notes"]()
        Agent(model, [notes]).run_sync("Go.")
        saved.append(notes.notes)
    assert f'save_note(title="milk", text="{saved[0]["milk"]}")' in text
    assert saved[0] == saved[1] == {"milk": "2 l"}


def test_the_recording_plays_without_a_script_and_stands_still_for_those_who_want_that() -> None:
    picture = PICTURE.read_text(encoding="utf-8")
    assert len(picture.encode()) < 300_000
    assert "<script" not in picture
    assert "@keyframes" in picture
    assert "prefers-reduced-motion:reduce" in picture
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")
