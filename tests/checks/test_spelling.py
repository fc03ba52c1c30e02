"""What stands behind "did you mean": slips of the finger, arguments of another callee, model strings of others."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Agent, Budget, ConfigError, ProcessorConfig, ThreadManager, formats, model
from agentkit.agent import RunOptions
from agentkit.checks.spelling import edits, nearest
from agentkit.foreign.elsewhere import CALLEES, CalleeName
from agentkit.foreign.provider_hints import FAMILIES, PROVIDERS, ROUTERS, SERVERS
from agentkit.models.model_strings import split_name
from agentkit.testing import ScriptedModel
from agentkit.tool.policy import PolicyKeywords

M = ScriptedModel([])
NAMES = st.text("abcdefgh_", min_size=1, max_size=8)


# ---------------------------------------------------------------- slips


@given(NAMES, NAMES)
def test_slips_are_a_distance(a: str, b: str) -> None:
    assert edits(a, a) == 0
    assert edits(a, b) == edits(b, a)
    assert abs(len(a) - len(b)) <= edits(a, b) <= max(len(a), len(b))
    assert (edits(a, b) == 0) == (a == b)


def slips(name: str) -> list[str]:
    """The name with one slip: a letter left out, doubled, or swapped with the next."""
    swapped = [name[:i] + name[i + 1] + name[i] + name[i + 2 :] for i in range(len(name) - 1)]
    return [found for found in swapped if found != name] + [name[:i] + name[i] + name[i:] for i in range(len(name))]


@pytest.mark.parametrize("name", ["xml", "hermes", "invoke", "pythonic", "mistral"])
def test_one_slip_in_the_name_of_a_format_leads_back(name: str) -> None:
    assert {nearest(slip, formats.names()) for slip in slips(name)} == {name}


@pytest.mark.parametrize(
    ("found", "names", "meant"),
    [
        ("xlm", ["xlam", "xml"], "xml"),  # both are one slip away; two letters swapped are the commoner one
        ("thread", ["stream", "tools"], None),
        ("file", ["read_file", "write"], "read_file"),
        ("maxTurns", ["max_turns"], "max_turns"),
        ("zzz", ["a", "b"], None),
    ],
)
def test_nearest(found: str, names: list[str], meant: str | None) -> None:
    assert nearest(found, names) == meant


# ---------------------------------------------------------------- callees

threads = ThreadManager(":memory:")
CALLS: Mapping[CalleeName, Callable[..., Any]] = {
    "Agent": lambda **given: Agent(M, **given),
    "run": lambda **given: Agent(M).run_sync("hi", **given),
    "model": lambda **given: model("openai:x", **given),
    "ProcessorConfig": ProcessorConfig,
    "Budget": Budget,
    "ThreadManager": ThreadManager,
    "run_thread": lambda **given: threads.run_thread("t", **given),
}
SIGNATURES: Mapping[CalleeName, Callable[..., Any]] = {
    "Agent": Agent,
    "run": Agent.run_sync,
    "model": model,
    "ProcessorConfig": ProcessorConfig,
    "Budget": Budget,
    "ThreadManager": ThreadManager,
    "run_thread": ThreadManager.run_thread,
}


def test_doors_take_what_they_are_said_to_take() -> None:
    settings = {name for name in RunOptions.__annotations__ if name not in ("context", "cancel", "decisions")}
    more = {"Agent": settings, "run": {*RunOptions.__annotations__}, "run_thread": {*RunOptions.__annotations__}}
    for callee, function in SIGNATURES.items():
        named = inspect.signature(function).parameters.values()
        own = {one.name for one in named if one.kind is not one.VAR_KEYWORD and one.name != "self"}
        assert set(CALLEES[callee].takes) == own | more.get(callee, set()), callee
    assert set(CALLEES["tool"].takes) == PolicyKeywords.__annotations__.keys()


@pytest.mark.parametrize("callee", CALLS)
def test_whatever_another_door_takes_leads_there(callee: CalleeName) -> None:
    elsewhere = {name for other in CALLEES.values() for name in (*other.takes, *other.others)}
    unanswered = []
    for name in sorted(elsewhere - {*CALLEES[callee].takes}):
        with pytest.raises(ConfigError) as caught:
            CALLS[callee](**{name: 1})
        said = str(caught.value)
        assert f"has no argument {name!r}" in said
        if not re.search(rf"has no argument {name!r}(: |; did you mean )", said):
            unanswered.append(name)
    assert unanswered == []


# ---------------------------------------------------------------- model strings

OURS = ("openai", "responses", "anthropic", "gemini", "bedrock")


def meant(name: str) -> str:
    """What a refused model string is told behind itself."""
    with pytest.raises(ConfigError) as caught:
        split_name(name)
    return str(caught.value).partition("; found ")[2].removeprefix(repr(name))


@pytest.mark.parametrize("id", ["anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-pro-v1:0", "qwen.qwen3"])
def test_an_id_of_bedrock_is_one(id: str) -> None:
    assert meant(id) == f"; did you mean 'bedrock:{id}'?"


def test_every_string_that_is_said_is_taken() -> None:
    said = [
        *(f"{family}{end}" for family in FAMILIES for end in ("-5", " 5", "-large", "", "3:8b")),
        *(f"{prefix}{mark}x-1" for prefix in (*PROVIDERS, *SERVERS) for mark in ":/"),
        *(f"{router}/{prefix}/x-1" for router in sorted(ROUTERS) for prefix in (*OURS, *SERVERS)),
        *(f" {prefix} : x-1" for prefix in OURS),
    ]
    for name in said:
        written = re.findall(r"'((?:openai|responses|anthropic|gemini|bedrock):[^']+)'", meant(name))
        assert written, name
        for string in written:
            assert split_name(string)[1] == string.partition(":")[2]


def test_each_family_is_said_to_be_its_owners() -> None:
    for family, owner in FAMILIES.items():
        wanted = f"did you mean '{owner}:{family}-5'?" if owner in OURS else f"base_url={SERVERS[owner]!r}"
        assert wanted in meant(f"{family}-5")
        assert wanted in meant(f"{family.upper()}-5") or owner not in OURS


def test_each_server_is_said_with_its_address() -> None:
    for prefix, address in SERVERS.items():
        for mark in ":/":
            assert f"agentkit.model('openai:x-1', base_url={address!r}, api_key=…)" in meant(f"{prefix}{mark}x-1")
            assert "did you mean" not in meant(f"{prefix}{mark}gpt-5")  # it is not OpenAI who is asked there


def test_no_credentials_of_an_address_are_shown() -> None:
    said = meant("https://ada:secret@example.org/v1?key=abcdef")
    assert "secret" not in said
    assert "abcdef" not in said
