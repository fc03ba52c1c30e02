"""Creates or replaces a file atomically: only its content changes, and no change made by this module is lost.

Knows open folders and names in them, and the operating system; knows no paths and no tool. All users of this module, in
any instance or process, hold the lock of the folder during a change. Programs that do not take the lock, such as
editors, are detected by the file's identity and times, checked just before the new file takes its place; a change saved
in the microseconds between is lost.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

LOCK_SECONDS: Final = 20.0
"""How long to wait for another change; a change takes milliseconds."""

_NO_LOCKS: Final = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, errno.EINVAL}
"""Errors from file systems that cannot lock folders, such as NFS, which requires a folder to be open for writing."""

_ITS_CONTENTS_OWN: Final = {"security.capability", "security.ima", "security.evm"}
"""Attributes that certify the content: the system removes them when a file is written to, as this code does."""

_DRAFT: Final = ".agentkit-{}.tmp"
_FIRST: Final = _DRAFT.format("0" * 16)  # the same each time, so that one which a killed process left is met again
_IS_DRAFT: Final = re.compile(r"\.agentkit-[0-9a-f]{16}\.tmp")

ABANDONED: Final = 600.0
"""Seconds after which a draft is one that a killed process left. It is written within milliseconds."""

_HERE: Final = threading.Lock()  # if the file system has no locks: at least between the threads of this process


class FileReplaced(Exception):
    """The file differs from the one that was read: another program changed it in the meantime. Nothing was done."""


@contextmanager
def lock_folder(folder: int) -> Iterator[None]:
    """Hold the lock of an open folder, exclusive among all threads and processes of this machine.

    Raises:
        TimeoutError: it is held for longer than any change takes.
    """
    give_up = time.monotonic() + LOCK_SECONDS
    pause = 0.0005
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > give_up:
                raise TimeoutError(
                    errno.ETIMEDOUT, f"another program has kept the folder locked for {LOCK_SECONDS:g} s"
                ) from None
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
        except OSError as e:
            if e.errno not in _NO_LOCKS:
                raise
            with _HERE:
                yield
            return
    try:
        yield
    finally:
        fcntl.flock(folder, fcntl.LOCK_UN)


def identity(status: os.stat_result) -> tuple[int, ...]:
    """The parts of a file's status that change when it is replaced or written to."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def is_draft(name: str) -> bool:
    """Return True for a file that is being written, or that a killed process left unfinished; models see neither."""
    return _IS_DRAFT.fullmatch(name) is not None


def sweep(folder: int) -> None:
    """Remove the drafts that killed processes left in an open folder. The first one stays as long as any other does."""
    written: dict[str, float] = {}
    for name in filter(is_draft, os.listdir(folder)):
        with suppress(FileNotFoundError):
            written[name] = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
    until = time.time() - ABANDONED
    old = {name for name, when in written.items() if when < until}
    for name in old if old == written.keys() else old - {_FIRST}:  # it is what makes a later change look for them
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)


def add(folder: int, name: str, content: bytes) -> None:
    """Create a file, which is there with its whole content or not at all.

    Args:
        folder: the open folder.
        name: the file's name in it.
        content: the complete content.

    Raises:
        FileExistsError: the name is taken.
        FileReplaced: another program changed the file while it was being created.
        OSError: a system error. Nothing was changed.
    """
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
    with _draft(folder, content, 0o666) as (draft, handle):
        os.fsync(handle)
        try:
            os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links, such as FAT
            with reserve_name(folder, name) as empty:
                if identity(_status(folder, name)) != identity(empty):
                    raise FileReplaced from None
                os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            os.unlink(draft, dir_fd=folder)


@contextmanager
def reserve_name(folder: int, name: str) -> Iterator[os.stat_result]:
    """Reserve an unused name with an empty file, whose permissions come from the umask and the folder.

    If the block fails, the empty file is removed; not after `FileReplaced`, when it is another program's.

    Raises:
        FileExistsError: the name is taken.
    """
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder)
    try:
        status = os.fstat(handle)
    finally:
        os.close(handle)
    try:
        yield status
    except FileReplaced:
        raise
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise


