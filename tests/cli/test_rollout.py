"""`agentkit rollout` as its user meets it: one command from a data set to a report, killed and continued."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from command_line import Say
from mcp_kit import SUPPORT, declared
from rollout_records import record
from terminal import Terminal
from warm_program import PROGRAM, Started, begin

from agentkit.cli.rollouts import _without_settings
from agentkit.rollout import RecordFile, read_records, read_runs

TOOLS = '''
import asyncio, os
from agentkit import ToolResult, openapi_schema

class Adder:
    """Adds up."""

    def __init__(self):
        self.total = 0
        self.log("created")

    @openapi_schema
    async def add(self, number: int) -> ToolResult:
        """Add a number to the total.

        Args:
            number: the number.
        """
        self.total += number
        return ToolResult(output=self.total, reward=0.5)

    def calc_reward(self) -> float:
        return float(self.total)

    async def release(self):
        self.log("released")

    def log(self, what):
        if path := os.environ.get("ADDER_LOG"):
            with open(path, "a") as file:
                file.write(what + "\\n")

CALL = '<tool_call>{"name": "add", "arguments": {"number": %d}}</tool_call>'

async def slow(request):
    """Three turns, of 20 ms each."""
    await asyncio.sleep(0.02)
    return CALL % request.turn if request.turn < 2 else "done"

async def hangs(request):
    await asyncio.sleep(600)

def fails(request):
    raise OSError("the engine is gone")
'''
CALL = '<tool_call>{"name": "add", "arguments": {"number": %d}}</tool_call>'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a data set of 12 samples, tools and a script of eight turns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "adder", raising=False)
    Path("adder.py").write_text(TOOLS)
    rows = [{"id": f"s{n}", "prompt": [{"role": "user", "content": "Add."}]} for n in range(12)]
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("eight.json").write_text(json.dumps([*(CALL % n for n in range(1, 9)), "36"]))
    return tmp_path


def options(script: str = "eight.json", *more: str) -> list[str]:
    return ["rollout", "--data", "d.jsonl", "--tools", "adder:Adder", "--script", script, "--out", "run.jsonl", *more]


def ids() -> list[str]:
    return [one.id for one in read_records("run.jsonl")]


REPORT = "report: agentkit rollout report run.jsonl\n"
ALL = {f"s{n}#0" for n in range(12)}


def test_a_data_set_becomes_a_file_of_records_and_a_summary(here: Path, say: Say) -> None:
    status, out, err = say(*options())
    assert (status, err) == (0, REPORT)
    assert out.splitlines()[:2] == ["12 trajectories: answered 12", "reward: mean 40, min 40, p50 40, max 40"]
    assert [line.split() for line in out.splitlines()[3:8]] == [
        *(["tool", "add"], ["-----------", "-------"]),
        *(["calls", "96"], ["call", "rate", "100.0", "%"], ["per", "sample", "8.00"]),
    ]
    assert {(one.id, one.calls[7].result) for one in read_records("run.jsonl")} == {(id, "36") for id in ALL}


def test_only_the_first_samples_and_each_several_times(here: Path, say: Say) -> None:
    assert say(*options("eight.json", "--limit", "2", "--repeats", "3"))[0] == 0
    assert sorted(ids()) == ["s0#0", "s0#1", "s0#2", "s1#0", "s1#1", "s1#2"]


def test_the_same_command_runs_nothing_twice(here: Path, say: Say) -> None:
    say(*options("eight.json", "--limit", "5"))
    first = Path("run.jsonl").read_bytes()
    status, out, err = say(*options())
    assert (status, err) == (0, f"run.jsonl: 5 trajectories are there, and are not run again\n{REPORT}")
    assert out.startswith("12 trajectories: answered 12\n")
    assert Path("run.jsonl").read_bytes().startswith(first)
    assert sorted(ids()) == sorted(ALL)


def test_errors_are_records_and_can_be_run_again(here: Path, say: Say) -> None:
    status, out, err = say(*options("adder:fails"))
    assert status == 1
    assert err.startswith("12 of 12 trajectories ended by an error; --again runs them once more\nthe last error: ")
    assert out.startswith("12 trajectories: policy_error 12\n")
    status, out, err = say(*options("eight.json", "--again"))
    assert (status, err) == (0, f"12 trajectories that ended by an error are run again\n{REPORT}")
    assert sorted(ids()) == sorted(ALL)


def test_it_gives_up_when_the_model_only_fails(here: Path, say: Say) -> None:
    status, _, err = say(*options("adder:fails", "--repeats", "100", "--concurrency", "4"))
    assert status == 1
    assert "stopped after 50 errors of the model one after another: OSError: the engine is gone" in err
    assert len(ids()) == 50


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["--data", "none.jsonl"], "none.jsonl: there is no such file"),
        (["--tools", "adder:Subtractor"], "'adder:Subtractor': adder has no 'Subtractor'"),
        (["--out", "d.jsonl"], "d.jsonl, line 1: not a record of a trajectory"),
        (["--script", "none.json"], "--script none.json: "),
        (["--script", "d.jsonl"], "'d.jsonl' is not a tool reference"),
        (["--sampling", '{"temperature": 0, "temperature": 1}'], "--sampling: 'temperature' is given twice"),
        (["--sampling", "[1]"], "--sampling: expected a JSON object"),
        (["--format", "hermess"], "hermes"),
        (["--max-tokens", "0"], "--max-tokens"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(here: Path, say: Say, wrong: list[str], why: str) -> None:
    data = Path("d.jsonl").read_bytes()
    status, out, err = say(*options(), *wrong)
    assert (status, out) == (1 if "not a record" in why else 2, "")
    assert why in err
    assert Path("d.jsonl").read_bytes() == data
    assert not Path("run.jsonl").exists()


def test_names_in_the_data_are_checked_before_anything_runs(here: Path, say: Say) -> None:
    row = {"id": "last", "prompt": [{"role": "user", "content": "Add."}], "extra_info": {"tool_selection": ["ad"]}}
    with Path("d.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    status, _, err = say(*options())
    assert status == 2
    assert "'ad'" in err
    assert not Path("run.jsonl").exists()


def test_the_command_of_an_mcp_entry_is_approved_once_at_a_terminal(here: Path, say: Say) -> None:
    pytest.importorskip("mcp")
    Path("tools.json").write_text(json.dumps([declared("look")]))
    server = {"command": sys.executable, "args": ["-S", str(SUPPORT / "mcp_raw.py"), "tools.json"]}
    Path("servers.json").write_text(json.dumps({"mcpServers": {"desk": server}}))
    mcp = {"config": {"type": "mcp"}, "mcp": {"mcp_servers_config_path": "servers.json"}}
    Path("verl.yaml").write_text(json.dumps({"tools": [mcp]}))  # JSON is YAML
    Path("look.json").write_text(json.dumps(['<tool_call>{"name": "look", "arguments": {}}</tool_call>', "seen"]))
    words = [*options("look.json"), "--tools", "verl.yaml", "--limit", "1"]
    status, _, err = say(*words, stdin="")
    assert (status, "mcp_raw.py tools.json' was never approved, and nobody can be asked here" in err) == (2, True), err
    with Terminal([*PROGRAM, *words], columns=400) as terminal:
        terminal.wait_for("start it? (y/n) ")
        terminal.type("y\n")
        terminal.wait_for("1 trajectory: answered 1")
        assert terminal.status() == 0
    assert [call.error for one in read_records("run.jsonl") for call in one.calls] == [None]


def test_what_is_missing_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from agentkit.cli import main

    with pytest.raises(SystemExit) as end:
        main(["rollout", "--data", "d.jsonl"])
    assert end.value.code == 2
    assert "are required: --tools, --out, either --model or --script" in capsys.readouterr().err


def test_tracebacks_of_tools_go_to_a_file_and_one_line_to_the_screen(here: Path, say: Say) -> None:
    bad = '<tool_call>{"name": "split", "arguments": {"text": "abc"}}</tool_call>'
    Path("split.json").write_text(json.dumps([bad, "no"]))
    Path("splitter.py").write_text("def split(text: str) -> str:\n    return text.split(text[9])[0]\n")
    _, out, err = say(*options("split.json"), "--tools", "splitter:split")
    (line,) = (line for line in err.splitlines() if "IndexError" in line)
    assert line.endswith("the error was sent to the model (traceback in run.jsonl.log)")
    assert "Traceback" not in err
    assert Path("run.jsonl.log").read_text().count("Traceback (most recent call last)") == 1
    assert ["failed", "12", "(100", "%)"] in [line.split() for line in out.splitlines()]


@pytest.mark.parametrize("writable", [True, False])
def test_the_file_of_tracebacks_is_never_the_records(writable: bool, here: Path, say: Say) -> None:
    Path("adder.py").write_text("def add(number: int) -> int:\n    return number // 0\n")
    if not writable:
        Path("run.log.log").mkdir()
    err = say(*options(), "--tools", "adder:add", "--limit", "1", "--out", "run.log")[2]
    assert len([*read_records("run.log")]) == 1
    assert err.count("Traceback") == (not writable)


def test_modules_of_the_folder_are_found_by_what_names_them(here: Path) -> None:
    """Python started as the program is: the folder is not on its path."""
    Path("lines.py").write_text("script = ['done']")
    program = [sys.executable, "-P", "-c", "from agentkit.cli import main; raise SystemExit(main())"]
    for tools, script in (("adder", "eight.json"), ("agentkit_tools.files:Files", "lines:script")):
        words = [*options(script, "--limit", "1", "--out", f"{script}.jsonl", "--tools", tools)]
        ran = subprocess.run([*program, *words], capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 0, ran.stderr


def test_the_run_is_described_without_what_may_be_a_key(here: Path, say: Say) -> None:
    words = ["--limit", "2", "--sampling", '{"temperature": 0.5}', "--serper_search_num_results", "7"]
    say(*options("eight.json", *words[:-2]))
    (run,) = read_runs("run.jsonl")
    assert run["model"] == "script eight.json"
    assert run["data"] == "d.jsonl (the first 2)"
    assert run["sampling"] == '{"temperature": 0.5}'
    url, safe = "http://me:secret@host/v1", "http://host/v1"
    given = ["rollout", *words, "--base-url", url, f"--base-url={url}", "--tool_configs={}", "--tool_configs="]
    assert [*_without_settings(given)] == [
        *("rollout", *words[:-1], "…"), "--base-url", safe, f"--base-url={safe}", "--tool_configs=…", "--tool_configs=",
    ]  # fmt: skip


def test_the_description_has_no_key(here: Path, say: Say) -> None:
    secret = "sk-" + "a1b2" * 5
    say(*options("eight.json", "--sampling", json.dumps({"extra_body": {"key": secret}})))
    assert secret not in Path("run.jsonl").read_text()


# killed


def started(*more: str) -> Started:
    return begin([*PROGRAM, *options("adder:slow", "--concurrency", "3", *more)], "")


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def killed_and_continued(seed: int, times: int) -> None:
    """Kill it at random moments, then let it end: every id is there exactly once, and nothing kept was run again."""
    dice = random.Random(seed)
    kept = b""
    for _ in range(times):
        process = started("--repeats", "4")
        size, more = len(kept), dice.randrange(16_000)
        while process.poll() is None and size_of(Path("run.jsonl")) < size + more:
            time.sleep(0.005)
        process.kill()
        process.wait(60)
        found = Path("run.jsonl").read_bytes()
        assert found.startswith(kept)
        kept = found[: found.rfind(b"\n") + 1]
    process = started("--repeats", "4")
    assert process.wait(60) == 0
    assert Path("run.jsonl").read_bytes().startswith(kept)
    assert sorted(ids()) == sorted(f"s{n}#{repeat}" for n in range(12) for repeat in range(4))


def test_killed_and_continued_every_trajectory_is_there_once(here: Path) -> None:
    killed_and_continued(seed=1, times=2)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_killed_and_continued_often(here: Path, seed: int) -> None:
    killed_and_continued(seed, times=6)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_cleanly_with_all_tools_released(
    here: Path, monkeypatch: pytest.MonkeyPatch, by: signal.Signals
) -> None:
    log = here / "log"
    monkeypatch.setenv("ADDER_LOG", str(log))
    process = subprocess.Popen(
        [sys.executable, "-m", "agentkit", *options("adder:hangs")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # no byte is read before its turn
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # a background job of a shell ignores it
    )
    while not log.exists() or log.read_text().count("created") < 12:
        time.sleep(0.01)
    assert process.stderr is not None
    assert process.stderr.readline().decode() == "rollout: 0/12 · 0 %\n"  # after a second
    process.send_signal(by)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert log.read_text().splitlines().count("released") >= 12
    assert err.decode().splitlines()[-1] == "interrupted: 0 of 12 trajectories; the same command continues"
    assert out.startswith(b"0 trajectories")
    assert ids() == []


# report


def test_the_report_is_written_next_to_the_records(here: Path, say: Say) -> None:
    with RecordFile("run.jsonl") as file:
        file.append(record())
    status, out, err = say("rollout", "report", "run.jsonl")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "1 trajectory: answered 1"
    assert out.splitlines()[-2:] == ["wrote run.html", "wrote run.png"]
    assert Path("run.png").read_bytes().startswith(b"\x89PNG")
    assert Path("run.html").read_text().startswith("<!doctype html>")


def test_a_report_elsewhere(here: Path, say: Say) -> None:
    with RecordFile("run.jsonl") as file:
        file.append(record())
    assert say("rollout", "report", "run.jsonl", "--to", "a.html")[1].endswith("wrote a.html\n")
    assert sorted(path.name for path in here.glob("*.html")) == ["a.html"]
    assert say("rollout", "report", "run.jsonl", "--to", "a.pdf")[2:] == (
        "agentkit rollout: --to a.pdf: expected a name ending in .html or .png\n",
    )


@pytest.mark.parametrize("folder", [".", "/", ".."])
def test_a_report_of_a_folder_is_refused(here: Path, say: Say, folder: str) -> None:
    message = f"agentkit rollout: {folder}: expected a file of records, found a folder\n"
    assert say("rollout", "report", folder) == (2, "", message)


def test_a_report_of_nothing_is_refused(here: Path, say: Say) -> None:
    Path("empty.jsonl").touch()
    assert say("rollout", "report", "empty.jsonl")[2] == "agentkit rollout: empty.jsonl has no records\n"
    assert "cannot read none.jsonl" in say("rollout", "report", "none.jsonl")[2]
