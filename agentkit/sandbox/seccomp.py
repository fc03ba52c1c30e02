"""The filter of system calls, as the kernel's BPF. Pure: a table and an assembler of three instructions."""

from __future__ import annotations

import errno
import platform
import struct
from typing import Final, NamedTuple

DENIED: Final[dict[str, tuple[int | None, int | None]]] = {
    # sockets of every family; `socketpair` stays. Landlock and an empty network namespace do not stop a connection to a
    # Unix socket by path, such as Docker's
    "socket": (41, 198),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "perf_event_open": (298, 241),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # large or obscure parts of the kernel, by which most escapes went
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    # memory and queues shared with everyone who knows their number
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    # the machine
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "syslog": (103, 116),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "ioperm": (173, None),
    "iopl": (172, None),
    "vhangup": (153, 58),
}
"""System calls that fail with EPERM, by number on x86_64 and on aarch64 (None: it does not exist there)."""

BY_PATH: Final[dict[str, tuple[int | None, int | None]]] = {
    "chmod": (90, None),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
"""Changes to a file's mode, owner, times and attributes by path, which Landlock does not see. Denied where nothing else
makes what is outside read-only; by descriptor they stay, because Landlock decides what can be opened."""


OWN: Final[tuple[tuple[tuple[int, int], int, int], ...]] = (
    ((302, 261), 0, 0),  # prlimit64
    ((203, 122), 0, 0),  # sched_setaffinity
    ((142, 118), 0, 0),  # sched_setparam
    ((144, 119), 0, 0),  # sched_setscheduler
    ((314, 274), 0, 0),  # sched_setattr
    ((141, 140), 0, 0),  # setpriority: of a process, not of a group or of all of a user,
    ((141, 140), 1, 0),  # and of this one
    ((251, 30), 0, 1),  # ioprio_set, where the kinds count from 1
    ((251, 30), 1, 0),
)
"""Limits and priorities, which a command may change for its own process alone: the calls, one of their arguments, and
the only value that it may have, which for a process is 0."""

MODES: Final[dict[str, tuple[int | None, int | None, int, int | None]]] = {
    "chmod": (90, None, 1, None),
    "fchmod": (91, 52, 1, None),
    "fchmodat": (268, 53, 2, None),
    "fchmodat2": (452, 452, 2, None),
    "creat": (85, None, 1, None),
    "open": (2, None, 2, 1),
    "openat": (257, 56, 3, 2),
    "mknod": (133, None, 1, None),
    "mknodat": (259, 33, 2, None),
}
"""Calls that give a file its mode: which argument is the mode, and which one has the flags that say whether it counts.

No file gets the bits by which a program runs as its owner or group: outside, it is the owner who started the sandbox.
As the filter cannot tell files from folders, folders do not get them either, as in systemd.
Source: systemd.exec(5), RestrictSUIDSGID."""


class Machine(NamedTuple):
    """The facts about a processor that the filter needs.

    Attributes:
        column: of the tables above.
        audit: how the kernel names the machine.
        clone, clone3, ioctl, utimensat: calls that are judged by their arguments, or fail differently.
        foreign: numbers from here on belong to another ABI (x32).
    """

    column: int
    audit: int
    clone: int
    clone3: int
    ioctl: int
    utimensat: int
    foreign: int | None


MACHINES: Final = {
    "x86_64": Machine(0, 0xC000003E, 56, 435, 16, 280, 0x40000000),
    "aarch64": Machine(1, 0xC00000B7, 220, 435, 29, 88, None),
}

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
ERROR: Final = 0x00050000

NUMBER, AUDIT = 0, 4  # offsets in `struct seccomp_data`
BY_OWNER: Final = 0o6000  # S_ISUID and S_ISGID
CREATING: Final = 0o100 | 0o20000000  # O_CREAT and __O_TMPFILE, the same on both machines
OPENAT2: Final = 437  # on both machines
NEW_NAMESPACES: Final = 0x7E020000  # every CLONE_NEW… flag that `clone` takes
TERMINAL_INPUT: Final = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX: type into the terminal of who called us


def argument(position: int) -> int:
    """Return the offset of the low half of an argument; both machines are little-endian."""
    return 16 + 8 * position


def step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    """One instruction."""
    return struct.pack("HBBI", code, then, otherwise, value)


def known_machine() -> bool:
    """Return True if there is a table for this processor."""
    return platform.machine() in MACHINES


def program(*, by_path: bool = False) -> bytes:
    """The filter for this machine.

    Args:
        by_path: also deny `BY_PATH`.
    """
    machine = MACHINES[platform.machine()]
    refuse = step(RETURN, ERROR | errno.EPERM)
    steps = [
        step(LOAD, AUDIT),
        step(EQUAL, machine.audit, 1, 0),
        step(RETURN, KILL),
        step(LOAD, NUMBER),
    ]
    if machine.foreign is not None:
        steps += [step(AT_LEAST, machine.foreign, 0, 1), step(RETURN, KILL)]
    for numbers in (DENIED | BY_PATH if by_path else DENIED).values():
        if (number := numbers[machine.column]) is not None:
            steps += [step(EQUAL, number, 0, 1), refuse]
    # The arguments of clone3 and openat2 lie in memory, out of a filter's sight. Without them, programs take the older.
    for number in (machine.clone3, OPENAT2):
        steps += [step(EQUAL, number, 0, 1), step(RETURN, ERROR | errno.ENOSYS)]
    steps += _own(machine.column, refuse) + _modes(machine.column, refuse)
    steps += [step(EQUAL, machine.clone, 0, 4), step(LOAD, argument(0))]
    steps += [step(ANY_BIT, NEW_NAMESPACES, 0, 1), refuse, step(RETURN, ALLOW)]
    if by_path:  # with a null path it changes an open file
        for half in (argument(1), argument(1) + 4):
            steps += [step(EQUAL, machine.utimensat, 0, 4), step(LOAD, half), step(EQUAL, 0, 1, 0), refuse]
            steps += [step(LOAD, NUMBER)]
    steps += [step(EQUAL, machine.ioctl, 0, 4), step(LOAD, argument(1))]
    steps += [step(EQUAL, TERMINAL_INPUT[0], 1, 0), step(EQUAL, TERMINAL_INPUT[1], 0, 1), refuse]
    return b"".join([*steps, step(RETURN, ALLOW)])


def _own(column: int, refuse: bytes) -> list[bytes]:
    """Limits and priorities of others are refused."""
    steps: list[bytes] = []
    for numbers, position, only in OWN:
        judged = [step(LOAD, argument(position)), step(EQUAL, only, 1, 0), refuse]
        steps += [step(EQUAL, numbers[column], 0, len(judged) + 1), *judged, step(LOAD, NUMBER)]
    return steps


def _modes(column: int, refuse: bytes) -> list[bytes]:
    """Modes with the bits of `BY_OWNER` are refused."""
    steps: list[bytes] = []
    for *numbers, mode, flags in MODES.values():
        if (number := numbers[column]) is None:
            continue
        judged = [step(LOAD, argument(mode)), step(ANY_BIT, BY_OWNER, 0, 1), refuse]
        if flags is not None:
            judged = [step(LOAD, argument(flags)), step(ANY_BIT, CREATING, 0, len(judged)), *judged]
        steps += [step(EQUAL, number, 0, len(judged) + 1), *judged, step(LOAD, NUMBER)]
    return steps
