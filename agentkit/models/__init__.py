"""Models: one request in, source events out, whatever the provider. Each provider's SDK loads on first use."""

from __future__ import annotations

import asyncio
import importlib
import random
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from agentkit.checks.spelling import takes
from agentkit.errors import ConfigError
from agentkit.foreign.absent_imports import absent
from agentkit.foreign.elsewhere import at
from agentkit.models.base import ClosableModel, Model, ModelRequest
from agentkit.models.secrets import shown

if TYPE_CHECKING:
    from agentkit.formats.format import Format
    from agentkit.models.anthropic import AnthropicModel
    from agentkit.models.openai import OpenAIModel
    from agentkit.models.responses import ResponsesModel
    from agentkit.models.text import TextCalling

__all__ = [
    "AnthropicModel",
    "ClosableModel",
    "Model",
    "ModelRequest",
    "OpenAIModel",
    "ResponsesModel",
    "TextCalling",
    "model",
]

PROVIDERS: Final[Mapping[str, str]] = {
    "openai": "OpenAIModel",
    "responses": "ResponsesModel",
    "anthropic": "AnthropicModel",
}
"""The prefixes of model strings, and who answers them."""

_HOMES: Final[Mapping[str, str]] = {
    "AnthropicModel": "anthropic",
    "OpenAIModel": "openai",
    "ResponsesModel": "responses",
    "TextCalling": "text",
}


def _loaded(name: str) -> Any:
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


if not TYPE_CHECKING:  # or checkers would take any name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise absent(sys.modules[__name__], name, sys._getframe(1))
        return _loaded(name)


def known(name: str) -> tuple[str, str]:
    """A model string's provider and model. No key is looked for.

    Raises:
        ConfigError: the string names no known provider.
    """
    if not isinstance(name, str):
        raise ConfigError(
            f"model(…) takes a model string such as 'openai:gpt-5', found a {type(name).__name__}; what is a model "
            "already is given as it is: Agent(model)"
        )
    prefix, _, id = name.partition(":")
    if prefix not in PROVIDERS or not id or id != id.strip():
        from agentkit.models.meant import meant

        wanted = ", ".join(f"{p}:" for p in PROVIDERS)
        raise ConfigError(
            f"a model string is one of {wanted} and then the model's name; got {shown(name)!r}{meant(name, PROVIDERS)}"
        )
    return prefix, id


@takes(others=at("model"))
def model(
    name: str,
    *,
    format: str | Format | None = None,
    base_url: str | None = None,
    server: str | None = None,
    api_key: str | None = None,
    timeout: float = 600.0,
    max_response: int = 256 * 1024 * 1024,
    linger: float = 1.0,
    max_retries: int = 2,
    max_tokens: int | None = None,
    temperature: float | None = None,
    cache: bool = False,
    extra: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    http_client: Any = None,
    continues: bool | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    dice: Callable[[], float] = random.random,
) -> ClosableModel:
    """A model by its string. `async with` or `aclose` closes its connections; so does the end of their event loop.

    Args:
        name: `openai:…` (chat completions), `responses:…` or `anthropic:…`, then the provider's name of the model.
        format: make it write its calls as text in this format (`xml`, `invoke`, `hermes`, …, or a `Format` of your own)
            in place of native calls.
        base_url: the address of a compatible server; None for the provider's own, or the one in `OPENAI_BASE_URL` or
            `ANTHROPIC_BASE_URL`.
        server: what answers at `base_url`: `vllm`, `sglang`, `llamacpp`, `ollama` or `lmstudio`. With a `format` it is
            then asked to leave the calls in the text, in the way that it wants to be asked.
        api_key: None takes `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`. With a `base_url` it may be missing.
        timeout: seconds without a byte from the server before the request fails; not a bound on a whole response.
        max_response: bytes of one response at most, decompressed.
        linger: seconds to wait for the usage of a response that has finished, if the server neither tells it nor ends
            the stream.
        max_retries: further attempts after a failure that may pass, before the first event came; with back-off, or
            after the time that the provider names.
        max_tokens: bound on the tokens of one response, where a request names none. Anthropic insists on a number, and
            gets 16,384.
        temperature: where a request names none.
        cache: whether to mark requests for the provider's prompt cache: tools, system prompt and conversation.
            Anthropic caches nothing without marks, and asks a quarter more for what is written and nine tenths less
            for what is read again. The others cache without being asked.
        extra: further fields of the request's body, such as `{"reasoning_effort": "low"}`. They win over agentkit's
            own, and None takes a field out.
        headers: further HTTP headers.
        http_client: an `httpx2.AsyncClient` to use, for proxies, certificates and tests.
        continues: whether the model goes on with its own last message, exactly where that ends, so that a text call
            which the token limit cut can be gone on with. None: as far as it is known (Claude before 4.6, Mistral's API
            and DeepSeek's beta do). True for a server that does, such as vLLM and SGLang, which are then told to, or
            llama.cpp and Ollama.
        sleep: waits between attempts.
        dice: random numbers from 0 to 1, for the jitter of the back-off.

    Raises:
        ConfigError: the string names no known provider, no server has that name, or there is no key.
        FormatError: no format has that name.
    """
    from agentkit.models.provider import ModelSettings

    prefix, id = known(name)
    settings = ModelSettings(
        base_url=base_url,
        server=server,
        api_key=api_key,
        timeout=timeout,
        max_response=max_response,
        linger=linger,
        max_retries=max_retries,
        max_tokens=max_tokens,
        temperature=temperature,
        cache=cache,
        extra=extra or {},
        headers=headers or {},
        http_client=http_client,
        continues=continues,
        sleep=sleep,
        dice=dice,
    )
    native: ClosableModel = _loaded(PROVIDERS[prefix])(id, settings)
    if format is None:
        return native
    from agentkit.models.text import TextCalling

    return TextCalling(native, format)
