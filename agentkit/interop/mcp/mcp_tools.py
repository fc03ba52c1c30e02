"""`MCPTools`: a server's tools as agentkit tools, for any registry, agent or thread manager."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from agentkit.checks.missing_await import Closing
from agentkit.checks.spelling import takes
from agentkit.checks.unicode import escape_controls
from agentkit.errors import ConfigError, FormatError, SchemaError
from agentkit.foreign import argument_names
from agentkit.foreign.absent import suggest_attributes
from agentkit.interop.background_loop import BackgroundLoop
from agentkit.interop.mcp.contents import result_of
from agentkit.interop.mcp.declarations import Declaration, is_literal, local_name, refuse_large, spec_of
from agentkit.interop.mcp.endpoints import Endpoint, LocalServer, endpoint, safe_words
from agentkit.interop.mcp.mcp_options import OUTER, MCPKeywords, MCPOptions, MCPProgress
from agentkit.interop.mcp.pins import Pins
from agentkit.interop.mcp.resources import RESOURCE_TOOLS, ServerContents
from agentkit.interop.mcp.sdk import require_sdk
from agentkit.interop.mcp.server_file import read_server_file
from agentkit.interop.mcp.session import CallFailed, Reporter, Session
from agentkit.models.secrets import redact, watch_logs
from agentkit.schemas.walk import map_strings
from agentkit.tool import BoundTool, ToolContext, ToolResult, tool_from_schema
from agentkit.tool.identity import digest_of
from agentkit.tool.schema_tools import ReadyMadeTool
from agentkit.toolspec import ToolSpec

if TYPE_CHECKING:
    from mcp import Client

_LOG: Final = logging.getLogger("agentkit.mcp")
_SDK: Final = ("mcp.client.streamable_http", "mcp.shared.jsonrpc_dispatcher", "mcp.client.client", "client")


class ServerTool(ReadyMadeTool):
    """One tool of a server; its `method` is that of the `MCPTools`, with the server's name for it."""

    __slots__ = ()

    @property
    def origin(self) -> str:
        """Its name there, and the server."""
        return f"the tool {self.method.args[0]!r} of {self.method.func.__self__!r}"  # type: ignore[attr-defined]

    @property
    def digest(self) -> str:
        """The digest to which a call's approval is bound: of the server, its name for the tool, and the declaration."""
        server, tool = self.method.func.__self__, self.method.args[0]  # type: ignore[attr-defined]
        return digest_of(self.spec, self.method, repr((server.origin, tool)))

    @property
    def how_renamed(self) -> str:
        """The settings of `MCPTools` that decide about its name here."""
        return "give one server another name, MCPTools(…, name='other'), or its tools others, with prefix= or rename="


