"""The settings of one server's tools, checked at once. Connects to nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field
from typing_extensions import TypedDict  # pydantic does not read that of typing before Python 3.12

from agentkit.checks.bounds import refuse_types
from agentkit.interop.mcp.declarations import Rename
from agentkit.interop.mcp.handlers import Elicit, SamplingHandler
from agentkit.messages import ToolCall  # noqa: F401 - `Predicate` names it
from agentkit.tool.policy import Keep, Predicate
from agentkit.tool.result import ToolContext  # noqa: F401 - `Predicate` names it

OUTER: Final = 5.0
"""Seconds that a run grants beyond a call's own time, so that the model reads this adapter's message."""

Approver = Callable[[str], bool]
"""Is shown the exact command of a local server before its first start; anything but True refuses it."""


@dataclass(frozen=True, slots=True)
class MCPProgress:
    """How far a call is, as its server reports it.

    Args:
        server: the server's name.
        tool: the tool's name here.
        call_id: the call.
        progress: so far.
        total: of how much; None if the server does not know.
        message: the server's text; None without one.
    """

    server: str
    tool: str
    call_id: str
    progress: float
    total: float | None = None
    message: str | None = None


class MCPKeywords(TypedDict, total=False):
    """The settings of `MCPTools`, described there."""

    name: str | None
    prefix: str | None
    rename: Rename | None
    only: Sequence[str] | None
    headers: Mapping[str, str] | None
    env: Mapping[str, str] | None
    cwd: str | os.PathLike[str] | None
    timeout: Annotated[float, Field(gt=0)]
    connect_timeout: Annotated[float, Field(gt=0)]
    max_message: Annotated[int, Field(ge=1024)]
    max_description: Annotated[int, Field(ge=100)]
    max_tools: Annotated[int, Field(ge=1)]
    resources: bool
    max_in_flight: Annotated[int, Field(ge=1)]
    pins: str | os.PathLike[str] | None
    approve: Approver | None
    on_change: Callable[[str, str], None] | None
    on_progress: Callable[[MCPProgress], None] | None
    elicit: Elicit | None
    sample: SamplingHandler | None
    requires_approval: bool | Predicate
    max_output: int | None
    keep: Keep | None


@dataclass(frozen=True, slots=True)
class MCPOptions:
    """The settings of an MCP server with their defaults.

    Raises:
        ConfigError: a value is wrong.
    """

    name: str | None = None
    prefix: str | None = None
    rename: Rename | None = None
    only: Sequence[str] | None = None
    headers: Mapping[str, str] | None = None
    env: Mapping[str, str] | None = None
    cwd: str | os.PathLike[str] | None = None
    timeout: float = 60.0
    connect_timeout: float = 60.0
    max_message: int = 16 * 1024 * 1024
    max_description: int = 4_000
    max_tools: int = 256
    resources: bool = False
    max_in_flight: int = 1_024
    pins: str | os.PathLike[str] | None = None
    approve: Approver | None = None
    on_change: Callable[[str, str], None] | None = None
    on_progress: Callable[[MCPProgress], None] | None = None
    elicit: Elicit | None = None
    sample: SamplingHandler | None = None
    requires_approval: bool | Predicate = False
    max_output: int | None = None
    keep: Keep | None = None

    def __post_init__(self) -> None:
        refuse_types("MCPTools", {name: getattr(self, name) for name in MCPKeywords.__annotations__}, MCPKeywords)

    @property
    def policy(self) -> dict[str, Any]:
        """How its tools may be run, as keywords of `ToolPolicy`."""
        return {
            "timeout": self.timeout + self.connect_timeout + OUTER,
            "requires_approval": self.requires_approval,
            "max_output": self.max_output,
            "keep": self.keep,
        }
