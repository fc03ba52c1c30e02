"""The exchange of `long_threads.py` with other toolkits' stored conversations, each as its documentation shows it.

pip install openai-agents langgraph langgraph-checkpoint-sqlite
"""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

Run = Callable[[Path, int], Awaitable[float]]


async def openai_agents(folder: Path, count: int) -> float:
    """openai-agents: `Runner.run` with a `SQLiteSession`."""
    from agents import Agent, Runner, SQLiteSession, function_tool, set_tracing_disabled
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from long_threads import best
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Instant(Model):
        def __init__(self, n: int) -> None:
            self.n, self.asked = n, False

        async def get_response(self, *rest: Any, **more: Any) -> ModelResponse:
            said: Any
            if not self.asked:
                arguments = f'{{"a": {self.n}, "b": 2}}'
                said = ResponseFunctionToolCall(
                    arguments=arguments, call_id=f"n{self.n}", name="add", type="function_call"
                )
            else:
                text = ResponseOutputText(annotations=[], text="Done.", type="output_text")
                said = ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
            self.asked = True
            return ModelResponse(output=[said], usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **more: Any) -> Any:
            raise NotImplementedError

    @function_tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    session = SQLiteSession("t", folder / f"openai-agents-{count}.db")
    items: list[Any] = []
    for n in range(max(count // 4, 1)):
        items += [
            {"role": "user", "content": f"Please add {n} " + "x" * 100},
            {"type": "function_call", "call_id": f"c{n}", "name": "add", "arguments": f'{{"a": {n}, "b": 2}}'},
            {"type": "function_call_output", "call_id": f"c{n}", "output": str(n + 2)},
            {"role": "assistant", "content": f"It is {n + 2} " + "y" * 100},
        ]
    await session.add_items(items)

    async def exchange(n: int) -> None:
        await Runner.run(Agent("agent", model=Instant(n), tools=[add]), "And now?", session=session)

    return await best(exchange)


async def langgraph(folder: Path, count: int) -> float:
    """LangGraph: a model and a tool node, on `AsyncSqliteSaver`."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_core.tools import tool
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition
    from long_threads import best

    @tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    asked = 0

    async def answer(state: MessagesState) -> Any:
        nonlocal asked
        asked += 1
        if asked % 2:
            call = {"name": "add", "args": {"a": asked, "b": 2}, "id": f"n{asked}"}
            return {"messages": [AIMessage("", tool_calls=[call])]}
        return {"messages": [AIMessage("Done.")]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_node("tools", ToolNode([add]))
    graph.add_edge(START, "answer")
    graph.add_conditional_edges("answer", tools_condition)
    graph.add_edge("tools", "answer")
    async with AsyncSqliteSaver.from_conn_string(str(folder / f"langgraph-{count}.db")) as saver:
        compiled = graph.compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "t"}}
        messages: list[Any] = []
        for n in range(max(count // 4, 1)):
            call = {"name": "add", "args": {"a": n, "b": 2}, "id": f"c{n}"}
            messages += [HumanMessage(f"Please add {n} " + "x" * 100), AIMessage("", tool_calls=[call])]
            messages += [ToolMessage(str(n + 2), tool_call_id=f"c{n}"), AIMessage(f"It is {n + 2} " + "y" * 100)]
        await compiled.aupdate_state(config, {"messages": messages}, as_node="answer")

        async def exchange(n: int) -> None:
            await compiled.ainvoke({"messages": [HumanMessage("And now?")]}, config)

        return await best(exchange)


def installed() -> Iterator[tuple[str, Run]]:
    """Those that are installed, with their versions."""
    from importlib.metadata import version

    if importlib.util.find_spec("agents") is not None:
        yield f"openai-agents {version('openai-agents')}", openai_agents
    if importlib.util.find_spec("langgraph") and importlib.util.find_spec("langgraph.checkpoint.sqlite"):
        yield f"langgraph {version('langgraph')}", langgraph
