"""`agentkit run`: one message in, on standard output nothing but the answer, and a status that a script can use."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Say, called, chunk, said
from replay_server import Recorded, ReplayServer
from warm_program import PROGRAM, run

from agentkit.agent.lifecycle import RunEnded
from agentkit.cli import main
from agentkit.events import from_json

TOOL = "def add(a: int, b: int) -> int:\n    'Add.'\n    print('adding')\n    return a + b\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "adder_of_cli_test.py").write_text(TOOL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    return tmp_path


ADD = ("--tools", "adder_of_cli_test:add")


def asked(server: ReplayServer, *words: str) -> list[str]:
    return ["run", *words, "--model", "openai:m", "--base-url", server.url]


def test_the_answer_is_all_that_is_printed(say: Say) -> None:
    """What is said before a call, the call, its result, what the tool prints: all of it is on standard error."""
    first = (chunk({"content": "Let me see."})).encode() + called("add", '{"a": 1, "b": 2}')
    with ReplayServer([first, said("It is *3*", ".\n")]) as server:
        status, out, err = say(*asked(server, "1 + 2?"), *ADD)
    assert (status, out) == (0, "It is *3*.\n")
    assert err.splitlines()[:5] == ["Let me see.", "→ add", "    a: 1", "    b: 2", "adding"]
    assert err.splitlines()[5].endswith(" ms: 3")


@pytest.mark.parametrize(
    ("words", "stdin", "sent"),
    [
        (["What", "is", "this?"], "", "What is this?"),
        (["-"], "one\ntwo\n", "one\ntwo"),
        (["Sum up:", "-"], "one\ntwo\n", "Sum up:\n\none\ntwo"),
        (["-", "What is it?"], "one\n", "one\n\nWhat is it?"),
        (["/help"], "", "/help"),
    ],
)
def test_a_message_is_words_and_standard_input(say: Say, words: list[str], stdin: str, sent: str) -> None:
    with ReplayServer([said("Yes.")]) as server:
        assert say(*asked(server, *words), stdin=stdin)[:2] == (0, "Yes.\n")
    assert [request.body["messages"] for request in server.requests] == [[{"role": "user", "content": sent}]]


def test_nothing_to_say_is_told(say: Say) -> None:
    with ReplayServer([]) as server:
        assert say(*asked(server, "-")) == (
            2,
            "",
            "agentkit run: expected a message, but standard input is empty\n",
        )


def test_an_sdk_that_is_not_installed_is_named(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "k" * 39)
    monkeypatch.setitem(sys.modules, "google.genai", None)
    status, out, err = say("run", "hi", "--model", "gemini:gemini-3.5-flash")
    assert (status, out) == (2, "")
    assert err.startswith("agentkit run: gemini:gemini-3.5-flash needs Google's SDK: pip install ")


def test_events_are_lines_of_json(say: Say) -> None:
    with ReplayServer([called("add", '{"a": 1, "b": 2}'), said("Three\u202e.")]) as server:
        status, out, _ = say(*asked(server, "1 + 2?", "--json"), *ADD)
    assert status == 0
    assert "\u202e" not in out
    lines = [json.loads(line) for line in out.splitlines()]
    call = {"id": "call_1", "name": "add", "arguments": {"a": 1, "b": 2}, "raw": '{"a": 1, "b": 2}'}
    end = from_json(lines.pop())
    assert isinstance(end, RunEnded)
    assert (end.result.finish, end.result.text, end.result.turns) == ("stop", "Three\u202e.", 2)
    finishes = [line for line in lines if line["event"] == "finish"]  # of which the first races with the tool
    assert [{k: v for k, v in line.items() if k != "seconds"} for line in lines if line not in finishes] == [
        {"event": "call_start", "index": 0, "name": "add", "id": "call_1"},
        {"event": "argument_delta", "index": 0, "text": '{"a": 1, "b": 2}', "key": None},
        {"event": "call_end", "index": 0, "call": call, "repairs": []},
        {"event": "tool_started", "index": 0, "call": call},
        {"event": "tool_completed", "index": 0, "call": call, "result": {"ok": True, "text": "3", "output": 3}},
        {"event": "text", "text": "Three\u202e."},
    ]
    assert [finish["reason"] for finish in finishes] == ["tool_calls", "stop"]


def test_a_failure_has_status_1_and_says_why(say: Say) -> None:
    refused = Recorded(b'{"error": {"message": "no such model"}}', 404)
    with ReplayServer([refused, refused, (chunk({"content": "Once upon"}) + chunk({}, "length")).encode()]) as server:
        status, out, err = say(*asked(server, "Hi"))
        assert (status, out) == (1, "")
        assert err.endswith(f"404: no such model; the request went to {server.url}/chat/completions\n")
        status, out, err = say(*asked(server, "Hi", "--json"))
        lines = [json.loads(line) for line in out.splitlines()]
        assert (status, [line["event"] for line in lines]) == (1, ["error", "run_ended"])
        assert lines[-1]["result"]["finish"] == "error"
        assert say(*asked(server, "Hi")) == (1, "Once upon\n", "(ended by length)\n")


def test_a_call_that_waits_has_status_3(say: Say) -> None:
    with ReplayServer([called("add", '{"a": 1, "b": 2}')]) as server:
        status, out, err = say(*asked(server, "1 + 2?", "--require-approval", "--thread", "t"), *ADD)
    assert (status, out) == (3, "")
    assert "agentkit threads approve t call_1, or deny" in err


def test_a_retry_is_seen(say: Say) -> None:
    busy = Recorded(b'{"error": {"message": "slow down"}}', 429, {"retry-after": "0"})
    with ReplayServer([busy, said("Here.")]) as server:
        status, out, err = say(*asked(server, "Hi"))
    assert (status, out) == (0, "Here.\n")
    host = server.url.removeprefix("http://").removesuffix("/v1")
    assert err == f"↻ {host} 429: slow down; attempt 2 of 3 in 0.0 s\n"


def test_words_that_an_option_has_taken_are_told(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--model", "openai:m", "--tools", "shop:look", "Say hi"])
    assert ended.value.code == 2
    assert capfd.readouterr().err.endswith(
        "error: the following arguments are required: MESSAGE; --tools takes all words up to the next option, also "
        "'Say hi': write the others before --tools, or after --\n"
    )


def test_words_after_two_dashes_are_the_message(say: Say) -> None:
    with ReplayServer([said("Hello.")]) as server:
        status, out, _ = say("run", "--model", "openai:m", "--base-url", server.url, *ADD, "--", "Say", "hi")
    assert (status, out) == (0, "Hello.\n")
    assert server.requests[0].body["messages"][-1]["content"] == "Say hi"


@pytest.mark.parametrize("words", [["chat"], pytest.param(["run", "Hi"], marks=pytest.mark.soak)], ids=" ".join)
def test_ctrl_c_ends_it_with_status_130(folder: Path, words: list[str]) -> None:
    """In a pipe a single one does, also where more lines would follow; what was said is printed."""
    with ReplayServer([said("Once", *[" upon"] * 2000), said("never")], pace=0.02) as server:
        program = subprocess.Popen(
            [sys.executable, "-m", "agentkit", *words, "--model", "openai:m", "--base-url", server.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            text=True,
        )
        assert program.stdin is not None
        program.stdin.write("Hi\nmore\n")
        program.stdin.close()
        program.stdin = None
        server.wait_for_pieces(5)
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=60)
    assert (program.returncode, err.splitlines()[-1]) == (130, "(stopped)")
    assert out.startswith("Once upon")
    assert len(server.requests) == 1


def test_ctrl_c_leaves_whole_lines_of_json_and_the_end(folder: Path) -> None:
    with ReplayServer([said("Once", *[" upon"] * 2000)], pace=0.02) as server:
        program = subprocess.Popen(
            [sys.executable, "-m", "agentkit", *asked(server, "Hi", "--json")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            text=True,
        )
        server.wait_for_pieces(5)
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=60)
    last = json.loads(out.splitlines()[-1])
    assert (program.returncode, err.splitlines()[-1]) == (130, "(stopped)")
    result = last["result"]
    assert (last["event"], result["finish"], result["text"][:9]) == ("run_ended", "cancelled", "Once upon")


NOISY = """
import os, sys

