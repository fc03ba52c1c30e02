"""The Python tool: whatever becomes of the code, what it printed, its value and its traceback are told."""

from __future__ import annotations

import asyncio
import base64
import gc
import importlib.util
import logging
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confining import confined

from agentkit import ToolResult
from agentkit.errors import ConfigError
from agentkit.sandbox import SandboxLimits
from agentkit_tools.python import Python, Runs

pytestmark = confined


DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def ran(tool: Python, code: str) -> ToolResult:
    return asyncio.run(tool.python(code))


def _runs(tool: Python) -> Runs:
    assert isinstance(tool._runs, Runs)
    return tool._runs


@pytest.fixture(scope="module")
def python() -> Iterator[Python]:
    tool = Python(timeout=20, limits=SandboxLimits(processes=24))
    yield tool
    tool.close()


@pytest.fixture
def session() -> Iterator[Python]:
    tool = Python(keep_state=True, timeout=20)
    yield tool
    tool.close()


TRACEBACK = """[error]
Traceback (most recent call last):
  File "<code>", line 4, in <module>
    f()
  File "<code>", line 3, in f
    return 1/0
ZeroDivisionError: division by zero"""

ENDINGS = {
    "value": ("6 * 7", "[value]\n42"),
    "printed": ("print('a')\nx = 1", "a"),
    "printed_and_value": ("print('a')\n'b'", "a\n[value]\n'b'"),
    "nothing": ("x = 1", "[no output: nothing was printed, and the last statement has no value]"),
    "stderr": ("import sys\nprint('a')\nprint('b', file=sys.stderr)", "a\n[stderr]\nb"),
    "raises": ("print('before')\ndef f():\n    return 1/0\nf()", f"before\n{TRACEBACK}"),
    "syntax": (
        "print('a'\n",
        "[error]\n  File \"<code>\", line 1\n    print('a'\nSyntaxError: '(' was never closed",
    ),
    "sys_exit": ("import sys\nprint('a')\nsys.exit(3)", "a\n[exit code 3]"),
    "sys_exit_0": ("import sys\nprint('a')\nsys.exit()", "a"),
    "sys_exit_text": ("import sys\nsys.exit('why')", "[stderr]\nwhy\n[exit code 1]"),
    "os_exit": ("import os\nprint('a', end='')\nos._exit(4)", "a\n[exit code 4]"),
    "killed": ("import os\nprint('a')\nos.kill(os.getpid(), 9)", "a\n[killed by SIGKILL]"),
    "crashed": ("import ctypes\nprint('a')\nctypes.string_at(0)", "a\n[killed by SIGSEGV]"),
    "awaits": ("import asyncio\nawait asyncio.sleep(0, 'a')", "[value]\n'a'"),
    "thread": ("import threading\nthreading.Thread(target=lambda: print('late')).start()", "late"),
    "at_exit": ("import atexit\n_ = atexit.register(lambda: print('late'))", "late"),
    "main": ("if __name__ == '__main__':\n    print('a')", "a"),
    "input": ("input()", "EOFError: EOF when reading a line"),
    "colours": ("print('\\x1b[31mred\\x1b]52;c;aGk=\\x07')", "red"),
    "surrogate": ("print('\\ud800')", "\\ud800"),
    "not_utf8": ("import os\n_ = os.write(1, b'a\\xffb')", "a\ufffdb"),
    "bad_repr": ("class A:\n    def __repr__(self): raise ValueError('no')\nA()", "ValueError: no"),
    "bad_str": ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "E: <exception str() failed>"),
    "own_module": ("open('mine.py', 'w').write('x = 5')\nimport mine\nmine.x", "[value]\n5"),
    "unknown": ("earlier", "[variables and imports of earlier calls are not kept: each call starts anew]"),
    "forks": (
        "import os\npid = os.fork()\nprint('parent' if pid and os.waitpid(pid, 0) else 'child')",
        "child\nparent",
    ),
    "parent_killed": ("import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(9)", "did not come to its end"),
    "parent_stopped_and_back": ("import os, signal\nos.kill(os.getppid(), signal.SIGINT)\n1", "[value]\n1"),
    "too_much_memory": ("x = bytearray(8 << 30)", "MemoryError"),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_what_it_did_is_told_however_it_ends(python: Python, case: str) -> None:
    code, expected = ENDINGS[case]
    text = re.sub(r"\n[ ~^]+$", "", ran(python, code).text, flags=re.MULTILINE)  # the marks differ between versions
    assert text.endswith(expected) if "\n" in expected else expected in text


