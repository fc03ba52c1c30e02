"""Mistakes of a first hour, and what answers each: the message alone is enough to fix it.

A row is a number, the mistake as code, and the literal message, or a part of it where it lists what there is. The numbers
are those of the trial in which the mistakes were made; some end in a result, not in a message, and have tests of their
own. Those from 52 on were made up afterwards.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agentkit import (
    Agent,
    Approved,
    Budget,
    Denied,
    ImagePart,
    ProcessorConfig,
    ResponseProcessor,
    TextPart,
    ThreadManager,
    Tool,
    ToolCall,
    ToolContext,
    ToolRegistry,
    ToolResult,
    first_of,
    openapi_schema,
    xml_schema,
)
from agentkit.cli import main
from agentkit.events import Text
from agentkit.messages import AssistantMessage, ToolMessage, UserMessage, user
from agentkit.models import model
from agentkit.processor import EventStream
from agentkit.testing import ScriptedModel
from agentkit.threads import Compaction

# ruff: noqa: E501, F401 (a row is a line, and its code uses what is imported)


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def decorated(decorator: Any) -> ToolRegistry:
    def look(at: str) -> str:
        return at

    look.__qualname__ = "look"
    return ToolRegistry(decorator(look))


class Needy:
    def __init__(self, root: str) -> None:
        self.root = root

    @openapi_schema
    def read(self, path: str) -> str:
        return path


class Plain:
    def add(self, a: int) -> int:
        return a


class Files:
    @openapi_schema
    @xml_schema
    def read_file(self, path: str) -> str:
        return path


class WithoutSelf:
    @openapi_schema
    def read(path: str) -> str:
        return path


M = ScriptedModel(lambda request: "Hello.")
threads = ThreadManager(":memory:")


def many(*numbers: int) -> int:
    return sum(numbers)


def yields(to: int) -> Iterator[int]:
    yield from range(to)


def untyped(ctx, q: str) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001 - the mistake
    return q


def foreigner(run: RunContext[int], q: str) -> str:  # type: ignore[name-defined]  # noqa: F821 - the mistake
    return q


class StructuredTool:
    name = "look"
    description = "Look."
    args_schema = None

    def invoke(self, value: str) -> str:
        return value

    def as_tool(self, args_schema: Any = None) -> Any:  # LangChain's, which takes no name and description
        raise TypeError


async def reads(events: Any) -> None:
    async for _ in events:
        pass


def runs(coroutine: Any) -> None:
    try:
        asyncio.run(coroutine)
    finally:
        if isinstance(coroutine, EventStream):
            coroutine._mark_reported()


def over() -> Any:
    run = Agent(M).stream("hi")
    asyncio.run(run.complete())
    return run


def closed(coroutine: Any) -> Any:
    coroutine.close()  # so that Python does not say, too, that it was never awaited
    return coroutine


def with_self(self, at: str) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001 - the mistake
    return at


class Pydantic(BaseModel):
    at: str


def hinted(hint: Any) -> Any:
    def hinted(at: str) -> str:
        return at

    hinted.__annotations__["at"] = hint
    hinted.__qualname__ = "hinted"
    return hinted


ASKED = [user("Pay."), AssistantMessage(ToolCall("c1", "pay"))]
NAMESPACE = {**globals()}

RAISED = [
    (1, '@openapi_schema(descripton="x")', "look: @openapi_schema describes parameter 'descripton', which does not exist (parameters: 'at'); did you mean 'description'?"),
    (2, "@openapi_schema(requires_aproval=True)", "look: @openapi_schema has no keyword 'requires_aproval'; did you mean 'requires_approval'? It has description, parameters, name, timeout, "),
    (3, '@xml_schema(tag="x")', "@xml_schema has no argument 'tag'; did you mean 'tag_name'? It takes name, tag_name, attributes, elements, content, mappings, example, strip"),
    (3, "@xml_schema(mapping=[])", "@xml_schema has no argument 'mapping'; did you mean 'mappings'? "),
    (4, '@xml_schema(mappings=[{"param_name": "at", "node_type": "elem"}])', "look: @xml_schema maps parameter 'at' as 'elem'; write one of attribute, element, content, text"),
    (5, '@xml_schema(mappings=[{"param": "at"}])', "@xml_schema(mappings=[...]): expected an entry with param_name, node_type, path, required (param_name is required); found {'param': 'at'}"),
    (6, '@openapi_schema("Adds")', "@openapi_schema takes a hand-written schema (a mapping) or keywords, not 'Adds'; for a description write @openapi_schema(description=...)"),
    (7, 'Agent(M, tools="add")', "'add' is not a tool: pass the function or class itself, tools=[add], or its module and name, 'module:add'"),
    (7, 'Agent(M, "You are brief.")', "'You are brief.' is not a tool: pass the function itself, tools=[add], or 'module:function'; pass instructions as system='…'"),
    (7, 'Agent(M, tools=["./mytools.py:f"])', "'./mytools.py:f' is not a tool reference; write 'module:Class' or 'module:function'; name the module as in an import, not as a file: 'mytools:f'"),
    (7, 'Agent(M, tools=["mytools.f"])', "'mytools.f' is not a tool reference; write 'module:Class' or 'module:function'; did you mean 'mytools:f'?"),
    (8, "Agent(M, tool=[add])", "Agent has no argument 'tool'; did you mean 'tools'? It takes model, tools, system, "),
    (8, 'Agent(M, instructions="Be brief.")', "Agent has no argument 'instructions'; did you mean 'system'? It takes "),
    (8, 'Agent(M, system_prompt="Be brief.")', "Agent has no argument 'system_prompt'; did you mean 'system'? It takes "),
    (8, "Agent(M, messages=[])", "Agent has no argument 'messages': pass the conversation to the run: agent.run([*messages, 'and now?']). It takes "),
    (8, 'Agent(M).run_sync(messages="hi")', "run_sync has no argument 'messages': the conversation is the prompt: agent.run(messages), or agent.run([*messages, 'and now?']). It takes prompt, "),
    (8, 'Agent(M).run_sync("hi", history=[])', "run_sync has no argument 'history': the conversation is the prompt: agent.run(messages), or "),
    (8, 'Agent(M).run_sync("hi", session="ada")', "run_sync has no argument 'session': to keep a conversation write threads.say_sync('its id', 'Hello', agent=agent), or `await threads.say(…)`, with threads = agentkit.ThreadManager(). It takes "),
    (8, 'Agent(M).run_sync("hi", thread="ada")', "run_sync has no argument 'thread': to keep a conversation write threads.say_sync('its id', "),
    (8, 'Agent(M).run_sync("hi", config={"configurable": {"thread_id": "1"}})', "run_sync has no argument 'config': to keep a conversation write threads.say_sync('its id', "),
    (8, 'Agent(M).run_sync("hi", max_iterations=3)', "run_sync has no argument 'max_iterations': it belongs to the agent: Agent(…, max_turns=…). It takes "),
    (8, 'Agent(M, thread_id="ada")', "Agent has no argument 'thread_id': to keep a conversation write threads.say_sync('its id', "),
    (8, 'Agent(M, max_iterations=3)', "Agent has no argument 'max_iterations'; did you mean 'max_turns'? It takes "),
    (8, 'Agent(M).run_sync("hi", system="Be brief.")', "run_sync has no argument 'system': it belongs to the agent: Agent(…, system=…). It takes "),
    (9, 'Agent("gpt-5")', "a model string is one of openai:, responses:, anthropic:, gemini:, bedrock: and the model's name; found 'gpt-5'; did you mean 'openai:gpt-5'?"),
    (10, 'Agent("claude-sonnet-4-5")', "found 'claude-sonnet-4-5'; did you mean 'anthropic:claude-sonnet-4-5'?"),
    (10, 'Agent("sonnet")', "found 'sonnet'; write the model's full name, such as 'anthropic:claude-sonnet-5'"),
    (10, 'Agent("Claude Sonnet 4.5")', "found 'Claude Sonnet 4.5'; did you mean 'anthropic:claude-sonnet-4-5'?"),
    (10, 'Agent("gemini-2.5-pro")', "found 'gemini-2.5-pro'; did you mean 'gemini:gemini-2.5-pro'?"),
    (10, 'Agent("llama3.1:8b")', "found 'llama3.1:8b'; for a server that speaks OpenAI's protocol write agentkit.model('openai:llama3.1:8b', base_url='https://…', api_key=…)"),
    (10, 'Agent("ollama/llama3")', "found 'ollama/llama3'; for a server that speaks OpenAI's protocol write agentkit.model('openai:llama3', base_url='http://127.0.0.1:11434/v1', api_key=…)"),
    (10, 'Agent("http://localhost:8000/v1")', "found 'http://localhost:8000/v1'; pass a server's URL in addition to the model's name: agentkit.model('openai:NAME', base_url='http://localhost:8000/v1', api_key=…)"),
    (10, 'Agent("openai: gpt-5")', "found 'openai: gpt-5'; did you mean 'openai:gpt-5'?"),
    (11, 'Agent("openai/gpt-5")', "found 'openai/gpt-5'; did you mean 'openai:gpt-5'?"),
    (12, 'Agent("opeani:x")', "found 'opeani:x'; did you mean 'openai:x'?"),
    (12, 'Agent("google:gemini-3")', "found 'google:gemini-3'; did you mean 'gemini:gemini-3'?"),
    (13, 'ScriptedModel("hello")', "a script is a list of turns, one for each request, or a function: write ScriptedModel(['hello'])"),
    (14, 'Agent(ScriptedModel([])).run_sync("hi")', "the script of 'scripted' has 0 turns, but this is request 1: add a turn that answers its last message, 'hi'"),
    (15, "Agent(M, [Needy])", "Needy cannot be constructed with no arguments: missing a required argument: 'root'; pass its arguments to register_tool(Needy, ...), or an instance"),
    (16, "Agent(M, [Plain])", "Plain has no decorated method; put @openapi_schema (and @xml_schema for an XML tag) on the methods that a model may call, such as `@openapi_schema` above `def add`"),
    (17, "threads.add_tool(add, timeout=3)", "add is a function, not a class or its instance: write registry.register(add), or threads.add_tool([add, …]) with a ThreadManager; register_function(add, …) takes a name and limits"),
    (17, "threads.registry.register_tool([Files])", "a list is not a tool: register its items with registry.register(*tools), or with a thread manager threads.add_tool(tools)"),
    (17, "threads.add_tool(Files, Files)", "function_names is a list of method names, found the class Files: register each class with a separate call"),
    (18, "ToolRegistry(add, add)", "add: the function name 'add' is taken by"),
    (19, "Agent(M, tools=[add(1, 2)])", "3 is not a tool: pass the function itself, not its return value, or a class or instance with decorated methods"),
    (19, 'Agent(M, tools=[{"type": "function", "function": {}}])', "a dict is not a tool, since nothing in it can be run: write the schema above the function, @openapi_schema({…}), and pass the function; pass several functions as a list"),
    (19, "Agent(M, tools=[Agent(M)])", "an instance of Agent is not a tool: add .as_tool('its_name', 'what it is good at') to it"),
    (19, "Agent(M, tools=[Agent(M).as_tool])", "Agent.as_tool is not a tool: turn the agent into one with agent.as_tool('its_name', 'what it is good at')"),
    (20, 'closed(Agent(M).run("hi")).text', "agent.run(…) has no 'text' before it is awaited: write `(await agent.run(…)).text`, or without an event loop `agent.run_sync(…).text`"),
    (20, 'closed(threads.say("t", "hi", M)).output', "threads.say(…) has no 'output' before it is awaited: write `(await threads.say(…)).output`, or without an event loop `threads.say_sync(…).output`"),
    (21, 'threads.run_thread("t", None, M).text', "'RunStream' object has no attribute 'text': it exists once the run is over: write `await` first, as in `(await threads.run_thread(…)).text`; or iterate over the run with `async for`, and then read .result.text"),
    (22, 'list(Agent(M).stream("hi"))', "a RunStream is iterated with `async for`, inside an async function; without one write `agent.run_sync(…)`"),
    (24, 'threads.run_thread(threads.create_thread(), "", M)', "expected a string; this is a coroutine: write `await create_thread(…)`"),
    (25, 'asyncio.run(threads.get_thread("nope"))', "there is no thread 'nope'"),
    (26, 'threads.run_thread("t", "openai:x")', "run_thread(…, model=…) is missing: name a model, such as 'openai:gpt-5'; 'openai:x' is the system prompt here"),
    (27, 'ThreadManager("mysql://host/db")', "thread store: expected a path, sqlite:///path or postgresql://host/database, found 'mysql://…'"),
    (30, "ToolRegistry(yields)", "yields is a generator; a tool returns its result: collect what it yields and return that"),
    (37, "ToolResult(error=5)", "ToolResult(error=…) expects a message or an exception, found int 5"),
    (38, 'ImagePart("chart.png")', "ImagePart(data=…) expects the image's bytes, found str 'chart.png': for a file write ImagePart(Path('chart.png').read_bytes()), for a URL ImagePart(url='https://…')"),
    (38, 'ImagePart("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB")', "ImagePart(data=…) expects the image's bytes, found str 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB': decode base64 first: ImagePart(base64.b64decode(…))"),
    (38, 'ImagePart("https://x.org/a.png")', "found str 'https://x.org/a.png': pass a URL as url: ImagePart(url='…')"),
    (38, 'ImagePart(b"")', "ImagePart(data=b'') is empty: for a file write ImagePart(Path('chart.png').read_bytes())"),
    (38, 'ImagePart(b"...", "png")', "ImagePart(media_type=…) expects a type such as 'image/png', found str 'png'"),
    (38, 'ImagePart(b"\\xff\\xd8\\xff\\xe0")', "ImagePart(media_type='image/png'): the bytes are of a different type; write media_type='image/jpeg'"),
    (38, 'ImagePart(url="chart.png")', "ImagePart(url=…) expects a URL that the provider can fetch ('https://…'), or 'data:image/png;base64,…', found str 'chart.png': for a file write "),
    (38, 'ImagePart(url="data:image/png;base64,@@@")', "or 'data:image/png;base64,…', found str 'data:image/png;base64,@@@'"),
    (39, 'Agent(M).run_sync("hi", output_type=Plain)', "output_type is Plain, which has no JSON Schema; use a dataclass, TypedDict, "),
    (39, 'Agent(M, output_type="City")', "output_type is 'City', which is not a type: pass the class itself, output_type=City"),
    (39, "Agent(M, output_type=5)", "output_type is 5, which is not a type: pass a type, such as int or a dataclass"),
    (39, "Agent(M, output_type=[int])", "output_type is [<class 'int'>], which is not a type: for several values write output_type=list[int]"),
    (39, "Agent(M, output_type=(int, str))", "which is not a type: for one of several types write output_type=int | str"),
    (39, 'Agent(M, output_type={"type": "object"})', "which is not a type: the JSON Schema is derived from a type; pass a dataclass, TypedDict or pydantic model"),
    (39, "Agent(M, output_type=Budget())", "which is not a type: pass the class itself, output_type=Budget"),
    (41, "Agent(M).run_sync(None)", "a prompt consists of strings, parts, messages or OpenAI's message dicts; found NoneType None; write user('…')"),
    (41, 'Agent(M).run_sync({"text": "hi"})', "message 0 has no 'role': expected {'role': 'user', 'content': '…'}, found dict {'text': 'hi'}"),
    (41, "Agent(M).run_sync([])", "the prompt is empty: expected something to answer, such as 'Hello', found []"),
    (41, 'Agent(M).run_sync("")', "a user message is empty: expected text, an image or a file, found str ''"),
    (41, 'Agent(M).run_sync({"role": "user"})', "a user message is empty: expected text, an image or a file, found dict {'role': 'user'}"),
    (41, 'threads.say_sync("t", " ", M)', "a user message is empty: expected text, an image or a file, found str ' '"),
    (42, 'user(["a"])', "user(…) expects strings and parts as separate arguments, found list ['a']: write user(*parts), or UserMessage(parts)"),
    (42, "user(5)", "UserMessage(…) expects strings and parts (TextPart, ImagePart, FilePart), found int 5"),
    (42, "UserMessage({})", "UserMessage(…) expects strings and parts (TextPart, ImagePart, FilePart), found dict {}"),
    (43, "@xml_schema(name=\"aa\", example=\"<bb at='1'/>\")", "look: @xml_schema(example=…) does not contain a call of <aa>: found \"<bb at='1'/>\""),
    (43, '@xml_schema(name="aa", example="<aa/>")', "look: @xml_schema(example=…) does not match the tool: invalid arguments for look:\n- /at: expected string, found nothing: it is required"),
    (44, 'ToolCall("add", {"a": 1})', "ToolCall(id, name, arguments): id and name are strings, found 'add' and dict {'a': 1}; the id may be empty: ToolCall('', 'add', {'a': 1})"),
    (45, "Agent(M, hooks=[lambda event: None])", "<lambda> cannot be called with two arguments: expected `def hook(event, run): …`"),
    (46, "ResponseProcessor([add])", "expected a ToolRegistry: ToolRegistry(tool, …)"),
    (47, 'Agent(M, temperature="hot")', "Agent(temperature='hot'): expected a number, 0 or more, or None for the model's default"),
    (47, "Agent(M, max_turns=0)", "Agent(max_turns=0): expected an integer (1 or more)"),
    (47, 'ProcessorConfig(timeout="30")', "ProcessorConfig(timeout='30'): expected seconds above 0, or None for no limit"),
    (47, 'ProcessorConfig(strategy="paralel")', "ProcessorConfig(strategy='paralel'): expected one of parallel, sequential; did you mean 'parallel'?"),
    (47, "Budget(cost=1)", "Budget(cost=…) requires prices: Budget(cost=1.0, prices={'openai:gpt-5': Price(…)})"),
    (48, 'Agent(M).run_sync("hi", decisions={"c1": True})', "expected Approved(…) or Denied(…) by call id"),
    (49, 'model("openai:x", base_url="localhost:8765/v1")', "openai:x: base_url must be a URL such as http://127.0.0.1:8000/v1, found 'localhost:8765/v1'"),
    (50, "ToolRegistry(many)", "many: parameter '*numbers' is variadic, which no schema can describe; declare one list parameter, such as numbers: list[str]"),
    (50, "ToolRegistry(lambda: 1)", "a lambda has no name that a model could call; use a def, or register_function(..., name='...')"),
    (50, "ToolRegistry(WithoutSelf)", "WithoutSelf.read has no 'self': its first parameter is 'path'; write 'self' first, or decorate it with @staticmethod"),
    # made up by one who comes from openai-agents, pydantic-ai, LangChain and LangGraph
    (101, 'Agent("Assistant", M)', "Agent(model, tools): the model comes first; 'Assistant' would be name='Assistant'"),
    (101, 'Agent("Assistant")', "agentkit.model('openai:Assistant', base_url='https://…', api_key=…); pass the agent's own name as a keyword: name='Assistant'"),
    (102, "Agent(M, input_guardrails=[print])", "Agent has no argument 'input_guardrails': guards=Guards(request=[function]) of agentkit; it gets a ModelRequest and the run. "),
    (103, "Agent(M, deps_type=int)", "Agent has no argument 'deps_type': it belongs to the run: agent.run(…, context=…). "),
    (104, "Agent(M, output_type=[int, str])", "which is not a type: for several values write output_type=list[int], for one of several types output_type=int | str"),
    (105, "Agent(M, [untyped])", "untyped: parameter 'ctx' has no type; to receive what the application passed to the run, annotate it (ctx: ToolContext) and read ctx.state"),
    (106, "Agent(M, [foreigner])", "foreigner: the hint of parameter 'run' uses 'RunContext', which belongs to another toolkit; write run: ToolContext, and read run.state"),
    (106, "Tool(add, requires_approval=True)", "Tool() takes no arguments: pass a function itself, Agent(model, [function]); its options are those of @openapi_schema"),
    (107, 'Agent(M).run_sync({"messages": [{"role": "user", "content": "hi"}]})', "message 0 has no 'role': expected {'role': 'user', 'content': '…'}, found dict {'messages': [{'role': 'user', 'content': 'hi'}]}; pass the value of 'messages' itself"),
    (108, 'Agent(M).run_sync({"input": "hi"})', "found dict {'input': 'hi'}; pass the value of 'input' itself"),
    (109, 'Agent(M).run_sync([("system", "Be brief."), ("user", "hi")])', "found tuple ('system', 'Be brief.'); write {'role': 'user', 'content': '…'}, or user('…')"),
    (110, 'Agent(M).run_sync([{"role": "human", "content": "hi"}])', "found 'human'; did you mean 'user'?"),
    (110, 'Agent(M).run_sync([{"role": "ai", "content": "hi"}])', "found 'ai'; did you mean 'assistant'?"),
    (111, "Agent(M, [StructuredTool()])", "an instance of StructuredTool is a tool of another toolkit: pass the function it was made from, without that toolkit's decorator"),
    (112, 'Agent(M, tools={"add": add})', "a dict is not a tool: pass its values, tools=list(tools.values())"),
    (113, "Agent(M, tools=[asyncio])", "asyncio is a module: pass its functions or classes, as in tools=[asyncio.name]"),
    (114, 'Agent(M).run_sync("hi", stream_mode="values")', "run_sync has no argument 'stream_mode': a stream yields every event: async for event in agent.stream('…'), or only the text: .text_stream(). "),
    (115, "Agent(M, state_schema=dict)", "Agent has no argument 'state_schema': pass what tools need from the application as agent.run(…, context=…). "),
    (116, 'Agent(M).run_sync("hi")["messages"]', "RunResult is not a dict: write `.messages`"),
    (116, 'Agent(M).run_sync("hi").messages[-1]["content"]', "AssistantMessage is not a dict: write `.content`, or `.text` for the text"),
    (117, 'Agent(M, budget={"tokens": 5})', "Agent(budget={'tokens': 5}): expected a Budget, such as Budget(tokens=100_000), or None"),
    (117, 'Agent(M, config={"formats": "xml"})', "Agent(config={'formats': 'xml'}): expected a ProcessorConfig, such as ProcessorConfig(formats='xml'), or None"),
    (118, "model(M)", "model(…) expects a model string such as 'openai:gpt-5', found a ScriptedModel; pass a model object directly: Agent(model)"),
    (119, 'model("openai:x", api_key="k", timeout="5")', "model(timeout='5'): expected seconds above 0"),
    (119, 'model("openai:x", api_key="k", extra="x")', "model(extra='x'): expected fields of the request's body by name"),
    (120, 'runs(Agent(M).stream("hi"))', "a coroutine was expected, got <RunStream, which was not read yet: `async for event in …`, or `await` it>"),
    (121, 'runs(reads(closed(Agent(M).run("hi"))))', "agent.run(…) returns a single result: write `await agent.run(…)`; to iterate over events, write `async for event in agent.stream(…)`"),
    (122, 'runs(reads(Agent(M).run_sync("hi")))', "this is already the result; for the events write `async for event in agent.stream(…)`, without `await`"),
    (123, "over().text", "'RunStream' object has no attribute 'text': it exists once the run is over: write `await` first, as in `(await threads.run_thread(…)).text`; or iterate over the run with `async for`, and then read .result.text"),
    (124, 'threads.say_sync("t", "hi", "You are brief.", M)', "found 'You are brief.'; for a server that speaks OpenAI's protocol write agentkit.model('openai:NAME', base_url='https://…', api_key=…); pass instructions as a keyword: system='…'"),
    (125, 'threads.say_sync("t", "hi", Agent(M))', "say_sync(…, model=…) is an Agent; pass an agent by name: say_sync(thread_id, message, agent=agent)"),
    (125, 'threads.say_sync("t", "hi", agent=M)', "expected an Agent; pass a model as model=…"),
    (125, 'threads.run_thread("t", "Be brief.", Agent(M))', "run_thread(…, model=…) is an Agent; write run_agent(thread_id, agent)"),
    (126, 'threads.say_sync("hi", M)', "say_sync(…) requires either model='openai:gpt-5' or agent=Agent(…); found neither after thread_id and message"),
    # made up by a reader who had seen the guides alone
    (201, "Agent(tools=[add])", "Agent is missing 'model'; for example: Agent('openai:gpt-5', [function])"),
    (203, "Agent(M).as_tool(tool_name='helper', tool_description='Helps.')", "as_tool has no argument 'tool_name'; did you mean 'name'? It takes name, description"),
    (203, "Agent(M).as_tool('helper')", "as_tool is missing 'description'; for example: agent.as_tool('its_name', 'what it is good at')"),
    (204, "Agent(M, instrument=True)", "Agent has no argument 'instrument': tracing is done by a hook: hooks=[OpenTelemetry()] of agentkit.telemetry. "),
    (204, "Agent(M, schema=int)", "Agent has no argument 'schema'; did you mean 'output_type'? "),
    (204, "Agent(M, mcp_servers=[])", "Agent has no argument 'mcp_servers': a server is passed among the tools: tools=[MCPTools('https://…/mcp')], of agentkit.interop.mcp. "),
    (204, "Agent(M, prepare_tools=len)", "Agent has no argument 'prepare_tools': to offer only the tools that fit the conversation write Agent(…, offered_tools=10). "),
    (204, "Agent(M, max_tools=10)", "Agent has no argument 'max_tools'; did you mean 'offered_tools'? "),
    (204, "@openapi_schema(defer_loading=True)", "to offer only the tools that fit the conversation write Agent(…, offered_tools=10)"),
    (204, "Agent(M, request_limit=5)", "Agent has no argument 'request_limit'; did you mean 'max_turns'? "),
    (204, "Agent(M, retries=2)", "Agent has no argument 'retries': output_retries=… for an invalid output, reply_retries=… for no answer; tools' errors go to the model. "),
    (204, "Budget(request_limit=5)", "Budget has no argument 'request_limit': limit the turns with Agent(max_turns=…). "),
    (204, "first_of(models=[M])", "first_of has no argument 'models': pass them directly: first_of('openai:gpt-5', model). It takes none"),
    (204, "first_of(M, max_tokens=5)", "first_of has no argument 'max_tokens': it belongs to the model: model('openai:…', max_tokens=…) of agentkit.models. "),
    (204, "first_of(M, fallback_on=ValueError)", "first_of has no argument 'fallback_on': omit it: ProviderError.kind decides, as first_of says. "),
    (205, "Agent(M).run_sync('hi', deferred_tool_results=None)", "run_sync has no argument 'deferred_tool_results'; did you mean 'decisions'? "),
    (205, "Agent(M).run_sync('hi', approved=['c1'])", "run_sync has no argument 'approved'; did you mean 'decisions'? "),
    (205, "Agent(M).run_sync('hi', usage=None)", "run_sync has no argument 'usage': each run has its own, result.usage; to limit several together use Agent(…, budget=Budget(…)). "),
    (206, "Agent(M).run_sync('yes', decisions={'c1': Approved()})", "no call waits under the id 'c1'; waiting: none: pass the conversation that contains it, as in agent.run(result.messages, decisions={…})"),
    (206, "Agent(M).run_sync([*ASKED, 'yes'], decisions={'c1': Approved()})", "waiting: none: it was answered, or superseded by a later message; decide first, with agent.run(messages)"),
    (207, "Agent(M).run_sync(Agent(M).run_sync('hi'))", "write its messages: [*result.messages, 'and now?']"),
    (207, "Agent(M).run_sync(user)", "; write user('…'), with parentheses"),
    (208, "user({'type': 'text', 'text': 'hi'})", "found dict {'type': 'text', 'text': 'hi'}: a message in OpenAI's form is passed to the run directly, agent.run({'role': 'user', 'content': […]})"),
    (208, "user(text='hi')", "user has no argument 'text': pass it directly: user('Hello')"),
    (209, "TextPart(5)", "TextPart(…) expects a string, found int 5"),
    (209, "TextPart('hi', type='text')", "TextPart has no argument 'type': omit it: the class determines it. It takes text"),
    (209, "ImagePart(path='a.png')", "ImagePart has no argument 'path': read a file first: ImagePart(Path('chart.png').read_bytes()). It takes "),
    (209, "AssistantMessage('hi', tool_calls=[])", "AssistantMessage has no argument 'tool_calls': a call is a part: AssistantMessage(['Let me see.', ToolCall(…)]). "),
    (210, "ToolCall(name='add', args={'a': 1})", "ToolCall has no argument 'args'; did you mean 'arguments'? "),
    (210, "ToolCall(name='add', arguments={'a': 1})", "ToolCall is missing 'id'; for example: ToolCall('', 'add', {'a': 1})"),
    (211, "ToolResult(True, 'done')", "ToolResult(True, 'done'): write ToolResult(success=True, output=…), or ToolResult(output) and ToolResult(error=…)"),
    (211, "ToolResult('done', success='yes')", "ToolResult(success='yes'): expected True or False, or None"),
    (212, "Approved('c1')", "Approved(arguments='c1'): expected the arguments for the call, by name, such as {'amount': 5}, or None for those that the model wrote"),
    (212, "Approved(by='Eve')", "Approved has no argument 'by': an approval does not have it; in a thread write threads.approve(thread_id, call_id, by='Eve'). "),
    (212, "Denied(5)", "Denied(reason=5): expected a string"),
    (213, "ScriptedModel('a', 'b')", "ScriptedModel takes these positional arguments: script; found 2; pass these by name: name, format, chunk, continues"),
    (213, "ScriptedModel(responses=['a'])", "ScriptedModel has no argument 'responses'; did you mean 'script'? "),
    (213, "ScriptedModel(['a'], chunk='4')", "ScriptedModel(chunk='4'): expected an integer (1 characters or more), or None to send each text whole"),
    (214, "Agent(M, [add, add])", "add: the function name 'add' is taken by the same function: it was passed twice; remove one"),
    (214, "Agent(M, [ToolRegistry(add)])", "pass a ToolRegistry directly, tools=registry, or with other tools as tools=[*registry.tools.values(), …]"),
    (214, "ToolRegistry(tools=[add])", "ToolRegistry has no argument 'tools': pass them directly: ToolRegistry(add, MyTool())"),
    (214, "Agent(M, [M])", "an instance of ScriptedModel is not a tool: a tool is a function, or an object with decorated methods"),
    (214, "Agent(M, [ToolResult('x')])", "an instance of ToolResult is not a tool: pass the function itself, not its return value"),
    (214, "threads.add_tool('agentkit_tools.files:Files', root='x')", "'agentkit_tools.files:Files' is not a tool: pass 'module:Class' to registry.register(…), or with a thread manager to threads.add_tool(…), and nothing else"),
    (215, "Agent(M, [with_self])", "with_self: its first parameter is 'self', but it is not a method: remove 'self', or move it into a class, decorate it with @openapi_schema, and pass an instance: tools=[MyTool()]"),
    (215, "Agent(M, [Pydantic])", "Pydantic is a pydantic model, which has values but no behaviour: use it as the type of a function's parameter, or request one as the reply, output_type=Pydantic"),
    (216, "Agent(M, [hinted([int])])", "hinted: parameter 'at' has type [<class 'int'>], which is not a type: for several values write at: list[int]"),
    (216, "Agent(M, [hinted((int, str))])", "which is not a type: for one of several types write at: int | str"),
    (216, "Agent(M, [hinted(any)])", "which is not a type: for any value write at: Any, from typing"),
    (217, "@openapi_schema(name_override='x')", "look: @openapi_schema describes parameter 'name_override', which does not exist (parameters: 'at'); did you mean 'name'?"),
    (217, "@openapi_schema(input_schema={})", "which does not exist (parameters: 'at'): pass a schema as positional argument: @openapi_schema({…})"),
    (217, "@openapi_schema(requires_confirmation=True)", "look: @openapi_schema has no keyword 'requires_confirmation'; did you mean 'requires_approval'? "),
    (217, "@openapi_schema(retries=3)", "look: @openapi_schema has no keyword 'retries': a tool's error is sent to the model, which may call it again. "),
    (218, "@openapi_schema({'type': 'object', 'properties': {'at': {'type': 'string'}}, 'required': ['at', 'b']})", "look: the hand-written schema requires 'b', which is not in its 'properties'; remove it from 'required'"),
    (219, "@xml_schema(mappings=[{'param_name': 'at', 'path': './at'}])", "look: @xml_schema has path './at' for parameter 'at': a path is names, not XPath; write 'at'"),
    (219, "@xml_schema(mappings=[{'param_name': 'at', 'path': '@to'}])", "a path is names, not XPath; write {'param_name': 'at', 'node_type': 'attribute', 'path': 'to'}"),
    (219, "@xml_schema(mappings=[{'param_name': 'at', 'path': 'text()'}])", "a path is names, not XPath; write {'param_name': 'at', 'node_type': 'content'}"),
    (219, "@xml_schema(mappings={'at': 'attribute'})", "found 'at'; write {'param_name': 'at', 'node_type': 'attribute'}"),
    (219, "@xml_schema(mappings=[('at', 'content')])", "found ('at', 'content'); write {'param_name': 'at', 'node_type': 'content'}"),
    (219, "@xml_schema(mappings=[{'param_name': 'at', 'type': 'attribute'}])", "found {'param_name': 'at', 'type': 'attribute'}; did you mean 'node_type'?"),
    (219, "@xml_schema(children=['at'])", "@xml_schema has no argument 'children'; did you mean 'elements'? "),
    (220, "ToolRegistry(add).get_openapi_schemas(names='add')", "names='add': expected a list of names: names=['add']"),
    (221, "threads.run_thread(thread='t', model=M)", "run_thread has no argument 'thread'; did you mean 'thread_id'? "),
    (221, "runs(threads.run_thread('t', model=M).complete())", "there is no thread 't'; `await threads.create_thread('t')` creates one, as does say"),
    (222, "Text('hi')['text']", "Text is not a dict: write `.text`"),
    (222, "Text('hi')['delta']", "Text is not a dict: write `.text`"),
    (222, "ToolCall('', 'add')['args']", "ToolCall is not a dict: write `.arguments`"),
    (222, "ToolResult('x')['output']", "ToolResult is not a dict: write `.output`"),
    (222, "ToolContext('c1', 'add')['user']", "ToolContext is not a dict: what the application passed to agent.run('…', context=…) is context.state"),
    (223, "list(closed(Agent(M).run('hi')))", "agent.run(…) was not awaited: write `await agent.run(…)`, or agent.run_sync(…)"),
    # made up
    (75, 'Agent(M).run_sync("hi", sytem="Be brief.")', "run_sync has no argument 'sytem': it belongs to the agent: Agent(…, system=…). It takes "),
    (76, 'Agent(M, instructons="Be brief.")', "Agent has no argument 'instructons'; did you mean 'system'? It takes "),
    (77, 'threads.say_sync("t", "hi", M, temprature=1)', "say_sync has no argument 'temprature'; did you mean 'temperature'? It takes "),
    (52, 'model("openai:x", formt="xml")', "model has no argument 'formt'; did you mean 'format'? It takes name, "),
    (53, 'model("openai:x", api_key="k", format="hermse")', "no format is called 'hermse'; did you mean 'hermes'? `agentkit formats` and agentkit.formats.names() list all"),
    (53, 'ProcessorConfig(formats="xlm")', "no format is called 'xlm'; did you mean 'xml'? "),
    (53, 'model("openai:x", api_key="k", format="json")', "no format is called 'json': omit the format to use the provider's native calls. "),
    (54, "Agent(M, config=ProcessorConfig(format='xml'))", "ProcessorConfig has no argument 'format'; did you mean 'formats'? It takes native, formats, "),
    (55, "Budget(max_tokens=5)", "Budget has no argument 'max_tokens'; did you mean 'tokens'? It takes tokens, cost, seconds, tool_calls, prices"),
    (56, 'ToolResult(result="done")', "ToolResult has no argument 'result'; did you mean 'output'? It takes output, error, code, content, metadata, reward, success"),
    (57, 'Agent(M).run_sync("hi", deps=5)', "run_sync has no argument 'deps'; did you mean 'context'? It takes "),
    (58, 'Agent(M, [add]).run_sync("hi", tool_choice="any")', "tool_choice='any' is not a tool of this agent: expected one of auto, required, none, add; did you mean 'required'?"),
    (59, 'ToolRegistry(Files).tools["read-file"]', "no tool is registered as 'read-file' (registered: 'read_file'); did you mean 'read_file'?"),
    (60, 'ToolRegistry().register_tool(Files, ["read_fil"])', "Files has no decorated method 'read_fil'; it has 'read_file'; did you mean 'read_file'?"),
    (61, 'ToolRegistry(add).get_openapi_schemas("openai")', "there is no flavour of schemas 'openai'; did you mean 'chat'? There are chat, responses, strict, anthropic, gemini, mcp"),
    (62, 'threads.run_thread("t", tools=[add], model=M)', "run_thread has no argument 'tools': the manager has the tools: threads.add_tool(MyTool), or threads.add_tool(function). It takes thread_id, "),
    (63, 'threads.add_message("t", "user", "hi")', "add_message takes these positional arguments: thread_id, message; found 3; pass these by name: client_id"),
    (64, 'Agent(M, add, "Be brief.")', "Agent takes these positional arguments: model, tools; found 3; pass these by name: system, "),
    (65, 'ThreadManager("a.db", [add])', "expected a ToolRegistry: ToolRegistry(tool, …), or None"),
    (66, "exec('with Agent(M).stream(\"hi\"): ...')", "RunStream must be entered with `async with`, inside an async function; `with` cannot wait for its end"),
    (66, "exec('with Agent(M) as a: ...')", "Agent must be entered with `async with`, inside an async function; `with` cannot wait for its end"),
    (67, "exec('from agentkit import UserMessage')", "agentkit has no 'UserMessage': it is in agentkit.messages: from agentkit.messages import UserMessage"),
    (68, 'ScriptedModel([{"role": "assistant", "content": "hi"}])', "turn 0 of the script: expected a string, a ToolCall, an event, an exception, an AssistantMessage, or a list of these; found dict {'role': 'assistant', 'content': 'hi'}"),
    (69, "ToolCall(\"\", \"add\", '{\"a\": 1}')", "ToolCall(id, name, arguments): arguments is a mapping of names to values, found str '{\"a\": 1}'"),
    (70, "Compaction(windw=10_000)", "Compaction has no argument 'windw'; did you mean 'window'? It takes window, "),
    (71, 'ToolRegistry().register_function(add, requires_confirmation=True)', "register_function has no argument 'requires_confirmation'"),
    (72, "Agent(M, tools=None)", "None is not a tool: if there are no tools, omit tools or pass tools=[]"),
    (73, 'Agent("openai:")', "found 'openai:'; the model's name is missing after 'openai'"),
    (74, "@openapi_schema(one_at_a_time=True)", "look: @openapi_schema has no keyword 'one_at_a_time'; did you mean 'exclusive'?"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "code", "message"), RAISED, ids=[f"{n}-{code[:40]}" for n, code, _ in RAISED])
def test_a_mistake_says_how_to_fix_it(
    number: int, code: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the words are what is looked at
        eval(f"decorated({code[1:]})" if code.startswith("@") else code, dict(NAMESPACE))
    said = str(caught.value).replace("\\n", "\n").replace("\\'", "'")
    assert message in said
    assert len(said) < 700


def test_all_numbers_are_there() -> None:
    raised = {number for number, _, _ in RAISED}
    assert set(range(1, 78)) - raised - WITHOUT_MESSAGE.keys() == set()


WITHOUT_MESSAGE = {
    23: "test_run_sync_in_a_running_loop",
    28: "test_what_a_model_reads", 29: "test_what_a_model_reads", 31: "test_what_an_author_is_warned_of",
    32: "test_what_a_model_reads", 33: "test_what_a_model_reads", 34: "test_what_a_model_reads",
    35: "test_what_a_tool_changes_is_its_own",
    36: "test_an_async_tool_that_blocks",
    40: "test_text_is_an_output_too",
    51: "test_unanswered.py: test_who_goes_on_talking_leaves_no_call_without_an_answer",
}  # fmt: skip


def test_run_sync_in_a_running_loop() -> None:  # 23
    async def main() -> None:
        Agent(M).run_sync("hi")

    with pytest.raises(RuntimeError, match=r"write `await agent.run\(…\)`"):
        asyncio.run(main())


def answers(tool: Any, config: ProcessorConfig | None = None) -> ToolMessage:
    says = ScriptedModel([ToolCall("", ToolRegistry(tool).specs()[0].name), "done"])
    result = Agent(says, [tool], config=config).run_sync("go")
    assert (result.finish, result.text) == ("stop", "done")
    (answer,) = [m for m in result.messages if isinstance(m, ToolMessage)]
    return answer


def returns(value: Any) -> Any:
    def look() -> Any:
        return value() if callable(value) else value

    return look


def raises(error: BaseException) -> Any:
    def look() -> str:
        raise error

    return look


class Opaque:
    pass


async def forgotten() -> int:
    return 1


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        pytest.param(returns("x" * 5_000_000), " of 5,000,000 characters left out", id="28"),
        pytest.param(returns({"a": b"\xff", "b": float("nan"), "c": float("inf")}), '{"a": "/w==", "b": "NaN", "c": "Infinity"}', id="29"),
        pytest.param(returns(lambda: (i for i in [1])), "the tool returned a generator, not a value; return its result instead", id="30"),
        pytest.param(returns(Opaque()), "(an object of class Opaque, without a readable value)", id="31"),
        pytest.param(returns(forgotten), "1", id="32"),
        pytest.param(raises(SystemExit(3)), "SystemExit: 3", id="33"),
        pytest.param(raises(KeyError("k")), "KeyError: 'k'", id="33b"),
        pytest.param(raises(KeyboardInterrupt()), "KeyboardInterrupt", id="34"),
        pytest.param(returns(lambda: ToolResult(error=ValueError("bad"))), "ValueError: bad", id="37"),
        pytest.param(returns(lambda: ImagePart("chart.png")), "for a file write ImagePart(Path('chart.png').read_bytes())", id="38"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_a_model_reads(tool: Any, text: str) -> None:
    assert text in answers(tool).text


def test_what_an_author_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:  # 31
    answers(returns(Opaque()))
    (message,) = caplog.messages
    assert message == (
        "look returned an object of class Opaque, which the model cannot read: return a string, numbers, a dict or "
        "list of these, a dataclass, or give the class a __str__"
    )


def test_an_async_tool_that_blocks(caplog: pytest.LogCaptureFixture) -> None:  # 36
    async def look() -> str:
        time.sleep(0.25)  # noqa: ASYNC251 - the mistake
        return "late"

    assert answers(look, ProcessorConfig(timeout=0.1)).text == "late"
    (message,) = caplog.messages
    assert message.endswith(
        "although its timeout is 0.1 s: it blocked the event loop, and nothing could stop it; write it with `def`, to "
        "run in a thread, or let it wait with `await`, as in `await asyncio.to_thread(…)`"
    )


def test_what_a_tool_changes_is_its_own() -> None:  # 35
    def look(at: list[str]) -> str:
        at.append("changed")
        return "done"

    says = ScriptedModel([ToolCall("", "look", {"at": ["a"]}), "done"])
    assert Agent(says, [look]).run_sync("go").messages[1].calls[0].arguments == {"at": ["a"]}  # type: ignore[union-attr]


def test_text_is_an_output_too() -> None:  # 40
    assert Agent(ScriptedModel(["Hello"]), output_type=str).run_sync("hi").output == "Hello"


def test_what_is_taken_is_no_mistake() -> None:  # 42: these lost their words
    said = [UserMessage("hi"), UserMessage([TextPart("hi")]), user("hi"), user(TextPart("hi"))]
    assert [message.text for message in said] == ["hi"] * 4
    assert dataclasses.is_dataclass(ToolResult("hi"))
    assert isinstance(Tool().fail_response("no"), ToolResult)


COMMANDS = [
    ("ask", "agentkit: error: argument command: invalid choice: 'ask'; did you mean 'run'? There are demo, chat, ui, run, fit, threads, serve, mcp, parse, formats, tools, python-server"),
    ("thread list", "invalid choice: 'thread'; did you mean 'threads'? "),
    ("help", "invalid choice: 'help': write agentkit --help. "),
    ("chat Hello --model openai:x", "agentkit chat: error: unrecognized arguments: Hello: text is read from standard input: echo 'Hello' | agentkit …"),
    ("chat --model openai:x -p Hello", "unrecognized arguments: -p Hello: text is read from standard input: "),
    ("chat --model openai:x --api-key k", "unrecognized arguments: --api-key k: a key is read from the environment: OPENAI_API_KEY, or the variable of --api-key-env"),
    ("chat --model openai:x --system-prompt Brief.", "unrecognized arguments: --system-prompt Brief.; did you mean '--system'?"),
    ("chat --model openai:x --auto-approve", "unrecognized arguments: --auto-approve: write --approve always"),
    ("chat --model openai:x --approve yes", "argument --approve: invalid choice: 'yes'; did you mean 'always'? There are ask, always, never"),
    ("threads remove x", "agentkit threads: error: argument action: invalid choice: 'remove'; did you mean 'delete'? "),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_a_wrong_command_says_how_to_fix_it(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
