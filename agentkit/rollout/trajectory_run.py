"""One trajectory: its turns, its rewards and its end. Every way through it releases what it created.

Knows the states as a table (`trajectory.NEXT`), the policy by its protocol and the tools by theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from operator import attrgetter
from time import perf_counter
from typing import Any, Final

from agentkit.checks.keys import words
from agentkit.errors import ConfigError, ErrorCode
from agentkit.events import ArgumentDelta, CallEnd, CallError, CallStart, InventedResult, SourceEvent
from agentkit.formats import Format, Parser, quarantine
from agentkit.messages import ImagePart, Message, TextPart, ToolMessage, UserMessage, answer_as_made
from agentkit.processor.config import ProcessorConfig
from agentkit.processor.faults import Faults
from agentkit.processor.intake import CallIds, Intake, OpenCalls
from agentkit.processor.lost_attempts import attempted
from agentkit.processor.starting import Breath
from agentkit.rollout.calling import CallAnswer, TurnCalls
from agentkit.rollout.policy.generation import Generation, GenerationRequest, Policy, checked, taken_back
from agentkit.rollout.policy.native_turn import native
from agentkit.rollout.records.record import CallRecord, TrajectoryRecord
from agentkit.rollout.records.scoring import reward_of
from agentkit.rollout.records.trajectory import NEXT, TrajectoryEnd, TrajectoryState
from agentkit.rollout.rollout_limits import RolloutLimits
from agentkit.rollout.samples.sample import Sample
from agentkit.rollout.tokens.chat_template import ChatTemplate
from agentkit.rollout.tokens.stopping import stop_strings, whole
from agentkit.rollout.tokens.token_history import TokenHistory
from agentkit.rollout.tools.bounded import undisturbed
from agentkit.rollout.tools.instances import Instances, ToolNotCreated
from agentkit.rollout.tools.offered import OfferedTools
from agentkit.rollout.tools.per_trajectory import RolloutTool
from agentkit.toolspec import ToolSpec

_OF_OURS: Final = frozenset(("traceback", "problems", "position"))
"""What the processor adds to the metadata of an error; no metric."""

_PARTIAL: Final = frozenset((CallStart, ArgumentDelta))
"""What the end of a call says once more; nobody watches it while it is read."""
_INDEX: Final = attrgetter("index")
_REFUSED: Final[Mapping[TrajectoryEnd, tuple[ErrorCode, str]]] = {
    "answered": ("denied", "not run: the policy took this response back"),
    "response_length": ("limit", "not run: the trajectory has as many tokens as it may have"),
    "max_assistant_turns": ("limit", "not run: this was the last response of the trajectory"),
    "max_user_turns": ("limit", "not run: the trajectory is answered no more"),
}
"""What the calls of a last response are answered, by why it is the last."""

WhyEnded = tuple[TrajectoryEnd, str | None]
"""Why the turns ended, and the words of the error."""

ReadCalls = list[CallEnd | CallError]


class _TextCalls(OpenCalls):
    """The calls of a response that is read as a whole: none was made before it, and none is quoted."""

    textual = True
    restores = True


@dataclass(frozen=True, slots=True)
class RolloutSetup:
    """What all trajectories of a rollout share.

    Args:
        sources: the tools.
        specs: what the model is shown of them, by function name.
        policy: the model.
        format: how it writes calls; None for native ones.
        config: which calls run, and how.
        limits: of a trajectory.
        sampling: passed on to the policy.
        stop: the user's stop strings, in place of those of the format; None if there are none.
        score: adds up a trajectory's rewards.
        template: how the conversation becomes token ids; None without a tokenizer.
        faults: logs what the tools' authors must fix.
    """

    sources: tuple[RolloutTool, ...]
    specs: Mapping[str, ToolSpec]
    policy: Policy
    format: Format | None
    config: ProcessorConfig
    limits: RolloutLimits
    sampling: Mapping[str, Any]
    stop: tuple[str, ...] | None
    score: Callable[[TrajectoryRecord], float]
    template: ChatTemplate | None = None
    faults: Faults = field(default_factory=Faults)

    def stops(self, tools: Sequence[ToolSpec]) -> tuple[str, ...]:
        """Where the policy ends a turn, if it may call these tools."""
        return self.stop if self.stop is not None else () if self.format is None else stop_strings(self.format, tools)

    def shown(self, sample: Sample) -> tuple[ToolSpec, ...]:
        """The tools that the model may call."""
        names = sample.tool_selection
        return tuple(spec for name, spec in self.specs.items() if names is None or name in names)


@dataclass(slots=True)
class SoFar:
    """What has happened in a trajectory.

    Args:
        messages: the conversation.
        calls: every call, with its answer.
        turns: how many responses there were.
        answered: how many of them were answered.
        generating: seconds spent in the policy.
        lacks: how the trajectory ends with the last response, if that has no calls.
    """

    messages: list[Message]
    calls: list[CallRecord] = field(default_factory=list)
    turns: int = 0
    answered: int = 0
    generating: float = 0.0
    lacks: TrajectoryEnd = "answered"


class TrajectoryRun:
    """One trajectory while it runs.

    Args:
        setup: of the rollout.
        sample: what it begins with.
        repeat: which of the sample's trajectories it is.
    """

    def __init__(self, setup: RolloutSetup, sample: Sample, repeat: int) -> None:
        self.id = sample.trajectory_id(repeat)
        self.state = TrajectoryState.PENDING
        self.so_far = SoFar(list(sample.prompt))
        self._setup, self._sample, self._repeat = setup, sample, repeat
        self._specs = setup.shown(sample)
        self._instances = Instances(setup.sources, sample, setup.limits.call_timeout, setup.faults)
        self._tools = OfferedTools(self._instances.by_name, self._specs, sample.tools_kwargs)
        numbers = count()
        self._ids = CallIds(lambda: f"call_{next(numbers)}")
        self._deadline: float | None = None
        self._tokens: TokenHistory | None = None

    async def run(self, ended: Callable[[TrajectoryRecord], None] | None = None) -> TrajectoryRecord:
        """Run it to its end.

        Args:
            ended: called with the record, also if this is cancelled. What it raises is the error on the record.

        Raises:
            asyncio.CancelledError: this was cancelled; its tools are released.
        """
        began, cancelled = perf_counter(), False
        try:
            ending = await self._begin() or await self._take_turns()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            cancelled = task is not None and task.cancelling() > 0  # else the policy said so of itself
            ending = "cancelled", None
        self._go(TrajectoryState.SCORING)
        scored = ending[0] not in ("cancelled", "tool_error")
        if self._instances.idle:
            await self._finish(scored)
        else:
            cancelled = await undisturbed(self._finish(scored)) or cancelled
        self._go(TrajectoryState.TERMINATED)
        record = self._record(ending, perf_counter() - began)
        if ended is not None:
            record = self._handed(record, ended)
        if cancelled:
            raise asyncio.CancelledError
        return record

    def _handed(self, record: TrajectoryRecord, ended: Callable[[TrajectoryRecord], None]) -> TrajectoryRecord:
        """The record after `ended` had it; with the error if that raised."""
        try:
            ended(record)
        except (Exception, asyncio.CancelledError) as e:  # noqa: BLE001 - the boundary: it costs this trajectory only
            self._setup.faults.raised("ended", e, "the error is on the trajectory's record")
            return replace(record, end="rollout_error", error=words(e))
        return record

    def _go(self, state: TrajectoryState) -> None:
        if state not in NEXT[self.state]:
            raise AssertionError(f"{self.id}: {state} does not follow {self.state}")
        self.state = state

    # -------------------------------------------------------------- the beginning and the end

    async def _begin(self) -> WhyEnded | None:
        """Create the instances; what they say is read before the first turn."""
        try:
            said = await self._instances.create(self.id)
        except ToolNotCreated as e:
            return "tool_error", str(e)
        for result in said:
            parts = (self._harmless(part) for part in result.parts)
            self.so_far.messages.append(UserMessage(tuple(parts)))
        setup = self._setup
        if setup.template is not None:
            limit = setup.limits.max_response_tokens
            try:
                self._tokens = TokenHistory(setup.template, self.so_far.messages, self._specs, limit)
            except ConfigError as e:
                return "policy_error", f"the prompt cannot be tokenized: {e}"
        seconds = setup.limits.trajectory_timeout
        self._deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
        return None

    def _harmless(self, part: TextPart | ImagePart) -> TextPart | ImagePart:
        if isinstance(part, ImagePart):
            return part
        format, template = self._setup.format, self._setup.template
        text = part.text if format is None else quarantine(part.text, format, self._specs)
        return TextPart(text if template is None else template.encoder.broken(text))

    async def _finish(self, scored: bool) -> None:
        if scored:
            await self._instances.score()
        await self._instances.release()

    def _record(self, ending: WhyEnded, seconds: float) -> TrajectoryRecord:
        end, error = ending
        of = self._instances
        record = TrajectoryRecord(
            id=self.id,
            sample_id=self._sample.id,
            repeat=self._repeat,
            messages=tuple(self.so_far.messages),
            end=end,
            error=error,
            calls=tuple(self.so_far.calls),
            tokens=None if self._tokens is None else self._tokens.record(),
            final_rewards=of.rewards,
            assistant_turns=self.so_far.turns,
            seconds=seconds,
            generating=self.so_far.generating,
            unscored=of.unscored,
            unreleased=of.unreleased,
            extra=self._sample.extra,
        )
        try:
            reward = reward_of(self._setup.score(record)) or 0.0
        except Exception as e:  # noqa: BLE001 - the boundary: a bad rollout is data, also one that cannot be scored
            self._setup.faults.raised("aggregate", e, "the error is on the trajectory's record")
            return replace(record, unscored={**of.unscored, "aggregate": words(e)})
        object.__setattr__(record, "reward", reward)  # nobody has it yet; a copy would cost as much as a turn
        return record

    # -------------------------------------------------------------- the turns

    async def _take_turns(self) -> WhyEnded:
        breath = Breath()
        while True:
            if breath.due:  # neither the policy nor a tool may have had to wait
                await asyncio.sleep(0)
            self._go(TrajectoryState.GENERATING)
            try:
                generation = await self._generate()
                calls = self._read(generation)
            except TimeoutError as e:
                return ("deadline", None) if self._late() else ("policy_error", words(e))
            except (Exception, SystemExit) as e:  # noqa: BLE001 - the boundary: what a policy raises ends its trajectory
                return "policy_error", words(e)
            if not calls:
                return self._without_calls(generation)
            self._go(TrajectoryState.PROCESSING_TOOLS)
            ending = await self._answer(calls, generation)
            if ending is not None:
                return ending

    def _late(self) -> bool:
        return self._deadline is not None and asyncio.get_running_loop().time() >= self._deadline

    async def _generate(self) -> Generation:
        setup, tokens = self._setup, self._tokens
        request = GenerationRequest(
            self.id,
            tuple(self.so_far.messages),
            self._specs,
            None if tokens is None else tokens.ids,
            self._room(),
            setup.sampling,
            self._stop,
            turn=self.so_far.turns,
        )
        began = perf_counter()
        try:
            if self._deadline is None:
                return await setup.policy.generate(request)
            async with asyncio.timeout_at(self._deadline):
                return await setup.policy.generate(request)
        finally:
            self.so_far.generating += perf_counter() - began

    @property
    def _stop(self) -> tuple[str, ...]:
        return self._setup.stops(self._specs)

    def _room(self) -> int | None:
        """How many tokens the next turn may have."""
        most = self._setup.limits.max_tokens
        left = None if self._tokens is None else self._tokens.left
        return most if left is None else left if most is None else min(most, left)

    def _written(self, generation: Generation, format: Format) -> str:
        """The text of a response, and its tokens into the history."""
        told: object = generation.text
        if told is not None and not isinstance(told, str):
            raise ConfigError(f"the policy told its text as {type(told).__name__} {told!r:.100}; expected a string")
        if generation.events is not None:
            raise ConfigError(
                f"the policy told events, as models that call natively do, and the rollout reads {format.name}: use "
                "Rollout(format=None), or a policy that writes its calls as text"
            )
        if self._stop and generation.token_ids is None:
            generation = replace(generation, text=whole(generation, self._stop, format, self._specs))
        if self._tokens is not None:
            return self._tokens.wrote(generation)
        if generation.text is None:
            raise ConfigError("the policy told token ids and no text: give the rollout the tokenizer that reads them")
        return generation.text

    def _read(self, generation: Generation) -> ReadCalls:
        """Read a response: it becomes a message; returns its calls, good and bad."""
        checked(generation)
        intake, format = Intake(self._ids), self._setup.format
        kept = native(generation, intake) if format is None else self._parsed(generation, intake, format)
        calls: ReadCalls = [event for event in kept if isinstance(event, (CallEnd, CallError))]
        self.so_far.messages.append(intake.draft.message())
        self.so_far.turns += 1
        if len(calls) > 1:
            calls.sort(key=_INDEX)
        if not calls:
            unread: TrajectoryEnd = "unread_call" if attempted(intake.draft.message().text, self._specs) else "answered"
            self.so_far.lacks = "invented_result" if InventedResult in intake.odd else unread
        return calls

    def _parsed(self, generation: Generation, intake: Intake, format: Format) -> Iterable[SourceEvent]:
        text = self._written(generation, format)
        thinking = self._tokens is not None and self._tokens.thinking
        events = Parser(format, self._specs, thinking=thinking).close(text)
        opened = _TextCalls()
        return [intake.take(event, opened) for event in events if type(event) not in _PARTIAL]

    async def _answer(self, calls: ReadCalls, generation: Generation) -> WhyEnded | None:
        """Answer all calls of a turn; says why it was the last one, if it was."""
        turn = TurnCalls(self._tools, self._setup.config, self._setup.limits, self._deadline, self._setup.faults)
        last = self._last_turn(generation)
        begun = len(self.so_far.messages)
        try:
            if last is None:
                await turn.run(calls)
            else:
                turn.refuse(calls, *_REFUSED[last])
        finally:
            for event in calls:
                self._keep(event.index, turn.answers[event.index])
        self.so_far.answered += 1
        if last is not None:
            return last, None
        if turn.ends:
            return "terminated_by_tool", None
        if self._late():
            return "deadline", None
        return self._told(begun)

    def _told(self, begun: int) -> WhyEnded | None:
        """Append what the model was answered, from this message on, to its tokens; says so if it has no room."""
        if self._tokens is None:
            return None
        answers = [message for message in self.so_far.messages[begun:] if isinstance(message, ToolMessage)]
        try:
            fits = self._tokens.answered(answers)
        except ConfigError as e:
            return "policy_error", f"the answers cannot be tokenized: {e}"
        return None if fits else ("response_length", None)

    def _last_turn(self, generation: Generation) -> TrajectoryEnd | None:
        """Why no calls may run any more."""
        limits = self._setup.limits
        if taken_back(generation):
            return "answered"
        if self._tokens is not None and self._tokens.left == 0:
            return "response_length"
        if limits.max_assistant_turns is not None and self.so_far.turns >= limits.max_assistant_turns:
            return "max_assistant_turns"
        if limits.max_user_turns is not None and self.so_far.answered >= limits.max_user_turns:
            return "max_user_turns"
        return None

    def _without_calls(self, generation: Generation) -> WhyEnded:
        """How a trajectory ends whose last response has no calls."""
        if generation.finish == "error":
            return "policy_error", "the policy finished with an error"
        if generation.finish == "cancelled":
            return "cancelled", None
        full = generation.finish == "length" or (self._tokens is not None and self._tokens.left == 0)
        return ("response_length" if full else self.so_far.lacks), None

    def _keep(self, index: int, answer: CallAnswer) -> None:
        """A call's answer into the conversation and into the record."""
        call, result, parts = answer.call, answer.result, answer.parts
        self.so_far.messages.append(answer_as_made(call.id, call.name, parts, result.code))
        metrics, reward = result.metadata, None
        if metrics and not result.ok:
            metrics = {name: value for name, value in metrics.items() if name not in _OF_OURS}
        try:
            reward = reward_of(result.reward)
        except ValueError as e:
            self._setup.faults.returned(call.name, str(e))
            metrics = {**metrics, "refused_reward": str(e)}
        self.so_far.calls.append(
            CallRecord(
                self.so_far.turns - 1,
                index,
                call.id,
                call.name,
                call.arguments,
                _text(parts),
                result.code,
                reward,
                metrics,
                answer.queued,
                answer.ran,
                None if self._tokens is None else self._tokens.span,
            )
        )


def _text(parts: tuple[TextPart | ImagePart, ...]) -> str:
    if len(parts) == 1 and type(parts[0]) is TextPart:
        return parts[0].text
    return "".join(part.text for part in parts if isinstance(part, TextPart))
