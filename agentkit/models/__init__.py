"""Models: one request in, source events out, whatever the provider. Each provider's SDK is loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.foreign.absent_imports import explained_module

if TYPE_CHECKING:
    from agentkit.models.anthropic import AnthropicModel
    from agentkit.models.base import ClosableModel, Model, ModelRequest
    from agentkit.models.constraint import check_constraint
    from agentkit.models.decompression import decompress
    from agentkit.models.gemini import GeminiModel
    from agentkit.models.model_strings import model
    from agentkit.models.openai import OpenAIModel
    from agentkit.models.responses import ResponsesModel
    from agentkit.models.secrets import redact, secrets_in, watch_logs
    from agentkit.models.text import TextCalling

__all__ = [
    "AnthropicModel",
    "ClosableModel",
    "GeminiModel",
    "Model",
    "ModelRequest",
    "OpenAIModel",
    "ResponsesModel",
    "TextCalling",
    "check_constraint",
    "decompress",
    "model",
    "redact",
    "secrets_in",
    "watch_logs",
]

explained_module(
    __name__,
    homes={
        "agentkit.models.anthropic": "AnthropicModel",
        "agentkit.models.base": "ClosableModel Model ModelRequest",
        "agentkit.models.constraint": "check_constraint",
        "agentkit.models.decompression": "decompress",
        "agentkit.models.gemini": "GeminiModel",
        "agentkit.models.model_strings": "model",
        "agentkit.models.openai": "OpenAIModel",
        "agentkit.models.responses": "ResponsesModel",
        "agentkit.models.secrets": "redact secrets_in watch_logs",
        "agentkit.models.text": "TextCalling",
    },
)
