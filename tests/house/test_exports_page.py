"""The page of exports names every export, and the script that fills its table changes no other."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

HERE = Path(__file__).parents[2]
PAGE = (HERE / "docs" / "rollouts-exports.md").read_text(encoding="utf-8")
SYSTEMS = ("verl", "open_instruct", "trl", "verifiers", "skyrl", "openai_agents", "langchain", "pydantic_ai")


def test_every_export_is_in_the_first_table() -> None:
    named = set(re.findall(r"`agentkit\.interop\.(\w+\.to_\w+)`", PAGE))
    for system in SYSTEMS:
        place = HERE / "agentkit" / "interop" / system
        sources = sorted(place.glob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        made = {name for source in sources for name in re.findall(r"^def (to_\w+)\(", source.read_text(), re.MULTILINE)}
        assert {f"{system}.{name}" for name in made} <= named, system


def test_a_row_of_what_was_tried_replaces_only_its_own() -> None:
    written = runpy.run_path(str(HERE / "docs" / "exports_table.py"))["written"]
    first, tried = "| LangChain | `to_langchain` | tools |", "| LangChain | 1.7.2 | yes | yes | yes | none | yes |"
    page = f"{first}\n\n{tried}\n"
    newer = tried.replace("1.7.2", "1.8.0")
    assert written(page, {"LangChain": newer}) == f"{first}\n\n{newer}\n"
