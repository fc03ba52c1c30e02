"""The Linux system call `openat2`: a whole path is walked by the system, which refuses links and every way out.

Called by its number, since neither Python nor most C libraries name it. Knows open folders and names; opens folders
only. On systems without it, `agentkit_tools.folder.rooted_folder` opens one component at a time.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import sys
from collections.abc import Sequence
from typing import Final

_OPENAT2: Final = 437  # the same on every architecture on which Python runs: it is newer than the common numbering
_RESOLVE: Final = 0x08 | 0x04 | 0x02  # BENEATH, NO_SYMLINKS, NO_MAGICLINKS of linux/openat2.h


class _How(ctypes.Structure):
    """`struct open_how`."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@functools.cache
def _syscall() -> ctypes._CFuncPtr:  # type: ignore[name-defined, unused-ignore] # exists in the stubs only
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_How), ctypes.c_size_t)
    return call


def beneath(root: int, names: Sequence[str]) -> int:
    """Open the folder that `names` lead to from the open folder `root`.

    Raises:
        OSError: as of `os.open`; ELOOP for a link, EXDEV for a way out.
    """
    path = "/".join(names) or "."
    how = _How(os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, 0, _RESOLVE)
    while True:
        handle: int = _syscall()(_OPENAT2, root, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
        if handle >= 0:
            return handle
        code = ctypes.get_errno()
        if code != errno.EINTR:  # which a network file system may answer; `os.open` also tries again
            raise OSError(code, os.strerror(code), path)


@functools.cache
def works() -> bool:
    """Return True if this system has the call: Linux 5.6 or newer, unless a sandbox forbids it. Tested once."""
    if sys.platform != "linux":
        return False
    here = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.close(beneath(here, ()))
    except OSError:  # ENOSYS, or whatever a seccomp filter answers for calls that it does not know
        return False
    finally:
        os.close(here)
    return True
