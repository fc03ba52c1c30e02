"""Model strings such as `openai:gpt-5`: the provider's adapter, loaded on first use, and calls as text on top of it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from agentkit.checks.keys import shown_url
from agentkit.errors import ConfigError
from agentkit.models.base import ClosableModel
from agentkit.models.model_options import ModelOptions, by

PROVIDERS: Final[Mapping[str, str]] = {
    "openai": "OpenAIModel",
    "responses": "ResponsesModel",
    "anthropic": "AnthropicModel",
    "gemini": "GeminiModel",
}
"""The prefixes of model strings, and what answers them: a class of the module that has the prefix's name."""


def split_name(name: str) -> tuple[str, str]:
    """A model string's provider and model. Does not look for a key.

    Raises:
        ConfigError: the string names no known provider.
    """
    if not isinstance(name, str):
        raise ConfigError(
            f"model(…) expects a model string such as 'openai:gpt-5', found a {type(name).__name__}; pass a model "
            "object directly: Agent(model)"
        )
    prefix, _, id = name.partition(":")
    if prefix not in PROVIDERS or not id or id != id.strip():
        from agentkit.foreign.provider_hints import model_hint

        wanted = ", ".join(f"{p}:" for p in PROVIDERS)
        raise ConfigError(
            f"a model string is one of {wanted} and the model's name; found {shown_url(name)!r}"
            f"{model_hint(name, PROVIDERS)}"
        )
    return prefix, id


@by(ModelOptions)
def model(options: ModelOptions) -> ClosableModel:
    """Create a model. `async with` or `aclose` closes its connections, as does the end of their event loop.

    It accepts the options of `ModelOptions` and `ModelSettings`: `model("openai:gpt-5", max_tokens=4000)`.

    Raises:
        ConfigError: the string names no known provider, no server has that name, or there is no key.
        FormatError: no format has that name.
    """
    prefix, id = split_name(options.name)
    native: ClosableModel = getattr(import_module(f"agentkit.models.{prefix}"), PROVIDERS[prefix])(id, options)
    if options.format is None and not options.constrained:
        return native
    from agentkit.models.text import TextCalling

    return TextCalling(native, options.format, constrained=options.constrained)
