"""A rule for calls without approval covers what it plainly says, and nothing else."""

from __future__ import annotations

import random
import re
import time
from typing import Any

import pytest

from agentkit import ToolCall, ToolRegistry, openapi_schema
from agentkit.errors import ConfigError
from agentkit.threads import AllowRule
from agentkit.threads.allow_rules import ALLOWED, bound_to, is_allowed, rules_in, with_rules


def covers(pattern: Any, value: Any) -> bool:
    return AllowRule("run", {"command": pattern}).covers(ToolCall("1", "run", {"command": value}))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("git *", "git log --oneline -5"),
        ("git *", "git "),
        ("*", ""),
        ("", ""),
        ("*.py", "src/a.py"),
        ("src/*/test_*.py", "src/a/b/test_c.py"),
        ("a;b", "a;b"),
        ("../a", "../a"),
        (r"\*.txt", "*.txt"),
        (r"a\\*", "a\\b"),
        ("*a*a*", "aa"),
        ("ü*", "ü1"),
    ],
)
def test_a_pattern_covers(pattern: str, text: str) -> None:
    assert covers(pattern, text)


EVIL = ";&|`$()<>{}[]'\"\\!?*~#%^\n\r\t\0\x0b\x1b\x85\u2028\u00a0\uff58\u0430\ud800"  # full-width x, Cyrillic a


@pytest.mark.parametrize("evil", EVIL)
def test_a_star_stands_for_nothing_that_could_be_more_than_it_looks(evil: str) -> None:
    for text in (f"git {evil}", f"git log{evil}", f"git {evil}log", f"{evil}git log"):
        assert not covers("git *", text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("git *", "Git log"),
        ("git *", "git"),
        ("git *", " git log"),
        ("\uff47it *", "git log"),
        ("src/*", "src/../etc/passwd"),
        ("src/.*", "src/../etc"),
        ("src/*./a", "src/../a"),
        ("*a*b", "ab "),
        ("aba*aba", "aba"),
        ("", " "),
        (r"\*.txt", "a.txt"),
        ("a", "a\n"),
        ("a*", "a\n"),
    ],
)
def test_a_pattern_does_not_cover(pattern: str, text: str) -> None:
    assert not covers(pattern, text)


def test_a_pattern_is_what_a_regular_expression_would_be() -> None:
    choose = random.Random(34)
    for _ in range(4_000):
        pattern = "".join(choose.choices("ab;*", k=choose.randrange(8)))
        text = "".join(choose.choices("ab;", k=choose.randrange(10)))
        wanted = "".join("[ab]*" if c == "*" else re.escape(c) for c in pattern)
        assert covers(pattern, text) == (re.fullmatch(wanted, text) is not None), (pattern, text)


@pytest.mark.parametrize("pattern", ["*" * 10_000, "*a" * 10_000 + "*b", "a*" * 10_000, "*ab*" * 5_000])
def test_many_stars_take_no_time(pattern: str) -> None:
    began = time.perf_counter()
    for text in ("a" * 1_000_000, "ab" * 500_000, "a" * 1_000_000 + ";"):
        covers(pattern, text)
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    ("value", "others"),
    [
        (1, [True, 1.5, "1", None, [1]]),
        (True, [1, 1.0, "true", False]),
        (0, [False, "", None, [], {}]),
        (None, [False, 0, "", "null"]),
        ({"a": [1, {"b": None}]}, [{"a": [1, {"b": 0}]}, {"a": [True, {"b": None}]}, {"a": [1]}, {}]),
        (["a*"], [["ab"], ["a*", "b"], "a*"]),
        ({"a": "*"}, [{"a": "b"}, {"a": "*", "b": 1}]),
        (10**30, [10**30 + 1, 1e30]),
    ],
)
def test_any_other_value_must_be_the_same(value: Any, others: list[Any]) -> None:
    assert covers(value, value)
    assert not any(covers(value, other) for other in others)


def test_a_number_is_the_same_with_and_without_a_point() -> None:
    """JavaScript writes 20.0 as 20."""
    assert covers(20, 20.0)
    assert covers({"a": [20.0]}, {"a": [20]})


def test_no_argument_may_be_missing_or_added() -> None:
    rule = AllowRule("run", {"command": "*", "folder": "."})
    for given in (
        {"command": "a"},
        {"command": "a", "folder": ".", "shell": True},
        {},
        {"Command": "a", "folder": "."},
    ):
        assert not rule.covers(ToolCall("1", "run", given))
    assert rule.covers(ToolCall("1", "run", {"folder": ".", "command": "a"}))
    assert not AllowRule("run", {}).covers(ToolCall("1", "run", {"command": "a"}))
    assert AllowRule("run").covers(ToolCall("1", "run", {"command": "a; b"}))
    assert not AllowRule("run").covers(ToolCall("1", "Run", {}))


