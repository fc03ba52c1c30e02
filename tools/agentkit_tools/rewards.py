"""Tools that say whether an answer is right, for training: `Geo3k` and `Gsm8k`. One instance for each problem."""

from __future__ import annotations

import re
from typing import Final

from agentkit import Tool, ToolResult, openapi_schema, xml_schema
from agentkit.errors import ConfigError
from agentkit_tools.math_answers import boxed_answer, number, same_answer

NO_BETTER: Final = -0.05
"""The reward of a call that improves nothing: guessing must not pay."""


class Judge(Tool):
    r"""The base of both tools: keeps the answer, says if it is right, and rewards an improvement.

    Args:
        ground_truth: the right answer, as the dataset has it.

    Raises:
        ConfigError: it is empty.
    """

    def __init__(self, ground_truth: str) -> None:
        if not ground_truth.strip():
            raise ConfigError(f"{type(self).__name__}(ground_truth={ground_truth!r:.60}): expected the right answer")
        self.ground_truth = self._truth(ground_truth)
        self.answer = ""
        self._best = 0.0

    def _truth(self, ground_truth: str) -> str:
        return ground_truth

    def _extract_answer(self, answer: str) -> str:
        return answer

    def calc_reward(self) -> float:
        """1.0 if the last answer is right, else 0.0."""
        return 1.0 if same_answer(self._extract_answer(self.answer), self.ground_truth) else 0.0

    def grade(self, answer: str) -> ToolResult:
        """The reward of one more answer: 0.0 for an improvement, else `NO_BETTER`."""
        self.answer = answer
        reward = self.calc_reward()
        step = 0.0 if reward > self._best else NO_BETTER
        self._best = max(self._best, reward)
        return ToolResult(output=f"Current parsed answer={answer!r:.200} reward={reward}", reward=step)


class Geo3k(Judge):
    r"""Checks answers to problems of geometry (Geometry3K). Numbers are compared exactly, formulas by `math-verify`.

    Args:
        ground_truth: the right answer; may be in `\boxed{…}`.
    """

    def _truth(self, ground_truth: str) -> str:
        return boxed_answer(ground_truth) or ground_truth

    def _extract_answer(self, answer: str) -> str:
        return boxed_answer(answer) or answer

    @openapi_schema
    @xml_schema(name="calc-geo3k-reward", content="answer")
    def calc_geo3k_reward(self, answer: str) -> ToolResult:
        """Check an answer to the geometry problem. The reward is 1.0 if it is right, else 0.0.

        Args:
            answer: the answer alone: a number, a formula, or either in LaTeX
        """
        return self.grade(answer)


class Gsm8k(Judge):
    r"""Checks answers to problems of arithmetic (GSM8K): one number, compared exactly.

    Args:
        ground_truth: the right answer, with or without the dataset's `#### ` and the solution before it.
    """

    def _truth(self, ground_truth: str) -> str:
        truth = ground_truth.rpartition("####")[2].strip()
        if number(truth) is None:
            raise ConfigError(f"Gsm8k(ground_truth=…): expected a number after ####, found {truth!r:.60}")
        return truth

    def _extract_answer(self, answer: str) -> str:
        found = re.findall(r"####\s*([^\s]+)", answer)
        return found[-1] if found else boxed_answer(answer) or answer

    @openapi_schema
    @xml_schema(name="calc-gsm8k-reward", content="answer")
    def calc_gsm8k_reward(self, answer: str) -> ToolResult:
        """Check an answer to the arithmetic problem. The reward is 1.0 if it is right, else 0.0.

        Args:
            answer: the answer alone, a number; it may also follow #### or be in a LaTeX box
        """
        return self.grade(answer)
