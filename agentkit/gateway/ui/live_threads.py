"""The threads that are watched or run here: each with its run, which no request owns, and its numbered events.

A client that leaves ends no run; `stop` does. Whoever follows a thread gets a snapshot, and then its events.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from agentkit.agent import Lifecycle, RunStream, TurnEnded, TurnStarted
from agentkit.errors import AgentkitError, StoreError, ThreadBusy, ThreadNotFound
from agentkit.events import ApprovalRequired, Event
from agentkit.gateway.agent_runs import has_decided_calls
from agentkit.gateway.events.ag_ui import AgUiRun, content_of, sse
from agentkit.gateway.events.page_streams import tools_of
from agentkit.gateway.ui.event_log import EventLog
from agentkit.gateway.ui.live_state import LiveRun, ThreadSums, ThreadTrouble
from agentkit.gateway.ui.thread_list import ThreadSummary
from agentkit.gateway.ui.thread_settings import ThreadSettings
from agentkit.gateway.ui.thread_snapshot import (
    SnapshotFacts,
    about_call,
    about_response,
    message_id,
    messages_snapshot,
    usage_of,
)
from agentkit.messages import AssistantMessage, ToolCall, UserMessage
from agentkit.threads import Entry, Log
from agentkit.threads.allow_rules import AllowRule, is_allowed, rules_in
from agentkit.threads.conversation import role_of
from agentkit.threads.entries import OWN
from agentkit.threads.log_reader import read_log
from agentkit.threads.owner import is_dead
from agentkit.tool.codec import from_json

if TYPE_CHECKING:
    from agentkit.gateway.ui.thread_hub import ThreadHub

LOG: Final = logging.getLogger("agentkit.gateway")

LONGEST_LOG: Final = 4_000_000
"""Characters of a live run's events; from then on a snapshot begins at the end of a later turn."""
_POLL: Final = 2.0
"""Seconds between two looks for changes that another process makes."""
_ENDING: Final = 5.0
"""Seconds in which a cancelled run must end when the server ends."""