@suggest_attributes
@takes(MCPKeywords, others=argument_names.MCP_TOOLS, such="MCPTools('https://example.org/mcp')")
class MCPTools(ServerContents, Closing):
    """The tools of one MCP server, and its resources and prompts.

    `Agent(model, [MCPTools("https://…/mcp")])`, `registry.register(…)` and `threads.add_tool(…)` connect to the server,
    list its tools and register them. All calls share one session, in its own thread; it is opened again after it
    has broken. In an async program, `await tools.connect()` first, so that registering does not block the event loop.

    Args:
        server: an `http(s)://` URL (streamable HTTP); a command as a list of strings; or an entry of an `mcpServers`
            file: `{"command": …, "args": […], "env": {…}}` or `{"url": …, "headers": {…}}`.
        name: the server's name, for the names of its tools, for messages and for pins; by default from the command or
            the host.
        prefix: precedes the names of its tools; by default the name and `_`.
        rename: new names for some tools, complete and without prefix: a mapping from the server's names, or a function,
            which returns None to omit a tool.
        only: the tools to offer, by the server's names; None offers all.
        headers: HTTP headers, sent to this server only; never shown.
        env: environment variables for a local server, which inherits only `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`
            and `USER`; their values are never shown.
        cwd: a local server's working folder.
        timeout: seconds that one call may take, once the session is open.
        connect_timeout: seconds for starting the server and listing its tools.
        max_message: bytes that one message from the server may have.
        max_description: characters of a description that the model reads.
        max_tools: how many of its tools are offered, 256 by default; the others are refused.
        resources: whether a model can read the server's resources, with two more tools: `list_resources` and
            `read_resource`, after the prefix.
        max_in_flight: calls that run at the same time; further ones wait.
        pins: a file that keeps what each tool declared when it was first used; None keeps it in memory.
        approve: called with the exact command before a local server first starts; by default the command is logged as a
            warning. With `pins`, an approved command is not asked about again.
        on_change: called with a tool's name and the difference if its declaration is no longer the pinned one; by
            default it is logged as a warning. The tool is disabled in any case, until `accept`.
        on_progress: called with each `MCPProgress`, in the event loop of the run that made the call.
        elicit: answers a server that asks the user for something; by default this is refused.
        sample: answers a server that asks for a model's text; by default this is refused.
        requires_approval: whether a person must approve its calls, see `ToolPolicy`.
        max_output: characters of a result that the model reads; None uses the processor's setting.
        keep: which part of a longer result is kept.

    Raises:
        ConfigError: a setting is wrong. Registering raises it if the server cannot be used.
    """

    def __init__(
        self, server: str | Sequence[str] | Mapping[str, Any] | Endpoint, **options: Unpack[MCPKeywords]
    ) -> None:
        require_sdk()
        self._options = given = MCPOptions(**options)
        where = endpoint(server, given.headers, given.env, None if given.cwd is None else os.fspath(given.cwd))
        self._where = where
        self.name = given.name if given.name is not None else where.name
        self.changed: dict[str, str] = {}
        """The tools that are disabled because their declaration changed, by the server's names, with the difference."""
        self.refused: dict[str, str] = {}
        """The tools that are not offered because of their declaration, by the server's names, with the reason."""
        self._declared: dict[str, Declaration] = {}
        self._pins = Pins(given.pins, self.name)
        super().__init__(given.max_description)
        self._slots = asyncio.Semaphore(given.max_in_flight)
        self._session = Session(where, given, self._listed, self._refuse)
        self._loop = BackgroundLoop(f"MCP {self.name}")
        self._shown = self._closed = False
        if where.secrets:
            watch_logs(self, where.secrets, _SDK)

    @property
    def origin(self) -> str:
        """Which server this is, for approvals of calls of its tools; without secrets."""
        return self._where.origin

    @property
    def output_schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """The JSON Schemas of structured results, by the server's names of the tools; for those that declare one."""
        return {one.name: one.output for one in self._declared.values() if one.output is not None}

    def __repr__(self) -> str:
        return f"MCPTools({str(self._where)!r}, name={self.name!r})"

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **options: Unpack[MCPKeywords]) -> tuple[Self, ...]:
        """The servers of an `mcpServers` file, as other applications use it; `${NAME}` is read from the environment.

        Args:
            path: the JSON file. A server with `"disabled": true` is omitted.
            options: for each of them, as for `MCPTools`.

        Raises:
            ConfigError: the file cannot be read, or an environment variable is not set.
        """
        made: list[Self] = []
        for name, where in read_server_file(Path(path)).items():
            each: MCPKeywords = {"name": name}
            each.update(options)
            made.append(cls(where, **each))
        return tuple(made)

    # -------------------------------------------------------------- tools

    def bound_tools(self) -> tuple[BoundTool, ...]:
        """Its tools, for a registry; connects if necessary, and blocks while it does.

        Raises:
            ConfigError: the server cannot be used.
        """
        if not self._declared or self._closed:
            try:
                self._announce()
                self._loop.run(self._session.open(), self._options.connect_timeout * 2 + OUTER)
            except (CallFailed, TimeoutError) as e:
                raise ConfigError(f"MCP server {self.name!r}: {e}") from None
        return self._tools()

    async def connect(self) -> Self:
        """Connect, without blocking the event loop.

        Raises:
            ConfigError: the server cannot be used.
        """
        try:
            self._announce()
            await self._loop.wait(self._session.open())
        except CallFailed as e:
            raise ConfigError(f"MCP server {self.name!r}: {e}") from None
        return self

    def _announce(self) -> None:
        """Show the command of a local server before its first start.

        Raises:
            CallFailed: the command was refused.
        """
        self._closed = False
        if self._shown or not isinstance(self._where, LocalServer):
            return
        command, identity = escape_controls(str(self._where)), self._where.identity
        if not self._pins.approved(identity):
            if self._options.approve is None:
                _LOG.warning("starts the MCP server %r: %s", self.name, command)
            elif self._options.approve(command) is not True:
                raise CallFailed(f"not started, because its command was refused: {command}", "unsent")
            else:
                self._pins.approve(identity)
        self._shown = True

    def _tools(self) -> tuple[BoundTool, ...]:
        only, most = self._options.only, self._options.max_tools
        named = (*(only or ()), *(self._options.rename if isinstance(self._options.rename, Mapping) else ()))
        missing = [name for name in named if name not in self._declared and name not in self.refused]
        if missing:
            raise ConfigError(
                f"MCP server {self.name!r} has no tool {missing[0]!r}; it has {', '.join(map(repr, self._declared))}"
            )
        made: dict[str, BoundTool] = {}
        beyond: list[str] = []
        for ours, (about, parameters) in RESOURCE_TOOLS.items() if self._options.resources else ():
            own = ToolSpec(local_name(ours, self._prefix), about.format(server=self.name), parameters)
            answer = partial(self._for_model, ours)
            made[own.name] = self._tool(answer, own)
        most += len(made)
        owners: dict[str, str] = dict.fromkeys(made, "resources=True")
        for tool in self._pins.tools:  # in the order in which they were first used: no newer one takes a name
            if (name := self._name(tool)) is None:
                continue
            owner, declared = owners.setdefault(name, tool), self._declared.get(tool)
            spec = None if declared is None or tool in self.changed else declared.shown
            if spec is None or (only is not None and tool not in only):
                continue
            if owner != tool:
                self._refuse(
                    tool, f"its tool {owner!r} is called {name!r} here; rename={{{tool!r}: …}} gives it another name"
                )
                continue
            if len(made) == most:
                beyond.append(tool)
                continue
            try:
                made[name] = self._tool(partial(self._answer, tool), replace(spec, name=name))
            except SchemaError as e:
                self._refuse(tool, str(e))
        self._refuse_rest(beyond)
        return tuple(made.values())

    def _refuse_rest(self, tools: Sequence[str]) -> None:
        """Refuse the tools beyond `max_tools`, with one line in the log for all of them."""
        new = [tool for tool in tools if tool not in self.refused]
        why = f"max_tools is {self._options.max_tools}"
        self.refused.update(dict.fromkeys(new, why))
        if new:
            _LOG.warning("MCP server %r: %d of its tools are not offered: %s", self.name, len(new), why)

    def _name(self, tool: str) -> str | None:
        """A tool's name here; None to omit it."""
        rename = self._options.rename
        if callable(rename):
            return rename(tool)
        return rename[tool] if rename is not None and tool in rename else local_name(tool, self._prefix)

    @property
    def _prefix(self) -> str:
        return f"{self.name}_" if self._options.prefix is None else self._options.prefix

    def _tool(self, answer: partial[Any], spec: ToolSpec) -> BoundTool:
        named = spec.name, spec.description, spec.parameters
        made = tool_from_schema(answer, *named, patterns=False, **self._options.policy)
        return ServerTool(**{field.name: getattr(made, field.name) for field in fields(made)})

    def _refuse(self, tool: str, why: str) -> None:
        if tool not in self.refused:
            self.refused[tool] = escape_controls(why)
            _LOG.warning("MCP server %r: the tool %r is not offered: %s", self.name, tool, escape_controls(why))

    def _listed(self, tools: Sequence[Any]) -> None:
        """The server has listed its tools: keep those that can be used, and compare them with the pinned ones."""
        declared: dict[str, Declaration] = {}
        for tool in tools:
            try:
                refuse_large(tool.input_schema, tool.name)
                if tool.name in declared:
                    raise SchemaError(f"{tool.name!r} is declared twice")
            except (SchemaError, RecursionError) as e:
                self._refuse(tool.name, str(e))
                continue
            description = self._unseen(tool.description or tool.title or "")
            accepted = map_strings(tool.input_schema, self._unseen, keys=True)
            one = Declaration(
                tool.name, description, accepted, map_strings(tool.output_schema, self._unseen, keys=True)
            )
            try:  # here, not where it is registered: a long one takes seconds, which would block the event loop
                one = replace(one, shown=spec_of(one, local_name(tool.name, ""), self._options.max_description))
            except (SchemaError, FormatError) as e:
                self._refuse(tool.name, str(e))
            declared[tool.name] = one
        # a name that can be kept as it is has precedence over one that is derived
        changes = self._pins.check(sorted(declared.values(), key=lambda one: not is_literal(one.name)))
        for tool, difference in changes.items():
            if self.changed.get(tool) != difference:
                self._tell_change(tool, difference)
        self._declared, self.changed = declared, changes

    def _tell_change(self, tool: str, difference: str) -> None:
        if self._options.on_change is not None:
            self._options.on_change(tool, difference)
            return
        _LOG.warning(
            "MCP server %r: the tool %r is disabled, because it is no longer declared as it was when it was first "
            "used; MCPTools.accept(%r) enables it:\n%s",
            self.name,
            tool,
            tool,
            difference,
        )

    def accept(self, tool: str) -> None:
        """Pin a changed tool as it is declared now, and enable it. Register it again to show the new declaration.

        Args:
            tool: its name on the server.

        Raises:
            ConfigError: it has not changed.
        """
        if tool not in self.changed:
            raise ConfigError(f"the tool {tool!r} has not changed; changed: {', '.join(self.changed) or 'none'}")
        self._pins.accept(self._declared[tool])
        del self.changed[tool]

    # -------------------------------------------------------------- calls

    async def _answer(self, tool: str, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        try:
            json.dumps(arguments, allow_nan=False)
        except ValueError as e:
            return ToolResult(error=f"the arguments cannot be sent: {e}", code="invalid_arguments")
        loop = asyncio.get_running_loop()
        report = None if self._options.on_progress is None else partial(self._report, loop, context)
        return await self._loop.wait(self._call(tool, arguments, report))

    async def _call(self, tool: str, arguments: Mapping[str, Any], report: Reporter | None) -> ToolResult:
        """Answer one call in the session's loop."""
        if self._closed:
            return ToolResult(error=f"the MCP server {self.name!r} was closed")
        try:
            async with self._slots:
                await self._session.open()
                if tool in self.changed or tool not in self._declared:
                    return ToolResult(error=self._disabled(tool), code="denied")
                answer = await self._session.ask(
                    lambda client: client.call_tool(tool, dict(arguments), progress_callback=report)
                )
        except TimeoutError:
            return ToolResult(
                error=f"no answer after {self._options.timeout:g} s: the call was cancelled", code="timeout"
            )
        except CallFailed as e:
            effect = "the call may have taken effect, but " if e.why == "unanswered" else ""
            return ToolResult(error=safe_words(f"{effect}{e}", self._where.secrets))
        return result_of(answer, self._unseen)

    async def _ask(self, work: Callable[[Client], Awaitable[Any]]) -> Any:
        self._announce()

        async def asked() -> Any:
            async with self._slots:
                return await self._session.ask(work)

        return await self._loop.wait(asked())

    def _disabled(self, tool: str) -> str:
        if tool in self.changed:
            return "this tool is disabled: its server has changed its declaration since it was approved"
        return "the server no longer offers this tool"

    def _unseen(self, text: str) -> str:
        return redact(text, self._where.secrets)

    async def _report(
        self,
        loop: asyncio.AbstractEventLoop,
        context: ToolContext,
        progress: float,
        total: float | None,
        message: str | None,
    ) -> None:
        said = None if message is None else self._unseen(message)
        told = MCPProgress(self.name, context.name, context.call_id, progress, total, said)
        if self._options.on_progress is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._options.on_progress, told)

    # -------------------------------------------------------------- the end

    def close(self) -> None:
        """End the session, and a local server. Calls that are running get an error."""
        self._closed = True
        if self._loop.started:
            self._loop.run(self._session.close(), 30)
            self._loop.stop()
        self._slots = asyncio.Semaphore(self._options.max_in_flight)  # the old one belongs to the loop that has ended

    async def aclose(self) -> None:
        """End the session without blocking the event loop."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await self.connect()
