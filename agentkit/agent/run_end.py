"""Why a run ends: a pure function of one small value. Knows no turn, no model, no journal and no clock.

The first row whose condition is true decides:

| condition | the run ends with |
|---|---|
| it was stopped from outside | that reason: `cancelled`, `time_budget` |
| a call of the last turn waits for a person | `approval` |
| a terminating tool succeeded | `agent_terminated` |
| the same call got the same answer too often | `loop_detected` |
| calls were answered, or the model only paused | it continues; or the reason that an earlier run left |
| the reply is not an answer (`again`), or a guard asks again | what it lacks; it continues while retries are left |
| the reply does not fit the output type | `invalid_output`; it continues while retries are left |
| the reply is `stop`, and a user wrote in the meantime | it continues |
| there is a reply | the model's own reason |
| a limit of the budget is reached | that limit |
| no turns are left | `max_turns` |
"""

from __future__ import annotations

from typing import NamedTuple

from agentkit.agent.options import RunFinish
from agentkit.agent.run_budget import Exhausted


class TurnOutcome(NamedTuple):
    """The outcome of a turn.

    Attributes:
        finish: why the model stopped.
        answered: whether it made calls that have answers.
        waits: whether one of its calls waits for a person.
        terminated: whether a tool that ends the run succeeded.
        circles: whether the same call got the same answer too often.
        misfits: whether it is a final reply that does not fit the run's output type.
        lacks: what a final reply lacks to be an answer; `refused_by_guard` if a guard asks again.
        left: if it answered calls of an earlier run, why that run is over with them; None if the model is to be asked.
    """

    finish: RunFinish
    answered: bool = False
    waits: bool = False
    terminated: bool = False
    circles: bool = False
    misfits: bool = False
    lacks: RunFinish | None = None
    left: RunFinish | None = None


class RunState(NamedTuple):
    """The state of a run between two turns.

    Attributes:
        outcome: the last turn's outcome; None if there was no turn, or if its request is to be repeated.
        stopped: why it was stopped from outside.
        news: whether a user wrote while the model was answering.
        exhausted: the limit of its budget that is reached.
        turns: how many turns are left.
        retries: how many retries are left for a reply that does not fit.
        again: how many are left for a reply that is not an answer.
    """

    outcome: TurnOutcome | None = None
    stopped: RunFinish | None = None
    news: bool = False
    exhausted: Exhausted | None = None
    turns: int = 1
    retries: int = 0
    again: int = 0


def ending(run: RunState) -> RunFinish | None:
    """Why the run ends now; None if the model is to be asked.

    >>> ending(RunState(TurnOutcome("stop"))), ending(RunState(TurnOutcome("stop"), news=True))
    ('stop', None)
    """
    if run.stopped is not None:
        return run.stopped
    over = None if run.outcome is None else _over(run.outcome, run.retries, run.again)
    if over is not None and not (over == "stop" and run.news):
        return over
    if run.exhausted is not None:
        return run.exhausted
    return "max_turns" if run.turns < 1 else None


def _over(turn: TurnOutcome, retries: int, again: int) -> RunFinish | None:
    """Why the run is over after this turn, regardless of its remaining budget."""
    if turn.waits:
        return "approval"
    if turn.terminated:
        return "agent_terminated"
    if turn.circles:
        return "loop_detected"
    if turn.answered or turn.finish == "pause":
        return turn.left
    if turn.lacks is not None:
        return None if again > 0 else turn.lacks
    if turn.misfits:
        return None if retries > 0 else "invalid_output"
    return turn.finish
