"""Git repositories that a sandboxed command leaves in a folder of the user's: none runs anything there."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confining import confined

from agentkit_tools.files import Files
from agentkit_tools.shell import Shell

pytestmark = confined

HEAD = "ref: refs/heads/main\n"
ARMED = '[core]\n\tfsmonitor = "touch ../ran; false"\n\tworktree = .\n\tbare = false\n\trepositoryformatversion = 0\n'


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
