"""The choice of a sandbox that works on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Final

from agentkit.checks.bounds import PATH, Bound, Bounds, each, instance, one_of, or_none, refuse
from agentkit.errors import ConfigError, SandboxError, SandboxUnavailable
from agentkit.sandbox.base_sandbox import BaseSandbox, Setup
from agentkit.sandbox.bubblewrap import Bubblewrap
from agentkit.sandbox.launcher_sandbox import Landlock, UnconfinedSandbox
from agentkit.sandbox.probe import probe
from agentkit.sandbox.protocol import Sandbox
from agentkit.sandbox.quota import SandboxLimits

KINDS: Final = ("auto", "bwrap", "landlock", "none")

BOUNDS: Final[Bounds] = {
    "kind": one_of(KINDS),
    "workdir": or_none(PATH, "for a private one"),
    "read": each(Bound(lambda path: PATH.holds(path) and Path(path).exists(), ""), "a list of paths that exist"),
    "limits": or_none(instance(SandboxLimits, "SandboxLimits"), "for the default ones"),
}


def sandbox(
    kind: str = "auto",
    *,
    workdir: str | Path | None = None,
    read: Sequence[str | Path] = (),
    protected: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    limits: SandboxLimits | None = None,
) -> Sandbox:
    """A place to run untrusted commands.

    Args:
        kind: `bwrap` (bubblewrap), `landlock` (agentkit's launcher), `auto` for the first of them that passes the
            probes on this machine, or `none`, which isolates nothing.
        workdir: the folder in which commands run and which they may change; created if missing. By default a private
            temporary one, removed by `close`.
        read: further paths that commands may read.
        protected: names of files and folders at the top of `workdir`, such as `.git`, that commands may read but not
            change, rename or remove. What does not exist cannot be protected. `none` protects nothing.
        env: variables for every command, in addition to HOME, LANG, PATH and TMPDIR. This process's own environment is
            never passed on.
        limits: for commands that bring none.

    Raises:
        ConfigError: there is no such kind, a path to be read does not exist, or a name to be protected is not that of
            a file or folder in `workdir`.
        SandboxUnavailable: the kind does not work here, or, for `auto`, no kind does. Never a weaker one instead.
    """
    refuse("sandbox", {"kind": kind, "workdir": workdir, "read": read, "limits": limits}, BOUNDS)
    setup = Setup(
        None if workdir is None else Path(workdir),
        tuple(Path(path).absolute() for path in read),
        protectable(workdir, protected),
        dict(env or {}),
        limits or SandboxLimits(),
    )
    if kind == "none":
        return UnconfinedSandbox(setup)
    candidates = {kind: MAKERS[kind]} if kind != "auto" else MAKERS
    missing: dict[str, str] = {}
    for name, variants in candidates.items():
        for make in variants:
            if not (wrong := fault_of(make)):
                try:
                    return make(setup)
                except SandboxUnavailable as e:
                    wrong = str(e)
            missing[name] = f"{missing[name]}; or: {wrong}" if name in missing else wrong
    listed = "".join(f"\n- {name}: {wrong}" for name, wrong in missing.items())
    raise SandboxUnavailable(
        f"no sandbox of kind {kind!r} works on this machine; nothing weaker is used instead:{listed}"
    )


def protectable(workdir: str | Path | None, names: Sequence[str]) -> tuple[str, ...]:
    """The names to be protected, if that is possible."""
    for name in names:
        entry = None if workdir is None else Path(workdir, name)
        if entry is None or "/" in name or name in ("", ".", "..") or entry.is_symlink() or not entry.exists():
            raise ConfigError(f"protected: expected names of files and folders in `workdir`, got {name!r}")
    return tuple(dict.fromkeys(names))


VARIANTS: Final[dict[str, Callable[[Setup], BaseSandbox]]] = {
    "bwrap": Bubblewrap,
    "landlock": Landlock,
    "landlock without namespaces": partial(Landlock, namespaces=()),
}
"""Most containers forbid namespaces."""

MAKERS: Final[dict[str, tuple[Callable[[Setup], BaseSandbox], ...]]] = {
    "bwrap": (VARIANTS["bwrap"],),
    "landlock": (VARIANTS["landlock"], VARIANTS["landlock without namespaces"]),
}
"""By kind, the backends in order of strength."""


@cache
def fault_of(make: Callable[[Setup], BaseSandbox]) -> str:
    """Return the backend's fault on this machine, in words; empty if all attempts to escape were contained.

    Tested once per process, in a thread, because the caller may be inside an event loop.
    """
    with ThreadPoolExecutor(1) as thread:
        try:
            found = thread.submit(lambda: asyncio.run(_run_probe(make))).result()
        except (SandboxError, OSError) as e:
            return str(e)
    return "; ".join(f"{name}: {reached}" for name, reached in found.items() if reached)


async def _run_probe(make: Callable[[Setup], BaseSandbox], thorough: bool = False) -> dict[str, str | None]:
    async with make(Setup()) as box:
        return await probe(box, thorough=thorough)


async def report(variant: str) -> dict[str, str | None] | str:
    """Return the success of every attempt on one of `VARIANTS`, by name; or why it is not available here."""
    try:
        return await _run_probe(VARIANTS[variant], thorough=True)
    except (SandboxError, OSError) as e:
        return str(e)
