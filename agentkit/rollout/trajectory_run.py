"""One trajectory: its turns, its rewards and its end. Every way through it releases its instances.

Knows the states as a table (`trajectory.NEXT`), the policy by its protocol and the tools by theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from operator import attrgetter
from time import perf_counter
from typing import Final

from agentkit.checks.keys import words
from agentkit.errors import ConfigError
from agentkit.events import ArgumentDelta, CallEnd, CallError, CallStart, InventedResult, SourceEvent
from agentkit.formats import Format, quarantine
from agentkit.messages import ImagePart, TextPart, ToolMessage, UserMessage, answer_as_made
from agentkit.processor import not_run
from agentkit.processor.eager_tasks import LoopYield
from agentkit.processor.lost_attempts import find_attempt
from agentkit.processor.not_run import NotRun
from agentkit.processor.response_record import CallIds, OpenCalls, ResponseRecord
from agentkit.rollout.policy.generation import Generation, GenerationRequest, check_generation, ended_by
from agentkit.rollout.policy.native_turn import native
from agentkit.rollout.records.record import CallRecord, TrajectoryRecord
from agentkit.rollout.records.scoring import reward_of
from agentkit.rollout.records.trajectory import ERROR_ENDS, NEXT, TrajectoryEnd, TrajectoryState
from agentkit.rollout.rollout_setup import RolloutSetup, SoFar
from agentkit.rollout.samples.sample import Sample
from agentkit.rollout.tokens.stop_strings import whole
from agentkit.rollout.tokens.token_history import TokenHistory
from agentkit.rollout.tokens.turn_reading import events_of, with_attempts, without_made_up
from agentkit.rollout.tools.foreign_tasks import undisturbed
from agentkit.rollout.tools.instances import Instances, ToolNotCreated
from agentkit.rollout.tools.offered_tools import OfferedTools
from agentkit.rollout.turn_calls import CallAnswer, TurnCalls

_OF_OURS: Final = frozenset(("traceback", "problems", "position"))
"""The keys that the processor adds to the metadata of an error; no metrics."""

_PARTIAL: Final = frozenset((CallStart, ArgumentDelta))
"""Events that the end of a call repeats; nobody reads them here."""
_CALLS: Final = (CallEnd, CallError)
_WHOLE: Final = frozenset(("stop", "tool_calls", "unknown"))
"""The finishes after which nothing more would have come."""
_INDEX: Final = attrgetter("index")
_REFUSED: Final[Mapping[TrajectoryEnd, NotRun]] = {
    "answered": not_run.TAKEN_BACK,
    "cancelled": not_run.GIVEN_UP,
    "policy_error": not_run.POLICY_FAILED,
    "response_length": not_run.NO_TOKENS,
    "max_assistant_turns": not_run.LAST_RESPONSE,
    "max_user_turns": not_run.LAST_ANSWER,
}
"""What the calls of a last response are answered, by why it is the last."""

_WORDS: Final[Mapping[TrajectoryEnd, str]] = {
    "cancelled": "the policy gave the response up: its engine aborted the request",
    "policy_error": "the policy finished with an error",
}
"""The words of a record for a response that is not the policy's own."""

WhyEnded = tuple[TrajectoryEnd, str | None]
"""Why the turns ended, and the words of the error."""

ReadCalls = list[CallEnd | CallError]


