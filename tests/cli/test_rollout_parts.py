"""`agentkit rollout`: tools of other systems by name, an engine, a tokenizer, native calls."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Say
from replay_server import ReplayServer
from small_tokenizers import tokenizer

from agentkit.cli import main, parser
from agentkit.cli.rollout_parts import tools_of
from agentkit.errors import ConfigError
from agentkit.rollout import TrajectoryRecord, read_records

CALL = '<tool_call>{"name": "add", "arguments": {"number": 4}}</tool_call>'
ADDER = """
from agentkit import openapi_schema

class Adder:
    @openapi_schema
    def add(self, number: int) -> int:
        "Add."
        return number + 1
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "adder_tool", None)  # so that it is forgotten again
    del sys.modules["adder_tool"]
    Path("adder_tool.py").write_text(ADDER)
    Path("d.jsonl").write_text(json.dumps({"id": "s0", "prompt": [{"role": "user", "content": "Add."}]}) + "\n")
    tokenizer("chatml").save_pretrained("small")
    return tmp_path


def options(*more: str) -> list[str]:
    return ["rollout", "--data", "d.jsonl", "--tools", "adder_tool:Adder", "--out", "run.jsonl", *more]


def only() -> TrajectoryRecord:
    (record,) = read_records("run.jsonl")
    return record


def test_with_a_tokenizer_records_have_token_ids_and_a_mask(here: Path, say: Say) -> None:
    Path("two.json").write_text(json.dumps([CALL, "5"]))
    assert say(*options("--script", "two.json", "--tokenizer", "small", "--max-response-tokens", "500"))[0] == 0
    line = json.loads(Path("run.jsonl").read_text().splitlines()[-1])["tokens"]
    tokens = only().tokens
    assert tokens is not None
    assert len(line["response_ids"]) == len(tokens.response_ids) == len(tokens.response_mask)
    wrote = [id for id, mask in zip(tokens.response_ids, tokens.response_mask, strict=True) if mask]
    assert tokenizer("chatml").decode(wrote) == CALL + "5"


def completion(text: str) -> bytes:
    ids = tokenizer("chatml").encode(text + "<|im_end|>")
    told = {"token_logprobs": [-0.5] * len(ids)}
    choice = {"index": 0, "text": text, "finish_reason": "stop", "token_ids": ids, "logprobs": told}
    return json.dumps(
        {"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}
    ).encode()


def test_an_engine_is_sent_token_ids(here: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "canary-key-123")
    with ReplayServer([completion(CALL), completion("5")]) as at:
        status = say(*options("--server", at.url, "--model", "small"))[0]  # the tokenizer is that of the model
        asked = at.requests
    assert status == 0
    record = only()
    assert (record.calls[0].result, record.messages[-1].text) == ("5", "5")
    assert record.tokens is not None
    assert record.tokens.exact
    assert asked[1].body["prompt"][: len(asked[0].body["prompt"])] == asked[0].body["prompt"]
    assert asked[0].headers["authorization"] == "Bearer canary-key-123"
    assert "canary" not in Path("run.jsonl").read_text()


def chunks(delta: dict[str, Any], finish: str) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"delta": delta, "index": 0}, {"delta": {}, "index": 0, "finish_reason": finish}]
    return b"".join(f"data: {json.dumps(chunk | {'choices': [c]})}\n\n".encode() for c in choices) + b"data: [DONE]\n\n"


