"""The vendors of APIs: their URLs, keys and SDKs. Values; an SDK is loaded on first use."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """A vendor of models.

    Args:
        home: its own URL.
        key_variable: the environment variable of the key.
        url_variable: the environment variable of another server's URL.
        sdk: the module of its SDK, which has the next two, and a `DefaultAsyncHttpxClient`.
        client: the SDK's async client.
        error: the base of the SDK's exceptions.
        adds_version: the path that the SDK puts between `base_url` and the rest, if it does.
        login_variables: further environment variables by which the SDK itself finds credentials.
        clouds: the domains under which others offer the vendor's own API.
    """

    home: str
    key_variable: str
    url_variable: str
    sdk: str
    client: str
    error: str
    adds_version: str = ""
    login_variables: tuple[str, ...] = ()
    clouds: tuple[str, ...] = ()

    def new_http_client(self) -> Any:
        """The SDK's default HTTP client: its time-outs, its limits, its proxies."""
        return import_module(self.sdk).DefaultAsyncHttpxClient()

    def new_client(self, **arguments: Any) -> Any:
        """The SDK's async client."""
        return getattr(import_module(self.sdk), self.client)(**arguments)

    def errors(self) -> type[Exception]:
        """The base class of what the SDK raises."""
        found: type[Exception] = getattr(import_module(self.sdk), self.error)
        return found


OPENAI: Final = Vendor(
    home="https://api.openai.com/v1",
    key_variable="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    sdk="openai",
    client="AsyncOpenAI",
    error="OpenAIError",
    clouds=(".azure.com",),
)

ANTHROPIC: Final = Vendor(
    home="https://api.anthropic.com",
    key_variable="ANTHROPIC_API_KEY",
    url_variable="ANTHROPIC_BASE_URL",
    sdk="anthropic",
    client="AsyncAnthropic",
    error="AnthropicError",
    adds_version="/v1/messages",
    login_variables=(
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_PROFILE",
        "ANTHROPIC_IDENTITY_TOKEN",
        "ANTHROPIC_IDENTITY_TOKEN_FILE",
    ),
)
