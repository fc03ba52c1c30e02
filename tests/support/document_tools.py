"""The tool classes of verl's guide, with their bodies filled in; only the import lines differ from the guide's."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import httpx2

from agentkit.interop.verl import BaseTool, OpenAIFunctionToolSchema, ToolResponse, rollout_trace_op
from agentkit_tools import geo3k


class YourTool(BaseTool):
    """The base template: what it was told is kept for each instance, and changes with each call."""

    def __init__(self, config: dict, tool_schema: OpenAIFunctionToolSchema) -> None:
        super().__init__(config, tool_schema)
        self._instance_dict: dict[str, Any] = {}

    def get_openai_tool_schema(self) -> OpenAIFunctionToolSchema:
        return self.tool_schema

    async def create(
        self, instance_id: str | None = None, ground_truth: str | None = None, **kwargs: Any
    ) -> tuple[str, ToolResponse]:
        if instance_id is None:
            instance_id = str(uuid4())
        self._instance_dict[instance_id] = {"ground_truth": ground_truth, "history": [], "reward": 0.0, **kwargs}
        return instance_id, ToolResponse()

    @rollout_trace_op
    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **kwargs: Any
    ) -> tuple[ToolResponse, float, dict]:
        user_input = parameters.get("input", "")
        result = self._do_something(instance_id, user_input)
        self._instance_dict[instance_id]["history"].append({"input": user_input, "result": result, **kwargs})
        step_reward = self._calculate_step_reward(instance_id)
        return ToolResponse(text=f"Result: {result}"), step_reward, {"metric_name": 0.0}

    async def calc_reward(self, instance_id: str, **kwargs: Any) -> float:
        return kwargs.get("weight", 1.0) * self._compute_final_score(self._instance_dict[instance_id])

    async def release(self, instance_id: str, **kwargs: Any) -> None:
        if instance_id in self._instance_dict:
            del self._instance_dict[instance_id]

    def _do_something(self, instance_id: str, user_input: str) -> str:
        return user_input.upper()

    def _calculate_step_reward(self, instance_id: str) -> float:
        return 0.1

    def _compute_final_score(self, state: dict) -> float:
        return 1.0 if state["history"] and state["history"][-1]["result"] == state["ground_truth"] else 0.0


class Geo3kTool(BaseTool):
    """A tool for calculating rewards for Geometry3K problems."""

    def __init__(self, config: dict, tool_schema: OpenAIFunctionToolSchema) -> None:
        super().__init__(config, tool_schema)
        self._instance_dict: dict[str, Any] = {}

    async def create(
        self, instance_id: str | None = None, ground_truth: str | None = None, **kwargs: Any
    ) -> tuple[str, ToolResponse]:
        if instance_id is None:
            instance_id = str(uuid4())
        self._instance_dict[instance_id] = {"response": "", "ground_truth": ground_truth, "reward": 0.0}
        return instance_id, ToolResponse()

    @rollout_trace_op
    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **kwargs: Any
    ) -> tuple[ToolResponse, float, dict]:
        answer = parameters.get("answer", "")
        if not isinstance(answer, str):
            answer = str(answer)
        self._instance_dict[instance_id]["response"] = answer
        reward = await self.calc_reward(instance_id)
        tool_reward = 0.0 if reward > self._instance_dict[instance_id]["reward"] else -0.05
        self._instance_dict[instance_id]["reward"] = reward
        return ToolResponse(text=f"Current parsed {answer=} {reward=}"), tool_reward, {}

    async def calc_reward(self, instance_id: str, **kwargs: Any) -> float:
        return geo3k.compute_score(
            self._instance_dict[instance_id]["response"],
            self._instance_dict[instance_id]["ground_truth"],
            use_boxed=False,
            format_score=0.0,
        )

    async def release(self, instance_id: str, **kwargs: Any) -> None:
        if instance_id in self._instance_dict:
            del self._instance_dict[instance_id]


class SearchTool(BaseTool):
    """Searches at an address of the configuration; the guide's is `https://api.{engine}.com/search`."""

    def __init__(self, config: dict, tool_schema: OpenAIFunctionToolSchema) -> None:
        super().__init__(config, tool_schema)
        self.api_key = config.get("api_key")
        self.address = config["address"]
        self._instance_dict: dict[str, Any] = {}

    async def create(self, instance_id: str | None = None, **kwargs: Any) -> tuple[str, ToolResponse]:
        if instance_id is None:
            instance_id = str(uuid4())
        self._instance_dict[instance_id] = {"search_history": [], "total_calls": 0}
        return instance_id, ToolResponse()

    @rollout_trace_op
    async def execute(
        self, instance_id: str, parameters: dict[str, Any], timeout: int = 30, max_results: int = 5, **kwargs: Any
    ) -> tuple[ToolResponse, float, dict]:
        query = parameters.get("query", "")
        results = await self._call_search_api(query, timeout=timeout, max_results=max_results)
        self._instance_dict[instance_id]["search_history"].append({"query": query, "results": results})
        self._instance_dict[instance_id]["total_calls"] += 1
        api_cost = -0.01
        formatted_results = "\n".join([f"{i + 1}. {r['title']}: {r['snippet']}" for i, r in enumerate(results)])
        return (
            ToolResponse(text=f"Search results:\n{formatted_results}"),
            api_cost,
            {"num_results": len(results), "total_calls": self._instance_dict[instance_id]["total_calls"]},
        )

    async def _call_search_api(self, query: str, timeout: int, max_results: int) -> Any:
        async with httpx2.AsyncClient(trust_env=False) as session:
            response = await session.get(
                self.address,
                params={"q": query, "num": max_results},
                headers={"Authorization": f"Bearer {self.api_key}"},
                timeout=timeout,
            )
            return response.json()

    async def release(self, instance_id: str, **kwargs: Any) -> None:
        del self._instance_dict[instance_id]


class FrameTool(BaseTool):
    """One of the tools of the Video-Holmes sequence: `create` prepares a resource, each call uses it."""

    def __init__(self, config: dict, tool_schema: OpenAIFunctionToolSchema) -> None:
        super().__init__(config, tool_schema)
        self._instance_dict: dict[str, Any] = {}
        self.log: list[str] = []

    async def create(self, instance_id: str, **kwargs: Any) -> tuple[str, ToolResponse]:
        await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))
        self._instance_dict[instance_id] = kwargs
        self.log.append(f"create {sorted(kwargs)}")
        return instance_id, ToolResponse()

    @rollout_trace_op
    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **kwargs: Any
    ) -> tuple[ToolResponse, float, dict]:
        state = self._instance_dict[instance_id]
        self.log.append("execute")
        if "ground_truth" in state:
            state["right"] = parameters["answer"] == state["ground_truth"]
            return ToolResponse(text="right" if state["right"] else "wrong"), 0.0, {}
        if "num_frames" in state:
            return ToolResponse(text="frames", image=[_frame(n) for n in range(state["num_frames"])]), 0.1, {}
        return ToolResponse(text=f"{self.name} with {sorted(state)}"), 0.1, {}

    async def calc_reward(self, instance_id: str, **kwargs: Any) -> float:
        self.log.append("calc_reward")
        return 1.0 if self._instance_dict[instance_id].get("right") else 0.0

    async def release(self, instance_id: str, **kwargs: Any) -> None:
        self.log.append("release")
        del self._instance_dict[instance_id]


def _frame(n: int) -> Any:
    from PIL import Image

    return Image.new("RGB", (8, 8), (n, n, n))
