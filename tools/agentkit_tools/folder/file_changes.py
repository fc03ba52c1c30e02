"""Changes to the files of one folder: created, rewritten, edited, moved, deleted. Knows paths and contents.

Each is made while the lock of the file's folder is held, by a new file that takes the old one's place, after a last
look for a change by another program (`agentkit_tools.folder.atomic_replace`).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from agentkit_tools.folder.atomic_replace import FileReplaced, add, identity, lock_folder, replace, reserve_name, sweep
from agentkit_tools.folder.rooted_folder import Refusal, RootedFolder, encode, judge, kind, refusal
from agentkit_tools.folder.textfiles import MAX_BYTES, line_of, read_text

ATTEMPTS = 5  # to change a file that other programs keep changing without taking the lock
CRLF_KEPT = "; the new lines end with CRLF, as all lines of the file do"


def create(place: RootedFolder, path: str, text: str, parameter: str = "file_contents") -> int:
    """Create a file and its missing folders; returns its size. An existing file is not changed."""
    names = place.writable(path)
    content = encode(parameter, text)
    with place.lock_entry(names, make=True) as folder, refuse_taken(path, "change it with str_replace"):
        add(folder, names[-1], content)
    return len(content)


@contextmanager
def refuse_taken(path: str, advice: str) -> Iterator[None]:
    """Refuse the use of a new name that is taken, or that another program takes in the meantime."""
    try:
        yield
    except FileExistsError as e:
        raise Refusal(f"{path!r} already exists and was not changed; {advice}") from e
    except FileReplaced as e:
        raise Refusal(f"another program changed {path!r} while it was being created; read it") from e


def rewrite(place: RootedFolder, path: str, text: str) -> int:
    """Replace the complete contents of an existing file; returns its size."""
    names = place.writable(path)
    content = encode("file_contents", text)
    with place.lock_entry(names) as folder:
        try:
            replace(folder, names[-1], content, regular(folder, names[-1], path))
        except FileReplaced as e:
            raise Refusal(
                f"{path!r} was not rewritten: another program changed it in the meantime; read it again"
            ) from e
    return len(content)


class Edit(NamedTuple):
    """The new contents of a file, and the lines, counted from 1, at which something was changed.

    Attributes:
        content: the new contents.
        lines: the first of these lines.
        times: how often something was replaced.
        ends: a note if the new text has the file's line ends instead of those given; empty otherwise.
    """

    content: bytes
    lines: list[int]
    times: int = 1
    ends: str = ""


def edit(place: RootedFolder, names: list[str], path: str, change: Callable[[bytes], Edit]) -> Edit:
    """Change a text file by a function of its contents, which is called again if another program was quicker."""
    with place.lock_entry(names) as folder:
        for _ in range(ATTEMPTS):
            with suppress(FileReplaced):
                content, status = read_text(folder, names[-1], path)
                if status.st_size > MAX_BYTES:
                    raise Refusal(
                        f"{path!r} has {status.st_size} bytes; only files of up to {MAX_BYTES} can be changed"
                    )
                done = change(content)
                replace(folder, names[-1], done.content, status)
                return done
    raise Refusal(f"{path!r} was not changed: another program keeps changing it; try again later")


def replacement(old_str: str, new_str: str, path: str, *, every: bool = False) -> Callable[[bytes], Edit]:
    """Return the change of a file that replaces the only occurrence of a piece, or every one from left to right."""
    given_old, given_new = encode("old_str", old_str), encode("new_str", new_str)
    if not given_old or given_old == given_new:
        raise Refusal("old_str is empty" if not given_old else "old_str and new_str are the same: nothing would change")

    def change(content: bytes) -> Edit:
        old, new = with_ends_of(content, given_old, given_new)
        if every:
            times = content.count(old)
            if not times:
                raise missing(content, old, path, "at least 1")
        else:
            only_place(content, old, path)
            times = 1
        size = len(content) + times * (len(new) - len(old))
        if size > MAX_BYTES:
            raise Refusal(f"{path!r} would have {size} bytes; only files of up to {MAX_BYTES} can be written")
        ends = CRLF_KEPT if new != given_new else ""
        return Edit(content.replace(old, new), [line_of(content, start) for start in first(content, old)], times, ends)

    return change


def with_ends_of(content: bytes, *texts: bytes) -> tuple[bytes, ...]:
    """The texts with the file's line ends: in a file of CRLF lines a plain newline is meant as CRLF."""
    if any(b"\r" in text for text in texts) or b"\n" not in content:
        return texts
    if content.count(b"\n") != content.count(b"\r\n"):
        return texts
    return tuple(text.replace(b"\n", b"\r\n") for text in texts)


