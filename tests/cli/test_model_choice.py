"""The options that select a model: what is sent, an object of Python, and what does not go together."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import Say, called, said
from replay_server import ReplayServer

from agentkit.cli import main
from agentkit.cli.model_choice import is_reference

OBJECTS = """
from agentkit.testing import ScriptedModel

model = ScriptedModel(["From an object."])
NAME = "openai:gpt-5"

def small():
    return ScriptedModel(["From a function."])

def nothing():
    return None

def add(a: int, b: int) -> int:
    "Add."
    return a + b
"""
HERE = "cli_objects"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / f"{HERE}.py").write_text(OBJECTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.delitem(sys.modules, HERE, raising=False)
    return tmp_path


def run(*options: str) -> tuple[str, ...]:
    return ("run", "Hi", "--model", *options)


def test_the_settings_are_sent(say: Say) -> None:
    """And the field that asks llama.cpp to leave calls in the text."""
    with ReplayServer([said("Yes.")]) as server:
        options = ("--server", "llamacpp", "--format", "hermes", "--max-tokens", "40", "--temperature", "0")
        assert say(*run("openai:m", "--base-url", server.url, *options))[0] == 0
        (asked,) = server.requests
    assert {key: asked.body[key] for key in ("max_tokens", "temperature", "parse_tool_calls")} == {
        "max_tokens": 40,
        "temperature": 0.0,
        "parse_tool_calls": False,
    }


def test_constrained_calls_have_a_grammar(say: Say) -> None:
    options = ("--server", "llamacpp", "--format", "hermes", "--constrained", "--tools", f"{HERE}:add")
    with ReplayServer([said("Yes.")]) as server:
        assert say(*run("openai:m", "--base-url", server.url, *options))[0] == 0
        assert server.requests[0].body["grammar"].startswith("root ::= ")


def test_turns_are_limited(say: Say) -> None:
    options = ("--max-turns", "1", "--tools", f"{HERE}:add")
    with ReplayServer([called("add", '{"a": 1, "b": 2}')]) as server:
        status, _, err = say(*run("openai:m", "--base-url", server.url, *options))
    assert (status, err.splitlines()[-1]) == (1, "(ended by max_turns)")


def test_the_key_is_read_from_the_variable(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "canary-7")
    with ReplayServer([said("Yes.")]) as server:
        assert say(*run("openai:m", "--base-url", server.url, "--api-key-env", "MY_KEY"))[0] == 0
        assert server.requests[0].headers["authorization"] == "Bearer canary-7"


@pytest.mark.parametrize(
    ("name", "answer"), [(f"{HERE}:model", "From an object."), (f"{HERE}:small", "From a function.")]
)
def test_a_model_may_be_an_object(say: Say, name: str, answer: str) -> None:
    assert say(*run(name))[:2] == (0, f"{answer}\n")


def test_an_object_can_be_rolled_out(say: Say) -> None:
    Path("d.jsonl").write_text('{"prompt": [{"role": "user", "content": "Hi"}], "reward_model": {}}\n')
    status, _, err = say(
        *("rollout", "--data", "d.jsonl", "--tools", f"{HERE}:add", "--out", "r.jsonl", "--model", f"{HERE}:small")
    )
    assert (status, "From a function." in Path("r.jsonl").read_text()) == (0, True), err


def test_a_chat_changes_its_model_and_keeps_its_settings(say: Say) -> None:
    """Server and key are kept within one provider's API; an object has its own."""
    typed = f"/model openai:n\n/format hermes\nHi\n/model {HERE}:model\nHi\n/format xml\n"
    with ReplayServer([said("Other.")]) as server:
        options = ("--base-url", server.url, "--server", "llamacpp", "--temperature", "0.5")
        status, out, err = say("chat", "--model", "openai:m", *options, stdin=typed)
        body = server.requests[0].body
    assert (status, out) == (0, "Other.\nFrom an object.\n")
    assert (body["model"], body["temperature"], body["parse_tool_calls"]) == ("n", 0.5, False)
    assert "error: --model cli_objects:model is an object, which was made with its own format" in err


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("openai:gpt", False),
        ("opnai:gpt", False),
        ("ollama:qwen", False),
        ("json:dumps", True),
        ("my.models:small.fast", True),
        ("qwen2.5:7b", False),
        ("gpt-5", False),
    ],
)
def test_a_reference_is_no_model_string(name: str, reference: bool) -> None:
    assert is_reference(name) is reference


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            [f"{HERE}:model", "--format", "xml", "--base-url", "http://127.0.0.1:1/v1", "--api-key-env", "K"],
            (
                "--model cli_objects:model is an object, which was made with its own format and server: leave "
                "--format and --base-url and --api-key-env out, or write --model openai:NAME"
            ),
        ),
        (
            [f"{HERE}:modell"],
            (
                "--model 'cli_objects:modell': cli_objects has no 'modell'; did you mean 'model'? "
                "A provider's model is one of openai:NAME, responses:NAME, anthropic:NAME, gemini:NAME, bedrock:NAME"
            ),
        ),
        (
            [f"{HERE}:NAME"],
            (
                "--model cli_objects:NAME: expected a model object, such as model(…) returns, or a function "
                "without arguments that returns one; found str, which has no name, stream"
            ),
        ),
        (
            [f"{HERE}:nothing"],
            (
                "--model cli_objects:nothing: expected a model object, such as model(…) returns, or a function "
                "without arguments that returns one; found a function that returned NoneType, which has no format, "
                "name, stream"
            ),
        ),
        (
            ["no_such_module:model"],
            (
                "--model 'no_such_module:model': module 'no_such_module' cannot be imported: No module named "
                "'no_such_module'. A provider's model is one of openai:NAME, responses:NAME, anthropic:NAME, "
                "gemini:NAME, bedrock:NAME"
            ),
        ),
        (
            ["opnai:gpt-5"],
            (
                "--model 'opnai:gpt-5': expected openai:NAME, responses:NAME, anthropic:NAME, gemini:NAME, "
                "bedrock:NAME, or module:name for a "
                "model "
                "object of Python; did you mean 'openai:gpt-5'?"
            ),
        ),
        (
            ["qwen3"],
            (
                "--model 'qwen3': expected openai:NAME, responses:NAME, anthropic:NAME, gemini:NAME, "
                "bedrock:NAME, or module:name for a model "
                "object "
                "of Python; for a server that speaks OpenAI's protocol write --model openai:qwen3 --base-url https://…"
            ),
        ),
        (
            ["openai:m", "--constrained", "--format", "xml"],
            (
                "openai:m: --constrained needs a server that constrains replies by a grammar: the provider's own API "
                "does not; let the model call natively; those that do are vllm, sglang, llamacpp"
            ),
        ),
        (
            ["openai:m", "--constrained", "--server", "vllm", "--base-url", "http://127.0.0.1:1/v1"],
            (
                "openai:m: --constrained constrains calls in text by a grammar: also name their format, as in "
                "--format hermes"
            ),
        ),
        (
            [*("openai:m", "--constrained", "--format", "xml"), "--server", "ollama", "--base-url", "http://a/v1"],
            (
                "openai:m: --constrained needs a server that constrains replies by a grammar: Ollama accepts schemas "
                "for a whole reply, but no grammar; those that do are vllm, sglang, llamacpp"
            ),
        ),
        (
            ["openai:m", "--api-key-env", "NO_SUCH_KEY"],
            "--api-key-env: the environment variable NO_SUCH_KEY is not set",
        ),
        (
            ["openai:m", "--api-key-env", "OPENAI_API_KEI"],
            "--api-key-env: the environment variable OPENAI_API_KEI is not set; did you mean 'OPENAI_API_KEY'?",
        ),
        (
            ["openai:m", "--api-key-env", "sk-canary-1"],
            (
                "--api-key-env: expected the name of an environment variable, found something else; a key itself "
                "does not "
                "belong on a command line, where others can read it"
            ),
        ),
    ],
)
def test_what_does_not_go_together_is_told(say: Say, options: list[str], message: str) -> None:
    assert say(*run(*options)) == (2, "", f"agentkit run: {message}\n")


def test_a_missing_key_is_told_in_options(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert say(*run("openai:m"))[2] == (
        "agentkit run: openai:m needs an API key, but none was found: set the environment variable OPENAI_API_KEY, or "
        "name another one with --api-key-env. A compatible server without keys only needs --base-url\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--server", "lamacpp"], "argument --server: invalid choice: 'lamacpp'; did you mean 'llamacpp'? There are "),
        (["--max-tokens", "0"], "argument --max-tokens: expected an integer (1 or more), found '0'"),
        (["--max-turns", "many"], "argument --max-turns: expected an integer (1 or more), found 'many'"),
        (["--temperature", "-1"], "argument --temperature: expected a number, 0 or more, found '-1'"),
        (["--max-steps", "3"], "unrecognized arguments: --max-steps 3; did you mean '--max-turns'?"),
    ],
)
def test_a_wrong_value_is_told(capsys: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(run("openai:m", *options))
    assert (ended.value.code, message in capsys.readouterr().err) == (2, True)
