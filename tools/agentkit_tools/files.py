"""Files in one folder: create, read, change. Knows agentkit's public API and the operating system; follows no links.

A path is split before anything is opened, and then walked folder by folder, each opened relative to the previous one
without following links (`openat` with `O_NOFOLLOW`). So nothing can be swapped between a check and its use: nothing is
checked by name. Needs a POSIX system.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from agentkit import Tool, ToolResult, openapi_schema, xml_schema
from agentkit_tools.protected import PROTECTED, why_protected
from agentkit_tools.replacing import Replaced, locked, replace

MAX_BYTES = 10_000_000  # of a file that are ever read: ten times the longest source file in large public repositories
MAX_CHARACTERS = 80_000  # of one answer: about 20,000 tokens, below a processor's default limit
MAX_PATH = 4096  # bytes: PATH_MAX of Linux
MAX_NAME = 255  # bytes: NAME_MAX of every common file system
ATTEMPTS = 5  # to change a file that other programs keep changing without taking the lock


class Refusal(Exception):
    """Why a file operation is refused, in words for the model."""

    def __init__(self, message: str, *, denied: bool = False) -> None:
        super().__init__(message)
        self.result = ToolResult(error=message, code="denied" if denied else "tool_error")


class Files(Tool):
    """Creates, reads and changes text files in one folder, and reaches nothing outside it.

    Refused before anything is opened: `..`, absolute paths, `~`, drive letters, backslashes, NUL, over-long names.
    Refused while walking: symbolic links regardless of their target, pipes, devices, sockets. A file is changed by
    writing a new one next to it and renaming it, so that readers see either the old or the new text, never a mixture;
    its owner, mode, access list and extended attributes are preserved, or it is not changed.

    Any number of instances, in any number of processes on one machine, may work on the same files: a change holds the
    lock of the file's folder. Concurrent changes by other programs are not overwritten. On a file system that cannot
    lock a folder, such as NFS, only this last check separates two processes, which leaves a short window in which a
    change can be lost.

    Args:
        root: the folder, by default the current one; created if missing. The tool is tied to this very folder: if
            another one, or a link, takes its place later, everything is refused.
        protected: what may be read but not written, including everything below: names, possibly with `*`, or paths such
            as `.github/workflows`; case-insensitive. By default `PROTECTED`, a set that can be extended.
    """

    def __init__(self, root: str | Path = ".", *, protected: Collection[str] = PROTECTED) -> None:
        if os.open not in os.supports_dir_fd:
            raise OSError("Files needs a POSIX system: this one cannot open a file relative to a folder")
        self.root = Path(root).resolve()
        self.root.mkdir(parents=True, exist_ok=True)
        self.protected = frozenset(protected)
        self._identity = _place(os.stat(self.root))

    @openapi_schema
    @xml_schema(name="create-file", attributes=["file_path"], content="file_contents")
    def create_file(self, file_path: str, file_contents: str) -> ToolResult:
        """Create a new text file, and any missing folders. An existing file is not changed.

        Args:
            file_path: path relative to the working folder, such as src/main.py
            file_contents: the complete text, written exactly as given
        """
        return answer(lambda: self._create(file_path, file_contents))

    @openapi_schema
    @xml_schema(name="read-file", attributes=["file_path", "offset", "limit"])
    def read_file(self, file_path: str, offset: int = 1, limit: int = 2000) -> ToolResult:
        """Read a text file. A long file is cut; a last line in square brackets then says how to continue.

        Args:
            file_path: path relative to the working folder
            offset: the first line to read, counted from 1
            limit: maximum number of lines to read
        """
        return answer(lambda: self._read(file_path, offset, limit))

    @openapi_schema
    @xml_schema(name="str-replace", attributes=["file_path"], elements=["old_str", "new_str"])
    def str_replace(self, file_path: str, old_str: str, new_str: str) -> ToolResult:
        """Replace a piece of a text file. The piece must occur exactly once.

        Args:
            file_path: path relative to the working folder
            old_str: the text to replace, exactly as in the file, with enough context to occur only once
            new_str: the replacement; empty to delete the piece
        """
        return answer(lambda: self._replace(file_path, old_str, new_str))

    def _create(self, file_path: str, file_contents: str) -> str:
        names = self._writable(file_path)
        content = encoded("file_contents", file_contents)
        with self._folder(names, make=True) as folder, locked(folder):
            empty = reserve(folder, names[-1], file_path)
            try:
                replace(folder, names[-1], content, empty)
            except Replaced as e:
                raise Refusal(f"another program changed {file_path!r} while it was being created; read it") from e
            except BaseException:
                os.unlink(names[-1], dir_fd=folder)
                raise
        return f"created {file_path} ({len(content)} bytes)"

    def _read(self, file_path: str, offset: int, limit: int) -> str:
        if offset < 1 or limit < 1:
            raise Refusal(f"offset and limit count lines from 1, got offset={offset}, limit={limit}")
        names = parts(file_path)
        with self._folder(names) as folder:
            file = opened(folder, names[-1], file_path)
        text = file.content.decode("utf-8", errors="replace")
        lines = list(io.StringIO(text))  # at \n only: str.splitlines would also cut at form feeds and U+2028
        if offset > max(len(lines), 1):
            raise Refusal(f"{file_path!r} has {len(lines)} lines; offset={offset} is past its end")
        shown = fitting(lines[offset - 1 : offset - 1 + limit])
        return "".join(shown) + marks(file, lines, offset, shown)

    def _replace(self, file_path: str, old_str: str, new_str: str) -> str:
        names = self._writable(file_path)
        old, new = encoded("old_str", old_str), encoded("new_str", new_str)
        if not old or old == new:
            raise Refusal("old_str is empty" if not old else "old_str and new_str are the same: nothing would change")
        with self._folder(names) as folder, locked(folder):
            for _ in range(ATTEMPTS):
                with suppress(Replaced):
                    line = exchange(folder, names[-1], old, new, file_path)
                    return f"replaced 1 occurrence in {file_path}, line {line}"
        raise Refusal(f"{file_path!r} was not changed: another program keeps changing it; try again later")

    def _writable(self, file_path: str) -> list[str]:
        names = parts(file_path)
        why = why_protected(names, self.protected)
        if why is not None:
            raise Refusal(f"{file_path!r} may be read but not written: {why}", denied=True)
        return names

    @contextmanager
    def _folder(self, names: list[str], *, make: bool = False) -> Iterator[int]:
        """The open folder that contains the last of `names`, reached from the root without following links."""
        folder = self._opened_root()
        try:
            for depth in range(1, len(names)):
                outer, folder = folder, self._enter(folder, names[:depth], make)
                os.close(outer)
            yield folder
        finally:
            os.close(folder)

    def _opened_root(self) -> int:
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

    def _enter(self, outer: int, names: list[str], make: bool) -> int:
        if make:
            with suppress(FileExistsError):
                os.mkdir(names[-1], dir_fd=outer)
        try:
            return os.open(names[-1], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=outer)
        except OSError as e:
            raise refusal(e, outer, names[-1], "/".join(names)) from e


_GONE = "it was moved, removed or replaced, and anything in its place is left alone"


def _place(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def answer(act: Callable[[], str]) -> ToolResult:
    """The result of an operation; refusals and operating system errors become errors for the model."""
    try:
        return ToolResult(output=act())
    except Refusal as e:
        return e.result
    except OSError as e:
        return ToolResult(error=f"system error: {e.strerror or e}", code="tool_error")


def parts(file_path: str) -> list[str]:
    """The components of a path. Raises `Refusal` for anything that could lead outside the folder; opens nothing."""
    advice = "use a path relative to the working folder, such as src/main.py"
    for pattern, found in FORBIDDEN.items():
        if re.search(pattern, file_path):
            raise Refusal(f"file_path {brief(file_path)} {found}; {advice}")
    names = [name for name in file_path.split("/") if name not in ("", ".")]
    if not names or file_path.endswith(("/", "/.")):
        raise Refusal(f"file_path {brief(file_path)} does not name a file; {advice}")
    longest = max(len(encoded("file_path", name)) for name in names)
    if longest > MAX_NAME or len(file_path.encode()) > MAX_PATH:
        raise Refusal(
            f"file_path {brief(file_path)} is too long: at most {MAX_NAME} bytes per name and {MAX_PATH} bytes in total"
        )
    return names


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


def encoded(parameter: str, text: str) -> bytes:
    """The text in UTF-8. Raises `Refusal` for a lone surrogate, which no file can contain."""
    try:
        return text.encode()
    except UnicodeEncodeError as e:
        raise Refusal(f"{parameter} cannot be written as UTF-8: character {e.start} is a lone surrogate") from e


class Opened(NamedTuple):
    """The contents of a text file, at most its first `MAX_BYTES` bytes, and its status."""

    content: bytes
    status: os.stat_result

    @property
    def size(self) -> int:
        """Its total size in bytes."""
        return self.status.st_size


def opened(folder: int, name: str, file_path: str) -> Opened:
    """Read a text file. Raises `Refusal` for anything else."""
    try:
        # O_NONBLOCK: otherwise opening a pipe without a writer would block; it is recognised once open.
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=folder)
    except OSError as e:
        raise refusal(e, folder, name, file_path) from e
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Refusal(f"{file_path!r} is {kind(status.st_mode)}, not a file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(MAX_BYTES)
    finally:
        os.close(handle)
    if b"\0" in content[:8192]:
        raise Refusal(f"{file_path!r} is binary ({status.st_size} bytes, with NUL near the beginning), not text")
    return Opened(content, status)


def refusal(error: OSError, folder: int, name: str, path: str) -> Refusal:
    """Why `name` could not be opened in `folder`. Looks again only for the message."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        entries = sorted(os.listdir(folder))
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