def test_a_model_calls_natively(here: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    call = {"index": 0, "id": "c0", "type": "function", "function": {"name": "add", "arguments": '{"number": 4}'}}
    with ReplayServer([chunks({"tool_calls": [call]}, "tool_calls"), chunks({"content": "5"}, "stop")]) as at:
        assert say(*options("--model", "openai:m", "--base-url", at.url, "--format", "native"))[0] == 0
        assert [message["role"] for message in at.requests[1].body["messages"]] == ["user", "assistant", "tool"]
    assert (only().calls[0].result, only().messages[-1].text) == ("5", "5")


def test_the_names_of_other_systems_parsers_are_formats(here: Path, say: Say) -> None:
    Path("two.json").write_text(json.dumps([CALL, "5"]))
    assert say(*options("--script", "two.json", "--format", "vllm_hermes"))[0] == 0
    assert only().calls[0].result == "5"


# ---------------------------------------------------------------- open-instruct's flags, as its document writes them


def chosen(*flags: str) -> dict[str, Any]:
    """The tools by their function names."""
    found = parser().parse_args(["rollout", *flags])
    return {name: tool for tool in tools_of(found) if not isinstance(tool, str) for name in tool.tools}


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ('--tools s2_search serper_search --tool_configs {} {"num_results":10}', ["s2_search", "serper_search"]),
        ("--tools s2_search --tool_override_names search", ["search"]),
        ("--tools s2_search serper_search --tool_override_names papers web", ["papers", "web"]),
        ("--tools s2_search --tool_call_names search --s2_search_num_results 3", ["search"]),
        ("--tools adder_tool:Adder s2_search --tool_override_names search", ["search"]),
    ],
)
def test_open_instructs_flags(here: Path, flags: str, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERPER_API_KEY", "k")
    assert list(chosen(*flags.split())) == names


OWN = """
from dataclasses import dataclass
from typing import ClassVar

from agentkit.interop.open_instruct import TOOL_REGISTRY as READY
from agentkit.interop.open_instruct import BaseToolConfig, Tool, ToolOutput

class MyTool(Tool):
    _default_tool_function_name = "mytool"
    _default_tool_description = "Does something useful"
    _default_tool_parameters = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}

    def __init__(self, some_option: int = 10, override_name: str | None = None) -> None:
        self._override_name, self.some_option = override_name, some_option

    def __call__(self, query: str) -> ToolOutput:
        return ToolOutput(f"{query} {self.some_option}", called=True, error="", timeout=False, runtime=0.0)

@dataclass
class MyToolConfig(BaseToolConfig):
    tool_class: ClassVar[type[Tool]] = MyTool
    some_option: int = 10

@dataclass
class Lacking(BaseToolConfig):
    tool_class: ClassVar[type[Tool]] = MyTool
    needed: int

TOOL_REGISTRY = {**READY, "mytool": MyToolConfig, "lacking": Lacking}
FEW = {"mytool": MyToolConfig}
"""


@pytest.fixture
def own(here: Path) -> None:
    Path("own_instruct.py").write_text(OWN)
    sys.modules.pop("own_instruct", None)


@pytest.mark.parametrize(
    ("flags", "names", "option"),
    [
        ("--tools own_instruct:FEW", ["mytool"], 10),
        ("--tools own_instruct:FEW --mytool_some_option 3", ["mytool"], 3),
        ('--tools own_instruct mytool --tool_configs {"some_option":4}', ["mytool"], 4),
        (
            "--tools own_instruct:TOOL_REGISTRY s2_search mytool --tool_override_names papers mine",
            ["papers", "mine"],
            10,
        ),
        ("--tools own_instruct:MyToolConfig --MyToolConfig_some_option 5", ["mytool"], 5),
        ("--tools own_instruct:MyTool", ["mytool"], 10),
        ("--tools adder_tool own_instruct:FEW", ["add", "mytool"], 10),
    ],
)
def test_a_registry_a_config_class_and_a_module_of_ones_own(
    own: None, flags: str, names: list[str], option: int
) -> None:
    from agentkit.rollout import Rollout, ScriptedPolicy

    tools = tools_of(parser().parse_args(["rollout", *flags.split()]))
    rollout = Rollout(tools, ScriptedPolicy([]))
    assert list(rollout.tools) == names
    made = next(tool for tool in rollout._setup.sources if "add" not in tool.tools and "papers" not in tool.tools)
    assert made.tool.some_option == option  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--tools own_instruct lacking", "needed is missing and has no default"),
        ("--tools serper_search", "expected the key of serper.dev in SERPER_API_KEY, found none"),
        ("--tools massive_ds_search", "expected the server's address"),
        ("--tools json", "--tools json: the module has no tools"),
        ("--tools own_instruct:FEW --mytool_some_option x", "--mytool_some_option: .*found 'x'"),
    ],
)
def test_what_a_tool_lacks_is_said_before_the_first_trajectory(
    own: None, flags: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SERPER_API_KEY", "MASSIVE_DS_API_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match=message):
        chosen(*flags.split())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            "--tools s2_serch",
            "--tools s2_serch: expected module:Class, a module, a YAML .*'s2_search'",
        ),
        ("--tools s2_search --tool_configs {} {}", "--tool_configs: found 2 for --tools s2_search; write 1 JSON"),
        ("--tools s2_search --python_timeout 3", "--python_timeout: python is not among --tools s2_search"),
        ("--tools s2_search --s2_search_num_results x", "--s2_search_num_results: .*found 'x'"),
    ],
)
def test_flags_that_are_wrong(flags: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        chosen(*flags.split())


def test_a_flag_that_no_tool_has_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["rollout", "--tools", "s2_search", "--s2_search_num_result=3", "--out", "r.jsonl"])
    assert "did you mean '--s2_search_num_results'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ("--server", "http://127.0.0.1:1/v1", "--model", "m", "--base-url", "x", "--tokenizer", "small"),
            "name one of",
        ),
        (("--model", "m", "--server", "http://127.0.0.1:1/v1"), "--tokenizer m: transformers cannot load it"),
        (("--script", "two.json", "--max-response-tokens", "5"), "give the rollout a tokenizer"),
    ],
)
def test_what_does_not_go_together(here: Path, say: Say, more: tuple[str, ...], message: str) -> None:
    Path("two.json").write_text("[]")
    status, _, err = say(*options(*more))
    assert (status, message in err) == (2, True)
