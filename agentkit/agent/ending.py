"""Why a run ends: a pure function of one small value. Knows no turn, no model, no journal and no clock.

The first row that holds decides:

| what is so | the run ends with |
|---|---|
| it was stopped from outside | that reason: `cancelled`, `time_budget` |
| a call of the last turn waits for a person | `approval` |
| a terminating tool succeeded | `agent_terminated` |
| the same call had the same answer too often | `loop_detected` |
| calls were answered, or the model only paused | nothing; or what an earlier run left it with |
| the reply is not what was wanted | `invalid_output`; nothing while it may be asked for again |
| the reply is `stop`, and a user wrote meanwhile | nothing |
| there is a reply | the model's own reason |
| a bound of the budget is reached | that bound |
| no turns are left | `max_turns` |
"""

from __future__ import annotations

from typing import NamedTuple

from agentkit.agent.options import RunFinish
from agentkit.agent.spending import Exhausted


class TurnOutcome(NamedTuple):
    """What a turn came to.

    Attributes:
        finish: why the model stopped.
        answered: whether it made calls that have answers.
        waits: whether a call of it waits for a person.
        terminated: whether a tool that ends the run succeeded.
        circles: whether the same call had the same answer too often.
        misfits: whether it is a final reply that is not what the run is to bring.
        left: why an earlier run, whose calls it answered, had nothing more to do after them.
    """

    finish: RunFinish
    answered: bool = False
    waits: bool = False
    terminated: bool = False
    circles: bool = False
    misfits: bool = False
    left: RunFinish | None = None


class RunState(NamedTuple):
    """How a run stands between two turns.

    Attributes:
        outcome: of the last turn; None where there was none, or where its request is to be made again.
        stopped: why it was stopped from outside.
        news: whether a user wrote while the model was answering.
        exhausted: the bound of its budget that is reached.
        turns: how many it has left.
        retries: how often a reply that misfits may still be asked for again.
    """

    outcome: TurnOutcome | None = None
    stopped: RunFinish | None = None
    news: bool = False
    exhausted: Exhausted | None = None
    turns: int = 1
    retries: int = 0


def ending(run: RunState) -> RunFinish | None:
    """Why the run ends now; None where the model is to be asked.

    >>> ending(RunState(TurnOutcome("stop"))), ending(RunState(TurnOutcome("stop"), news=True))
    ('stop', None)
    """
    if run.stopped is not None:
        return run.stopped
    over = None if run.outcome is None else _over(run.outcome, run.retries)
    if over is not None and not (over == "stop" and run.news):
        return over
    if run.exhausted is not None:
        return run.exhausted
    return "max_turns" if run.turns < 1 else None


def _over(turn: TurnOutcome, retries: int) -> RunFinish | None:
    """Why the run is over after this turn, whatever it may still spend."""
    if turn.waits:
        return "approval"
    if turn.terminated:
        return "agent_terminated"
    if turn.circles:
        return "loop_detected"
    if turn.answered or turn.finish == "pause":
        return turn.left
    if turn.misfits:
        return None if retries > 0 else "invalid_output"
    return turn.finish
