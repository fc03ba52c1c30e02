"""Which holder of a lease is known to be gone."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentkit import ThreadManager
from agentkit.errors import ThreadBusy, ThreadNotFound
from agentkit.threads.owner import is_dead, this_process

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def ended() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@linux
def test_a_process_of_this_machine_that_ended_is_known_to_be_gone() -> None:
    machine = this_process().rsplit("/", 2)[0]
    assert is_dead(f"{machine}/{ended()}/1")
    assert is_dead(f"{machine}/{os.getpid()}/1")  # another one had this id before
    assert not is_dead(this_process())


@linux
def test_of_another_container_nothing_is_known() -> None:
    host, boot, _, pid, start = this_process().split("/")
    assert not is_dead(f"{host}/{boot}/pid:[1]/{ended()}/{start}")
    assert not is_dead(f"elsewhere/{boot}/pid:[1]/{pid}/{start}")


@pytest.mark.parametrize("owner", ["", "worker 7", "a/b/c"])
def test_of_an_owner_in_other_words_nothing_is_known(owner: str) -> None:
    assert not is_dead(owner)


@linux
def test_a_thread_that_an_ended_process_ran_can_be_deleted(tmp_path: Path) -> None:
    machine = this_process().rsplit("/", 2)[0]

    async def main() -> None:
        async with ThreadManager(tmp_path / "a.db") as threads:
            for name, owner in (("dead", f"{machine}/{ended()}/1"), ("alive", "elsewhere")):
                await threads.create_thread(name)
                await threads.store.acquire(name, owner, 60)
            await threads.delete_thread("dead")
            with pytest.raises(ThreadNotFound):
                await threads.get_thread("dead")
            with pytest.raises(ThreadBusy):
                await threads.delete_thread("alive")

    asyncio.run(main())
