"""Rollouts: many trajectories at once, of one policy with the same tools.

Knows samples and records; what happens in a trajectory is in `trajectory_run`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from agentkit import formats
from agentkit.checks.bounds import Bound, Bounds, instance, refuse, whole
from agentkit.checks.spelling import takes
from agentkit.errors import ConfigError
from agentkit.formats import Format
from agentkit.processor.config import ProcessorConfig
from agentkit.rollout.policy.generation import Policy
from agentkit.rollout.policy.policies import ModelPolicy
from agentkit.rollout.records.record import TrajectoryRecord
from agentkit.rollout.records.scoring import Aggregate, aggregator
from agentkit.rollout.rollout_limits import RolloutLimits
from agentkit.rollout.rollout_setup import RolloutSetup
from agentkit.rollout.samples.sample import Sample
from agentkit.rollout.samples.sample_stream import distinct, list_bound, refuse_stream
from agentkit.rollout.tokens.chat_template import NO_PICTURES, ChatTemplate, has_media
from agentkit.rollout.tokens.tool_parsers import ToolParser
from agentkit.rollout.tools.decorated_tool import as_rollout_tool
from agentkit.rollout.tools.per_trajectory import RolloutTool
from agentkit.rollout.tools.sample_kwargs import check_sample
from agentkit.rollout.trajectory_run import TrajectoryRun
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.registry import ToolRegistry
from agentkit.toolspec import ToolSpec

_NO_LIMITS: Final = RolloutLimits()
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_BOUNDS: Final[Bounds] = {
    "tools": list_bound("a list of tools, such as [Shop]"),
    "tokenizer": Bound(lambda one: not isinstance(one, str), "a tokenizer: AutoTokenizer.from_pretrained(…)"),
    "limits": instance(RolloutLimits, "RolloutLimits(…)"),
    "concurrency": whole(1, "trajectories at once"),
}


class Rollout:
    """Runs a policy on samples, with tools, and records what happens.

    Args:
        tools: classes with decorated methods, of which each trajectory gets an instance; functions, or instances
            without state; `RolloutTool`s.
        policy: the model.
        format: the text format of its calls, by name or declaration. None: it calls natively, and tells its responses
            as events, as `ModelPolicy(model, format=None)` does.
        tokenizer: turns the conversation into token ids: of the kind of transformers, or a `ChatTemplate` around one
            that was made for these tools. None leaves tokens to the policy.
        limits: of each trajectory.
        aggregate: how a trajectory's rewards become one: `sum`, `last`, or a function of its record.
        concurrency: how many trajectories run at once.
        sampling: the engine's sampling parameters, passed on to the policy. `stop` replaces the format's own stop
            strings, which only `legacy` and `dr_tulu` have; `[]` for none.
        ended: called with each record as its trajectory ends, even if it was cancelled. If it raises, the trajectory's
            end is `rollout_error`; the others continue.
        template_settings: further arguments of the tokenizer's chat template, such as `{"enable_thinking": False}`.

    Raises:
        SchemaError: a tool is defined incorrectly, or two have the same name.
        ConfigError: something else is wrong; says what.
        FormatError: no format has that name.
    """

    @takes()
    def __init__(
        self,
        tools: Sequence[Any],
        policy: Policy,
        format: str | Format | None = "hermes",
        tokenizer: Any = None,
        limits: RolloutLimits = _NO_LIMITS,
        aggregate: Aggregate = "sum",
        concurrency: int = 256,
        sampling: Mapping[str, Any] = _NOTHING,
        ended: Callable[[TrajectoryRecord], None] | None = None,
        template_settings: Mapping[str, Any] = _NOTHING,
    ) -> None:
        refuse("Rollout", {"tools": tools, "limits": limits, "concurrency": concurrency}, _BOUNDS)
        refuse("Rollout", {"tokenizer": tokenizer}, _BOUNDS)
        if not callable(getattr(policy, "generate", None)):
            raise ConfigError(f"Rollout(policy={policy!r:.100}): expected a policy, with `async def generate(request)`")
        declared = None if format is None else formats.get(format)
        _same_format(policy, declared)
        sources = tuple(as_rollout_tool(tool) for tool in tools)
        registry = ToolRegistry(*(bound for source in sources for bound in source.tools.values()))
        self._sources: Mapping[str, RolloutTool] = {name: source for source in sources for name in source.tools}
        self._tools: Mapping[str, BoundTool] = {name: s.tools[name] for name, s in self._sources.items()}
        self._concurrency, self._ended = concurrency, ended
        self._fit: set[tuple[str, ...] | None] = set()  # what samples that tell no tool anything select
        specs = registry.offered_specs(declared)
        for name in ("max_response_tokens", "max_context_tokens"):
            if tokenizer is None and getattr(limits, name) is not None:
                raise ConfigError(f"RolloutLimits({name}=…) counts tokens: give the rollout a tokenizer")
        template = None
        if tokenizer is not None and declared is None:
            raise ConfigError(
                "Rollout(format=None, tokenizer=…): a server that reads native calls keeps the model's tokens; "
                "name the text format in which the model writes its calls, or omit the tokenizer"
            )
        if tokenizer is not None and declared is not None:
            template = _template(tokenizer, declared, specs, template_settings)
            sampling = _stopping(sampling, ToolParser(template.encoder.tokenizer, declared).stop_token_ids)
        sampling, stop = _own_stop(sampling)
        self._setup = RolloutSetup(
            sources,
            {spec.name: spec for spec in specs},
            policy,
            declared,
            ProcessorConfig(
                native=declared is None,
                formats=() if declared is None else declared,
                timeout=limits.call_timeout,
                max_output=limits.max_tool_response,
                keep=limits.keep,
            ),
            limits,
            sampling,
            stop,
            aggregator(aggregate),
            template,
        )

    @property
    def tools(self) -> Mapping[str, BoundTool]:
        """The tools by function name, for their schemas; each trajectory calls its own instances."""
        return self._tools

    def check(self, samples: Iterable[Sample]) -> None:
        """Check samples before anything runs.

        Raises:
            ConfigError: one names an unknown tool, or has keyword arguments that its tool cannot take, or two have the
                same id; or there is a picture or a file in its prompt, and a tokenizer, which has no tokens for it.
        """
        refuse_stream(samples)
        for sample in distinct(samples):
            self._check(sample)

    def _check(self, sample: Sample) -> None:
        """Check one; those that tell no tool anything are all alike, but for the tools that they select."""
        if self._setup.template is not None and any(map(has_media, sample.prompt)):
            raise ConfigError(f"sample {sample.id!r}: {NO_PICTURES}")
        chosen = None if sample.tool_selection is None else tuple(sample.tool_selection)
        if sample.tools_kwargs or chosen not in self._fit:
            check_sample(sample, self._sources)
        if not sample.tools_kwargs:
            self._fit.add(chosen)

    async def run(self, sample: Sample, repeat: int = 0) -> TrajectoryRecord:
        """One trajectory, from its prompt to its reward.

        Args:
            sample: the sample that it begins with.
            repeat: which of the sample's trajectories it is.

        Raises:
            ConfigError: it is not a sample, or does not fit the tools, see `check`.
            asyncio.CancelledError: it was cancelled. Its tools are released, and `ended` has its record.
        """
        if not isinstance(sample, Sample):
            raise ConfigError(f"run(sample={sample!r:.60}): expected a Sample")
        self._check(sample)
        return await self._run(sample, repeat)

    async def _run(self, sample: Sample, repeat: int) -> TrajectoryRecord:
        return await TrajectoryRun(self._setup, sample, repeat).run(self._ended)

    async def stream(
        self, samples: Iterable[Sample], repeats: int = 1, skip: Container[str] = ()
    ) -> AsyncGenerator[TrajectoryRecord, None]:
        """The trajectories of all samples, in the order in which they end. Ending the iteration cancels the others.

        Args:
            samples: a sequence is checked before the first generation, an iterator as it is read.
            repeats: how many trajectories each sample gets.
            skip: the ids of trajectories that are not run, such as the `RecordFile` of a rollout that was interrupted.

        Raises:
            ConfigError: a sample does not fit the tools, see `check`; or an argument is none of these.
        """
        refuse_stream(samples, repeats, skip)
        if isinstance(samples, Sequence):
            self.check(samples)
        todo = self._todo(samples, repeats, skip)
        running: set[asyncio.Task[TrajectoryRecord]] = set()
        done: asyncio.Queue[asyncio.Task[TrajectoryRecord]] = asyncio.Queue()
        try:
            more = True
            while more or running:
                while more and len(running) < self._concurrency:
                    task = next(todo, None)
                    more = task is not None
                    if task is not None:
                        running.add(task)
                        task.add_done_callback(done.put_nowait)
                if running:
                    task = await done.get()
                    running.discard(task)
                    yield task.result()
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)

    def _todo(
        self, samples: Iterable[Sample], repeats: int, skip: Container[str]
    ) -> Iterator[asyncio.Task[TrajectoryRecord]]:
        checked = isinstance(samples, Sequence)
        for sample in distinct(samples):
            if not checked:
                self._check(sample)
            for repeat in range(repeats):
                if (id := sample.trajectory_id(repeat)) not in skip:
                    yield asyncio.create_task(self._run(sample, repeat), name=f"trajectory {id}")


def _template(tokenizer: Any, format: Format, specs: Sequence[ToolSpec], settings: Mapping[str, Any]) -> ChatTemplate:
    if isinstance(tokenizer, ChatTemplate):
        shown, ours = sorted(tool.name for tool in tokenizer.tools), sorted(spec.name for spec in specs)
        if shown != ours:
            raise ConfigError(f"Rollout(tokenizer=…): a ChatTemplate for the tools {shown}; this rollout has {ours}")
        return tokenizer
    return ChatTemplate(tokenizer, format=format, tools=specs, settings=settings)


def _same_format(policy: Policy, format: Format | None) -> None:
    """A policy that teaches a format must be read in that: in any other its calls would be text, and never run."""
    if isinstance(policy, ModelPolicy) and policy.format != format:
        taught, read = (repr(one.name) if one is not None else "None" for one in (policy.format, format))
        raise ConfigError(
            f"Rollout(policy={policy!r}, format={read}): this policy's calls are in the format {taught}; "
            f"name the same format in both"
        )


def _own_stop(sampling: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...] | None]:
    """The sampling parameters without the user's stop strings, and these; None if there are none."""
    own = sampling.get("stop")
    if own is None:
        return sampling, None
    strings = (own,) if isinstance(own, str) else own
    if not isinstance(strings, Sequence) or not all(isinstance(one, str) and one for one in strings):
        raise ConfigError(f"Rollout(sampling={{'stop': {own!r:.60}}}): expected a string, or a list of strings")
    return {name: value for name, value in sampling.items() if name != "stop"}, tuple(strings)


def _stopping(sampling: Mapping[str, Any], ids: Sequence[int]) -> Mapping[str, Any]:
    """The sampling parameters with the tokens at which the engine must stop, because the model would continue there."""
    return {**sampling, "stop_token_ids": sorted({*sampling.get("stop_token_ids", ()), *ids})} if ids else sampling
