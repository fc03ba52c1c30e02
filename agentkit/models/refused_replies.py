"""Replies that a server refused because it could not read a call in them. What the model wrote is in the error. Pure.

Such an error is the model's mistake, or the server's, not the request's: the reply is read like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from agentkit.errors import ProviderError
from agentkit.events import Finish, SourceEvent, Text, UnreadCall

_FIELD: Final = "failed_generation"
"""The field of the error that has the reply, without what was streamed before it. Source: Groq, pydantic-ai#4350."""

_REST: Final = re.compile(r"Failed to parse input at pos \d+: (.+)", re.DOTALL)
"""The rest of the reply, from where it could not be read. Source: llama.cpp#23838, #24644."""

_ARGUMENTS: Final = re.compile(r"error parsing tool call: raw='(.*)', err=", re.DOTALL)
"""The arguments of a call whose name is not given. Source: ollama#12884, #17638."""


def refused_reply(error: ProviderError) -> tuple[SourceEvent, ...]:
    """The events of the reply that a server refused; none if the error is another one."""
    body = error.body
    given = body if isinstance(body, Mapping) else {}
    said = given.get("message") if given else body
    said = said if isinstance(said, str) else ""
    rest, arguments, end = _REST.search(said), _ARGUMENTS.search(said), Finish("stop", error.code or "refused")
    if arguments is not None:
        return UnreadCall(arguments[1], ""), end
    reply = given.get(_FIELD) if rest is None else rest[1]
    return (Text(reply), UnreadCall(reply, ""), end) if isinstance(reply, str) else ()
