"""Limits, output and outcome of a sandboxed command. Values; knows no process."""

from __future__ import annotations

from codecs import getincrementaldecoder
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from agentkit.checks.bounds import SECONDS, Bound, Bounds, number, refuse, whole

LimitName = Literal["cpu", "wall", "memory", "file_size"]
"""The limits that can end a process. Beyond `processes` a fork fails; beyond `output` the output is cut."""

_DAY: Final = 86_400.0
_DURATION: Final = number("seconds above 0, at most a day", above=0, most=_DAY)

_FOLLOWING: Final = bytes(range(0x80, 0xC0))  # what no UTF-8 character begins with

BOUNDS: Final[Bounds] = {
    "cpu": _DURATION,
    "wall": _DURATION,
    "memory": whole(1 << 20, "bytes"),
    "file_size": whole(1, "bytes"),
    "processes": whole(1, "processes"),
    "output": whole(2, "bytes"),
}


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """The limits of one command in a sandbox. There is always a limit: None is refused.

    Args:
        cpu: seconds of processor time per process, rounded up to whole seconds by the system.
        wall: seconds until the whole process tree is killed.
        memory: bytes of address space per process, and of memory for the whole tree if a cgroup is available.
        file_size: bytes per file. The number of files is not limited.
        processes: processes and threads at the same time.
        output: bytes kept of each output stream, half from its start and half from its end.

    Raises:
        ConfigError: a limit is None or out of bounds.
    """

    cpu: float = 10.0
    wall: float = 30.0
    memory: int = 1 << 30
    file_size: int = 64 << 20
    processes: int = 64
    output: int = 256 << 10

    def __post_init__(self) -> None:
        refuse("SandboxLimits", {name: getattr(self, name) for name in BOUNDS}, BOUNDS)


@dataclass(frozen=True, slots=True)
class StreamOutput:
    """The bytes kept of one stream: all of them, or the first and the last.

    Args:
        head: the first bytes.
        left_out: how many bytes after the head were dropped.
        tail: the last bytes.
        started: the bytes of a character with which the previous read ended; it belongs to this text.
        more: whether more may follow, so that the last character may be incomplete.
    """

    head: bytes = b""
    left_out: int = 0
    tail: bytes = b""
    started: bytes = b""
    more: bool = False

    @property
    def text(self) -> str:
        r"""The text, decoded as UTF-8 with replacement characters; a cut is marked with the number of bytes dropped.

        The texts of all reads of a stream, joined, are the text of all its bytes.

        >>> StreamOutput(b"one\n", 3_000, b"two\xff\n").text
        'one\n\n[… 3,000 bytes left out …]\ntwo�\n'
        """
        return self.mark.join(self.parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """The text, or those before and after the cut."""
        *before, last = self._pieces
        rest = self.incomplete_end if self.more else b""
        return tuple(piece.decode("utf-8", "replace") for piece in (*before, last.removesuffix(rest)))

    @property
    def mark(self) -> str:
        """The text in place of the bytes that were dropped."""
        return f"\n[… {self.left_out:,} bytes left out …]\n"

    @property
    def incomplete_end(self) -> bytes:
        """The bytes at the end that begin a character."""
        return incomplete_character(self._pieces[-1])

    @property
    def _pieces(self) -> tuple[bytes, ...]:
        head = self.started + self.head
        return (head, self.tail) if self.left_out else (head + self.tail,)

    def whole_characters(self) -> StreamOutput:
        """Return a copy without the incomplete characters at the cut."""
        if not self.left_out:
            return self
        head = self.head[: max(0, len(self.head) - len(incomplete_character(self.started + self.head)))]
        tail = self.tail[:3].lstrip(_FOLLOWING) + self.tail[3:]
        dropped = len(self.head) - len(head) + len(self.tail) - len(tail)
        return replace(self, head=head, left_out=self.left_out + dropped, tail=tail)


def incomplete_character(text: bytes) -> bytes:
    r"""The bytes at the end of a text that begin a UTF-8 character, at most three.

    >>> incomplete_character("a€".encode()), incomplete_character("a€".encode()[:-1]), incomplete_character(b"a\xff")
    (b'', b'\xe2\x82', b'')
    """
    decoder = getincrementaldecoder("utf-8")("replace")
    decoder.decode(text[-3:])
    return decoder.getstate()[0]


@dataclass(frozen=True, slots=True)
class SandboxOutcome:
    """The end of a command in a sandbox, and its output.

    Args:
        stdout: decoded as UTF-8 with replacement characters; a cut is marked inside with the number of bytes dropped.
        stderr: the same for the error stream.
        exit_code: the command's exit code; None when a signal ended it.
        signal: the name of the signal that ended it, such as `SIGSEGV`; otherwise None. In `bwrap` an exit code of
            128 + n cannot be distinguished from signal n, and counts as the signal.
        timed_out: whether it was killed at the deadline.
        limit: which limit ended it, if that is known.
        wall: seconds from start to end.
        cpu: seconds of processor time of the whole tree, the sandbox's own included; None if the system does not say,
            as in `bwrap` without control groups.
        stdout_cut: bytes dropped from stdout.
        stderr_cut: bytes dropped from stderr.
    """

    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    limit: LimitName | None = None
    wall: float = 0.0
    cpu: float | None = None
    stdout_cut: int = 0
    stderr_cut: int = 0

    @property
    def ok(self) -> bool:
        """True if the command returned 0."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True)
class SandboxProgress:
    """The output of a running command since the previous read.

    Args:
        stdout: new bytes of stdout.
        stderr: new bytes of stderr.
        ended: whether the command has ended and all its output has been read.
    """

    stdout: StreamOutput
    stderr: StreamOutput
    ended: bool


def checked_wall(wall: Any) -> float | None:
    """The life span of a running tree.

    Raises:
        ConfigError: neither seconds nor None.
    """
    bound = Bound(
        lambda value: value is None or SECONDS.holds(value), "seconds above 0, or None until it is terminated"
    )
    refuse("start", {"wall": wall}, {"wall": bound})
    return None if wall is None else float(wall)
