"""verl's YAML: what is wrong in it, which classes it may load, MCP entries, and every form of a verl tool's answers."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from document_tools import FrameTool
from mcp_kit import SUPPORT, declared
from rollout_kit import Lines, hermes, sample

from agentkit import ConfigError, ImagePart, ToolResult
from agentkit.interop.verl import BaseTool, ToolResponse, get_tool_class, mcp_tools
from agentkit.interop.verl.verl_config import read_verl_config, verl_tools
from agentkit.interop.verl.verl_shape import VerlShaped
from agentkit.rollout import Rollout, ToolKwargs

FUNCTION = "{name: act, parameters: {type: object, properties: {}}}"
GOOD = f"tools: [{{class_name: document_tools.FrameTool, tool_schema: {{type: function, function: {FUNCTION}}}}}]"


def loaded(folder: Path, text: str, **options: Any) -> list[Any]:
    path = folder / "tools.yaml"
    path.write_text(text)
    return verl_tools(path, **options)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tools: [", "cannot be read as YAML"),
        ("tool: []", "tools: expected a list of tools, found the keys tool"),
        ("tools: [{class_nam: x}]", "tools[0]: unknown key 'class_nam'; did you mean 'class_name'?"),
        ("tools: [{config: {type: native}}]", "tools[0].class_name: expected the dotted name of a class, found None"),
        ("tools: [{class_name: x.Y, config: {type: natve}}]", "tools[0].config.type: expected one of native, mcp,"),
        ("tools: [{class_name: os.path.X}]", "os.path.X may not be loaded: loading runs the code of its module; if"),
        ("tools: [{class_name: agentkit_tools.rewards.Geo3K}]", "has no 'Geo3K'; did you mean 'Geo3k'?"),
        ("tools: [{class_name: agentkit_tools.gone.X}]", "the module agentkit_tools.gone cannot be imported"),
        ("tools: [{class_name: Geo3k}]", "'Geo3k' is not the name of a class; write package.module.Class"),
        ("tools: [{class_name: x.Y, config: {key: '${NOT_SET_ANYWHERE}'}}]", "NOT_SET_ANYWHERE"),
        ("tools: [{class_name: x.Y, mcp: {}, config: {type: native}}]", "tools[0].mcp: only for tools with"),
        ("tools: [{config: {type: mcp}}]", "tools[0].mcp: expected a mapping, found None"),
        ("tools: [{config: {type: mcp}, mcp: {mcp_servers_config_path: x}}]", "pass mcp=agentkit.interop.verl."),
        (GOOD.replace("type: function", "type: tool"), "tools[0].tool_schema.type: expected 'function', found 'tool'"),
        (GOOD.replace("name: act", "title: act"), "tools[0].tool_schema.function.name: expected a string, found None"),
        (GOOD.replace("name: act", "name: 'a b'"), "'a b' cannot be a tool's name"),
        (GOOD.replace("properties: {}", "properties: 3"), "tools[0]"),
        (GOOD.replace("type: object", "type: objekt"), "objekt"),
        ("tools: [{class_name: document_tools.FrameTool}]", "FrameTool has no schema"),
    ],
)
def test_what_is_wrong_names_the_file_the_key_and_the_reason(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, text, allow=["document_tools"])
    assert str(tmp_path / "tools.yaml") in str(raised.value)
    assert words in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read"):
        verl_tools(tmp_path / "none.yaml")


def test_two_tools_with_one_name_are_refused(tmp_path: Path) -> None:
    entry = GOOD.removeprefix("tools: [").removesuffix("]")
    with pytest.raises(ConfigError, match="two tools have the name 'act'"):
        loaded(tmp_path, f"tools: [{entry}, {entry}]", allow=["document_tools"])


def test_a_variable_may_also_be_a_key_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_OUTSIDE", "outside")
    config = "config: {a: '${inside}', b: '${FROM_OUTSIDE}', c: '${oc.env:FROM_OUTSIDE}', d: '${oc.env:NO_SUCH,e}'}"
    text = f"inside: here\n{GOOD.replace('tool_schema', f'{config}, tool_schema')}"
    (tool,) = loaded(tmp_path, text, allow=["document_tools"])
    assert tool.tool.config == {"a": "here", "b": "outside", "c": "outside", "d": "e"}


def test_a_key_of_the_environment_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "canary-7f3a")
    text = GOOD.replace("tool_schema", "config: {api_key: '${A_KEY}'}, tool_schema")
    (tool,) = loaded(tmp_path, text, allow=["document_tools"])
    assert tool.tool.config == {"api_key": "canary-7f3a"}
    shown = f"{read_verl_config(tmp_path / 'tools.yaml')} {tool} {tool.tools} {tool.instance('t').tools}"
    assert "canary" not in shown


def test_nothing_is_imported_that_is_not_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "harmful.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=r"pass allow=\['harmful'\]"):
        loaded(tmp_path, "tools: [{class_name: harmful.Tool}]", allow=["harm", "harmful.Tools", "document_tools"])
    assert "harmful" not in sys.modules


def test_a_removed_class_is_verls_own_where_verl_still_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "verl" / "tools"
    folder.mkdir(parents=True)
    (folder / "gsm8k_tool.py").write_text("class Gsm8kTool: ...")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "verl", None)
    monkeypatch.delitem(sys.modules, "verl")
    try:
        with pytest.raises(ConfigError, match=r"pass allow=\['verl.tools.gsm8k_tool'\]"):
            get_tool_class("verl.tools.gsm8k_tool.Gsm8kTool")
        assert get_tool_class("verl.tools.gsm8k_tool.Gsm8kTool", allow="verl").__module__ == "verl.tools.gsm8k_tool"
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "verl"]:
            del sys.modules[name]


def test_a_class_with_decorated_methods_gets_its_config_and_its_name(tmp_path: Path) -> None:
    text = "tools: [{class_name: agentkit_tools.rewards.Gsm8k, tool_schema: {function: {name: check}}}]"
    (tool,) = loaded(tmp_path, text)
    told = {"check": ToolKwargs(create={"ground_truth": "#### 42"})}
    record = asyncio.run(Rollout([tool], Lines(hermes("check", answer="42"))).run(sample(tools_kwargs=told)))
    assert record.final_rewards == {"check": 1.0}


# ---------------------------------------------------------------- MCP entries


def test_the_selected_tools_of_an_mcp_entry(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    (tmp_path / "tools.json").write_text(json.dumps([declared("structured"), declared("shout")]))
    raw = [str(SUPPORT / "mcp_raw.py"), str(tmp_path / "tools.json")]
    servers = {"raw": {"command": sys.executable, "args": ["-S", *raw]}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    text = """
