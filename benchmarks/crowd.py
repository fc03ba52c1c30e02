"""Several processes at once on one thread, some killed at any moment: `python benchmarks/crowd.py --kills 100`.

Each process is a client with its own message. It sends the message under its client id, and runs the thread until a
reply has answered it; if another process is running the thread, it tries again. A model makes the six calls of
`crash.py` for each message. Killed clients are restarted, as often as there are kills. Counted are the results of
`crash.py`, for all clients together, and:

- turned away: how often a client found the thread busy;
- unclear: busy errors that do not say who runs the thread, and any other error;
- doubled replies: replies that were stored twice, or calls made by two responses.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import crash

from agentkit.errors import ThreadBusy, ThreadExists
from agentkit.messages import AssistantMessage, TextPart, ToolCall, ToolMessage, UserMessage
from agentkit.models.base import ModelRequest
from agentkit.testing import ScriptedModel
from agentkit.threads import Log, Store, ThreadManager
from agentkit.threads.owner import is_dead

BUSY = re.compile(
    r"thread 't\d+': (it is already being run|lease \d+ was lost(, so nothing was written)?)"
    r"(; process \d+ on '.+' holds it for another \d+\.\d s|; no one holds it now)"
)
"""The error of a client that was turned away: it says by whom."""

EACH = 2  # calls whose outcome one kill can leave unknown: of each step, all but the idempotent one


def clients_in(request: ModelRequest) -> list[str]:
    """The clients whose messages are in a request, in order."""
    users = (m for m in request.messages if isinstance(m, UserMessage))
    said = [part.text for m in users for part in m.content if isinstance(part, TextPart)]
    return [text.removeprefix("I am client ") for text in said]


def next_response(request: ModelRequest) -> list[Any]:
    """The first step of a client that was not made yet; a word to all of them if there is none."""
    made = set(asked_in(request.messages))
    for client in clients_in(request):
        for step in crash.STEPS:
            if missing := [id for id in step if client + id not in made]:
                return ["On it. ", *(ToolCall(client + id, crash.TOOLS[id], {"id": client + id}) for id in missing)]
    return [f"All done for {' '.join(clients_in(request))}."]


def asked_in(messages: Sequence[Any]) -> list[str]:
    """The ids of the steps that were called; not of calls that were answered `cancelled`: those are made again.

    A call that a kill left before its start is answered so if another client has written since.
    """
    cancelled = {m.call_id for m in messages if isinstance(m, ToolMessage) and m.error == "cancelled"}
    calls = [c for m in messages if isinstance(m, AssistantMessage) for c in m.calls]
    return [str(c.arguments["id"]) for c in calls if c.id not in cancelled]


def is_answered(messages: list[Any], client: str) -> bool:
    """Whether a reply names a client."""
    replies = (m.text for m in messages if isinstance(m, AssistantMessage) and m.text.startswith("All done for "))
    return any(client in text.rstrip(".").split() for text in replies)


async def client(store: Store, thread: str, effects: Path, told: Path, name: str) -> None:
    """All the work of a client; all of it again after a kill."""
    threads = ThreadManager(store)
    threads.add_tool(crash.Effects(effects, crash.PAUSE))
    with suppress(ThreadExists):
        await threads.create_thread(thread)
    await threads.add_message(thread, f"I am client {name}", client_id=name)
    while not is_answered(await threads.get_llm_messages(thread), name):
        try:
            await threads.run_thread(thread, model=ScriptedModel(next_response, chunk=4)).complete()
        except ThreadBusy as e:
            with told.open("a") as file:
                file.write(f"{e}\n")
            await asyncio.sleep(0.01)
    await threads.aclose()


@dataclass
class Crowd(crash.Count):
    """The results of a series of rounds."""

    turned_away: int = 0
    unclear: int = 0
    doubled_replies: int = 0

    def add(self, where: str, told: Path) -> None:
        """Count the errors of a round."""
        lines = told.read_text().splitlines() if told.exists() else []
        unclear = [line for line in lines if not BUSY.fullmatch(line)]
        self.turned_away += len(lines)
        self.unclear += len(unclear)
        self.faults += [f"{where}: told {line!r}" for line in unclear]

    def judge(
        self, where: str, names: list[str], killed: int, made: Counter[str], log: Log, messages: list[Any]
    ) -> None:
        """Count a thread that all clients have left."""
        self.threads += 1
        asked = Counter(asked_in(messages))
        ids = {c.id: str(c.arguments["id"]) for m in messages if isinstance(m, AssistantMessage) for c in m.calls}
        wanted = [name + id for name in names for step in crash.STEPS for id in step]
        unknown = [ids[m.call_id] for m in messages if isinstance(m, ToolMessage) and m.error == "interrupted"]
        lost = [id for id in wanted if not made[id] and id not in unknown]
        users = Counter(clients_in(ModelRequest(messages)))
        replies = Counter(m.text for m in messages if isinstance(m, AssistantMessage) and m.text.startswith("All done"))
        self.duplicated += (twice := sum(n - 1 for n in made.values()))
        self.lost += len(lost)
        self.unknown += len(unknown)
        self.doubled_messages += (messages_twice := sum(n - 1 for n in users.values()))
        self.doubled_replies += (twice_asked := sum(n - 1 for n in (asked + replies).values()))
        faults = [
            *([f"{twice} effects twice"] if twice else []),
            *([f"lost {lost}"] if lost else []),
            *([f"{killed} kills left {unknown} unknown"] if len(unknown) > killed * EACH else []),
            *([f"messages {dict(users)}"] if messages_twice or sorted(users) != sorted(names) else []),
            *([f"asked for {asked}, replied {replies}"] if twice_asked or sorted(asked) != sorted(wanted) else []),
            *(f"call {c.id} is {c.status}" for c in log.calls if c.status != "answered"),
            *(f"entry {e.seq} is partial" for e in log.entries if e.kind == "partial"),
            *(f"client {name} has no reply" for name in names if not is_answered(messages, name)),
        ]
        self.bricked += bool(faults) and not (twice or lost or messages_twice or twice_asked)
        self.faults += [f"{where}: {fault}" for fault in faults]


async def _left(store: Store, thread: str) -> tuple[Log, list[Any]]:
    """The contents of a thread at the end, when nobody who lives holds its lease.

    A client that is killed after its reply was stored leaves the lease; restarted, it finds its reply and runs nothing.
    """
    threads = ThreadManager(store)
    log, messages = await threads.get_log(thread), await threads.get_llm_messages(thread)
    try:
        lease = await store.acquire(thread, "who looks", 1)
    except ThreadBusy as e:
        if e.owner is None or not is_dead(e.owner):
            raise
        lease = await store.acquire(thread, "who looks", 1, dead=e.fence)
    await store.release(lease)
    await threads.aclose()
    return log, messages


def a_round(place: crash.Place, count: Crowd, names: list[str], kills: int, chance: random.Random) -> None:
    """All clients at once, until each of them has its reply; at most this many kills in the meantime."""
    told = place.folder / f"{place.number}.told"
    where = f"thread {place.thread}"

    def begin(name: str) -> int:
        def day() -> None:
            asyncio.run(client(place.store(None), place.thread, place.effects, told, name))

        return crash.child(day)

    alive, killed = {begin(name): name for name in names}, 0
    while alive:
        time.sleep(chance.random() * 0.15)
        pid = chance.choice(list(alive))
        if killed < kills:
            os.kill(pid, signal.SIGKILL)
        name, status = alive.pop(pid), crash.waited(pid)
        if status == -signal.SIGKILL:
            killed += 1
            alive[begin(name)] = name
        elif status:
            count.unclear += 1
            count.faults.append(f"{where}: client {name} failed")
    count.crashes += killed
    count.add(where, told)
    log, messages = asyncio.run(_left(place.store(None), place.thread))
    count.judge(where, names, killed, crash.happened(place.effects), log, messages)


def rounds(place: crash.Place, clients: int, kills: int, each: int, seed: int) -> Crowd:
    """A round without kills, then rounds with at most `each` kills, until there were enough."""
    count, chance = Crowd(), random.Random(seed)
    names = [str(number) for number in range(clients)]
    place.run()  # creates the tables, so that no child imports anything
    wanted = 0
    while count.threads == 0 or count.crashes < kills:
        place.number += 1
        a_round(place, count, names, wanted, chance)
        wanted = min(each, kills - count.crashes)
    return count


def main() -> None:
    """Run what the arguments request, and print the results."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--clients", type=int, default=4, help="processes at once")
    arguments.add_argument("--kills", type=int, default=20, help="at random moments, in total")
    arguments.add_argument("--each", type=int, default=5, help="kills of one round")
    arguments.add_argument("--store", help="postgresql://…; default: a SQLite file for each thread")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--json", action="store_true", help="print one JSON object")
    given = arguments.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        place = crash.Place(Path(folder), given.store)
        try:
            count = rounds(place, given.clients, given.kills, given.each, given.seed)
        finally:
            asyncio.run(place.cleared())
    if given.json:
        print(json.dumps(asdict(count)))
    else:
        crash.show(f"{given.clients} processes on one thread", count, load)


if __name__ == "__main__":
    main()
