"""The thin async loop over a provider's own SDK: one request, its wire events through a wire, retries, failures.

Knows no provider and no HTTP: each model supplies its SDK's client, its request body, its responses and its wire. The
SDKs' own retries are off, so that there is one policy.
"""

from __future__ import annotations

import logging
import re
import sys
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from agentkit.checks.keys import shown_url
from agentkit.checks.missing_await import Closing
from agentkit.checks.unicode import escape_controls, has_surrogate
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import CallStart, SourceEvent, Usage
from agentkit.foreign.absent import suggest_attributes
from agentkit.models.base import ModelRequest
from agentkit.models.clients import Clients
from agentkit.models.files_taken import FilesTaken, fit_files
from agentkit.models.model_options import ModelSettings
from agentkit.models.provider_errors import ReceivedBytes, RequestInfo, broken_off, no_calls, provider_error
from agentkit.models.refused_replies import refused_reply
from agentkit.models.retry import Retry
from agentkit.models.secrets import MIN_SECRET, Address, is_secret, watch_logs
from agentkit.models.wire import Wire, WireEvent, offered_schemas

_LOG: Final = logging.getLogger("agentkit.models")

_IN_NO_HEADER: Final = re.compile(r"[^\t\x20-\x7e]")
_NOTHING: Final = Usage()
_MAX_SECRETS: Final = 64  # beyond that, the oldest have been replaced: providers renew credentials
_SENT: Final = ("messages", "input", "contents")  # the fields in which the APIs have the conversation


@dataclass(slots=True)
class Reception:
    """The state of one response while it arrives.

    Attributes:
        request_id: the provider's id of the request, once it answers.
        body: the bytes so far; None before that.
    """

    request_id: str | None = None
    body: ReceivedBytes | None = None