def reserve(folder: int, name: str, file_path: str) -> os.stat_result:
    """Reserve an unused name with an empty file; its permissions come from the umask and the folder."""
    try:
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder)
    except FileExistsError as e:
        raise Refusal(f"{file_path!r} already exists and was not changed; change it with str_replace") from e
    try:
        return os.fstat(handle)
    finally:
        os.close(handle)


def exchange(folder: int, name: str, old: bytes, new: bytes, file_path: str) -> int:
    """Replace the only occurrence of `old` in a file; returns its line."""
    content, status = opened(folder, name, file_path)
    if status.st_size > MAX_BYTES:
        raise Refusal(f"{file_path!r} has {status.st_size} bytes; only files of up to {MAX_BYTES} can be changed")
    if b"\r" not in old + new and b"\n" in content and content.count(b"\n") == content.count(b"\r\n"):
        old, new = old.replace(b"\n", b"\r\n"), new.replace(b"\n", b"\r\n")
    start = only_place(content, old, file_path)
    replace(folder, name, content[:start] + new + content[start + len(old) :], status)
    return line_of(content, start)


def only_place(content: bytes, old: bytes, file_path: str) -> int:
    """The offset of `old` in `content`. Raises `Refusal` unless it occurs exactly once, counting overlaps."""
    places: list[int] = []
    start = content.find(old)
    while start != -1 and len(places) < 100:
        places.append(start)
        start = content.find(old, start + 1)
    match places:
        case [place]:
            return place
        case []:
            loose = old.strip() and content.count(old.strip())
            hint = f"without the surrounding white space it occurs {loose} times; " if loose else ""
            raise Refusal(
                f"old_str occurs 0 times in {file_path!r}, expected exactly 1; {hint}"
                "read the file and copy the piece exactly, including indentation and line ends"
            )
        case _:
            count = f"{len(places)} times" if start == -1 else "100 times or more"
            lines = ", ".join(str(line_of(content, place)) for place in places[:10])
            raise Refusal(
                f"old_str occurs {count} in {file_path!r} (lines {lines}{', …' if len(places) > 10 else ''}), expected "
                "exactly 1; include more of the surrounding text"
            )


