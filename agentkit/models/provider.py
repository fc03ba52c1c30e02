"""A model of an SDK on httpx2: its address and its key, its requests, and the raw responses to them.

Knows no provider: each supplies its vendor, its request body and its wire.
"""

from __future__ import annotations

import json
import os
import urllib.parse
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

from agentkit.errors import ConfigError, ProviderError
from agentkit.models import error_bodies
from agentkit.models.decompression import ACCEPT, decompress
from agentkit.models.model_options import ModelSettings
from agentkit.models.response_body import ResponseBody, Unreadable
from agentkit.models.schemes import other_scheme
from agentkit.models.sdk_model import Reception, SdkModel
from agentkit.models.secrets import is_secret
from agentkit.models.stream_errors import ErrorInStream
from agentkit.models.vendors import Vendor
from agentkit.models.wire import Wire, WireEvent

if TYPE_CHECKING:
    import httpx2

PLACEHOLDER_KEY: Final = "no-key"
"""Sent to a compatible server if no key is set; the SDKs require one, local servers ignore it."""

CONNECT_TIMEOUT: Final = 10.0  # seconds; an unreachable server is not a slow answer


class RemoteModel(SdkModel):
    """A model that uses a provider's SDK on httpx2.

    Args:
        model: the provider's name of the model.
        settings: apply to all its requests.

    Raises:
        ConfigError: there is no key.
    """

    vendor: Vendor
    """The vendor of the API."""
    method: ClassVar[str]
    """The part of the SDK's client that sends the requests, such as `chat.completions`."""
    required: ClassVar[Mapping[str, Any]] = {}
    """The arguments that it requires in addition to the model; what is sent is in the body."""
    as_streamed: ClassVar[staticmethod[[Mapping[str, Any]], Iterable[WireEvent]]]
    """A whole response as the events in which it would have been streamed."""

    def __init__(self, model: str, settings: ModelSettings | None = None) -> None:
        super().__init__(model, settings)
        vendor = self.vendor
        url = self.settings.base_url or os.environ.get(vendor.url_variable) or vendor.home
        self._set_address(url, f".{urllib.parse.urlsplit(vendor.home).netloc}")
        self._api_key = self._find_key()
        logins = [os.environ.get(name) for name in vendor.login_variables if is_secret(name)]
        self._hide(None if self._api_key == PLACEHOLDER_KEY else self._api_key, *logins)

    @property
    def is_vendor_api(self) -> bool:
        """Return whether the vendor's own API answers: at its own URL, or in a cloud that offers it."""
        return self.is_official_host or self.provider.endswith(self.vendor.clouds)

    async def _wire_events(
        self, client: Any, body: dict[str, Any], wire: Wire, received: Reception
    ) -> AsyncGenerator[WireEvent, None]:
        async with AsyncExitStack() as sent:
            with error_bodies.errors_up_to(self.settings.max_response):
                response = await sent.enter_async_context(self._request(client, body))
            headers = response.headers
            received.request_id = headers.get("x-request-id") or headers.get("request-id")
            pieces, limit = decompress(response.http_response), self.settings.max_response
            came = ResponseBody(pieces, headers.get("content-type", ""), limit=limit, linger=self.settings.linger)
            received.body = came
            async with aclosing(came.events(wire, self.as_streamed)) as wire_events:
                async for wire_event in wire_events:
                    yield wire_event

    async def _failure(
        self, cause: Exception | None, handled: BaseException | None, received: Reception
    ) -> ProviderError:
        error, url = await super()._failure(cause, handled, received), self._address.url
        silent = received.body is None and error.status is None and error.kind in ("connection", "timeout")
        theirs = self.is_official_host or self.settings.http_client is not None
        if theirs or not silent or not (found := await other_scheme(url)):
            return error
        said = f"the server speaks {found.partition(':')[0]}, not {url.partition(':')[0]}; write base_url={found!r}"
        return ProviderError(f"{self.provider}: {said}", kind="bad_request", provider=self.provider)

    def _misplaced(self) -> str:
        if self.is_official_host:
            return ""
        path = urllib.parse.urlsplit(self._address.url).path.rstrip("/")
        if added := self.vendor.adds_version:
            return f"base_url ends in {path}, and the SDK adds {added}" if path.endswith(("/v1", "/v1beta")) else ""
        return "" if path else "base_url has no path; most servers answer under /v1"

    def _new_http_client(self) -> Any:
        """The HTTP client for the SDK's: our own, or the caller's."""
        import httpx2

        try:
            httpx2.URL(self._address.url)  # the transport alone knows what a host may be called
        except httpx2.InvalidURL:
            raise self._no_url(self._address.url) from None
        http_client = self.settings.http_client or self.vendor.new_http_client()
        error_bodies.install_hooks(http_client)
        return http_client

    def _made_client(self) -> Any:
        return self.vendor.new_client(
            api_key=self._api_key,
            base_url=self._address.url,
            http_client=self._new_http_client(),
            default_headers={**ACCEPT, **self._address.headers, **(self.settings.headers or {})},
            default_query=dict(self._address.query),
            max_retries=0,
        )

    def _request(self, client: Any, body: dict[str, Any]) -> AbstractAsyncContextManager[Any]:
        """Send a request; returns the SDK's raw response, whose body is still to be read.

        The body travels as `extra_body`, which overrides the arguments that the method requires. As a separate
        argument, a conversation would be rewritten by the SDK node by node: 0.5 to 1.7 s for 1,000 turns.
        """
        create: Callable[..., AbstractAsyncContextManager[Any]]
        create = attrgetter(f"{self.method}.with_streaming_response.create")(client)
        given = {"model": self.model, **self.required}
        return create(**given, stream=bool(body.get("stream")), extra_body=body, timeout=self._timeout())

    def _timeout(self) -> httpx2.Timeout:
        import httpx2

        return httpx2.Timeout(self.settings.timeout, connect=min(self.settings.timeout, CONNECT_TIMEOUT))

    def _failures(self) -> tuple[type[Exception], ...]:
        import anyio
        import httpx2

        connection = (httpx2.HTTPError, httpx2.StreamError, anyio.EndOfStream, OSError)
        damaged = (json.JSONDecodeError, UnicodeDecodeError, Unreadable)
        return (self.vendor.errors(), *connection, *damaged, ErrorInStream)

    def _find_key(self) -> str | None:
        variable = self.vendor.key_variable
        found = self.settings.api_key or os.environ.get(self.vendor.first_key_variable) or os.environ.get(variable)
        key = self._stripped_key(found, variable)
        if key or any(map(os.environ.get, self.vendor.login_variables)):
            return key
        if not self.is_official_host:
            return PLACEHOLDER_KEY
        raise ConfigError(
            f"{self.name} needs an API key, but none was found: set the environment variable {variable}, or pass "
            f"api_key=. A compatible server without keys only needs base_url="
        )

    def _complete(self, body: dict[str, Any]) -> None:
        if not body.get("stream"):
            body.pop("stream_options", None)  # refused without `stream`, which `extra` may have turned off