def test_the_rule_of_a_call_covers_only_that_call() -> None:
    call = ToolCall("1", "run", {"command": r"rm *\*", "n": 1})
    rule = AllowRule.exactly(call)
    assert rule.covers(call)
    assert not rule.covers(ToolCall("1", "run", {"command": r"rm a\b", "n": 1}))


def test_nobody_changes_a_rule_later() -> None:
    given = {"a": ["x"]}
    rule = AllowRule("run", given)
    given["a"].append("y")
    assert str(rule) == 'run: a = ["x"]'


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"tool": ""}, "expected the name of a tool"),
        ({"tool": "run", "arguments": ["git *"]}, "expected patterns by the name"),
        ({"tool": "run", "arguments": {"a": {1, 2}}}, "expected values of JSON types"),
        ({"tool": "run", "arguments": {"a": float("nan")}}, "expected values of JSON types"),
        ({"tool": "run", "arguments": {1: "a"}}, "names of arguments"),
        ({"tool": "run", "arguments": {"a": "../*"}}, "leads anywhere"),
        ({"tool": "run", "pattern": {"a": "*"}}, "arguments"),
    ],
)
def test_a_wrong_rule_says_what_is_wrong(given: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ConfigError, match=wrong):
        AllowRule(**given)


RULE = {"tool": "run", "arguments": {"command": "git *"}, "digest": "d"}


@pytest.mark.parametrize(
    "junk",
    [
        *(None, 5, "run", True, {"run": "d"}, [5], ["run"], [[]], [None], [{}], [{**RULE, "digest": ""}]),
        *([{**RULE, "digest": None}], [{**RULE, "tool": 1}], [{**RULE, "arguments": []}], [{**RULE, "arguments": "*"}]),
        *([{**RULE, "more": 1}], [{"tool": "run", "arguments": None}], [{**RULE, "arguments": {"a": "*.."}}]),
    ],
)
def test_junk_in_the_store_allows_nothing(junk: Any) -> None:
    assert rules_in({ALLOWED: junk}) == ()
    assert rules_in({ALLOWED: [junk, RULE]}) == (AllowRule(**RULE),)


def test_rules_are_stored_as_json_and_leave_the_rest_alone() -> None:
    assert with_rules({"title": "x"}, [AllowRule(**RULE)]) == {"title": "x", ALLOWED: [RULE]}
    assert with_rules({"title": "x", ALLOWED: [RULE]}, ()) == {"title": "x"}


# with a tool


@openapi_schema(requires_approval=True)
def move(paths: list[str], n: int = 1, note: str = "") -> str:
    """Move files."""
    return "moved"


def allowed(arguments: dict[str, Any] | None, call: dict[str, Any], format: str | None = None) -> bool:
    tool = ToolRegistry(move).tools["move"]
    return is_allowed([AllowRule("move", arguments, tool.digest)], ToolCall("1", "move", call, format), tool)


def test_a_text_that_the_tool_reads_as_several_values_is_no_text() -> None:
    assert not allowed({"paths": "a*"}, {"paths": "a, /etc/passwd"}, "xml")
    assert not allowed({"paths": "a*"}, {"paths": "a, /etc/passwd"})
    assert allowed({"paths": ["a", "b"]}, {"paths": "a, b"}, "xml")
    assert allowed({"paths": ["a"], "n": 5}, {"paths": ["a"], "n": "5"}, "xml")
    assert not allowed({"paths": ["a"], "n": 5}, {"paths": ["a"], "n": 6})


def test_arguments_that_do_not_fit_are_not_allowed() -> None:
    assert not allowed(None, {"paths": ["a"], "n": "many"})
    assert not allowed(None, {"paths": 5})


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"itm": "tea", "amount": 2}, "order has no argument 'itm'; did you mean 'item'?"),
        ({"item": "tea", "amount": "*"}, "'amount' is of type integer; a pattern matches only strings"),
        ({"item": "tea", "amount": "2"}, "'amount' is of type integer; a pattern matches only strings"),
        ({"item": 5, "amount": 2}, "'item' is of type string, found 5"),
        ({"item": "tea"}, "'amount' is missing, and a rule names all arguments of a call"),
    ],
)
def test_a_rule_that_covers_no_call_of_its_tool_is_refused(arguments: dict[str, Any], wrong: str) -> None:
    def order(item: str, amount: int, note: str | None = None) -> str:
        """Order it."""
        return item

    with pytest.raises(ConfigError, match=re.escape(wrong)):
        bound_to(AllowRule("order", arguments), ToolRegistry(order))
    assert bound_to(AllowRule("order", {"item": "*", "amount": 2, "note": None}), ToolRegistry(order)).digest
