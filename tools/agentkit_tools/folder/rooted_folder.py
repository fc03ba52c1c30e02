"""A folder that no path leads out of. Knows paths, open folders and the operating system; knows no contents.

A path is split before anything is opened. Its folders are then opened without following links: by one `openat2` where
Linux has it, elsewhere one by one, each relative to the previous one (`openat` with `O_NOFOLLOW`). The last component
is opened in its open folder. So nothing can be swapped between a check and its use: nothing is checked by name.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from agentkit import ConfigError, ToolResult
from agentkit_tools.folder.atomic_replace import is_draft, lock_folder
from agentkit_tools.folder.repositories import exists, is_repository
from agentkit_tools.protected_names import why_protected

MAX_PATH = 4096  # bytes: PATH_MAX of Linux
MAX_NAME = 255  # bytes: NAME_MAX of every common file system


class Refusal(Exception):
    """A refused file operation, with the reason in words for the model."""

    def __init__(self, message: str, *, denied: bool = False) -> None:
        super().__init__(message)
        self.result = ToolResult(error=message, code="denied" if denied else "tool_error")


def answer(act: Callable[[], str]) -> ToolResult:
    """The result of an operation; refusals and operating system errors become errors for the model."""
    try:
        return ToolResult(output=act())
    except Refusal as e:
        return e.result
    except OSError as e:
        return ToolResult(error=f"system error: {e.strerror or e}", code="tool_error")


class RootedFolder:
    """One folder, and the way to its entries.

    Args:
        root: the folder; created if missing. This very folder: if another one, or a link, takes its place later,
            everything is refused.
        protected: names that may be read but not written, as in `agentkit_tools.protected_names.PROTECTED`.
    """

    def __init__(self, root: str | Path, protected: Collection[str]) -> None:
        if os.open not in os.supports_dir_fd:
            raise OSError("file tools need a POSIX system: this one cannot open a file relative to a folder")
        self.root = Path(root).resolve()
        if self.root.is_file():
            raise ConfigError(f"{str(root)!r} is a file: pass the folder that contains it")
        self.root.mkdir(parents=True, exist_ok=True)
        self.protected = frozenset(protected)
        self._identity = _place(os.stat(self.root))

    def writable(self, path: str, parameter: str = "file_path") -> list[str]:
        """The components of a path that may be written. Raises `Refusal` for any other; opens nothing."""
        names = parts(path, parameter)
        why = why_protected(names, self.protected)
        if why is not None:
            raise Refusal(f"{path!r} may be read but not written: {why}", denied=True)
        if names and is_draft(names[-1]):
            raise Refusal(f"{path!r} has a name reserved for drafts: use another one", denied=True)
        return names

    @contextmanager
    def folder(self, names: Sequence[str]) -> Iterator[int]:
        """The open folder that contains the last of `names`, reached from the root without following links."""
        with self.open_folder(names[:-1]) as folder:
            yield folder

    @contextmanager
    def lock_entry(self, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """Open the entry's folder, locked for a change of the entry, which is in no git repository and makes none.

        Args:
            names: the components of the entry's path.
            make: whether to create the folders that are missing.

        Raises:
            Refusal: as `open_folder`; or a folder of the path is a git repository, or would be one with this entry.
        """
        for depth in range(len(names) - 1):
            with self.open_folder(names[:depth]) as folder:
                judge(folder, names, depth)
                if make and not exists(folder, names[depth]):
                    with lock_folder(folder):  # others see this entry, or this one sees theirs
                        judge(folder, names, depth)
                        with suppress(FileExistsError):
                            os.mkdir(names[depth], dir_fd=folder)
        with self.folder(names) as folder, lock_folder(folder):
            judge(folder, names, len(names) - 1)
            yield folder

    @contextmanager
    def open_folder(self, names: Sequence[str]) -> Iterator[int]:
        """Open the folder `names`, from the root without following links.

        Args:
            names: the components of its path; none for the root itself.

        Raises:
            Refusal: it is not a folder, or a part of its path is missing or is a link.
        """
        root = self._root()
        try:
            folder = _reach(root, names)
        finally:
            os.close(root)
        try:
            yield folder
        finally:
            os.close(folder)

    def _root(self) -> int:
        try:
            folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise
            raise Refusal(f"the working folder is no longer there: {_GONE}", denied=True) from e
        if _place(os.fstat(folder)) != self._identity:
            os.close(folder)
            raise Refusal(f"the working folder is not the same as before: {_GONE}", denied=True)
        return folder


_GONE = "it was moved, removed or replaced, and anything in its place is left alone"


def _place(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def stepwise(root: int, names: Sequence[str]) -> int:
    """Open the folder that `names` lead to from the open folder `root`, one by one. Raises `OSError`."""
    folder = os.dup(root)
    for name in names:
        outer = folder
        try:
            folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=outer)
        finally:
            os.close(outer)
    return folder


def opener() -> Callable[[int, Sequence[str]], int]:
    """Return the function that opens a folder below another one: in one step, or one component at a time."""
    from agentkit_tools.folder import beneath  # ctypes: on first use

    return beneath.beneath if beneath.works() else stepwise


def _reach(root: int, names: Sequence[str]) -> int:
    try:
        return opener()(root, names)
    except OSError as e:
        raise _blocked_component(root, names) from e


def judge(folder: int, names: Sequence[str], depth: int) -> None:
    """Refuse an entry of an open folder that is a git repository, or would be one with it."""
    if is_repository(folder, names[depth]):
        where = "/".join(names[:depth]) or "the working folder"
        raise Refusal(
            f"{'/'.join(names)!r} may be read but not written: with it, {where} is a git repository without the name "
            ".git, and git runs commands from it",
            denied=True,
        )


def _blocked_component(root: int, names: Sequence[str]) -> Refusal:
    """Return the component of `names` that cannot be entered, and why; looks again only for the message."""
    outer = os.dup(root)
    try:
        for depth, name in enumerate(names, 1):
            try:
                inner = stepwise(outer, [name])
            except OSError as e:
                return refusal(e, outer, name, "/".join(names[:depth]))
            os.close(outer)
            outer = inner
    finally:
        os.close(outer)
    return Refusal(f"{'/'.join(names)!r} changed while it was being opened; try again")


def parts(path: str, parameter: str = "file_path") -> list[str]:
    """The components of a file's path. Raises `Refusal` for anything that could lead outside; opens nothing."""
    names = folder_parts(path, parameter)
    if not names or path.endswith(("/", "/.")):
        raise Refusal(f"{parameter} {brief(path)} does not name a file; {_ADVICE}")
    return names


