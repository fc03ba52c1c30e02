"""What every sandbox promises of a command: its output, its end, its limits, its whole tree. Run on each backend."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandboxes import EVERY, FAST, ROOT, opened

from agentkit.sandbox import Sandbox, SandboxError, SandboxLimits, SandboxOutcome, sandbox

DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            with open("beat", "w") as file:
                file.write(str(time.monotonic()))
            time.sleep(0.01)
    os._exit(0)
while not os.path.exists("beat"):
    time.sleep(0.01)
print("it lives", flush=True)
"""
"""Leaves a process behind that has left its session and holds the pipes."""

FORKS = """
import os, signal
n = 0
try:
    while n < 200:
        if os.fork() == 0:
            signal.pause()
        n += 1
finally:
    print(n, flush=True)
"""


@pytest.fixture(params=EVERY)
def variant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def box(variant: str) -> Iterator[Sandbox]:
    box = opened(variant)
    yield box
    asyncio.run(box.close())


def run(box: Sandbox, *command: str, **more: object) -> SandboxOutcome:
    return asyncio.run(box.run(command, **more))  # type: ignore[arg-type]


def python(box: Sandbox, code: str, *words: str, **more: object) -> SandboxOutcome:
    return run(box, box.python, "-I", "-S", "-c", code, *words, **more)


def is_beating(box: Sandbox) -> bool:
    beat = box.workdir / "beat"
    before = beat.read_text()
    time.sleep(0.1)
    return beat.read_text() != before


def test_a_command_reads_its_files_and_its_stdin(box: Sandbox) -> None:
    outcome = run(box, "cat", "src/a.txt", "-", files={"src/a.txt": b"one\n"}, stdin=b"two\n")
    assert (outcome.stdout, outcome.exit_code, outcome.ok) == ("one\ntwo\n", 0, True)


def test_its_folder_is_kept_between_commands_and_removed_at_the_end(box: Sandbox) -> None:
    assert run(box, "sh", "-c", "echo 1 > x").ok
    assert run(box, "cat", "x").stdout == "1\n"
    assert (box.workdir / "x").read_text() == "1\n"
    asyncio.run(box.close())
    assert not box.workdir.exists()
    with pytest.raises(SandboxError, match="closed"):
        run(box, "true")


def test_a_given_folder_stays(variant: str, tmp_path: Path) -> None:
    box = opened(variant, workdir=tmp_path)
    assert run(box, "touch", "x").ok
    asyncio.run(box.close())
    assert (tmp_path / "x").exists()


def test_row_30_no_shell_reads_the_arguments(box: Sandbox) -> None:
    words = ["; rm -rf /", "$(touch x)", "`touch x`", "a\nb", "* ? ~ $HOME", "--", ""]
    assert run(box, "printf", "%s|", *words).stdout == "".join(f"{word}|" for word in words)
    assert list(box.workdir.iterdir()) == []


def test_how_it_ended(box: Sandbox) -> None:
    assert python(box, "import sys; sys.exit(7)").exit_code == 7
    segfault = python(box, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (segfault.exit_code, segfault.signal, segfault.limit) == (None, "SIGSEGV", None)


def test_a_command_that_does_not_exist(box: Sandbox) -> None:
    outcome = run(box, "no-such-command")
    assert outcome.exit_code == 127
    assert "no-such-command" in outcome.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([], "expected a program and its arguments"),
        ("echo hi", "expected a program and its arguments"),
        (["echo", "a\0b"], "an argument contains NUL"),
        (["echo", "\ud800"], "lone surrogate"),
        (["echo", "x" * 200_000], "standard input"),
        (["echo", 1], "expected a program and its arguments"),
    ],
)
def test_a_command_that_cannot_be_passed_on_is_refused(command: list[str], message: str) -> None:
    box = opened("none")
    with pytest.raises(SandboxError, match=message):
        run(box, *command) if isinstance(command, list) else asyncio.run(box.run(command))
    asyncio.run(box.close())