def custom(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """An event of agentkit's own."""
    return {"type": "CUSTOM", "name": f"agentkit:{name}", "value": value}


class LiveThread:
    """One thread.

    Args:
        id: its id.
        hub: all threads.
    """

    def __init__(self, id: str, hub: ThreadHub) -> None:
        self.id = id
        self.lock = asyncio.Lock()
        """Held by every change of the thread."""
        self.log = EventLog(f"{hub.token}{secrets.token_hex(3)}")
        self.newest: LiveRun | None = None
        """The newest run that was started here; None for none."""
        self.state: Mapping[str, Any] = {}
        """The value of `agentkit:thread`."""
        self.trouble = ThreadTrouble()
        """Why it is not answered here."""
        self._hub = hub
        self._followers: set[asyncio.Event] = set()
        self._sums = ThreadSums()
        self._version = -1  # of the thread, up to which clients know it
        self._reading = asyncio.Lock()  # an older state must not replace a newer one
        self._poller: asyncio.Task[None] | None = None

    @property
    def live(self) -> LiveRun | None:
        """The run that is live here; None for none."""
        return None if self.newest is None or self.newest.over else self.newest

    @property
    def unused(self) -> bool:
        """Return whether nobody follows it, and nothing runs."""
        return not self._followers and self.live is None and not self.lock.locked()

    # ---------------------------------------------------------------- events

    def publish(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Send events to everyone who follows the thread."""
        for event in events:
            self.log.add(event)
        self.wake()

    def tell(self, name: str, **value: Any) -> None:
        """Send an event of agentkit's own."""
        self.publish([custom(name, value)])

    def tell_user(self, entry: Entry, *, queued: bool) -> None:
        """Send a user's message."""
        content = content_of(from_json(entry.body["message"]).content, joined=False)
        self.tell("user", id=message_id(entry), seq=entry.seq, content=content, created=entry.created, queued=queued)

    def wake(self) -> None:
        """Let everyone who follows look for what is new."""
        for follower in self._followers:
            follower.set()

    def join(self) -> asyncio.Event:
        """Begin to follow: the event is set whenever something is new."""
        woken = asyncio.Event()
        self._followers.add(woken)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        return woken

    def part(self, woken: asyncio.Event) -> None:
        """Follow no more."""
        self._followers.discard(woken)
        self._hub.forget_unused(self.id)

    async def follow(self, last: str) -> AsyncGenerator[bytes, None]:
        """The thread's events as server-sent events, without an end: those after `last`, or a snapshot first.

        Raises:
            ThreadNotFound: there is no such thread.
        """
        position = self.log.position(last)
        await self.refresh()
        woken, state, threads = self.join(), None, self._hub.changes
        try:
            while not (self._hub.closing or self.trouble.gone):
                woken.clear()
                pieces: list[bytes] = []
                if state is not self.state:
                    state = self.state
                    pieces.append(sse(custom("thread", state)))
                if threads != self._hub.changes:
                    threads = self._hub.changes
                    pieces.append(sse(custom("threads", {})))
                if position is None or (events := self.log.after(position)) is None:
                    snapshot, position = await self._snapshot()
                    pieces += snapshot
                    events = self.log.after(position) or []
                pieces += [sse(event, self.log.id_of(number)) for number, event in events]
                if events:
                    position = events[-1][0]
                if pieces:
                    yield b"".join(pieces)
                else:
                    await woken.wait()
        finally:
            self.part(woken)

    async def _snapshot(self) -> tuple[list[bytes], int]:
        """The messages, and the position after them."""
        while True:
            live, position = self.live, self.log.last
            log, waiting = await self._readable()
            if self.live is live or live is not None:
                break  # otherwise a run was started, which may have added to the log
        facts = SnapshotFacts(
            self._hub.agent.registry,
            waiting,
            running=live is not None or self.state.get("state") == "running",
            repairs=self._hub.repairs,
            cost=self._hub.cost,
        )
        until = None if live is None else live.before
        messages = await asyncio.to_thread(messages_snapshot, log, facts, until=until)
        if live is not None:
            position = live.base
        pieces = [sse({"type": "MESSAGES_SNAPSHOT", "messages": messages}, self.log.id_of(position))]
        if live is not None and live.shortened:
            pieces += [sse(event) for event in AgUiRun(self.id, live.run.id).start()]
        return pieces, position

    async def _readable(self) -> tuple[Log, dict[str, ToolCall]]:
        """The log and the calls that wait; nothing of a damaged thread."""
        threads = self._hub.threads
        try:
            return await threads.get_log(self.id), {call.id: call for call in await threads.pending(self.id)}
        except ThreadNotFound:
            raise
        except StoreError as e:
            self.trouble.damage = str(e)
            await self.refresh()
            return Log((), (), 0), {}

    # ---------------------------------------------------------------- state

    async def refresh(self, *, known: bool = False) -> ThreadSummary:
        """Read the thread's state, and tell it if it has changed.

        Args:
            known: whether clients know everything that is stored, since it was written here.
        """
        async with self._reading:
            return await self._refresh(known=known)

    async def _refresh(self, *, known: bool) -> ThreadSummary:
        hub = self._hub
        stored = await hub.threads.get_thread(self.id)
        one = await hub.list.summary(stored)
        await self._add_up(one)
        if known or self._version < 0:
            self._version = stored.version
        settings = ThreadSettings.of(stored)
        model, format = hub.models.choice_of(settings)
        running = self.live is not None or self.trouble.owner is not None
        state = {
            "id": self.id,
            "title": one.title,
            "state": "running" if running else "damaged" if self.trouble.damage else one.state,
            "model": model,
            "format": format,
            "allowed": [self._rule_json(rule) for rule in rules_in(stored.metadata)],
            "waiting": one.waiting,
            "usage": {"inputTokens": self._sums.usage.input_tokens, "outputTokens": self._sums.usage.output_tokens},
            "cost": self._sums.cost,
            "run": None if self.live is None else self.live.run.id,
            "problem": self.trouble.in_words() or one.problem,
        }
        if state != self.state:
            listed = any(state[key] != self.state.get(key) for key in ("title", "state", "waiting"))
            self.state = state
            self.wake()
            if listed:
                hub.list_changed()
        return one

    def _rule_json(self, rule: AllowRule) -> dict[str, Any]:
        tool = self._hub.agent.registry.get_tool(rule.tool)
        note = "" if tool is not None and tool.digest == rule.digest else " (asks again: the tool has changed)"
        return {"text": str(rule), "note": note}

    async def undecided_calls(self) -> int:
        """The number of calls that wait for a person, without those that a rule covers by now."""
        threads, registry = self._hub.threads, self._hub.agent.registry
        rules = await threads.allow_rules(self.id)
        waiting = [(call, registry.get_tool(call.name)) for call in await threads.pending(self.id)]
        return sum("/" in call.id or tool is None or not is_allowed(rules, call, tool) for call, tool in waiting)

    async def _add_up(self, one: ThreadSummary) -> None:
        sums = self._sums
        if one.state == "damaged" or one.thread.entries - 1 <= sums.until:
            return
        log = await read_log(self._hub.threads.store, self.id, after=sums.until)
        for entry in log.entries:
            if entry.kind == "partial":
                break
            usage = usage_of(entry)
            model = str((entry.body.get("response") or {}).get("model", ""))
            cost = self._hub.cost(model, usage) if any(usage) else None
            sums.usage = sums.usage.plus(usage)
            sums.cost = sums.cost if cost is None else (sums.cost or 0.0) + cost
            sums.until = entry.seq

    async def _poll(self) -> None:
        """Look for changes of other processes while someone follows."""
        while self._followers and not self.trouble.gone:
            await asyncio.sleep(_POLL)
            with suppress(StoreError):  # it may be readable again the next time
                if self._followers and self.live is None and not self.lock.locked():
                    await self._look()

    async def _look(self) -> None:
        """Look once for changes of other processes."""
        async with self.lock:
            try:
                stored = await self._hub.threads.get_thread(self.id)
            except ThreadNotFound:
                self._hub.drop(self)
                return
            if self.trouble.owner and is_dead(self.trouble.owner):
                self.trouble.owner, self._version = None, -1  # what it ran is no longer running
            if stored.version != self._version and self.live is None:
                await self.renew()

    async def renew(self) -> None:
        """Send a new snapshot to everyone, since the thread was changed not by a run here. The lock is held."""
        self.trouble.damage = ""
        one = await self.refresh(known=True)
        if self.trouble.owner is not None and one.state != "interrupted":
            self.trouble.owner = None
            await self.refresh(known=True)
        self.log.restart()
        self.wake()

    # ---------------------------------------------------------------- the run

    async def start(self) -> str | None:
        """Start a run, and return its id; that of the live run if there is one. The lock is held.

        Raises:
            ConfigError: the thread's model cannot be created.
        """
        hub = self._hub
        if self.live is None and not hub.closing:
            stored = await hub.threads.get_thread(self.id)
            agent = hub.models.agent_for(ThreadSettings.of(stored), [self._hook])
            run = hub.threads.run_agent(self.id, agent)
            encoder = AgUiRun(self.id, run.id, tools=tools_of(run), about=about_call)
            last = stored.entries - 1
            self.log.forget(self.log.last)
            self.newest = live = LiveRun(run, encoder, self.log.last, last, last)
            live.task = asyncio.create_task(self._drive(live))
            await self.refresh(known=True)
        return None if self.live is None else self.live.run.id

    async def stop(self) -> None:
        """End the live run, and wait for its end."""
        if (live := self.live) is not None and live.task is not None:
            live.stopped = True
            live.run.cancel()
            await asyncio.wait([live.task], timeout=_ENDING)

    async def _drive(self, live: LiveRun) -> None:
        """Follow a run to its end, even if nobody follows the thread."""
        run, failed = live.run, False
        try:
            async with run:
                async for event in run:
                    self._feed(live, event)
                    if isinstance(event, ApprovalRequired):
                        await self.refresh(known=True)
            self._begin(live)
            self.publish(live.encoder.finish(run.result))
        except ThreadBusy as e:
            failed = True
            if live.begun:
                self.publish(live.encoder.fail(e))
            self.trouble.owner = e.owner
        except Exception as e:  # everyone who follows the thread reads why
            failed = True
            self._begin(live)
            self.publish(live.encoder.fail(e))
            if not isinstance(e, AgentkitError):
                LOG.error("the run of thread %s failed: %s", self.id, type(e).__name__, exc_info=e)
        finally:
            await self._ended(live, failed=failed)

    async def _ended(self, live: LiveRun, *, failed: bool) -> None:
        hub = self._hub
        try:
            async with self.lock:
                await self._tell_stored(live)
                live.over = True
                self.log.join(live.base)
                if not (live.stopped or failed or hub.closing) and await self._continues(live.run.result.finish):
                    await self.start()
                else:
                    await self.refresh(known=True)
        except AgentkitError as e:
            LOG.warning("thread %s: %s", self.id, e)
        finally:
            live.over = True
            self.wake()
            hub.forget_unused(self.id)

    async def _continues(self, finish: str) -> bool:
        """Return whether something was said or decided that the run did not notice any more."""
        threads = self._hub.threads
        if finish == "approval":
            return not await self.undecided_calls() and await has_decided_calls(threads, self.id)
        if finish != "stop":  # a limit was reached: another run would reach it as well
            return False
        stored = await threads.get_thread(self.id)
        log = await read_log(threads.store, self.id, after=stored.entries - 2)
        return bool(log.entries) and role_of(log.entries[-1]) == "user"

    def _begin(self, live: LiveRun) -> None:
        if not live.begun:
            live.begun = True
            self.trouble.owner = None
            self.publish(live.encoder.start())

    def _feed(self, live: LiveRun, event: Event | Lifecycle) -> None:
        self._begin(live)
        self.publish(live.encoder.feed(event))

    async def _hook(self, event: Event | Lifecycle, run: RunStream[Any]) -> None:
        live = self.live
        if live is None or run is not live.run:  # that of a sub-agent
            return
        if isinstance(event, TurnStarted):
            await self._tell_stored(live)
            self._feed(live, event)
        elif isinstance(event, TurnEnded):
            await self._tell_stored(live, queued=True)
            if self.log.join(live.base) > LONGEST_LOG:
                stored = await self._hub.threads.get_thread(self.id)
                live.base, live.before, live.shortened = self.log.last, stored.entries - 1, True
                self.log.forget(live.base)
            await self.refresh(known=True)

    async def _tell_stored(self, live: LiveRun, *, queued: bool = False) -> None:
        """Tell what is stored now: where the run's responses are, and the messages that other programs have added.

        Args:
            live: the run.
            queued: whether queued messages still are; otherwise they are being answered, or nothing runs.
        """
        log = await read_log(self._hub.threads.store, self.id, after=live.known)
        for entry in log.entries:
            message = from_json(entry.body["message"]) if entry.kind != "compaction" else None
            if isinstance(message, UserMessage) and not entry.body.get(OWN) and entry.seq not in live.said:
                self.tell_user(entry, queued=False)
            elif isinstance(message, AssistantMessage):
                about = about_response(entry, message, self._hub.cost)
                about = {name: value for name, value in about.items() if name not in ("thinking", "parts")}
                self.tell("stored", messageId=live.encoder.message_id, **about)
            live.known = entry.seq
        if not queued:
            for seq in [seq for seq in live.said if seq <= live.known]:
                self.tell_user(live.said.pop(seq), queued=False)
