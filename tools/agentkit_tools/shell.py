"""Shell commands in a sandbox: run to their end, or in the background under a name."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

from agentkit import Tool, ToolResult, openapi_schema, xml_schema
from agentkit.sandbox import RunningCommand, Sandbox, SandboxError, SandboxLimits, SandboxOutcome
from agentkit.sandbox import sandbox as made
from agentkit_tools.code.background import Background
from agentkit_tools.code.leftovers import Leftovers
from agentkit_tools.code.terminal_text import Reading, decode, readable
from agentkit_tools.protected_names import PROTECTED, protected_in

KEPT: Final = 60_000  # bytes of one answer: below a processor's limit
UNREAD: Final = 1 << 20  # bytes kept of what a background command writes between two looks at it
DAY: Final = 86_400.0  # seconds of processor time of each process of a background command: the most that there can be
FIRST_LOOK: Final = 0.5  # seconds: whether a background command fails at once
LOOK: Final = 1.0  # seconds that a look waits for something new
PLACES: Final = ("/usr/local/bin", "/usr/bin", "/bin")

IN_FOLDER: Final = 'cd -- "$1" && shift && exec "$@" 2>&1'
"""Constant: folder and command are arguments, so that neither is ever read as a part of another text."""


class Shell(Tool):
    """Runs shell commands in a sandbox, without network and without your files and environment variables.

    Each command is a separate shell: files stay, but not the current folder and variables. When a command ends or is
    stopped, everything that it started is killed. A command that is to continue, such as a server, runs in the
    background under a name, until it is terminated or the tool ends.

    The model reads plain text: control sequences (colours, titles, links, the clipboard) are removed. Of a long
    output the first and the last part are kept, with the number of bytes between them; the exit code is always shown.

    Args:
        root: the folder where commands run and which they may change, such as that of `Files`; by default a private
            one, empty at first, which lasts as long as the tool.
        sandbox: `auto`, `bwrap` or `landlock`; or `none`, which isolates nothing. See `agentkit.sandbox.sandbox`.
        most_seconds: the longest time that the model may wait for a command.
        most_sessions: how many commands may run in the background at the same time.
        limits: of the sandbox; its `wall` and `output` are not used, nor its `cpu` for background commands.
        protected: names of files and folders at the top of `root` that commands may read but not change, by default as
            for `Files`; patterns as there. So git can show `.git`, but not commit: pass fewer names if it must. What
            does not exist when the tool is made is not protected, nor are links; but where `.git` is protected, git
            repositories that commands make or change, at any depth and under any name, are left without settings that
            can run a program, and without hooks, once the command has ended: these are renamed, and a result says so.
        env: variables for the commands. The model can read them.
        read: further paths that commands may read.

    Raises:
        SandboxUnavailable: no such sandbox works on this machine; nothing weaker is used instead.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        *,
        sandbox: str = "auto",
        most_seconds: float = 300.0,
        most_sessions: int = 8,
        limits: SandboxLimits | None = None,
        protected: Collection[str] = PROTECTED,
        env: Mapping[str, str] | None = None,
        read: Sequence[str | Path] = (),
    ) -> None:
        self.most_seconds = most_seconds
        kept = protected_in(root, protected)
        box = made(sandbox, workdir=root, read=read, protected=kept, env=env)
        self._left = Leftovers(root, protected, kept if sandbox != "none" else ())
        self._commands = Commands(box, limits or SandboxLimits(cpu=most_seconds), most_sessions, self._left)
        self._background = Background(self, partial(self._left.last, self._commands.close))

    @openapi_schema
    @xml_schema(name="execute-command", attributes=["folder", "session_name", "blocking", "timeout"], content="command")
    async def execute_command(
        self,
        command: str,
        folder: str = ".",
        session_name: str | None = None,
        blocking: bool = True,
        timeout: float = 60.0,
    ) -> ToolResult:
        """Run a shell command, and wait for its end. You get its output and its exit code. There is no network.

        Files stay for later commands, but not the current folder and variables. At the end everything that the command
        started is killed. For what is to continue, such as a server, use blocking=false.

        Args:
            command: the command, as for bash
            folder: where to run it, relative to the working folder
            session_name: a name for a command that runs in the background; only with blocking=false
            blocking: false to run it in the background; look at it with check_command_output
            timeout: seconds after which a blocking command is killed
        """
        if not 0 < timeout <= self.most_seconds:
            return ToolResult(
                error=f"timeout={timeout:g}: expected seconds above 0, at most {self.most_seconds:g}; "
                "use blocking=false for a command that takes longer"
            )
        if blocking and session_name is not None:
            return ToolResult(error="session_name is for background commands: omit it, or use blocking=false")
        if blocking:
            return await self._did(self._commands.run, command, folder, timeout)
        return await self._did(self._commands.start, command, folder, session_name)

    @openapi_schema
    @xml_schema(name="check-command-output", attributes=["session_name", "kill_session"])
    async def check_command_output(self, session_name: str, kill_session: bool = False) -> ToolResult:
        """Look at a background command: what it wrote since the last look, and whether it has ended.

        Args:
            session_name: its name
            kill_session: whether to terminate it then
        """
        return await self._did(self._commands.look, session_name, LOOK, kill_session)

    @openapi_schema
    @xml_schema(name="terminate-command", attributes=["session_name"])
    async def terminate_command(self, session_name: str) -> ToolResult:
        """Kill a background command and everything that it started.

        Args:
            session_name: its name
        """
        return await self._did(self._commands.look, session_name, 0.0, True)

    @openapi_schema
    @xml_schema(name="list-commands")
    async def list_commands(self) -> ToolResult:
        """List the background commands: running, or ended and not looked at since."""
        return await self._did(self._commands.list_commands)

    def close(self) -> None:
        """Kill all running commands, and remove the private folder."""
        self._background.stop()

    async def _did(self, work: Callable[..., Awaitable[ToolResult]], *given: Any) -> ToolResult:
        try:
            return await self._background.do(self._left.run_with_notes(work, *given))
        except (CommandRefused, SandboxError) as e:
            return ToolResult(error=str(e), code="tool_error")


