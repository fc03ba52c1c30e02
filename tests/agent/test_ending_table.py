"""Why a run ends, row by row: how it stands, and what follows. No model, no loop, no clock."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from agentkit.agent.options import RunFinish
from agentkit.agent.run_end import RunState, TurnOutcome, ending

ROWS = [
    # nothing has happened yet
    (RunState(), None),
    (RunState(turns=0), "max_turns"),
    (RunState(exhausted="time_budget"), "time_budget"),
    (RunState(exhausted="token_budget", turns=0), "token_budget"),
    (RunState(stopped="cancelled"), "cancelled"),
    # the model has said its last word
    (RunState(TurnOutcome("stop")), "stop"),
    (RunState(TurnOutcome("length")), "length"),
    (RunState(TurnOutcome("unknown")), "unknown"),
    (RunState(TurnOutcome("content_filter")), "content_filter"),
    (RunState(TurnOutcome("refusal")), "refusal"),
    (RunState(TurnOutcome("stop"), exhausted="cost_budget", turns=0), "stop"),
    # … and a user wrote meanwhile
    (RunState(TurnOutcome("stop"), news=True), None),
    (RunState(TurnOutcome("stop"), news=True, turns=0), "max_turns"),
    (RunState(TurnOutcome("stop"), news=True, exhausted="token_budget"), "token_budget"),
    (RunState(TurnOutcome("length"), news=True), "length"),
    # calls were answered: it is the model's turn
    (RunState(TurnOutcome("tool_calls", answered=True)), None),
    (RunState(TurnOutcome("stop", answered=True)), None),
    (RunState(TurnOutcome("length", answered=True)), None),
    (RunState(TurnOutcome("tool_calls", answered=True), turns=0), "max_turns"),
    (RunState(TurnOutcome("tool_calls", answered=True), exhausted="call_budget"), "call_budget"),
    (RunState(TurnOutcome("tool_calls", answered=True), exhausted="call_budget", turns=0), "call_budget"),
    (RunState(TurnOutcome("pause")), None),
    # calls that say themselves that it is over
    (RunState(TurnOutcome("tool_calls", waits=True)), "approval"),
    (RunState(TurnOutcome("tool_calls", answered=True, waits=True, terminated=True, circles=True)), "approval"),
    (RunState(TurnOutcome("tool_calls", answered=True, terminated=True)), "agent_terminated"),
    (RunState(TurnOutcome("tool_calls", answered=True, terminated=True, circles=True)), "agent_terminated"),
    (RunState(TurnOutcome("tool_calls", answered=True, circles=True)), "loop_detected"),
    (RunState(TurnOutcome("tool_calls", answered=True, circles=True), exhausted="token_budget"), "loop_detected"),
    # calls of an earlier run, others of which still wait
    (RunState(TurnOutcome("unknown", answered=True, left="approval")), "approval"),
    (RunState(TurnOutcome("unknown", answered=True, terminated=True, left="approval")), "agent_terminated"),
    # a reply that is not what was wanted
    (RunState(TurnOutcome("stop", misfits=True), retries=1), None),
    (RunState(TurnOutcome("stop", misfits=True), retries=0), "invalid_output"),
    (RunState(TurnOutcome("stop", misfits=True), retries=1, turns=0), "max_turns"),
    (RunState(TurnOutcome("stop", misfits=True), retries=1, exhausted="token_budget"), "token_budget"),
    (RunState(TurnOutcome("stop", misfits=True), retries=0, news=True), "invalid_output"),
    # a reply that is no answer
    (RunState(TurnOutcome("stop", lacks="unread_call"), again=1), None),
    (RunState(TurnOutcome("stop", lacks="unread_call"), again=0), "unread_call"),
    (RunState(TurnOutcome("length", lacks="invented_result"), again=1, turns=0), "max_turns"),
    (RunState(TurnOutcome("stop", lacks="empty"), again=0, news=True), "empty"),
    # stopped from outside, whatever else is so
    (RunState(TurnOutcome("stop"), stopped="cancelled"), "cancelled"),
    (RunState(TurnOutcome("tool_calls", waits=True), stopped="time_budget"), "time_budget"),
    (RunState(TurnOutcome("stop"), stopped="cancelled", news=True, exhausted="time_budget", turns=0), "cancelled"),
]


@pytest.mark.parametrize(("run", "finish"), ROWS, ids=str)
def test_why_a_run_ends(run: RunState, finish: RunFinish | None) -> None:
    assert ending(run) == finish


def test_what_else_is_so_never_undoes_a_stronger_reason() -> None:
    """Over every standing that there can be: the reasons have one order, and none is made up."""
    flags = (False, True)
    outcomes = [
        None,
        *(TurnOutcome(*row) for row in product(("stop", "length", "pause"), *[flags] * 5, (None, "approval"))),
    ]
    stops, budgets = (None, "cancelled"), (None, "token_budget")
    for outcome, stopped, news, exhausted, turns in product(outcomes, stops, flags, budgets, (0, 1)):
        run = RunState(outcome, stopped, news, exhausted, turns)  # type: ignore[arg-type]
        found = ending(run)
        assert found in (None, *_words(RunFinish))
        if stopped is not None:
            assert found == stopped
        elif outcome is not None and outcome.waits:
            assert found == "approval"
        elif found is None:  # only then the model is asked
            assert exhausted is None
            assert turns == 1


def _words(union: object) -> set[str]:
    return {word for part in get_args(union) for word in (get_args(part) or (part,))}
