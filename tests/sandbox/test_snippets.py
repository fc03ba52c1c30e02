"""Snippets in monty: always with limits, and what they print stays bounded."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from agentkit.sandbox import SandboxLimits, SandboxOutcome, Snippets

pytest.importorskip("pydantic_monty")

QUICK = SandboxLimits(cpu=0.3, memory=64 << 20, output=1000)


def run(source: str) -> SandboxOutcome:
    async def main() -> SandboxOutcome:
        async with Snippets(QUICK) as snippets:
            return await snippets.run_python(source)

    return asyncio.run(main())


def test_what_it_prints_is_returned_and_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = run("print(sum([19, 23]))")
    assert (outcome.stdout, outcome.stderr, outcome.exit_code, outcome.limit) == ("42\n", "", 0, None)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("a b", "SyntaxError"),
        ("open('/etc/passwd').read()", "PermissionError"),
        ("import socket", "ModuleNotFoundError"),
        ("import os\nos.environ['HOME']", "Error"),
        ("def f(): return f()\nf()", "RecursionError"),
    ],
)
def test_an_exception_is_an_outcome(source: str, message: str) -> None:
    outcome = run(source)
    assert (outcome.exit_code, outcome.limit) == (1, None)
    assert message in outcome.stderr


@pytest.mark.parametrize(
    ("source", "limit"), [("while True: pass", "cpu"), ("x = [0] * 10**9", "memory"), ("9 ** 9 ** 8", "memory")]
)
def test_limits_hold(source: str, limit: str) -> None:
    assert run(source).limit == limit


def test_row_32_output_without_end() -> None:
    outcome = run("while True: print('x' * 100)")
    assert outcome.limit == "cpu"
    assert outcome.stdout_cut > 100_000
    assert len(outcome.stdout) < 1100


def test_snippets_share_workers_but_no_names() -> None:
    async def main() -> list[int | None]:
        async with Snippets(QUICK) as snippets:
            await snippets.run_python("x = 1")
            return [(await snippets.run_python(source)).exit_code for source in ("x", "1")]

    assert asyncio.run(main()) == [1, 0]


@pytest.mark.soak
def test_a_program_that_ends_at_once_is_not_aborted() -> None:
    """Monty's threads took the interpreter's lock while it was finalized: 10 of 30 runs ended by SIGABRT or SIGBUS."""
    program = """
import asyncio
import subprocess
import sys
from agentkit.sandbox import Snippets
async def main():
    async with Snippets() as snippets:
        await snippets.run_python("print(1)")
asyncio.run(main())
"""
    codes = [subprocess.run([sys.executable, "-c", program], check=False).returncode for _ in range(30)]
    assert codes == [0] * 30