class TrajectoryRun:
    """One trajectory while it runs.

    Args:
        setup: of the rollout.
        sample: the sample that it begins with.
        repeat: which of the sample's trajectories it is.
    """

    def __init__(self, setup: RolloutSetup, sample: Sample, repeat: int) -> None:
        self.id = sample.trajectory_id(repeat)
        self.state = TrajectoryState.PENDING
        self.so_far = SoFar(list(sample.prompt))
        self._setup, self._sample, self._repeat = setup, sample, repeat
        self._specs = setup.tools_for(sample)
        self._instances = Instances(setup.sources, sample, setup.limits.call_timeout, setup.faults)
        self._tools = OfferedTools(self._instances.by_name, self._specs, sample.tools_kwargs)
        numbers = count()
        self._ids = CallIds(lambda: f"call_{next(numbers)}")
        self._deadline: float | None = None
        self._tokens: TokenHistory | None = None

    async def run(self, ended: Callable[[TrajectoryRecord], None] | None = None) -> TrajectoryRecord:
        """Run it to its end.

        Args:
            ended: called with the record, even if this is cancelled. Its exception is the error on the record.

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
        scored = ending[0] not in ERROR_ENDS
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
            self._setup.faults.report_error("ended", e, "the error is on the trajectory's record")
            return replace(record, end="rollout_error", error=words(e), reward=0.0)
        return record

    def _go(self, state: TrajectoryState) -> None:
        if state not in NEXT[self.state]:
            raise AssertionError(f"{self.id}: {state} does not follow {self.state}")
        self.state = state

    # -------------------------------------------------------------- the beginning and the end

    async def _begin(self) -> WhyEnded | None:
        """Create the instances; their messages are read before the first turn."""
        try:
            said = await self._instances.create(self.id)
        except ToolNotCreated as e:
            return "tool_error", str(e)
        for result in said:
            parts = (self._harmless(part) for part in result.parts)
            self.so_far.messages.append(UserMessage(tuple(parts)))
        setup = self._setup
        if setup.template is not None:
            limits = setup.limits.max_response_tokens, setup.limits.max_context_tokens
            try:
                self._tokens = TokenHistory(setup.template, self.so_far.messages, self._specs, *limits)
            except ConfigError as e:
                return "policy_error", f"the prompt cannot be tokenized: {e}"
            if self._tokens.budget == 0:
                return "response_length", None
        seconds = setup.limits.trajectory_timeout
        self._deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
        return None

    def _harmless(self, part: TextPart | ImagePart) -> TextPart | ImagePart:
        if isinstance(part, ImagePart):
            return part
        format, template = self._setup.format, self._setup.template
        text = part.text if format is None else quarantine(part.text, format, self._specs)
        return TextPart(text if template is None else template.encoder.break_tokens(text))

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
        if record.failed:
            return record
        try:
            reward = reward_of(self._setup.score(record)) or 0.0
        except Exception as e:  # noqa: BLE001 - the boundary: a bad rollout is data, even if it cannot be scored
            self._setup.faults.report_error("aggregate", e, "the error is on the trajectory's record")
            return replace(record, unscored={**of.unscored, "aggregate": words(e)})
        object.__setattr__(record, "reward", reward)  # nobody has it yet; a copy would cost as much as a turn
        return record

    # -------------------------------------------------------------- the turns

    async def _take_turns(self) -> WhyEnded:
        loop_yield = LoopYield()
        while True:
            if loop_yield.due:  # neither the policy nor a tool may have had to wait
                await asyncio.sleep(0)
            self._go(TrajectoryState.GENERATING)
            try:
                generation = await self._generate()
                calls = self._read(generation)
            except TimeoutError as e:
                return ("deadline", None) if self._late() else ("policy_error", words(e))
            except (Exception, SystemExit) as e:  # noqa: BLE001 - the boundary: what a policy raises ends its trajectory
                full = getattr(e, "kind", "") == "too_long"
                hint = " (RolloutLimits(max_context_tokens=…) ends a trajectory before)" if full else ""
                return "policy_error", words(e) + hint
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
        left = None if self._tokens is None else self._tokens.budget
        return most if left is None else left if most is None else min(most, left)

    def _written(self, generation: Generation, format: Format) -> str:
        """The text of a response, and its tokens into the history."""
        text: object = generation.text
        if text is not None and not isinstance(text, str):
            raise ConfigError(f"the policy returned its text as {type(text).__name__} {text!r:.100}; expected a string")
        if generation.events is not None:
            raise ConfigError(
                f"the policy returned events, as native models do, and the rollout reads {format.name}: use "
                "Rollout(format=None), or a policy that writes its calls as text"
            )
        if self._stop and generation.token_ids is None:
            generation = replace(generation, text=whole(generation, self._stop, format, self._specs))
        if self._tokens is not None:
            return self._tokens.wrote(generation)
        if generation.text is None:
            raise ConfigError("the policy returned token ids and no text: give the rollout a tokenizer to read them")
        return generation.text

    def _read(self, generation: Generation) -> ReadCalls:
        """Read a response: it becomes a message; returns its calls, good and bad."""
        check_generation(generation)
        response, format = ResponseRecord(self._ids), self._setup.format
        kept = native(generation, response) if format is None else self._parsed(generation, response, format)
        calls: ReadCalls = [event for event in kept if isinstance(event, (CallEnd, CallError))]
        self.so_far.messages.append(response.draft.message())
        self.so_far.turns += 1
        if len(calls) > 1:
            calls.sort(key=_INDEX)
        if not calls:
            unread = format is None and find_attempt(response.draft.message().text, self._specs)
            self.so_far.lacks = (
                "invented_result" if InventedResult in response.odd else "unread_call" if unread else "answered"
            )
        return calls

    def _parsed(self, generation: Generation, response: ResponseRecord, format: Format) -> Iterable[SourceEvent]:
        text = self._written(generation, format)
        thinking = None if self._tokens is None else self._tokens.thinking
        events: Sequence[SourceEvent] = events_of(text, format, self._specs, thinking=thinking)
        if any(isinstance(event, _CALLS) for event in events):
            events = without_made_up(events)
        elif generation.finish in _WHOLE and not any(isinstance(event, InventedResult) for event in events):
            events, other = with_attempts(events, format, self._specs)
            if other is not None:
                self._setup.unread(other)
        opened = OpenCalls(textual=True, restores=True)
        return [kept for each in events if type(each) not in _PARTIAL for kept in response.keep_one(each, opened)]

    async def _answer(self, calls: ReadCalls, generation: Generation) -> WhyEnded | None:
        """Answer all calls of a turn; says why it was the last one, if it was."""
        turn = TurnCalls(self._tools, self._setup.config, self._setup.limits, self._deadline, self._setup.faults)
        last = self._last_turn(generation)
        begun = len(self.so_far.messages)
        try:
            if last is None:
                await turn.run(calls)
            else:
                turn.refuse(calls, _REFUSED[last])
        finally:
            for event in calls:
                self._keep(event.index, turn.answers[event.index])
        self.so_far.answered += 1
        if last is not None:
            return last, _WORDS.get(last)
        if turn.ends:
            return "terminated_by_tool", None
        if self._late():
            return "deadline", None
        return self._told(begun)

    def _told(self, begun: int) -> WhyEnded | None:
        """Append the answers, from this message on, to the tokens; returns the trajectory's end if there is no room."""
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
        if (end := ended_by(generation)) is not None:
            return end
        if self._tokens is not None and self._tokens.budget == 0:
            return "response_length"
        if limits.max_assistant_turns is not None and self.so_far.turns >= limits.max_assistant_turns:
            return "max_assistant_turns"
        if limits.max_user_turns is not None and self.so_far.answered >= limits.max_user_turns:
            return "max_user_turns"
        return None

    def _without_calls(self, generation: Generation) -> WhyEnded:
        """How a trajectory ends whose last response has no calls."""
        if (end := ended_by(generation)) in ("cancelled", "policy_error"):
            return end, _WORDS[end]
        full = generation.finish == "length" or (self._tokens is not None and self._tokens.budget == 0)
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
            self._setup.faults.report_value(call.name, f"no usable reward: {e}", "the call is recorded without one")
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
