"""Kill a run at any moment, resume it, and count what went wrong: `python benchmarks/crash.py --kills 300`.

A run makes six calls, two and then three of them at once. Each call's effect is a line in a file; a client sends its
message again after every crash, and resumes. `--points` dies before and after each SQL statement in turn instead of at
random moments, `--store` selects a PostgreSQL server instead of a SQLite file, `--peer` runs the same six calls with
another system, if it is installed (see `crash_peers.py`). What is counted:

- duplicated: effects that happened twice;
- lost: calls without an effect whose answer does not say that the outcome is unknown;
- bricked: threads that a provider refuses, or that cannot be resumed;
- doubled messages: user messages stored twice.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import secrets
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

from agentkit.errors import ThreadExists
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from agentkit.models.base import ModelRequest
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore, Store, ThreadManager
from agentkit.threads.sql.postgres import PostgresStore
from agentkit.tool.declare import openapi_schema
from agentkit.tool.result import ToolContext, ToolResult

STEPS = (("a", "b"), ("c",), ("d", "e", "f"))
"""The calls, by response. `a` and `d` run at most once, `b` and `e` are idempotent, `c` and `f` can be reconciled."""

TOOLS = {"a": "effect", "b": "keyed", "c": "asked", "d": "effect", "e": "keyed", "f": "asked"}
DIED = 137  # the exit status of a child that died on purpose
PAUSE = (0.004, 0.012)  # seconds before and after an effect, in runs that are killed at random

Hook = Callable[[Literal["before", "after"], str], None]


class Effects:
    """Tools whose effect is a line in a file.

    Args:
        path: the file.
        pause: seconds to wait before and after the effect.
    """

    def __init__(self, path: Path, pause: tuple[float, float] = (0, 0)) -> None:
        self._path = path
        self._pause = pause

    def _lines(self) -> list[str]:
        return self._path.read_text().splitlines() if self._path.exists() else []

    async def _happen(self, id: str, key: str = "") -> str:
        await asyncio.sleep(self._pause[0])
        with self._path.open("a") as file:
            file.write(f"{id} {key}\n")
        await asyncio.sleep(self._pause[1])
        return f"{id} happened"

    @openapi_schema
    async def effect(self, id: str) -> str:
        """Happen."""
        return await self._happen(id)

    @openapi_schema(idempotent=True)
    async def keyed(self, id: str, context: ToolContext) -> str:
        """Take effect, unless it already did under this key."""
        if f"{id} {context.idempotency_key}" in self._lines():
            return f"{id} happened before"
        return await self._happen(id, context.idempotency_key)

    @openapi_schema(reconcile="look")
    async def asked(self, id: str) -> str:
        """Happen."""
        return await self._happen(id)

    def look(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Whether it took effect."""
        if f"{arguments['id']} " in self._lines():
            return ToolResult(f"{arguments['id']} happened")
        return ToolResult(error="it did not happen", code="interrupted")


def next_response(request: ModelRequest) -> list[Any]:
    """The reply of a model that makes all six calls: the first step with a call it has not made yet."""
    made = {c.arguments["id"] for m in request.messages if isinstance(m, AssistantMessage) for c in m.calls}
    for step in STEPS:
        if missing := [id for id in step if id not in made]:
            return ["On it. ", *(ToolCall(id, TOOLS[id], {"id": id}) for id in missing)]
    return ["All done."]


async def one_run(store: Store, thread: str, effects: Path, pause: tuple[float, float] = (0, 0)) -> None:
    """All the work of a client: create the thread, send the message, run; all of it again after a crash."""
    threads = ThreadManager(store)
    threads.add_tool(Effects(effects, pause))
    with suppress(ThreadExists):
        await threads.create_thread(thread)
    await threads.add_message(thread, "Do all six.", client_id="m1")
    await threads.run_thread(thread, model=ScriptedModel(next_response, chunk=4)).complete()
    await threads.aclose()