def noisy() -> str:
    'Noisy.'
    os.system("echo child")
    os.write(1, b"written\\n")
    sys.stderr.write("red \\x1b[2J\\n")
    return "done"
"""


@pytest.mark.share(3)
@pytest.mark.parametrize("words", [["run", "Hi"], ["run", "Hi", "--json"], ["chat"]], ids=" ".join)
def test_what_a_tools_programs_print_is_no_part_of_the_answer(folder: Path, words: list[str]) -> None:
    (folder / "noisy_of_cli_test.py").write_text(NOISY)
    with ReplayServer([called("noisy", "{}"), said("Quiet.")]) as server:
        options = ["--model", "openai:m", "--base-url", server.url, "--tools", "noisy_of_cli_test:noisy"]
        done = run([*PROGRAM, *words, *options], "Hi\n")
    assert "child" in done.stderr
    assert "written" in done.stderr
    assert "red " in done.stderr
    assert "\x1b[2J" not in done.stderr
    if "--json" in words:
        assert [json.loads(line) for line in done.stdout.splitlines()][-1]["result"]["text"] == "Quiet."
    else:
        assert done.stdout == "Quiet.\n"


@pytest.mark.share(4)
@pytest.mark.parametrize("before", [[], ["-", "--system"]], ids=["message", "system"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_an_argument_is_utf_8_or_refused(folder: Path, before: list[str], encoding: str) -> None:
    """Whatever the environment says of its encoding."""
    more = {"utf-8": {"PYTHONUTF8": "1"}, "ascii": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}}
    with ReplayServer([said("Yes.")]) as server:
        for given, status in (("日本".encode(), 0), (b"caf\xe9", 2)):
            done = subprocess.run(
                [sys.executable, "-m", "agentkit", "run", *before, given, *asked(server)[1:]],
                input=b"Hi",
                capture_output=True,
                env={**os.environ, **more[encoding]},
                timeout=60,
            )
            assert done.returncode == status, done.stderr
    assert b"not valid UTF-8 (byte 0xe9 at 3)" in done.stderr
    (request,) = server.requests
    assert "日本" in json.dumps(request.body["messages"], ensure_ascii=False)
    assert "caf" not in str(request.body)
