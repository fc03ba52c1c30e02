"""The six calls of `crash.py` with other systems, each with its own store and a model that answers immediately.

    pip install openai-agents langgraph langgraph-checkpoint-sqlite
    python benchmarks/crash.py --peer langgraph --kills 100

Each is used as its documentation shows, with everything that helps it: a LangGraph message has an id, so that resending
it replaces it; a client that saw its run end does not run it again. The tools are ordinary ones that append to a file:
neither system can declare a call that must not be repeated. Like the providers, the model refuses a conversation with a
call without a result or a result without a call; a thread that ends like this is bricked.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import warnings
from collections.abc import Awaitable, Callable, Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import uuid4

from crash import STEPS, Count, Hook, happened

HERE = str(Path(__file__).parent)
if sys.path[0] == HERE:  # `agents` is a package of openai-agents, not the file in this directory
    sys.path.append(sys.path.pop(0))

PROMPT = "Do all six."
Pause = tuple[float, float]


class Refused(Exception):
    """A provider's error for a conversation whose calls and results do not match."""


def wanted(made: Iterable[str]) -> Sequence[str]:
    """The calls to make next: the first step with a call that was not made; empty if all were."""
    done = set(made)
    return next((left for step in STEPS if (left := [id for id in step if id not in done])), [])


def paired(calls: Iterable[str], results: Iterable[str]) -> None:
    """Refuse what a provider refuses; both arguments are by call id."""
    if wrong := set(calls) ^ set(results):
        raise Refused(f"calls without result, or results without call: {sorted(wrong)}")


# -------------------------------------------------------------- openai-agents


async def openai_agents(folder: Path, effects: Path, pause: Pause, idiom: str) -> None:
    """Run, or resume: by resending the message, by another message, or by none."""
    from agents import Agent, Runner, SQLiteSession, function_tool, set_tracing_disabled
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Instant(Model):
        async def get_response(
            self,
            system_instructions: Any,
            input: Any,  # noqa: A002 - the interface's own name
            *rest: Any,
            **more: Any,
        ) -> ModelResponse:
            items = [] if isinstance(input, str) else input
            calls = [i for i in items if i.get("type") == "function_call"]
            results = [i["call_id"] for i in items if i.get("type") == "function_call_output"]
            paired((c["call_id"] for c in calls), results)
            output: list[Any] = [
                ResponseFunctionToolCall(
                    arguments=json.dumps({"id": id}), call_id=uuid4().hex, name="effect", type="function_call"
                )
                for id in wanted(json.loads(c["arguments"])["id"] for c in calls)
            ]
            if not output:
                text = ResponseOutputText(annotations=[], text="All done.", type="output_text")
                output = [
                    ResponseOutputMessage(
                        id=uuid4().hex, content=[text], role="assistant", status="completed", type="message"
                    )
                ]
            return ModelResponse(output=output, usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **more: Any) -> Any:
            raise NotImplementedError

    @function_tool
    async def effect(id: str) -> str:
        """Happen."""
        return await happen(effects, pause, id)

    session = SQLiteSession("t", folder / "sessions.db")
    begun = bool(await session.get_items())
    resume: dict[str, Any] = {"resend": PROMPT, "continue": "Continue.", "nothing": []}
    agent = Agent("agent", model=Instant(), tools=[effect])
    await Runner.run(agent, resume[idiom] if begun else PROMPT, session=session)


async def openai_agents_users(folder: Path) -> int:
    """How many user messages the session has."""
    from agents import SQLiteSession

    items: Sequence[Any] = await SQLiteSession("t", folder / "sessions.db").get_items()
    return sum(item.get("role") == "user" for item in items)


# -------------------------------------------------------------- LangGraph


async def langgraph(folder: Path, effects: Path, pause: Pause, idiom: str) -> None:
    """Run, or resume: without input if the state has a next node, or a task; otherwise with the message."""
    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    def resumed(state: Any) -> Any:
        unfinished = state.next or (state.tasks if idiom.endswith("tasks") else ())
        return None if unfinished else {"messages": [HumanMessage(PROMPT, id="m1")]}

    config: Any = {"configurable": {"thread_id": "t"}}
    path = str(folder / "checkpoints.db")
    if idiom.startswith("sync"):
        with SqliteSaver.from_conn_string(path) as store:
            graph = langgraph_agent(store, effects, pause, plain=True)
            graph.invoke(resumed(graph.get_state(config)), config)
        return
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        graph = langgraph_agent(saver, effects, pause, plain=False)
        await graph.ainvoke(resumed(await graph.aget_state(config)), config)


