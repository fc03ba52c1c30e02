"""How many of 47 tasks a live model does right, by the way in which it calls tools.

    python benchmarks/real_models.py --server http://127.0.0.1:8115/v1 --model qwen
    python benchmarks/real_models.py --server … --model … --modes native,xml,hermes,xml+c,openai-agents --json runs.json
    python benchmarks/real_models.py --compare before.json after.json

The server is any that speaks chat completions. A mode is `native`, a text format, a format with `+c` for a grammar,
`auto` for all formats that any model can write, or a peer: `openai-agents`, `pydantic-ai`. Temperature 0, 400 tokens
for a response, 6 responses for a message. `--json FILE` keeps every run, and a second start continues there; a server
that is gone ends the program and costs no task.

right: the tools were called with the right values, nothing else was changed, and the last answer says what was asked.
calls, tokens, seconds: for each task; calls are those that ran; tokens are what the server counted; seconds pass with
`--concurrency` tasks at the same time. invented: runs that showed or kept a result or another role's turn that the
model wrote itself. unread: runs whose answer contains a call of an offered tool. empty: runs that ended without text.
errors: runs that ended with an exception, at a limit or by the timeout.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Protocol

from real_models_judges import invented, right, unread
from real_models_modes import PEERS, Mode, Transcript, modes, versions
from real_models_tasks import KINDS, TASKS, Task, World, spread

Run = dict[str, Any]
DEFAULT: Final = "native,xml,invoke,hermes,qwen3_coder,openai-agents,pydantic-ai"
ANSWERED: Final = frozenset(("stop", "length", "empty"))
"""The ends of a run that are not errors."""

COLUMNS: Final = ("calls", "tokens in", "tokens out", "seconds", "invented", "unread", "empty", "errors")


async def run(task: Task, name: str, mode: Mode, timeout: float) -> Run:
    """Run one task, at most `timeout` seconds, and judge it."""
    world, script = World(set(task.busy)), Transcript()
    started, error = time.perf_counter(), ""
    try:
        await asyncio.wait_for(mode(task, world, script), timeout)
    except Exception as e:  # noqa: BLE001 - peers' errors have no common type; each is a row of the report
        error = f"{type(e).__name__}: {e}"[:300]
    if not error and script.finish not in ANSWERED:
        error = script.finish
    return {
        "task": task.key,
        "kind": task.kind,
        "mode": name,
        "ok": right(task, world.log, script.answers) and not error,
        "calls": [asdict(call) for call in world.log],
        "answers": script.answers,
        "responses": script.responses,
        "input_tokens": script.input_tokens,
        "output_tokens": script.output_tokens,
        "seconds": round(time.perf_counter() - started, 2),
        "finish": script.finish,
        "invented": invented(*script.shown, *script.kept, *script.answers),
        "unread": next(filter(None, (unread(answer, task.tools) for answer in script.answers)), ""),
        "empty": any(not answer.strip() for answer in script.answers),
        "error": error,
    }


class Bar(Protocol):
    """Progress on stderr."""

    def __call__(self, run: Run) -> None:
        """One more run has ended."""


@contextmanager
def progress(total: int) -> Iterator[Bar]:
    """A bar by rich if it is installed, otherwise one line for each run."""
    right, done = 0, 0

    def plain(run: Run) -> None:
        nonlocal right, done
        right, done = right + run["ok"], done + 1
        print(f"{done}/{total} {run['mode']} {run['task']}: {_verdict(run)}", file=sys.stderr, flush=True)

    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        yield plain
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield plain
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as bar:
        line = bar.add_task("", total=total)
        yield lambda run: bar.update(line, advance=1, description=f"{run['mode']} {run['task']}: {_verdict(run)}")


def _verdict(run: Run) -> str:
    words = [word for word in ("invented", "unread", "empty") if run[word]]
    return ", ".join(["right" if run["ok"] else "wrong", *words, *([run["error"][:60]] if run["error"] else [])])


async def measure(
    tasks: Sequence[Task],
    found: Mapping[str, Mode],
    kept: Kept,
    *,
    absent: Callable[[], str],
    concurrency: int = 1,
    timeout: float = 180,
    until: float = float("inf"),
) -> int:
    """Run what is not kept yet, mode by mode, and return how many runs are left.

    Starts nothing after `until`. A run that failed because the server is gone is not kept, and is the last.
    """
    left = [(task, name) for name in found for task in tasks if not kept.has(task.key, name)]
    waiting, total = iter(left), len(left)
    with progress(total) as bar:

        async def worker() -> None:
            nonlocal total
            for task, name in waiting:
                if time.monotonic() > until:
                    return
                one = await run(task, name, found[name], timeout)
                if one["error"] and await asyncio.to_thread(absent):
                    return
                kept.add(one)
                bar(one)
                total -= 1

        await asyncio.gather(*(worker() for _ in range(concurrency)))
    return total


class Kept:
    """The runs in a file, which is written after each; without a file, in memory."""

    def __init__(self, path: Path | None, model: str) -> None:
        self.path = path
        self.content: dict[str, Any] = {"model": model, "versions": versions(), "runs": []}
        if path is not None and path.exists():
            self.content = json.loads(path.read_text(encoding="utf-8"))
            if self.content["model"] != model:
                sys.exit(f"{path} has runs of {self.content['model']!r}, found --model {model!r}: name another file")
        self._known = {(one["task"], one["mode"]) for one in self.runs}

    @property
    def runs(self) -> list[Run]:
        """All runs."""
        return self.content["runs"]  # type: ignore[no-any-return]

    def has(self, task: str, mode: str) -> bool:
        """Whether this task was run in this mode."""
        return (task, mode) in self._known

    def add(self, run: Run) -> None:
        """Keep one more."""
        self.runs.append(run)
        self._known.add((run["task"], run["mode"]))
        if self.path is not None:
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.content, ensure_ascii=False, indent=1), encoding="utf-8")
            new.replace(self.path)


def figures(runs: Sequence[Run]) -> dict[str, float]:
    """The figures of one mode."""
    sums = {
        "calls": sum(len(one["calls"]) for one in runs),
        "tokens in": sum(one["input_tokens"] for one in runs),
        "tokens out": sum(one["output_tokens"] for one in runs),
        "seconds": sum(one["seconds"] for one in runs),
    }
    counts = {word: sum(bool(one[word]) for one in runs) for word in ("invented", "unread", "empty")}
    each: dict[str, float] = {name: value / len(runs) for name, value in sums.items()}
    return {
        "right": sum(one["ok"] for one in runs),
        **each,
        **counts,
        "errors": sum(bool(one["error"]) for one in runs),
    }


def by_mode(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs of each mode, in the order of the first."""
    modes: dict[str, list[Run]] = {}
    for one in runs:
        modes.setdefault(one["mode"], []).append(one)
    return modes


