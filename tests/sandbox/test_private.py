"""The private folders of sandboxes: gone when one is closed, or when the next program finds the owner dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agentkit.sandbox.private import private_folder, remove_abandoned

OWNER = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from agentkit.sandbox import sandbox
box = sandbox("none")
(box.workdir / "left").write_text("x")
print(box.workdir, flush=True)
sys.stdin.read()
"""


def folders(parent: Path) -> list[str]:
    return sorted(os.listdir(parent))


def test_the_folder_of_a_killed_owner_is_removed_by_the_next_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        workdir = Path(owner.stdout.readline().strip())
        remove_abandoned(tmp_path)
        assert (workdir / "left").exists(), "its owner lives"
        owner.send_signal(signal.SIGKILL)
    assert (workdir / "left").exists()
    done = subprocess.run(command, input="", capture_output=True, text=True, check=True)
    assert folders(tmp_path) == [Path(done.stdout.strip()).parent.name], "the next one has removed it"


def test_what_is_not_an_abandoned_folder_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    living, file = private_folder()
    (tmp_path / "agentkit-sandbox-unlocked").mkdir()
    (tmp_path / "agentkit-sandbox-file").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "owner").touch()
    (tmp_path / "agentkit-sandbox-link").symlink_to("other")
    (tmp_path / "agentkit-sandbox-fifo").mkdir()
    os.mkfifo(tmp_path / "agentkit-sandbox-fifo" / "owner")
    (tmp_path / "agentkit-sandbox-linked").mkdir()
    (tmp_path / "agentkit-sandbox-linked" / "owner").symlink_to(tmp_path / "other" / "owner")
    before = folders(tmp_path)
    remove_abandoned(tmp_path)
    remove_abandoned(tmp_path / "nowhere")
    left = [name for name in before if name != "agentkit-sandbox-fifo"]
    assert folders(tmp_path) in (before, left)
    file.close()
    remove_abandoned(tmp_path)
    assert living.name not in folders(tmp_path)
