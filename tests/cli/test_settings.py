"""Options from elsewhere: the environment and the user's file. And the errors of options in the words of a shell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import Say, roles, said
from replay_server import ReplayServer

from agentkit.cli.flag_words import in_flags
from agentkit.cli.settings import NO_MODEL

NAMES = ("MODEL", "BASE_URL", "FORMAT", "TOOLS", "STORE")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, no settings in the environment, and no file of the user."""
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        monkeypatch.delenv(f"AGENTKIT_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def toml(text: str) -> None:
    Path("config/agentkit").mkdir(parents=True)
    Path("config/agentkit/config.toml").write_text(text)


def test_model_and_server_come_from_the_environment(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    with ReplayServer([said("Hello.")]) as server:
        monkeypatch.setenv("AGENTKIT_MODEL", "openai:m")
        monkeypatch.setenv("AGENTKIT_BASE_URL", server.url)
        assert say("run", "hi")[:2] == (0, "Hello.\n")
    assert server.requests[0].body["model"] == "m"


def test_all_of_it_comes_from_the_file(say: Say) -> None:
    Path("settings_tools.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")
    with ReplayServer([said("Hello.")]) as server:
        toml(f'model = "openai:m"\nbase-url = "{server.url}"\nformat = "hermes"\ntools = ["settings_tools:add"]\n')
        assert say("run", "hi")[:2] == (0, "Hello.\n")
    (request,) = server.requests
    assert roles(request) == ["system", "user"]
    assert '"add"' in str(request.body["messages"][0])
    assert "tools" not in request.body  # they are in the prompt, as text


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ReplayServer([said("1"), said("2"), said("3")]) as server:
        toml(f'model = "openai:file"\nbase-url = "{server.url}"\nformat = "hermes"\n')
        say("run", "hi")
        monkeypatch.setenv("AGENTKIT_MODEL", "openai:environment")
        say("run", "hi")
        say("run", "hi", "-m", "openai:flag", "-f", "native")
    assert [request.body["model"] for request in server.requests] == ["file", "environment", "flag"]


def test_an_empty_value_is_none_and_hides_those_behind_it(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    toml('model = "openai:file"\nbase-url = "http://127.0.0.1:9/v1"\n')
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for words in (["--base-url", ""], []):
        monkeypatch.setenv("AGENTKIT_BASE_URL", "")
        assert "OPENAI_API_KEY" in say("run", "hi", *words)[2]  # the provider's own address, which needs a key
    monkeypatch.setenv("AGENTKIT_MODEL", "")
    assert say("run", "hi") == (2, "", f"agentkit run: {NO_MODEL}\n")


@pytest.mark.parametrize("command", [["chat"], ["run", "hi"], ["fit"]])
def test_without_a_model_the_ways_to_give_one_are_named(command: list[str], say: Say) -> None:
    assert say(*command) == (2, "", f"agentkit {command[0]}: {NO_MODEL}\n")


def test_a_model_object_has_its_own_server(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("settings_model.py").write_text("from agentkit.testing import ScriptedModel\nmine = ScriptedModel(['Hi.'])\n")
    monkeypatch.setenv("AGENTKIT_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("AGENTKIT_FORMAT", "xml")
    assert say("run", "hi", "-m", "settings_model:mine")[:2] == (0, "Hi.\n")


def test_the_store_is_only_used_with_a_thread(say: Say) -> None:
    with ReplayServer([said("1"), said("2")]) as server:
        toml(f'model = "openai:m"\nbase-url = "{server.url}"\nstore = "other.db"\n')
        assert say("run", "hi")[0] == 0
        assert not Path("other.db").exists()
        assert say("run", "hi", "--thread", "t")[0] == 0
    assert say("threads", "list")[1].splitlines()[2].startswith("t ")
    assert Path("other.db").exists()
    assert not Path("agentkit.db").exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('modle = "openai:m"', "there is no setting 'modle'; did you mean 'model'? There are model, base-url, "),
        ('base_url = "http://a/v1"', "there is no setting 'base_url'; did you mean 'base-url'?"),
        ('api-key = "sk-1"', "there is no setting 'api-key'; did you mean 'api-key-env'?"),
        ("model = 5", "model: expected a text in quotation marks, found 5"),
        ('tools = "shop:Support"', 'tools: expected a list of texts such as ["shop:Support"]'),
        ('tools = ["shop"]', "config.toml: tools: 'shop' is not a tool"),
        ("model = openai:m", "config.toml: Invalid value"),
    ],
)
def test_a_mistake_in_the_file_is_named(text: str, why: str, say: Say) -> None:
    toml(text + "\n")
    status, out, err = say("run", "hi")
    assert (status, out) == (2, "")
    assert err.startswith(f"agentkit run: {Path.cwd() / 'config/agentkit/config.toml'}: ")
    assert why in err
    assert "sk-1" not in err


def test_nothing_comes_from_the_current_folder(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder from elsewhere can neither name code or a server, nor replace a module that is imported."""
    for name in ("evil.py", "agentkit_tools.py"):
        Path(name).write_text("raise SystemExit('code of this folder')")
    Path("agentkit").mkdir()
    for file in ("agentkit.toml", "config.toml", "agentkit/config.toml"):
        Path(file).write_text('tools = ["evil:X"]\nbase-url = "http://127.0.0.1:9/v1"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", ".")
    monkeypatch.setenv("HOME", str(Path.cwd() / "none"))
    with ReplayServer([said("Hello.")]) as server:
        words = ("run", "hi", "-m", "openai:m", "--base-url", server.url, "-t", "agentkit_tools.files:Files")
        assert say(*words)[:2] == (0, "Hello.\n")
    assert str(Path.cwd()) not in sys.path


def test_without_a_variable_the_file_is_in_the_home(say: Say, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(here))
    Path(".config/agentkit").mkdir(parents=True)
    Path(".config/agentkit/config.toml").write_text("model = 5")
    assert "config.toml: model: expected a text" in say("run", "hi")[2]


def test_the_servers_of_the_file_are_in_its_folder(say: Say) -> None:
    toml('model = "openai:m"\nbase-url = "http://127.0.0.1:9/v1"\nmcp = "servers.json"\n')
    Path("servers.json").write_text("{}")
    assert str(Path.cwd() / "config/agentkit/servers.json") in say("run", "hi")[2]


def test_a_mistake_in_the_file_is_named_when_options_are_missing(say: Say) -> None:
    toml("model = 5")
    assert "config.toml: model: expected a text" in say("rollout", "--data", "d.jsonl")[2]


def test_commands_that_need_no_settings_do_not_read_them(say: Say) -> None:
    toml("wrong")
    assert say("formats", "xml")[0] == 0


# errors in the words of a shell


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("if you trust it, pass allow=['shop']", "if you trust it, pass --allow shop"),
        ("name it with model(…, server=…)", "name it with --server"),
        (
            "name one, with chat completions: model('openai:…', base_url=…, server=…)",
            "name one, with chat completions: --model openai:NAME --base-url --server",
        ),
        ("also name their format, as in format='hermes'", "also name their format, as in --format hermes"),
        ("pass it as base_url='http://a:8000/v1'", "pass it as --base-url http://a:8000/v1"),
        ("base_url ends in /chat; leave `constrained` out", "--base-url ends in /chat; leave --constrained out"),
        ("model(…, format=…, constrained=True)", "--format --constrained"),
        ("use Rollout(format=None), or a policy", "use --format native, or a policy"),
        ("(RolloutLimits(max_context_tokens=…) ends it)", "(--max-context-tokens ends it)"),
        ("write stream(samples, repeats=…)", "write --repeats"),
    ],
)
def test_keywords_are_told_as_options(python: str, shell: str) -> None:
    assert in_flags(python) == shell


@pytest.mark.parametrize(
    "message", ["http://a/v1?model=3", "parameter 'max_tokens' of shop:find(format=3)", "the model has no tools"]
)
def test_other_texts_stay(message: str) -> None:
    assert in_flags(message) == message