def table(runs: Sequence[Run]) -> str:
    """One row for each mode, in Markdown."""
    rows = [["mode", "right", *COLUMNS]]
    for mode, some in by_mode(runs).items():
        counted = figures(some)
        rows.append([_called(mode), f"{counted['right']} / {len(some)}", *(_figure(n, counted[n]) for n in COLUMNS)])
    return markdown(rows)


def kinds_table(runs: Sequence[Run]) -> str:
    """Right by kind of task and mode, in Markdown."""
    modes = by_mode(runs)
    rows = [["kind", *map(_called, modes)]]
    for kind in KINDS:
        some = [[one for one in of_mode if one["kind"] == kind] for of_mode in modes.values()]
        if any(some):
            rows.append([kind, *(f"{sum(one['ok'] for one in found)} / {len(found)}" for found in some)])
    return markdown(rows)


def compared(before: Sequence[Run], after: Sequence[Run]) -> str:
    """Both in one table, over the tasks that both ran in a mode; what did not change is shown once."""
    rows = [["mode", "right", *COLUMNS]]
    news = {(one["task"], one["mode"]): one for one in after}
    for mode, some in by_mode(before).items():
        pairs = [(one, news[one["task"], mode]) for one in some if (one["task"], mode) in news]
        if pairs:
            old, new = figures([one for one, _ in pairs]), figures([one for _, one in pairs])
            changes = [_change(_figure(name, old[name]), _figure(name, new[name])) for name in ("right", *COLUMNS)]
            rows.append([_called(mode), f"{changes[0]} of {len(pairs)}", *changes[1:]])
    return markdown(rows)


