"""The Shell tool: commands to their end, and in the background; nothing is ever built from pieces of text."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confining import confined

from agentkit import ToolResult
from agentkit.sandbox import SandboxUnavailable
from agentkit_tools.protected_names import PROTECTED, protected_in
from agentkit_tools.python import Python
from agentkit_tools.shell import Shell

pytestmark = confined


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    tool = Shell(tmp_path / "work")
    yield tool
    tool.close()


def ran(tool: Shell, command: str, **arguments: Any) -> ToolResult:
    return asyncio.run(tool.execute_command(command, **arguments))


def looked(tool: Shell, name: str) -> ToolResult:
    return asyncio.run(tool.check_command_output(name))


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("echo a; echo b >&2; echo c", "a\nb\nc\n[exit code 0]"),
        ("exit 3", "[exit code 3]"),
        ("printf a; false", "a\n[exit code 1]"),
        ("no-such-program", "127]"),
        ("kill -9 $$", "[killed by SIGKILL]"),
        ("echo x > a.txt; cat a.txt", "x\n[exit code 0]"),
        ("printf '\\033[31mred\\033]52;c;aGk=\\007'", "red\n[exit code 0]"),
        ("printf 'a\\377b'", "a\ufffdb\n[exit code 0]"),
        ("cat", "[exit code 0]"),
        ("cat <<'END' | tr a-z A-Z\nhere && \"there\"\nEND", 'HERE && "THERE"\n[exit code 0]'),
        ("(", "[exit code 2]"),
    ],
)
def test_output_and_exit_code_are_told(shell: Shell, command: str, text: str) -> None:
    assert ran(shell, command).text.endswith(text)


def test_files_stay_but_folder_and_variables_do_not(shell: Shell) -> None:
    ran(shell, "mkdir sub; cd sub; export X=1; echo there > a.txt")
    assert ran(shell, "cat a.txt; echo x=$X", folder="sub").text == "there\nx=\n[exit code 0]"
    assert ran(shell, "ls").text == "sub\n[exit code 0]"


@pytest.mark.parametrize("folder", ["; touch pwned", "$(touch pwned)", "`touch pwned`", "a\ntouch pwned", "-P", "' '"])
def test_row_30_a_folder_is_never_a_command(shell: Shell, folder: str) -> None:
    result = ran(shell, "ls", folder=folder)
    assert result.metadata["exit_code"] != 0
    assert "No such file or directory" in result.text
    assert ran(shell, "ls").text == "[exit code 0]"


@pytest.mark.parametrize("name", ["; touch pwned", "$(touch pwned)", "../../x", ""])
def test_row_30_a_session_name_is_never_a_command(shell: Shell, name: str) -> None:
    assert ran(shell, "sleep 60", blocking=False, session_name=name).text.startswith(f"[session {name} is running")
    assert asyncio.run(shell.terminate_command(name)).text == f"[session {name} was terminated]"
    assert ran(shell, "ls").text == "[exit code 0]"


def test_a_command_runs_only_inside(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    result = ran(shell, f"cat {tmp_path}/secret /etc/shadow; touch {tmp_path}/pwned /usr/pwned; rm -rf /usr/bin")
    assert "secret\n" not in result.text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret", "work"]


def test_a_command_is_killed_at_its_timeout_and_its_output_is_kept(shell: Shell) -> None:
    result = ran(shell, "echo before; sleep 60", timeout=2)  # in which a sandbox starts also on a busy machine
    assert result.code == "timeout"
    assert result.text == "before\n[killed after 2 s, its time limit; give it more, or use blocking=false]"


@pytest.mark.parametrize("timeout", [0, -1, 10_000, float("nan")])
def test_a_timeout_out_of_bounds_is_refused(shell: Shell, timeout: float) -> None:
    assert "expected seconds above 0, at most 300" in ran(shell, "echo a", timeout=timeout).text


def test_row_32_endless_output_keeps_head_and_tail_and_says_how_much_is_missing(shell: Shell) -> None:
    result = ran(shell, "echo first; yes", timeout=2)
    assert result.text.startswith("first\ny\n")
    assert " bytes left out …]\n" in result.text
    assert result.metadata["stdout_cut"] > 1_000_000
    assert len(result.text) < 70_000


def test_row_33_a_daemon_that_holds_the_output_dies_with_the_command(shell: Shell) -> None:
    daemon = "setsid sh -c 'while true; do date +%s%N > alive; sleep 0.02; done' & while ! [ -e alive ]; do :; done"
    started = time.monotonic()
    assert ran(shell, daemon).text.endswith("[exit code 0]")
    assert time.monotonic() - started < 10
    last = ran(shell, "cat alive").text
    assert ran(shell, "sleep 0.1; cat alive").text == last


def test_a_background_command_is_looked_at_until_it_ends(shell: Shell) -> None:
    ran(shell, "mkfifo go")
    first = ran(shell, "echo ready; read x < go; echo got $x; exit 4", blocking=False, session_name="server")
    text = first.text
    while not text.startswith("ready"):  # on a busy machine not at the first look
        assert text.startswith("[session server is running, for ")
        text = looked(shell, "server").text
    assert asyncio.run(shell.list_commands()).text.startswith("server: running, started ")
    ran(shell, "echo 5 > go")
    texts = [looked(shell, "server").text]
    while "running" in texts[-1]:
        texts.append(looked(shell, "server").text)
    text = "".join(texts)
    assert "got 5\n" in text
    assert text.endswith("[exit code 4]")
    assert looked(shell, "server").text == "there is no session 'server'; there are: none"


def test_a_character_and_a_sequence_may_be_written_in_two_looks(shell: Shell) -> None:
    ran(shell, "mkfifo 1 2")
    writes = "printf 'a\\346\\227'; read x < 1; printf '\\245\\033[3'; read x < 2; printf '1mred\\033[0m\\346'"
    text = ran(shell, writes, blocking=False, session_name="s").text
    for go, seen in enumerate(("a", "a日"), 1):
        while (told := re.sub(r"\n?\[session.*\]", "", text)) != seen:  # on a busy machine not at once
            assert seen.startswith(told)
            text = told + looked(shell, "s").text
        ran(shell, f"echo > {go}")
    while "[exit code" not in text:
        text = re.sub(r"\n?\[session.*\]", "", text) + looked(shell, "s").text
    assert text == "a日red\ufffd\n[exit code 0]"


@pytest.mark.parametrize("before", ["", "1", "12"])
def test_long_output_is_cut_between_characters(shell: Shell, tmp_path: Path, before: str) -> None:
    told = [ran(shell, f"printf '{before}'; yes 日 | head -n 50000 | tr -d '\\n'")]
    with closing(Python(tmp_path / "work")) as python:
        told.append(asyncio.run(python.python(f"print('{before}' + '日' * 50_000, end='')")))
    for result in told:
        text = result.text.removesuffix("\n[exit code 0]")
        start, left_out, end = re.split(r"\n\[… ([\d,]+) bytes left out …\]\n", text)
        assert (start.lstrip("12日"), end.lstrip("日")) == ("", "")
        assert int(left_out.replace(",", "")) == result.metadata["stdout_cut"]
        assert len((start + end).encode()) + result.metadata["stdout_cut"] == len(before) + 150_000


def test_a_session_outlives_the_event_loop_that_started_it(shell: Shell) -> None:
    """Each call has a loop of its own here, as each `run_sync` has."""
    ran(shell, "while true; do sleep 0.02; echo on; done", blocking=False, session_name="loop")
    while not (text := looked(shell, "loop").text).startswith("on\n"):
        assert text.startswith("[session loop is running, for ")
    assert asyncio.run(shell.check_command_output("loop", kill_session=True)).text.endswith("was terminated]")
    assert asyncio.run(shell.list_commands()).text == "no background commands"


def test_names_are_given_are_unique_and_are_limited(tmp_path: Path) -> None:
    tool = Shell(tmp_path, most_sessions=2)
    assert "[session command-1 is running" in ran(tool, "sleep 60", blocking=False).text
    again = ran(tool, "sleep 60", blocking=False, session_name="command-1")
    assert again.error == "session 'command-1' still runs; choose another name, or terminate it"
    assert ran(tool, "sleep 60", blocking=False, session_name="b").ok
    third = ran(tool, "sleep 60", blocking=False)
    assert third.error is not None
    assert third.error.startswith(
        "2 commands run in the background, no more are possible; terminate one of b, command-1"
    )
    tool.close()


def test_a_name_for_a_blocking_command_is_refused_rather_than_ignored(shell: Shell) -> None:
    assert "use blocking=false" in ran(shell, "ls", session_name="a").text


@pytest.mark.parametrize("command", ["echo \ud800", "echo \0", "echo " + "x" * 200_000])
def test_what_the_system_cannot_pass_on_is_an_error_for_the_model(shell: Shell, command: str) -> None:
    result = ran(shell, command)
    assert (result.ok, result.code) == (False, "tool_error")


def test_row_38_what_is_secret_outside_is_not_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    canary, given = "canary-6f1d2c", "canary-for-commands"
    monkeypatch.setenv("SERVICE_KEY", canary)
    caplog.set_level(logging.DEBUG)
    tool = Shell(tmp_path, env={"TOKEN": given})
    result = ran(tool, "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null")
    length = ran(tool, "echo ${#TOKEN}")
    tool.close()
    assert canary not in f"{result.text} {result.metadata}"
    assert length.text == f"{len(given)}\n[exit code 0]"
    assert "canary" not in f"{tool!r} {vars(tool)!r} {length.metadata} {caplog.text}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with names that `Files` protects, as a file, as a folder, and by what is in a folder."""
    for name in (
        ".git/config",
        ".github/workflows/test.yml",
        ".github/README",
        "Conftest.py",
        "src/conftest.py",
        "a.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n")
    (tmp_path / ".env").symlink_to("a.py")
    return tmp_path


