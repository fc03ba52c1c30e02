"""Tools in a rollout: which instance is called, what each phase is told, what a trajectory is worth."""

from __future__ import annotations

import asyncio
import math
from typing import Annotated, Any

import pytest
from rollout_kit import Lines, Sum, all_of, failures, hermes, rolled, said, sample

from agentkit import Hidden, Tool, ToolContext, ToolResult, openapi_schema
from agentkit.errors import ConfigError
from agentkit.messages import UserMessage
from agentkit.rollout import Rollout, ToolKwargs, TrajectoryRecord, as_rollout_tool
from agentkit_tools.rewards import Geo3k, Gsm8k


class Guess(Tool):
    """Every phase writes down what it was told."""

    told: dict[str, Any] = {}  # noqa: RUF012 - of all instances, for the tests

    def __init__(self, most: int = 10) -> None:
        Guess.told = {"constructor": most}

    async def create(self, secret: int) -> ToolResult:
        Guess.told["create"] = self.secret = secret
        return ToolResult(f"The number is at most {Guess.told['constructor']}.")

    @openapi_schema
    async def guess(self, n: int, context: ToolContext) -> ToolResult:
        """Guess a number."""
        Guess.told["execute"] = dict(context.state)
        hint = "right" if n == self.secret else "wrong"
        return ToolResult(hint, reward=context.state["step"] if hint == "wrong" else 0.5, metadata={"tried": n})

    def calc_reward(self, right: float) -> float:
        Guess.told["calc_reward"] = right
        return right

    async def release(self, why: str) -> None:
        Guess.told["release"] = why


ALL_FOUR = ToolKwargs({"secret": 7}, {"step": -0.25}, {"right": 2.0}, {"why": "over"})


def test_each_phase_gets_its_own_keyword_arguments() -> None:
    record = rolled([Guess], hermes("guess", n=1), hermes("guess", n=7), of=sample(tools_kwargs={"guess": ALL_FOUR}))
    assert Guess.told == {
        "constructor": 10,
        "create": 7,
        "execute": {"step": -0.25},
        "calc_reward": 2.0,
        "release": "over",
    }
    assert [(call.reward, call.metrics) for call in record.calls] == [(-0.25, {"tried": 1}), (0.5, {"tried": 7})]
    assert (record.final_rewards, record.reward) == ({"guess": 2.0}, 2.25)


def test_what_create_says_is_read_before_the_first_turn() -> None:
    record = rolled([Guess], of=sample(tools_kwargs={"guess": ALL_FOUR}))
    assert record.messages[:2] == (UserMessage("Go."), UserMessage("The number is at most 10."))


