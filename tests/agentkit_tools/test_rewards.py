"""The reward tools, the comparison of answers, and the names of the tools."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Agent, ConfigError, ToolCall
from agentkit.testing import ScriptedModel
from agentkit_tools import formulas
from agentkit_tools.math_answers import boxed_answer, number, same_answer
from agentkit_tools.rewards import Geo3k, Gsm8k


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ("42", "42"),
        ("42.0", "42"),
        ("$1,234.50", "1234.5"),
        ("0.5", r"\frac{1}{2}"),
        (r"\dfrac12", "1/2"),
        ("30^\\circ", "30"),
        ("12\\%", "12"),
        ("-3", "- 3"),
        ("18.", "18"),
        ("0.1", "1/10"),  # not as floats
        ("x + 1", "x+1"),
    ],
)
def test_these_answers_are_the_same(answer: str, truth: str) -> None:
    assert same_answer(answer, truth)


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        (r"2\sqrt{3}", r"\sqrt{12}"),
        (r"\sqrt{12}", r"2 \sqrt 3"),
        (r"\frac{\pi}{2}", r"\pi/2"),
    ],
)
def test_formulas_are_compared_by_math_verify(answer: str, truth: str) -> None:
    pytest.importorskip("math_verify", reason="math-verify is not installed: it compares formulas")
    assert same_answer(answer, truth)


def test_a_tool_in_a_thread_compares_formulas_as_well() -> None:
    """Where `math-verify` cannot use its signals."""
    pytest.importorskip("math_verify", reason="math-verify is not installed: it compares formulas")
    model = ScriptedModel([ToolCall("", "calc_geo3k_reward", {"answer": r"2\sqrt{3}"}), "Done."])
    result = Agent(model, tools=[Geo3k(r"\sqrt{12}")]).run_sync("Go.")
    assert result.messages[2].text.endswith("reward=1.0")


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ("", "42"),
        ("41", "42"),
        ("4.2", "42"),
        ("0.3333", "1/3"),
        ("42 or 43", "42"),
        ("1/0", "0"),
        ("nan", "42"),
        ("1e400", "42"),
        (r"2\sqrt{3}", r"2\sqrt{5}"),
        ("9^9^9^9^9", "1"),
        ("10000000!", "1"),
        ("x" * 5000, "x" * 5000),
        (r"\sum_{i=1}^{99} i", "1"),
    ],
)
def test_these_answers_are_not_the_same_and_that_is_quickly_known(answer: str, truth: str) -> None:
    start = time.monotonic()
    assert not same_answer(answer, truth)
    assert time.monotonic() - start < 20


def test_a_formula_that_takes_forever_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a thread, where no signal can end a computation: its process is ended, and the next pair compared."""
    pytest.importorskip("math_verify", reason="math-verify is not installed: it compares formulas")
    monkeypatch.setattr(formulas, "SECONDS", 0.5)
    formulas._process.cache_clear()
    model = ScriptedModel([ToolCall("", "calc_geo3k_reward", {"answer": r"\Gamma(10^{9})"}), "Done."])
    start = time.monotonic()
    result = Agent(model, tools=[Geo3k("2")]).run_sync("Go.")
    assert "reward=0.0" in str(result.messages[2])
    assert time.monotonic() - start < 20
    monkeypatch.undo()
    assert same_answer(r"2\sqrt{3}", r"\sqrt{12}")


def test_the_box_of_a_long_answer_is_found_quickly() -> None:
    start = time.monotonic()
    assert boxed_answer(r"\boxed{" * 30_000 + "1}") == "1"
    assert boxed_answer("}" + r"\boxed{" * 30_000) is None
    assert time.monotonic() - start < 20


@given(st.lists(st.sampled_from(["\\boxed{", "{", "}", "1", "\\fboxed {"]), max_size=12))
def test_a_box_has_balanced_braces(pieces: list[str]) -> None:
    inside = boxed_answer("".join(pieces))
    assert inside is None or inside.count("{") == inside.count("}")


@given(st.fractions(max_denominator=10**6))
def test_a_number_is_read_exactly(value: object) -> None:
    assert number(str(value)) == value


@given(st.text(max_size=50))
def test_any_text_is_an_answer(text: str) -> None:
    assert same_answer(text, "42") in (True, False)
    assert boxed_answer(text) is None or isinstance(boxed_answer(text), str)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        (r"\boxed{4}", "4"),
        (r"\boxed{1} then \boxed{ \frac{1}{2} }", r" \frac{1}{2} "),
        (r"\boxed{1} and \boxed{unclosed", "1"),
        (r"\boxed", None),
        ("4", None),
    ],
)
def test_the_last_box_counts(text: str, inside: str | None) -> None:
    assert boxed_answer(text) == inside


def test_geo3k_rewards_an_improvement_and_no_guessing() -> None:
    tool = Geo3k(ground_truth=r"\boxed{12}")
    wrong, right, again = (tool.calc_geo3k_reward(answer) for answer in ("7", r"so \boxed{12.0}", "12"))
    assert [result.reward for result in (wrong, right, again)] == [-0.05, 0.0, -0.05]
    assert right.text == "Current parsed answer='so \\\\boxed{12.0}' reward=1.0"
    assert tool.calc_reward() == 1.0


def test_the_last_answer_counts() -> None:
    tool = Geo3k("12")
    tool.calc_geo3k_reward("12")
    tool.calc_geo3k_reward("13")
    assert tool.calc_reward() == 0.0


def test_an_instance_knows_nothing_of_another() -> None:
    one, other = Geo3k("1"), Geo3k("2")
    one.calc_geo3k_reward("1")
    assert (one.calc_reward(), other.calc_reward()) == (1.0, 0.0)


@pytest.mark.parametrize("truth", ["72", "#### 72", "Natalia sold 48/2 = 24 clips.\n#### 72"])
@pytest.mark.parametrize("answer", ["72", "72.0", "$72", "#### 72", r"\boxed{72}"])
def test_gsm8k(truth: str, answer: str) -> None:
    tool = Gsm8k(ground_truth=truth)
    assert tool.calc_gsm8k_reward(answer).reward == 0.0
    assert tool.calc_reward() == 1.0


def test_a_truth_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected the right answer"):
        Geo3k(ground_truth=" ")
    with pytest.raises(ConfigError, match=r"expected a number after ####, found .none.$"):
        Gsm8k("#### none")


def test_the_truth_is_not_shown_to_the_model() -> None:
    assert "12" not in Geo3k("12").calc_geo3k_reward("7").text
