"""What goes wrong in a rollout is data: nothing is lost, nothing stays unreleased, nothing hangs."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from time import perf_counter
from typing import Any

import pytest
from rollout_kit import Lines, all_of, failures, hermes, rolled, said, sample

from agentkit import Tool, ToolResult, openapi_schema
from agentkit.rollout import Generation, GenerationRequest, Rollout, RolloutLimits, TrajectoryRecord, as_rollout_tool

SOON = RolloutLimits(call_timeout=0.05)
LEAVE = threading.Event()


class Box(Tool):
    """Its methods do what tools do wrong."""

    live = 0
    began = threading.Event()
    """One of its calls hangs."""

    def __init__(self, fail: str = "") -> None:
        self.fail = fail
        self.made = False

    async def create(self) -> None:
        Box.live += 1
        if self.fail == "create":
            raise RuntimeError("no box")

    @openapi_schema
    async def hang(self) -> str:
        """Never return."""
        Box.began.set()
        await asyncio.Event().wait()
        return "never"

    @openapi_schema
    def hang_in_a_thread(self) -> str:
        """Never return, in a thread."""
        Box.began.set()
        LEAVE.wait(30)
        return "late"

    @openapi_schema
    async def ignore_cancelling(self) -> str:
        """Never end."""
        while not LEAVE.is_set():
            try:
                await asyncio.sleep(0.2)
            except asyncio.CancelledError:
                continue
        return "late"

    @openapi_schema
    async def fault(self, kind: str) -> str:
        """Raise."""
        raise {"ValueError": ValueError("no"), "exit": SystemExit(3), "cancel": asyncio.CancelledError()}[kind]

    @openapi_schema
    async def huge(self) -> str:
        """Much text."""
        return "x" * 100_000_000

    @openapi_schema
    async def fine(self) -> str:
        """All is well."""
        return "ok"

    async def calc_reward(self) -> float:
        if self.fail == "calc_reward":
            raise KeyError("score")
        return 1.0

    async def release(self) -> None:
        Box.live -= 1
        if self.fail == "release":
            raise OSError("in use")


@pytest.fixture(autouse=True)
def nothing_is_left() -> Any:
    """Every instance that began is released, whatever happened."""
    Box.live = 0
    Box.began.clear()
    LEAVE.clear()
    yield
    LEAVE.set()
    assert Box.live == 0


@pytest.mark.parametrize("tool", ["hang", "hang_in_a_thread"])
def test_a_tool_that_hangs_is_answered_in_time_and_the_trajectory_goes_on(tool: str) -> None:
    limits = RolloutLimits(call_timeout=0.5)  # long enough for a thread to begin on a busy machine
    record = rolled([Box], hermes(tool), hermes("fine"), limits=limits)
    assert failures(record) == ["timeout", None]
    assert record.calls[0].result.startswith("no result after 0.5 s: the tool was stopped")
    assert (record.end, record.final_rewards) == ("answered", {"hang": 1.0})


def test_a_tool_that_ignores_being_cancelled_is_abandoned() -> None:
    async def run() -> TrajectoryRecord:
        record = await Rollout([Box], Lines(hermes("ignore_cancelling"), hermes("fine")), limits=SOON).run(sample())
        LEAVE.set()
        await asyncio.sleep(0.25)
        return record

    assert failures(asyncio.run(run())) == ["timeout", None]


@pytest.mark.parametrize(
    ("kind", "said_of_it"), [("ValueError", "ValueError: no"), ("exit", "SystemExit: 3"), ("cancel", "CancelledError")]
)
def test_a_tool_that_raises_is_answered(kind: str, said_of_it: str) -> None:
    record = rolled([Box], hermes("fault", kind=kind), hermes("fine"))
    assert said(record) == [said_of_it, "ok"]
    assert failures(record) == ["tool_error", None]
    assert record.calls[0].metrics == {}


def test_a_result_of_100_mb_is_cut() -> None:
    record = rolled([Box], hermes("huge"), limits=RolloutLimits(max_tool_response=1000))
    assert len(record.calls[0].result) <= 1000
    assert "of 100,000,000 characters left out" in record.calls[0].result


@pytest.mark.parametrize(
    "garbage",
    ["", "\x00\ud800", "<tool_call>" * 50, "</tool_call>", "{" * 1000, "<tool_call>{}</tool_call>", "🤖" * 99],
)
def test_garbage_from_the_model_is_answered_or_ends_the_trajectory(garbage: str) -> None:
    record = rolled([Box], garbage, limits=RolloutLimits(max_assistant_turns=4))
    assert record.end in ("answered", "max_assistant_turns")
    assert all(call.error for call in record.calls)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (RuntimeError("the engine is gone"), "RuntimeError: the engine is gone"),
        (TimeoutError("60 s"), "TimeoutError: 60 s"),
        (Generation(finish="error", text=""), "the policy finished with an error"),
        (Generation(token_ids=[1]), "the policy returned token ids and no text: give the rollout a tokenizer"),
        (Generation(text=7), "the policy returned its text as int 7; expected a string"),  # type: ignore[arg-type]
        (Generation(text=b"x"), "the policy returned its text as bytes b'x'; expected a string"),  # type: ignore[arg-type]
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_a_policy_that_fails_ends_its_trajectory(fault: Any, error: str) -> None:
    record = rolled([Box], hermes("fine"), fault)
    assert (record.end, said(record)) == ("policy_error", ["ok"])
    assert record.error is not None
    assert error in record.error


def test_a_policy_that_was_told_to_stop_is_no_error() -> None:
    record = rolled([Box], hermes("fine"), asyncio.CancelledError())  # type: ignore[arg-type]
    assert (record.end, record.error, record.final_rewards) == ("cancelled", None, {})


def test_an_instance_that_cannot_be_created_ends_its_trajectory() -> None:
    record = rolled([as_rollout_tool(Box, {"fail": "create"})], hermes("fine"))
    assert (record.end, record.error, record.assistant_turns) == ("tool_error", "hang: RuntimeError: no box", 0)


@pytest.mark.parametrize(("fail", "words"), [("calc_reward", "KeyError: 'score'"), ("release", "OSError: in use")])
def test_a_hook_that_fails_is_on_the_record(fail: str, words: str) -> None:
    record = rolled([as_rollout_tool(Box, {"fail": fail})], hermes("fine"))
    found = record.unscored if fail == "calc_reward" else record.unreleased
    assert found == {"hang": words}
    assert record.end == "answered"


ENDS: list[tuple[str, BaseException]] = [
    ("SystemExit: 3", SystemExit(3)),
    ("GeneratorExit", GeneratorExit()),
    ("CancelledError", asyncio.CancelledError()),
]


class Quits(Tool):
    """One of its hooks raises what no `except Exception` catches, on the event loop or in a thread."""

    def __init__(self, hook: str, error: BaseException) -> None:
        self.hook, self.error = hook, error

    @openapi_schema
    async def fine(self) -> str:
        """All is well."""
        return "ok"

    def _ran(self, hook: str) -> None:
        if hook == self.hook:
            raise self.error

    async def create(self) -> None:
        self._ran("create")

    async def calc_reward(self) -> float:
        self._ran("calc_reward")
        return 1.0

    async def release(self) -> None:
        self._ran("release")


class QuitsInAThread(Quits):
    def create(self) -> None:  # type: ignore[override]
        self._ran("create")

    def calc_reward(self) -> float:  # type: ignore[override]
        self._ran("calc_reward")
        return 1.0

    def release(self) -> None:  # type: ignore[override]
        self._ran("release")


@pytest.mark.parametrize("kind", [Quits, QuitsInAThread])
@pytest.mark.parametrize("hook", ["constructor", "create", "calc_reward", "release"])
@pytest.mark.parametrize(("words", "error"), ENDS, ids=[words for words, _ in ENDS])
def test_whatever_a_hook_raises_is_on_the_record(
    kind: type[Quits], hook: str, words: str, error: BaseException
) -> None:
    class Begun(kind):  # type: ignore[valid-type, misc]
        def __init__(self) -> None:
            super().__init__(hook, error)
            self._ran("constructor")

    record = rolled([Begun], hermes("fine"))
    found = {"calc_reward": record.unscored, "release": record.unreleased}.get(hook, {"fine": record.error})
    assert words in (found["fine"] or "")
    assert record.end == ("answered" if hook in ("calc_reward", "release") else "tool_error")


def test_a_constructor_that_exits_ends_its_trajectory_also_without_a_create() -> None:
    class Exits:
        def __init__(self) -> None:
            raise SystemExit("no licence")

        @openapi_schema
        async def fine(self) -> str:
            """All is well."""
            return "ok"

    record = rolled([Exits], hermes("fine"))
    assert (record.end, record.error) == ("tool_error", "fine: RuntimeError: it raised SystemExit: no licence")


class Unfloatable:
    """As a tensor with several elements: it has no one number, and says so in its own way."""

    def __float__(self) -> float:
        raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")

    def __repr__(self) -> str:
        raise RuntimeError("no text either")


@pytest.mark.parametrize(
    ("reward", "words"),
    [(10**400, "int"), (-(10**5000), "int"), (Unfloatable(), "Unfloatable")],
    ids=["1e400", "1e5000", "tensor"],
)
def test_a_reward_that_is_no_number_ends_nothing(reward: Any, words: str, caplog: pytest.LogCaptureFixture) -> None:
    @openapi_schema
    def give() -> ToolResult:
        """Give."""
        return ToolResult("given", reward=reward)

    record = rolled([give], hermes("give"))
    assert (record.end, record.calls[0].reward) == ("answered", None)
    why = record.calls[0].metrics["refused_reward"]
    assert why.startswith(f"a reward is a finite number, found {words}")
    assert caplog.messages == [f"the tool give returned no usable reward: {why}; the call is recorded without one"]


def test_a_release_that_hangs_holds_nothing_up() -> None:
    class Stuck(Box):
        async def release(self) -> None:
            Box.live -= 1
            await asyncio.Event().wait()

    record = rolled([Stuck, _other], hermes("fine"), limits=SOON)
    assert record.unreleased == {"hang": "TimeoutError: not done after 0.05 s"}


def _other(n: int) -> int:
    """Another tool."""
    return n


# ---------------------------------------------------------------- cancelling


class Waiting:
    """A policy that tells when it was asked, and then waits."""

    def __init__(self, *lines: str) -> None:
        self.lines, self.asked = list(lines), asyncio.Event()

    async def generate(self, request: GenerationRequest) -> Generation:
        if request.turn < len(self.lines):
            return Generation(self.lines[request.turn])
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.parametrize("lines", [[], [hermes("fine")]])
def test_a_cancelled_trajectory_is_released_and_recorded(lines: list[str]) -> None:
    ended: list[TrajectoryRecord] = []

    async def cancelled() -> None:
        policy = Waiting(*lines)
        task = asyncio.create_task(Rollout([Box], policy, ended=ended.append).run(sample()))
        await policy.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert [(record.end, said(record)) for record in ended] == [("cancelled", ["ok"] * len(lines))]


@pytest.mark.parametrize("tool", ["hang", "hang_in_a_thread"])
def test_a_call_that_was_running_is_answered_when_its_trajectory_is_cancelled(tool: str) -> None:
    ended: list[TrajectoryRecord] = []

    async def cancelled() -> None:
        rollout = Rollout([Box], Lines(hermes("fine") + hermes(tool)), ended=ended.append)
        task = asyncio.create_task(rollout.run(sample()))
        while not Box.began.is_set():  # noqa: ASYNC110 - a thread cannot set an event of the loop
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert [failures(record) for record in ended] == [[None, "cancelled"]]


def test_a_release_is_not_interrupted_by_a_second_cancelling() -> None:
    ended: list[TrajectoryRecord] = []

    class Slow(Box):
        async def release(self) -> None:
            await asyncio.sleep(0.05)
            Box.live -= 1

    async def cancelled() -> None:
        policy = Waiting()
        task = asyncio.create_task(Rollout([Slow], policy, ended=ended.append).run(sample()))
        await policy.asked.wait()
        for _ in range(5):
            task.cancel()
            await asyncio.sleep(0.005)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert [(record.end, dict(record.unreleased)) for record in ended] == [("cancelled", {})]


# ---------------------------------------------------------------- limits


def test_each_turns_calls_have_their_time_together() -> None:
    limits = RolloutLimits(turn_timeout=0.05)
    record = rolled([Box], hermes("fine") + hermes("hang"), hermes("fine"), limits=limits)
    assert failures(record) == [None, "timeout", None]
    assert record.calls[1].result == "no result after 0.05 s of this turn: the tool was stopped"


def test_a_trajectory_has_its_time_for_tools() -> None:
    record = rolled([Box], hermes("fine"), hermes("hang"), hermes("fine"), limits=RolloutLimits(trajectory_timeout=1.0))
    assert (record.end, failures(record)) == ("deadline", [None, "timeout"])
    assert record.calls[1].result == "no result after 1 s of this trajectory: the tool was stopped"
    assert record.final_rewards == {"hang": 1.0}


def test_and_for_its_policy() -> None:
    async def run() -> TrajectoryRecord:
        return await Rollout([Box], Waiting(), limits=RolloutLimits(trajectory_timeout=0.05)).run(sample())

    record = asyncio.run(run())
    assert (record.end, record.error) == ("deadline", None)


def test_calls_that_wait_in_line_are_answered_when_the_turn_is_over() -> None:
    class Line(Tool):
        @openapi_schema(exclusive=True)
        async def wait(self) -> str:
            """Wait."""
            await asyncio.Event().wait()
            return "never"

    record = rolled([Line], hermes("wait") + hermes("wait"), limits=RolloutLimits(turn_timeout=0.05))
    assert failures(record) == ["timeout", "timeout"]
    assert record.calls[1].ran == 0.0


def test_the_excess_of_a_turn_is_answered() -> None:
    limits = RolloutLimits(max_parallel_calls=2)
    record = rolled([Box], hermes("fine") * 3, limits=limits)
    assert said(record) == ["ok", "ok", "not run: at most 2 calls run in one turn; call again in the next"]
    assert failures(record) == [None, None, "limit"]


@pytest.mark.parametrize(
    ("limits", "end", "turns", "codes"),
    [
        (RolloutLimits(max_assistant_turns=1), "max_assistant_turns", 1, ["limit"]),
        (RolloutLimits(max_assistant_turns=2), "max_assistant_turns", 2, [None, "limit"]),
        (RolloutLimits(max_user_turns=1), "max_user_turns", 2, [None, "limit"]),
    ],
)
def test_turns_are_limited_and_the_calls_of_the_last_one_answered(
    limits: RolloutLimits, end: str, turns: int, codes: list[str | None]
) -> None:
    record = rolled([Box], *[hermes("fine")] * 5, limits=limits)
    assert (record.end, record.assistant_turns, failures(record)) == (end, turns, codes)


@pytest.mark.parametrize(("keep", "begins", "ends"), [("head", "0123", "…]\n"), ("tail", "\n[…", "6789")])
def test_a_long_result_keeps_the_part_that_was_asked_for(keep: Any, begins: str, ends: str) -> None:
    def digits() -> str:
        """Many."""
        return "0123456789" * 100

    record = rolled([digits], hermes("digits"), limits=RolloutLimits(max_tool_response=200, keep=keep))
    (text,) = said(record)
    assert (text.startswith(begins), text.endswith(ends), len(text) <= 200) == (True, True, True)


def test_many_faults_at_once_lose_nothing() -> None:
    script = [hermes("fine") + hermes("fault", kind="ValueError"), hermes("hang"), "\x00<tool_call>", hermes("fine")]
    rollout = Rollout([Box], Lines(*script), limits=SOON, concurrency=32)
    began = perf_counter()
    records = asyncio.run(all_of(rollout, [sample(str(n)) for n in range(100)]))
    assert [failures(record)[:3] for record in records] == [[None, "tool_error", "timeout"]] * 100
    assert perf_counter() - began < 30


@pytest.mark.parametrize(
    "fault", [ValueError("disk full"), StopIteration(), StopAsyncIteration(), asyncio.CancelledError(), MemoryError()]
)
def test_what_ended_raises_costs_its_trajectory_only(fault: BaseException) -> None:
    def ended(record: TrajectoryRecord) -> None:
        if record.sample_id == "1":
            raise fault

    async def main() -> list[TrajectoryRecord]:
        rollout = Rollout([Box], Lines("Done."), concurrency=2, ended=ended)
        samples = [replace(sample(), id=str(n)) for n in range(6)]
        return [record async for record in rollout.stream(samples)]

    ends = {record.sample_id: (record.end, record.error) for record in asyncio.run(main())}
    end, error = ends.pop("1")
    assert (end, (error or "").partition(":")[0]) == ("rollout_error", type(fault).__name__)
    assert ends == dict.fromkeys("02345", ("answered", None))
