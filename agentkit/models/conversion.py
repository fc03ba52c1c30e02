"""Schemas for servers that convert them to grammars: what they would refuse is rewritten or left out, and reported.

Knows requests and the list of what llama.cpp's converter refuses; sends nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from agentkit.errors import ProviderError
from agentkit.models.base import ModelRequest
from agentkit.models.servers import SERVERS
from agentkit.schemas.llamacpp import convertible
from agentkit.toolspec import OutputSchema, ToolSpec

_LOG: Final = logging.getLogger("agentkit.models")
_REFUSED: Final = re.compile(
    r"pars\w+ (?:the )?grammar|schema (?:conversion|error)|initialize samplers|Pattern must start|Unrecognized schema"
    r"|generate parser|invalid grammar",
    re.IGNORECASE,
)
_KINDS: Final = ("bad_request", "server", "stream")
_Offered = tuple[tuple[ToolSpec, ...], OutputSchema | None]


class Conversion:
    """Rewrite the schemas that one model's server would refuse, if its kind was named."""

    def __init__(self, name: str, server: str | None) -> None:
        self._name = name
        self._server = server
        self._converts = server is not None and SERVERS[server].converts
        self._last: tuple[_Offered, _Offered] | None = None
        self._reported: set[str] = set()

    def fit(self, request: ModelRequest) -> ModelRequest:
        """The request with schemas that the server accepts; what they no longer say is logged, once."""
        if not self._converts or not (request.tools or request.output_schema):
            return request
        offered = (tuple(request.tools), request.output_schema)
        if self._last is None or self._last[0] != offered:
            for line in (str(line) for line, lost in _refusals(*offered) if lost):
                if line not in self._reported:
                    self._reported.add(line)
                    _LOG.warning("%s: left out for %s, and checked when it is read: %s", self._name, self._server, line)
            self._last = offered, _converted(*offered)
        tools, output = self._last[1]
        return replace(request, tools=tools, output_schema=output)

    def explain(self, error: ProviderError, request: ModelRequest) -> str:
        """Explain a failure that blames a schema: the field, whose schema it is, and where; else empty."""
        fields = [f for f, sent in (("tools", request.tools), ("response_format", request.output_schema)) if sent]
        if not fields or error.kind not in _KINDS or not _REFUSED.search(f"{error} {error.body}"):
            return ""
        said = f"the server makes a grammar of the schemas in {' and '.join(map(repr, fields))}, and refused"
        found = [line for line, _ in _refusals(request.tools, request.output_schema)]
        if found and self._server is None:  # else another engine, or what it refuses was left out
            return (
                f"{said} what llama.cpp's converter does not understand: {'; '.join(found)}. Simplify it, or name the "
                "server (server='llamacpp'): then such keywords are rewritten or left out"
            )
        of = ", ".join(owner for owner, _, _ in _schemas(request.tools, request.output_schema))
        return f"{said} one of them, of {of}; nothing in them is known to be refused. Its log may say which"


def _converted(tools: tuple[ToolSpec, ...], output: OutputSchema | None) -> _Offered:
    return (
        tuple(replace(tool, parameters=convertible(tool.parameters)[0]) for tool in tools),
        None if output is None else replace(output, schema=convertible(output.schema)[0]),
    )


def _schemas(tools: Sequence[ToolSpec], output: OutputSchema | None) -> list[tuple[str, str, Mapping[str, Any]]]:
    """List the schemas of a request, each with its owner and its field."""
    found = [(f"tool {tool.name!r}", "parameters", tool.parameters) for tool in tools]
    return found + ([(f"output type {output.name!r}", "schema", output.schema)] if output is not None else [])


def _refusals(tools: Sequence[ToolSpec], output: OutputSchema | None) -> Iterator[tuple[str, bool]]:
    """List the keywords that the converter refuses, with their schema and place, and whether each is lost."""
    for owner, root, schema in _schemas(tools, output):
        for refusal in convertible(schema)[1]:
            yield f"{owner}, {'.'.join((root, *refusal.path))}: {refusal.why}", refusal.lost
