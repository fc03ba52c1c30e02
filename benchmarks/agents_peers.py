"""The work of `agents.py` with other toolkits: turns of one trivial call, a model that answers immediately, no tracing.

    pip install openai-agents pydantic-ai-slim langgraph mirascope llm
    python benchmarks/agents.py --peers

Each is used as its documentation shows it, without a store. A model counts its turns and reads no history.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Awaitable, Callable
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

HERE = str(Path(__file__).parent)
if sys.path[0] == HERE:  # `agents` is a package of openai-agents, not the file in this directory
    sys.path.append(sys.path.pop(0))

Run = Callable[[int], Awaitable[None]]


def openai_agents() -> Run:
    """openai-agents: `Runner.run` with its own `Model`."""
    from agents import Agent, Runner, function_tool, set_tracing_disabled
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Instant(Model):
        def __init__(self, turns: int) -> None:
            self.left = turns

        async def get_response(self, *rest: Any, **more: Any) -> ModelResponse:
            self.left -= 1
            said: Any
            if self.left:
                arguments = f'{{"a": {self.left}, "b": 2}}'
                said = ResponseFunctionToolCall(
                    arguments=arguments, call_id=uuid4().hex, name="add", type="function_call"
                )
            else:
                text = ResponseOutputText(annotations=[], text="3", type="output_text")
                said = ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
            return ModelResponse(output=[said], usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **more: Any) -> Any:
            raise NotImplementedError

    @function_tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    async def run(turns: int) -> None:
        model = Instant(turns)
        await Runner.run(Agent("agent", model=model, tools=[add]), "go", max_turns=turns + 1)
        assert model.left == 0

    return run


def pydantic_ai() -> Run:
    """pydantic-ai: `Agent.run` with a `FunctionModel`."""
    from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import UsageLimits

    async def run(turns: int) -> None:
        left = turns

        def instant(messages: Any, info: Any) -> ModelResponse:
            nonlocal left
            left -= 1
            return ModelResponse([ToolCallPart("add", f'{{"a": {left}, "b": 2}}') if left else TextPart("3")])

        agent = Agent(FunctionModel(instant))

        @agent.tool_plain
        async def add(a: int, b: int) -> int:
            """Add."""
            return a + b

        await agent.run("go", usage_limits=UsageLimits(request_limit=None))
        assert left == 0

    return run


def langgraph() -> Run:
    """LangGraph: the prebuilt agent, with its own `BaseChatModel`."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langgraph.prebuilt import create_react_agent

    class Instant(BaseChatModel):
        left: int

        @property
        def _llm_type(self) -> str:
            return "instant"

        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

        def _generate(self, *rest: Any, **options: Any) -> ChatResult:
            self.left -= 1
            call = {"name": "add", "args": {"a": self.left, "b": 2}, "id": uuid4().hex}
            said = AIMessage("", tool_calls=[call]) if self.left else AIMessage("3")
            return ChatResult(generations=[ChatGeneration(message=said)])

        async def _agenerate(self, *rest: Any, **options: Any) -> ChatResult:
            return self._generate()

    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    async def run(turns: int) -> None:
        model = Instant(left=turns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the function has moved to another distribution
            graph = create_react_agent(model, [add])
        await graph.ainvoke({"messages": [("user", "go")]}, {"recursion_limit": 10 * turns})
        assert model.left == 0

    return run


def mirascope() -> Run:
    """mirascope: a call with tools whose answers are resumed with, and its own provider."""
    from mirascope import llm
    from mirascope.llm.providers.base import BaseProvider

    class Instant(BaseProvider[Any]):
        id = "instant"
        default_scope = "instant/"
        error_map: ClassVar[dict[Any, Any]] = {}

        def __init__(self, turns: int) -> None:
            self.client = None
            self.left = turns

        def get_error_status(self, e: Exception) -> int | None:
            return None

        async def _call_async(
            self, *, model_id: str, messages: Any, toolkit: Any, format: Any = None, **params: Any
        ) -> Any:
            self.left -= 1
            arguments = f'{{"a": {self.left}, "b": 2}}'
            said = llm.ToolCall(id=uuid4().hex, name="add", args=arguments) if self.left else llm.Text(text="3")
            message = llm.AssistantMessage(
                content=[said],
                name=None,
                provider_id=self.id,
                model_id=model_id,
                provider_model_name=model_id,
                raw_message=None,
            )
            return llm.AsyncResponse(
                raw=None,
                provider_id=self.id,
                model_id=model_id,
                provider_model_name=model_id,
                params=params,
                tools=toolkit,
                input_messages=messages,
                assistant_message=message,
                finish_reason=None,
                usage=None,
            )

    for name in BaseProvider.__abstractmethods__:  # what a call does not use
        if name not in vars(Instant):
            setattr(Instant, name, None)
    Instant.__abstractmethods__ = frozenset()

    @llm.tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    async def run(turns: int) -> None:
        provider = Instant(turns)
        llm.register_provider(provider, "instant/")

        @llm.call("instant/m", tools=[add])
        async def go() -> str:
            return "go"

        response = await go()
        while response.tool_calls:
            response = await response.resume(await response.execute_tools())
        assert provider.left == 0
        assert response.text() == "3"

    return run


def llm() -> Run:
    """llm: a chain of its own `AsyncModel`."""
    import llm as toolkit

    class Instant(toolkit.AsyncModel):
        model_id = "instant"
        supports_tools = True

        def __init__(self, turns: int) -> None:
            self.left = turns

        async def execute(self, prompt: Any, stream: Any, response: Any, conversation: Any) -> Any:
            self.left -= 1
            if self.left:
                call = toolkit.ToolCall(name="add", arguments={"a": self.left, "b": 2}, tool_call_id=uuid4().hex)
                response.add_tool_call(call)
            else:
                yield "3"

    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    async def run(turns: int) -> None:
        model = Instant(turns)
        said = await model.conversation().chain("go", tools=[add], chain_limit=turns + 1).text()
        assert model.left == 0
        assert said == "3"

    return run


PEERS: dict[str, tuple[str, Callable[[], Run]]] = {
    "openai-agents": ("openai-agents", openai_agents),
    "pydantic-ai": ("pydantic-ai-slim", pydantic_ai),
    "LangGraph": ("langgraph", langgraph),
    "mirascope": ("mirascope", mirascope),
    "llm": ("llm", llm),
}


def installed() -> tuple[dict[str, Run], list[str]]:
    """The installed peers with their versions; prints a note for each that is not installed."""
    found: dict[str, Run] = {}
    absent: list[str] = []
    logging.disable(logging.WARNING)
    for name, (distribution, make) in PEERS.items():
        try:
            found[f"{name} {metadata.version(distribution)}"] = make()
        except ImportError as e:
            absent.append(f"{name}: not measured, it is not installed ({e})")
    return found, absent
