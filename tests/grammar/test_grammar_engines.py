"""Grammars under the engines that users run: xgrammar (vLLM, SGLang) and llama.cpp.

Neither is a dependency. `pip install xgrammar` brings the one; LLAMA_CPP=/path/to/llama.cpp (its sources, and g++) the
other. `AGENTKIT_EXAMPLES=200` asks for that many random generations per format.
"""

from __future__ import annotations

import importlib.util
import os
import random
from functools import partial
from pathlib import Path

import pytest
from engines import LLAMA, Guidance, Llama, XGrammar, accepts, generate
from grammar_texts import (
    CASES,
    OFFERED,
    RENDERED,
    TOOLS,
    WITH,
    WITH_SHAPES,
    calls_in,
    ends_of,
    pieces_of,
    read,
    validate,
)  # fmt: skip

from agentkit.formats import Format, render_calls
from agentkit.grammar import grammar
from agentkit.grammar.arguments_as_rules import Target

EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "10"))
every_format = pytest.mark.parametrize("format", WITH, ids=lambda f: f.name)
xgrammar = pytest.mark.skipif(importlib.util.find_spec("xgrammar") is None, reason="pip install xgrammar")
llama = pytest.mark.skipif(not LLAMA, reason="LLAMA_CPP names no source tree of llama.cpp")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("llama")


# ---------------------------------------------------------------- xgrammar


@xgrammar
@every_format
@pytest.mark.parametrize("target", ["structural_tag", "gbnf"])
@pytest.mark.parametrize("choice", ["auto", "required", "shapes"])
def test_what_xgrammar_accepts_parses_and_validates(format: Format, target: Target, choice: str) -> None:
    tools = WITH_SHAPES
    n = max(-(-EXAMPLES // 5), 2)
    for parallel in (True, False) if choice != "shapes" else (True,):
        found = XGrammar(grammar(format, tools, target=target, tool_choice=choice, parallel=parallel), target)
        rng = random.Random(f"{format.name} {choice} {parallel}")
        for _ in range(n):
            written, got = read(partial(generate, found, pieces_of(format), ends_of(format), rng), format, tools)
            for call in got:
                validate(call, tools)
            assert choice == "auto" or got, written
            assert parallel or len(got) <= 1, written


@xgrammar
@pytest.mark.parametrize("target", ["structural_tag", "gbnf"])
@pytest.mark.parametrize("name", CASES)
def test_xgrammar_tells_good_calls_from_bad_ones(name: str, target: Target) -> None:
    found = XGrammar(grammar(name, OFFERED, target=target, tool_choice="required"), target)
    assert {text: accepts(found, text) for text in CASES[name]} == CASES[name]


@xgrammar
@every_format
@pytest.mark.parametrize("target", ["structural_tag", "gbnf"])
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_xgrammar_accepts_what_is_rendered(format: Format, target: Target, choice: str) -> None:
    found = XGrammar(grammar(format, TOOLS, target=target, tool_choice=choice), target)
    for calls in RENDERED[format.name == "legacy"]:
        assert accepts(found, render_calls(format, calls, TOOLS))


# ---------------------------------------------------------------- llama.cpp


@llama
@every_format
@pytest.mark.parametrize("choice", ["auto", "required", "shapes"])
def test_llama_cpp_judges_as_llguidance_does(format: Format, choice: str, folder: Path) -> None:
    """Texts that were written under the mask, and the same with a slip."""
    text = grammar(format, WITH_SHAPES, target="gbnf", tool_choice=choice)
    ours, theirs = Guidance(text), Llama(text, folder)
    rng = random.Random(f"{format.name} {choice}")
    for _ in range(max(EXAMPLES // 3, 2)):
        written = generate(ours, pieces_of(format), ends_of(format), rng)
        assert theirs.accepts(written)
        at = rng.randrange(len(written) + 1)
        slip = written[:at] + rng.choice(["", "x", "<", '"', "\n"]) + written[at + 1 :]
        assert theirs.accepts(slip) or not accepts(ours, slip), slip
        if theirs.accepts(slip):
            for call in calls_in(slip, format, WITH_SHAPES):
                validate(call, WITH_SHAPES)


@llama
@pytest.mark.parametrize("name", CASES)
def test_llama_cpp_tells_good_calls_from_bad_ones(name: str, folder: Path) -> None:
    found = Llama(grammar(name, OFFERED, target="gbnf", tool_choice="required"), folder)
    assert {text: found.accepts(text) for text in CASES[name]} == CASES[name]


@llama
@every_format
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_llama_cpp_accepts_what_is_rendered(format: Format, choice: str, folder: Path) -> None:
    found = Llama(grammar(format, TOOLS, target="gbnf", tool_choice=choice), folder)
    for calls in RENDERED[format.name == "legacy"]:
        assert found.accepts(render_calls(format, calls, TOOLS))
