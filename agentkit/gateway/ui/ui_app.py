"""The page and its API as a part of the gateway's ASGI application. The table `ROUTES` is the API.

The gateway has checked host, origin and key before; here follow the paths, the bodies and the answers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, quote

from agentkit import __version__
from agentkit.agent import Agent
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.error_replies import as_refusal, error_headers
from agentkit.gateway.events import input_of
from agentkit.gateway.events.page_request import id_at
from agentkit.gateway.gateway_config import GatewayConfig
from agentkit.gateway.head_checks import (
    ASGIReceive,
    ASGIScope,
    ASGISend,
    ClientLeft,
    ClientWatch,
    check_json,
    json_object,
    read_body,
)
from agentkit.gateway.reply_sender import ReplySender
from agentkit.gateway.ui.api_request import ApiRequest
from agentkit.gateway.ui.foreign_runs import foreign_run
from agentkit.gateway.ui.page_files import SAFE_HEADERS, PageFiles
from agentkit.gateway.ui.page_models import ModelOption
from agentkit.gateway.ui.thread_actions import FieldsRefused, ThreadActions
from agentkit.gateway.ui.thread_hub import ThreadHub
from agentkit.gateway.ui.thread_settings import LONGEST_TITLE, ThreadSettings
from agentkit.threads import ThreadManager

API: Final = "/ui/api/"
FOREIGN: Final = "/ag-ui"

_STREAMS: Final = 200
"""Streams that are open at the same time: each may have to be sent a whole thread."""
_BEAT: Final = 15.0  # seconds
_COMMENT: Final = b": keep-alive\n\n"
_STREAM: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


@dataclass(frozen=True, slots=True)
class PageReply:
    """An answer of the API.

    Args:
        value: as JSON; ignored if there is a `body`.
        status: the HTTP status.
        body: the bytes of a file.
        headers: further headers.
    """

    value: Any = None
    status: int = 200
    body: bytes | None = None
    headers: Sequence[tuple[bytes, bytes]] = ()


PageStream = AsyncGenerator[bytes, None]
PageHandler = Callable[["Page", ApiRequest], Awaitable[PageReply | PageStream]]


class Page:
    """The page of one agent; give it to `Gateway(…, page=…)`, which closes it.

    Args:
        threads: where the conversations are; closed with the page.
        agent: answers; its `config` should be attended.
        choices: the models that a person can choose, besides the agent's own.
        suggestions: first messages that an empty thread offers.
        where: the store, as the page shows it; by default the path of a SQLite file.
    """

    def __init__(
        self,
        threads: ThreadManager,
        agent: Agent,
        choices: Sequence[ModelOption] = (),
        *,
        suggestions: Sequence[str] = (),
        where: str = "",
    ) -> None:
        self.hub = ThreadHub(threads, agent, choices)
        self.suggestions = tuple(suggestions)
        self.where = where or str(getattr(threads.store, "name", ""))
        self._files = PageFiles()
        self._streams = asyncio.Semaphore(_STREAMS)

    @staticmethod
    def serves(path: str) -> bool:
        """Return whether a path is the page's."""
        return path in ("/", "/ui", FOREIGN) or path.startswith("/ui/")

    @staticmethod
    def is_public(path: str) -> bool:
        """Return whether a path needs no key: the page itself, which has nobody's data."""
        return path != FOREIGN and not path.startswith(API)

    async def answer(self, scope: ASGIScope, receive: ASGIReceive, send: ASGISend, config: GatewayConfig) -> None:
        """Answer one request, whose head was checked."""
        sender = ReplySender(send)
        try:
            await self._answer(scope, receive, sender, config)
        except ClientLeft:
            pass
        except (Exception, asyncio.CancelledError) as e:  # noqa: BLE001 - whatever happens, the client gets an answer
            if not sender.stalled:
                await self.refuse(sender, as_refusal(e))
        finally:
            sender.stop()

    async def refuse(self, sender: ReplySender, error: RequestRefused) -> None:
        """Answer with an error; a stream ends without one."""
        if sender.status:
            with suppress(Exception):
                await sender.end()
            return
        found: dict[str, Any] = {"message": error.message, "code": error.code}
        if isinstance(error, FieldsRefused):
            found["fields"] = error.fields
        more = [(b"connection", b"close")] if error.status in (408, 413) else []
        headers = [pair for pair in error_headers(error) if pair[0] != b"content-type"]
        await _send(sender, PageReply({"error": found}, error.status, headers=[*headers, *more]))

    async def aclose(self) -> None:
        """End all streams and all runs, and close the store."""
        await self.hub.aclose()

    # ---------------------------------------------------------------- one request

    async def _answer(self, scope: ASGIScope, receive: ASGIReceive, sender: ReplySender, config: GatewayConfig) -> None:
        path, method, headers = scope["path"], scope["method"], dict(scope["headers"])
        if self.is_public(path):
            await self._file(path, method, headers, sender)
            return
        handler, id = _route(path, method)
        body = await _body(receive, headers, config) if method in ("POST", "PATCH") else {}
        query = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()}
        asked = ApiRequest(id, query, body, headers)
        with self.hub.use(id):
            reply = await handler(self, asked)
            if isinstance(reply, PageReply):
                await _send(sender, reply)
            else:
                await self._stream(receive, sender, reply, config)

    async def _file(self, path: str, method: str, headers: Mapping[bytes, bytes], sender: ReplySender) -> None:
        if method not in ("GET", "HEAD"):
            raise RequestRefused(405, f"{path[:100]} expects GET", "method_not_allowed")
        kind, etag, content = self._files.read(path)
        same = etag in headers.get(b"if-none-match", b"").replace(b"W/", b"").split(b", ")
        about = [(b"etag", etag), (b"cache-control", b"no-cache"), *SAFE_HEADERS]
        if same:
            await sender.start(304, about)
            await sender.end()
            return
        await sender.start(200, [(b"content-type", kind), (b"content-length", b"%d" % len(content)), *about])
        await sender.end(b"" if method == "HEAD" else content)

    async def _stream(
        self, receive: ASGIReceive, sender: ReplySender, pieces: PageStream, config: GatewayConfig
    ) -> None:
        """Send events as long as the client is there."""
        if self._streams.locked():
            raise RequestRefused(503, f"{_STREAMS} streams are open: close some tabs", "overloaded", retry_after=5)
        async with self._streams, ClientWatch(receive, lambda: sender.ended), aclosing(pieces):
            first = await anext(pieces, b"")
            await sender.start(200, [*_STREAM, *SAFE_HEADERS])
            sender.beat(_COMMENT, _BEAT, config.timeouts.idle)
            await sender.write(first)
            async for piece in pieces:
                await sender.write(piece)
            await sender.end()

    # ---------------------------------------------------------------- the API

    async def setup(self, asked: ApiRequest) -> PageReply:
        """The settings of the page."""
        hub = self.hub
        rule = hub.agent.config.requires_approval
        tools = [
            {
                "name": tool.name,
                "description": tool.spec.description,
                "schema": dict(tool.spec.parameters),
                "approval": (tool.policy.requires_approval if rule is None else rule) is not False,
            }
            for tool in hub.agent.registry.tools.values()
        ]
        about = {"version": __version__, "agent": hub.agent.name, "store": self.where}
        return PageReply({**about, **hub.models.to_json(), "tools": tools, "suggestions": list(self.suggestions)})

    async def list_threads(self, asked: ApiRequest) -> PageReply:
        """A page of the list of threads."""
        hub, before = self.hub, asked.query.get("before")
        start = None if not before else await hub.threads.get_thread(before)
        found, more = await hub.list.page(asked.query.get("q", "").strip()[:200], start)
        threads = [one.to_json(running=hub.running(one.thread.id)) for one in found]
        return PageReply({"threads": threads, "more": more})

    async def create_thread(self, asked: ApiRequest) -> PageReply:
        """Create a thread."""
        settings = self._changed(ThreadSettings(), asked)
        id = await self.hub.threads.create_thread(metadata=settings.in_metadata({}))
        self.hub.list_changed()
        return PageReply({"id": id})

    async def change_thread(self, asked: ApiRequest) -> PageReply:
        """Change a thread's settings."""
        thread = self.hub.get(asked.id)
        async with thread.lock:
            stored = await self.hub.threads.get_thread(asked.id)
            settings = self._changed(ThreadSettings.of(stored), asked)
            if rule := asked.text("revoke"):
                await self.hub.threads.revoke(asked.id, rule)
            await self._act(asked).change(settings)
        return PageReply(thread.state)

    async def delete_thread(self, asked: ApiRequest) -> PageReply:
        """Delete a thread, and end its run first."""
        thread = self.hub.get(asked.id)
        await thread.stop()
        async with thread.lock:
            await self.hub.threads.delete_thread(asked.id)
        self.hub.drop(thread)
        return PageReply({})

    async def say(self, asked: ApiRequest) -> PageReply:
        """Add a message, and let it be answered."""
        said = await self._act(asked).say(id_at(asked.body.get("id"), "id"), asked.body.get("content"))
        return PageReply(said, 202)

    async def decide(self, asked: ApiRequest) -> PageReply:
        """Decide about a waiting call."""
        left = await self._act(asked).decide(
            asked.text("call"),
            asked.text("hash"),
            approved=asked.flag("approved"),
            arguments=asked.mapping("arguments"),
            reason=asked.text("reason"),
            always=asked.patterns("always"),
        )
        return PageReply(left)

    async def say_outcome(self, asked: ApiRequest) -> PageReply:
        """Say what became of a call."""
        await self._act(asked).outcome(asked.text("call"), happened=asked.flag("happened"), text=asked.text("text"))
        return PageReply({})

    async def resume(self, asked: ApiRequest) -> PageReply:
        """Resume a thread."""
        return PageReply(await self._act(asked).resume(), 202)

    async def stop(self, asked: ApiRequest) -> PageReply:
        """Stop a thread."""
        await self._act(asked).stop()
        return PageReply({})

    async def fork(self, asked: ApiRequest) -> PageReply:
        """Copy the beginning of a thread into a new one."""
        until = asked.body.get("until")
        if until is not None and (type(until) is not int or until < 0):
            raise RequestRefused(400, "until: expected the seq of an entry", "invalid_request", param="until")
        threads = self.hub.threads
        stored = await threads.get_thread(asked.id)
        old = ThreadSettings.of(stored)
        title = (await self.hub.list.summary(stored)).title
        settings = ThreadSettings(title=f"{title} (copy)"[:LONGEST_TITLE], model=old.model, format=old.format)
        id = await threads.fork_thread(asked.id, until=until, metadata=settings.in_metadata(stored.metadata))
        self.hub.list_changed()
        return PageReply({"id": id})

    async def export(self, asked: ApiRequest) -> PageReply:
        """A thread as a file."""
        from agentkit.gateway.ui.thread_export import export_thread

        title = (await self.hub.list.summary(await self.hub.threads.get_thread(asked.id))).title
        log = await self.hub.threads.get_log(asked.id)
        found = await asyncio.to_thread(export_thread, log, asked.query.get("as", "json"), title or asked.id)
        named = f"attachment; filename*=UTF-8''{quote(found.name)}".encode()
        headers = [(b"content-type", found.media_type.encode()), (b"content-disposition", named)]
        return PageReply(body=found.content, headers=headers)

    async def highlight(self, asked: ApiRequest) -> PageReply:
        """Code as tokens to be coloured."""
        return PageReply({"tokens": await self.hub.tokens(asked.text("language"), asked.text("code"))})

    async def events(self, asked: ApiRequest) -> PageStream:
        """The events of a thread."""
        last = asked.headers.get(b"last-event-id", b"").decode("latin-1") or asked.query.get("last", "")
        return self.hub.get(asked.id).follow(last)

    async def run(self, asked: ApiRequest) -> PageStream:
        """The events of a run for another client of AG-UI."""
        return foreign_run(self.hub, input_of(asked.body))

    # ----------------------------------------------------------------

    def _act(self, asked: ApiRequest) -> ThreadActions:
        return ThreadActions(self.hub, self.hub.get(asked.id))

    def _changed(self, settings: ThreadSettings, asked: ApiRequest) -> ThreadSettings:
        changed = asked.settings(settings)
        if (changed.model, changed.format) != (settings.model, settings.format):  # the old one may not be offered now
            self.hub.models.check(changed)
        return changed


