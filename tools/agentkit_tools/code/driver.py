"""Runs Python code in child processes, inside a sandbox. Knows the standard library alone.

It is not imported but run there, as `python -c <this text> <the text of snippet.py> [modules to import]`.

A request is one line of JSON on standard input: the `code`, its `name` in tracebacks, a `timeout` in seconds, whether a
`session` keeps its variables for later requests, whether it must leave no files (`clean`), how many bytes of each
stream are kept (`output`), and its `number`, which nobody can guess before it comes.

Answers are lines of JSON on standard output: `ready` once, then for each request any number of `stdout` and `stderr` as
the code writes them, and at last `done`: how it ended, whether it left anything for the code of others (`left`), and
what the child wrote about its code (`report`). The reader trusts nothing of it: the code could have forged its own
report. That of another request it cannot forge: a report is one line that begins with the request's number, and a child
that has written anything else is used no more (`foreign`).

This process runs no code itself. It imports the warm modules, forks one child for each request, or one for all
requests that share a session, and watches its output, its time and its end. The code cannot read or
trace this process (`PR_SET_DUMPABLE`); it can kill it, which the other side notices. If a process of the code does not
die with the child's process group, this process ends, and with it the sandbox.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import stat
import sys
import time
import types
from contextlib import suppress

TYPE_CHECKING = False  # what is imported here makes every fork slower
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn, TypeAlias

    Request: TypeAlias = dict[str, Any]
    Done: TypeAlias = dict[str, Any]
    Tell: TypeAlias = Callable[[dict[str, Any]], None]
    Serve: TypeAlias = Callable[[Iterable[Request], int], int]

GRACE = 0.5  # seconds from the interrupt at the deadline, which leaves a traceback, to the kill
SETTLING = 0.2  # seconds for the killed remains of a process group to be gone
LATEST = 0.05  # seconds after which output is passed on if no more comes
CHUNK = 65536
MAX_REPORT = 44_000_000  # bytes: the pictures of one call in base64, 5 MB each, and its texts
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36  # linux/prctl.h


class Capture:
    """One stream of the child: its first bytes are passed on at once, its last ones at the end."""

    def __init__(self, name: str, fd: int, tell: Tell) -> None:
        self.name, self.fd, self.tell = name, fd, tell
        self.open = True
        self.begin(0)

    def begin(self, limit: int) -> None:
        """Count anew, for the next request."""
        self.room = limit - limit // 2
        self.fresh, self.kept, self.limit = bytearray(), bytearray(), limit // 2
        self.cut = 0

    def take(self) -> bool:
        """Read once; False if there was nothing to read."""
        try:
            data = os.read(self.fd, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.open = False
            return False
        head, tail = data[: self.room], data[self.room :]
        self.room -= len(head)
        self.fresh += head
        self.kept += tail
        if len(self.fresh) > CHUNK:
            self.pass_on()
        if len(self.kept) > 2 * self.limit + CHUNK:
            self.shorten()
        return True

    def pass_on(self) -> None:
        """Pass on the first bytes that were not passed on yet, so that they outlive this process."""
        if self.fresh:
            self.tell({self.name: self.fresh.decode("latin-1")})
            self.fresh.clear()

    def shorten(self) -> None:
        """Forget all but the last bytes."""
        if (over := len(self.kept) - self.limit) > 0:
            self.cut += over
            del self.kept[:over]

    def finish(self) -> None:
        """Read the bytes in the pipe, and pass the last ones on; output that others may still write is not awaited."""
        for _ in range(64):
            if not self.take():
                break
        self.pass_on()
        self.shorten()
        if self.kept:
            self.tell({self.name: self.kept.decode("latin-1"), "cut": self.cut})


class Child:
    """A process that runs code, and the pipes that lead to it.

    Args:
        request: the first request, which the fork finds in its memory; of a session the others come through a pipe.
        tell: passes its output on.
        channel: the descriptors of the watching process, which the child must not have.
        serve: the function that runs in it.
    """

    def __init__(self, request: Request, tell: Tell, channel: tuple[int, ...], serve: Serve) -> None:
        out, err, report = os.pipe(), os.pipe(), os.pipe()
        requests = os.pipe() if request["session"] else ()
        self.pid = os.fork()
        if self.pid == 0:
            for fd in (*channel, out[0], err[0], report[0], *requests[1:]):
                os.close(fd)
            become_child(out[1], err[1], report[1], coming(request, *requests[:1]), serve)
        for fd in (out[1], err[1], report[1], *requests[:1]):
            os.close(fd)
        self.requests, self.report = requests[1] if requests else -1, report[0]
        self.streams = [Capture("stdout", out[0], tell), Capture("stderr", err[0], tell)]
        for fd in (out[0], err[0], report[0]):
            os.set_blocking(fd, False)
        self.status: int | None = None  # as `os.waitpid` gives it
        self.cpu = 0.0
        self.reported = bytearray()
        self.number = b""

    def begin(self, request: Request) -> None:
        """Count anew, for the next request."""
        for stream in self.streams:
            stream.begin(request["output"])
        self.number = request["number"].encode() + b" "

    def send(self, request: Request) -> None:
        """Hand over one more request; a child that is dead already is found out later."""
        with suppress(BrokenPipeError):
            data = json.dumps(request).encode() + b"\n"
            while data:
                data = data[os.write(self.requests, data) :]

    def take_report(self) -> bool:
        """Read once; False if there was nothing to read."""
        try:
            data = os.read(self.report, CHUNK)
        except BlockingIOError:
            return False
        if len(self.reported) < MAX_REPORT:
            self.reported += data
        return bool(data)

    @property
    def said(self) -> bool:
        """True if a line is complete, whether it is the report or not."""
        return b"\n" in self.reported

    def reports(self) -> tuple[str | None, bool]:
        """The report of this request, if that is all that was written; and whether anything else was."""
        written, self.reported = bytes(self.reported), bytearray()
        line, end, rest = written.partition(b"\n")
        if end and not rest and line.startswith(self.number):
            return line[len(self.number) :].decode("utf-8", "replace"), False
        return None, bool(written)

    def kill(self, how: int) -> None:
        """Send a signal to the child, or kill its whole process group."""
        with suppress(ProcessLookupError):
            if how == signal.SIGKILL:
                os.killpg(self.pid, how)
            else:
                os.kill(self.pid, how)

    def close(self) -> None:
        """Close the pipes."""
        for fd in (self.requests, self.report, *(stream.fd for stream in self.streams)):
            if fd >= 0:
                os.close(fd)


class Watch:
    """Serves requests, one after another, until there are no more or the sandbox has to go."""

    def __init__(self, code: Serve) -> None:
        self.code = code
        self.inbox, self.outbox = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)
        self.woken, wake = os.pipe()
        for fd in (self.woken, wake):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self.channel = (self.inbox, self.outbox, self.woken, wake)
        self.session: Child | None = None
        self.places = [place for place in PLACES if os.access(place, os.W_OK)]
        self.own, self.found = own(), entries(self.places)
        folders = {path: os.stat(path) for path, status in self.found.items() if status and stat.S_ISDIR(status[0])}
        self.times = {path: (status.st_atime_ns, status.st_mtime_ns) for path, status in folders.items()}
        self.lines = os.fdopen(self.inbox, "rb", closefd=False)

    def tell(self, answer: dict[str, Any]) -> None:
        """Write one line; if there is no reader any more, there is nothing left to do."""
        data = json.dumps(answer).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self.outbox, data) :]
        except BrokenPipeError:
            os._exit(1)

    def serve(self) -> None:
        """Answer requests until standard input ends."""
        while line := self.lines.readline():
            done = self.run(json.loads(line))
            self.tell({"done": done})
            if done["left"]:
                return

    def run(self, request: Request) -> Done:
        """Run one request to its end."""
        started = time.monotonic()
        request["deadline"] = started + request["timeout"]  # by the clock that the child also has
        if self.session is None:
            child = Child(request, self.tell, self.channel, self.code)
        else:
            child = self.session
            while child.take_report():  # before its number is known
                pass
            self.signal(child, signal.SIGCONT)
            child.send(request)
        child.begin(request)
        self.session = child if request["session"] else None
        timed_out = self.follow(child, request["deadline"], lambda: request["session"] and child.said)
        if child.status is None:  # between two requests nothing of a session runs
            self.signal(child, signal.SIGSTOP)
            _, status = os.waitpid(child.pid, os.WUNTRACED)
            child.status = None if os.WIFSTOPPED(status) else status
        for stream in child.streams:
            stream.finish()
        while child.take_report():
            pass
        report, foreign = child.reports()
        if foreign and child.status is None:
            child.kill(signal.SIGKILL)
            _, child.status = os.waitpid(child.pid, 0)
        left = False
        if child.status is not None:
            self.session = None
            left = not self.settled() or own() != self.own
            left = left or (request["clean"] and not self.clean())
            child.close()
        return {
            "report": report,
            "foreign": foreign,
            "exit_code": None if child.status is None or os.WIFSIGNALED(child.status) else os.WEXITSTATUS(child.status),
            "signal": os.WTERMSIG(child.status) if child.status is not None and os.WIFSIGNALED(child.status) else None,
            "timed_out": timed_out,
            "alive": child.status is None,
            "left": left,
            "wall": round(time.monotonic() - started, 4),
            "cpu": round(child.cpu, 4),
        }

    def signal(self, child: Child, number: int) -> None:
        """Stop or continue a session's processes: all others in a separate namespace, else the child's group."""
        with suppress(ProcessLookupError):
            if os.getpid() == 2:  # the number of the first process's first child, given once only
                os.kill(-1, number)
            else:
                os.killpg(child.pid, number)

    def follow(self, child: Child, deadline: float, finished: Callable[[], bool]) -> bool:
        """Read the child's output until it ends or `finished`. Returns True if the deadline passed."""
        poll = select.poll()
        poll.register(self.inbox, 0)  # only whether it was hung up
        fds = {child.report: child.take_report, **{s.fd: s.take for s in child.streams if s.open}}
        for fd in (self.woken, *fds):
            poll.register(fd, select.POLLIN)
        steps = [(deadline, signal.SIGINT), (deadline + GRACE, signal.SIGKILL)]
        while child.status is None and not finished():
            if steps and time.monotonic() >= steps[0][0]:
                child.kill(steps.pop(0)[1])
            wait = max(0.0, steps[0][0] - time.monotonic()) if steps else GRACE
            fresh = any(stream.fresh for stream in child.streams)
            ready = poll.poll(min(wait, LATEST if fresh else wait) * 1000 + 1)
            if not ready:
                for stream in child.streams:
                    stream.pass_on()
            for fd, _ in ready:
                if fd == self.inbox:
                    os._exit(1)  # nobody waits for the answer; the kernel or the sandbox kills the rest
                elif fd == self.woken:
                    self.reap(child)
                elif not fds[fd]():
                    poll.unregister(fd)  # closed by the code; what it does after that is seen when it ends
        return len(steps) < 2

    def reap(self, child: Child) -> None:
        """Collect ended processes: the child, and orphans that became ours when their parent ended."""
        with suppress(BlockingIOError):
            os.read(self.woken, CHUNK)
        with suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == child.pid:
                    child.status = status
                    child.cpu = usage.ru_utime + usage.ru_stime
                    child.kill(signal.SIGKILL)  # the rest of its process group

    def clean(self) -> bool:
        """Return True if the files are unchanged; then restore the folders' times, since the code could set them."""
        if entries(self.places, len(self.found)) != self.found:
            return False
        try:
            for folder, times in self.times.items():
                if os.stat(folder).st_mtime_ns != times[1]:
                    os.utime(folder, ns=times)
        except OSError:
            return False
        return True

    def settled(self) -> bool:
        """Return True if all processes have ended; those just killed get a moment."""
        deadline = time.monotonic() + SETTLING
        try:
            while True:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    if time.monotonic() > deadline:
                        return False
                    time.sleep(0.001)
        except ChildProcessError:
            return True


