"""Python code, run in a sandbox: its output, its last value, its traceback, its pictures."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from agentkit import Tool, ToolResult, openapi_schema, xml_schema
from agentkit.errors import ConfigError
from agentkit.sandbox import Sandbox, SandboxError, SandboxLimits
from agentkit.sandbox import sandbox as made
from agentkit_tools.code.background import Background
from agentkit_tools.code.leftovers import Leftovers
from agentkit_tools.code.monty import MontyRuns
from agentkit_tools.code.worker import CodeOutcome, Worker, Workers
from agentkit_tools.protected_names import PROTECTED, protected_in

KEPT: Final = 24_000  # bytes of each output stream: with a value and a traceback still below a processor's limit
SESSION: Final = 86_400.0  # seconds of processor time of an interpreter that is kept: the most that there can be
AT_ONCE: Final = 4  # calls of one tool that run at the same time, if nothing is kept
FONTS: Final = "/etc/fonts"  # settings that matplotlib's and others' drawing complains without
USES: Final = 500  # after how many calls a warm interpreter is replaced: its own processor time also counts


class Python(Tool):
    """Runs Python code in a sandbox, without network and without your files and environment variables.

    The result holds what was printed, the value of the last expression, and the traceback, even if the code ends by
    `sys.exit`, is killed, or is stopped at the deadline. Pictures are returned as images: matplotlib's figures that are
    still open, and a last expression that is an image (of PIL, of matplotlib, or the bytes of a PNG, JPEG or GIF file).
    Files that the code writes stay in its folder, and are not returned.

    The interpreter is the one of this process, with its installed packages. It is warm: a call takes milliseconds.

    Args:
        root: the folder where the code runs and which it may change, such as that of `Files`; by default a private
            one, empty at first, which lasts as long as the tool.
        sandbox: `auto`, `bwrap` or `landlock`, see `agentkit.sandbox.sandbox`; `none`, which isolates nothing; or
            `monty` (extra `monty`), an interpreter of a subset of Python that has no files, packages and pictures.
        keep_state: whether variables and imports are kept between calls, in which its threads and processes are
            stopped. If the interpreter ends, the result says so, and the next call starts a new one.
        timeout: seconds for one call. Then the code is interrupted, which keeps the state, or else killed.
        limits: of the sandbox; its `wall` and `output` are not used, nor its `cpu` with `keep_state`.
        preload: modules that are imported in advance, such as `numpy`.
        read: further paths that the code may read.
        protected: names of files and folders at the top of `root` that the code may read but not change, by default as
            for `Files`; patterns as there. What does not exist when the tool is made is not protected, nor are links;
            of git repositories, see `Shell`.

    Raises:
        ConfigError: an argument that this sandbox does not have.
        SandboxUnavailable: no such sandbox works on this machine; nothing weaker is used instead.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        *,
        sandbox: str = "auto",
        keep_state: bool = False,
        timeout: float = 30.0,
        limits: SandboxLimits | None = None,
        preload: Sequence[str] = (),
        read: Sequence[str | Path] = (),
        protected: Collection[str] = PROTECTED,
    ) -> None:
        cpu = SESSION if keep_state else limits.cpu if limits is not None else min(4 * timeout, SESSION)
        limits = replace(limits or SandboxLimits(), cpu=cpu)
        self.keep_state = keep_state
        self.timeout = timeout
        kept = protected_in(root, protected)
        self._left = Leftovers(root, protected, kept if sandbox != "none" else ())
        self._runs: Runs | MontyRuns
        if sandbox == "monty":
            if unused := [name for name, value in (("root", root), ("preload", preload), ("read", read)) if value]:
                raise ConfigError(f"sandbox='monty' has no files and no packages: omit {', '.join(unused)}")
            self._runs = MontyRuns(limits, timeout, KEPT)
        else:
            box = made(sandbox, workdir=root, read=[*read, FONTS], protected=kept)
            self._runs = Runs(box, limits, tuple(preload), timeout)
        self._background = Background(self, partial(self._left.last, self._runs.close))

    @openapi_schema
    @xml_schema(name="python", content="code")
    async def python(self, code: str) -> ToolResult:
        """Run Python code. You get what it prints, the value of its last expression, and the traceback if it fails.

        There is no network and no input. Figures of matplotlib that are still open at the end are returned as images.
        Import and define everything that the code uses, unless an earlier result shows that variables are kept.

        Args:
            code: the code to run
        """
        try:
            return await self._background.do(self._left.run_with_notes(self._ran, code))
        except SandboxError as e:
            return ToolResult(error=f"the code did not run: {e}", code="tool_error")

    async def _ran(self, code: str) -> ToolResult:
        ran, before = await self._runs.in_session(code) if self.keep_state else (await self._runs.alone(code), "")
        return result_of(ran, self.timeout, self.keep_state, before)

    def close(self) -> None:
        """Kill all running code, and remove the private folder."""
        self._background.stop()


