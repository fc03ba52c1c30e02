"""Finds out how the models of a server call tools, by a few small requests: `agentkit serve --probe`.

Asks one question that needs two calls: whole, streamed, and in a text format. Reads the replies with the parts that
read every reply; knows no command line.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from agentkit.errors import AgentkitError, ConfigError, FormatError, ProviderError
from agentkit.events import CallEnd, CallError, Event, Finish, SourceEvent, UnreadCall
from agentkit.fit.calling_modes import own_formats
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.probe_findings import ModelFinding, ReplyFinding
from agentkit.gateway.routes import key_from
from agentkit.gateway.stream_faults import LIMIT, faults_of
from agentkit.gateway.upstream import base_url
from agentkit.gateway.wire_fields import PROVIDERS
from agentkit.messages import user
from agentkit.models import Model, ModelRequest, check_constraint, model, redact
from agentkit.models.servers import SERVERS, CutOut, GrammarField
from agentkit.models.vendors import OPENAI
from agentkit.processor import ProcessorConfig, ResponseProcessor
from agentkit.tool import ToolRegistry

QUESTION: Final = "What time is it in Ulm, and in Bonn? Call get_time once for each of the two cities."

MOST: Final = 8
"""Models of a list that are asked. A router lists hundreds, and each request costs."""

SECONDS: Final = 120.0  # without a byte of a reply; a server on a processor reads the prompt for some seconds
TOKENS: Final = 1_024  # of one reply: a model that thinks writes its thoughts before the call
LIST_SECONDS: Final = 10.0

OWNERS: Final[Mapping[str, str]] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llamacpp",
    "library": "ollama",
    "organization_owner": "lmstudio",
}
"""The kind of a server by `owned_by` in its list of models. Source: the servers' `/v1/models`, 2026."""

_FALLBACK: Final = "xml"  # the format that most models follow which were not trained on one


def get_time(city: str) -> str:
    """Return the local time in a city.

    Args:
        city: the city's name.
    """
    return "12:00"


class ProbedServer(NamedTuple):
    """A server to probe.

    Attributes:
        url: as a client of its API has it, such as `http://127.0.0.1:8000/v1`.
        wire: the API that it speaks.
        server: its kind, a key of `agentkit.models.servers.SERVERS`; None to find out by its list of models.
        key_env: the environment variable with its key; None for none.
    """

    url: str
    wire: WireName = "chat"
    server: str | None = None
    key_env: str | None = None

    @property
    def key(self) -> str | None:
        """The key.

        Raises:
            ConfigError: the variable is not set.
        """
        return None if self.key_env is None else key_from(os.environ, self.key_env, "the key of the server")


class ProbeReport(NamedTuple):
    """The findings of a probe.

    Attributes:
        findings: one for each model that was asked.
        left_out: how many models of the list were not.
    """

    findings: tuple[ModelFinding, ...]
    left_out: int = 0


Watch = Callable[[str, str], None]
"""Called before each request with the model and what is tried."""


async def probe(
    server: ProbedServer,
    models: Sequence[str] = (),
    *,
    fit: bool = False,
    watch: Watch = lambda model, what: None,
) -> ProbeReport:
    """Find out how the models of a server call tools.

    Args:
        server: the server.
        models: their names; none for those that the server lists, at most `MOST`.
        fit: whether `agentkit.fit` also chooses the format of each, which takes minutes.
        watch: called before each request.

    Raises:
        ConfigError: the server's URL or key is wrong, or it lists no models.
        ProviderError: it cannot be reached, or refuses the key.
    """
    listed = {} if models and server.server is not None else await listed_models(server, optional=bool(models))
    kinds = [kind for owner in listed.values() if (kind := OWNERS.get(owner)) is not None]
    known = server._replace(server=server.server or next(iter(kinds), None))
    chosen = list(models) or list(listed)[:MOST]
    found = []
    for name in chosen:
        finding = await _Probe(known, name, watch).finding()
        found.append(await _fitted(known, finding, watch) if fit else finding)
    return ProbeReport(tuple(found), 0 if models else len(listed) - len(chosen))


