"""Names that users of other toolkits expect: of attributes and of what is imported. The message alone is enough.

The first tables are rows, as in `test_mistakes.py`; the others are properties of all of `agentkit.foreign.attributes` and
`agentkit.foreign.imports`.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import importlib
import importlib.util
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

import pytest

import agentkit
import agentkit_tools
from agentkit import (
    Agent,
    FilePart,
    ImagePart,
    ProviderError,
    ResponseProcessor,
    SchemaError,
    TextPart,
    ThreadManager,
    Tool,
    ToolCall,
    ToolContext,
    ToolRegistry,
    ToolResult,
    model,
    openapi_schema,
    xml_schema,
)
from agentkit.events import (
    ApprovalRequired,
    ArgumentDelta,
    CallEnd,
    CallError,
    CallQuoted,
    CallStart,
    Finish,
    Markup,
    ModelSelected,
    ProviderBlock,
    Text,
    Thinking,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
    Usage,
)
from agentkit.foreign.attributes import ATTRIBUTES
from agentkit.foreign.imports import FOREIGN, HOMES
from agentkit.interop.mcp import MCPTools
from agentkit.messages import AssistantMessage, SystemMessage, ThinkingPart, ToolMessage, UserMessage
from agentkit.testing import ScriptedModel
from agentkit.threads import Thread

# ruff: noqa: E501 (a row is a line)


@openapi_schema
@xml_schema(content="text")
def ask(text: str) -> str:
    """Ask."""
    return text


async def no_events() -> Any:
    for event in ():
        yield event


registry = ToolRegistry(ask)
agent = Agent(ScriptedModel(["Hello."] * 100), [ask])
threads = ThreadManager(":memory:")
call = ToolCall("c1", "ask", {"text": "Why?"})
answer = ToolResult("yes")

OBJECTS: dict[str, Any] = {
    type(one).__name__: one
    for one in (
        agent, agent.run_sync("Hi"), agent.stream("Hi"), ResponseProcessor(registry).process(no_events()), threads,
        registry, registry.tools["ask"], call, answer, ToolContext("c1", "ask"), Tool(), SystemMessage("Be brief."),
        UserMessage("Hi"), AssistantMessage("Hi"), ToolMessage("c1", "ask", (TextPart("yes"),)), TextPart("a"),
        ImagePart(url="https://a.b/c.png"), FilePart(url="https://a.b/c.pdf", media_type="application/pdf"), ThinkingPart("hm"), Text("a"), Thinking("hm"), Markup("<a>"),
        ProviderBlock("openai", {}), CallStart(0, "ask"), ArgumentDelta(0, "a"), CallEnd(0, call),
        CallError(0, "invalid_json", "bad", call), CallQuoted(call), Usage(), ModelSelected("a"), Finish("stop"), ToolStarted(0, call),
        ToolCompleted(0, call, answer, 0.1), ToolFailed(0, call, answer, 0.1), ToolSkipped(0, call, answer),
        ApprovalRequired(0, call), ResponseProcessor(registry), Thread("t", {}, 0, 0.0, 0.0, 1),
        registry.tools["ask"].schema, registry.tools["ask"].xml_schema, registry.tools["ask"]["schema"],
        SchemaError("bad"), ProviderError("bad", kind="server", provider="openai"),
    )
}  # fmt: skip
OBJECTS["AgentkitError"] = OBJECTS.pop("SchemaError")
OBJECTS["SdkModel"] = model("openai:gpt-5", api_key="k")
OBJECTS["ModelChain"] = agentkit.first_of(agent.model)
OBJECTS["ScriptedModel"] = agent.model
OBJECTS["MCPTools"] = MCPTools("https://example.org/mcp")
OBJECTS["TextCalling"] = model("openai:gpt-5", api_key="k", format="xml")

NAMES = {
    "agent": agent, "result": OBJECTS["RunResult"], "run": OBJECTS["RunStream"], "threads": threads,
    "registry": registry, "message": OBJECTS["AssistantMessage"], "call": call, "answer": answer,
    "context": OBJECTS["ToolContext"], "usage": Usage(), "agentkit": agentkit,
    "error": OBJECTS["ProviderError"], "schema": OBJECTS["BothSchemas"],
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def closed() -> Iterator[None]:
    yield
    asyncio.run(threads.aclose())


ROWS = [
    ("agent.invoke('Hi')", "'Agent' object has no attribute 'invoke': write agent.run_sync('…'), or await agent.run('…')"),
    ("agent.run_stream('Hi')", "'Agent' object has no attribute 'run_stream': write async for event in agent.stream('…')"),
    ("agent.tools", "'Agent' object has no attribute 'tools': write agent.registry.tools"),
    ("agent.instructions", "'Agent' object has no attribute 'instructions': it is Agent(…, system=…), a string or a function of the run's context"),
    ("Agent.invoke", "type object 'Agent' has no attribute 'invoke': write agent.run_sync('…'), or await agent.run('…')"),
    ("result.final_output", "'RunResult' object has no attribute 'final_output'; did you mean 'output'?"),
    ("result.thinking", "'RunResult' object has no attribute 'thinking': write [m.thinking for m in result.messages if isinstance(m, AssistantMessage)]"),
    ("result.approve(call)", "'RunResult' object has no attribute 'approve': a run has no state object: write agent.run(result.messages, decisions={call.id: Approved()})"),
    ("agent.final_output", "'Agent' object has no attribute 'final_output': each run has its own: agent.run_sync('…').output"),
    ("agent.get_state()", "'Agent' object has no attribute 'get_state': an agent does not keep a conversation; "),
    ("call.approve()", "'ToolCall' object has no attribute 'approve': write agent.run(result.messages, decisions={call.id: Approved()}); in a thread, threads.approve(…)"),
    ("context.user_id", "'ToolContext' object has no attribute 'user_id': what the application passed to agent.run('…', context=…) is context.state"),
    ("threads.get_history('t')", "'ThreadManager' object has no attribute 'get_history': for the messages as models read them write await threads.get_llm_messages(thread_id)"),
    ("result.data", "'RunResult' object has no attribute 'data'; did you mean 'output'?"),
    ("result.output_text", "'RunResult' object has no attribute 'output_text'; did you mean 'text'?"),
    ("result.content", "'RunResult' object has no attribute 'content'; did you mean 'text'?"),
    ("result.all_messages()", "'RunResult' object has no attribute 'all_messages'; did you mean 'messages'?"),
    ("result.usage.total_tokens", "'Usage' object has no attribute 'total_tokens': write usage.input_tokens + usage.output_tokens"),
    ("run.text", "'RunStream' object has no attribute 'text': it exists once the run is over: write `await` first, as in `(await threads.run_thread(…)).text`; or iterate over the run with `async for`, and then read .result.text"),
    ("message.role", "'AssistantMessage' object has no attribute 'role': check its class: isinstance(message, UserMessage), or `match`; the classes are in agentkit.messages"),
    ("message.tool_calls", "'AssistantMessage' object has no attribute 'tool_calls'; did you mean 'calls'?"),
    ("call.function.name", "'ToolCall' object has no attribute 'function': a call is flat: call.name and call.arguments"),
    ("threads.run('t')", "'ThreadManager' object has no attribute 'run'; did you mean 'run_thread'?"),
    ("threads.get_messages('t')", "'ThreadManager' object has no attribute 'get_messages': for the messages as models read them write await threads.get_llm_messages(thread_id), for the complete log await threads.get_log(thread_id)"),
    ("registry.add(ask)", "'ToolRegistry' object has no attribute 'add': write registry.register(function), or register_tool(MyTool)"),
    ("answer.data", "'ToolResult' object has no attribute 'data'; did you mean 'output'?"),
    ("answer.is_error", "'ToolResult' object has no attribute 'is_error': write `result.error is not None`, or `not result.ok`"),
    ("context.agent", "'ToolContext' object has no attribute 'agent': write context.run.agent"),
    ("call.args_as_dict()", "'ToolCall' object has no attribute 'args_as_dict'; did you mean 'arguments'?"),
    ("context.deps", "'ToolContext' object has no attribute 'deps'; did you mean 'state'?"),
    ("Text('a').delta", "'Text' object has no attribute 'delta'; did you mean 'text'?"),
    ("Text('a').type", "'Text' object has no attribute 'type': check its class: isinstance(event, Text), or `match`; the classes are in agentkit.events"),
    ("ToolCompleted(0, call, answer, 1.0).name", "'ToolCompleted' object has no attribute 'name': write event.call.name"),
    ("error.status_code", "'ProviderError' object has no attribute 'status_code'; did you mean 'status'?"),
    ("error.message", "'ProviderError' object has no attribute 'message': write str(error)"),
    ("schema.schema_type", "AgentPress has SchemaType.OPENAPI under the function's name and SchemaType.XML under the tag; here both keys lead to one entry, which has both: read schema.openapi or schema.xml_schema"),
    ("agentkit.Runner", "module 'agentkit' has no attribute 'Runner': an agent runs itself: agent.run_sync('…'), or await agent.run('…')"),
    ("tool()", "agentkit.tool is a module and cannot be called: write @openapi_schema above a method, or pass a plain function: Agent(model, [function])"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "message"), ROWS, ids=[code for code, _ in ROWS])
def test_an_attribute_of_another_toolkit(code: str, message: str) -> None:
    from agentkit import tool

    with pytest.raises((AttributeError, TypeError)) as caught:
        eval(code, {**globals(), **NAMES, "tool": tool})
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


IMPORTS = [
    ("agentkit", "Runner", ": an agent runs itself: agent.run_sync('…'), or await agent.run('…')"),
    ("agentkit", "function_tool", ": write @openapi_schema above a method, or pass the function itself: Agent(model, [function])"),
    ("agentkit", "Text", ": it is in agentkit.events: from agentkit.events import Text"),
    ("agentkit", "Usage", ": it is in agentkit.events: from agentkit.events import Usage"),
    ("agentkit", "Hook", ": it is in agentkit.agent: from agentkit.agent import Hook"),
    ("agentkit", "RunContextWrapper", ": write agentkit.ToolContext"),
    ("agentkit", "ChatOpenAI", ": a model is a string: Agent('openai:gpt-5'), or agentkit.model('openai:gpt-5', base_url=…)"),
    ("agentkit", "StateGraph", ": write agentkit.Agent('openai:gpt-5', [function]): a model, its tools, and the loop"),
    ("agentkit", "Agnet", "; did you mean 'Agent'?"),
    ("agentkit", "ThreadNotFound", ": it is in agentkit.errors: from agentkit.errors import ThreadNotFound"),
    ("agentkit", "Files", ": it is in agentkit_tools.files: from agentkit_tools.files import Files"),
    ("agentkit", "OpenTelemetry", ": it is in agentkit.telemetry: from agentkit.telemetry import OpenTelemetry"),
    ("agentkit", "Threads", ": conversations are kept by agentkit.ThreadManager"),
    ("agentkit", "ItemHelpers", ": the text of a run is result.text, its messages are result.messages"),
    ("agentkit", "capture_run_messages", ": the messages up to a failure are in the error's result: error.result.messages"),
    ("agentkit", "UsageLimitExceeded", ": limits do not raise: result.finish says which one ended the run, such as 'max_turns' or 'token_budget'"),
    ("agentkit", "MCPTools", ": it is in agentkit.interop.mcp: from agentkit.interop.mcp import MCPTools"),
    ("agentkit", "mcp", ": it is the module agentkit.interop.mcp"),
    ("agentkit", "ApprovalRequired", ": to make calls wait for a person write @openapi_schema(requires_approval=True), or a function of the arguments, or a guard that returns agentkit.AskPerson; the event is agentkit.events.ApprovalRequired"),
    ("agentkit", "ModelHTTPError", ": write agentkit.ProviderError"),
    ("agentkit.interop", "MCPTools", ": it is in agentkit.interop.mcp: from agentkit.interop.mcp import MCPTools"),
    ("agentkit.interop.mcp", "MCPServerStdio", ": write agentkit.interop.mcp.MCPTools('https://…/mcp') or MCPTools(['npx', '-y', 'server'])"),
    ("agentkit.messages", "Text", ": it is in agentkit.events: from agentkit.events import Text"),
    ("agentkit.messages", "HumanMessage", ": write agentkit.messages.UserMessage"),
    ("agentkit.events", "TextPart", ": it is in agentkit: from agentkit import TextPart"),
    ("agentkit.events", "ToolComplete", "; did you mean 'ToolCompleted'?"),
    ("agentkit.events", "from_jsonl", "; did you mean 'from_json'?"),
    ("agentkit.tool", "function_tool", ": write @openapi_schema above a method, or pass the function itself: Agent(model, [function])"),
    ("agentkit.tool", "openai_schema", "; did you mean 'openapi_schema'?"),
    ("agentkit.models", "ChatAnthropic", ": a model is a string: Agent('openai:gpt-5'), or agentkit.model('openai:gpt-5', base_url=…)"),
    ("agentkit.models", "Agent", ": it is in agentkit: from agentkit import Agent"),
    ("agentkit.agent", "Runner", ": an agent runs itself: agent.run_sync('…'), or await agent.run('…')"),
    ("agentkit.agent", "ToolCompleted", ": it is in agentkit.events: from agentkit.events import ToolCompleted"),
    ("agentkit.threads", "SQLiteSession", ": conversations are kept by agentkit.ThreadManager"),
    ("agentkit.testing", "TestModel", ": write agentkit.testing.ScriptedModel"),
    ("agentkit", "ToolReturn", ": write agentkit.ToolResult"),
    ("agentkit", "PrefixedToolset", ": write @openapi_schema above a method, or pass the function itself: Agent(model, [function])"),
    ("agentkit", "ToolDenied", ": write agent.run(result, decisions={call.id: agentkit.Approved()}), or Denied('…')"),
    ("agentkit", "UnexpectedModelBehavior", ": write agentkit.OutputError, which result.output raises if there is none"),
    ("agentkit", "ModelMessagesTypeAdapter", ": write agentkit.agent.dicts_from(messages), or keep them in an agentkit.ThreadManager"),
    ("agentkit", "AgentStreamEvent", ": write agentkit.events.Event, or one of its classes"),
    ("agentkit", "InstrumentationSettings", ": write agentkit.Agent(…, hooks=[agentkit.telemetry.OpenTelemetry()])"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name", "hint"), IMPORTS, ids=[f"{m}-{n}" for m, n, _ in IMPORTS])
def test_an_import_of_another_toolkit(module: str, name: str, hint: str) -> None:
    with pytest.raises(ImportError) as caught:
        exec(f"from {module} import {name}")
    assert str(caught.value) == f"{module} has no {name!r}{hint}"
    assert not hasattr(importlib.import_module(module), name)


# ------------------------------------------------------------------ properties of the tables

FOREIGN_NAMES = [(owner, name, ours) for owner, names in ATTRIBUTES.items() for name, ours in names.items()]


def test_each_table_has_an_object() -> None:
    assert ATTRIBUTES.keys() == OBJECTS.keys()


@pytest.mark.parametrize("owner", ATTRIBUTES)
def test_no_name_is_there_and_each_says_what_is(owner: str) -> None:
    one = OBJECTS[owner]
    for name, ours in ATTRIBUTES[owner].items():
        with pytest.raises(AttributeError) as caught:
            getattr(one, name)
        assert not hasattr(one, name)
        assert not hasattr(type(one), name)
        assert caught.value.name == name
        assert ours in str(caught.value)
        if ours.isidentifier():
            assert inspect.getattr_static(one, ours, None) is not None or hasattr(one, ours), (owner, name, ours)


def test_no_words_name_what_there_is_not() -> None:
    """Whatever stands behind a dot in the words is an attribute of something here, or of Python's."""
    there = {name for one in (*OBJECTS.values(), agentkit, registry.tools["ask"].spec) for name in dir(one)}
    there |= {
        name for module in (*HOMES.values(), "asyncio", "dataclasses") for name in dir(importlib.import_module(module))
    }
    there |= {name for home in HOMES.values() for name in home.split(".")} | {"OPENAPI", "XML"}
    there |= {one.name for package in (agentkit, agentkit_tools) for one in pkgutil.iter_modules(package.__path__)}
    for words in (*(ours for _, _, ours in FOREIGN_NAMES), *FOREIGN.values()):
        assert {name for name in re.findall(r"\w\.(\w+)", words) if name not in there} == set(), words