@dataclass
class Count:
    """The result of a series of crashes."""

    crashes: int = 0
    threads: int = 0
    duplicated: int = 0
    lost: int = 0
    unknown: int = 0
    bricked: int = 0
    doubled_messages: int = 0
    faults: list[str] = field(default_factory=list)

    def see(self, where: str, made: Counter[str], answers: dict[str, ToolMessage], users: int, sound: str) -> None:
        """Count one thread that was run to its end."""
        self.threads += 1
        twice = sum(n - 1 for n in made.values() if n > 1)
        unknown = [id for id, answer in answers.items() if answer.error == "interrupted"]
        lost = [id for step in STEPS for id in step if not made[id] and id not in unknown]
        self.duplicated += twice
        self.lost += len(lost)
        self.unknown += len(unknown)
        self.bricked += bool(sound)
        self.doubled_messages += users - 1
        if twice or lost or sound or users != 1:
            self.faults.append(f"{where}: {dict(made)}, lost {lost}, {users} user messages, {sound or 'sound'}")


class Runs(Protocol):
    """Runs of some system, one after another, each in a separate place."""

    number: int
    """The id of the run that is resumed."""

    def run(self, hook: Hook | None = None, pause: tuple[float, float] = (0, 0)) -> None:
        """All the work of a client, in this process; resumes what a crash left."""
        ...

    def look(self, where: str, count: Count) -> None:
        """Count the results of the finished run."""
        ...


async def _examined(store: Store, thread: str) -> tuple[dict[str, ToolMessage], int, str]:
    threads = ThreadManager(store)
    log = await threads.get_log(thread)
    messages = await threads.get_llm_messages(thread)
    await threads.aclose()
    calls = {c.id: str(c.arguments["id"]) for m in messages if isinstance(m, AssistantMessage) for c in m.calls}
    answers = {calls[m.call_id]: m for m in messages if isinstance(m, ToolMessage)}
    users = sum(isinstance(m, UserMessage) for m in messages)
    last = messages[-1]
    faults = [
        *(f"call {c.id} is {c.status}" for c in log.calls if c.status != "answered"),
        *(f"entry {e.seq} is partial" for e in log.entries if e.kind == "partial"),
        *([] if isinstance(last, AssistantMessage) and last.text == "All done." else ["it did not finish"]),
        *([] if len(answers) == len(calls) else ["a call has no answer"]),
    ]
    return answers, users, "; ".join(faults)


def child(work: Callable[[], None]) -> int:
    """Do this in a child process; returns its pid."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        status = 0
    except BaseException as e:  # noqa: BLE001 - the child ends here, whatever happened
        print(f"child failed: {type(e).__name__}: {e}", file=sys.stderr)
        status = 1
    os._exit(status)


def waited(pid: int) -> int:
    """The exit status of a child: 0 done, `DIED`, minus the signal, or 1."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@dataclass
class Place:
    """Where runs are kept, and the files in which their effects are counted.

    Args:
        folder: for the files.
        dsn: a PostgreSQL server, on which the runs have their own schema, since thread names repeat; None keeps each
            thread in a separate SQLite file.
    """

    folder: Path
    dsn: str | None = None
    number: int = 0
    schema: str = field(default_factory=lambda: f"crash_{secrets.token_hex(8)}")

    @property
    def thread(self) -> str:
        """The thread of this attempt."""
        return f"t{self.number}"

    @property
    def effects(self) -> Path:
        """The effects of this attempt."""
        return self.folder / f"{self.number}.txt"

    def store(self, hook: Hook | None) -> Store:
        """Open the store, as a process does."""
        if self.dsn is not None:
            return PostgresStore(self.dsn, schema=self.schema, on_statement=hook)
        return SQLiteStore(self.folder / f"{self.number}.db", durability="process", on_statement=hook)

    def run(self, hook: Hook | None = None, pause: tuple[float, float] = (0, 0)) -> None:
        """All the work of a client, in this process."""
        asyncio.run(one_run(self.store(hook), self.thread, self.effects, pause))

    async def cleared(self) -> None:
        """Clean up a shared server."""
        if self.dsn is not None:
            import asyncpg  # not needed for SQLite

            connection = await asyncpg.connect(self.dsn)
            await connection.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")
            await connection.close()

    def look(self, where: str, count: Count) -> None:
        """Count the results of a finished thread."""
        answers, users, sound = asyncio.run(_examined(self.store(None), self.thread))
        count.see(where, happened(self.effects), answers, users, sound)


def happened(path: Path) -> Counter[str]:
    """How often each effect happened."""
    lines = path.read_text().splitlines() if path.exists() else []
    return Counter(line.split()[0] for line in lines)


