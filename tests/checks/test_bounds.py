"""Wrong settings of agents, budgets, runs and threads: each is refused with what was found and what was wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agentkit import Agent, Budget, Price, ProcessorConfig, ThreadManager, ToolRegistry, openapi_schema
from agentkit.errors import ConfigError, SchemaError
from agentkit.fit import fit
from agentkit.messages import user
from agentkit.rollout import (
    ModelPolicy,
    Rollout,
    RolloutLimits,
    ScriptedPolicy,
    ServerPolicy,
    ToolKwargs,
    as_rollout_tool,
)
from agentkit.testing import Replay, ScriptedModel
from agentkit.threads import Compaction, SQLiteStore

MODEL = ScriptedModel(["Hello."])
NOT_A_NUMBER = float("nan")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_calls": "3"}, "ProcessorConfig(max_calls='3'): expected an integer (1 or more), or None for no limit"),
        ({"max_calls": True}, "max_calls=True): expected an integer (1 or more)"),
        ({"timeout": NOT_A_NUMBER}, "timeout=nan): expected seconds above 0"),
        ({"max_output": None}, "max_output=None): expected an integer (200 characters or more)"),
        ({"native": "no"}, "native='no'): expected True or False"),
        ({"formats": 5}, "formats=5): expected a format, its name, or a list of them"),
        ({"keep": ["head"]}, "keep=['head']): expected one of head, tail, both"),
    ],
)
def test_of_a_processor(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ProcessorConfig(**given)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tokens": "5"}, "Budget(tokens='5'): expected an integer (1 or more), or None for no limit"),
        ({"tool_calls": 1.5}, "tool_calls=1.5): expected an integer (1 or more)"),
        ({"seconds": NOT_A_NUMBER}, "seconds=nan): expected seconds above 0"),
        ({"cost": 1, "prices": {"gpt": 3}}, "expected prices by model"),
        ({"cost": 1, "prices": {"gpt": Price(-1, 2)}}, "expected prices by model"),
    ],
)
def test_of_a_budget(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Budget(**given)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"window": "large"}, "Compaction(window='large'): expected an integer (1,000 or more)"),
        ({"keep_turns": 1.5}, "keep_turns=1.5): expected an integer (0 or more)"),
        ({"summary_model": 5}, "summary_model=5): expected a model or a model string"),
    ],
)
def test_of_a_compaction(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Compaction(**given)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": None}, "Agent(model=None): expected a model, or a model string such as 'openai:gpt-5'"),
        ({"model": ScriptedModel}, "expected a model, or a model string"),
        ({"hooks": print}, "expected a list of functions, such as hooks=[print]"),
        ({"hooks": [5]}, "hooks=[5]): expected a list of functions"),
        ({"config": {}}, "config={}): expected a ProcessorConfig, such as ProcessorConfig(formats='xml'), or None"),
        ({"budget": 5}, "budget=5): expected a Budget, such as Budget(tokens=100_000), or None"),
        ({"max_turns": "3"}, "max_turns='3'): expected an integer (1 or more)"),
        ({"max_repeats": 1}, "max_repeats=1): expected an integer (2 or more), or None for no limit"),
        (
            {"system": 5},
            "system=5): expected a string, or a function of the run's context: `def system(context): …`, or None",
        ),
        ({"system": lambda: "Be brief."}, "expected a string, or a function of the run's context"),
        ({"temperature": "hot"}, "temperature='hot'): expected a number"),
        ({"stop": "END"}, "stop='END'): expected a sequence of strings, such as ('END',)"),
    ],
)
def test_of_an_agent(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Agent(**{"model": MODEL, **given})
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cancel": True}, "run(cancel=True): expected an asyncio.Event, or None"),
        ({"decisions": {"c1": True}}, "expected Approved(…) or Denied(…) by call id"),
        ({"decisions": 5}, "expected Approved(…) or Denied(…) by call id"),
    ],
)
def test_of_a_run(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Agent(MODEL).stream("Hi", **given)
    assert message in str(raised.value)


@pytest.mark.parametrize("prompt", [5, None, b"Hi", [5]])
def test_of_a_prompt(prompt: Any) -> None:
    with pytest.raises(ConfigError, match=r"a prompt consists of strings, parts, messages or .*; found \w+ "):
        Agent(MODEL).stream(prompt)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"store": 42}, "ThreadManager(store=42): expected a store, the path of a SQLite file, or 'postgresql://…'"),
        ({"store": SQLiteStore}, "expected a store"),
        ({"registry": [print]}, "expected a ToolRegistry"),
        ({"hooks": print}, "expected a list of functions"),
        ({"compaction": {"window": 9_000}}, "expected a Compaction, or None"),
    ],
)
def test_of_threads(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ThreadManager(**{"store": ":memory:", **given})
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": None}, "run_thread(…, model=…) is missing"),
        ({"model": ""}, "run_thread(…, model=…) is missing"),
        ({"thread_id": None}, "run_thread(thread_id=None): expected a string"),
        ({"system_prompt": MODEL}, "run_thread(…, system_prompt=…) is a model; write run_thread(…, model=model)"),
        ({"temporary_message": [user("a"), user("b")]}, "expected one message, found 2"),
        ({"compaction": 5}, "compaction=5): expected a Compaction, or None"),
    ],
)
def test_of_a_run_on_a_thread(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ThreadManager(":memory:").run_thread(**{"thread_id": "t", "model": MODEL, **given})
    assert message in str(raised.value)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_of_what_is_written_to_a_thread() -> None:
    threads = ThreadManager(":memory:", ToolRegistry())
    await threads.create_thread("t", messages="Hi")
    with pytest.raises(ConfigError, match="found int 5"):
        await threads.add_message("t", 5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="expected one message, found 0"):
        await threads.add_message("t", [])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"add_message\(thread_id=5\): expected a string"):
        await threads.add_message(5, "Hi")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"create_thread\(metadata=5\): expected a mapping"):
        await threads.create_thread(metadata=5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="expected a string that is not empty"):
        await threads.create_thread("")
    with pytest.raises(ConfigError, match=r"fork_thread\(until=9\): thread 't' has 1 entries, from 0"):
        await threads.fork_thread("t", until=9)
    with pytest.raises(ConfigError, match=r"list_threads\(limit=-1\): expected an integer \(0 or more\)"):
        await threads.list_threads(limit=-1)
    assert [thread.id for thread in await threads.list_threads()] == ["t"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"path": 5}, r"SQLiteStore\(path=5\): expected the path of a file"),
        ({"durability": "some"}, "expected one of power, process"),
        ({"busy_timeout": "long"}, "expected seconds, 0 or more"),
    ],
)
def test_of_a_store(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SQLiteStore(**{"path": ":memory:", **given})


def test_of_a_tool_whose_output_has_a_broken_bound() -> None:
    @openapi_schema(max_output=1000.5)
    def read() -> str:
        """Read."""
        return ""

    with pytest.raises(SchemaError, match=r"expected an integer \(200 characters or more\), or None"):
        ToolRegistry(read)


class PassingOn:
    """A user's own wrapper: it has what it wraps, by `__getattr__`."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_stores_and_models_may_be_wrapped_by_getattr() -> None:
    model = PassingOn(ScriptedModel(["Hello."]))

    async def run() -> str:
        manager = ThreadManager(PassingOn(SQLiteStore(":memory:")), compaction=Compaction(summary_model=model))
        thread = await manager.create_thread()
        await manager.add_message(thread, user("hi"))
        result = await manager.run_thread(thread, "Be brief.", model).complete()
        await manager.aclose()
        return result.text

    assert asyncio.run(run()) == "Hello."


