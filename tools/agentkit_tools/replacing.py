"""A file put in the place of another: nothing but its content changes, and nobody else's change is lost.

Knows open folders and names in them, and the operating system; no paths and no tool. Who changes files by this module
holds the lock of their folder meanwhile, whatever instance or process it is. Who does not know the lock, such as an
editor, is noticed by the file's identity and times, looked at last before the new one takes its place.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

LOCK_SECONDS: Final = 20.0
"""How long another one's change is waited for; one takes milliseconds."""

_NO_LOCKS: Final = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, errno.EINVAL}
"""What file systems without locks on folders say, such as NFS, which wants a folder to be open for writing."""

_ITS_CONTENTS_OWN: Final = {"security.capability", "security.ima", "security.evm"}
"""Attributes that vouch for the content: the system takes them from a file that is written to, and so do we."""

_HERE: Final = threading.Lock()  # where the file system has no locks: among the threads of this process at least


class Replaced(Exception):
    """The file is not the one that was read: another program changed it meanwhile. Nothing was done."""


@contextmanager
def locked(folder: int) -> Iterator[None]:
    """Hold the lock of an open folder: one at a time, over all threads and processes of this machine.

    Raises:
        TimeoutError: another one holds it for longer than any change takes.
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
    """What changes when a file is replaced or written to."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def replace(folder: int, name: str, content: bytes, found: os.stat_result) -> None:
    """Put `content` in the place of a file, in one step, with its owner, mode, access list and attributes.

    Args:
        folder: the open folder.
        name: of the file in it.
        content: all of it.
        found: the file as it was when it was read.

    Raises:
        Replaced: the file there is another one, or has changed.
        OSError: the system refused, such as to keep the owner. Nothing was changed.
    """
    draft = f".agentkit-{secrets.token_hex(8)}.tmp"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            model = _opened(folder, name, found)
            try:
                _keep(handle, model, found)
            finally:
                os.close(model)
            os.fsync(handle)
            if identity(_status(folder, name)) != identity(found):
                raise Replaced
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        raise


def _status(folder: int, name: str) -> os.stat_result:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        raise Replaced from None


def _opened(folder: int, name: str, found: os.stat_result) -> int:
    """The file that is to be replaced, open, and the one that was read."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=folder)
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ELOOP):
            raise Replaced from None
        raise
    if identity(os.fstat(handle)) != identity(found):
        os.close(handle)
        raise Replaced
    return handle


def _keep(new: int, old: int, found: os.stat_result) -> None:
    """Give a new file what is not content of an old one. The owner first: a change of it takes bits of the mode."""
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
            raise PermissionError(e.errno, f"the file belongs to {owner}, which a new text could not keep") from e
    if hasattr(os, "listxattr"):  # Linux; there an access list is an attribute, too
        _keep_attributes(new, old)
    os.fchmod(new, stat.S_IMODE(found.st_mode))


def _keep_attributes(new: int, old: int) -> None:
    there, wanted = _attributes(new), _attributes(old)
    for name in there.keys() - wanted.keys():  # such as an access list that the folder gives to new files
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