PLACES = (".", os.environ.get("TMPDIR", "/tmp"), "/dev/shm", "/dev/pts")
"""In which code may leave something, where it may write there at all."""


def entries(places: list[str], most: int | None = None) -> dict[str, tuple[Any, ...] | None]:
    """Return the entries of these folders at any depth, the folders included, each with a mark of its last change.

    The mark of a file is its ctime, which no code can set. A folder's times are left out: a file that was
    made and removed also changes them.

    Args:
        places: the folders.
        most: the highest number of entries; one more suffices to see a difference.
    """
    found: dict[str, tuple[Any, ...] | None] = {}
    waiting = list(places)
    while waiting and (most is None or len(found) <= most):
        path = waiting.pop()
        found[path] = None
        with suppress(OSError):
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                waiting += [os.path.join(path, name) for name in os.listdir(path)]
                found[path] = (*status[:7], *sorted((name, os.getxattr(path, name)) for name in os.listxattr(path)))
            else:
                found[path] = (*status[:7], status.st_mtime_ns, status.st_ctime_ns)
    return found


def own() -> tuple[object, ...]:
    """Return the settings of this process that another one could have changed: its limits and its scheduling."""
    limits = [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")]
    if sys.platform != "linux":
        return *limits, os.getpriority(os.PRIO_PROCESS, 0)
    return *limits, os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0), os.sched_getscheduler(0)