tools:
  - class_name: verl.tools.mcp_search_tool.MCPSearchTool
    config: {rate_limit: 120, timeout: 60, type: mcp}
    mcp: {mcp_servers_config_path: mcp.json, tool_selected_list: [structured]}
"""
    (tools,) = loaded(tmp_path, text, mcp=mcp_tools)
    record = asyncio.run(Rollout([tools], Lines(hermes("structured"))).run(sample()))
    assert [(call.name, call.error) for call in record.calls] == [("structured", None)]
    assert list(Rollout([tools], Lines()).tools) == ["structured"]
    tools.close()
    with pytest.raises(
        ConfigError, match=r"tool_selected_list: there is no tool 'structure'; did you mean 'structured'"
    ):
        loaded(tmp_path, text.replace("[structured]", "[structure]"), mcp=mcp_tools)


# ---------------------------------------------------------------- the shape


def shaped(answer: Any) -> VerlShaped:
    class Answers(FrameTool):
        async def execute(self, instance_id: str, parameters: dict[str, Any], **kwargs: Any) -> Any:
            return answer

    return VerlShaped(Answers, schema={"type": "function", "function": {"name": "act"}})


@pytest.mark.parametrize(
    ("answer", "result", "reward", "metrics"),
    [
        (ToolResponse(text="hi"), "hi", None, {}),
        ("hi", "hi", None, {}),
        ({"a": "ü"}, '{"a": "ü"}', None, {}),
        (("hi",), "hi", None, {}),
        (("hi", 1), "hi", 1.0, {}),
        ((ToolResponse(text="hi"), 0.5, {"n": 1}), "hi", 0.5, {"n": 1}),
        (("hi", None, None), "hi", None, {}),
        (("hi", "much"), "hi", None, {"refused_reward": "a reward is a finite number, found str 'much'"}),
        (ToolResult("hi", reward=0.5, metadata={"n": 1}), "hi", 0.5, {"n": 1}),
        (ToolResponse(), "ok", None, {}),
        (
            ToolResponse(video=[b"..."]),
            "[1 video left out: this model reads text and images]",
            None,
            {"videos_left_out": 1},
        ),
    ],
)
def test_every_form_of_an_answer(answer: Any, result: str, reward: float | None, metrics: dict[str, Any]) -> None:
    (call,) = asyncio.run(Rollout([shaped(answer)], Lines(hermes("act"))).run(sample())).calls
    assert (call.result, call.reward, call.metrics, call.error) == (result, reward, metrics, None)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (("hi", 0.5, {}, 4), "returned a tuple of 4; expected (response, reward, metrics)"),
        (("hi", 0.5, [1]), "returned metrics that are not a dict: list [1]"),
    ],
)
def test_an_answer_of_another_form_is_an_error_of_the_call(answer: Any, words: str) -> None:
    (call,) = asyncio.run(Rollout([shaped(answer)], Lines(hermes("act"))).run(sample())).calls
    assert call.error == "tool_error"
    assert words in call.result


def test_images_of_an_answer_are_kept() -> None:
    from PIL import Image

    picture = Image.new("RGB", (8, 8))
    tool = shaped(ToolResponse(text="two", image=[picture] * 2))
    record = asyncio.run(Rollout([tool], Lines(hermes("act"))).run(sample()))
    parts = [part for message in record.messages for part in message.content if isinstance(part, ImagePart)]
    assert [part.data[:4] for part in parts if part.data] == [b"\x89PNG"] * 2


def test_what_create_says_is_read_before_the_first_turn() -> None:
    class Greets(FrameTool):
        async def create(self, instance_id: str, **kwargs: Any) -> Any:
            await super().create(instance_id)
            return instance_id, ToolResponse(text="The board is empty.")

    policy = Lines("done")
    tool = VerlShaped(Greets, schema={"type": "function", "function": {"name": "act"}})
    asyncio.run(Rollout([tool], policy).run(sample()))
    assert any("The board is empty." in message.text for message in policy.requests[0].messages)


class Nested(BaseTool):
    """As verl's own classes since 0.5: the arguments of `create` come in one."""

    async def create(self, instance_id: str | None = None, **kwargs: Any) -> Any:
        self.seen = kwargs.get("create_kwargs", {}).get("ground_truth"), kwargs.get("ground_truth")
        return instance_id, ToolResponse()

    async def execute(self, instance_id: str, parameters: dict[str, Any], **kwargs: Any) -> Any:
        return str(self.seen)


