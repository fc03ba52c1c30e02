"""`agentkit fit`: the table, the recommendation, the figures as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Say
from replay_server import Recorded, ReplayServer

from agentkit.cli.fit import lines
from agentkit.fit import CallingMode, FitReport, FitRow, TaskOutcome

OBJECTS = """
from solving import ALL, FIRST, solving
from agentkit.testing import ScriptedModel

good = solving({"native": FIRST, "xml": ALL}, {"xml": 50})
bad = solving({})

def erase(path: str) -> str:
    "Erase."
    raise AssertionError("it ran")
"""
HERE = "fit_objects_of_cli_test"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / f"{HERE}.py").write_text(OBJECTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    return tmp_path


def outcomes(right: int, tried: int, **more: int) -> tuple[TaskOutcome, ...]:
    marks = [
        TaskOutcome(f"task {n}", n < right, "" if n < right else "no call f()", seconds=1.25) for n in range(tried)
    ]
    return (
        *marks[:-1],
        TaskOutcome("last", right == tried, "" if right == tried else "the answer does not say 37: 'Hm.'", **more),
    )


def test_the_table() -> None:
    report = FitReport(
        "openai:qwen",
        (
            FitRow(CallingMode("xml", constrained=True), outcomes(11, 12, input_tokens=20_000, output_tokens=900)),
            FitRow(CallingMode("hermes"), outcomes(2, 4, invented=3, unread=1), left_out=8),
            FitRow(CallingMode(), error="openai 400: no tools"),
        ),
        12,
        base_url="http://127.0.0.1:8080/v1",
        server="llamacpp",
    )
    assert (
        "\n".join(lines(report, own=2))
        == """\
mode    right     likely   invented  unread  empty  tokens  seconds
------  --------  -------  --------  ------  -----  ------  -------
xml+c   11 of 12  65-99 %         0       0      0   1,742      1.1
hermes   2 of 4   15-85 %         3       1      0       0      0.9

native cannot be used: openai 400: no tools
This is a sample of 12 tasks: a difference of one or two means little. likely:
what part of very many tasks would be right, with a probability of 95 %. Tokens
(in and out) and seconds are per task. +c: calls are constrained by a grammar.
Modes that could no longer be the best were stopped early. Your tools (2) were
not run: only their calls were judged.

What xml+c got wrong:
  last: the answer does not say 37: 'Hm.'

Best: xml+c. In Python, and at the terminal:

  model("openai:qwen", base_url="http://127.0.0.1:8080/v1", format="xml",
      server="llamacpp", constrained=True)
  agentkit chat --model openai:qwen --base-url http://127.0.0.1:8080/v1 \\
      --server llamacpp --format xml --constrained"""
    )


def test_it_tries_and_recommends(say: Say) -> None:
    status, out, _ = say("fit", "--model", f"{HERE}:good", "--modes", "native,xml", "--json", "found.json")
    assert (status, out.splitlines()[-1]) == (0, '  TextCalling(model, "xml")')
    assert [line[:24] for line in out.splitlines()[2:4]] == ["xml     12 of 12  76-100", "native   4 of 5   38-96 "]
    assert json.loads(Path("found.json").read_text())["best"] == "xml"


def test_json_alone_is_on_standard_output(say: Say) -> None:
    options = ("--modes", "native", "--tasks", "2", "--json", "-")
    status, out, err = say("fit", "--model", f"{HERE}:bad", *options)
    found = json.loads(out)
    assert (status, found["best"], found["modes"][0]["right"]) == (1, None, 0)
    assert "No mode did a task right" in err


def test_the_users_tools_are_not_run(say: Say) -> None:
    options = ("--modes", "native", "--tasks", "1", "--tools", f"{HERE}:erase", "--json", "-")
    _, out, err = say("fit", "--model", f"{HERE}:bad", *options)
    assert [one["task"] for one in json.loads(out)["modes"][0]["outcomes"]] == ["one value", "erase (yours)"]
    assert "Your tools (1) were not run" in " ".join(err.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--modes", "xlm"], "there is no mode 'xlm': expected native, a text format such as xml, or one with +c, "),
        (["--modes", "xml+c"], "mode xml+c: name a server that accepts grammars: vllm, sglang, llamacpp"),
        (["--json", "no/such/f.json"], "--json no/such/f.json: there is no folder no/such"),
        (["--api-key-env", "NO_SUCH_KEY"], "--api-key-env: the environment variable NO_SUCH_KEY is not set"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_asked(say: Say, options: list[str], message: str) -> None:
    status, out, err = say("fit", "--model", "openai:m", *options)
    assert (status, out, err.startswith(f"agentkit fit: {message}")) == (2, "", True), err


def test_a_server_without_the_model_ends_it(say: Say) -> None:
    with ReplayServer([Recorded(b'{"error": {"message": "no such model"}}', 404)]) as server:
        status, out, err = say("fit", "--model", "openai:m", "--base-url", server.url)
    assert (status, out, "404: no such model; the request went to" in err) == (1, "", True)