def test_what_create_says_is_never_a_call() -> None:
    class Page(Sum):
        async def create(self) -> str:
            return hermes("add", n=1)

    first = rolled([Page]).messages[1]
    assert isinstance(first, UserMessage)
    assert "<tool_call>" not in first.text
    assert '{"name": "add"' in first.text or "add" in first.text


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (ToolKwargs(), r"Guess.create cannot be called with no arguments: missing a required argument: 'secret'"),
        (ToolKwargs({"secrt": 7}), r"it takes secret; did you mean 'secret'\?"),
        (
            ToolKwargs({"secret": 7}, {"n": 3}, {"right": 1}, {"why": ""}),
            "execute_kwargs of guess: n is what the model writes",
        ),
        (ToolKwargs({"secret": 7}, {}, {"right": 1.0}), r"Guess.release cannot be called with no arguments"),
    ],
)
def test_keyword_arguments_that_do_not_fit_are_refused_before_anything_runs(kwargs: ToolKwargs, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Rollout([Guess], Lines()).check([sample(tools_kwargs={"guess": kwargs})])


def test_a_tool_without_a_place_for_execute_arguments_refuses_them() -> None:
    with pytest.raises(ConfigError, match=r"Sum.add takes no step; .* `step: Annotated\[…, Hidden\] = …`"):
        Rollout([Sum], Lines()).check([sample(tools_kwargs={"add": ToolKwargs(execute={"step": 1})})])


class WebSearch(Tool):
    """The guide's search tool, decorated: `timeout` and `max_results` are execute_kwargs there."""

    @openapi_schema
    async def web_search(
        self,
        query: str,
        timeout: Annotated[int, Hidden] = 30,
        max_results: Annotated[int, Hidden] = 5,
        context: ToolContext | None = None,
    ) -> str:
        """Search the web."""
        assert context is not None
        return f"{query}: {max_results} in {timeout} s; told {sorted(context.state)}"


def test_a_decorated_method_gets_execute_arguments_as_the_guide_has_it() -> None:
    """Each sample its own, in every call; a model neither sees nor sets them."""
    told = sample(tools_kwargs={"web_search": ToolKwargs(execute={"max_results": 2})})
    told_by_the_model = hermes("web_search", query="tea", timeout=1)
    lines = hermes("web_search", query="tea"), told_by_the_model, hermes("web_search", query="x")
    record = rolled([WebSearch], *lines, of=told)
    assert said(record)[::2] == ["tea: 2 in 30 s; told ['max_results']", "x: 2 in 30 s; told ['max_results']"]
    assert failures(record) == [None, "invalid_arguments", None]
    rollout = Rollout([WebSearch], Lines())
    assert list(rollout.tools["web_search"].spec.parameters["properties"]) == ["query"]


@openapi_schema
def shout(text: str, times: Annotated[int, Hidden] = 1) -> str:
    """Shout."""
    return text.upper() * times


def test_a_misspelt_execute_argument_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"shout takes no time; .*did you mean 'times'"):
        Rollout([shout], Lines()).check([sample(tools_kwargs={"shout": ToolKwargs(execute={"time": 2})})])


def test_hooks_that_a_class_does_not_have_take_nothing() -> None:
    with pytest.raises(ConfigError, match=r"Sum has no method 'calc_reward', so calc_reward_kwargs \['x'\] are unused"):
        Rollout([Sum], Lines()).check([sample(tools_kwargs={"add": ToolKwargs(calc_reward={"x": 1})})])


def test_without_create_the_constructor_gets_the_arguments_with_the_config() -> None:
    class Counter(Tool):
        def __init__(self, step: int, start: int) -> None:
            self.n, self.step = start, step

        @openapi_schema
        async def more(self) -> int:
            """Count."""
            self.n += self.step
            return self.n

    tool = as_rollout_tool(Counter, {"step": 2, "start": 0})
    ten = sample(tools_kwargs={"more": ToolKwargs({"start": 10})})
    assert said(rolled([tool], hermes("more"), hermes("more"), of=ten)) == ["12", "14"]
    assert said(rolled([tool], hermes("more"))) == ["2"]


def test_the_functions_of_one_class_share_their_instance_and_cannot_be_told_different_things() -> None:
    class Shelf(Tool):
        def __init__(self, first: str = "") -> None:
            self.all = [first]

        @openapi_schema
        async def put(self, what: str) -> str:
            """Put."""
            self.all.append(what)
            return "ok"

        @openapi_schema
        async def see(self) -> list[str]:
            """See."""
            return self.all

    kwargs = {"put": ToolKwargs({"first": "a"})}
    assert (
        said(rolled([Shelf], hermes("put", what="b"), hermes("see"), of=sample(tools_kwargs=kwargs)))[1] == '["a", "b"]'
    )
    with pytest.raises(
        ConfigError, match="create_kwargs of put and see are for the same instance, but differ in 'first'"
    ):
        Rollout([Shelf], Lines()).check([sample(tools_kwargs=kwargs | {"see": ToolKwargs({"first": "c"})})])


def test_an_instance_with_a_life_of_its_own_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Guess has create and calc_reward and release.*pass the class Guess itself"):
        as_rollout_tool(Guess())


def test_an_instance_without_one_is_shared() -> None:
    shared = Sum()
    records = asyncio.run(all_of(Rollout([shared], Lines(hermes("add", n=1))), [sample("a"), sample("b")]))
    assert sorted(said(record)[0] for record in records) == ["1", "2"]


