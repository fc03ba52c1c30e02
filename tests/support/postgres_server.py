"""A PostgreSQL server of our own for the tests: made, started and removed again. No network: a socket in its folder."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=16MB", "max_connections=60")
"""A server that may lose everything, since nothing on it is kept."""


class Absent(Exception):
    """There is no server to start; says why."""


def binaries() -> Path:
    """The folder with `initdb` and `postgres`: of the newest version, else on the PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    for found in (*folders, *(Path(p) for p in os.environ.get("PATH", "").split(os.pathsep))):
        if all(os.access(found / name, os.X_OK) for name in ("initdb", "postgres")):
            return found
    raise Absent("no initdb and postgres on the PATH or in /usr/lib/postgresql; apt-get install postgresql")


def other_user() -> dict[str, Any]:
    """Who runs the server: ourselves, unless we are root, whom postgres refuses."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise Absent("postgres refuses to run as root, and there is no user postgres or nobody")


@contextmanager
def server(*settings: str) -> Iterator[str]:
    """A running server's DSN.

    Args:
        settings: such as `"fsync=on"`, instead of `FAST`.

    Raises:
        Absent: there is none to start.
    """
    programs, user = binaries(), other_user()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # a socket's path is bounded to about 100 characters
    try:
        if user:
            os.chown(folder, user["user"], user["group"])
        made = subprocess.run(
            [
                programs / "initdb",
                "-D",
                folder / "data",
                "-U",
                "tester",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-locale",
                "-N",
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            **user,
        )
        if made.returncode:
            raise Absent(f"initdb failed: {made.stderr.strip()[-300:]}")
        with started(programs, folder, settings or FAST, user):
            yield f"postgresql://tester@/postgres?host={folder}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def started(programs: Path, folder: Path, settings: tuple[str, ...], user: dict[str, Any]) -> Iterator[None]:
    """The server process; at the end it is stopped at once."""
    options = [
        part
        for setting in ("listen_addresses=", f"unix_socket_directories={folder}", *settings)
        for part in ("-c", setting)
    ]
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [programs / "postgres", "-D", folder / "data", *options], cwd=folder, stdout=out, stderr=out, **user
        )
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise Absent(f"postgres ended: {log.read_text()[-300:]}")
            ready = [programs / "pg_isready", "-q", "-h", folder, "-d", "postgres", "-U", "tester"]
            if subprocess.run(ready, check=False).returncode == 0:
                break
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(60)