def coming(first: Request, *more: int) -> Iterable[Request]:
    """The requests of a child."""
    yield first
    if more:
        yield from map(json.loads, os.fdopen(more[0], "rb"))


def become_child(out: int, err: int, report: int, requests: Iterable[Request], serve: Serve) -> NoReturn:
    """Run the requests in a forked child, in its own namespace, and end."""
    status = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.close(out)
        os.close(err)
        sys.path.insert(0, os.getcwd())
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed()  # or every fork of a process in which it is imported would draw the same numbers
        status = serve(requests, report)
    finally:
        os._exit(status)


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, where there is such a call."""
    if sys.platform == "linux" and LIBC.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


def main() -> None:
    """Import the warm modules, then serve."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.dont_write_bytecode = True
    missing = []
    snippet = types.ModuleType("agentkit_snippet")
    exec(compile(sys.argv[1], "<agentkit>", "exec"), snippet.__dict__)
    for module in sys.argv[2:]:
        try:
            importlib.import_module(module)
        except Exception as e:  # noqa: BLE001 - all that importing can raise
            missing.append(f"{module} ({type(e).__name__}: {e})")
    watch = Watch(snippet.serve)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)
    gc.freeze()
    watch.tell({"ready": True, "missing": missing})
    watch.serve()


if __name__ == "__main__":
    main()