def replace(folder: int, name: str, content: bytes, found: os.stat_result) -> None:
    """Replace a file's content atomically, keeping its owner, mode, access list and attributes.

    Args:
        folder: the open folder.
        name: the file's name in it.
        content: the complete new content.
        found: the file's status when it was read.

    Raises:
        FileReplaced: the file was replaced or has changed.
        OSError: a system error, for example the owner cannot be kept. Nothing was changed.
    """
    with _draft(folder, content, 0o600) as (draft, handle):
        model = _open_old(folder, name, found)
        try:
            _keep(handle, model, found)
        finally:
            os.close(model)
        os.fsync(handle)
        if identity(_status(folder, name)) != identity(found):
            raise FileReplaced
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


def put(folder: int, name: str, content: bytes) -> None:
    """Put a new file, for its owner only, in the place of anything with this name: for internal files.

    Args:
        folder: the open folder.
        name: the file's name in it.
        content: the complete content.

    Raises:
        OSError: a system error. Nothing was changed.
    """
    with _draft(folder, content, 0o600) as (draft, handle):
        os.fsync(handle)
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


@contextmanager
def _draft(folder: int, content: bytes, mode: int) -> Iterator[tuple[str, int]]:
    """A new file with this content, open, under a new name; removed after an error, otherwise the caller's."""
    draft, handle = _new_draft(folder, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            yield draft, handle
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        raise


def _new_draft(folder: int, mode: int) -> tuple[str, int]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with suppress(FileExistsError):
        return _FIRST, os.open(_FIRST, flags, mode, dir_fd=folder)
    sweep(folder)  # or it is being written now, on a file system that cannot lock folders
    with suppress(FileExistsError):
        return _FIRST, os.open(_FIRST, flags, mode, dir_fd=folder)
    other = _DRAFT.format(secrets.token_hex(8))
    return other, os.open(other, flags, mode, dir_fd=folder)


def _status(folder: int, name: str) -> os.stat_result:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        raise FileReplaced from None


def _open_old(folder: int, name: str, found: os.stat_result) -> int:
    """The file to be replaced, open, and the status of the one that was read."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=folder)
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ELOOP):
            raise FileReplaced from None
        raise
    if identity(os.fstat(handle)) != identity(found):
        os.close(handle)
        raise FileReplaced
    return handle


def _keep(new: int, old: int, found: os.stat_result) -> None:
    """Give a new file the metadata of the old one. The owner first: changing it clears bits of the mode."""
    made = os.fstat(new)
    if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
        try:
            os.fchown(
                new,
                -1 if made.st_uid == found.st_uid else found.st_uid,
                -1 if made.st_gid == found.st_gid else found.st_gid,
            )
        except PermissionError as e:
            owner = f"user {found.st_uid} and group {found.st_gid}"
            raise PermissionError(e.errno, f"the file belongs to {owner}, which could not be kept") from e
    if hasattr(os, "listxattr"):  # Linux, where an access list is also an attribute
        _keep_attributes(new, old)
    os.fchmod(new, stat.S_IMODE(found.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))  # as the system does on writing


def _keep_attributes(new: int, old: int) -> None:
    there, wanted = _attributes(new), _attributes(old)
    for name in there.keys() - wanted.keys():  # for example an access list inherited from the folder
        os.removexattr(new, name)
    for name, value in wanted.items():
        if there.get(name) == value:
            continue
        try:
            os.setxattr(new, name, value)
        except OSError as e:
            what = f"its extended attribute {name!r} could not be kept ({e.strerror})"
            raise OSError(e.errno, what) from e


def _attributes(handle: int) -> dict[str, bytes]:
    try:
        names = os.listxattr(handle)
    except OSError as e:
        if e.errno in (errno.ENOTSUP, errno.ENOSYS):
            return {}
        raise
    return {name: os.getxattr(handle, name) for name in names if name not in _ITS_CONTENTS_OWN}
