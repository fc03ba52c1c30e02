"""The walk-throughs of verl's "complete guide to the tool system": templates, YAML, data set, sequences, practices."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from confining import confined
from document_tools import FrameTool, Geo3kTool, YourTool
from rollout_kit import Lines, hermes, sample
from site_server import Page, SiteServer, Visit

from agentkit.errors import ConfigError
from agentkit.interop.verl import BaseTool, OpenAIFunctionToolSchema, ToolResponse, get_tool_class
from agentkit.interop.verl.verl_config import verl_tools
from agentkit.interop.verl.verl_shape import VerlShaped
from agentkit.messages import ImagePart
from agentkit.rollout import Rollout, Sample, ToolKwargs
from agentkit.rollout.samples.samples import read_samples

TWO_TOOLS = r"""
tools:
  - class_name: "document_tools.Geo3kTool"
    config:
      type: native
    tool_schema:
      type: "function"
      function:
        name: "calc_geo3k_reward"
        description: "Calculate reward for geometry problems"
        parameters:
          type: "object"
          properties:
            answer:
              type: "string"
              description: "The answer in \\boxed{} format"
          required: ["answer"]

  - class_name: "document_tools.SearchTool"
    config:
      type: native
      api_key: "${SEARCH_API_KEY}"
      address: "${SEARCH_ADDRESS}"
    tool_schema:
      type: "function"
      function:
        name: "web_search"
        description: "Search the web for information"
        parameters:
          type: "object"
          properties:
            query:
              type: "string"
              description: "Search query"
          required: ["query"]
