"""Files that are put into a sandbox's folder before a command runs. Follows no link that an earlier command left."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agentkit.errors import SandboxError


def place(folder: Path, files: Mapping[str, bytes], owner: int | None = None) -> None:
    """Write files into a folder, creating folders as needed. Every name is checked before anything is written.

    Args:
        folder: where.
        files: content by relative path, such as `{"src/main.py": b"print(1)"}`.
        owner: the user to whom they belong, if not this process's.

    Raises:
        SandboxError: a name is absolute, empty, contains `..` or NUL, or leads through a link or to something that is
            not a file.
    """
    parts = {name: split(name) for name in files}
    for name, content in files.items():
        if not isinstance(content, (bytes, bytearray, memoryview)):
            raise SandboxError(f"files: expected bytes for {name!r}, got {type(content).__name__}")
    for name, content in files.items():
        try:
            write(folder, parts[name], bytes(content), -1 if owner is None else owner)
        except OSError as e:
            raise SandboxError(f"cannot write {name!r} into the sandbox's folder: {e.strerror}") from e


def split(name: str) -> list[str]:
    """The folders and the file of a relative path."""
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in name:
        raise SandboxError(f"files: expected a relative path without '..', such as 'src/main.py', got {name!r}")
    return parts


def write(folder: Path, parts: list[str], content: bytes, owner: int) -> None:
    """Write one file, walking from folder to folder without following links."""
    here = os.open(folder, os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=here)
                os.chown(part, owner, owner, dir_fd=here, follow_symlinks=False)
            there = os.open(part, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = there
        # A new file in place of the old one: the old one may be a hard link to, or held open by, anything.
        with suppress(FileNotFoundError):
            os.unlink(parts[-1], dir_fd=here)
        fd = os.open(parts[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=here)
        with os.fdopen(fd, "wb") as file:
            os.fchown(fd, owner, owner)
            file.write(content)
    finally:
        os.close(here)
