"""What runs on a loop in a thread of its own: in the child of a fork, at the program's end, and when nobody says so."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from typing import Any

import pytest

from agentkit.interop.background_loop import BackgroundLoop

COUNTING = """
import os, sys, time, types
sys.modules.setdefault("trl", types.ModuleType("trl"))  # the exports only ask whether it is there
from agentkit import openapi_schema

class Counter:
    def __init__(self, start: int = 0) -> None:
        self.total = start
    @openapi_schema
    def add(self, n: int) -> int:
        \"\"\"Add.\"\"\"
        self.total += n
        return self.total
    async def release(self) -> None:
        for _ in range(5):
            await __import__("asyncio").sleep(0.01)
        print("released", self.total, "in the", WHO, flush=True)

WHO = "parent"
"""

USES = {
    "skyrl": """
from agentkit.interop.skyrl import to_skyrl
Group = to_skyrl(Counter)
def use(): return Group(start=1).add(2)
""",
    "trl": """
from agentkit.interop.trl import to_trl_environment
Environment = to_trl_environment(Counter)
def use():
    made = Environment()
    made.reset()
    return made.add(n=3)
""",
    "langchain": """
from agentkit.interop.langchain import to_langchain
def use(): return to_langchain(Counter(1))[0].invoke({"n": 2})
""",
    "releases": """
from agentkit.interop.owned_instance import RELEASES
async def three(): return 3
def use(): return RELEASES.run(three(), 5)
""",
}
FORKED = """
before = use()
if (child := os.fork()) == 0:
    WHO = "child"
    print("child", before, use(), use(), flush=True)
    os._exit(0)
limit = time.monotonic() + 30
while os.waitpid(child, os.WNOHANG) == (0, 0):
    if time.monotonic() > limit:
        os.kill(child, 9)
        print("the child hangs")
        break
    time.sleep(0.01)
print("parent", use(), flush=True)
"""


def run(*parts: str) -> list[str]:
    """Run a program; returns the lines it wrote. It must not write an error."""
    done = subprocess.run([sys.executable, "-c", "".join(parts)], capture_output=True, text=True, timeout=60)
    errors = [
        line for line in done.stderr.splitlines() if "Warning: This process" not in line and "os.fork" not in line
    ]
    assert (done.returncode, errors) == (0, [])
    return done.stdout.splitlines()


@pytest.mark.share(2)
@pytest.mark.skipif(not hasattr(sys, "getdlopenflags"), reason="only POSIX systems fork")
@pytest.mark.parametrize("export", USES)
def test_what_was_used_before_a_fork_works_in_both_processes(export: str) -> None:
    """`datasets.map(num_proc=…)` and the workers of a DataLoader fork."""
    if export in ("skyrl", "langchain"):
        pytest.importorskip({"skyrl": "skyrl_gym", "langchain": "langchain_core"}[export])
    said = [line for line in run(COUNTING, USES[export], FORKED) if not line.startswith("released")]
    assert said == ["child 3 3 3", "parent 3"]


@pytest.mark.skipif(not hasattr(sys, "getdlopenflags"), reason="only POSIX systems fork")
def test_a_child_releases_nothing_that_the_parent_holds() -> None:
    forked = """
made = Environment()
made.reset()
made.add(n=7)
if (child := os.fork()) == 0:
    WHO = "child"
    made.reset()
    made.add(n=1)
    sys.exit()
os.waitpid(child, 0)
"""
    assert run(COUNTING, USES["trl"], forked) == ["released 1 in the child", "released 7 in the parent"]


@pytest.mark.parametrize(
    "lives",
    [
        "made = Environment(); made.reset(); made.add(n=7)",
        "made = Environment(); made.reset(); made.reset(); made.add(n=7)",
        "made = [Environment() for _ in range(3)]\nfor each in made: each.reset()\nmade[0].add(n=7)",
    ],
)
def test_what_lives_until_the_program_ends_is_released_then(lives: str) -> None:
    released = run(COUNTING, USES["trl"], lives)
    assert released.count("released 7 in the parent") == 1
    assert len(released) == lives.count("reset()") * (3 if "range" in lives else 1)


def test_a_group_whose_environment_never_closes_it_is_released_all_the_same() -> None:
    pytest.importorskip("skyrl_gym")
    lives = """
closed, kept = Group(start=1), Group(start=2)
closed.add(2), kept.add(2)
closed.close()
print("closed")
use(), __import__("gc").collect()  # its groups hold themselves
limit = time.monotonic() + 30
while released < 2 and time.monotonic() < limit: time.sleep(0.01)
print("over")
"""
    counting = (
        COUNTING.replace("        print(", "        globals().update(released=released + 1)\n        print(")
        + "released = 0\n"
    )
    assert run(counting, USES["skyrl"], lives) == [
        "released 3 in the parent",
        "closed",
        "released 3 in the parent",
        "over",
        "released 4 in the parent",
    ]


def test_stop_waits_for_what_must_finish_and_cancels_the_rest() -> None:
    loop, seen = BackgroundLoop("test"), []

    async def work(name: str, steps: int) -> None:
        try:
            for _ in range(steps):
                await asyncio.sleep(0.001)
            seen.append(f"{name} ended")
        except asyncio.CancelledError:
            seen.append(f"{name} cancelled")
            raise

    other = loop.submit(work("other", 1_000_000))
    loop.finish(work("last", 20))
    loop.stop()
    assert seen == ["last ended", "other cancelled"]
    assert other.cancelled()


def test_what_is_to_finish_begins_once_when_its_holder_is_gone() -> None:
    loop, done = BackgroundLoop("test"), threading.Event()

    class Holder:
        pass

    async def work() -> None:
        done.set()

    holder: Any = Holder()
    now = loop.finish_after(holder, work)
    assert not done.is_set()
    del holder
    gc.collect()
    assert done.wait(30)
    done.clear()
    now()
    loop.stop()
    assert not done.is_set()
