"""`fit`: which modes try which tasks, and which one is recommended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from solving import ALL, FIRST, solving

from agentkit.errors import ConfigError, ProviderError
from agentkit.fit import FitProgress, FitReport, fit
from agentkit.models import ModelRequest
from agentkit.testing import ScriptedModel


def tried(model: Any, *modes: str, **options: Any) -> FitReport:
    return asyncio.run(fit(model, modes=modes or None, **options))


def figures(report: FitReport) -> dict[str, tuple[int, int, int]]:
    """Right, tried and left out, by the mode, in the order of the report."""
    return {str(row.mode): (row.right, row.tasks_tried, row.left_out) for row in report.rows}


def test_the_mode_with_most_tasks_right_is_recommended() -> None:
    model = solving({"native": ALL - {"markup"}, "xml": ALL}, {"native": 50})
    report = tried(model, "native", "xml")
    assert figures(report) == {"xml": (12, 12, 0), "native": (11, 12, 0)}
    assert report.best is report.rows[0]
    assert [(one.task, one.mistake[:18]) for one in report.rows[1].outcomes if not one.right] == [
        ("markup", "no call save_note("),
    ]


def test_of_modes_that_are_equally_right_the_one_with_fewer_tokens_is() -> None:
    report = tried(solving({"native": ALL, "xml": ALL}, {"native": 300, "xml": 200}), "native", "xml")
    assert [(str(row.mode), round(row.tokens)) for row in report.rows] == [("xml", 472), ("native", 698)]


def test_a_mode_out_of_reach_tries_no_more_than_the_first_four() -> None:
    report = tried(solving({"native": ALL, "xml": {"one value"}}), "xml", "native")
    assert figures(report) == {"native": (12, 12, 0), "xml": (1, 4, 8)}


def test_a_mode_stops_when_it_can_no_longer_come_within_reach() -> None:
    report = tried(solving({"native": ALL, "xml": ()}), "native", "xml")
    assert figures(report) == {"native": (12, 12, 0), "xml": (0, 2, 10)}


def test_a_mode_stops_when_it_can_no_longer_be_the_best() -> None:
    report = tried(solving({"native": ALL, "xml": FIRST}, {"native": 50}), "native", "xml")
    assert figures(report) == {"native": (12, 12, 0), "xml": (4, 5, 7)}


def test_the_progress_is_told() -> None:
    told: list[FitProgress] = []
    tried(solving({"native": ALL, "xml": {"one value"}}), "xml", "native", watch=told.append)
    assert [row.right for row in told[4].rows] == [1]
    assert [(str(now.mode), now.task, now.done, now.total) for now in (told[0], told[4], told[8], told[-1])] == [
        ("xml", "one value", 0, 24),
        ("native", "one value", 4, 24),
        ("native", "nested values", 8, 16),
        ("native", "a result passed on", 15, 16),
    ]


def test_the_users_tools_are_judged_and_never_run() -> None:
    def erase(path: str, times: int = 1, *, kind: str) -> str:
        """Erase."""
        raise AssertionError("it ran")

    def answer(request: ModelRequest) -> Any:
        from agentkit.messages import ToolCall

        return ToolCall("c1", "erase", {"path": "my path", "kind": "my kind"})

    report = tried(ScriptedModel(answer), "native", tasks=1, tools=[erase])
    own = report.rows[0].outcomes[1]
    assert (own.task, own.right, report.tasks) == ("erase (yours)", True, 2)


def test_a_mode_that_the_server_refuses_is_told() -> None:
    def answer(request: ModelRequest) -> Any:
        return ProviderError("no tools here", kind="bad_request", provider="p") if request.tools else "Paris"

    report = tried(ScriptedModel(answer), "native", "xml", tasks=4)
    assert [(str(row.mode), row.error, row.tasks_tried) for row in report.rows] == [
        ("xml", "", 4),
        ("native", "no tools here", 0),
    ]


def test_a_server_that_never_answers_ends_it() -> None:
    with pytest.raises(ProviderError, match="refused"):
        tried(ScriptedModel(lambda request: ProviderError("refused", kind="connection", provider="p")))


def test_one_error_later_costs_one_task() -> None:
    turns: list[Any] = ["Paris", ProviderError("broken", kind="connection", provider="p"), "Paris"]
    report = tried(ScriptedModel(turns), "native", tasks=3)
    assert [one.mistake for one in report.rows[0].outcomes][1] == "broken"


def test_nothing_right_recommends_nothing() -> None:
    report = tried(solving({}), "native")
    assert (report.best, report.python, report.command) == (None, "", "")


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("openai:m", {"modes": ["hermse"]}, "there is no mode 'hermse': .* did you mean 'hermes'"),
        ("openai:m", {"modes": ["xml+c"]}, "mode xml.c: name a server that accepts grammars: vllm, sglang"),
        ("openai:m", {"api_key_env": "NO_SUCH_KEY"}, "this environment variable is not set"),
        ("openai:m", {"tasks": 0}, r"fit\(tasks=0\): expected an integer \(1 or more\)"),
        (ScriptedModel([]), {"base_url": "http://127.0.0.1:1"}, "a model object has its own"),
        (ScriptedModel([], format="xml"), {}, "scripted already calls in xml: pass the model without a format"),
        (7, {}, "expected a model string or a model, found one without format, name, stream"),
    ],
)
def test_what_is_refused(model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        asyncio.run(fit(model, **options))


@pytest.mark.parametrize(
    ("mode", "wrote", "counts"),
    [
        ("hermes", "<tool_response>\n37 pieces\n</tool_response>\nThere are 37.", (3, 0)),
        ("xml", "<|tool_call|>count_stock: B-204", (0, 3)),
    ],
)
def test_invented_results_and_unread_calls_are_counted(mode: str, wrote: str, counts: tuple[int, int]) -> None:
    """The model is asked again twice."""
    report = tried(ScriptedModel(lambda request: wrote, chunk=7), mode, tasks=1)
    (outcome,) = report.rows[0].outcomes
    assert ((outcome.invented, outcome.unread), outcome.right) == (counts, False)
    assert outcome.mistake in ("ended by invented_result", "ended by unread_call")


def test_an_empty_end_is_counted() -> None:
    (outcome,) = tried(ScriptedModel(lambda request: ""), "native", tasks=1).rows[0].outcomes
    assert (outcome.empty, outcome.mistake) == (True, "ended by empty")
