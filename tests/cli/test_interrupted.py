"""Ctrl-C at any moment from its first imports to Python's end: it ends as an interrupted program, and quietly."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from agentkit.cli.chat import typed_messages
from agentkit.cli.screen import Screen

BEGUN = """
import sys

def told(event, details):
    if event == "import" and details[0] == "agentkit.cli":
        print("begun", flush=True)

sys.addaudithook(told)
from agentkit.__main__ import main
sys.exit(main())
"""
"""What the installed program does, and a sign when it begins to load: before, it is Python that starts."""

ROOT = Path(__file__).parents[2]


def interrupted(after: float, *words: str) -> tuple[int, str]:
    """Press Ctrl-C so many seconds after it began to load: the status, and what was complained of."""
    process = subprocess.Popen(
        [sys.executable, "-c", BEGUN, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


IN_IMPORTS = re.compile(r"Exception ignored in: <function _get_module_lock.*?\nKeyboardInterrupt: ?\n", re.DOTALL)
"""What Python itself says if the key falls into what it does after an import; the program does not learn of it."""


def ends_quietly(milliseconds: int) -> None:
    status, err = interrupted(milliseconds / 1000, "threads", "list", "--store", "none.db")
    err = IN_IMPORTS.sub("", err)
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 1
    assert status in {130, -signal.SIGINT, *([2] if err else [])}, "only what had its answer has another status"


@pytest.mark.parametrize("milliseconds", range(0, 600, 75))
def test_ctrl_c_while_python_imports_is_quiet(milliseconds: int) -> None:
    ends_quietly(milliseconds)


@pytest.mark.soak
@pytest.mark.parametrize("milliseconds", range(0, 1000, 25))
def test_ctrl_c_at_any_moment_is_quiet(milliseconds: int) -> None:
    ends_quietly(milliseconds)


def test_the_first_moment_ends_by_the_signal() -> None:
    assert interrupted(0, "chat", "--model", "openai:m") == (-signal.SIGINT, "")


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    """As in a background job of a shell."""
    program = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{BEGUN}"
    process = subprocess.Popen([sys.executable, "-c", program, "--version"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.split()[0]) == (0, "agentkit")


def test_the_installed_program_begins_with_the_guard() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"agentkit": "agentkit.__main__:main"}
    script = (
        "import agentkit, sys; before = set(sys.modules); import agentkit.__main__; print(*set(sys.modules) - before)"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == ["agentkit.__main__"]


class Pressing(io.StringIO):
    """A terminal at which Ctrl-C is pressed while it shows something, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def write(self, text: str) -> int:
        written = super().write(text)
        if self.times:
            self.times -= 1
            signal.raise_signal(signal.SIGINT)
        return written


@pytest.mark.parametrize("times", range(4))
def test_between_two_prompts_ctrl_c_ends_no_chat(times: int) -> None:
    """No editor reads the keys there, so it comes as a signal, at whatever step."""
    typed = iter([None, "hello"])
    asked = (lambda: next(typed)) if times else (lambda: "hello")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        out = Pressing(times)
        assert next(typed_messages(asked, Screen(out, colour=False))) == "hello"
    finally:
        signal.signal(signal.SIGINT, before)
    assert out.times == 0
    assert ("(Ctrl-C again, or Ctrl-D, ends the chat)" in out.getvalue()) == bool(times)
