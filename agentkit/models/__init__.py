"""Models: one request in, source events out, whatever the provider. Each provider's SDK is loaded on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentkit.errors import ConfigError
from agentkit.foreign.absent_imports import absent
from agentkit.models.base import ClosableModel, Model, ModelRequest
from agentkit.models.model_options import ModelOptions, by
from agentkit.models.secrets import secrets_in, shown, watch_logs

if TYPE_CHECKING:
    from agentkit.models.anthropic import AnthropicModel
    from agentkit.models.constraint import check_constraint
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
    "check_constraint",
    "model",
    "secrets_in",
    "watch_logs",
]

PROVIDERS: Final[Mapping[str, str]] = {
    "openai": "OpenAIModel",
    "responses": "ResponsesModel",
    "anthropic": "AnthropicModel",
}
"""The prefixes of model strings, and what answers them: a class of the module that has the prefix's name."""

_HOMES: Final[Mapping[str, str]] = {
    "TextCalling": "text",
    "check_constraint": "constraint",
    **{name: prefix for prefix, name in PROVIDERS.items()},
}


def _loaded(name: str) -> Any:
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


if not TYPE_CHECKING:  # otherwise type checkers would accept any name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise absent(sys.modules[__name__], name, sys._getframe(1))
        return _loaded(name)


def known(name: str) -> tuple[str, str]:
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
        from agentkit.models.meant import meant

        wanted = ", ".join(f"{p}:" for p in PROVIDERS)
        raise ConfigError(
            f"a model string is one of {wanted} and the model's name; found {shown(name)!r}{meant(name, PROVIDERS)}"
        )
    return prefix, id


@by(ModelOptions)
def model(options: ModelOptions) -> ClosableModel:
    """Create a model. `async with` or `aclose` closes its connections; so does the end of their event loop.

    It accepts the options of `ModelOptions` and `ModelSettings`: `model("openai:gpt-5", max_tokens=4000)`.

    Raises:
        ConfigError: the string names no known provider, no server has that name, or there is no key.
        FormatError: no format has that name.
    """
    prefix, id = known(options.name)
    native: ClosableModel = _loaded(PROVIDERS[prefix])(id, options)
    if options.format is None and not options.constrained:
        return native
    from agentkit.models.text import TextCalling

    return TextCalling(native, options.format, constrained=options.constrained)
