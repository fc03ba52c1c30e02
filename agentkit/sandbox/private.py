"""A sandbox's private folder, and the removal of those whose owners were killed. Knows files and locks alone.

The owner holds a lock on a file in its folder; the kernel releases it however the process ends, and it tells the living
from the dead even across containers that share a temporary folder, where process numbers would not.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Final

PREFIX: Final = "agentkit-sandbox-"
LOCK: Final = "owner"
NOBODY: Final = 65534
"""Whom a folder belongs to if root has the commands run by nobody."""


def private_folder() -> tuple[Path, IO[bytes]]:
    """A new folder, and the file whose lock says that its owner lives; the lock ends when the file is closed."""
    parent = tempfile.gettempdir()
    removed_once(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)).resolve()
    file = open(folder / f"{LOCK}.new", "wb")  # noqa: SIM115 - it stays open as long as the sandbox
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        (folder / f"{LOCK}.new").rename(folder / LOCK)  # nobody sees it without its lock
    except BaseException:
        file.close()
        raise
    return folder, file


@cache
def removed_once(parent: str) -> None:
    """Remove the folders of dead owners, once per process."""
    remove_abandoned(Path(parent))


def remove_abandoned(parent: Path) -> None:
    """Remove the private folders of owners that are dead. Others, and those of other users, are left alone."""
    own = {os.geteuid(), NOBODY} if os.geteuid() == 0 else {os.geteuid()}
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid in own:
                        remove_if_abandoned(Path(entry.path))


def remove_if_abandoned(folder: Path) -> None:
    """Remove a folder unless its owner lives. One without the lock's file is just being made, or is not ours.

    Raises:
        OSError: it cannot be locked or opened, which includes that its owner lives.
    """
    fd = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(fd, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