def folder_parts(path: str, parameter: str = "folder") -> list[str]:
    """The components of a folder's path; none for the working folder itself, `.`."""
    for pattern, found in FORBIDDEN.items():
        if re.search(pattern, path):
            raise Refusal(f"{parameter} {brief(path)} {found}; {_ADVICE}")
    names = [name for name in path.split("/") if name not in ("", ".")]
    longest = max((len(encode(parameter, name)) for name in names), default=0)
    if longest > MAX_NAME or len(path.encode()) > MAX_PATH:
        raise Refusal(
            f"{parameter} {brief(path)} is too long: at most {MAX_NAME} bytes per name and {MAX_PATH} bytes in total"
        )
    return names


_ADVICE = "use a path relative to the working folder, such as src/main.py"

FORBIDDEN = {
    r"\x00": "contains a NUL character",
    r"^/": "is absolute",
    r"^~": "starts with ~, which is not expanded here",
    r"^[A-Za-z]:": "starts with a drive letter",
    r"\\": "contains a backslash; separate folders with /",
    r"(^|/)\.\.(/|$)": "contains .., which could leave the folder",
}


def brief(text: str) -> str:
    """The text, quoted, with its middle omitted if it is long."""
    return repr(text if len(text) <= 120 else f"{text[:80]}…{text[-30:]}")


def encode(parameter: str, text: str) -> bytes:
    """Encode text in UTF-8. Raises `Refusal` for a lone surrogate, which no file can contain."""
    try:
        return text.encode()
    except UnicodeEncodeError as e:
        raise Refusal(f"{parameter} cannot be written as UTF-8: character {e.start} is a lone surrogate") from e


def refusal(error: OSError, folder: int, name: str, path: str) -> Refusal:
    """Return why `name` could not be opened in `folder`. Looks again only for the message."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        entries = sorted(name for name in os.listdir(folder) if not is_draft(name))
        listed = ", ".join(map(repr, entries[:20])) + (f" and {len(entries) - 20} more" if len(entries) > 20 else "")
        return Refusal(f"{path!r} does not exist; its folder contains {listed or 'nothing'}")
    if stat.S_ISREG(mode) and isinstance(error, NotADirectoryError):
        return Refusal(f"{path!r} is a file, not a folder")
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return Refusal(f"{path!r} cannot be opened: {error.strerror}")
    return Refusal(f"{path!r} is {kind(mode)}; only regular files and folders are opened", denied=True)


KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind(mode: int) -> str:
    """The name of this kind of directory entry."""
    return KINDS.get(stat.S_IFMT(mode), "a special file")