class Runs:
    """The interpreters of one tool; used in the tool's own thread.

    Args:
        sandbox: where they run.
        limits: for each of them.
        preload: modules that they import in advance.
        timeout: seconds for one piece of code.
    """

    def __init__(self, sandbox: Sandbox, limits: SandboxLimits, preload: tuple[str, ...], timeout: float) -> None:
        self.sandbox = sandbox
        self.timeout = timeout
        self.limits = limits
        self.preload = preload
        self.workers = Workers(self.start, AT_ONCE, USES)
        self.session: Worker | None = None
        self.calls = 0
        self.one_by_one = asyncio.Lock()

    async def start(self) -> Worker:
        """A new interpreter."""
        return await Worker.start(self.sandbox, self.limits, self.preload)

    async def alone(self, code: str) -> CodeOutcome:
        """Run code that shares nothing with other code but the folder."""
        async with self.workers.one() as worker:
            return await worker.run(code, timeout=self.timeout, output=KEPT)

    async def in_session(self, code: str) -> tuple[CodeOutcome, str]:
        """Run code with the variables of earlier code; also return a note if these are gone."""
        async with self.one_by_one:
            before = ""
            if self.session is not None and not self.session.tree.running:
                await self.session.close()
                self.session = None
                before = "the interpreter ended since the last call, so this one began without variables and imports"
            worker = self.session = self.session or await self.start()
            self.calls += 1
            ran = await worker.run(code, timeout=self.timeout, session=True, name=f"<call {self.calls}>", output=KEPT)
            if not ran.alive:
                await worker.close()
                self.session = None
            return ran, before

    async def close(self) -> None:
        """Kill all of them."""
        await self.sandbox.close()


def result_of(ran: CodeOutcome, timeout: float, keep_state: bool, before: str = "") -> ToolResult:
    """Return the outcome as text for the model, with the details as metadata for the application.

    The result is an error only if the code did not come to its end; an exception is an answer.
    """
    sections = [ran.stdout] if ran.stdout else []
    for label, text in (("value", ran.value), ("stderr", ran.stderr), ("error", ran.error)):
        if text:
            sections.append(f"[{label}]\n{text}")
    notes = [before, *endings(ran, timeout, keep_state)]
    if ran.images:
        notes.append("1 picture" if len(ran.images) == 1 else f"{len(ran.images)} pictures")
    if not sections and not any(notes):
        notes.append("no output: nothing was printed, and the last statement has no value")
    sections += [f"[{note}]" for note in notes if note]
    text = "\n".join(section.rstrip("\n") for section in sections)
    metadata = {name: value for name, value in asdict(ran).items() if name not in ("images", "images_left_out")}
    images: Any = ran.images
    if ran.timed_out:
        return ToolResult(error=text, code="timeout", content=images, metadata=metadata)
    if ran.lost:
        return ToolResult(error=text, code="tool_error", content=images, metadata=metadata)
    return ToolResult(text, content=images, metadata=metadata)


def endings(ran: CodeOutcome, timeout: float, keep_state: bool) -> list[str]:
    """Return notes on an unusual end of the code."""
    notes = []
    if ran.timed_out:
        notes.append(f"stopped after {timeout:g} s, its time limit")
    elif ran.ending is not None:
        notes.append(ran.ending)
    if keep_state and not ran.alive:
        notes.append("its variables and imports are gone: the next call starts a new interpreter")
    if not keep_state and ran.error_type == "NameError":
        notes.append("variables and imports of earlier calls are not kept: each call starts anew")
    if ran.images_left_out:
        notes.append(f"{ran.images_left_out} more pictures were left out: too many, too large, or damaged")
    return notes