async def listed_models(server: ProbedServer, *, optional: bool = False) -> dict[str, str]:
    """Return the models that a server lists, and who owns each.

    Args:
        server: the server.
        optional: whether a server that answers without a list is accepted.

    Raises:
        ConfigError: it lists none.
        ProviderError: it cannot be reached, or refuses the key.
    """
    import httpx2

    url, key = f"{base_url(server.url, server.wire)}/models", server.key
    headers = {"authorization": f"Bearer {key}", "x-api-key": key} if key else {}
    try:
        async with OPENAI.new_http_client() as client:
            reply = await client.get(url, headers=headers, timeout=LIST_SECONDS)
    except httpx2.InvalidURL as e:
        raise ConfigError(f"expected a URL such as http://127.0.0.1:8000/v1, found {server.url!r}: {e}") from e
    except (httpx2.HTTPError, OSError) as e:
        why = f"{type(e).__name__}: {redact(str(e), [key] if key else [])}"
        said = f"there is no answer at {url} ({why}): start the server, or check the URL"
        raise ProviderError(said, kind="connection", provider=server.url) from e
    if reply.status_code in (401, 403):
        wanted = "it refused the key" if key else "it needs a key: name the variable that has it (--upstream-key-env)"
        said = f"{url} answered with status {reply.status_code}: {wanted}"
        raise ProviderError(said, kind="authentication", provider=server.url, status=reply.status_code)
    listed = _listed(reply.content) if reply.status_code == 200 else {}
    if not listed and not optional:
        said = f"{url} answered with status {reply.status_code} and lists no models"
        raise ConfigError(f"{said}: name one with --model-map")
    return listed


def _listed(body: bytes) -> dict[str, str]:
    try:
        found = json.loads(body)
        return {str(one["id"]): str(one.get("owned_by", "")) for one in found["data"]}
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}


async def _fitted(server: ProbedServer, finding: ModelFinding, watch: Watch) -> ModelFinding:
    """The finding with the mode that suits the model best on a dozen tasks."""
    from agentkit.fit import FitProgress, fit

    def seen(now: FitProgress) -> None:
        watch(finding.model, f"fit {now.done} of {now.total}, {now.mode}")

    try:
        report = await fit(
            f"{PROVIDERS[server.wire]}:{finding.model}",
            base_url=server.url,
            server=server.server if server.wire == "chat" else None,
            api_key_env=server.key_env,
            watch=seen,
        )
    except AgentkitError as e:
        return replace(finding, fit_error=str(e))
    best = report.best
    if best is None:
        return replace(finding, fit_error="no mode did a task right")
    return replace(finding, fit=str(best.mode), fitted=f"{best.right} of {best.tasks_tried} tasks right")