def line_of(content: bytes, place: int) -> int:
    """The line, counted from 1, that holds the byte at `place`."""
    return content.count(b"\n", 0, place) + 1


def fitting(lines: list[str]) -> list[str]:
    """As many of the first lines as fit into one answer; if the first line is longer, its beginning."""
    room = MAX_CHARACTERS
    for count, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            return lines[:count] or [line[:MAX_CHARACTERS]]
    return lines


def marks(file: Opened, lines: list[str], offset: int, shown: list[str]) -> str:
    """The note at the end of an answer; empty if it is the complete file."""
    last = offset + len(shown) - 1
    read = len(file.content)
    more = "" if file.size <= read else f"; only the first {read} of the file's {file.size} bytes can be read"
    notes = []
    if not lines:
        notes.append("the file is empty")
    elif shown[-1] != lines[last - 1]:
        notes.append(f"cut: the first {len(shown[-1])} of the {len(lines[last - 1])} characters of line {last}{more}")
    elif last < len(lines):
        notes.append(f"cut: lines {offset}-{last} of {len(lines)}; continue with offset={last + 1}{more}")
    elif more or offset > 1:
        notes.append(f"lines {offset}-{last} of {len(lines)}{more}")
    if not is_utf8(file.content):
        notes.append("not valid UTF-8: U+FFFD replaces what cannot be decoded")
    newline = "" if not shown or shown[-1].endswith("\n") else "\n"
    return newline + f"[{'; '.join(notes)}]" if notes else ""


def is_utf8(content: bytes) -> bool:
    """Whether the bytes are UTF-8, ignoring a truncated character at the end."""
    try:
        content.decode()
    except UnicodeDecodeError as e:
        return e.end == len(content) and e.reason == "unexpected end of data" and len(content) == MAX_BYTES
    return True
