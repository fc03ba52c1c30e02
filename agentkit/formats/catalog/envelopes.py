"""Formats whose call is one JSON object that holds the name and the arguments."""

from __future__ import annotations

from agentkit.formats.spec import Envelope, Format, ResultShape

HERMES = Format(
    "hermes",
    ("<tool_call>\n", Envelope("name", ("arguments", "parameters")), "\n</tool_call>"),
    result=ResultShape("<tool_response>\n", "\n</tool_response>"),
    families=("Hermes 2/3", "Qwen2.5", "QwQ", "Qwen3"),
)

ENVELOPES = (HERMES,)
