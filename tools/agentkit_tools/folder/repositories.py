"""Detection of git repositories without the name `.git`: git runs commands from their settings and hooks.

Knows open folders and names in them. Each part of a repository alone has a harmless name: `HEAD`, `objects`, `refs`.
Source: `is_git_directory` in git's setup.c.
"""

from __future__ import annotations

import os
from typing import Final

SHAPES: Final = (("HEAD", "commondir"), ("HEAD", "objects", "refs"))
"""Names that together are a repository; of what kind they are is not looked at."""


def is_repository(folder: int, added: str = "") -> bool:
    """Return True if an open folder is a git repository, or would be one with another name in it."""
    new = added.casefold()  # on a file system that ignores case it would be the same name
    return any(all(new == name.casefold() or exists(folder, name) for name in shape) for shape in SHAPES)


def exists(folder: int, name: str) -> bool:
    """Return True if an open folder has an entry of this name."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True
