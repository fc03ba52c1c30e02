"""Tells whether a streamed reply is complete: HTTP does not, if the server ends its replies by closing. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from agentkit.gateway.client_wire import WireName

_ENDS: Final[Mapping[WireName, re.Pattern[bytes]]] = {
    "chat": re.compile(rb'(?:^|[\r\n])data: ?\[DONE\]|"finish_reason"\s*:\s*"[^"]|"error"\s*:\s*[{"]'),
    "messages": re.compile(rb'(?:"type"\s*:\s*"|(?:^|[\r\n])event: ?)(?:message_stop|error)\b|"stop_reason"\s*:\s*"'),
    "responses": re.compile(
        rb'(?:"type"\s*:\s*"|(?:^|[\r\n])event: ?)(?:response\.(?:completed|incomplete|failed)|error)\b'
    ),
}
"""What the last events of a reply have, as `agentkit.models` reads them. In a JSON string the quotes are escaped."""


def has_end(wire: WireName, events: bytes) -> bool:
    r"""Return whether one of these events ends a reply, or is an error.

    >>> has_end("chat", b'data: {"choices": [{"delta": {"content": "[DONE]"}, "finish_reason": null}]}\n\n')
    False
    >>> has_end("chat", b"data: [DONE]\n\n"), has_end("messages", b'data: {"type": "message_stop"}\n\n')
    (True, True)
    """
    return _ENDS[wire].search(events) is not None
