"""Run what a stranger wrote: it sees its own folder, the system read-only, and no network. Runs offline."""

from __future__ import annotations

import asyncio

from agentkit.sandbox import SandboxLimits, SandboxUnavailable, sandbox

HOSTILE = """
import socket
print("numbers add up to", sum(map(int, open("numbers.txt"))))
for attempt in (
    lambda: open("/etc/shadow").read(),
    lambda: open("/usr/planted", "w"),
    lambda: socket.create_connection(("example.org", 80)),
    lambda: bytearray(8 << 30),
):
    try:
        attempt()
        print("escaped!")
    except (OSError, MemoryError) as e:
        print("refused:", type(e).__name__)
while True:
    pass
"""


async def main() -> None:
    """Run it, and see how it ends."""
    try:
        box = sandbox()  # bubblewrap or Landlock, if it holds on this machine; never anything weaker
    except SandboxUnavailable as e:
        print(e)
        return
    async with box:
        print("sandbox:", box.name)
        outcome = await box.run(
            [box.python, "-u", "-c", HOSTILE], files={"numbers.txt": b"19\n23\n"}, limits=SandboxLimits(cpu=1)
        )
        print(outcome.stdout, end="")
        print(f"ended by its limit of {outcome.limit}: {outcome.signal} after {outcome.wall:.1f} s")


asyncio.run(main())
