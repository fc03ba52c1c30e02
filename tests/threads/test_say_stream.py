"""`say_stream`: what `say` does, as it happens; and what people write first to a thread, with what they get."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit import Agent, ThreadManager, ToolCall
from agentkit.agent import RunStarted
from agentkit.errors import AgentkitError, ConfigError, ThreadExists
from agentkit.events import Text, ToolCompleted
from agentkit.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
async def threads() -> ThreadManager:
    manager = ThreadManager(":memory:")
    manager.add_tool(add)
    return manager


def model() -> ScriptedModel:
    return ScriptedModel([ToolCall("c1", "add", {"a": 1, "b": 2}), "3"])


async def test_a_message_is_stored_and_its_answer_streamed(threads: ThreadManager) -> None:
    run = threads.say_stream("ada", "1 + 2?", model(), "Be brief.")
    events = [event async for event in run]
    assert [type(event) for event in events if isinstance(event, Text | ToolCompleted)] == [ToolCompleted, Text]
    assert (run.result.text, run.thread_id, run.over) == ("3", "ada", True)
    assert [m.text for m in await threads.get_llm_messages("ada") if hasattr(m, "text")] == ["1 + 2?", "", "3", "3"]


async def test_with_an_agent_and_only_the_text(threads: ThreadManager) -> None:
    agent = Agent(model(), [add])
    assert [text async for text in threads.say_stream("ada", "1 + 2?", agent=agent).text_stream()] == ["3"]


async def test_said_again_under_its_id_it_yields_the_stored_answer(threads: ThreadManager) -> None:
    seen: list[Any] = []
    threads.hooks = (lambda event, run: seen.append(event),)
    await threads.say_stream("ada", "1 + 2?", model(), client_id="k1")
    await threads.say("ada", "Thanks.", ScriptedModel(["Welcome."]))
    seen.clear()
    run = threads.say_stream("ada", "1 + 2?", ScriptedModel([]), client_id="k1")
    assert [event async for event in run] == [Text("3")]
    assert (run.result.text, run.over, seen) == ("3", True, [])


async def test_a_message_that_is_refused_ends_the_stream(threads: ThreadManager) -> None:
    run = threads.say_stream("ada", {"role": "system", "content": "Hi"}, model())
    with pytest.raises(ConfigError, match="system message"):
        async for _ in run:
            pass
    assert run.over
    assert isinstance(run.error, ConfigError)


async def test_leaving_the_loop_ends_the_run(threads: ThreadManager) -> None:
    async with threads.say_stream("ada", "1 + 2?", model()) as run:
        async for _ in run:
            break
    assert run.over
    assert (await threads.say("ada", "Again?", ScriptedModel(["yes"]))).text == "yes"  # the lease was given back


async def test_a_thread_is_created_once(threads: ThreadManager) -> None:
    await threads.create_thread("t", metadata={"a": 1})
    assert await threads.create_thread("t", metadata={"a": 2}, messages="Hi", exist_ok=True) == "t"
    assert (await threads.get_thread("t")).metadata == {"a": 1}
    assert await threads.get_llm_messages("t") == []
    with pytest.raises(ThreadExists):
        await threads.create_thread("t")


async def test_a_hook_knows_the_agent(threads: ThreadManager) -> None:
    seen: list[Agent[Any, Any]] = []
    inner = Agent(ScriptedModel(["42"]), name="inner")
    call = ToolCall("c1", "ask", {"task": "6 * 7?"})
    agent = Agent(ScriptedModel([call, "42"]), [inner.as_tool("ask", "knows")], name="outer")
    threads.hooks = (lambda event, run: seen.append(run.agent) if isinstance(event, RunStarted) else None,)
    await threads.say("t", "6 * 7?", agent=agent)
    assert seen == [agent, inner]


M, A = ScriptedModel(["hi"]), Agent(ScriptedModel(["hi"]))
FIRST: list[tuple[str, str]] = [
    ("threads.run_agent('t', A, 'hello')", "to say something write say(thread_id, message, agent=agent)"),
    ("threads.run_thread('t', M)", "run_thread(…, system_prompt=…) is a model; write run_thread(…, model=model)"),
    ("threads.run_thread('t', A)", "run_thread(…, system_prompt=…) is an Agent; write run_agent(thread_id, agent)"),
    ("threads.run_thread('t', 'hi', A)", "run_thread(…, model=…) is an Agent; write run_agent(thread_id, agent)"),
    ("threads.run_thread('t', 'openai:gpt-5')", "'openai:gpt-5' is the system prompt here"),
    ("threads.run_thread(A, 't')", "run_thread(…, model=…) is missing"),
    ("threads.run_agent(A, 't')", "these are swapped; write run_agent(thread_id, agent)"),
    ("threads.run_agent('t', M)", "run_agent(agent=<agentkit.testing.scripted_model.ScriptedModel"),
    (
        "threads.run_agent('t', A, max_turns=3)",
        "run_agent has no argument 'max_turns': limit the turns with",
    ),
    ("threads.say('t', 'hi', A)", "say(…, model=…) is an Agent; pass an agent by name"),
    ("threads.say('t', A, 'hi')", "say(message=<agentkit.agent.agent.Agent"),
    (
        "threads.say('t', 'hi', system='Be brief.', model=M)",
        "say has no argument 'system'; did you mean",
    ),
    ("threads.say('t', 'hi', M, tools=[add])", "say has no argument 'tools'"),
    (
        "threads.say('t', 'hi', agent=A, max_turns=3)",
        "say has no argument 'max_turns': it belongs to the agent: Agent(…, max_turns=…)",
    ),
    ("threads.say_stream('t', 'hi')", "say_stream(…) requires either model='openai:gpt-5' or agent=Agent(…)"),
    ("threads.say('t', 'hi', 'Be brief.', M)", "say(…, system_prompt=…) is a model"),
    ("threads.say('t')", "say is missing 'message'"),
    ("threads.approve('t', 'c1', approved=True)", "approve has no argument 'approved'"),
    ("threads.deny('t', 'c1', because='no')", "deny has no argument 'because'"),
    ("threads.create_thread('t', 'hi')", "create_thread takes these positional arguments: thread_id"),
    ("threads.create_thread('t', exists_ok=True)", "did you mean 'exist_ok'?"),
    ("threads.add_message('t', 'user', 'hi')", "add_message takes these positional arguments: thread_id, message"),
    ("threads.fork_thread('t', to='u')", "fork_thread has no argument 'to'"),
    ("threads.get_llm_messages()", "get_llm_messages is missing 'thread_id'"),
    ("threads.list_threads(page=2)", "list_threads has no argument 'page'"),
    ("Agent('Be brief.', 'openai:gpt-5')", "pass instructions as a keyword: system='…'"),
    ("Agent('openai:gpt-5', 'Be brief.')", "pass instructions as system='…'"),
    ("Agent('helper', 'Be brief.', M)", "Agent takes these positional arguments: model, tools"),
    ("Agent([add], M)", "the model comes first"),
    ("Agent(M, [add], 'Be brief.')", "Agent takes these positional arguments: model, tools; found 3"),
    ("A.run_sync('hi', 'more')", "run_sync takes these positional arguments: prompt"),
    ("A.run_sync()", "run_sync is missing 'prompt'"),
]


@pytest.mark.parametrize(("written", "says"), FIRST, ids=[written for written, _ in FIRST])
async def test_what_is_written_first_says_what_to_write(threads: ThreadManager, written: str, says: str) -> None:
    async def first() -> object:
        return await eval(written, {"threads": threads, "M": M, "A": A, "Agent": Agent, "add": add})

    with pytest.raises(AgentkitError) as caught:
        await first()
    assert says in str(caught.value)
