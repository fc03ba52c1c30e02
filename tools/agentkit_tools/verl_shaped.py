"""The tools that verl has removed, by their old names and in its shape; each hands its calls to a ready-made tool.

YAML files of verl's that name the old ones, such as `verl.tools.geo3k_tool.Geo3kTool`, load these.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, ClassVar
from uuid import uuid4

from agentkit import ToolResult
from agentkit.errors import ConfigError
from agentkit.interop.verl import BaseTool, OpenAIFunctionToolSchema, ToolResponse, rollout_trace_op
from agentkit_tools.network.addresses import RequestFailed
from agentkit_tools.network.http_client import HttpClient
from agentkit_tools.python import Python
from agentkit_tools.rewards import Geo3k, Gsm8k, Judge
from agentkit_tools.search import RetrievalSearch, SerperSearch

Answer = tuple[ToolResponse, float, dict[str, Any]]


def verl_answer(result: ToolResult) -> Answer:
    """Convert an agentkit result to the form of verl's tools."""
    metrics = dict(result.metadata) if result.ok else {**result.metadata, "error": result.code}
    return ToolResponse(text=result.text), result.reward or 0.0, metrics


def text_argument(parameters: Mapping[str, Any], name: str) -> str:
    """A parameter that has to be text; anything else is written as Python does."""
    value = parameters.get(name, "")
    return value if isinstance(value, str) else str(value)


class _Judged(BaseTool):
    """Compares an answer with the sample's; rewards each improvement.

    Args:
        config: nothing of it is used.
        tool_schema: its declaration, with the parameter `answer`.
    """

    kind: ClassVar[type[Judge]]

    def __init__(self, config: dict[str, Any], tool_schema: OpenAIFunctionToolSchema | None = None) -> None:
        super().__init__(config, tool_schema)
        self._instance_dict: dict[str, Judge] = {}

    async def create(  # type: ignore[override]  # what it needs is found missing before the first trajectory
        self, instance_id: str | None = None, *, ground_truth: str, **kwargs: Any
    ) -> tuple[str, ToolResponse]:
        """Begin a trajectory with its right answer."""
        id = instance_id or str(uuid4())
        self._instance_dict[id] = self.kind(str(ground_truth))
        return id, ToolResponse()

    @rollout_trace_op
    async def execute(self, instance_id: str, parameters: dict[str, Any], **kwargs: Any) -> Answer:
        """Check `answer`."""
        return verl_answer(self._instance_dict[instance_id].grade(text_argument(parameters, "answer")))

    async def calc_reward(self, instance_id: str, **kwargs: Any) -> float:
        """1.0 if the last answer is right, else 0.0."""
        return self._instance_dict[instance_id].calc_reward()

    async def release(self, instance_id: str, **kwargs: Any) -> None:
        """Forget a trajectory."""
        self._instance_dict.pop(instance_id, None)


class Geo3kTool(_Judged):
    """Checks answers to problems of geometry (Geometry3K); see `agentkit_tools.rewards.Geo3k`."""

    kind = Geo3k


class Gsm8kTool(_Judged):
    """Checks answers to problems of arithmetic (GSM8K); see `agentkit_tools.rewards.Gsm8k`."""

    kind = Gsm8k