def test_the_marks_in_a_traceback_are_where_they_belong(python: Python) -> None:
    text = ran(python, "a = 1\r\nb = '\\f\\x85'\r\nx = a / (a - 1)").text
    assert "line 3, in <module>\n    x = a / (a - 1)\n        ~~^~~~~~~~~" in text


def test_deep_recursion_is_told_in_short(python: Python) -> None:
    text = ran(python, "def f():\n    f()\nf()").text
    assert "RecursionError" in text
    assert "Previous line repeated" in text
    assert len(text) < 2000


def test_at_its_deadline_code_is_interrupted_and_shows_where() -> None:
    tool = Python(timeout=1.5)
    result = ran(tool, "import time\nprint('before')\ntime.sleep(60)")
    tool.close()
    assert result.code == "timeout"
    assert result.text.startswith('before\n[error]\nTraceback (most recent call last):\n  File "<code>", line 3')
    assert result.text.endswith("[stopped after 1.5 s, its time limit]")


@pytest.mark.parametrize("keep_state", [False, True])
def test_an_interrupt_that_the_code_sends_itself_is_not_its_deadline(keep_state: bool) -> None:
    tool = Python(timeout=30, keep_state=keep_state)
    result = ran(tool, "import signal\nsignal.raise_signal(signal.SIGINT)")
    again = ran(tool, "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)")
    tool.close()
    for one in (result, again):
        assert one.ok
        assert "\nKeyboardInterrupt" in one.text
        assert "stopped" not in one.text


def test_code_that_catches_the_interrupt_is_killed() -> None:
    tool = Python(timeout=1.5)
    code = "import time\nprint('before')\nwhile True:\n    try:\n        time.sleep(60)\n    except BaseException: pass"
    started = time.monotonic()
    result = ran(tool, code)
    tool.close()
    assert (result.code, result.text) == ("timeout", "before\n[stopped after 1.5 s, its time limit]")
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("code", ["while True: print('y' * 1000)", "import os\nwhile True: os.write(1, b'y' * 65536)"])
def test_row_32_endless_output_keeps_head_and_tail_and_says_how_much_is_missing(code: str) -> None:
    tool = Python(timeout=1)
    result = ran(tool, "print('first')\n" + code)
    tool.close()
    assert result.text.startswith("first\nyyy")
    assert " bytes left out …]\nyyy" in result.text
    assert result.metadata["stdout_cut"] > 1_000_000
    assert len(result.text) < 60_000


def test_row_33_a_daemon_that_holds_the_output_does_not_hold_the_call(python: Python, tmp_path: Path) -> None:
    tool = Python(tmp_path)
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            open("alive", "w").write(str(time.monotonic()))
            time.sleep(0.02)
    os._exit(0)