def test_what_is_protected_at_the_top_of_a_folder(project: Path) -> None:
    assert protected_in(project, PROTECTED) == [".git", ".github", "Conftest.py"]
    assert protected_in(project, [".gitlab/ci", "*.py"]) == ["Conftest.py", "a.py"]
    assert protected_in(project, ()) == protected_in(None, PROTECTED) == protected_in(project / "new", PROTECTED) == []


@pytest.mark.parametrize("tool", [Shell, Python])
def test_what_files_protects_is_read_only_for_commands_and_code_too(
    tool: type[Shell] | type[Python], project: Path
) -> None:
    def write(name: str, **options: Any) -> str:
        try:
            with closing(tool(project, **options)) as one:
                if isinstance(one, Shell):
                    return ran(one, f"echo 2 > {name}").text
                return asyncio.run(one.python(f"open({name!r}, 'w').write('2')")).text
        except SandboxUnavailable as e:  # of the kinds here none can do it, and they say so
            pytest.skip(str(e))

    for name in (".git/config", ".git/new", ".github/README", "Conftest.py"):
        assert "Read-only file system" in write(name)
    for name in ("a.py", "src/conftest.py", "new"):
        assert "Read-only" not in write(name)
    write(".git/config", protected=())
    assert (project / ".git" / "config").read_text().strip() == "2"