ROUTES: Final[Mapping[tuple[str, str], PageHandler]] = {
    ("POST", "/ag-ui"): Page.run,
    ("GET", "setup"): Page.setup,
    ("GET", "threads"): Page.list_threads,
    ("POST", "threads"): Page.create_thread,
    ("PATCH", "threads/{id}"): Page.change_thread,
    ("DELETE", "threads/{id}"): Page.delete_thread,
    ("GET", "threads/{id}/events"): Page.events,
    ("POST", "threads/{id}/messages"): Page.say,
    ("POST", "threads/{id}/decisions"): Page.decide,
    ("POST", "threads/{id}/outcomes"): Page.say_outcome,
    ("POST", "threads/{id}/continue"): Page.resume,
    ("POST", "threads/{id}/stop"): Page.stop,
    ("POST", "threads/{id}/fork"): Page.fork,
    ("GET", "threads/{id}/export"): Page.export,
    ("POST", "highlight"): Page.highlight,
}
"""The handler of each method and path; those without a slash at the beginning are below `/ui/api/`."""


def _route(path: str, method: str) -> tuple[PageHandler, str]:
    """Return the handler of a request, and the thread that its path names.

    Raises:
        RequestRefused: nothing does.
    """
    kind, _, rest = path.removeprefix(API).partition("/")
    id, _, what = rest.partition("/")  # no id has a slash: the threads of sub-agents are not the page's
    pattern = path if path == FOREIGN else "/".join(filter(None, (kind, id and "{id}", what)))
    handler = ROUTES.get((method, pattern))
    if handler is not None:
        return handler, id
    methods = sorted(method for method, known in ROUTES if known == pattern)
    if not methods:
        raise RequestRefused(404, f"there is nothing at {path[:100]!r}", "not_found")
    raise RequestRefused(405, f"{path[:100]} expects {' or '.join(methods)}", "method_not_allowed")


async def _body(receive: ASGIReceive, headers: Mapping[bytes, bytes], config: GatewayConfig) -> dict[str, Any]:
    check_json(headers)
    raw = await read_body(receive, headers, config.limits.body_bytes, config.timeouts.request)
    return json_object(raw or b"{}")


async def _send(sender: ReplySender, reply: PageReply) -> None:
    if reply.body is not None:
        body, kind = reply.body, []
    else:
        body = json.dumps(reply.value, ensure_ascii=True, default=str).encode()
        kind = [(b"content-type", b"application/json")]
    about = [(b"content-length", b"%d" % len(body)), (b"cache-control", b"no-store"), *SAFE_HEADERS]
    await sender.start(reply.status, [*kind, *reply.headers, *about])
    await sender.end(body)