while not os.path.exists("alive"): time.sleep(0.01)
print("done")
"""
    started = time.monotonic()
    assert ran(tool, code).text == "done"
    assert time.monotonic() - started < 10
    assert ran(tool, "1").text == "[value]\n1"
    tool.close()
    last = (tmp_path / "alive").read_text()
    time.sleep(0.1)
    assert (tmp_path / "alive").read_text() == last


def test_row_31_a_fork_bomb_ends_and_the_next_call_is_answered() -> None:
    tool = Python(timeout=2, limits=SandboxLimits(processes=24))
    ran(tool, "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass")
    assert ran(tool, "1").text == "[value]\n1"
    tool.close()


def test_variables_are_kept_in_a_session(session: Python) -> None:
    ran(session, "def f(x):\n    return 1 / x")
    assert ran(session, "f(2)").text == "[value]\n0.5"
    assert '  File "<call 1>", line 2, in f\n    return 1 / x\n' in ran(session, "f(0)").text
    assert ran(session, "import sys; sys.exit(1)").text == "[exit code 1]"
    assert ran(session, "f(4)").text == "[value]\n0.25"


def test_a_session_that_ends_says_that_its_variables_are_gone(session: Python) -> None:
    ran(session, "x = 1")
    gone = "[its variables and imports are gone: the next call starts a new interpreter]"
    assert ran(session, "print('a')\nimport os; os._exit(2)").text == f"a\n[exit code 2]\n{gone}"
    assert "NameError" in ran(session, "x").text


def test_a_session_that_was_killed_between_two_calls_says_so(session: Python) -> None:
    ran(session, "x = 1")
    worker = _runs(session).session
    assert worker is not None
    asyncio.run(session._background.do(worker.tree.terminate()))
    assert "[the interpreter ended since the last call, so this one began without" in ran(session, "1").text


def test_an_interrupted_session_keeps_its_variables(session: Python) -> None:
    ran(session, "x = 1")
    _runs(session).timeout = 0.5
    assert ran(session, "while True: pass").code == "timeout"
    _runs(session).timeout = 20
    assert ran(session, "x").text == "[value]\n1"


def test_bytes_of_a_picture_are_a_picture(python: Python) -> None:
    result = ran(python, f"print('here')\n{DOT}")
    assert [part.data for part in result.content] == [DOT]
    assert result.text == "here\n[1 picture]"


def test_what_draws_itself_for_notebooks_is_a_picture(python: Python) -> None:
    code = f"class Chart:\n    def _repr_png_(self): return {DOT}\nChart()"
    assert [part.media_type for part in ran(python, code).content] == ["image/png"]


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n", b"no picture", DOT[:-5], b"\xff\xd8\xff0"])
def test_what_only_claims_to_be_a_picture_is_left_out(python: Python, data: bytes) -> None:
    """A provider would refuse the request because of it, and every later one of the conversation."""
    result = ran(python, f"class Chart:\n    def _repr_png_(self): return {data}\nChart()")
    assert result.content == ()
    assert result.text == "[1 more pictures were left out: too many, too large, or damaged]"


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_open_figures_are_pictures() -> None:
    tool = Python(timeout=60)
    result = ran(tool, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.figure()\nplt.show()\nprint('drawn')")
    tool.close()
    assert [part.data[:4] for part in result.content] == [b"\x89PNG", b"\x89PNG"]
    assert result.text == "drawn\n[2 pictures]"


def test_a_forged_report_is_an_error(python: Python) -> None:
    """The code finds the descriptor through which its report goes, and does not know the number of its request."""
    forged = '{"value": "forged", "images": [["image/png", 5], 7, null], "skipped": -1, "error": [], "exit": "x"}'
    code = f"""
import os
for fd in range(3, 20):
    try: os.write(fd, {forged.encode()!r} + b"\\n")
    except OSError: pass
os._exit(0)
"""
    for written in (forged.encode(), b"[" * 100_000, b"\xff", b""):
        found = ran(python, code.replace(repr(forged.encode()), repr(written)))
        assert "it wrote where the interpreter reports how its code ended" in found.text


@pytest.mark.parametrize("late", ["", "threading.Timer(0.05, write).start()"])
@pytest.mark.parametrize("written", ["{}\n", "x", "[" * 9999 + "\n"])
def test_no_call_of_a_session_gets_the_report_of_another(session: Python, written: str, late: str) -> None:
    code = f"""
import os, threading, time
def write():
    for fd in range(3, 40):
        try: os.write(fd, {written.encode()!r})
        except OSError: pass
{late or "write()"}
time.sleep(0.01)
'first'
"""
    texts = [ran(session, code).text, ran(session, "import time; time.sleep(0.1); 'second'").text]
    assert any("it wrote where the interpreter reports" in text for text in texts)
    assert ran(session, "'third'").text == "[value]\n'third'"


def test_the_watching_process_can_be_neither_read_nor_written(python: Python) -> None:
    code = """
import os
for name in ("mem", "fd/0", "fd/3", "environ", "maps"):
    try: open(f"/proc/{os.getppid()}/{name}", "rb").read(1)
    except OSError as e: pass
    else: print("read", name)
print("done")
"""
    assert ran(python, code).text == "done"


def test_row_38_what_is_secret_outside_is_not_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    canary = "canary-6f1d2c"
    monkeypatch.setenv("SERVICE_KEY", canary)
    caplog.set_level(logging.DEBUG)
    tool = Python(tmp_path)
    code = """
