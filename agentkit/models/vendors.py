"""The vendors of APIs: their URLs, keys and SDKs. Values; an SDK is loaded on first use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from operator import attrgetter
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """A vendor of models.

    Args:
        home: its own URL.
        key_variable: the environment variable of the key.
        url_variable: the environment variable of another server's URL.
        sdk: the module of its SDK, which has the next two, and perhaps a `DefaultAsyncHttpxClient`.
        client: the SDK's async client.
        error: the base of the SDK's exceptions.
        first_key_variable: another variable of the key, which goes before it.
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
    first_key_variable: str = ""
    adds_version: str = ""
    login_variables: tuple[str, ...] = ()
    clouds: tuple[str, ...] = ()

    def new_http_client(self) -> Any:
        """The SDK's default HTTP client: its time-outs, its limits, its proxies."""
        module = import_module(self.sdk)
        if hasattr(module, "DefaultAsyncHttpxClient"):
            return module.DefaultAsyncHttpxClient()
        httpx2 = import_module("httpx2")
        limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)  # as of the other SDKs
        return httpx2.AsyncClient(follow_redirects=True, limits=limits)

    def new_client(self, **arguments: Any) -> Any:
        """The SDK's async client."""
        return getattr(import_module(self.sdk), self.client)(**arguments)

    def errors(self) -> type[Exception]:
        """The base class of what the SDK raises."""
        found: type[Exception] = attrgetter(self.error)(import_module(self.sdk))
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

GOOGLE: Final = Vendor(
    home="https://generativelanguage.googleapis.com",
    key_variable="GEMINI_API_KEY",
    first_key_variable="GOOGLE_API_KEY",  # as in the SDK
    url_variable="GOOGLE_GEMINI_BASE_URL",
    sdk="google.genai",
    client="Client",
    error="errors.APIError",
    adds_version="/v1beta/models",
    clouds=("aiplatform.googleapis.com",),
)

VERTEX: Final = replace(
    GOOGLE,
    home="https://aiplatform.googleapis.com",
    key_variable="",  # the SDK finds a project with credentials, or a key
    first_key_variable="",
    url_variable="GOOGLE_VERTEX_BASE_URL",
    login_variables=("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_API_KEY", "GEMINI_API_KEY"),
)
"""Vertex AI, where the SDK's variables say so: it knows the URL of the location."""