"""


def declared(name: str, *parameters: str) -> dict[str, Any]:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    parameters_schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters_schema}}


def made(cls: type, name: str, *parameters: str) -> VerlShaped:
    return VerlShaped(cls, config={"type": "native"}, schema=declared(name, *parameters))


def written(folder: Path, text: str) -> Path:
    path = folder / "tools.yaml"
    path.write_text(text)
    return path


# ---------------------------------------------------------------- the base template


def test_the_base_template_gets_all_four_kinds_of_arguments() -> None:
    tool = made(YourTool, "your_tool_name", "input")
    told = ToolKwargs(
        create={"ground_truth": "YES", "metadata": {"difficulty": "hard"}},
        execute={"timeout": 30, "verbose": True},
        calc_reward={"weight": 2.0},
    )
    seen: list[Any] = []

    class Watched(YourTool):
        async def release(self, instance_id: str, **kwargs: Any) -> None:
            seen.append((self._instance_dict[instance_id], kwargs))
            await super().release(instance_id)

    tool = made(Watched, "your_tool_name", "input")
    policy = Lines(hermes("your_tool_name", input="no"), hermes("your_tool_name", input="yes"))
    record = asyncio.run(Rollout([tool], policy).run(sample(tools_kwargs={"your_tool_name": told})))
    assert [call.result for call in record.calls] == ["Result: NO", "Result: YES"]
    assert [call.metrics for call in record.calls] == [{"metric_name": 0.0}] * 2
    assert record.reward == pytest.approx(0.1 + 0.1 + 2.0)
    ((state, release),) = seen
    assert state["metadata"] == {"difficulty": "hard"}
    assert state["history"][0] == {"input": "no", "result": "NO", "timeout": 30, "verbose": True}
    assert release == {}


def test_the_life_of_a_tool_as_the_guide_tests_it() -> None:
    async def walk() -> None:
        schema = OpenAIFunctionToolSchema.model_validate(
            {"type": "function", "function": {"name": "your_tool", "parameters": {"type": "object"}}}
        )
        tool = YourTool(config={"type": "native"}, tool_schema=schema)
        instance_id, _ = await tool.create(ground_truth="answer")
        assert instance_id is not None
        _, reward, _ = await tool.execute(instance_id, {"input": "test"})
        assert reward is not None
        assert await tool.calc_reward(instance_id) >= 0.0
        await tool.release(instance_id)
        assert instance_id not in tool._instance_dict

    asyncio.run(walk())


class Adder(BaseTool):
    """Adds up what it is given; one object for all trajectories."""

    def __init__(self, config: dict, tool_schema: Any) -> None:
        super().__init__(config, tool_schema)
        self._instance_dict: dict[str, int] = {}
        self.created = self.released = 0

    async def create(self, instance_id: str, **kwargs: Any) -> None:
        self._instance_dict[instance_id] = 0
        self.created += 1

    async def execute(self, instance_id: str, parameters: dict[str, Any], **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        self._instance_dict[instance_id] += parameters["number"]
        return str(self._instance_dict[instance_id])

    async def release(self, instance_id: str, **kwargs: Any) -> None:
        del self._instance_dict[instance_id]
        self.released += 1


def adding() -> VerlShaped:
    schema = declared("add")
    schema["function"]["parameters"] = {"type": "object", "properties": {"number": {"type": "integer"}}}
    return VerlShaped(Adder, schema=schema)


def test_eight_calls_in_one_trajectory_share_its_instance() -> None:
    tool = adding()
    record = asyncio.run(Rollout([tool], Lines(*(hermes("add", number=n) for n in range(1, 9)))).run(sample()))
    assert [call.result for call in record.calls] == ["1", "3", "6", "10", "15", "21", "28", "36"]
    assert (tool.tool.created, tool.tool.released) == (1, 1)


def test_sixty_four_trajectories_at_once_share_nothing() -> None:
    tool = adding()
    policy = Lines(*(hermes("add", number=n) for n in range(1, 9)))

    async def results() -> list[list[str]]:
        rollout = Rollout([tool], policy)
        return [[c.result for c in r.calls] async for r in rollout.stream([sample()], repeats=64)]

    assert asyncio.run(results()) == [["1", "3", "6", "10", "15", "21", "28", "36"]] * 64
    assert (tool.tool.created, tool.tool.released, tool.tool._instance_dict) == (64, 64, {})


# ---------------------------------------------------------------- YAML and data set


def test_several_tools_in_a_file_with_environment_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_API_KEY", "secret")
    monkeypatch.setenv("SEARCH_ADDRESS", "http://127.0.0.1:9")
    geo, search = verl_tools(written(tmp_path, TWO_TOOLS), allow=["document_tools"])
    assert (geo.name, search.name, search.tool.api_key) == ("calc_geo3k_reward", "web_search", "secret")
    assert "secret" not in repr(search)


PROBLEMS = [
    {"problem": "<image>Find x.", "answer": "42", "images": 1},
    {"problem": "<image>Find y.", "answer": "7", "images": 2},
]


def make_map_fn(split: str) -> Any:
    """As the guide has it."""
    instruction_following = "You must put the final answer in \\boxed{}."

    def process_fn(example: dict[str, Any], idx: int) -> dict[str, Any]:
        problem = example.pop("problem")
        answer = example.pop("answer")
        images = example.pop("images")
        prompt = problem + " " + instruction_following
        return {
            "data_source": "hiyouga/geometry3k",
            "prompt": [
                {
                    "role": "system",
                    "content": (
                        "You are a math expert. You should use the `calc_geo3k_reward` tool after solving the question."
                    ),
                },
                {"role": "user", "content": prompt},
            ],
            "images": images,
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": answer},
            "extra_info": {
                "split": split,
                "index": idx,
                "answer": answer,
                "question": problem,
                "need_tools_kwargs": True,
                "tools_kwargs": {"calc_geo3k_reward": {"create_kwargs": {"ground_truth": answer}}},
            },
        }

    return process_fn


def picture() -> Any:
    from PIL import Image

    return Image.new("RGB", (8, 8), (255, 0, 0))


def test_the_data_set_of_geo3k_is_made_and_read_back(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the package `datasets` is not installed")
    train = datasets.Dataset.from_list([{**row, "images": [picture()] * 1} for row in PROBLEMS])
    train = train.map(function=make_map_fn("train"), with_indices=True)
    train.to_parquet(str(tmp_path / "train.parquet"))
    first, second = read_samples(tmp_path / "train.parquet")
    assert first.tools_kwargs == {"calc_geo3k_reward": ToolKwargs(create={"ground_truth": "42"})}
    assert (first.id, first.ground_truth, second.ground_truth) == ("train:0", "42", "7")
    image, text = first.prompt[1].content
    assert isinstance(image, ImagePart)
    assert (image.media_type, text.text) == ("image/png", "Find x. You must put the final answer in \\boxed{}.")
    assert first.extra == {
        "data_source": "hiyouga/geometry3k",
        "ability": "math",
        "reward_model": {"style": "rule"},
        "extra_info": {"split": "train", "index": 0, "answer": "42", "question": "<image>Find x."},
    }


def test_the_preprocessing_of_your_data_set_keeps_all_four_kinds_of_arguments(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the package `datasets` is not installed")

    def process_fn(example: dict[str, Any], idx: int) -> dict[str, Any]:
        question, answer = example.pop("question"), example.pop("answer")
        return {
            "data_source": "your_dataset",
            "prompt": [
                {"role": "system", "content": "You are a helpful assistant. Use tools when necessary."},
                {"role": "user", "content": f"{question}\nPlease solve step by step."},
            ],
            "images": example.pop("images", []),
            "ability": "reasoning",
            "reward_model": {"style": "rule", "ground_truth": answer},
            "extra_info": {
                "split": "train",
                "index": idx,
                "need_tools_kwargs": True,
                "tools_kwargs": {
                    "your_tool_name": {
                        "create_kwargs": {"ground_truth": answer, "metadata": {"difficulty": "hard"}},
                        "execute_kwargs": {"timeout": 30, "verbose": True},
                        "calc_reward_kwargs": {"weight": 1.0},
                        "release_kwargs": {},
                    },
                    **({"another_tool": {"create_kwargs": {"config_param": "value"}}} if idx else {}),
                },
            },
        }

    train = datasets.Dataset.from_list([{"question": f"q{n}", "answer": f"a{n}"} for n in range(2)])
    train.map(function=process_fn, with_indices=True).to_parquet(str(tmp_path / "train.parquet"))
    first, second = read_samples(tmp_path / "train.parquet")
    assert first.tools_kwargs == {
        "your_tool_name": ToolKwargs(
            create={"ground_truth": "a0", "metadata": {"difficulty": "hard"}},
            execute={"timeout": 30, "verbose": True},
            calc_reward={"weight": 1.0},
        )
    }
    assert second.tools_kwargs["another_tool"] == ToolKwargs(create={"config_param": "value"})


def test_the_data_set_of_geo3k_runs_with_the_tool_of_the_file(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [make_map_fn("train")({**row, "images": []}, at) for at, row in enumerate(PROBLEMS)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "train.parquet")
    samples = list(read_samples(tmp_path / "train.parquet"))
    config = TWO_TOOLS.partition("\n\n")[0]
    (tool,) = verl_tools(written(tmp_path, config), allow=["document_tools.Geo3kTool"])

    async def rewards() -> dict[str, float]:
        rollout = Rollout([tool], Lines(hermes("calc_geo3k_reward", answer="42")))
        return {record.sample_id: record.reward async for record in rollout.stream(samples)}

    assert asyncio.run(rewards()) == {"train:0": 1.0, "train:1": pytest.approx(-0.05)}


# ---------------------------------------------------------------- several tools: Video-Holmes


def test_the_sequence_of_video_holmes() -> None:
    names = ("execute_frame_extraction", "execute_object_detection", "execute_frame_caption", "calc_video_reward")
    tools = [made(FrameTool, name, *(("answer",) if name == "calc_video_reward" else ())) for name in names]
    told = {
        "execute_frame_extraction": {"video_path": "/path/to/video.mp4", "num_frames": 4, "resolution": 224},
        "execute_object_detection": {"resolution": 448},
        "execute_frame_caption": {"model_name": "blip2"},
        "calc_video_reward": {"ground_truth": "the butler"},
    }
    policy = Lines(*(hermes(name) for name in names[:3]), hermes(names[3], answer="the butler"))
    kwargs = {name: ToolKwargs(create=create) for name, create in told.items()}
    record = asyncio.run(Rollout(tools, policy).run(sample(tools_kwargs=kwargs)))
    assert [call.result for call in record.calls] == [
        "frames",
        "execute_object_detection with ['resolution']",
        "execute_frame_caption with ['model_name']",
        "right",
    ]
    shown = [part for message in record.messages for part in message.content if isinstance(part, ImagePart)]
    assert len(shown) == 4
    assert record.final_rewards["calc_video_reward"] == 1.0
    assert record.reward == pytest.approx(0.1 + 0.1 + 0.1 + 0.0 + 1.0)
    for tool, name in zip(tools, names, strict=True):
        assert tool.tool.log == [f"create {sorted(told[name])}", "execute", "calc_reward", "release"]
        assert tool.tool._instance_dict == {}


# ---------------------------------------------------------------- tools that need something outside


def found(visit: Visit) -> Page:
    count = int(visit.query["num"])
    return Page([{"title": f"{visit.query['q']} {n}", "snippet": "…"} for n in range(1, count + 1)])


def test_the_search_tool_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SiteServer({"/search": found}) as server:
        monkeypatch.setenv("SEARCH_API_KEY", "k-1")
        monkeypatch.setenv("SEARCH_ADDRESS", f"{server.url}/search")
        _, tool = verl_tools(written(tmp_path, TWO_TOOLS), allow=["document_tools"])
        told = {"web_search": ToolKwargs(execute={"timeout": 30, "max_results": 2})}
        policy = Lines(hermes("web_search", query="tea"))
        record = asyncio.run(Rollout([tool], policy).run(sample(tools_kwargs=told)))
    (call,) = record.calls
    assert (call.result, call.reward) == ("Search results:\n1. tea 1: …\n2. tea 2: …", -0.01)
    assert call.metrics == {"num_results": 2, "total_calls": 1}
    assert server.visits[0].headers["authorization"] == "Bearer k-1"


RETRIEVAL = """
tools:
  - class_name: verl.tools.search_tool.SearchTool
    config:
      retrieval_service_url: {url}/retrieve
      num_workers: 120
      rate_limit: 120
      timeout: 30
      type: native
    tool_schema:
      type: function
      function:
        name: search
        description: Searches the web for relevant information based on the given query.
        parameters:
          type: object
          properties:
            query_list:
              type: array
              items:
                type: string
              description: A list of fully-formed semantic queries.
          required:
            - query_list