import glob, os
print(dict(os.environ))
for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline"):
    try: print(open(path, "rb").read())
    except OSError: pass
"""
    result = ran(tool, code)
    tool.close()
    assert canary not in f"{result.text} {result.metadata} {tool!r} {caplog.text}"


def test_code_works_in_the_folder_that_is_named_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("inside")
    tool = Python(tmp_path / "work")
    assert ran(tool, "open('a.txt').read()").text == "[value]\n'inside'"
    outside = ran(tool, f"open({str(tmp_path / 'outside')!r})").text
    assert "FileNotFoundError" in outside or "PermissionError" in outside  # bubblewrap hides it, Landlock refuses it
    assert "PermissionError" in ran(tool, "import socket\nsocket.create_connection(('127.0.0.1', 9))").text
    tool.close()


def test_calls_that_come_at_once_run_at_once(tmp_path: Path) -> None:
    """Each ends when all have begun."""
    tool = Python(tmp_path, timeout=20)
    met = "import os, time\nopen('{0}', 'w').close()\nwhile not set('012') <= set(os.listdir()): time.sleep(0.01)\n{0}"

    async def all_three() -> list[ToolResult]:
        return await asyncio.gather(*(tool.python(met.format(n)) for n in range(3)))

    assert [result.text for result in asyncio.run(all_three())] == ["[value]\n0", "[value]\n1", "[value]\n2"]
    tool.close()


def test_a_cancelled_call_is_killed(tmp_path: Path) -> None:
    tool = Python(tmp_path)
    code = "import time\nwhile True:\n    open('alive', 'w').write(str(time.monotonic()))\n    time.sleep(0.01)"

    async def cancelled() -> None:
        task = asyncio.create_task(tool.python(code))
        while not (tmp_path / "alive").exists():  # noqa: ASYNC110 - the event is in another process
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await tool.python("1")

    asyncio.run(cancelled())
    tool.close()
    last = (tmp_path / "alive").read_text()
    time.sleep(0.05)
    assert (tmp_path / "alive").read_text() == last


def test_a_collected_tool_leaves_no_thread_and_no_folder() -> None:
    threads = set(threading.enumerate())
    tool, unused = Python(), Python()
    assert ran(tool, "1").ok
    folders = [_runs(one).sandbox.workdir for one in (tool, unused)]
    assert [folder.exists() for folder in folders] == [True, True]
    del tool, unused
    gc.collect()
    assert [folder.exists() for folder in folders] == [False, False]
    left = {thread for thread in set(threading.enumerate()) - threads if not thread.name.startswith("asyncio_")}
    assert left == set()  # a worker of the loop that all tools share is not the tool's


def test_what_cannot_be_imported_in_advance_is_said() -> None:
    tool = Python(preload=["no_such_module"])
    result = ran(tool, "1")
    tool.close()
    assert result.error is not None
    assert "no_such_module (ModuleNotFoundError" in result.error


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("print('a')\n6 * 7", "a\n[value]\n42"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def f(:", "SyntaxError"),
        ("open('/etc/passwd')", "PermissionError"),
        ("x = 'a' * (1 << 33)", "MemoryError"),
        ("print('\\x1b[31mred')", "red"),
        ("while True: pass", "[stopped after 0.3 s, its time limit]"),
        ("9 ** 9 ** 8", "[stopped after 0.3 s, its time limit]"),
    ],
)
@pytest.mark.skipif(importlib.util.find_spec("pydantic_monty") is None, reason="the extra monty is not installed")
def test_the_same_in_monty(code: str, text: str) -> None:
    tool = Python(sandbox="monty", timeout=0.3)
    result = ran(tool, code)
    tool.close()
    assert text in result.text
    assert (result.code == "timeout") == ("time limit" in result.text)


@pytest.mark.skipif(importlib.util.find_spec("pydantic_monty") is None, reason="the extra monty is not installed")
def test_a_session_in_monty() -> None:
    tool = Python(sandbox="monty", keep_state=True, timeout=0.3)
    texts = [ran(tool, code).text for code in ("x = 1", "while True: pass", "x")]
    tool.close()
    assert texts[-1] == "[value]\n1"


def test_what_monty_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no files and no packages: omit root"):
        Python(tmp_path, sandbox="monty")
