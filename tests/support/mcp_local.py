"""A small MCP server over stdio, for the tests of the client: each of its tools misbehaves or shows one thing."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NONE: dict[str, Any] = {"type": "object", "properties": {}}


def text(said: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=said)], **more)


async def echo(context: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    return text(arguments["text"])


async def picture(context: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(
        content=[
            types.TextContent(type="text", text="a dot"),
            types.ImageContent(type="image", data=PNG, mime_type="image/png"),
            types.AudioContent(type="audio", data="AAAA", mime_type="audio/wav"),
            types.EmbeddedResource(
                type="resource", resource=types.TextResourceContents(uri="file:///a.txt", text="in a")
            ),
            types.ResourceLink(type="resource_link", name="b", uri="file:///b.txt"),
        ]
    )


async def structured(context: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    return text('{"rows": 3}', structured_content={"rows": 3})


async def fail(context: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    return text("no such row", is_error=True)


async def crash(context: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    raise RuntimeError("broken")


async def sleep(context: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    try:
        await anyio.sleep(60)
    except BaseException:
        CANCELLED.set()
        raise
    return text("rested")


CANCELLED = asyncio.Event()


async def cancelled(context: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    await CANCELLED.wait()
    return text("sleep")


async def steps(context: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    for n in (1, 2):
        await context.session.report_progress(n, 2, f"step {n}")
    return text("done")


async def ask(context: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    answer = await context.session.elicit_form(
        "your name?", {"type": "object", "properties": {"name": {"type": "string"}}}
    )
    return text(f"{answer.action} {answer.content}")


TOOLS = {
    "echo": (echo, TEXT), "picture": (picture, NONE), "structured": (structured, NONE), "fail": (fail, NONE),
    "crash": (crash, NONE), "sleep": (sleep, NONE), "steps": (steps, NONE),
    "cancelled": (cancelled, NONE), "ask": (ask, NONE),
}  # fmt: skip


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(name=name, description=f"Shows {name}.", input_schema=schema)
            for name, (_, schema) in TOOLS.items()
        ]
    )


async def call_tool(context: Any, params: Any) -> types.CallToolResult:
    return await TOOLS[params.name][0](context, params.arguments or {})


server: Server[Any] = Server("local", on_list_tools=list_tools, on_call_tool=call_tool)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