@pytest.mark.parametrize("wrong", [5, SQLiteStore, PassingOn(MODEL)])
def test_what_lacks_methods_of_a_store_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="expected a store, the path"):
        ThreadManager(store=wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Rollout([], ScriptedPolicy([]), tokenizer="Qwen/Qwen3-8B"), "expected a tokenizer: AutoTokenizer."),
        (lambda: RolloutLimits(max_turns=3), "no argument 'max_turns'; did you mean 'max_assistant_turns'?"),  # type: ignore[call-arg]
        (lambda: ModelPolicy("gpt-5"), "a model string is one of openai:, "),
        (lambda: ToolKwargs(secret=4), "ToolKwargs has no argument 'secret'; it takes create, "),  # type: ignore[call-arg]
        (lambda: ServerPolicy("m"), "ServerPolicy is missing 'base_url'; for example: "),  # type: ignore[call-arg]
        (lambda: as_rollout_tool(print, [3]), "as_rollout_tool(config=[3]): expected the constructor's arguments"),  # type: ignore[arg-type]
        (lambda: Replay("nope.json"), "Replay('nope.json'): expected a list of recordings"),
        (lambda: asyncio.run(fit(MODEL, modes="native")), "fit(modes='native'): expected a list of modes"),
        (lambda: asyncio.run(fit(MODEL, mode=["native"])), "fit has no argument 'mode'; did you mean 'modes'?"),  # type: ignore[call-arg]
    ],
)
def test_of_other_doors(wrong: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        wrong()
    assert message in str(raised.value)