def test_a_tool_called_create_is_no_hook() -> None:
    class Files(Tool):
        @openapi_schema
        async def create(self, path: str) -> str:
            """Create a file."""
            return f"created {path}"

    assert said(rolled([Files], hermes("create", path="a"))) == ["created a"]


@pytest.mark.parametrize(
    ("tool", "name", "truth"), [(Gsm8k, "calc_gsm8k_reward", "#### 72"), (Geo3k, "calc_geo3k_reward", r"\boxed{72}")]
)
def test_the_ready_made_judges_work_as_they_are(tool: type, name: str, truth: str) -> None:
    problem = sample(tools_kwargs={name: ToolKwargs({"ground_truth": truth})})
    record = rolled([tool], hermes(name, answer="70"), hermes(name, answer="72"), of=problem)
    assert [call.reward for call in record.calls] == [-0.05, 0.0]
    assert (record.final_rewards, record.reward) == ({name: 1.0}, 0.95)


def test_a_tool_that_is_not_selected_and_told_nothing_is_not_created() -> None:
    def double(n: int) -> int:
        """Double."""
        return 2 * n

    record = rolled([Gsm8k, double], hermes("double", n=2), of=sample(tool_selection=("double",)))
    assert (said(record), record.final_rewards, record.end) == (["4"], {}, "answered")


def test_classes_of_verls_shape_run_in_the_same_loop() -> None:
    class Tally:
        def __init__(self, config: dict[str, Any], tool_schema: Any) -> None:
            self.totals: dict[str, int] = {}

        def get_openai_tool_schema(self) -> dict[str, Any]:
            parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
            return {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": parameters}}

        async def create(self, instance_id: str, start: int = 0, **kwargs: Any) -> str:
            self.totals[instance_id] = start
            return instance_id

        async def execute(self, instance_id: str, parameters: dict[str, Any], times: int = 1, **kwargs: Any) -> Any:
            self.totals[instance_id] += times * parameters["n"]
            return str(self.totals[instance_id]), 0.5, {"n": parameters["n"]}

        async def calc_reward(self, instance_id: str, **kwargs: Any) -> float:
            return float(self.totals[instance_id])

        async def release(self, instance_id: str, **kwargs: Any) -> None:
            del self.totals[instance_id]

    kwargs = {"add": ToolKwargs({"start": 100}, {"times": 2})}
    record = rolled([Tally], hermes("add", n=1), hermes("add", n=2), of=sample(tools_kwargs=kwargs))
    assert said(record) == ["102", "106"]
    assert (record.final_rewards, record.reward) == ({"add": 106.0}, 107.0)


# ---------------------------------------------------------------- rewards


class Paid(Tool):
    """Gives what it is asked for."""

    @openapi_schema
    async def pay(self, much: Any) -> ToolResult:
        """Pay."""
        return ToolResult("paid", reward=float("nan") if much == "nan" else much)

    def calc_reward(self) -> Any:
        return 10


PAID = [hermes("pay", much=n) for n in (1, 2, 4)]


def second(record: TrajectoryRecord) -> float:
    return record.calls[1].reward or 0.0


@pytest.mark.parametrize(("how", "reward"), [("sum", 17.0), ("last", 10.0), (second, 2.0)])
def test_rewards_are_aggregated(how: Any, reward: float) -> None:
    record = rolled([Paid], *PAID, aggregate=how)
    assert record.reward == reward
    assert [call.reward for call in record.calls] == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("much", ["nan", "much"])
def test_a_reward_that_is_no_number_is_not_counted_and_not_hidden(much: str) -> None:
    record = rolled([Paid], hermes("pay", much=much))
    assert (record.calls[0].reward, record.reward) == (None, 10.0)
    assert "a reward is a finite number, found" in record.calls[0].metrics["refused_reward"]


def test_an_aggregate_that_fails_is_on_the_record() -> None:
    record = rolled([Paid], *PAID, aggregate=lambda record: 1 / 0)
    assert (record.reward, record.unscored) == (0.0, {"aggregate": "ZeroDivisionError: division by zero"})
    assert rolled([Paid], aggregate=lambda record: math.inf).unscored.keys() == {"aggregate"}
