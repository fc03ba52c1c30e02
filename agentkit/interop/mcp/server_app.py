"""Agentkit tools as an MCP server: any registry over stdio or streamable HTTP, by the official SDK.

Calls run through `ResponseProcessor`, so a tool's timeout, approval and order apply as in an agent.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from agentkit.checks.callers import LOOPBACK, refusal
from agentkit.checks.spelling import takes
from agentkit.errors import ConfigError
from agentkit.interop.mcp.contents import answer_of
from agentkit.interop.mcp.returned_type import returned_type
from agentkit.interop.mcp.sdk import require_sdk
from agentkit.interop.single_call import answer_call
from agentkit.processor import ProcessorConfig
from agentkit.schemas.flavours import FLAVOURS
from agentkit.tool import ToolRegistry
from agentkit.toolspec import ToolSpec

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp_types import CallToolResult
    from starlette.applications import Starlette

ASGI = Callable[
    [MutableMapping[str, Any], Callable[..., Awaitable[Any]], Callable[..., Awaitable[Any]]], Awaitable[None]
]


@takes()
def mcp_server(
    tools: ToolRegistry | Sequence[Any],
    *,
    name: str = "agentkit",
    instructions: str | None = None,
    approve_all: bool = False,
    config: ProcessorConfig | None = None,
) -> Server[Any]:
    """The official SDK's server with these tools; to be run over any of its transports.

    Args:
        tools: a registry, or what `ToolRegistry` accepts.
        name: the server's name.
        instructions: for the client's model.
        approve_all: whether calls that need a person's approval run; by default they are refused, since a server
            has nobody to ask.
        config: limits and timeouts.
    """
    require_sdk()
    from mcp.server import Server
    from mcp_types import ListToolsResult, Tool

    from agentkit import __version__

    registry = tools if isinstance(tools, ToolRegistry) else ToolRegistry(*tools)
    returned = cache(returned_type)  # of each tool once: pydantic takes milliseconds for a schema

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[_declared(spec) for spec in registry.offered_specs(None)])

    def _declared(spec: ToolSpec) -> Tool:
        declared, kind = FLAVOURS["mcp"](spec), returned(registry.get_tool(spec.name))
        return Tool.model_validate(declared if kind is None else {**declared, "outputSchema": kind.schema})

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        arguments, kind = params.arguments or {}, returned(registry.get_tool(params.name))
        answer = await answer_call(registry, params.name, arguments, approve_all=approve_all, config=config)
        return answer_of(*answer, kind)

    return Server(
        name, version=__version__, instructions=instructions, on_list_tools=list_tools, on_call_tool=call_tool
    )


def mcp_app(
    server: Server[Any], *, host: str = "127.0.0.1", allowed_hosts: Sequence[str] = (), token: str | None = None
) -> ASGI:
    """A server as an ASGI application, at `/mcp`.

    The `Host` and `Origin` of each request are checked: a page in a browser cannot reach a server on this machine.

    Args:
        server: as `mcp_server` makes it.
        host: the address it will be bound to.
        allowed_hosts: further names by which clients may call it, such as `tools.example.org`.
        token: what clients must send as `Authorization: Bearer …`; None asks for nothing.

    Raises:
        ConfigError: an address other than a loopback one, without a token or without the names by which it is called.
    """
    if not hasattr(server, "streamable_http_app"):
        raise ConfigError(f"mcp_app({server!r:.60}): expected a server: mcp_app(mcp_server(tools))")
    from mcp.server.transport_security import TransportSecuritySettings

    if host not in LOOPBACK and not (token and allowed_hosts):
        raise ConfigError(
            f"host {host!r} can be reached from other machines: this needs a token, and the names by which clients "
            "call the server"
        )
    # the official SDK's own check accepts whatever follows a known name and a colon
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(host=host, transport_security=unchecked)
    return _guarded(_from_now(app), (*LOOPBACK, *allowed_hosts), token)


def _from_now(app: Starlette) -> ASGI:
    """The application, for clients that ask for earlier events: none is kept, so their stream starts now."""

    async def plain(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        headers = [pair for pair in scope.get("headers", ()) if pair[0] != b"last-event-id"]
        await app({**scope, "headers": headers} if "headers" in scope else scope, receive, send)

    return plain


def _guarded(app: ASGI, names: Sequence[str], token: str | None) -> ASGI:
    """The application, for those who call it by one of its names and know the token, if there is one."""
    expected = None if token is None else f"Bearer {token}".encode()

    async def guarded(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        headers = scope.get("headers", ())
        refused = refusal(headers, names) if scope["type"] == "http" else None
        known = not expected or hmac.compare_digest(dict(headers).get(b"authorization", b""), expected)
        if refused is None and scope["type"] == "http" and not known:
            refused = 401, "a token is required"
        if refused is None:
            await app(scope, receive, send)
            return
        more = [(b"www-authenticate", b"Bearer")] if refused[0] == 401 else []
        await send({"type": "http.response.start", "status": refused[0], "headers": more})
        await send({"type": "http.response.body", "body": refused[1].encode()})

    return guarded
