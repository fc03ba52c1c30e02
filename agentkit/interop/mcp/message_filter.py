"""Filter a server's messages before the official SDK sees them: a bad tool is dropped without the rest of the list.

The SDK refuses a whole list for one malformed tool, and a whole result for one item of an unknown type. It takes the
error code -32000, which many servers send for any fault, for its own notice that the connection was closed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Self

from agentkit.checks.missing_await import EnteredAsync
from agentkit.errors import SchemaError
from agentkit.interop.mcp.amount import ITEMS
from agentkit.interop.mcp.answers import repair_result
from agentkit.interop.mcp.declarations import refuse_large

Unfit = Callable[[str, str], None]
"""Receives the name of a malformed tool, and the error."""

LISTED: Final = 5_000
"""Tools of a list that are read."""

_VERSION: Final = "2025-11-25"  # the SDK's own assumption before the handshake


@asynccontextmanager
async def filter_messages(streams: Any, unfit: Unfit) -> AsyncIterator[tuple[Any, Any]]:
    """Open a transport's two streams, the first one filtered.

    Args:
        streams: a context manager that yields them.
        unfit: called with each tool that is left out.
    """
    async with streams as (heard, sent):
        under_way = UnderWay()
        yield FilteredStream(heard, unfit, under_way), _Noted(sent, under_way)


@dataclass(slots=True)
class UnderWay:
    """A client's open requests: the ids of calls without an answer, and how many tools the server has listed."""

    calls: set[Any] = field(default_factory=set)
    listed: int = 0


class _Around(EnteredAsync):
    """Around one of a transport's streams.

    Args:
        stream: the transport's.
        under_way: the open requests.
    """

    def __init__(self, stream: Any, under_way: UnderWay) -> None:
        self._stream = stream
        self._under_way = under_way

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._stream.__aexit__(*raised)


class _Noted(_Around):
    """A stream of messages to a server that notes its open requests."""

    async def send(self, item: Any) -> None:
        """Sends a message."""
        message = item.message
        if getattr(message, "method", None) == "tools/call":
            self._under_way.calls.add(message.id)
        elif getattr(message, "method", None) == "tools/list" and not (message.params or {}).get("cursor"):
            self._under_way.listed = 0
        await self._stream.send(item)

    async def aclose(self) -> None:
        """Closes the transport's stream."""
        await self._stream.aclose()


class FilteredStream(_Around):
    """A stream of messages from a server.

    Args:
        heard: the transport's stream.
        unfit: called with each tool that is left out.
        under_way: the open requests; the ids of calls that get an answer are removed.
    """

    def __init__(self, heard: Any, unfit: Unfit, under_way: UnderWay) -> None:
        super().__init__(heard, under_way)
        self._unfit = unfit
        self._version = _VERSION

    @property
    def last_context(self) -> Any:
        """The SDK's context of the last message."""
        return getattr(self._stream, "last_context", None)

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for item in self._stream:
            self._screen(item)
            yield item

    def _screen(self, item: Any) -> None:
        from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, JSONRPCError, JSONRPCResponse

        message = getattr(item, "message", None)  # otherwise an exception of the transport
        if isinstance(message, JSONRPCError):
            self._under_way.calls.discard(message.id)
            if message.error.code == CONNECTION_CLOSED:
                message.error.code = INTERNAL_ERROR
        elif isinstance(message, JSONRPCResponse):
            if message.id in self._under_way.calls:
                self._under_way.calls.discard(message.id)
                content = message.result.get("content")
                if isinstance(content, list) and len(content) > ITEMS:
                    said = f"its answer has {len(content):,} content items; at most {ITEMS:,} are read"
                    message.result = {"content": [{"type": "text", "text": said}], "isError": True}
                with suppress(RecursionError):  # the SDK also refuses it
                    message.result = repair_result(message.result, self._version)
                return
            self._version = str(message.result.get("protocolVersion", self._version))
            if isinstance(tools := message.result.get("tools"), list):
                tools = tools[: max(LISTED + 1 - self._under_way.listed, 1)]  # one too many, which refuses the list
                message.result["tools"] = [fit for tool in tools if (fit := self._fitted(tool)) is not None]

    def _fitted(self, tool: object) -> object:
        """A declaration that the SDK accepts: without the schema of its results if that is the fault; None if not."""
        self._under_way.listed += 1
        if self._fault(tool) is None and not _has_large_output(tool):
            return tool
        without = {key: v for key, v in tool.items() if key != "outputSchema"} if isinstance(tool, Mapping) else tool
        if (why := self._fault(without)) is None:
            return without
        name = tool.get("name") if isinstance(tool, Mapping) else None
        shown = name if isinstance(name, str) else f"(without a name, {self._under_way.listed} in the list)"
        self._unfit(shown, f"its declaration is malformed: {why}")
        return None

    def _fault(self, tool: object) -> str | None:
        """The fault in a declaration; None if there is none."""
        from mcp_types.methods import validate_server_result

        try:
            validate_server_result("tools/list", self._version, {"tools": [tool]})
        except KeyError:  # a version that the SDK does not check
            return None
        except ValueError as e:
            return fault(e, 2)
        return None


def _has_large_output(tool: object) -> bool:
    """Say if the schema of a tool's results is too large to be walked."""
    try:
        refuse_large(tool.get("outputSchema") or {}, "")  # type: ignore[attr-defined]  # it is a declaration
    except (SchemaError, RecursionError):
        return True
    return False


def fault(error: ValueError, skipped: int = 0) -> str:
    """The first fault, without pydantic's address and the value.

    Args:
        error: of pydantic, or another one.
        skipped: steps of the place that say nothing, such as `tools.0`.
    """
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    found = error.errors()
    place = ".".join(str(step) for step in found[0]["loc"][skipped:])
    return ": ".join(filter(None, (place, found[0]["msg"])))[:300]