def points(place: Place, share: tuple[int, int] = (1, 1), limit: int = 10_000) -> Count:
    """Die before and after each statement of the run, in turn, and resume each time.

    Args:
        place: where the runs are kept.
        share: which of how many parts of the moments: (2, 3) dies at the moments 2, 5, 8 and so on.
        limit: the maximum number of moments.
    """
    count = Count()
    place.run()  # so that no child imports anything
    first, step = share
    for number in range(first, limit, step):
        place.number += 1
        status = waited(child(partial(place.run, _dying(number))))
        if status == 0:
            return count
        count.crashes += status == DIED
        where = f"{'before' if number % 2 else 'after'} statement {(number + 1) // 2}"
        if status != DIED:
            count.faults.append(f"{where}: the child failed")
        _resumed(place, where, count)
    raise RuntimeError(f"the run has more than {limit} moments")


def _dying(number: int) -> Hook:
    """A hook that ends the process at the n-th moment."""
    seen = itertools.count(1)

    def hook(moment: str, sql: str) -> None:
        if next(seen) == number:
            os._exit(DIED)

    return hook


def _resumed(runs: Runs, where: str, count: Count) -> None:
    if waited(child(runs.run)):
        count.faults.append(f"{where}: could not be resumed")
    runs.look(where, count)


def kills(runs: Runs, wanted: int, seed: int = 0, per_thread: int = 3) -> Count:
    """Kill runs at random moments, at most `per_thread` times each, until `wanted` kills hit a live run."""
    count, chance = Count(), random.Random(seed)
    runs.run()  # so that no child imports anything
    usual = min(_undisturbed(runs) for _ in range(3))
    while count.crashes < wanted:
        runs.number += 1
        for _ in range(per_thread):
            pid = child(partial(runs.run, None, PAUSE))
            time.sleep(chance.random() * usual)
            os.kill(pid, signal.SIGKILL)
            status = waited(pid)
            count.crashes += status == -signal.SIGKILL
            if status == 0:
                break
        _resumed(runs, f"thread {runs.number}", count)
    return count


def _undisturbed(runs: Runs) -> float:
    """Seconds that an undisturbed run takes."""
    runs.number += 1
    since = time.monotonic()
    waited(child(partial(runs.run, None, PAUSE)))
    return time.monotonic() - since


def main() -> None:
    """Run what the arguments request, and print the results."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--kills", type=int, default=300, help="at random moments")
    arguments.add_argument("--points", action="store_true", help="before and after every SQL statement instead")
    arguments.add_argument("--share", default="1/1", help="of the moments of --points, such as 2/3")
    arguments.add_argument("--store", help="postgresql://…; default: a SQLite file")
    arguments.add_argument("--peer", choices=["openai-agents", "langgraph"], help="another system instead of agentkit")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--json", action="store_true", help="print one JSON object")
    given = arguments.parse_args()
    first, _, step = given.share.partition("/")
    share = int(first), int(step)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        if given.peer is not None:
            against(given.peer, Path(folder), given.kills, given.seed)
            return
        ours = Place(Path(folder), given.store)
        try:
            count = points(ours, share) if given.points else kills(ours, given.kills, given.seed)
        finally:
            asyncio.run(ours.cleared())
    if given.json:
        print(json.dumps(asdict(count)))
    else:
        show("agentkit", count, load)


def against(peer: str, folder: Path, wanted: int, seed: int) -> None:
    """The same kills with another system, for each way of resuming it."""
    from crash_peers import IDIOMS, Peer, version

    try:
        found = version(peer)
    except ImportError as e:
        sys.exit(f"{peer} is not installed: {e}")
    for idiom in IDIOMS[peer]:
        load = os.getloadavg()[0]
        place = folder / idiom
        place.mkdir()
        show(f"{peer} {found}, {idiom}", kills(Peer(place, peer, idiom), wanted, seed), load)


def show(name: str, count: Count, load: float) -> None:
    """Print the results of a series."""
    print(f"{name}; load {load:.1f} at the beginning")
    for what, value in asdict(count).items():
        if what != "faults":
            print(f"  {what.replace('_', ' '):18} {value}")
    for fault in count.faults[:5]:
        print(f"  {fault}")


if __name__ == "__main__":
    main()
