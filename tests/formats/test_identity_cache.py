"""Results for formats and tools are computed once for these very objects, and never returned for others."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from format_tools import spec
from hypothesis import example, given
from hypothesis import strategies as st

from agentkit.events import CallEnd
from agentkit.formats import CATALOG, Format, Parser, ToolSpec, auto, render_calls, render_prompt
from agentkit.formats.identity_cache import IdentityCache
from agentkit.messages import ToolCall
from agentkit.schemas import walk

every_format = pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)


@every_format
def test_the_prompt_of_the_same_tools_is_made_once(format: Format) -> None:
    tools = (spec("look_up", None, ("word",), word="string"),)
    assert render_prompt(format, tools) is render_prompt(format, list(tools))


@pytest.mark.parametrize("asked", [{"tool_choice": "required"}, {"tool_choice": "ping"}, {"parallel": False}], ids=str)
def test_what_is_asked_of_the_model_makes_another_prompt(asked: dict[str, Any]) -> None:
    tools = (spec("ping", None, (), word="string"),)
    assert render_prompt("hermes", tools, **asked) != render_prompt("hermes", tools)


@pytest.mark.parametrize("format", ["hermes", "cline", "pythonic"])
def test_tools_that_live_where_others_lived_have_their_own(format: str) -> None:
    """More sets than are remembered: those before are gone, and their places in memory are used again."""
    for n in range(100):
        tools = [spec(f"tool_{n}", None, ("word",), word="string")]
        assert f"tool_{n}" in render_prompt(format, tools)
        call = ToolCall("", f"tool_{n}", {"word": "a"})
        parser = Parser(format, tools)
        events = parser.feed(render_calls(format, [call], tools)) + parser.close()
        assert [e.call.name for e in events if isinstance(e, CallEnd)] == [f"tool_{n}"]


def test_only_the_last_ones_are_kept() -> None:
    made: IdentityCache[int] = IdentityCache()
    tools = [ToolSpec(f"tool_{n}", "", {}) for n in range(1000)]
    assert [made.get((), (tool,), lambda n=n: n) for n, tool in enumerate(tools)] == list(range(1000))
    assert made.get((), (tools[999],), lambda: -1) == 999
    assert made.get((), (tools[0],), lambda: -1) == -1


def test_the_patterns_of_all_formats_are_compiled_once_and_few_for_other_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """They once were compiled for each new set of tools, which took 12 ms."""
    compiled, compiler = list[str](), re._compiler.compile  # type: ignore[attr-defined]

    def noted(pattern: str, *more: Any) -> Any:
        compiled.append(pattern)
        return compiler(pattern, *more)

    monkeypatch.setattr(re._compiler, "compile", noted)  # type: ignore[attr-defined]
    for n in range(5):
        compiled.clear()
        Parser(auto(), [spec(f"tool_{n}_{m}", None, ("word",), word="string") for m in range(8)]).close("Hello.")
    assert len(compiled) <= 5


KINDS = st.sampled_from(["string", "integer", "null", "str", "any", 7])
SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": KINDS | st.lists(KINDS, max_size=3), "nullable": st.booleans(), "description": st.just("x"),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": KINDS, "anyOf": st.lists(inner, max_size=2), "allOf": st.lists(inner, max_size=1),
            "$ref": st.sampled_from(["#/$defs/a", "#/nowhere"]),
        },
    ),
    max_leaves=4,
)  # fmt: skip


@example({"$ref": "#/$defs/a"}, {"anyOf": [{}, {"type": "string", "$ref": "#/$defs/a"}]})
@given(SCHEMAS, SCHEMAS)
def test_a_plain_schema_is_what_taking_it_apart_would_give(schema: dict[str, Any], known: dict[str, Any]) -> None:
    """One in a list of one is taken apart; on its own it may be plain."""
    root = {"$defs": {"a": known}}
    alone, listed = list(walk.alternatives(schema, root)), list(walk.alternatives({"anyOf": [schema]}, root))
    if min(len(alone), len(listed)) > 100:  # a cyclic one is cut after as many steps, and the list is one of them
        alone, listed = alone[:100], listed[:100]
    assert alone == listed


def endless() -> dict[str, int]:
    """How much every cache without a bound contains, of those in modules of agentkit."""
    modules = [module for name, module in sys.modules.items() if name.startswith("agentkit.")]
    caches = {id(each): each for module in modules for each in vars(module).values() if hasattr(each, "cache_info")}
    found = [(f"{each.__module__}.{each.__qualname__}", each.cache_info()) for each in caches.values()]
    return {name: info.currsize for name, info in found if info.maxsize is None}


def test_no_cache_grows_without_end_with_the_names_of_tools_or_with_what_models_write() -> None:
    """A server reads with other tools for each customer, and rollouts with other tools for each task."""

    def read(n: int) -> None:
        tool = spec(f"tool{n}", **{f"text{n}": "string", f"count{n}": "integer"})
        call = ToolCall("", f"tool{n}", {f"text{n}": "a <b> c", f"count{n}": 3})
        beside = f"{' ' * n}- b\n<think{n}> {'`' * n} <tool{n} new{n}='1'><other{n}></other{n}></tool{n}>\n"
        for format in CATALOG:
            written = render_calls(format, [call], [tool])
            for formats in [(format,), auto()][: 1 + (format.name == "hermes")]:
                parser = Parser(formats, [tool])
                parser.feed(beside + written[:-3] + written + beside)
                parser.close()

    for n in range(1, 4):
        read(n)
    before = endless()
    assert before
    read(4)
    assert endless() == before