def _change(old: str, new: str) -> str:
    return old if old == new else f"{old} → {new}"


def _figure(name: str, value: float) -> str:
    return f"{value:.1f}" if name in ("calls", "seconds") else f"{value:.0f}"


def _called(mode: str) -> str:
    return (
        mode
        if mode in PEERS or mode == "native"
        else f"`{mode.removesuffix('+c')}`{', constrained' * mode.endswith('+c')}"
    )


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are aligned to the right."""
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|---" + "|---:" * (len(rows[0]) - 1) + "|", *body])


def absent(url: str) -> str:
    """Why no server answers at the URL; empty if one does."""
    try:
        urllib.request.urlopen(f"{url.rstrip('/')}/models", timeout=60).close()
    except urllib.error.HTTPError:
        return ""  # it answers
    except (OSError, ValueError) as e:
        return f"no server answers at {url} ({e}): expected the base URL of a server, such as http://127.0.0.1:8080/v1"
    return ""


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--server", metavar="URL", help="base URL of the server, such as http://127.0.0.1:8080/v1")
    add("--model", default="model", metavar="NAME", help="the server's name of the model (default: model)")
    add("--modes", default=DEFAULT, metavar="MODE,…", help=f"what to run (default: {DEFAULT})")
    add("--kinds", default=",".join(KINDS), metavar="KIND,…", help="only tasks of these kinds (default: all)")
    add("--limit", type=int, metavar="N", help="at most N tasks, spread over the kinds (default: all)")
    add("--flavour", choices=("llamacpp", "vllm", "sglang"), help="the kind of server, for text formats")
    add("--concurrency", type=int, default=1, metavar="N", help="tasks at the same time (default: 1)")
    add("--timeout", type=float, default=180, metavar="S", help="seconds for one task (default: 180)")
    add("--minutes", type=float, default=float("inf"), metavar="M", help="start no task later (default: no limit)")
    add("--json", type=Path, metavar="FILE", help="keep every run here, and continue there")
    add("--table", action="store_true", help="print Markdown tables for all runs that are kept")
    add("--compare", nargs=2, type=Path, metavar="FILE", help="print two files in one table, and run nothing")
    return parser.parse_args()


def chosen(names: str, limit: int | None) -> list[Task]:
    """The tasks of these kinds."""
    kinds = names.split(",")
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        sys.exit(f"--kinds {','.join(unknown)}: expected some of {', '.join(KINDS)}")
    return spread([task for task in TASKS if task.kind in kinds], limit)


def main() -> None:
    """Measure, or compare."""
    args = arguments()
    if args.compare:
        before, after = (json.loads(path.read_text(encoding="utf-8")) for path in args.compare)
        print(f"{before['model']}, {args.compare[0].stem} → {args.compare[1].stem}\n")
        print(compared(before["runs"], after["runs"]))
        return
    if not args.server:
        print("not measured, it needs a server: --server http://127.0.0.1:8080/v1 --model NAME")
        return
    os.environ["NO_PROXY"] = ",".join(filter(None, (os.environ.get("NO_PROXY"), "127.0.0.1,localhost")))
    tasks, until = chosen(args.kinds, args.limit), time.monotonic() + args.minutes * 60
    if why := absent(args.server):
        sys.exit(why)
    found, notes = modes(args.modes.split(","), args.server, args.model, args.flavour)
    kept = Kept(args.json, args.model)
    options = {"concurrency": args.concurrency, "timeout": args.timeout, "until": until}
    left = asyncio.run(measure(tasks, found, kept, absent=lambda: absent(args.server), **options))
    for note in filter(None, (*notes, absent(args.server))):
        print(note, file=sys.stderr)
    if left:
        print(f"{left} runs are left: start it again with the same --json", file=sys.stderr)
    if args.table:
        print(f"{args.model}\n\n{table(kept.runs)}\n\n{kinds_table(kept.runs)}")
        return
    for mode, some in by_mode(kept.runs).items():
        counted = figures(some)
        rest = ", ".join(f"{name} {_figure(name, counted[name])}" for name in COLUMNS)
        print(f"{mode}: {counted['right']:.0f} / {len(some)} right; {rest}")


if __name__ == "__main__":
    main()
