"""What is said in a thread: the message is stored before anything else happens to the thread. Runs nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from agentkit.agent.prompts import Prompt
from agentkit.errors import ThreadExists, ThreadNotFound

if TYPE_CHECKING:
    from agentkit.threads.kept_threads import KeptThreads


async def put(threads: KeptThreads, thread_id: str, message: Prompt, *, client_id: str | None = None) -> int:
    """`add_message` to a thread that may be new; returns the message's `seq`."""
    try:
        return await threads.add_message(thread_id, message, client_id=client_id)
    except ThreadNotFound:
        with suppress(ThreadExists):  # created by someone else just now
            await threads.create_thread(thread_id)
        return await threads.add_message(thread_id, message, client_id=client_id)
