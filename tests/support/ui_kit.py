"""A page for the tests: its real server in a thread, and a client that follows a thread's events."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from agentkit import Agent
from agentkit.events import SourceEvent
from agentkit.gateway.gateway_app import Gateway
from agentkit.gateway.gateway_config import config_of
from agentkit.gateway.gateway_server import address_of, listen, server_of
from agentkit.gateway.ui.page_models import ModelOption
from agentkit.gateway.ui.ui_app import Page
from agentkit.gateway.wires import WIRES
from agentkit.messages import AssistantMessage, UserMessage
from agentkit.models.base import ModelRequest
from agentkit.testing import ScriptedModel
from agentkit.threads import ThreadManager

Json = dict[str, Any]
PATIENCE = 60.0


class PageClient:
    """A client of the page's API.

    Args:
        url: of the server.
        headers: of every request.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.url = url
        self.http = httpx2.Client(base_url=url, headers=dict(headers or {}), timeout=PATIENCE)

    def ask(self, method: str, path: str, body: Json | None = None, status: int = 0) -> Any:
        reply = self.http.request(method, path if path.startswith("/") else f"/ui/api/{path}", json=body)
        assert reply.status_code == status if status else reply.is_success, f"{reply.status_code} {reply.text}"
        return reply.json() if reply.content and "json" in reply.headers["content-type"] else reply.text

    def new(self, **settings: Any) -> str:
        id: str = self.ask("POST", "threads", settings)["id"]
        return id

    def say(self, thread: str, content: Any, id: str = "") -> Json:
        said = {"id": id or f"u{time.monotonic_ns()}", "content": content}
        found: Json = self.ask("POST", f"threads/{thread}/messages", said, 202)
        return found

    def decide(self, thread: str, call: Json, *, approved: bool, status: int = 200, **more: Any) -> Json:
        body = {"call": call["id"], "hash": call["hash"], "approved": approved, **more}
        found: Json = self.ask("POST", f"threads/{thread}/decisions", body, status)
        return found

    def messages(self, thread: str) -> list[Json]:
        """The messages of a fresh snapshot."""
        with self.follow(thread) as events:
            found: list[Json] = events.until(lambda e: e["type"] == "MESSAGES_SNAPSHOT")["messages"]
        return found

    def settled(self, thread: str, *states: str) -> list[Json]:
        """The messages, once the thread is in one of these states."""
        end = time.monotonic() + PATIENCE
        while True:
            with self.follow(thread) as events:
                state = events.until(lambda e: e.get("name") == "agentkit:thread")["value"]["state"]
                if state in (states or ("idle", "waiting", "interrupted", "damaged")):
                    found: list[Json] = events.until(lambda e: e["type"] == "MESSAGES_SNAPSHOT")["messages"]
                    return found
            assert time.monotonic() < end, f"{state}, not {states}"
            time.sleep(0.02)

    @contextmanager
    def follow(self, thread: str, last: str = "") -> Iterator[Followed]:
        headers = {"last-event-id": last} if last else {}
        with self.http.stream("GET", f"/ui/api/threads/{thread}/events", headers=headers) as reply:
            assert reply.status_code == 200, reply.read()
            yield Followed(reply.iter_lines())


class Followed:
    """The events of one thread as they arrive."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.events: list[Json] = []
        self.ids: list[str] = []

    def next(self) -> Json:
        id = ""
        for line in self._lines:
            if line.startswith("id: "):
                id = line[4:]
            elif line.startswith("data: "):
                event: Json = json.loads(line[6:])
                self.events.append(event)
                self.ids.append(id)
                return event
        raise EOFError

    def until(self, holds: Callable[[Json], bool]) -> Json:
        while not holds(event := self.next()):
            pass
        return event

    def until_run_end(self) -> Json:
        return self.until(lambda e: e["type"] in ("RUN_FINISHED", "RUN_ERROR"))


@contextmanager
def page(
    agent: Agent,
    store: Path,
    choices: Sequence[ModelOption] = (),
    environment: Mapping[str, str] | None = None,
    **more: Any,
) -> Iterator[PageClient]:
    """A client of a page whose server runs in a thread.

    Args:
        agent: answers.
        store: a SQLite file.
        choices: of models.
        environment: the variables with keys.
        more: settings of the gateway.
    """
    config = config_of({"port": 0, "log": None, **more}, str, needs_upstream=False)
    threads = ThreadManager(store, agent.registry)
    app = Gateway(config, WIRES, environment or {}, page=Page(threads, agent, choices))
    server = server_of(app)
    with listen(config) as listening:
        runner = asyncio.Runner(loop_factory=server.config.get_loop_factory())
        thread = threading.Thread(target=lambda: runner.run(server.serve(sockets=[listening])), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.001)
        client = PageClient(address_of(listening))
        try:
            yield client
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            client.http.close()
            runner.close()
            assert not thread.is_alive(), "the server does not end"


def calls_of(messages: Sequence[Json]) -> dict[str, Json]:
    """The facts that a snapshot has about each call, by id."""
    calls = [call for message in messages for call in message.get("toolCalls", ())]
    return {call["id"]: {"id": call["id"], **call["metadata"]["agentkit"]} for call in calls}


class HeldModel:
    """A model that follows a script, and waits at each event while it is held.

    Args:
        turns: one for each request, by the number of responses after the last message of the user.
        chunk: characters of a piece.
    """

    name = "test:held"
    format = None

    def __init__(self, turns: Callable[[str, int], Any], chunk: int = 4) -> None:
        self._turns = turns
        self._chunk = chunk
        self.allowed = 1_000_000
        """How many events it may still send."""
        self.waiting = threading.Event()
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        self.requests.append(request)
        last = max(at for at, message in enumerate(request.messages) if isinstance(message, UserMessage))
        said = request.messages[last]
        before = sum(isinstance(message, AssistantMessage) for message in request.messages[last + 1 :])
        turn = self._turns(said.text, before)  # type: ignore[union-attr]
        async for event in ScriptedModel([turn], chunk=self._chunk).stream(request):
            while self.allowed <= 0:
                self.waiting.set()
                await asyncio.sleep(0.005)
            self.allowed -= 1
            yield event
            await asyncio.sleep(0)