def first(content: bytes, old: bytes, most: int = 10, *, overlaps: bool = False) -> list[int]:
    """The offsets of the first occurrences of `old`."""
    places: list[int] = []
    start = content.find(old)
    while start != -1 and len(places) < most:
        places.append(start)
        start = content.find(old, start + (1 if overlaps else len(old)))
    return places


def only_place(content: bytes, old: bytes, path: str) -> int:
    """The offset of `old` in `content`. Raises `Refusal` unless it occurs exactly once, counting overlaps."""
    match places := first(content, old, 100, overlaps=True):
        case [place]:
            return place
        case []:
            raise missing(content, old, path, "exactly 1")
        case _:
            count = f"{len(places)} times" if len(places) < 100 else "100 times or more"
            lines = ", ".join(str(line_of(content, place)) for place in places[:10])
            raise Refusal(
                f"old_str occurs {count} in {path!r} (lines {lines}{', …' if len(places) > 10 else ''}), expected "
                "exactly 1; include more of the surrounding text"
            )


def missing(content: bytes, old: bytes, path: str, expected: str) -> Refusal:
    """Return why nothing was replaced, with a hint at white space."""
    loose = old.strip() and content.count(old.strip())
    hint = f"without the surrounding white space it occurs {loose} times; " if loose else ""
    return Refusal(
        f"old_str occurs 0 times in {path!r}, expected {expected}; {hint}"
        "read the file and copy the piece exactly, including indentation and line ends"
    )


def delete(place: RootedFolder, path: str) -> str:
    """Delete a file or an empty folder; returns which of the two it was."""
    names = place.writable(path)
    with suppress(Refusal, OSError), place.open_folder(names) as folder:
        sweep(folder)  # it may be empty but for these
    with place.lock_entry(names) as folder:
        if stat.S_ISDIR(status_of(folder, names[-1], path).st_mode):
            try:
                os.rmdir(names[-1], dir_fd=folder)
            except OSError as e:
                if e.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                raise Refusal(
                    f"{path!r} is a folder that is not empty; only files and empty folders are deleted, so delete "
                    "what it contains first"
                ) from e
            return "folder"
        regular(folder, names[-1], path)
        os.unlink(names[-1], dir_fd=folder)
    return "file"


def move(place: RootedFolder, path: str, new_path: str) -> None:
    """Move a file to a name that is not taken, and create that name's missing folders."""
    names, target = place.writable(path), place.writable(new_path, "new_path")
    with place.lock_entry(names) as folder:
        regular(folder, names[-1], path)  # before any folder is created for it
    with place.lock_entry(target, make=True):
        pass
    with ExitStack() as held:
        folder, other = held.enter_context(place.folder(names)), held.enter_context(place.folder(target))
        for one in in_order(folder, other):
            held.enter_context(lock_folder(one))
        judge(other, target, len(target) - 1)
        regular(folder, names[-1], path)
        advice = "delete it first, or choose another name"
        with refuse_taken(new_path, advice), reserve_name(other, target[-1]) as empty:
            if identity(os.stat(target[-1], dir_fd=other, follow_symlinks=False)) != identity(empty):
                raise FileReplaced
            os.rename(names[-1], target[-1], src_dir_fd=folder, dst_dir_fd=other)


def in_order(*folders: int) -> list[int]:
    """Each folder once, in an order that is the same for everyone, so that no two moves wait for each other."""
    places = {(status.st_dev, status.st_ino): one for one in folders for status in [os.fstat(one)]}
    return [places[place] for place in sorted(places)]


def regular(folder: int, name: str, path: str) -> os.stat_result:
    """The status of a file. Raises `Refusal` for anything else."""
    status = status_of(folder, name, path)
    if stat.S_ISDIR(status.st_mode):
        raise Refusal(f"{path!r} is a folder, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise Refusal(f"{path!r} is {kind(status.st_mode)}; only regular files are changed", denied=True)
    return status


def status_of(folder: int, name: str, path: str) -> os.stat_result:
    """Return the status of the entry; a link is not followed."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError as e:
        raise refusal(e, folder, name, path) from e