def test_the_environment_is_only_what_is_listed(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    outcome = run(box, "env", env={"MINE": "1"})
    names = {line.partition("=")[0] for line in outcome.stdout.splitlines()}
    assert names - {"PWD", "_"} == {"HOME", "LANG", "PATH", "TMPDIR", "MINE"}
    assert "canary" not in outcome.stdout


def test_a_secret_variable_is_on_no_command_line(box: Sandbox) -> None:
    """Command lines are readable by every user of the machine."""

    async def main() -> list[str]:
        async with await box.start(["sh", "-c", "echo up; sleep 60"], env={"TOKEN": "canary-8c1f"}) as running:
            await running.read(timeout=60)
            found = []
            for path in Path("/proc").glob("[0-9]*/cmdline"):  # noqa: ASYNC240 - no disk is read
                with contextlib.suppress(OSError):
                    found.append(path.read_bytes().decode(errors="replace"))
            return found

    lines = asyncio.run(main())
    assert any("echo up; sleep 60" in line for line in lines)
    assert not any("canary-8c1f" in line for line in lines)
    assert "canary-8c1f" not in repr(box)


@pytest.mark.parametrize("name", ["../x", "/x", "a/../x", "", "a//b", ".", "a/./b", "a\0b", "x/"])
def test_names_of_files_that_lead_elsewhere_are_refused(name: str) -> None:
    box = opened("none")
    with pytest.raises(SandboxError, match="expected a relative path without"):
        run(box, "true", files={"fine": b"", name: b""})
    assert list(box.workdir.iterdir()) == []
    asyncio.run(box.close())


def test_links_that_a_command_left_are_not_followed(box: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("kept")
    run(box, "sh", "-c", f"ln -s {tmp_path} folder; ln -s {tmp_path}/secret file")
    with pytest.raises(SandboxError, match="cannot write 'folder/secret'"):
        run(box, "true", files={"folder/secret": b"changed"})
    assert run(box, "cat", "file", files={"file": b"new"}).stdout == "new"
    assert (tmp_path / "secret").read_text() == "kept"


def test_a_command_may_change_the_files_that_it_was_given(box: Sandbox) -> None:
    outcome = run(box, "sh", "-c", "echo 2 >> a/b; echo 3 > a/c; cat a/b a/c", files={"a/b": b"1\n"})
    assert outcome.stdout == "1\n2\n3\n"


def test_row_32_output_without_end(box: Sandbox) -> None:
    limits = SandboxLimits(output=1000, wall=20)
    outcome = run(box, "sh", "-c", "yes | head -c 20000000; echo end", limits=limits)
    assert outcome.stdout.startswith("y\ny\n")
    assert outcome.stdout.endswith("y\nend\n")
    assert outcome.stdout_cut == 20_000_004 - 1000
    assert "\n[… 19,999,004 bytes left out …]\n" in outcome.stdout


def test_row_32_output_that_is_not_text(box: Sandbox) -> None:
    code = r"import os; os.write(1, b'\xff\xfe\x1b[31m\x1b]52;c;aGk=\x07\x1b]8;;http://x\x07\x00ok\n\xed\xa0\x80')"
    outcome = python(box, code)
    assert outcome.stdout == "\ufffd\ufffd\x1b[31m\x1b]52;c;aGk=\x07\x1b]8;;http://x\x07\x00ok\n\ufffd\ufffd\ufffd"


def test_row_33_a_daemon_that_holds_the_pipe_dies_at_the_deadline(box: Sandbox) -> None:
    start = time.monotonic()
    outcome = python(box, DAEMON + "time.sleep(60)", limits=SandboxLimits(wall=1.0))
    assert time.monotonic() - start < 20
    assert (outcome.timed_out, outcome.limit, outcome.signal, outcome.exit_code) == (True, "wall", "SIGKILL", None)
    assert outcome.stdout in ("it lives\n", "")
    if (box.workdir / "beat").exists():
        assert not is_beating(box)


def test_row_33_a_daemon_dies_with_its_command(box: Sandbox) -> None:
    outcome = python(box, DAEMON)
    assert (outcome.stdout, outcome.exit_code) == ("it lives\n", 0)
    assert not is_beating(box)


def test_cancelling_kills_the_whole_tree(box: Sandbox) -> None:
    async def main() -> None:
        running = asyncio.create_task(box.run([box.python, "-I", "-S", "-c", DAEMON + "time.sleep(60)"]))
        while not (box.workdir / "beat").exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert not is_beating(box)


def test_cancelling_while_it_starts_leaves_nothing_that_runs(box: Sandbox) -> None:
    """At any moment of the start: nobody would hear of it."""
    mark = f"0.{os.getpid()}7"  # seconds, by which it is found among all processes

    async def main() -> None:
        for n in range(60):
            running = asyncio.create_task(box.run(["sh", "-c", f"sleep {mark}; sleep 60; touch {n}"]))
            await asyncio.sleep(0.0005 * (n % 30))
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    def left() -> list[str]:
        found = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if mark.encode() in file.read_bytes():
                    found.append(file.parent.name)
        return found

    asyncio.run(main())
    deadline = time.monotonic() + 30
    while left() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left()


def test_when_its_host_is_killed_the_tree_dies(variant: str, tmp_path: Path) -> None:
    asyncio.run(opened(variant).close())  # skipped where it is absent
    script = (
        "import asyncio, sys; from pathlib import Path; from sandboxes import opened\n"
        f"box = opened({variant!r}, workdir=Path({str(tmp_path)!r}))\n"
        f"asyncio.run(box.run([box.python, '-I', '-S', '-c', {DAEMON + 'time.sleep(60)'!r}]))"
    )
    path = os.pathsep.join([str(ROOT / "tests" / "support"), str(ROOT)])
    host = subprocess.Popen([sys.executable, "-c", script], env={"PYTHONPATH": path, "PATH": os.environ["PATH"]})
    beat = tmp_path / "beat"
    deadline = time.monotonic() + 30
    while not beat.exists() and time.monotonic() < deadline and host.poll() is None:
        time.sleep(0.02)
    host.send_signal(signal.SIGKILL)
    host.wait()
    while time.monotonic() < deadline:
        before = beat.read_text()
        time.sleep(0.1)
        if beat.read_text() == before:
            return
    pytest.fail("it lives on")


def test_a_file_that_is_too_large(box: Sandbox) -> None:
    outcome = run(box, "sh", "-c", "exec head -c 2000000 /dev/zero > x", limits=SandboxLimits(file_size=1_000_000))
    assert (outcome.signal, outcome.limit) == ("SIGXFSZ", "file_size")
    assert (box.workdir / "x").stat().st_size == 1_000_000


def test_memory(box: Sandbox) -> None:
    outcome = python(box, "bytearray(2 << 30)")
    assert "MemoryError" in outcome.stderr


def test_processes(box: Sandbox) -> None:
    if box.name == "none" and os.geteuid() == 0:
        pytest.skip("the kernel does not limit root, and `none` uses no control group")
    outcome = python(box, FORKS, limits=SandboxLimits(processes=20, wall=20))
    started = int(outcome.stdout.split()[0])
    if getattr(box, "_namespaces", ()) or box.name == "bwrap":
        assert 10 <= started <= 20
    else:  # the user's other processes count too, and come and go
        assert started < 200


def test_a_conversation(box: Sandbox) -> None:
    async def main() -> None:
        async with await box.start(["sh"]) as shell:
            await shell.write(b"x=1; echo ready\n")
            progress = await shell.read(until=b"ready\n", timeout=60)
            assert (progress.stdout.text, progress.ended) == ("ready\n", False)
            await shell.write(b"echo $x; echo oops >&2; echo done\n")
            progress = await shell.read(until=b"done\n", timeout=60)
            complaints = progress.stderr.text  # of two pipes, either may be read first
            while not complaints:
                complaints += (await shell.read(timeout=0.05)).stderr.text
            assert (progress.stdout.text, complaints) == ("1\ndone\n", "oops\n")
            assert (await shell.read(timeout=0.05)).stdout.text == ""
            with pytest.raises(TimeoutError):
                await shell.wait(timeout=0.05)
            await shell.write(b"echo last; exit 3\n")
            outcome = await shell.wait(timeout=60)
            assert (outcome.stdout, outcome.exit_code) == ("last\n", 3)
            with pytest.raises(BrokenPipeError):
                await shell.write(b"x" * 1_000_000)
            assert (await shell.read()).ended

    asyncio.run(main())


def test_a_character_may_be_read_in_two_parts(box: Sandbox) -> None:
    async def main() -> None:
        async with await box.start(["sh"]) as shell:
            await shell.write(b"printf 'a\\303'\n")
            first = await shell.read(until=b"\xc3", timeout=60)
            assert (first.stdout.head, first.stdout.text) == (b"a\xc3", "a")
            await shell.write(b"printf '\\251\\303'\n")
            second = await shell.read(until=b"\xc3", timeout=60)
            assert (second.stdout.head, second.stdout.text) == (b"\xa9\xc3", "é")
            shell.close_stdin()
            assert (await shell.wait(timeout=60)).stdout == "\ufffd"

    asyncio.run(main())


def test_input_larger_than_a_pipe_comes_back_whole(box: Sandbox) -> None:
    sent = bytes(range(256)) * 2000
    outcome = asyncio.run(box.run(["md5sum"], stdin=sent))
    assert outcome.stdout.split()[0] == hashlib.md5(sent).hexdigest()


def test_a_command_need_not_read_its_input(box: Sandbox) -> None:
    assert asyncio.run(box.run(["true"], stdin=bytes(1_000_000))).ok


def test_a_session_ends_at_its_own_deadline_or_when_told(box: Sandbox) -> None:
    async def main() -> None:
        running = await box.start(["sleep", "60"], wall=0.3)
        assert (await running.wait(timeout=60)).timed_out
        running = await box.start(["sleep", "60"])
        outcome = await running.terminate()
        assert (outcome.signal, outcome.timed_out, running.running) == ("SIGKILL", False, False)
        assert await running.terminate() == outcome
        running = await box.start(["sleep", "60"])
        await box.close()
        assert not running.running

    asyncio.run(main())


def test_it_can_be_killed_at_any_moment(box: Sandbox) -> None:
    """Also before the sandbox is set up."""

    async def main() -> None:
        for wait in (0, 0, 0.001, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08):
            running = await box.start(["sleep", "60"])
            await asyncio.sleep(wait)
            outcome = await running.terminate()
            assert (outcome.exit_code, outcome.signal) == (None, "SIGKILL")
        for wait in (0, 0.001, 0.005, 0.01, 0.02, 0.05):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(wait):
                    await box.run(["sleep", "60"])

    asyncio.run(main())


def test_if_nobody_can_learn_how_it_ends_it_is_not_started() -> None:
    box = opened("none")
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(SandboxError, match="SIGCHLD is ignored in this process"):
            run(box, "touch", "x")
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert list(box.workdir.iterdir()) == []
    asyncio.run(box.close())


def test_if_others_have_collected_its_end_that_is_an_error_and_no_hang() -> None:
    async def main() -> None:
        async with sandbox("none") as box, await box.start(["true"]) as running:
            os.waitpid(running._started.popen.pid, 0)  # noqa: ASYNC222 - as others might
            with pytest.raises(SandboxError, match="another part of this process has collected how the command ended"):
                await running.wait()

    asyncio.run(main())


def test_a_sandbox_that_cannot_be_set_up_is_an_error_and_no_outcome(box: Sandbox) -> None:
    box.workdir.rmdir()
    with pytest.raises(SandboxError, match=re.escape(str(box.workdir)) + "|No such file or directory"):
        run(box, "true")


def test_several_commands_run_at_the_same_time(box: Sandbox) -> None:
    async def main() -> list[str]:
        outcomes = await asyncio.gather(*(box.run(["sh", "-c", f"sleep 0.1; echo {n}"]) for n in range(8)))
        return [outcome.stdout for outcome in outcomes]

    assert asyncio.run(main()) == [f"{n}\n" for n in range(8)]


def test_no_descriptor_and_no_control_group_is_left(box: Sandbox) -> None:
    def left() -> tuple[int, set[Path]]:
        return len(os.listdir("/proc/self/fd")), set(Path("/sys/fs/cgroup").glob(f"*/agentkit-{os.getpid()}-*"))

    run(box, "true")
    descriptors, groups = left()
    for _ in range(3):
        run(box, "sh", "-c", "sleep 0.01 & echo $!")
    assert left()[0] == descriptors
    assert left()[1] <= groups  # another container's process may have our number


def test_what_it_costs_is_counted(box: Sandbox) -> None:
    code = "import time; start = time.process_time()\nwhile time.process_time() - start < 0.3: pass"
    outcome = python(box, code, limits=FAST)
    assert outcome.wall >= 0.3
    assert outcome.cpu is None or outcome.cpu >= 0.3


@pytest.mark.parametrize("inner", [False, True])
def test_a_sandbox_that_is_killed_from_outside_was_started(box: Sandbox, inner: bool) -> None:
    async def main() -> SandboxOutcome:
        async with await box.start(["sh", "-c", "echo up; sleep 60"]) as running:
            await running.read(timeout=60)
            pid = running._started.popen.pid  # type: ignore[attr-defined]
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()  # noqa: ASYNC240 - no disk is read
            os.kill(int(children[0]) if inner else pid, signal.SIGKILL)
            return await running.wait(timeout=60)

    outcome = asyncio.run(main())
    assert (outcome.exit_code, outcome.signal) == (None, "SIGKILL")


def test_a_program_that_runs_as_its_owner_cannot_be_copied(box: Sandbox) -> None:
    if box.name == "none":
        return
    outcome = run(box, "sh", "-c", "cp /bin/true x; chmod 755 x; chmod u+s x; chmod 2755 x; mkdir -m 1777 d; ls -l")
    assert "Operation not permitted" in outcome.stderr
    assert (box.workdir / "x").stat().st_mode & 0o7777 == 0o755
    assert (box.workdir / "d").stat().st_mode & 0o7777 == 0o1777