class _Probe:
    """The requests to one model."""

    def __init__(self, server: ProbedServer, name: str, watch: Watch) -> None:
        self._server = server
        self._name = name
        self._watch = watch
        self._format = next(iter(own_formats(name)), _FALLBACK)
        self._body = bytearray()

    async def finding(self) -> ModelFinding:
        """Ask the model in every way that is needed."""
        native = ProcessorConfig()
        whole = await self._try("whole", native, stream=False)
        streamed = await self._try("streamed", native, stream=True)
        text = None
        if not (whole.right and streamed.right):
            config = ProcessorConfig(formats=self._format)
            text = await self._try(f"as text in {self._format}", config, stream=True, format=self._format)
        grammar, why = await self._grammar()
        return ModelFinding(
            self._name, self._server.server, whole, streamed, self._format, text, grammar=grammar, grammar_error=why
        )

    async def _try(
        self, what: str, config: ProcessorConfig, *, stream: bool, format: str | None = None
    ) -> ReplyFinding:
        """Ask the question once, and read the reply."""
        self._watch(self._name, what)
        self._body.clear()
        registry = ToolRegistry(get_time)
        request = ModelRequest([user(QUESTION)], registry.specs(), stream=stream, max_tokens=TOKENS, temperature=0.0)
        cut_out = CutOut()
        events: list[Event] = []
        async with OPENAI.new_http_client() as client:
            client.event_hooks["response"].append(self._keep)
            asked = self._model(client, format=format)
            turn = ResponseProcessor(registry, config, taught=format is not None).process(
                _seen_by(cut_out, asked, request)
            )
            error: ProviderError | None = None
            try:
                async with turn:
                    events = [event async for event in turn]
            except ProviderError as e:
                error = e
        ending = next((e for e in events if isinstance(e, Finish)), Finish("stop"))
        lost = cut_out.error(ending, "openai", self._server.server)
        if error is not None and (lost is None or error.kind != "stream"):
            refused = error.kind == "bad_request"
            return ReplyFinding("refused" if refused else "failed", error=str(error))
        faults = faults_of(bytes(self._body), streamed=stream) if self._server.wire == "chat" else ()
        if lost is not None:
            return ReplyFinding("cut out", faults=faults, error=str(lost))
        return replace(_calls_in(events), faults=faults)

    def _model(self, client: Any, format: str | None = None, *, constrained: bool = False) -> Model:
        server = self._server
        return model(
            f"{PROVIDERS[server.wire]}:{self._name}",
            base_url=server.url,
            server=server.server if server.wire == "chat" else None,
            api_key=server.key,
            http_client=client,
            headers={"Accept-Encoding": "identity"},
            timeout=SECONDS,
            max_retries=0,
            format=format,
            constrained=constrained,
        )

    async def _keep(self, response: Any) -> None:
        """Keep the bytes of a response, in addition to reading it."""
        response.stream = _kept_stream(response.stream, self._body)

    async def _grammar(self) -> tuple[bool | None, str]:
        """Return whether the server enforces grammars, None if that is unknown; and why not."""
        kind = self._server.server
        if kind is None or self._server.wire != "chat":
            return None, ""
        if not isinstance(SERVERS[kind].grammar, GrammarField):
            return False, str(SERVERS[kind].grammar)
        self._watch(self._name, "with a grammar")
        async with OPENAI.new_http_client() as client:
            try:
                try:
                    constrained = self._model(client, self._format, constrained=True)
                except (ConfigError, FormatError):  # the model's own format has no grammar
                    constrained = self._model(client, "hermes", constrained=True)
                await check_constraint(constrained)
            except ProviderError as e:
                return False, str(e)
        return True, ""


def _calls_in(events: Sequence[Event]) -> ReplyFinding:
    """How a complete reply calls the tool."""
    calls = [event.call for event in events if isinstance(event, CallEnd)]
    errors = [event for event in events if isinstance(event, CallError)]
    unread = [event.text for event in events if isinstance(event, UnreadCall)]
    if errors and (native := [e for e in errors if e.call.format is None]):
        return ReplyFinding("broken", error=native[0].message)
    if any(call.format is None for call in calls):
        return ReplyFinding("native")
    if calls:
        return ReplyFinding("text", format=str(calls[0].format))
    if errors or unread:
        return ReplyFinding("unread", error=errors[0].message if errors else unread[0])
    return ReplyFinding("none")


async def _seen_by(watcher: CutOut, asked: Model, request: ModelRequest) -> AsyncIterator[SourceEvent]:
    async for event in asked.stream(request):
        watcher.sees(event)
        yield event


def _kept_stream(stream: Any, kept: bytearray) -> Any:
    """A response's stream that also keeps its bytes, up to `LIMIT`."""
    import httpx2

    class Kept(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in stream:
                kept.extend(piece[: LIMIT - len(kept)])
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Kept()