class CommandRefused(Exception):
    """A refused command, with the reason in words for the model."""


@dataclass(frozen=True, slots=True)
class Session:
    """A command in the background."""

    name: str
    command: str
    tree: RunningCommand
    since: float
    ended: Awaitable[object]
    reading: Reading = field(default_factory=Reading)


class Commands:
    """The commands of one tool; used in the tool's own thread.

    Args:
        sandbox: where they run.
        limits: for each of them.
        most: how many may run in the background.
        left: judges the folder whenever one of these has ended.
    """

    def __init__(self, sandbox: Sandbox, limits: SandboxLimits, most: int, left: Leftovers) -> None:
        self.sandbox = sandbox
        self.limits = limits
        self.most = most
        self.left = left
        self.sessions: dict[str, Session] = {}
        self.started = 0  # without a name
        self.shell = next((path for name in ("bash", "sh") if (path := which(name))), "/bin/sh")

    def line(self, command: str, folder: str) -> list[str]:
        """The program and its arguments that run a command in a folder."""
        return [self.shell, "-c", IN_FOLDER, "shell", folder, self.shell, "-c", command]

    async def run(self, command: str, folder: str, timeout: float) -> ToolResult:
        """Run a command to its end."""
        limits = replace(self.limits, wall=timeout, output=KEPT)
        return ended_result(await self.sandbox.run(self.line(command, folder), limits=limits), timeout)

    async def start(self, command: str, folder: str, name: str | None) -> ToolResult:
        """Start a command in the background; return also its first output."""
        running = {name for name, session in self.sessions.items() if session.tree.running}
        if len(running) >= self.most:
            raise CommandRefused(
                f"{len(running)} commands run in the background, no more are possible; terminate one of "
                f"{', '.join(sorted(running))}"
            )
        if name in running:
            raise CommandRefused(f"session {name!r} still runs; choose another name, or terminate it")
        if name is None:
            self.started += 1
            name = f"command-{self.started}"
        limits = replace(self.limits, cpu=DAY, output=UNREAD)
        tree = await self.sandbox.start(self.line(command, folder), limits=limits)
        ended = asyncio.gather(self.left.after(tree.wait), return_exceptions=True)
        self.sessions[name] = Session(name, command, tree, monotonic(), ended)
        return await self.look(name, FIRST_LOOK, False)

    async def look(self, name: str, wait: float, kill: bool) -> ToolResult:
        """Return a command's output since the last look, and its state; wait at most so long for new output."""
        session = self.sessions.get(name)
        if session is None:
            there = ", ".join(sorted(self.sessions)) or "none"
            raise CommandRefused(f"there is no session {name!r}; there are: {there}")
        progress = await session.tree.read(timeout=wait)
        text = decode(progress.stdout, session.reading)
        was_running = session.tree.running
        if was_running and not kill:
            return answer(text, f"session {name} is running, for {monotonic() - session.since:.1f} s", session=name)
        outcome = await session.tree.terminate()
        del self.sessions[name]
        text += "".join(session.reading.add(outcome.stdout))
        if was_running:
            return answer(text, f"session {name} was terminated", session=name)
        return ended_result(replace(outcome, stdout=text), 0.0)

    async def list_commands(self) -> ToolResult:
        """List the commands in the background, one per line."""
        lines = [
            f"{session.name}: {'running' if session.tree.running else 'ended'}, started "
            f"{monotonic() - session.since:.1f} s ago: {readable(session.command)[:200]}"
            for session in self.sessions.values()
        ]
        return ToolResult("\n".join(lines) or "no background commands")

    async def close(self) -> None:
        """Kill all of them."""
        await self.sandbox.close()


def which(name: str) -> str | None:
    """Return the path of a program that is also in the sandbox."""
    return shutil.which(name, path=":".join(PLACES))


def ended_result(outcome: SandboxOutcome, timeout: float) -> ToolResult:
    """Return the answer about a command that has ended."""
    text = readable(outcome.stdout + outcome.stderr)
    if outcome.timed_out:
        note = f"killed after {timeout:g} s, its time limit; give it more, or use blocking=false"
        return ToolResult(error=answer(text, note).text, code="timeout", metadata=details(outcome))
    if outcome.signal is not None:
        why = f", because it exceeded its limit of {outcome.limit}" if outcome.limit else ""
        return answer(text, f"killed by {outcome.signal}{why}", **details(outcome))
    return answer(text, f"exit code {outcome.exit_code}", **details(outcome))


def answer(text: str, note: str, **metadata: object) -> ToolResult:
    """Output, and a last line about it."""
    newline = "" if not text or text.endswith("\n") else "\n"
    return ToolResult(f"{text}{newline}[{note}]", metadata=metadata)


def details(outcome: SandboxOutcome) -> dict[str, object]:
    """Return the details for the application."""
    names = ("exit_code", "signal", "timed_out", "limit", "stdout_cut", "wall", "cpu")
    return {name: getattr(outcome, name) for name in names}