"""


def test_the_removed_search_tool_asks_a_retrieval_server(tmp_path: Path) -> None:
    page = Page({"result": [[{"document": {"contents": '"Tea"\nA hot drink.'}, "score": 0.9}]]})
    with SiteServer({"/retrieve": page}) as server:
        (tool,) = verl_tools(written(tmp_path, RETRIEVAL.format(url=server.url)))
        policy = Lines(hermes("search", query_list=["tea"]))
        record = asyncio.run(Rollout([tool], policy).run(sample()))
    assert record.calls[0].result == "1. Tea\n   A hot drink."
    assert server.visits[0].body["queries"] == ["tea"]


SANDBOX = """
tools:
  - class_name: "verl.tools.sandbox_fusion_tools.SandboxFusionTool"
    config:
      sandbox_fusion_url: "{url}"
      num_workers: 10
      enable_global_rate_limit: true
      rate_limit: 10
      default_timeout: 30
      default_language: "python"
      memory_limit_mb: 1024
      type: native
    tool_schema:
      type: "function"
      function:
        name: "code_interpreter"
        description: "A tool for executing code."
        parameters:
          type: "object"
          properties:
            code:
              type: "string"
              description: "The code to execute."
          required: ["code"]
"""


@confined
def test_the_removed_sandbox_tool_runs_code_here(tmp_path: Path) -> None:
    (tool,) = verl_tools(written(tmp_path, SANDBOX.format(url="")))
    record = asyncio.run(Rollout([tool], Lines(hermes("code_interpreter", code="print(6 * 7)"))).run(sample()))
    assert record.calls[0].result == "42"


def test_the_removed_sandbox_tool_asks_a_server(tmp_path: Path) -> None:
    page = Page({"status": "Success", "run_result": {"status": "Finished", "stdout": "42\n", "return_code": 0}})
    with SiteServer({"/run_code": page}) as server:
        (tool,) = verl_tools(written(tmp_path, SANDBOX.format(url=f"{server.url}/run_code")))
        record = asyncio.run(Rollout([tool], Lines(hermes("code_interpreter", code="print(6 * 7)"))).run(sample()))
    assert record.calls[0].result == "42"
    assert server.visits[0].body == {
        "code": "print(6 * 7)",
        "language": "python",
        "run_timeout": 30.0,
        "memory_limit_MB": 1024,
    }


# ---------------------------------------------------------------- best practices


def test_the_total_is_the_sum_of_the_steps_and_the_final_reward() -> None:
    steps = iter([0.1, -0.05, 0.1, 0.0])

    class Stepping(FrameTool):
        async def execute(self, instance_id: str, parameters: dict[str, Any], **kwargs: Any) -> Any:
            return ToolResponse(text="…"), next(steps), {}

        async def calc_reward(self, instance_id: str, **kwargs: Any) -> float:
            return 1.0

    record = asyncio.run(Rollout([made(Stepping, "act")], Lines(*[hermes("act")] * 4)).run(sample()))
    assert [call.reward for call in record.calls] == [0.1, -0.05, 0.1, 0.0]
    assert record.reward == pytest.approx(1.15)


def test_an_error_that_the_tool_answers_itself_has_its_reward_and_metrics() -> None:
    class Careful(FrameTool):
        async def execute(self, instance_id: str, parameters: dict[str, Any], **kwargs: Any) -> Any:
            return ToolResponse(text="Invalid parameters"), -0.1, {"error": "invalid_params"}

    record = asyncio.run(Rollout([made(Careful, "act")], Lines(hermes("act"))).run(sample()))
    (call,) = record.calls
    assert (call.result, call.reward, call.metrics) == ("Invalid parameters", -0.1, {"error": "invalid_params"})


def test_an_error_that_the_tool_does_not_catch_is_data() -> None:
    class Careless(FrameTool):
        async def execute(self, instance_id: str, parameters: dict[str, Any], **kwargs: Any) -> Any:
            raise OSError("disk full")

    tool = made(Careless, "act")
    record = asyncio.run(Rollout([tool], Lines(hermes("act"))).run(sample()))
    assert record.calls[0].error == "tool_error"
    assert "disk full" in record.calls[0].result
    assert tool.tool.log[-1] == "release"


def test_a_sample_that_the_tool_cannot_take_is_refused_before_the_first_turn() -> None:
    class Strict(FrameTool):
        async def create(self, instance_id: str, ground_truth: str) -> Any: ...

    rollout = Rollout([made(Strict, "act")], Lines("done"))
    told: dict[str, Any] = {"act": ToolKwargs(create={"truth": "42"})}
    with pytest.raises(ConfigError, match=r"create_kwargs.*ground_truth"):
        rollout.check([Sample("s", sample().prompt, tools_kwargs=told)])


def test_the_guides_geo3k_tool_and_ours_say_the_same() -> None:
    async def said(tool: Any) -> list[Any]:
        id, _ = await tool.create("one", ground_truth="42")
        answers = [await tool.execute(id, {"answer": answer}) for answer in ("41", "42", "42")]
        return [*answers, await tool.calc_reward(id)]

    schema = OpenAIFunctionToolSchema.model_validate(declared("calc_geo3k_reward", "answer"))
    ours = get_tool_class("verl.tools.geo3k_tool.Geo3kTool")
    assert asyncio.run(said(ours({}, schema))) == asyncio.run(said(Geo3kTool({}, schema)))
