r"""verl's score of an answer to a problem of geometry: how right it is, and whether it has the requested form. Pure."""

from __future__ import annotations

import re
from typing import Final

from agentkit_tools.math_answers import boxed_answer, same_answer

_FORM: Final = re.compile(r"<think>.*</think>.*\\boxed\{.*\}.*", re.DOTALL)


def compute_score(answer: str, ground_truth: str, use_boxed: bool = True, format_score: float = 0.1) -> float:
    r"""The score of an answer, from 0.0 to 1.0.

    >>> compute_score("12", "12.0", use_boxed=False, format_score=0.0)
    1.0
    >>> compute_score(r"<think>2 * 6</think> \boxed{13}", "12")
    0.1

    Args:
        answer: the model's text.
        ground_truth: the right answer.
        use_boxed: whether only the content of `\boxed{…}` counts.
        format_score: how much of the score the form alone is worth: `<think>…</think> \boxed{…}`.
    """
    given = (boxed_answer(answer) or "") if use_boxed else answer
    right = 1.0 if same_answer(given, ground_truth) else 0.0
    return (1.0 - format_score) * right + format_score * (1.0 if _FORM.fullmatch(answer) else 0.0)
