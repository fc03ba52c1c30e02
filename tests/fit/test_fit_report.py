"""What `fit` reports: the lines that use the best mode, the range of a share, the figures as JSON."""

from __future__ import annotations

import json

import pytest

from agentkit.fit import CallingMode, FitReport, FitRow, TaskOutcome


def row(mode: str, right: int, tried: int, tokens: int = 1000) -> FitRow:
    outcomes = tuple(
        TaskOutcome(f"task {n}", n < right, input_tokens=tokens - 50, output_tokens=50, seconds=2.0)
        for n in range(tried)
    )
    return FitRow(CallingMode.from_name(mode), outcomes)


def report(mode: str, *, temperature: float | None = None, **server: str | None) -> FitReport:
    rows = (row(mode, 10, 12),)
    return FitReport("openai:qwen", rows, 12, temperature=temperature, **server)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "python", "command"),
    [
        (report("native"), 'model("openai:qwen")', "agentkit chat --model openai:qwen"),
        (
            report("xml+c", base_url="u", server="vllm", temperature=0.0),
            'model("openai:qwen", base_url="u", format="xml", server="vllm", temperature=0.0, constrained=True)',
            "agentkit chat --model openai:qwen --base-url u --server vllm --format xml --temperature 0.0 --constrained",
        ),
        (
            report("hermes", base_url="http://me:secret@host/v1", api_key_env="MY_KEY"),
            'model("openai:qwen", base_url="http://host/v1", format="hermes", api_key=os.environ["MY_KEY"])',
            "agentkit chat --model openai:qwen --base-url http://host/v1 --format hermes --api-key-env MY_KEY",
        ),
        (
            FitReport("mine", (row("hermes+c", 9, 12),), 12, is_object=True),
            'TextCalling(model, "hermes", constrained=True)',
            "",
        ),
    ],
    ids=["native", "constrained", "key", "object"],
)
def test_the_lines_that_use_the_best(found: FitReport, python: str, command: str) -> None:
    assert (found.python, found.command) == (python, command)


@pytest.mark.parametrize(
    ("right", "tried", "likely"),
    [(12, 12, (76, 100)), (10, 12, (55, 95)), (6, 12, (25, 75)), (0, 12, (0, 24)), (4, 4, (51, 100)), (0, 0, (0, 100))],
)
def test_a_share_of_a_few_tasks_is_uncertain(right: int, tried: int, likely: tuple[int, int]) -> None:
    low, high = row("xml", right, tried).likely
    assert (round(100 * low), round(100 * high)) == likely


def test_the_figures_as_json() -> None:
    found = json.loads(json.dumps(report("xml").as_dict()))
    assert (found["best"], found["python"]) == ("xml", 'model("openai:qwen", format="xml")')
    (mode,) = found["modes"]
    assert {key: mode[key] for key in ("mode", "right", "tried", "likely", "tokens", "seconds")} == {
        "mode": "xml",
        "right": 10,
        "tried": 12,
        "likely": [0.552, 0.953],
        "tokens": 1000,
        "seconds": 2.0,
    }
    assert mode["outcomes"][0]["task"] == "task 0"
