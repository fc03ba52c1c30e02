"""Names in the folder of a sandbox that commands may read but not change: on each kind, as root and as another user."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest
from sandboxes import CONFINED, FAST, ROOT, USERS, commands_of

from agentkit.errors import ConfigError, SandboxError, SandboxUnavailable
from agentkit.sandbox import Sandbox, SandboxOutcome, sandbox
from agentkit.sandbox.base_sandbox import Setup
from agentkit.sandbox.sandbox_choice import VARIANTS

NAMES = (".env", ".git")

ATTEMPTS = {
    "write": "echo x > .git/config",
    "append": "echo x >> .env",
    "create": "echo x > .git/hooks/post-commit",
    "remove": "rm -rf .git .env",
    "rename": "mv .git git",
    "rename the file": "mv .env env",
    "replace": "touch new && mv -T new .env",
    "replace by a link": "ln -sfn /tmp .git",
    "exchange": "mkdir other && mv --exchange -T other .git || python3 -c 'import ctypes as c, sys; "
    'sys.exit(c.CDLL(None).renameat2(-100, b"other", -100, b".git", 2) != 0)\'',
    "mode": "chmod 777 .git/config",
    "times": "touch -d 2001-01-01 .git/config",
    "truncate": "truncate -s 0 .env",
    "hard link": "ln .env second && echo x >> second",
    "unmount": "umount .git || umount -l .git",
    "mount writable": "mount -o remount,rw,bind .git",
    "another namespace": "unshare -rm sh -c 'umount .git; echo x > .git/config'",
    "by another path": "cd .git && echo x > /proc/self/cwd/config",
}
"""Each must fail and change nothing."""

SCRIPT = """
import asyncio, json, os, sys
from pathlib import Path
from agentkit.errors import SandboxError
from agentkit.sandbox import SandboxLimits
from agentkit.sandbox.sandbox_choice import VARIANTS
from agentkit.sandbox.base_sandbox import Setup

def seen(folder):
    found = []
    for name in (".git", ".git/config", ".git/hooks", ".env"):
        path = Path(folder, name)
        status = path.lstat()
        held = os.listdir(path) if path.is_dir() else path.read_text()
        found.append([name, status.st_mode, status.st_ino, status.st_mtime, held])
    return found

async def main(variant, folder, attempts):
    setup = Setup(workdir=Path(folder), protected=(".env", ".git"), limits=SandboxLimits(wall=20))
    try:
        box = VARIANTS[variant](setup)
        async with box:
            assert (await box.run(["cat", ".git/config", ".env"])).stdout == "[core]\\nA=1\\n"
            done = {}
            for name, line in attempts.items():
                done[name] = (await box.run(["sh", "-c", line])).exit_code
            assert (await box.run(["sh", "-c", "echo new > free"])).exit_code == 0
            return done
    except SandboxError as e:
        return str(e)

variant, folder = sys.argv[1:]
os.umask(0o022)
for name, text in ((".git/config", "[core]\\n"), (".git/hooks/sample", ""), (".env", "A=1\\n")):
    Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
    Path(folder, name).write_text(text)
before = seen(folder)
done = asyncio.run(main(variant, folder, json.load(sys.stdin)))
print(json.dumps([done, before, seen(folder)]))
"""


def made_by(python: tuple[str, ...]) -> str:
    """A new folder of the user whose Python this is."""
    return subprocess.check_output([*python, "-c", "import tempfile; print(tempfile.mkdtemp())"], text=True).strip()


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("variant", CONFINED[:2])
def test_nothing_changes_what_is_protected(variant: str, user: str) -> None:
    reasons = []
    for command in commands_of(user, 61_000 + CONFINED.index(variant)):
        folder = made_by(command)
        done = subprocess.run(
            [*command, "-c", SCRIPT, variant, folder],
            input=json.dumps(ATTEMPTS),
            env={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/local/bin:/usr/bin:/bin"},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        codes, before, after = json.loads(done.stdout)
        if not isinstance(codes, str):
            assert after == before
            assert [name for name, code in codes.items() if code == 0] == []
            return
        reasons.append(codes)
    pytest.skip(f"{variant} as {user}: {'; '.join(reasons)}")


def project(folder: Path) -> Path:
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("[core]\n")
    (folder / ".env").write_text("A=1\n")
    return folder


def boxed(variant: str, folder: Path, *names: str) -> Sandbox:
    try:
        return VARIANTS[variant](Setup(workdir=folder, protected=names, limits=FAST))
    except SandboxUnavailable as e:
        pytest.skip(str(e))


def ran(box: Sandbox, line: str) -> SandboxOutcome:
    return asyncio.run(box.run(["sh", "-c", line]))


@pytest.mark.parametrize("variant", CONFINED[:2])
def test_what_was_replaced_outside_is_protected_as_it_is_now(variant: str, tmp_path: Path) -> None:
    box = boxed(variant, project(tmp_path), ".env", ".git")
    (tmp_path / "env").write_text("B=2\n")
    os.replace(tmp_path / "env", tmp_path / ".env")
    assert ran(box, "cat .env; echo x > .env").stdout == "B=2\n"
    assert (tmp_path / ".env").read_text() == "B=2\n"
    asyncio.run(box.close())


@pytest.mark.parametrize("variant", CONFINED[:2])
def test_a_link_in_its_place_leads_nowhere(variant: str, tmp_path: Path) -> None:
    """Else a command that still runs could have anything mounted for the next one."""
    (tmp_path / "work").mkdir()
    (tmp_path / "outside").write_text("secret\n")
    box = boxed(variant, project(tmp_path / "work"), ".env")
    (tmp_path / "work" / ".env").unlink()
    assert ran(box, "cat .env; echo gone").stdout == "gone\n"
    (tmp_path / "work" / ".env").symlink_to(tmp_path / "outside")
    with pytest.raises(SandboxError, match=r"'\.env' has become a link"):
        ran(box, "cat .env")
    asyncio.run(box.close())


def test_without_namespaces_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match=r"cannot be protected: \.git; pass `protected=\(\)`"):
        VARIANTS[CONFINED[2]](Setup(workdir=project(tmp_path), protected=(".git",)))


@pytest.mark.parametrize("name", ["missing", ".git/config", "..", "", "link"])
def test_what_cannot_be_protected_is_refused(name: str, tmp_path: Path) -> None:
    (project(tmp_path) / "link").symlink_to(".git")
    with pytest.raises(ConfigError, match="expected names of files and folders in `workdir`, got"):
        sandbox("none", workdir=tmp_path, protected=[name])
    with pytest.raises(ConfigError, match="expected names of files and folders in `workdir`"):
        sandbox("none", protected=[".git"])
