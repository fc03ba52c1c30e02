"""The ways of `real_models.py` to let a model do a task: agentkit's modes, and other toolkits as their pages show them.

Of agentkit it uses only what has been public for long, so that older versions run the same benchmark.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from real_models_tasks import KINDS, SYSTEM, Fault, Task, World

HERE = str(Path(__file__).parent)
if HERE in sys.path:  # `agents` is a package of openai-agents, not the file in this directory
    sys.path.remove(HERE)
    sys.path.append(HERE)

MAX_TOKENS: Final = 400
MAX_TURNS: Final = 6
"""Responses for one message of the user."""


@dataclass
class Transcript:
    """What a run wrote, filled while it happens, so that it is not lost when the run fails or takes too long.

    Args:
        answers: the last response to each message of the user.
        shown: all text that a reader of the stream saw.
        kept: the text of the model in the conversation afterwards.
        finish: why the run ended.
    """

    answers: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    input_tokens: int = 0
    output_tokens: int = 0
    responses: int = 0
    finish: str = ""


Mode = Callable[[Task, World, Transcript], Awaitable[None]]
"""Runs one task with a world's tools."""


def offered(task: Task, world: World) -> list[Any]:
    """The task's tools, as methods of a world."""
    return [getattr(world, name) for name in task.tools]


def of_agentkit(url: str, name: str, mode: str, flavour: str | None) -> Mode:
    """`native`, a format, or a format with `+c` for constrained."""
    from agentkit import Agent, model
    from agentkit.events import Finish, Text, Usage
    from agentkit.messages import AssistantMessage, user

    format, _, constrained = mode.partition("+")
    options: dict[str, Any] = {"base_url": url, "api_key": "none", "temperature": 0, "max_tokens": MAX_TOKENS}
    if format != "native":
        options["format"] = format
        options["server"] = flavour or ("llamacpp" if constrained else None)
        options["constrained"] = bool(constrained)
    made = model(f"openai:{name}", **options)

    async def run(task: Task, world: World, script: Transcript) -> None:
        agent = Agent(made, offered(task, world), system=SYSTEM, max_turns=MAX_TURNS)
        messages: Sequence[Any] = ()
        for prompt in task.turns:
            stream = agent.stream([*messages, user(prompt)])
            written = ""
            async for event in stream:
                if isinstance(event, Text):
                    written += event.text
                elif isinstance(event, Usage):
                    script.input_tokens += event.input_tokens
                    script.output_tokens += event.output_tokens
                elif isinstance(event, Finish):
                    script.shown.append(written)
                    script.responses += 1
                    written = ""
            result = stream.result
            messages = result.messages
            script.kept = [one.text for one in messages if isinstance(one, AssistantMessage)]
            script.answers.append(result.text)
            script.finish = result.finish

    return run


def of_openai_agents(url: str, name: str) -> Mode:
    """openai-agents on chat completions."""
    import agents
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=url, api_key="none")
    made = agents.OpenAIChatCompletionsModel(model=name, openai_client=client)
    settings = agents.ModelSettings(temperature=0, max_tokens=MAX_TOKENS)

    async def run(task: Task, world: World, script: Transcript) -> None:
        tools = [agents.function_tool(function) for function in offered(task, world)]
        agent: Any = agents.Agent("agent", instructions=SYSTEM, model=made, tools=tools, model_settings=settings)
        history: list[Any] = []
        for prompt in task.turns:
            done = await agents.Runner.run(agent, [*history, {"role": "user", "content": prompt}], max_turns=MAX_TURNS)
            written = [
                agents.ItemHelpers.text_message_outputs([i]) for i in done.new_items if i.type == "message_output_item"
            ]
            _note(script, written, str(done.final_output or ""), done.context_wrapper.usage)
            history = done.to_input_list()

    return run


def of_pydantic_ai(url: str, name: str) -> Mode:
    """pydantic-ai on chat completions; a tool's fault is its `ModelRetry`, as other exceptions end the run."""
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.usage import UsageLimits

    made = OpenAIChatModel(name, provider=OpenAIProvider(base_url=url, api_key="none"))
    limits = UsageLimits(request_limit=MAX_TURNS)

    def retried(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except Fault as e:
                raise ModelRetry(str(e)) from e

        return call

    async def run(task: Task, world: World, script: Transcript) -> None:
        agent: Any = Agent(
            made,
            tools=[retried(function) for function in offered(task, world)],
            system_prompt=SYSTEM,
            model_settings={"temperature": 0, "max_tokens": MAX_TOKENS},
            retries=MAX_TURNS,
        )
        history: list[Any] = []
        for prompt in task.turns:
            done = await agent.run(prompt, message_history=history, usage_limits=limits)
            responses = [one for one in done.new_messages() if one.kind == "response"]
            written = ["".join(p.content for p in one.parts if p.part_kind == "text") for one in responses]
            usage = done.usage() if callable(done.usage) else done.usage
            _note(script, written, str(done.output or ""), usage)
            history = done.all_messages()

    return run


def _note(script: Transcript, written: list[str], answer: str, usage: Any) -> None:
    script.answers.append(answer)
    script.shown += written
    script.kept += written
    script.input_tokens += usage.input_tokens
    script.output_tokens += usage.output_tokens
    script.responses += usage.requests
    script.finish = "stop"


PEERS: Final[dict[str, tuple[str, Callable[[str, str], Mode]]]] = {
    "openai-agents": ("openai-agents", of_openai_agents),
    "pydantic-ai": ("pydantic-ai-slim", of_pydantic_ai),
}


def fitting_formats() -> list[str]:
    """The text formats that any model can write: those without a model family's special tokens."""
    from agentkit import ToolRegistry, formats

    world = World()
    tools = ToolRegistry(
        *(getattr(world, name) for name in dict.fromkeys(n for k in KINDS.values() for n in k))
    ).specs()
    special = re.compile(r"<[|｜]|[|｜]>|\[(?:TOOL_CALLS|ARGS|CALL_ID)\]")
    return [one for one in formats.names() if not special.search(formats.render_prompt(one, tools))]


def modes(names: Sequence[str], url: str, model: str, flavour: str | None) -> tuple[dict[str, Mode], list[str]]:
    """The modes by name, `auto` replaced by all formats that fit; and a note for each that cannot be run here."""
    os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
    logging.disable(logging.ERROR)  # a tool that fails is a part of some tasks
    found: dict[str, Mode] = {}
    absent: list[str] = []
    wanted = [one for name in names for one in (fitting_formats() if name == "auto" else [name])]
    for name in dict.fromkeys(wanted):
        try:
            if name in PEERS:
                metadata.version(
                    PEERS[name][0]
                )  # raises an ImportError: a file here is called as one of their packages
            found[name] = PEERS[name][1](url, model) if name in PEERS else of_agentkit(url, model, name, flavour)
        except ImportError as e:
            absent.append(f"{name}: not measured, it is not installed ({e})")
    return found, absent


def versions() -> dict[str, str]:
    """The versions of agentkit and of the installed peers."""
    names = ["agentkit", *(distribution for distribution, _ in PEERS.values())]
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