def langgraph_agent(store: Any, effects: Path, pause: Pause, plain: bool) -> Any:
    """The prebuilt agent, whose calls are separate tasks: finished ones are not run again with the others."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langgraph.prebuilt import create_react_agent

    class Instant(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "instant"

        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

        def _generate(self, messages: Any, *rest: Any, **options: Any) -> ChatResult:
            calls = [call for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]
            paired((c["id"] for c in calls), (m.tool_call_id for m in messages if isinstance(m, ToolMessage)))
            new = [
                {"name": "effect", "args": {"id": id}, "id": uuid4().hex}
                for id in wanted(c["args"]["id"] for c in calls)
            ]
            said = AIMessage("On it." if new else "All done.", tool_calls=new)
            return ChatResult(generations=[ChatGeneration(message=said)])

        async def _agenerate(self, messages: Any, *rest: Any, **options: Any) -> ChatResult:
            return self._generate(messages)

    def effect(id: str) -> str:
        """Happen."""
        time.sleep(pause[0])
        write(effects, id)
        time.sleep(pause[1])
        return f"{id} happened"

    async def later(id: str) -> str:
        """Happen."""
        return await happen(effects, pause, id)

    later.__name__ = "effect"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the function has moved to another distribution
        return create_react_agent(Instant(), [effect if plain else later], checkpointer=store)


async def langgraph_users(folder: Path) -> int:
    """How many user messages the newest checkpoint has."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        graph = langgraph_agent(saver, folder, (0, 0), plain=False)
        state = await graph.aget_state({"configurable": {"thread_id": "t"}})
    return sum(message.type == "human" for message in state.values["messages"])


# -------------------------------------------------------------- both

IDIOMS: dict[str, tuple[str, ...]] = {
    "openai-agents": ("resend", "continue", "nothing"),
    "langgraph": ("async", "sync", "async-tasks", "sync-tasks"),
}
"""How each is resumed: what is sent after a crash, or what is read to find out whether there is anything to resume."""

RUN: dict[str, Callable[[Path, Path, Pause, str], Awaitable[None]]] = {
    "openai-agents": openai_agents,
    "langgraph": langgraph,
}
USERS: dict[str, Callable[[Path], Awaitable[int]]] = {
    "openai-agents": openai_agents_users,
    "langgraph": langgraph_users,
}


def version(name: str) -> str:
    """The version of a system.

    Raises:
        ImportError: it is not installed.
    """
    return metadata.version(name)


class Peer:
    """Runs of another system, with the same interface as those of agentkit.

    Args:
        folder: for the files.
        name: the system's name.
        idiom: how it is resumed.
    """

    def __init__(self, folder: Path, name: str, idiom: str) -> None:
        self.number = 0
        self._folder = folder
        self._name = name
        self._idiom = idiom

    @property
    def _place(self) -> Path:
        return self._folder / str(self.number)

    def run(self, hook: Hook | None = None, pause: Pause = (0, 0)) -> None:
        """All the work of a client, in this process; nothing, once the client has seen its run end."""
        place = self._place
        place.mkdir(exist_ok=True)
        if (place / "end").exists():
            return
        asyncio.run(self._run(place, pause))
        (place / "end").touch()

    async def _run(self, place: Path, pause: Pause) -> None:
        await RUN[self._name](place, place / "effects", pause, self._idiom)

    def look(self, where: str, count: Count) -> None:
        """Count the results of a finished thread."""
        sound = "" if (self._place / "end").exists() else "cannot continue"
        count.see(where, happened(self._place / "effects"), {}, asyncio.run(self._users()), sound)

    async def _users(self) -> int:
        return await USERS[self._name](self._place)


async def happen(effects: Path, pause: Pause, id: str) -> str:
    """The effect, with the pauses around it."""
    await asyncio.sleep(pause[0])
    write(effects, id)
    await asyncio.sleep(pause[1])
    return f"{id} happened"


def write(effects: Path, id: str) -> None:
    """The effect itself."""
    with effects.open("a") as file:
        file.write(f"{id} \n")
