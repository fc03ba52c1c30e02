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
from agentkit.sandbox.choosing import VARIANTS, found_wrong
from agentkit.sandbox.confined import Setup
from agentkit.sandbox.launching import Unconfined

ROOT = Path(__file__).parents[2]

CONFINED = tuple(VARIANTS)
EVERY = (*CONFINED, "none")

USERS = ("root", "an ordinary user")

FAST = SandboxLimits(wall=20)
"""For tests: a busy machine needs seconds for what usually takes milliseconds."""


def opened(variant: str, *, workdir: Path | None = None, limits: SandboxLimits = FAST, **env: str) -> Sandbox:
    """One sandbox; the test is skipped where it is absent. That it leaks is for the tests of the probes to say."""
    setup = Setup(workdir=workdir, limits=limits, env=env)
    if variant == "none":
        return Unconfined(setup)
    try:
        box = VARIANTS[variant](setup)
    except SandboxUnavailable as e:
        pytest.skip(f"{variant}: {e}")
    if "start" in (wrong := found_wrong(VARIANTS[variant])):
        pytest.skip(f"{variant}: {wrong}")
    return box


@cache
def attempts_as(user: str, variant: str) -> dict[str, str | None]:
    """What `python -m agentkit.sandbox` finds as one of `USERS`; the test is skipped where there is none."""
    done = subprocess.run(
        [*command_of(user), "-m", "agentkit.sandbox", "--json", variant],
        env={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/local/bin:/usr/bin:/bin"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str | None] | str = json.loads(done.stdout)[variant]
    if isinstance(found, str):
        pytest.skip(f"{variant} as {user}: {found}")
    return found


@cache
def command_of(user: str) -> tuple[str, ...]:
    """How to run Python as one of `USERS`: this Python, or, where another user may not read it, the system's."""
    if user == "root":
        if os.geteuid() != 0:
            pytest.skip("the tests do not run as root")
        return (sys.executable,)
    if os.geteuid() != 0:
        return (sys.executable,)
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed, which runs a program as another user")
    as_nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import agentkit.sandbox"
    for python in (sys.executable, "/usr/bin/python3"):
        trial = (*as_nobody, python, "-B", "-c", script)
        if subprocess.run(trial, cwd="/", env={}, capture_output=True, check=False).returncode == 0:
            return (*as_nobody, python)
    pytest.skip("an ordinary user may read no Python from 3.11 on, or not this folder")


def system_python() -> str | None:
    """A Python that every user may run."""
    python = "/usr/bin/python3"
    script = "import sys; sys.exit(sys.version_info < (3, 11))"
    usable = Path(python).exists() and subprocess.run([python, "-c", script], check=False).returncode == 0
    return python if usable else None
