"""The page of exports names every export."""

from __future__ import annotations

import re
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
