"""The sandboxes that this machine can have, for tests that run on each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from agentkit.sandbox import Sandbox, SandboxLimits, SandboxUnavailable
from agentkit.sandbox.base_sandbox import Setup
from agentkit.sandbox.launcher_sandbox import UnconfinedSandbox
from agentkit.sandbox.sandbox_choice import VARIANTS, fault_of

ROOT = Path(__file__).parents[2]

CONFINED = tuple(VARIANTS)
EVERY = (*(CONFINED if os.geteuid() else CONFINED[:2]), "none")
"""For root the third is only there where a Python is readable for nobody; the probes start it with one."""

USERS = ("root", "an ordinary user")

FAST = SandboxLimits(wall=20)
"""For tests: a busy machine needs seconds for what usually takes milliseconds."""


def opened(variant: str, *, workdir: Path | None = None, limits: SandboxLimits = FAST, **env: str) -> Sandbox:
    """One sandbox; the test is skipped where it is absent. That it leaks is for the tests of the probes to say."""
    setup = Setup(workdir=workdir, limits=limits, env=env)
    if variant == "none":
        return UnconfinedSandbox(setup)
    try:
        box = VARIANTS[variant](setup)
    except SandboxUnavailable as e:
        pytest.skip(f"{variant}: {e}")
    if "start" in (wrong := fault_of(VARIANTS[variant])):
        pytest.skip(f"{variant}: {wrong}")
    return box


@cache
def attempts_as(user: str, variant: str) -> dict[str, str | None]:
    """What `python -m agentkit.sandbox` finds as one of `USERS`; the test is skipped where it is not available."""
    reasons = []
    for command in commands_of(user, 60_000 + CONFINED.index(variant)):
        done = subprocess.run(
            [*command, "-m", "agentkit.sandbox", "--json", variant],
            env={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/local/bin:/usr/bin:/bin"},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, str | None] | str = json.loads(done.stdout)[variant]
        if not isinstance(found, str):
            return found
        reasons.append(found)
    pytest.skip(f"{variant} as {user}: {'; '.join(reasons)}")


@cache
def commands_of(user: str, uid: int) -> tuple[tuple[str, ...], ...]:
    """How to run Python as one of `USERS`: this Python, and the system's, which another user can read too."""
    if user == "root" and os.geteuid() != 0:
        pytest.skip("the tests do not run as root")
    become: tuple[str, ...] = ()
    if user != "root" and os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed, which runs a program as another user")
        become = ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups")  # its own, as processes are counted
    script = f"import sys, subprocess; sys.path.insert(0, {str(ROOT)!r}); import agentkit.sandbox; "
    script += "subprocess.run([sys.executable, '-c', ''], check=True)"
    usable = [
        (*become, python)
        for python in (sys.executable, "/usr/bin/python3")
        if Path(python).exists()
        and subprocess.run(
            (*become, python, "-B", "-c", script), cwd="/", env={"PATH": "/usr/bin"}, capture_output=True, check=False
        ).returncode
        == 0
    ]
    if not usable:
        pytest.skip(f"{user} may read no Python from 3.11 on, or not this folder")
    return tuple(usable)
