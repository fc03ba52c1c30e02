"""Control groups do not pile up, even after processes that were killed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentkit.sandbox.cgroups import STALE, parents, remove_stale


@pytest.mark.skipif(not parents(), reason="no control group can be created here")
def test_what_a_killed_process_left_is_removed_later() -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for parent in {parent.path for parent in parents().values()}:
        left = parent / f"agentkit-{dead.pid}-0"
        ours = parent / f"agentkit-{os.getpid()}-x"
        for folder in (left, ours):
            folder.mkdir()
        remove_stale(parent)
        assert left.exists(), "it is too young"
        for folder in (left, ours):
            old = folder.stat().st_mtime - 2 * STALE
            os.utime(folder, (old, old))
        remove_stale(parent)
        assert (left.exists(), ours.exists()) == (False, True)
        ours.rmdir()
