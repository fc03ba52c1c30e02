"""Git repositories that a sandboxed command leaves in a folder of the user's: none runs anything there."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confining import confined

from agentkit_tools.files import Files
from agentkit_tools.python import Python
from agentkit_tools.shell import Shell

pytestmark = confined

HEAD = "ref: refs/heads/main\n"
ARMED = '[core]\n\tfsmonitor = "touch ../ran; false"\n\tworktree = .\n\tbare = false\n\trepositoryformatversion = 0\n'
DEEP = "d/" * 120
WRITTEN = "mkdir -p r/objects r/refs; echo ref: refs/heads/m > r/HEAD; cp armed r/config; touch r/written"


@pytest.fixture(params=["bwrap", "landlock"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    subprocess.run(["git", "init", "-q", tmp_path / "sub"], check=True)
    (tmp_path / "sub/.git/hooks/pre-commit").write_text("#!/bin/sh\n")
    (tmp_path / "armed").write_text(ARMED)
    shell = Shell(tmp_path, sandbox=request.param)
    yield shell
    shell.close()


def run(shell: Shell, command: str) -> list[str]:
    """What the result says was set aside."""
    text = asyncio.run(shell.execute_command(command)).text
    return [line for line in text.splitlines() if "set-aside" in line]


@pytest.mark.parametrize(
    ("command", "aside"),
    [
        ("mkdir -p d/objects d/refs; echo ref: refs/heads/m > d/HEAD; cp armed d/config", "d/config"),
        (
            "mkdir -p a/b/d/objects a/b/d/refs; cp armed a/b/d/config; echo ref: refs/heads/m > a/b/d/HEAD",
            "a/b/d/config",
        ),
        ("mkdir c d; echo ../c > d/commondir; echo ref: refs/heads/m > d/HEAD", "d/commondir"),
        ("mkdir -p d/objects d/refs; echo ref: refs/heads/m > d/HEAD; ln -s ../armed d/config", "d/config"),
        ("mv sub/.git sub/g; cat armed >> sub/g/config; mv sub/g sub/.git", "sub/.git/config"),
        ("mkdir -p d/objects d/refs d/hooks; echo x > d/hooks/post-commit; echo ref: refs/heads/m > d/HEAD", "d/hooks"),
        (f"mkdir -p {DEEP}x/objects {DEEP}x/refs; cp armed {DEEP}x/config; touch {DEEP}x/HEAD", f"{DEEP}x/config"),
        ("mkdir d; touch d/HEAD d/objects d/refs; (yes '#' | head -c 1100000; cat armed) > d/config", "d/config"),
    ],
)
def test_a_repository_that_would_run_something_is_left_without_it(
    shell: Shell, command: str, aside: str, tmp_path: Path
) -> None:
    (line,) = run(shell, command)
    assert line.startswith(f"['{aside}' was renamed to ")
    subprocess.run(["git", "status"], cwd=tmp_path / aside.split("/")[0], capture_output=True, check=False)
    assert not (tmp_path / "ran").exists()
    assert run(shell, "true") == []


async def written(path: Path) -> None:
    """Wait for what another process does."""
    while not os.path.exists(path):  # noqa: ASYNC110, ASYNC240 - the event is in another process
        await asyncio.sleep(0.01)


def test_a_call_that_is_cancelled_leaves_none(shell: Shell, tmp_path: Path) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(shell.execute_command(f"{WRITTEN}; sleep 99"))
        await written(tmp_path / "r/written")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not (tmp_path / "r/config").exists()

    asyncio.run(cancelled())
    assert run(shell, "true") == ["['r/config' was renamed to config.set-aside-1: git would run commands from it]"]


def test_a_background_command_that_ends_unseen_or_is_killed_leaves_none(shell: Shell, tmp_path: Path) -> None:
    later = "echo started; until [ -e %s ]; do sleep 0.01; done; %s"
    for go, command, seen in [("one", WRITTEN, "config.set-aside-1"), ("two", f"{WRITTEN}2; sleep 99", "written2")]:
        asyncio.run(shell.execute_command(later % (go, command), blocking=False))
        (tmp_path / go).touch()
        asyncio.run(written(tmp_path / "r" / seen))
    shell.close()
    assert not (tmp_path / "r/config").exists()


@pytest.mark.parametrize("sandbox", ["bwrap", "landlock"])
def test_between_two_calls_nothing_of_a_kept_interpreter_runs(sandbox: str, tmp_path: Path) -> None:
    tool = Python(tmp_path, sandbox=sandbox, keep_state=True)
    code = "import os, threading, time\nthreading.Timer(1, lambda: open('thread', 'x')).start()\n"
    code += "if os.fork() == 0:\n    os.setsid(); time.sleep(1); open('process', 'x'); time.sleep(99)"
    asyncio.run(tool.python(code))
    time.sleep(1.1)
    assert os.listdir(tmp_path) == []
    asyncio.run(tool.python("while len(os.listdir()) < 2: pass"))
    assert sorted(os.listdir(tmp_path)) == ["process", "thread"]
    tool.close()


def test_plain_repositories_and_those_of_before_stay(shell: Shell, tmp_path: Path) -> None:
    config = '[core]\n\trepositoryformatversion = 0\n[remote "origin"]\n\turl = https://example.com/x.git\n'
    assert (
        run(shell, f"mkdir -p n/.git/objects n/.git/refs; printf '{config}' > n/.git/config; touch n/.git/HEAD") == []
    )
    assert run(shell, "mv sub moved") == []
    assert (tmp_path / "moved/.git/hooks/pre-commit").exists()


@pytest.mark.parametrize("folder", ["", "docs/", "a/b/c/"])
@pytest.mark.parametrize(
    "order", [("HEAD", "objects/a", "refs/a"), ("refs/a", "objects/a", "HEAD"), ("commondir", "HEAD")]
)
def test_no_file_completes_a_repository(tmp_path: Path, folder: str, order: tuple[str, ...]) -> None:
    files = Files(tmp_path)
    done = [files.create_file(folder + name, HEAD).ok for name in order]
    assert done == [True] * (len(order) - 1) + [False]


def test_no_move_completes_a_repository_and_nothing_in_one_is_changed(tmp_path: Path) -> None:
    files = Files(tmp_path)
    for name in ("d/objects/a", "d/refs/a", "d/other"):
        assert files.create_file(name, HEAD).ok
    assert "git runs commands from it" in (files.move("d/other", "d/HEAD").error or "")
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "own.git"], check=True)
    for refused in (files.create_file("own.git/hooks/post-commit", ""), files.delete_file("own.git/config")):
        assert (refused.code, "own.git is a git repository" in (refused.error or "")) == ("denied", True)
    assert files.read_file("own.git/HEAD").ok
    assert files.create_file("HEAD/objects/refs", "").ok
    assert os.listdir(tmp_path / "d" / "objects") == ["a"]