@suggest_attributes
class SdkModel(Closing, ABC):
    """A model that uses a provider's SDK.

    Args:
        model: the provider's name of the model.
        settings: apply to all its requests.

    Raises:
        ConfigError: no encoding can represent the name.
    """

    prefix: ClassVar[str]
    """The prefix of the model string."""
    files: FilesTaken
    """The files that it takes."""
    wire: ClassVar[type[Wire]]
    """Reads a response."""
    provider: str
    """The provider, or the host of another server. Its blocks are sent back to no other."""

    def __init__(self, model: str, settings: ModelSettings | None = None) -> None:
        if has_surrogate(model):
            raise ConfigError(
                f"the model's name {escape_controls(model)!r} has a character that no encoding can represent"
            )
        self.model = model
        self.settings = settings or ModelSettings()
        self.provider = self.prefix
        self._secrets: list[str] = []
        watch_logs(self, self._secrets)
        self._retry = Retry(times=self.settings.max_retries)
        self._clients = Clients(owned=self.settings.http_client is None)

    def _set_address(self, url: str, *homes: str) -> None:
        """Note the server's URL; the provider is named after it, unless it is in one of the provider's domains."""
        try:
            self._address = Address.of(url)
        except ValueError:
            raise self._no_url(url) from None  # the cause may show the credentials
        server = urllib.parse.urlsplit(self._address.url).netloc
        self.provider = self.prefix if f".{server}".endswith(homes) else server

    def _no_url(self, found: str) -> ConfigError:
        return ConfigError(
            f"{self.name}: base_url must be a URL such as http://127.0.0.1:8000/v1, found {shown_url(found)!r}"
        )

    def _stripped_key(self, found: str | None, variable: str) -> str | None:
        """A key without the white space around it, such as a file's line end; None if there is no other character."""
        key = (found or "").strip(" \t\r\n")
        if _IN_NO_HEADER.search(key):
            raise ConfigError(
                f"the API key of {self.name} has a character that no HTTP header can have (a line break, a control "
                f"character, or one that is not ASCII): check {variable}, or api_key="
            )
        return key or None

    def _hide(self, *secrets: str | None) -> None:
        """Keep secrets out of errors and logs: these, and those in the address and the headers."""
        headers = [value for name, value in (self.settings.headers or {}).items() if is_secret(name)]
        found = dict.fromkeys([*secrets, *self._address.secrets, *headers, *self._secrets])
        self._secrets[:] = [one for one in found if one and len(one) >= MIN_SECRET][:_MAX_SECRETS]

    def __repr__(self) -> str:
        return f"<{self.name}>" if self.is_official_host else f"<{self.name} at {self.provider}>"

    @property
    def is_official_host(self) -> bool:
        """Return whether the provider itself answers, not another server."""
        return self.provider == self.prefix

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
            ConfigError: the conversation is empty, or has a file that the model does not take.
        """
        body = self._body(request)
        if not any(map(body.get, _SENT)):
            raise ConfigError(f"{self.name}: nothing to send: the conversation has no message with any content")
        failures, spent, counted = 0, _NOTHING, _NOTHING
        while True:
            begun = called = False
            try:
                async with aclosing(self._attempt(body)) as events:
                    async for event in events:
                        if type(event) is Usage:
                            event = counted = spent.plus(event)
                        else:
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
                failures, spent = failures + 1, counted
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
        received = Reception()
        try:
            async with aclosing(self._wire_events(client, body, wire, received)) as wire_events:
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
            for event in last if begun else filter(_is_spent, last):  # it may be repeated: it has shown nothing yet
                yield event
            raise await self._failure(cause, handled, received) from cause
        if not wire.called and (promised := no_calls(self.provider, last, received.request_id, words=begun)):
            if not begun:
                raise promised
            _LOG.warning("%s", promised)
        for event in last:
            yield event

    async def _failure(
        self, cause: Exception | None, handled: BaseException | None, received: Reception
    ) -> ProviderError:
        """Why there was no complete response, in words."""
        came, request_id = received.body, received.request_id
        asked = RequestInfo(self.provider, self._secrets, self.settings.timeout, self._misplaced(), handled)
        return broken_off(asked, came, request_id) if cause is None else provider_error(cause, asked, came, request_id)

    def _misplaced(self) -> str:
        """Say what may be wrong with the URL, if the server does not know the request; else empty."""
        return ""

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        """The body with the model's and the request's extra fields; a field that is None is omitted.

        An object is joined with the model's: `text` or `generationConfig` has several settings. One with a `type`
        replaces it.
        """
        limit, temperature, settings = request.max_tokens, request.temperature, self.settings
        asked = replace(
            request,
            messages=fit_files(self.name, request, self.files),
            max_tokens=settings.max_tokens if limit is None else limit,
            temperature=settings.temperature if temperature is None else temperature,
        )
        merged = self._asked(asked)
        for extra in (self.settings.extra or {}, request.extra):
            for key, value in extra.items():
                own = merged.get(key)
                both = isinstance(own, Mapping) and isinstance(value, Mapping) and "type" not in value
                merged[key] = {**own, **value} if both else value  # type: ignore[dict-item]
        self._complete(merged)
        return {key: value for key, value in merged.items() if value is not None}

    def _complete(self, body: dict[str, Any]) -> None:
        """Set what is not set yet, now that it is known what else is: no default contradicts it."""

    def _explain(self, error: ProviderError, request: ModelRequest) -> str:
        """Explain the failure of a request, if the request shows its reason; else empty."""
        return ""

    @abstractmethod
    def _made_client(self) -> Any:
        """The SDK's client for the running event loop; its `close` is awaited at the end."""

    @abstractmethod
    def _asked(self, request: ModelRequest) -> dict[str, Any]:
        """The request's body, without the extra fields."""

    def _wire(self, body: Mapping[str, Any]) -> Wire:
        """The state machine for the response to one request."""
        return self.wire(self.provider, offered_schemas(body))

    @abstractmethod
    def _wire_events(
        self, client: Any, body: dict[str, Any], wire: Wire, received: Reception
    ) -> AsyncGenerator[WireEvent, None]:
        """Send one request; yields the wire events of its response, and closes it when left.

        Args:
            client: as made by `_made_client`.
            body: the request.
            wire: reads the events; once it is done, only the usage is still waited for.
            received: is kept up to date.
        """

    @abstractmethod
    def _failures(self) -> tuple[type[Exception], ...]:
        """List the exceptions that a request may raise; any other one is a bug in agentkit and is not caught."""


def _is_spent(event: SourceEvent) -> bool:
    """Return whether an event reports tokens."""
    return isinstance(event, Usage) and any(event)