class SearchTool(BaseTool):
    """Asks a retrieval server, or without one the web; see `agentkit_tools.search`.

    Args:
        config: `retrieval_service_url`, and `topk`, `rate_limit` and `timeout`; or `api_key`, the key of serper.dev for
            Google, and `rate_limit` and `timeout`.
        tool_schema: its declaration, with the parameter `query_list` (several) or `query` (one).
    """

    def __init__(self, config: dict[str, Any], tool_schema: OpenAIFunctionToolSchema | None = None) -> None:
        super().__init__(config, tool_schema)
        url, key, engine = (config.get(name) for name in ("retrieval_service_url", "api_key", "engine"))
        given = {name: config[name] for name in ("topk", "rate_limit", "timeout") if name in config}
        self._retrieval: RetrievalSearch | None = None
        if isinstance(url, str) and url:
            self._retrieval = RetrievalSearch(url, **given)
        elif not (isinstance(key, str) and key):
            raise ConfigError(
                f"{self.name}: config.retrieval_service_url: expected a URL, found {url!r:.60}; or api_key, the key of "
                "serper.dev, to search the web"
            )
        elif engine not in (None, "google"):
            raise ConfigError(f"{self.name}: config.engine: with an api_key expected google, found {engine!r:.40}")
        else:
            google = partial(SerperSearch, api_key=key, rate=given.get("rate_limit"))
            self._web = cache(lambda most, timeout: google(num_results=most, timeout=timeout))
            self._most, self._timeout = int(given.get("topk", 5)), float(given.get("timeout", 30))
            self._web(self._most, self._timeout)  # what is wrong with them is said now

    @rollout_trace_op
    async def execute(
        self,
        instance_id: str,
        parameters: dict[str, Any],
        timeout: float | None = None,
        max_results: int | None = None,
        **kwargs: Any,
    ) -> Answer:
        """Search for each of `query_list`, or for `query`.

        Args:
            instance_id: the trajectory's.
            parameters: `query_list` or `query`.
            timeout: seconds, in place of the configuration's; for the web.
            max_results: how many results, in place of the configuration's `topk`; for the web.
            kwargs: further `execute_kwargs`, which are not used.
        """
        asked = parameters.get("query_list", parameters.get("query", []))
        queries = [str(one) for one in asked] if isinstance(asked, list) else [str(asked)]
        if self._retrieval is not None:
            return verl_answer(await self._retrieval.search(queries))
        web = self._web(max_results or self._most, timeout or self._timeout)
        results = [await web.serper_search(query) for query in queries]
        failed = [one for one in results if not one.ok]
        return verl_answer(failed[0] if failed else ToolResult("\n\n".join(one.text for one in results)))


class SandboxFusionTool(BaseTool):
    """Runs Python code: on a SandboxFusion server, or without one in agentkit's sandbox.

    Args:
        config: `sandbox_fusion_url` (with none the code runs on this machine, in a sandbox); also `default_timeout`,
            `default_language`, `memory_limit_mb` and `rate_limit`.
        tool_schema: its declaration, with the parameter `code`.
    """

    def __init__(self, config: dict[str, Any], tool_schema: OpenAIFunctionToolSchema | None = None) -> None:
        super().__init__(config, tool_schema)
        self.timeout = float(config.get("default_timeout", 30))
        self.language = str(config.get("default_language", "python"))
        self._url = str(config.get("sandbox_fusion_url") or "")
        self._memory = int(config.get("memory_limit_mb", 1024))
        if self._url:
            self._client = HttpClient(
                timeout=2 * self.timeout + 10, rate=config.get("rate_limit"), retries=0, service=self._url
            )
        elif self.language != "python":
            raise ConfigError(
                f"{self.name}: config.default_language: without a sandbox_fusion_url only python runs, found "
                f"{self.language!r:.40}"
            )
        else:
            self._python = Python(timeout=self.timeout)

    @rollout_trace_op
    async def execute(
        self,
        instance_id: str,
        parameters: dict[str, Any],
        timeout: float | None = None,
        language: str | None = None,
        **kwargs: Any,
    ) -> Answer:
        """Run `code`; its output is the answer.

        Args:
            instance_id: the trajectory's.
            parameters: `code`.
            timeout: seconds, in place of the configuration's.
            language: in place of the configuration's, for a server.
            kwargs: further `execute_kwargs`, which are not used.
        """
        code = text_argument(parameters, "code")
        if self._url:
            return verl_answer(await self._remote(code, timeout or self.timeout, language or self.language))
        return verl_answer(await self._python.python(code))

    async def _remote(self, code: str, timeout: float, language: str) -> ToolResult:
        """Source: SandboxFusion, `POST /run_code`."""
        body = {"code": code, "language": language, "run_timeout": timeout, "memory_limit_MB": self._memory}
        try:
            answer = (await self._client.request("POST", self._url, body=body)).json()
        except RequestFailed as e:
            return e.result
        ran = answer.get("run_result") if isinstance(answer, Mapping) else None
        if not isinstance(ran, Mapping):
            status = answer.get("message") or answer.get("status") if isinstance(answer, Mapping) else answer
            return ToolResult(error=f"the sandbox did not run the code: {status!r:.200}")
        text = "\n".join(str(ran[key]).rstrip("\n") for key in ("stdout", "stderr") if ran.get(key))
        if ran.get("status") == "TimeLimitExceeded":
            return ToolResult(error=f"{text}\nstopped after {timeout:g} s, its time limit".lstrip(), code="timeout")
        return ToolResult(text or "no output: nothing was printed", metadata={"return_code": ran.get("return_code")})
