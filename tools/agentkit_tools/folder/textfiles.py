"""Text files read for a model, in part or whole. Knows open folders and names; changes nothing."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from agentkit_tools.folder.rooted_folder import Refusal, RootedFolder, kind, parts, refusal

MAX_BYTES = 10_000_000  # of a file that are ever read: ten times the longest source file in large public repositories
MAX_CHARACTERS = 80_000  # of one answer: about 20,000 tokens, below a processor's default limit


class FileContents(NamedTuple):
    """The contents of a file, at most its first `MAX_BYTES` bytes, and its status."""

    content: bytes
    status: os.stat_result

    @property
    def size(self) -> int:
        """Its total size in bytes."""
        return self.status.st_size


def read_text(folder: int, name: str, path: str) -> FileContents:
    """Read a text file. Raises `Refusal` for anything else."""
    file = read_file(folder, name, path)
    if b"\0" in file.content[:8192]:
        raise Refusal(f"{path!r} is binary ({file.size} bytes, with NUL near the beginning), not text")
    return file


def read_file(folder: int, name: str, path: str) -> FileContents:
    """Read a regular file of any content. Raises `Refusal` for anything else; waits for nothing."""
    try:
        # O_NONBLOCK: otherwise opening a pipe without a writer would block; it is recognised once open.
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=folder)
    except OSError as e:
        raise refusal(e, folder, name, path) from e
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Refusal(f"{path!r} is {kind(status.st_mode)}, not a file")
        return FileContents(_content(handle, status.st_size), status)
    finally:
        os.close(handle)


def _content(handle: int, size: int) -> bytes:
    """The first `MAX_BYTES` bytes; `size` is only expected, since the file may be growing."""
    pieces: list[bytes] = []
    wanted = MAX_BYTES
    while wanted > 0 and (piece := os.read(handle, min(wanted, max(size + 1, 65_536)))):
        pieces.append(piece)
        wanted -= len(piece)
    return b"".join(pieces)


def read(place: RootedFolder, path: str, offset: int, limit: int) -> str:
    """Read some lines of a file; a note at the end says what is missing."""
    if offset < 1 or limit < 1:
        raise Refusal(f"offset and limit count lines from 1, got offset={offset}, limit={limit}")
    names = parts(path)
    with place.folder(names) as folder:
        file = read_text(folder, names[-1], path)
    lines = lines_of(file.content)
    if offset > max(len(lines), 1):
        raise Refusal(f"{path!r} has {len(lines)} lines; offset={offset} is past its end")
    shown = fitting(lines[offset - 1 : offset - 1 + limit])
    return "".join(shown) + marks(file, lines, offset, shown)


def lines_of(content: bytes) -> list[str]:
    """The lines of a text, each with its end, cut at newlines only: `str.splitlines` would also cut at form feeds."""
    return list(io.StringIO(content.decode("utf-8", errors="replace")))


def line_of(content: bytes, place: int) -> int:
    """The line, counted from 1, that holds the byte at `place`."""
    return content.count(b"\n", 0, place) + 1


def fitting(lines: Sequence[str]) -> Sequence[str]:
    """Return as many of the first lines as fit into one answer; if the first line is longer, its beginning."""
    room = MAX_CHARACTERS
    for count, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            return lines[:count] or [line[:MAX_CHARACTERS]]
    return lines


def marks(file: FileContents, lines: Sequence[str], offset: int, shown: Sequence[str]) -> str:
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
    """Return True if the bytes are UTF-8, ignoring a truncated character at the end."""
    try:
        content.decode()
    except UnicodeDecodeError as e:
        return e.end == len(content) and e.reason == "unexpected end of data" and len(content) == MAX_BYTES
    return True
