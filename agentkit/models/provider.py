"""The thin async loop over a provider's own SDK: one request, its wire events through a wire, retries, failures.

Knows no provider: each supplies its client, its request body and its wire. The SDKs' own retries are off, so that there
is one policy.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from operator import attrgetter
from typing import Any, ClassVar, Final

from agentkit.checks.keys import shown_url
from agentkit.checks.missing_await import Closing
from agentkit.checks.unicode import escape_controls, has_surrogate
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import CallStart, SourceEvent
from agentkit.foreign.absent import suggest_attributes
from agentkit.models import error_bodies
from agentkit.models.base import ModelRequest
from agentkit.models.clients import Clients
from agentkit.models.decompression import ACCEPT, decompress
from agentkit.models.model_options import ModelSettings
from agentkit.models.provider_errors import PartialResponse, RequestInfo, broken_off, no_calls, provider_error
from agentkit.models.refused_replies import refused_reply
from agentkit.models.response_body import ResponseBody, Unreadable
from agentkit.models.retry import Retry
from agentkit.models.schemes import other_scheme
from agentkit.models.secrets import MIN_SECRET, Address, is_secret, watch_logs
from agentkit.models.stream_errors import ErrorInStream
from agentkit.models.vendors import Vendor
from agentkit.models.wire import Wire, WireEvent, items_of, mapping_of, text_of

_LOG: Final = logging.getLogger("agentkit.models")

_IN_NO_HEADER: Final = re.compile(r"[^\t\x20-\x7e]")

PLACEHOLDER_KEY: Final = "no-key"
"""Sent to a compatible server if no key is set; the SDKs require one, local servers ignore it."""

CONNECT_TIMEOUT: Final = 10.0  # seconds; an unreachable server is not a slow answer


@suggest_attributes
class RemoteModel(Closing, ABC):
    """A model that uses a provider's SDK.

    Args:
        model: the provider's name of the model.
        settings: apply to all its requests.

    Raises:
        ConfigError: there is no key.
    """

    prefix: ClassVar[str]
    """The prefix of the model string."""
    vendor: ClassVar[Vendor]
    """The vendor of the API."""
    method: ClassVar[str]
    """The part of the SDK's client that sends the requests, such as `chat.completions`."""
    required: ClassVar[Mapping[str, Any]] = {}
    """The arguments that it requires in addition to the model; what is sent is in the body."""
    as_streamed: ClassVar[staticmethod[[Mapping[str, Any]], Iterable[WireEvent]]]
    """A whole response as the events in which it would have been streamed."""

    def __init__(self, model: str, settings: ModelSettings | None = None) -> None:
        if has_surrogate(model):
            raise ConfigError(
                f"the model's name {escape_controls(model)!r} has a character that no encoding can represent"
            )
        self.model = model
        self.settings = settings or ModelSettings()
        self._retry = Retry(times=self.settings.max_retries)
        self._clients = Clients(owned=self.settings.http_client is None)
        vendor = self.vendor
        url = self.settings.base_url or os.environ.get(vendor.url_variable) or vendor.home
        try:
            self._address = Address.of(url)
        except ValueError:
            raise self._no_url(url) from None  # the cause may show the credentials
        server = urllib.parse.urlsplit(self._address.url).netloc
        home = urllib.parse.urlsplit(vendor.home).netloc
        self.provider = self.prefix if f".{server}".endswith(f".{home}") else server
        """The provider, or the host of another server. Its blocks are sent back to no other."""
        self._api_key = self._find_key()
        self._secrets = self._find_secrets()
        watch_logs(self, self._secrets)

    def __repr__(self) -> str:
        return f"<{self.name}>" if self.is_official_host else f"<{self.name} at {self.provider}>"

    @property
    def is_official_host(self) -> bool:
        """Return whether the provider itself answers, not another server."""
        return self.provider == self.prefix

    @property
    def is_vendor_api(self) -> bool:
        """Return whether the vendor's own API answers: at its own URL, or in a cloud that offers it."""
        return self.is_official_host or self.provider.endswith(self.vendor.clouds)

    @property
    def name(self) -> str:
        """The model string, such as `openai:gpt-5`."""
        return f"{self.prefix}:{self.model}"

    @property
    def server(self) -> str | None:
        """The kind of server that answers, if it was named."""
        return self.settings.server

    @property
    def format(self) -> str | None:
        """None: the model calls natively."""
        return None

    @property
    def continues(self) -> bool:
        """Return whether the model continues its own last message: as declared, or as known."""
        return self._continues() if self.settings.continues is None else self.settings.continues

    def _continues(self) -> bool:
        """Return whether it is known to."""
        return False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[SourceEvent, None]:
        """Answer a request. Ends with exactly one `Finish`, or raises `ProviderError` after earlier events.

        Raises:
            ConfigError: the conversation is empty.
        """
        body = self._body(request)
        if not body.get("messages", body.get("input")):
            raise ConfigError(f"{self.name}: nothing to send: the conversation has no message with any content")
        failures = 0
        while True:
            begun = called = False
            try:
                async with aclosing(self._attempt(body)) as events:
                    async for event in events:
                        begun = True
                        called = called or type(event) is CallStart
                        yield event
                return
            except ProviderError as error:
                if request.tools and not called and (reply := refused_reply(error)):
                    _LOG.info("%s; the reply is read from the error", error)
                    for event in reply:
                        yield event
                    return
                failures += 1
                wait = None if begun else self._retry.wait(failures, error, self.settings.dice())
                if wait is None:
                    more = self._explain(error, request), self._retry.gave_up(error, begun=begun)
                    error.args = ("; ".join((str(error), *filter(None, more))),)
                    raise
                attempt = f"attempt {failures + 1} of {self.settings.max_retries + 1} in {wait:.1f} s"
                _LOG.info("%s; %s", error, attempt, extra={"retry_in": wait})
            await self.settings.sleep(wait)

    async def aclose(self) -> None:
        """Close the connections made in the running event loop; the model can be used again afterwards."""
        await self._clients.aclose()

    async def _attempt(self, body: dict[str, Any]) -> AsyncGenerator[SourceEvent, None]:
        """One request, from its first event to its last."""
        handled = sys.exception()  # if the caller asks while it handles one
        client = await self._clients.get(self._made_client)
        wire = self._wire(body)
        begun = False
        cause: Exception | None = None
        request_id: str | None = None
        received: ResponseBody | None = None
        try:
            async with AsyncExitStack() as sent:
                with error_bodies.errors_up_to(self.settings.max_response):
                    response = await sent.enter_async_context(self._request(client, body))
                request_id = response.headers.get("x-request-id") or response.headers.get("request-id")
                pieces, limit = decompress(response.http_response), self.settings.max_response
                content_type = response.headers.get("content-type", "")
                received = ResponseBody(pieces, content_type, limit=limit, linger=self.settings.linger)
                async with aclosing(received.events(wire, self.as_streamed)) as wire_events:
                    async for wire_event in wire_events:
                        if wire.over:  # repeated, perhaps by a proxy: read as new, it would double every call
                            wire_event = {"usage": wire_event.get("usage")}  # some report it after the end
                        for event in wire.feed(wire_event):
                            begun = True
                            yield event
        except self._failures() as error:
            cause = error
        last = wire.close()
        if not wire.done:
            for event in last if begun else ():  # a request that was interrupted before its first event can be repeated
                yield event
            raise await self._failure(cause, handled, received, request_id) from cause
        if not wire.called and (promised := no_calls(self.provider, last, request_id, words=begun)) is not None:
            if not begun:
                raise promised
            _LOG.warning("%s", promised)
        for event in last:
            yield event

    async def _failure(
        self,
        cause: Exception | None,
        handled: BaseException | None,
        received: ResponseBody | None,
        request_id: str | None,
    ) -> ProviderError:
        """Why there was no complete response, in words."""
        came = PartialResponse(received.size, received.head) if received is not None else None
        asked = RequestInfo(self.provider, self._secrets, self.settings.timeout, self._misplaced(), handled)
        if cause is None:
            return broken_off(asked, came, request_id)
        error, url = provider_error(cause, asked, came, request_id), self._address.url
        silent = came is None and error.status is None and error.kind in ("connection", "timeout")
        theirs = self.is_official_host or self.settings.http_client is not None
        if theirs or not silent or not (found := await other_scheme(url)):
            return error
        said = f"the server speaks {found.partition(':')[0]}, not {url.partition(':')[0]}; write base_url={found!r}"
        return ProviderError(f"{self.provider}: {said}", kind="bad_request", provider=self.provider)

    def _misplaced(self) -> str:
        """Say what may be wrong with the URL, if the server does not know the request; else empty."""
        if self.is_official_host:
            return ""
        path = urllib.parse.urlsplit(self._address.url).path.rstrip("/")
        if added := self.vendor.adds_version:
            return f"base_url ends in {path}, and the SDK adds {added}" if path.endswith("/v1") else ""
        return "" if path else "base_url has no path; most servers answer under /v1"

    def _made_client(self) -> Any:
        """The SDK's client, using our own HTTP client or the caller's."""
        import httpx2

        try:
            httpx2.URL(self._address.url)  # the transport alone knows what a host may be called
        except httpx2.InvalidURL:
            raise self._no_url(self._address.url) from None
        http_client = self.settings.http_client or self.vendor.new_http_client()
        error_bodies.install_hooks(http_client)
        return self.vendor.new_client(
            api_key=self._api_key,
            base_url=self._address.url,
            http_client=http_client,
            default_headers={**ACCEPT, **self._address.headers, **(self.settings.headers or {})},
            default_query=dict(self._address.query),
            max_retries=0,
        )

    def _request(self, client: Any, body: dict[str, Any]) -> AbstractAsyncContextManager[Any]:
        """Send a request; returns the SDK's raw response, whose body is still to be read.

        The body travels as `extra_body`, which overrides the arguments that the method requires. As a separate
        argument, a conversation would be rewritten by the SDK node by node: 0.5 to 1.7 s for 1,000 turns.
        """
        import httpx2

        timeout = httpx2.Timeout(self.settings.timeout, connect=min(self.settings.timeout, CONNECT_TIMEOUT))
        create: Callable[..., AbstractAsyncContextManager[Any]]
        create = attrgetter(f"{self.method}.with_streaming_response.create")(client)
        given = {"model": self.model, **self.required}
        return create(**given, stream=bool(body.get("stream")), extra_body=body, timeout=timeout)

    def _failures(self) -> tuple[type[Exception], ...]:
        """List the exceptions that a request may raise; any other one is a bug in agentkit and is not caught."""
        import anyio
        import httpx2

        connection = (httpx2.HTTPError, httpx2.StreamError, anyio.EndOfStream, OSError)
        damaged = (json.JSONDecodeError, UnicodeDecodeError, Unreadable)
        return (self.vendor.errors(), *connection, *damaged, ErrorInStream)

    def _no_url(self, found: str) -> ConfigError:
        return ConfigError(
            f"{self.name}: base_url must be a URL such as http://127.0.0.1:8000/v1, found {shown_url(found)!r}"
        )

    def _find_key(self) -> str | None:
        variable = self.vendor.key_variable
        key = (self.settings.api_key or os.environ.get(variable) or "").strip(" \t\r\n")  # a file's line end
        if _IN_NO_HEADER.search(key):
            raise ConfigError(
                f"the API key of {self.name} has a character that no HTTP header can have (a line break, a control "
                f"character, or one that is not ASCII): check {variable}, or api_key="
            )
        if key or any(map(os.environ.get, self.vendor.login_variables)):
            return key or None
        if not self.is_official_host:
            return PLACEHOLDER_KEY
        raise ConfigError(
            f"{self.name} needs an API key, but none was found: set the environment variable {variable}, or pass "
            f"api_key=. A compatible server without keys only needs base_url="
        )

    def _find_secrets(self) -> list[str]:
        """Collect the secrets that must not be seen in an error: the key, and all other credentials."""
        found = [self._api_key or "", *self._address.secrets]
        found += [value for name, value in (self.settings.headers or {}).items() if is_secret(name)]
        found += [os.environ.get(name, "") for name in self.vendor.login_variables if is_secret(name)]
        return [s for s in found if len(s) >= MIN_SECRET and s != PLACEHOLDER_KEY]

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        """The body with the model's and the request's extra fields; a field that is None is omitted.

        Two objects without a common key are joined: a field such as `text` or `output_config` has several settings.
        """
        merged = self._asked(request)
        merged["temperature"] = request.temperature if request.temperature is not None else self.settings.temperature
        for extra in (self.settings.extra or {}, request.extra):
            for key, value in extra.items():
                own = merged.get(key)
                both = isinstance(own, Mapping) and isinstance(value, Mapping) and own.keys().isdisjoint(value)
                merged[key] = {**own, **value} if both else value  # type: ignore[dict-item]
        self._complete(merged)
        return {key: value for key, value in merged.items() if value is not None}

    def _complete(self, body: dict[str, Any]) -> None:
        """Set what is not set yet, now that it is known what else is: no default contradicts it."""
        if not body.get("stream"):
            body.pop("stream_options", None)  # refused without `stream`, which `extra` may have turned off

    def _max_tokens(self, request: ModelRequest) -> int | None:
        return request.max_tokens if request.max_tokens is not None else self.settings.max_tokens

    def _explain(self, error: ProviderError, request: ModelRequest) -> str:
        """Explain the failure of a request, if the request shows its reason; else empty."""
        return ""

    @abstractmethod
    def _asked(self, request: ModelRequest) -> dict[str, Any]:
        """The request's body, except what is the same in every API."""

    @abstractmethod
    def _wire(self, body: Mapping[str, Any]) -> Wire:
        """The state machine for the response to one request."""


def offered_schemas(body: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The schemas of a request's tools by name, regardless of where in a tool its API has them."""
    tools = [mapping_of(tool.get("function")) or tool for tool in items_of(body.get("tools"))]
    return {text_of(t.get("name")): mapping_of(t.get("parameters", t.get("input_schema"))) for t in tools}
