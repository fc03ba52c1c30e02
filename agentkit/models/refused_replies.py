"""Replies that a server refused because it could not read a call in them. The error has the model's text. Pure.

Such an error is the model's mistake, or the server's, not the request's: the reply is read like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from agentkit.errors import ProviderError
from agentkit.events import Finish, SourceEvent, Text, UnreadCall

_REST: Final = re.compile(r"Failed to parse input at pos \d+: (.+)", re.DOTALL)
"""The rest of the reply, from where it could not be read. Source: llama.cpp#23838, #24644."""

_ARGUMENTS: Final = re.compile(r"error parsing tool call: raw='(.*)', err=", re.DOTALL)
"""The arguments of a call whose name is not given. Source: ollama#12884, #17638."""


def refused_reply(error: ProviderError) -> tuple[SourceEvent, ...]:
    """The events of the reply that a server refused; none if the error is another one.

    Read are the field `failed_generation` of an error with the code `tool_use_failed`, without what was streamed before
    (Source: Groq, pydantic-ai#4350), and messages that begin as those of llama.cpp and Ollama do.
    """
    if not isinstance(error.body, Mapping) or error.status not in (None, 400, 500):
        return ()
    said, end = str(error.body.get("message")), Finish("stop", error.code or "refused")
    if (arguments := _ARGUMENTS.match(said)) is not None:
        return UnreadCall(arguments[1], ""), end
    rest = _REST.match(said)
    reply = rest[1] if rest is not None else error.body.get("failed_generation")
    if not isinstance(reply, str) or (rest is None and error.code != "tool_use_failed"):
        return ()
    return Text(reply), UnreadCall(reply, ""), end
