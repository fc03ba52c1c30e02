"""The classes and the decorator from which tools for verl are written, under verl's names, for use without verl.

A tool class of verl's documents runs here after only its import lines are changed. If verl is installed, use verl's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

F = TypeVar("F", bound=Callable[..., Any])


class OpenAIFunctionSchema(BaseModel):
    """A function as OpenAI's API declares it. All of its JSON Schema is kept."""

    model_config = ConfigDict(extra="allow")

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    strict: bool = False


class OpenAIFunctionToolSchema(BaseModel):
    """A tool as OpenAI's API declares it: `{"type": "function", "function": {…}}`."""

    type: str = "function"
    function: OpenAIFunctionSchema


class ToolResponse(BaseModel):
    """The answer to a call, for the model.

    Args:
        text: as text.
        image: images: of PIL, bytes, URLs or paths.
        video: videos, which are mentioned to a model here, but not shown.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    text: str | None = None
    image: list[Any] | None = None
    video: list[Any] | None = None

    def is_empty(self) -> bool:
        """Say if there is nothing to read."""
        return not (self.text or self.image or self.video)

    def is_text_only(self) -> bool:
        """Say if there is text, and nothing else."""
        return bool(self.text) and not (self.image or self.video)


class BaseTool:
    """The base of a tool in verl's shape: each trajectory's state under its `instance_id`.

    Override `execute`, and whichever of the others are needed.

    Args:
        config: the YAML's `config`.
        tool_schema: its `tool_schema`; None takes that of `get_openai_tool_schema`.
    """

    def __init__(
        self, config: dict[str, Any], tool_schema: OpenAIFunctionToolSchema | Mapping[str, Any] | None = None
    ) -> None:
        self.config = config
        own = tool_schema if tool_schema is not None else self.get_openai_tool_schema()
        if own is None:
            raise ValueError(
                f"{type(self).__name__} has no schema: write tool_schema in the configuration, or override "
                "get_openai_tool_schema"
            )
        self.tool_schema = own if isinstance(own, OpenAIFunctionToolSchema) else OpenAIFunctionToolSchema(**own)
        self.name = self.tool_schema.function.name

    def get_openai_tool_schema(self) -> OpenAIFunctionToolSchema | None:
        """The tool's schema; None if the configuration has to give one."""
        return getattr(self, "tool_schema", None)

    async def create(self, instance_id: str | None = None, **kwargs: Any) -> tuple[str, ToolResponse]:
        """Begin a trajectory.

        Args:
            instance_id: its id; None makes one.
            kwargs: the sample's `create_kwargs`.

        Returns:
            The id, and the text for the model before its first turn.
        """
        return instance_id or str(uuid4()), ToolResponse()

    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **kwargs: Any
    ) -> tuple[ToolResponse, float, dict[str, Any]]:
        """Answer a call.

        Args:
            instance_id: the trajectory's.
            parameters: the model's arguments.
            kwargs: the sample's `execute_kwargs`.

        Returns:
            The answer, the reward of this call, and metrics.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define execute")

    async def calc_reward(self, instance_id: str, **kwargs: Any) -> float:
        """The final reward, besides those of the calls."""
        return 0.0

    async def release(self, instance_id: str, **kwargs: Any) -> None:
        """Forget a trajectory."""


def rollout_trace_op(function: F) -> F:
    """Mark a method whose calls are traced. Here every call is recorded, so the method is returned unchanged."""
    return function
