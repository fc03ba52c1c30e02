"""What every sandbox promises of a command: its output, its end, its limits, its whole tree. Run on each backend."""

from __future__ import annotations

import asyncio

from agentkit.sandbox import sandbox


def test_a_command_reads_its_files_and_its_stdin() -> None:
    async def main() -> str:
        async with sandbox("none") as box:
            outcome = await box.run(["cat", "src/a.txt", "-"], files={"src/a.txt": b"one\n"}, stdin=b"two\n")
            return outcome.stdout

    assert asyncio.run(main()) == "one\ntwo\n"
