"""Which sandbox works here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from agentkit.checks.bounds import one_of, refuse
from agentkit.errors import SandboxUnavailable
from agentkit.sandbox.confined import Settings
from agentkit.sandbox.launching import Unconfined
from agentkit.sandbox.protocol import Sandbox
from agentkit.sandbox.quota import SandboxLimits

KINDS = ("auto", "bwrap", "landlock", "none")


def sandbox(
    kind: str = "auto",
    *,
    workdir: str | Path | None = None,
    read: Sequence[str | Path] = (),
    env: Mapping[str, str] | None = None,
    limits: SandboxLimits | None = None,
) -> Sandbox:
    """A place to run commands that nobody vouches for.

    Args:
        kind: `bwrap` (bubblewrap), `landlock` (a launcher of our own), `auto` for the first of them that passes the
            probes on this machine, or `none`, which isolates nothing.
        workdir: the folder in which commands run and which they may change; created if missing. By default a private
            temporary one, removed by `close`.
        read: further paths that commands may read.
        env: variables for every command, in addition to HOME, LANG, PATH and TMPDIR. This process's own environment is
            never passed on.
        limits: for commands that bring none.

    Raises:
        ConfigError: there is no such kind.
        SandboxUnavailable: the kind does not work here, or, for `auto`, no kind does. Never a weaker one instead.
    """
    refuse("sandbox", {"kind": kind}, {"kind": one_of(KINDS)})
    settings = Settings(
        None if workdir is None else Path(workdir),
        tuple(Path(path) for path in read),
        dict(env or {}),
        limits or SandboxLimits(),
    )
    if kind == "none":
        return Unconfined(settings)
    raise SandboxUnavailable(f"sandbox {kind!r}: not yet here")
