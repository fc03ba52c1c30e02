"""The commands and the tool pattern of open-instruct's "tools module refactor"."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field
from rollout_kit import Lines, hermes, sample
from site_server import Page, SiteServer

from agentkit.errors import ConfigError
from agentkit.interop.open_instruct import TOOL_REGISTRY, BaseToolConfig, Tool, ToolCall, ToolOutput
from agentkit.interop.open_instruct.open_instruct_config import InstructConfig, parse_flags
from agentkit.interop.open_instruct.open_instruct_shape import InstructShaped
from agentkit.rollout import Rollout, ToolKwargs


class MyTool(Tool):
    _default_tool_function_name = "mytool"
    _default_tool_description = "Does something useful"
    _default_tool_parameters = {  # noqa: RUF012 (as the document writes it)
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "The search query"},
            "limit": {"type": "integer", "description": "Max results"},
        },
        "required": ["query"],
    }

    def __init__(self, some_option: int = 10, override_name: str | None = None) -> None:
        self._override_name = override_name
        self.some_option = some_option

    def __call__(self, query: str, limit: int = 10) -> ToolOutput:
        return ToolOutput(output=f"{query} {limit} {self.some_option}", called=True, runtime=0.1)


@dataclass
class MyToolConfig(BaseToolConfig):
    tool_class: ClassVar[type[Any]] = MyTool
    some_option: int = 10


REGISTRY = {**TOOL_REGISTRY, "mytool": MyToolConfig}


def answered(tool: Any, *lines: str, **more: Any) -> Any:
    return asyncio.run(Rollout([tool], Lines(*lines)).run(sample(**more))).calls


# ---------------------------------------------------------------- the tool pattern


def test_a_tool_of_the_pattern_is_called() -> None:
    (call,) = answered(MyTool(some_option=3), hermes("mytool", query="tea", limit=2))
    assert (call.result, call.error) == ("tea 2 3", None)
    assert call.metrics["runtime"] == 0.1


def test_arguments_that_do_not_fit_the_schema_are_answered() -> None:
    (call,) = answered(MyTool, hermes("mytool", limit=2))
    assert call.error == "invalid_arguments"
    assert "query" in call.result


def test_an_async_tool_without_a_schema_has_the_one_of_its_hints() -> None:
    class Papers(Tool):
        _default_tool_function_name = "papers"
        _default_tool_description = "Finds papers"

        async def __call__(
            self, query: Annotated[str, Field(description="what to find")], limit: int = 5
        ) -> ToolOutput:
            return ToolOutput(output=f"{query} {limit}", called=True)

    tool = Papers()
    assert tool.tool_parameters["properties"] == {
        "query": {"type": "string", "description": "what to find"},
        "limit": {"type": "integer", "default": 5},
    }
    (call,) = answered(tool, hermes("papers", query="tea"))
    assert call.result == "tea 5"


@pytest.mark.parametrize(
    ("output", "error", "result"),
    [
        (ToolOutput("done"), None, "done"),
        (ToolOutput("", error="no such host"), "tool_error", "no such host"),
        (ToolOutput("partial\nno such host", error="no such host"), "tool_error", "partial\nno such host"),
        (ToolOutput("", timeout=True, runtime=2.0), "timeout", "timed out after 2 s"),
        (ToolOutput("", called=False), "tool_error", "mytool was not called"),
        ("plain text", None, "plain text"),
    ],
)
def test_what_a_tool_returns_is_what_the_model_reads(output: Any, error: str | None, result: str) -> None:
    class Returns(MyTool):
        def __call__(self, query: str, limit: int = 10) -> Any:
            return output

    (call,) = answered(Returns, hermes("mytool", query="tea"))
    assert (call.error, call.result) == (error, result)


def test_a_sample_may_add_to_each_call_what_the_model_does_not_see() -> None:
    class Keyed(MyTool):
        def __call__(self, query: str, limit: int = 10, key: str = "") -> ToolOutput:
            return ToolOutput(output=key)

    told = {"mytool": ToolKwargs(execute={"key": "of the sample"})}
    right, invented = answered(
        Keyed, hermes("mytool", query="tea"), hermes("mytool", query="tea", key="of the model"), tools_kwargs=told
    )
    assert right.result == "of the sample"
    assert invented.error == "invalid_arguments"


def test_a_schema_that_the_method_cannot_take_is_refused() -> None:
    class Wrong(MyTool):
        def __call__(self, query: str) -> ToolOutput: ...

    with pytest.raises(ConfigError, match="__call__ does not take 'limit'"):
        InstructShaped(Wrong)


def test_a_call_has_a_name_and_arguments() -> None:
    assert dataclasses.asdict(ToolCall("mytool", {"query": "tea"})) == {"name": "mytool", "args": {"query": "tea"}}


def test_the_definition_for_the_model() -> None:
    (definition,) = MyTool(override_name="search").get_openai_tool_definitions()
    assert definition["function"]["name"] == "search"
    assert definition["function"]["parameters"] == MyTool._default_tool_parameters


# ---------------------------------------------------------------- the commands


def test_the_registry_has_the_documents_names() -> None:
    assert list(TOOL_REGISTRY) == ["python", "serper_search", "massive_ds_search", "s2_search", "mcp"]


def test_tools_with_a_json_object_each() -> None:
    given = ['{"tool_names": "snippet_search"}', '{"api_endpoint": "http://code:1212/execute"}']
    config = parse_flags(["--tools", "mcp", "python", "--tool_configs", *given])
    assert config.get_tool_config("mcp").tool_names == "snippet_search"
    assert config.get_tool_config("python").api_endpoint == "http://code:1212/execute"


def test_an_empty_object_for_the_defaults() -> None:
    config = parse_flags(["--tools", "s2_search", "serper_search", "--tool_configs", "{}", '{"num_results": 10}'])
    assert [one.config.num_results for one in config.tools] == [5, 10]


@pytest.mark.parametrize("flag", ["--tool_override_names", "--tool_call_names"])
def test_new_names(flag: str) -> None:
    (tool,) = parse_flags(["--tools", "s2_search", flag, "search"]).rollout_tools()
    assert list(tool.tools) == ["search"]
    assert tool.tools["search"].spec.element.tag == "search"


def test_new_names_for_several_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERPER_API_KEY", "k")
    config = parse_flags(["--tools", "s2_search", "serper_search", "--tool_override_names", "papers", "web"])
    assert [list(tool.tools) for tool in config.rollout_tools()] == [["papers"], ["web"]]
    assert config.get_tool_config("papers") is config.get_tool_config("s2_search")


def test_a_new_tool_in_the_registry_has_flags_of_its_own() -> None:
    (tool,) = parse_flags(["--tools", "mytool", "--mytool_some_option", "3"], REGISTRY).rollout_tools()
    (call,) = answered(tool, hermes("mytool", query="tea"))
    assert call.result == "tea 10 3"


def test_a_new_name_for_a_tool_of_the_pattern() -> None:
    (tool,) = InstructConfig(["mytool"], None, ["find"], REGISTRY).rollout_tools()
    assert list(tool.tools) == ["find"]


def test_the_python_tool_asks_the_code_server() -> None:
    with SiteServer({"/execute": Page({"output": "42\n", "error": None, "success": True})}) as server:
        config = InstructConfig(["python"], [{"api_endpoint": f"{server.url}/execute", "timeout": 3}])
        (tool,) = config.rollout_tools()
        (call,) = answered(tool, hermes("python", code="print(6 * 7)"))
    assert call.result == "42"
    assert server.visits[0].body == {"code": "print(6 * 7)", "timeout": 3}


def test_the_search_of_documents_asks_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page({"results": {"passages": [[{"text": "A hot drink."}]]}})
    with SiteServer({"/search": page}) as server:
        monkeypatch.setenv("MASSIVE_DS_API_URL", f"{server.url}/search")
        (tool,) = parse_flags(["--tools", "massive_ds_search"]).rollout_tools()
        (call,) = answered(tool, hermes("massive_ds_search", query="tea"))
    assert call.result == "1. A hot drink."


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--tools s2_serch", "--tools: there is no tool 's2_serch'; did you mean 's2_search'?"),
        ("--tools s2_search python --tool_configs {}", "--tool_configs: found 1 for --tools s2_search python"),
        ("--tools s2_search --tool_configs {", r"--tool_configs[0] (s2_search): not JSON"),
        (
            '--tools s2_search --tool_configs {"num_results":3,"num_results":9}',
            "--tool_configs[0] (s2_search): 'num_results' is given twice",
        ),
        ("--tools s2_search --tool_configs []", "--tool_configs[0] (s2_search): expected a JSON object, found []"),
        ('--tools s2_search --tool_configs {"num_result":3}', "no setting 'num_result'; did you mean 'num_results'?"),
        ('--tools s2_search --tool_configs {"num_results":"3"}', "num_results: Input should be a valid integer"),
        ('--tools s2_search --tool_configs {"num_results":0}', "(s2_search): num_results=0: expected an integer"),
        ("--tools s2_search --s2_search_num_results x", "--s2_search_num_results: Input should be a valid integer"),
        ("--tools python --s2_search_num_results 3", "--s2_search_num_results: s2_search is not among --tools python"),
        ("--tools s2_search --tool_override_names a b", "--tool_override_names: found 2 for --tools s2_search"),
        ("--tools s2_search python --tool_override_names x x", "--tools: python and s2_search have a tool with the"),
        ("--tols s2_search", "did you mean '--tools'?"),
        ("--tools massive_ds_search", "api_endpoint: expected the server's address, here or in MASSIVE_DS_API_URL"),
    ],
)
def test_what_is_wrong_names_the_flag_and_the_reason(flags: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASSIVE_DS_API_URL", raising=False)
    with pytest.raises(ConfigError) as raised:
        parse_flags(flags.split(" ")).rollout_tools()
    assert words in str(raised.value)


def test_a_flag_and_an_object_that_say_the_same_setting_are_refused() -> None:
    flags = ["--tools", "s2_search", "--tool_configs", '{"num_results": 3}', "--s2_search_num_results", "4"]
    with pytest.raises(ConfigError, match="--s2_search_num_results: --tool_configs also says num_results"):
        parse_flags(flags)
