"""Starts a worker of Ray that does not import pyarrow, numpy and starlette: 40 MiB less for each actor.

Ray imports them into every worker in which they are installed, to send their objects in its own ways; tools and
records need none of that. A tool that imports them gets them. Run by Ray, as `py_executable` of a `runtime_env`:
`python -m agentkit.rollout.distributed.light_worker <Ray's worker program> <its arguments>`.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys


def main() -> None:
    """Run Ray's worker program in this process."""
    with contextlib.suppress(ImportError):  # a Ray that has it elsewhere imports what it likes
        from ray.util import serialization_addons

        serialization_addons.apply = lambda serialization_context: None
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