def test_a_class_that_reads_create_kwargs_nested_gets_them_in_both_ways() -> None:
    tool = VerlShaped(Nested, schema={"type": "function", "function": {"name": "act"}})
    told = {"act": ToolKwargs(create={"ground_truth": "42"})}
    (call,) = asyncio.run(Rollout([tool], Lines(hermes("act"))).run(sample(tools_kwargs=told))).calls
    assert call.result == "('42', '42')"


def test_an_argument_that_the_model_invents_is_none_of_the_samples() -> None:
    class Timed(FrameTool):
        async def execute(self, instance_id: str, parameters: dict[str, Any], timeout: int = 30, **kwargs: Any) -> Any:
            return f"{timeout} {parameters}"

    tool = VerlShaped(Timed, schema={"type": "function", "function": {"name": "act"}})
    (call,) = asyncio.run(Rollout([tool], Lines(hermes("act", timeout=9999))).run(sample())).calls
    assert call.result == "30 {'timeout': 9999}"


def test_a_plain_execute_runs_in_a_thread() -> None:
    class Plain(FrameTool):
        def execute(self, instance_id: str, parameters: dict[str, Any]) -> Any:
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()
            return "in a thread"

    tool = VerlShaped(Plain, schema={"type": "function", "function": {"name": "act"}})
    (call,) = asyncio.run(Rollout([tool], Lines(hermes("act"))).run(sample())).calls
    assert call.result == "in a thread"


def test_a_class_that_needs_verls_loop_is_refused() -> None:
    class Bound(FrameTool):
        async def execute(self, instance_id: str, parameters: dict[str, Any], agent_data: Any) -> Any: ...

    tool = VerlShaped(Bound, schema={"type": "function", "function": {"name": "act"}})
    with pytest.raises(
        ConfigError,
        match=r"act: Bound.execute reads 'agent_data', which only verl's own loop passes",
    ):
        Rollout([tool], Lines("done")).check([sample()])


def test_the_shape_is_recognised_without_any_base() -> None:
    class Shape:
        async def create(self, instance_id: str) -> None: ...
        async def execute(self, instance_id: str, parameters: dict[str, Any]) -> None: ...
        async def release(self, instance_id: str) -> None: ...

    class Command:
        def create(self) -> None: ...
        def execute(self, command: str) -> None: ...
        def release(self) -> None: ...

    assert [VerlShaped.recognises(one) for one in (Shape, Shape())] == [True, True]
    assert [VerlShaped.recognises(one) for one in (Command, Command(), 3)] == [False, False, False]
