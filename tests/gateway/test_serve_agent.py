"""The options of `agentkit serve` for an agent."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import get_args

import pytest

from agentkit.cli.serve_agent import UNAPPROVED, add_agent, agent_of
from agentkit.errors import ConfigError
from agentkit.gateway.agent_model import AgentModel, Unapproved

SHOP = """
from agentkit import Agent
from agentkit.testing import ScriptedModel

agent = Agent(ScriptedModel(["Hello."]), name="shop")
"""


def found(*words: str) -> AgentModel | None:
    parser = argparse.ArgumentParser()
    add_agent(parser)
    return agent_of(parser.parse_args(words))


def test_the_agent_of_a_file_in_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_in_a_file.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    served = found("--agent", "shop_in_a_file:agent", "--store", "chats.db", "--unapproved", "ask")
    assert served is not None
    assert served.name == "shop"
    asyncio.run(served.aclose())


def test_the_choices_are_those_of_the_agent() -> None:
    assert get_args(Unapproved) == UNAPPROVED


def test_no_agent() -> None:
    assert found() is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--store", "chats.db", "--show-calls"], "--store and --show-calls: for an agent only"),
        (["--agent", "json:dumps", "--unapproved", "ask"], "name a store for it with --store"),
        (["--agent", "json:dumps"], "--agent json:dumps: expected an Agent"),
    ],
)
def test_options_that_do_not_go_together(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        found(*words)
