"""`agentkit rollout`: run a policy on a data set, with tools, into a file of records."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import signal
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agentkit.checks.keys import shown_url, without_credentials
from agentkit.checks.visible_text import visible
from agentkit.cli.flag_words import whole
from agentkit.cli.help_text import SETTINGS, examples
from agentkit.cli.keyboard import read_object
from agentkit.cli.log_lines import tracebacks_in
from agentkit.cli.model_choice import add_format, add_model
from agentkit.cli.progress_line import ProgressLine
from agentkit.cli.rollout_figures import add_report, show_figures
from agentkit.cli.rollout_parts import add_policy, add_tools, format_of, policy_of, tokenizer_of, tools_of
from agentkit.cli.settings import fill
from agentkit.cli.terminal import complain
from agentkit.errors import ConfigError

if TYPE_CHECKING:
    from agentkit.rollout import Measures, Policy, RecordFile, Rollout, Sample, TrajectoryRecord

GIVES_UP: Final = 50
"""After this many errors of the policy one after another the command ends: a server is down, or refuses."""

_REQUIRED: Final = ("data", "tools", "out")
_LIMITS: Final[Mapping[str, tuple[type[int] | type[float], str]]] = {
    "max_tokens": (int, "tokens of one response"),
    "max_response_tokens": (int, "tokens after the prompt, all in all; needs --tokenizer"),
    "max_context_tokens": (int, "tokens with the prompt, the engine's context; needs --tokenizer"),
    "max_assistant_turns": (int, "responses of a trajectory"),
    "max_user_turns": (int, "times that a trajectory's calls are answered"),
    "max_parallel_calls": (int, "calls of one response that are run"),
    "max_tool_response": (int, "characters of a result that the model reads; default: 16384"),
    "call_timeout": (float, "seconds of one call; default: 60"),
    "turn_timeout": (float, "seconds of all calls of a response"),
    "trajectory_timeout": (float, "seconds of a trajectory"),
}
"""The options that are fields of `RolloutLimits`."""


def add(commands: Any) -> None:
    """Declare the command, its options, and the report."""
    command: argparse.ArgumentParser = commands.add_parser(
        "rollout",
        help="run a model on a data set with tools, and record every trajectory",
        description="Run a model on the samples of a data set, with tools, and append each finished trajectory to a "
        "file. The same command continues an interrupted rollout: finished trajectories are not run again.",
        epilog=examples(
            "agentkit rollout --data train.parquet -t my_tools:Search -m openai:gpt-5 --out run.jsonl",
            "agentkit rollout report run.jsonl",
            after=SETTINGS,
        ),
    )
    command.add_argument("--data", nargs="+", metavar="FILE", help="samples: parquet or JSON lines")
    add_tools(command)
    command.add_argument("--out", metavar="FILE", help="the file of records, such as run.jsonl")
    add_model(command)
    add_format(command, "hermes")
    add_policy(command)
    command.add_argument("--repeats", type=whole, default=1, metavar="N", help="trajectories per sample; default: 1")
    command.add_argument("--limit", type=whole, metavar="N", help="only the first samples")
    command.add_argument("--concurrency", type=whole, default=256, metavar="N", help="at the same time; default: 256")
    command.add_argument("--again", action="store_true", help="run trajectories again that ended by an error")
    command.add_argument("--sampling", default="{}", metavar="JSON", help="such as '{\"temperature\": 1.0}'")
    command.add_argument("--aggregate", choices=("sum", "last"), default="sum", help="of rewards; default: sum")
    for name, (kind, what) in _LIMITS.items():
        command.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="N", help=what)
    command.set_defaults(run=run, parser=command)
    add_report(command)


# ---------------------------------------------------------------- the rollout


def run(arguments: argparse.Namespace) -> int:
    """Roll out the samples that are not in the file yet. Exit status 1 if all trajectories ended by an error."""
    from agentkit.agent import OwnLoop
    from agentkit.rollout import RecordFile

    missing = [f"--{name}" for name in _REQUIRED if not getattr(arguments, name)]
    if arguments.script is None:
        fill(arguments, ("model",) if arguments.server else ("model", "base_url", "api_key_env"))
    if (arguments.model is None) == (arguments.script is None):
        missing.append("either --model or --script")
    if missing:
        arguments.parser.error(f"the following arguments are required: {', '.join(missing)}")
    tokenizer = tokenizer_of(arguments)
    policy = policy_of(arguments)
    rollout = _rollout(arguments, policy, tokenizer)
    count = _checked(rollout, arguments)
    again = (lambda record: record.failed) if arguments.again else None
    with RecordFile(arguments.out, drop=again) as records, OwnLoop() as loop:
        if records.dropped:
            complain(f"{records.dropped} trajectories that ended by an error are run again")
        records.describe(description(arguments))
        try:
            return loop.run(RolloutCommand(rollout, records, count * arguments.repeats, arguments).run())
        finally:
            if hasattr(policy, "aclose"):
                loop.run(policy.aclose())


class RolloutCommand:
    """One run of the command on one file."""

    def __init__(self, rollout: Rollout, records: RecordFile, total: int, arguments: argparse.Namespace) -> None:
        from agentkit.rollout import Measures

        self.rollout = rollout
        self.records = records
        self.total = total
        self.arguments = arguments
        self.measures: Measures = Measures(rollout.tools)
        self.errors = 0  # of this run
        self.last_error: str | None = None
        self.in_a_row = 0
        self.ran = 0

    async def run(self) -> int:
        """Run the remaining samples, and print the figures of the whole file, even after Ctrl-C."""
        self.read()
        work = asyncio.ensure_future(self.follow())
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGTERM, work.cancel)
        try:
            await work
        except asyncio.CancelledError:
            show_figures(self.measures)
            done = f"{self.measures.trajectories:,} of {self.total:,} trajectories"
            complain(f"interrupted: {done}; the same command continues")
            return 130
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
        show_figures(self.measures)
        status = self.status()
        complain(visible(f"report: agentkit rollout report {shlex.quote(str(self.records.path))}"))
        return status

    def read(self) -> None:
        """Count what earlier runs left in the file."""
        from agentkit.rollout import read_records

        if not len(self.records):
            return
        with ProgressLine("reading the file of records") as line:
            for number, record in enumerate(read_records(self.records.path), 1):
                self.measures.add(record)
                line.count(number, len(self.records))
        complain(f"{self.records.path}: {len(self.records):,} trajectories are there, and are not run again")

    async def follow(self) -> None:
        """Run the trajectories that are not in the file."""
        samples = _samples(self.arguments)
        stream = self.rollout.stream(samples, repeats=self.arguments.repeats, skip=self.records)
        log = self.records.path.with_name(f"{self.records.path.name}.log")
        with ProgressLine("rollout") as line, tracebacks_in(log, line.say):
            beat = asyncio.create_task(self.beat(line))
            try:
                await self.append(stream, line)
            finally:
                beat.cancel()

    async def beat(self, line: ProgressLine) -> None:
        """Show the progress, even while no trajectory ends."""
        while True:
            line.count(self.measures.trajectories, self.total, *self.notes())
            await asyncio.sleep(0.2)

    async def append(self, stream: AsyncGenerator[TrajectoryRecord, None], line: ProgressLine) -> None:
        """Append each trajectory as it ends."""
        async with aclosing(stream):
            async for record in stream:
                self.records.append(record)
                self.take(record)
                if self.in_a_row >= GIVES_UP:
                    line.say(f"stopped after {GIVES_UP} errors of the model one after another: {record.error}")
                    return

    def take(self, record: TrajectoryRecord) -> None:
        """Count one record of this run."""
        self.measures.add(record)
        self.ran += 1
        self.errors += record.failed
        self.last_error = record.error if record.failed else self.last_error
        self.in_a_row = self.in_a_row + 1 if record.end in ("policy_error", "cancelled") else 0

    def notes(self) -> Iterator[str]:
        """Yield the notes that are shown after the progress."""
        if self.measures.rewards.count:
            yield f"reward {self.measures.rewards.mean:.3g}"
        tools = self.measures.tools.values()
        if failed := sum(tool.failed_calls for tool in tools):
            yield f"failed calls {100 * failed / sum(tool.calls for tool in tools):.0f} %"
        if self.errors:
            yield f"{self.errors:,} ended by an error"

    def status(self) -> int:
        """The exit status; errors are reported."""
        if self.errors:
            complain(f"{self.errors:,} of {self.ran:,} trajectories ended by an error; --again runs them once more")
            complain(f"the last error: {self.last_error}")
        return int(self.ran > 0 and self.errors == self.ran)


def _samples(arguments: argparse.Namespace) -> Iterator[Sample]:
    from agentkit.rollout.samples.samples import read_samples

    return islice(read_samples(arguments.data), arguments.limit)


def _checked(rollout: Rollout, arguments: argparse.Namespace) -> int:
    """Check every sample before the first generation; returns how many there are.

    Raises:
        ConfigError: one is wrong, or there are none.
    """
    count = 0
    with ProgressLine("checking the samples") as line:
        for sample in _samples(arguments):
            rollout.check([sample])
            count += 1
            line.count(count)
    if not count:
        raise ConfigError(f"{', '.join(arguments.data)}: there are no samples")
    return count


def _rollout(arguments: argparse.Namespace, policy: Policy, tokenizer: Any) -> Rollout:
    from agentkit.rollout import Rollout, RolloutLimits

    limits = {name: value for name in _LIMITS if (value := getattr(arguments, name)) is not None}
    return Rollout(
        tools_of(arguments),
        policy,
        format=format_of(arguments),
        tokenizer=tokenizer,
        limits=RolloutLimits(**limits),
        aggregate=arguments.aggregate,
        concurrency=arguments.concurrency,
        sampling=read_object(arguments.sampling, "--sampling", '{"temperature": 1.0}'),
    )


def description(arguments: argparse.Namespace) -> dict[str, str]:
    """Describe a run for the report. Values of settings of other systems are left out: they may be keys."""
    from agentkit import __version__

    limits = [
        f"{name.replace('_', ' ')} {value}" for name in _LIMITS if (value := getattr(arguments, name)) is not None
    ]
    where = shown_url(arguments.server or arguments.base_url or "")
    model = f"script {arguments.script}" if arguments.model is None else arguments.model
    described = {
        "model": f"{model} at {where}" if where else model,
        "format": arguments.format,
        "data": ", ".join(arguments.data) + (f" (the first {arguments.limit:,})" if arguments.limit else ""),
        "tools": ", ".join(arguments.tools),
        "trajectories per sample": str(arguments.repeats),
        "sampling": "the engine's defaults" if arguments.sampling == "{}" else arguments.sampling,
        "limits": ", ".join(limits),
        "tokenizer": arguments.tokenizer or "",
        "command": f"agentkit {shlex.join(_without_settings(arguments.words))}",
        "agentkit": __version__,
    }
    return {name: without_credentials(text) for name, text in described.items() if text}


def _without_settings(words: Sequence[str]) -> Iterator[str]:
    """The words of the command; the values of options of other systems, whose names have underscores, as `…`."""
    theirs = False
    for word in words:
        name, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        theirs = "_" in name if name else theirs
        yield f"{name}{equals}{'…' if theirs and value else shown_url(value) if '://' in value else value}"