@pytest.mark.parametrize("owner", ATTRIBUTES)
def test_only_a_name_that_is_asked_for_is_paid_for(owner: str) -> None:
    """Python looks attributes up in the way in which it does without it."""
    cls = type(OBJECTS[owner])
    assert not hasattr(cls, "__getattr__")
    assert "__getattribute__" not in {name for base in cls.__mro__[:-1] for name in vars(base)} - set(
        vars(tuple)
    ) - set(vars(BaseException))


@pytest.mark.parametrize("owner", ATTRIBUTES)
def test_nothing_else_sees_the_names(owner: str) -> None:
    one = OBJECTS[owner]
    foreign = ATTRIBUTES[owner].keys()
    assert foreign & set(dir(one)) == set()
    if owner != "RunStream":  # it raises what it should when its result is asked for too early
        assert foreign & {name for name, _ in inspect.getmembers(one)} == set()
    if dataclasses.is_dataclass(one):
        assert foreign & {field.name for field in dataclasses.fields(one)} == set()
    with suppress(TypeError):  # not everything is a value
        if type(one).__eq__ is not object.__eq__:
            assert copy.copy(one) == one
            assert pickle.loads(pickle.dumps(one)) == one


def test_python_still_says_what_was_meant() -> None:
    """Of names that are near to ours, and that no other toolkit has."""
    code = """
from agentkit import Agent, ToolResult
from agentkit.testing import ScriptedModel
import sys
for one, name in [(Agent(ScriptedModel([])), "modle"), (Agent(ScriptedModel([])), "run_synk"), (ToolResult(), "outptu")]:
    try:
        getattr(one, name)
    except AttributeError as error:
        sys.excepthook(type(error), error, None)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    assert re.findall(r"Did you mean: '(\w+)'", said) == ["model", "run_sync", "output"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="`traceback` says what was meant from 3.12 on")
def test_python_adds_no_guess_to_our_words() -> None:
    """It would be another one for 42 of them."""
    for owner, name, _ in FOREIGN_NAMES:
        try:
            getattr(OBJECTS[owner], name)
        except AttributeError as error:
            (said,) = traceback.format_exception_only(error)
            assert said == f"AttributeError: {error}\n"  # noqa: PT017 (of each, in one test)


class Chatty(Tool):
    schemas = "my own"

    def __init__(self) -> None:
        self.ok_response = "mine, too"

    def error_response(self) -> str:
        return "and mine"


def test_a_subclass_may_have_the_names_for_itself() -> None:
    one = Chatty()
    assert (one.schemas, one.ok_response, one.error_response()) == ("my own", "mine, too", "and mine")
    assert {"schemas", "ok_response", "error_response"} <= set(dir(one))

    @dataclasses.dataclass(frozen=True)
    class Special(ToolContext[Any]):
        deps: str = "mine"

    assert (Special("c1", "ask", deps="x").deps, Special("c1", "ask").deps) == ("x", "mine")


def test_each_public_name_is_found() -> None:
    """Those of the table are where it says; and what modules offer is in it, but for what few will look for."""
    for name, module in HOMES.items():
        assert hasattr(importlib.import_module(module), name), (module, name)
        assert name not in agentkit.__all__
    for module in set(HOMES.values()):
        for name in getattr(importlib.import_module(module), "__all__", ()):
            if name[0].isupper() and not name.isupper() and name not in INNER:
                assert name in HOMES or name in agentkit.__all__, (module, name)
    assert HOMES.keys() & FOREIGN.keys() == {"ApprovalRequired"}  # our event has the name of pydantic-ai's exception
    assert agentkit.__all__ & FOREIGN.keys() == set()


INNER = {
    "Append",
    "Ask",
    "Conversation",
    "InCode",
    "Journal",
    "Lease",
    "More",
    "Move",
    "NewCall",
    "OwnLoop",
    "Plan",
    "Response",
}
INNER |= {"Revise", "Source", "Spending", "StoredResults", "UnansweredCalls", "FunctionNames", "SchemaType"}


@pytest.mark.parametrize("module", sorted({"agentkit", *HOMES.values()} - {"agentkit.errors", "agentkit_tools.files"}))
def test_each_module_says_where_a_name_is(module: str) -> None:
    """`agentkit.errors` cannot: whatever could say it stands on it. `agentkit_tools` knows public names only."""
    with pytest.raises(ImportError, match=f"^{module} has no 'Runner': an agent runs itself"):
        exec(f"from {module} import Runner")
    with pytest.raises(ImportError, match=f"^{module} has no 'qqqqq'; it has "):
        exec(f"from {module} import qqqqq")
    with pytest.raises(AttributeError, match=f"^module '{module}' has no attribute 'Runner': an agent runs itself"):
        _ = importlib.import_module(module).Runner
    assert not hasattr(importlib.import_module(module), "__wrapped__")


@runtime_checkable
class HasName(Protocol):
    name: str


def test_protocols_of_ours_find_what_they_found() -> None:
    assert isinstance(agent, HasName)
    assert isinstance(call, HasName)
    assert not isinstance(answer, HasName)
