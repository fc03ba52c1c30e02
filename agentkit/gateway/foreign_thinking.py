"""Thinking of a chat server in the blocks of the Messages API, so that the client sends it back to that server. Pure.

Source: DeepSeek's guide to thinking with tools: in the turns after a call a request without it is refused.
"""

from __future__ import annotations

from typing import Final

from agentkit.events import ProviderBlock
from agentkit.gateway.wire_fields import PROVIDERS
from agentkit.messages import ThinkingPart
from agentkit.models.chat_thinking import FIELDS

_SIGNATURE: Final = "agentkit:"
"""The beginning of a signature that is not Anthropic's; the name of the thinking's field follows."""


def messages_thinking(block: ProviderBlock) -> ProviderBlock | None:
    """Return a chat server's thinking as a block of the Messages API; None for another block.

    Example:
        >>> messages_thinking(ProviderBlock("openai", {"reasoning": "Hm."}, thinking=True)).data
        {'type': 'thinking', 'thinking': 'Hm.', 'signature': 'agentkit:reasoning'}
    """
    names = [name for name in FIELDS if isinstance(block.data.get(name), str)]
    if block.provider != PROVIDERS["chat"] or not block.thinking or len(block.data) != len(names) or len(names) != 1:
        return None
    data = {"type": "thinking", "thinking": block.data[names[0]], "signature": f"{_SIGNATURE}{names[0]}"}
    return ProviderBlock(PROVIDERS["messages"], data, thinking=True)


def chat_thinking(text: str, signature: object) -> ThinkingPart | None:
    """Return the thinking of a block that `messages_thinking` created; None for another signature."""
    for name in FIELDS:
        if signature == f"{_SIGNATURE}{name}":
            return ThinkingPart(text, PROVIDERS["chat"], {name: text})
    return None
